//! A loop in pieces: slots with what fills them and what stands for them in the body. Passes drop, add and replace pieces;
//! [`Parts::close`] puts a loop together again and knows the positions.

use crate::base::{Diagnostic, Id, Result};
use crate::ir::scan::NonSeq;
use crate::ir::{Def, Graph, Keep, Node, NodeId, Offsets, Op, Outs, Scan, Seq, State, StateId, Tag, Value};
use crate::rewrite::rebuild::Rebuild;
use crate::types::{Array, DType, Type};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A sequence.
#[derive(Clone, Debug)]
pub struct SeqPart {
    /// The slot.
    pub slot: Seq,
    /// Its rows: a value of the graph around.
    pub rows: Value,
    /// One row: a value of the body.
    pub param: Value,
}

/// A state.
#[derive(Clone, Debug)]
pub struct StatePart {
    /// Which state of the loop that was taken apart it is; none for one that a pass adds.
    pub id: Option<StateId>,
    /// The slot.
    pub slot: State,
    /// Its initial rows: a value of the graph around.
    pub init: Option<Value>,
    /// What the step reads: values of the body, in the order of the slot's reads.
    pub params: Vec<Value>,
    /// What the step writes: values of the body, in the order of the slot's writes.
    pub results: Vec<Value>,
}

/// A captured value.
#[derive(Clone, Debug)]
pub struct CapturedPart {
    /// The slot.
    pub slot: NonSeq,
    /// The value of the graph around.
    pub value: Value,
    /// What stands for it: a value of the body.
    pub param: Value,
}

/// A loop in pieces. What the body reads of a piece may be any value of the body: what computed it before is dropped.
#[derive(Clone, Debug)]
pub struct Parts {
    /// The user's name for the loop.
    pub name: Option<Arc<str>>,
    /// One step. Nodes may be added.
    pub body: Graph,
    /// The step index: a value of the body.
    pub step: Value,
    /// Number of steps: a value of the graph around.
    pub n_steps: Value,
    /// Sequences.
    pub seqs: Vec<SeqPart>,
    /// States.
    pub states: Vec<StatePart>,
    /// Captured values.
    pub captured: Vec<CapturedPart>,
    /// The stopping condition: a value of the body.
    pub until: Option<Value>,
    /// The gradient covers the last so many steps.
    pub truncate: Option<usize>,
    /// Values of the body with others that take their place.
    aliases: FxHashMap<Value, Value>,
}

impl Parts {
    /// Lets the loop return a value of every step.
    pub fn keep(&mut self, v: Value, tag: Tag) {
        let slot = State {
            row: self.body.ty(v).clone(),
            init: false,
            reads: Offsets::new(),
            writes: Offsets::from_slice(&[0]),
            keep: Keep::All,
            tag,
            name: self.body.name(v).cloned(),
        };
        self.states.push(StatePart { id: None, slot, init: None, params: vec![], results: vec![v] });
    }
    /// Takes a loop apart; `ins` are the inputs of its node.
    pub fn open(scan: &Scan, ins: &[Value]) -> Parts {
        let params = scan.body.params();
        let seqs = scan.seqs.enumerate();
        let states = scan.states.enumerate();
        let captured = scan.captured.enumerate();
        Parts {
            name: scan.name.clone(),
            body: scan.body.clone(),
            step: params[Scan::STEP],
            n_steps: ins[Scan::N_STEPS],
            seqs: seqs
                .map(|(id, s)| SeqPart { slot: s.clone(), rows: ins[scan.seq_input(id)], param: params[scan.seq_param(id)] })
                .collect(),
            states: states
                .map(|(id, s)| StatePart {
                    id: Some(id),
                    slot: s.clone(),
                    init: scan.init_input(id).map(|at| ins[at]),
                    params: scan.read_values(id).to_vec(),
                    results: scan.write_values(id).to_vec(),
                })
                .collect(),
            captured: captured
                .map(|(id, s)| CapturedPart {
                    slot: s.clone(),
                    value: ins[scan.captured_input(id)],
                    param: params[scan.captured_param(id)],
                })
                .collect(),
            until: scan.until_result().map(|at| scan.body.results()[at]),
            truncate: scan.truncate,
            aliases: FxHashMap::default(),
        }
    }
    /// Lets another value of the body, which must not depend on it, take the place of one.
    pub fn alias(&mut self, old: Value, new: Value) {
        self.aliases.insert(old, new);
    }
    /// Lets a constant take the place of a value of the body.
    pub fn alias_constant(&mut self, old: Value, value: Array) {
        let new = self.body.constant(value);
        self.aliases.insert(old, new);
    }
    /// Lets `start + step · the number of the step` take the place of a value of the body.
    pub fn alias_number(&mut self, old: Value, start: i64, step: i64) {
        let start = self.body.int(start);
        self.alias_moved(old, start, step);
    }
    fn alias_moved(&mut self, old: Value, start: Value, step: i64) {
        let step = self.body.int(step);
        let moved = self.body.mul(self.step, step);
        let new = self.body.add(start, moved);
        self.aliases.insert(old, new);
    }
    /// The same of a value of the graph around, where those begin.
    pub fn alias_number_from(&mut self, old: Value, start: Value, step: i64) {
        let param = self.body.param(Type::scalar(DType::I64), None);
        self.capture(start, param);
        self.alias_moved(old, param, step);
    }
    /// Adds a captured value: a value of the graph around that stands for one of the body.
    pub fn capture(&mut self, value: Value, param: Value) {
        self.captured.push(CapturedPart { slot: NonSeq { name: self.body.name(param).cloned() }, value, param });
    }
    /// Lets values of another graph fill the slots.
    ///
    /// # Errors
    /// What `image` reports.
    pub fn fill(&mut self, image: impl Fn(Value) -> Result<Value>) -> Result<()> {
        self.n_steps = image(self.n_steps)?;
        self.seqs.iter_mut().try_for_each(|s| image(s.rows).map(|v| s.rows = v))?;
        self.states.iter_mut().try_for_each(|s| s.init.map(&image).transpose().map(|v| s.init = v))?;
        self.captured.iter_mut().try_for_each(|c| image(c.value).map(|v| c.value = v))
    }
    /// All results of the body, in order.
    pub fn results(&self) -> Vec<Value> {
        self.states.iter().flat_map(|s| s.results.iter().copied()).chain(self.until).collect()
    }
    /// The values of the body that pieces stand for, in the order of its parameters.
    fn params(&self) -> impl Iterator<Item = Value> + '_ {
        self.varying().chain(self.captured.iter().map(|c| c.param))
    }
    /// What the body reads that is not the same at every step.
    pub fn varying(&self) -> impl Iterator<Item = Value> + '_ {
        let seqs = self.seqs.iter().map(|s| s.param);
        std::iter::once(self.step).chain(seqs).chain(self.states.iter().flat_map(|s| s.params.iter().copied()))
    }
    fn resolve(&self, mut v: Value) -> Value {
        while let Some(&next) = self.aliases.get(&v) {
            v = next;
        }
        v
    }
    /// True per value of the body that the given ones depend on, themselves included. Pieces depend on nothing.
    pub fn needed(&self, values: impl IntoIterator<Item = Value>) -> Vec<bool> {
        let mut stop = vec![false; self.body.n_values()];
        self.params().for_each(|p| stop[p.idx()] = true);
        let mut live = vec![false; self.body.n_values()];
        let mut stack: Vec<Value> = values.into_iter().collect();
        while let Some(v) = stack.pop() {
            let v = self.resolve(v);
            if std::mem::replace(&mut live[v.idx()], true) || stop[v.idx()] {
                continue;
            }
            if let Some(node) = self.body.node_of(v) {
                stack.extend(&node.ins);
            }
        }
        live
    }
    /// True per value of the body that some result needs.
    pub fn live(&self) -> Vec<bool> {
        self.needed(self.results())
    }
    /// Puts the loop together: the loop and the inputs of its node.
    ///
    /// # Errors
    /// What type inference reports.
    pub fn close(self) -> Result<(Scan, Vec<Value>)> {
        let live = self.live();
        let mut copy = Copy { body: Graph::new(), images: vec![None; self.body.n_values()] };
        for p in self.params() {
            let ty = if p == self.step { Type::scalar(DType::I64) } else { self.body.ty(p).clone() };
            let image = copy.body.param(ty, self.body.name(p).map(|n| &**n));
            copy.images[p.idx()].get_or_insert(image);
        }
        let constants = |c: bool| self.body.nodes().enumerate().filter(move |(_, n)| matches!(n.op, Op::Const(_)) == c);
        let wanted = |node: &Node, copy: &Copy| node.outs.iter().any(|v| live[v.idx()] && copy.images[v.idx()].is_none());
        let mut pending: Vec<(NodeId, &Node)> = constants(true).chain(constants(false)).filter(|(_, n)| wanted(n, &copy)).collect();
        while !pending.is_empty() {
            let mut waiting = vec![];
            for &(id, node) in &pending {
                let ins: Option<Vec<Value>> = node.ins.iter().map(|&v| copy.images[self.resolve(v).idx()]).collect();
                let Some(ins) = ins else {
                    waiting.push((id, node));
                    continue;
                };
                let outs: Outs<Value> = copy.body.copy(&self.body, id, &node.op, &ins)?;
                for (old, new) in node.outs.iter().zip(outs) {
                    copy.images[old.idx()].get_or_insert(new);
                }
            }
            if waiting.len() == pending.len() {
                return Err(Diagnostic::internal("a loop in pieces whose step depends on itself"));
            }
            pending = waiting;
        }
        let results: Vec<Value> = self.results().into_iter().map(|v| copy.image(self.resolve(v))).collect::<Result<_>>()?;
        copy.body.set_results(results);
        Ok(self.assemble(copy.body))
    }
    /// Puts the loop, whose slots are filled with values of the copy, in the place of a node: outputs of states that are still
    /// there have images. Returns the outputs.
    ///
    /// # Errors
    /// What type inference reports.
    pub fn put(self, rebuild: &mut Rebuild, node: &Node) -> Result<Outs<Value>> {
        let Some(scan) = node.op.as_scan() else { return Err(Diagnostic::internal("a loop in the place of something else")) };
        let ids: Vec<Option<StateId>> = self.states.iter().map(|s| s.id).collect();
        let (new, ins) = self.close()?;
        let keeps: Vec<Keep> = new.states.iter().map(|s| s.keep).collect();
        let outs = rebuild.new.apply(Op::Scan(Arc::new(new)), &ins)?;
        for ((id, keep), &out) in ids.into_iter().zip(keeps).zip(&outs) {
            let Some(id) = id else { continue };
            let old = node.outs[scan.state_output(id)];
            if keep == scan.states[id].keep {
                same_type(rebuild, old, out)?;
            }
            rebuild.set(old, out);
        }
        rebuild.set(node.outs[scan.steps_output()], outs[outs.len() - 1]);
        Ok(outs)
    }
    fn assemble(self, body: Graph) -> (Scan, Vec<Value>) {
        let mut ins = vec![self.n_steps];
        ins.extend(self.seqs.iter().map(|s| s.rows));
        ins.extend(self.states.iter().filter_map(|s| s.init));
        ins.extend(self.captured.iter().map(|c| c.value));
        let scan = Scan {
            name: self.name,
            body,
            seqs: self.seqs.into_iter().map(|s| s.slot).collect(),
            states: self.states.into_iter().map(|s| s.slot).collect(),
            captured: self.captured.into_iter().map(|c| c.slot).collect(),
            until: self.until.is_some(),
            truncate: self.truncate,
        };
        (scan, ins)
    }
    /// True where a value of the body is a parameter of it.
    pub fn is_param(&self, v: Value) -> bool {
        matches!(self.body.def(v), Def::Param(_))
    }
}

struct Copy {
    body: Graph,
    images: Vec<Option<Value>>,
}

impl Copy {
    fn image(&self, v: Value) -> Result<Value> {
        self.images[v.idx()].ok_or_else(|| Diagnostic::internal(format!("value {v:?} of a loop is read before it is made")))
    }
}

/// Keeps what was known of the extents of a value.
fn same_type(rebuild: &mut Rebuild, old: Value, new: Value) -> Result<()> {
    let mut ty = rebuild.new.ty(new).clone();
    for (d, before) in ty.dims.iter_mut().zip(&rebuild.old.ty(old).dims) {
        if d.value().is_none() {
            *d = before.clone();
        }
    }
    rebuild.new.refine(new, ty)
}

/// What a loop is called in reports.
pub fn title(scan: &Scan) -> String {
    match &scan.name {
        Some(name) => format!("loop `{name}`"),
        None => match scan.states.iter().find_map(|s| s.name.as_deref()) {
            Some(state) => format!("loop over `{state}`"),
            None => "loop".to_string(),
        },
    }
}
