//! One walk over the nodes in order. A branch of `ifelse` that is not taken is not evaluated.

use crate::base::clock::Instant;
use crate::base::{Diagnostic, Result, Span};
use crate::ir::{Def, EvalCx, Graph, Node, NodeId, Op, Value};
#[cfg(debug_assertions)]
use crate::ops::certain;
#[cfg(debug_assertions)]
use crate::types::shape::Extents;
use crate::types::{Array, memory};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use std::cell::Cell;
use std::ops::Deref;

/// The values of `graph`'s results for these arguments.
///
/// # Errors
/// What the ops report, at the user's line.
pub fn run(graph: &Graph, cx: &mut EvalCx, args: &[Array]) -> Result<Vec<Array>> {
    let walk = Walk::new(graph);
    let mut slots = walk.slots();
    walk.run(cx, &mut slots, &mut args.to_vec())
}

/// A graph prepared to be evaluated many times.
pub struct Walk<G> {
    graph: G,
    steps: Vec<Step>,
    consts: Vec<(Value, Array)>,
    lazy: bool,
}

struct Step {
    node: NodeId,
    /// Inputs that nothing reads afterwards: handed over, so that the op may write into them.
    last: SmallVec<[bool; 4]>,
}

/// The values of one evaluation.
pub type Slots = Vec<Option<Array>>;

impl<G: Deref<Target = Graph>> Walk<G> {
    /// Prepares a graph.
    pub fn new(graph: G) -> Walk<G> {
        let lazy = graph.nodes().iter().any(|n| matches!(n.op, Op::IfElse(_)));
        let live = if lazy { eager(&graph, graph.results()) } else { graph.needed(graph.results()) };
        let mut consts = vec![];
        let mut steps = vec![];
        let mut seen: FxHashSet<Value> = graph.results().iter().copied().collect();
        for (id, node) in graph.nodes().enumerate().rev() {
            match &node.op {
                Op::Const(a) => {
                    seen.insert(node.outs[0]);
                    consts.push((node.outs[0], Array::clone(a)));
                }
                _ if live[id.0 as usize] => steps.push(Step { node: id, last: last_uses(node, &mut seen, lazy) }),
                _ => {}
            }
        }
        steps.reverse();
        for step in &mut steps {
            for (last, v) in step.last.iter_mut().zip(&graph.nodes()[step.node].ins) {
                *last &= graph.const_value(*v).is_none();
            }
        }
        Walk { graph, steps, consts, lazy }
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }
    /// Room for the values of one evaluation after the other.
    pub fn slots(&self) -> Slots {
        let mut slots = vec![None; self.graph.n_values()];
        for (v, a) in &self.consts {
            slots[v.0 as usize] = Some(a.clone());
        }
        slots
    }

    /// Evaluates. The arguments are consumed: what nothing else holds may be overwritten.
    ///
    /// # Errors
    /// What the ops report, at the user's line.
    pub fn run(&self, cx: &mut EvalCx, slots: &mut Slots, args: &mut Vec<Array>) -> Result<Vec<Array>> {
        if args.len() != self.graph.params().len() {
            return Err(Diagnostic::internal(format!("{} arguments for {} parameters", args.len(), self.graph.params().len())));
        }
        if self.lazy {
            *slots = self.slots();
        }
        for (&p, a) in self.graph.params().iter().zip(args.drain(..)) {
            slots[p.0 as usize] = Some(a);
        }
        self.nodes(cx, slots)?;
        self.graph.results().iter().map(|&v| read(slots, v)).collect()
    }

    /// All nodes; memory that is refused meanwhile is an error of the node that asked for it.
    fn nodes(&self, cx: &mut EvalCx, slots: &mut Slots) -> Result<()> {
        let at = Cell::new(None);
        let run = || self.steps.iter().try_for_each(|step| self.node(cx, slots, step.node, &step.last, &at));
        memory::attempt(run).unwrap_or_else(|refused| {
            let Some(id) = at.get() else { return Err(refused.diagnostic("a graph")) };
            let node: &Node = &self.graph.nodes()[id];
            Err(blame(refused.diagnostic(&node.op.described()), &node.op, node.span))
        })
    }

    fn node(&self, cx: &mut EvalCx, slots: &mut Slots, id: NodeId, last: &[bool], at: &Cell<Option<NodeId>>) -> Result<()> {
        let node = &self.graph.nodes()[id];
        cx.check()?;
        if let Op::IfElse(_) = node.op {
            return self.choose(cx, slots, node, at);
        }
        at.set(Some(id));
        let mut ins: SmallVec<[Array; 8]> = SmallVec::new();
        for (&v, &last) in node.ins.iter().zip(last) {
            ins.push(if last { take(slots, v)? } else { read(slots, v)? });
        }
        #[cfg(debug_assertions)]
        let given: Vec<Extents> = ins.iter().map(|a| SmallVec::from_slice(a.shape())).collect();
        let start = cx.profile.is_some().then(Instant::now);
        let outs = node.op.def().eval(cx, &mut ins).map_err(|e| blame(e, &node.op, node.span))?;
        if let (Some(start), Some(profile)) = (start, &mut cx.profile) {
            profile.op(node.op.name(), start.elapsed());
        }
        #[cfg(debug_assertions)]
        certain::check(&self.graph, node, &given, &outs);
        for (&v, a) in node.outs.iter().zip(outs) {
            slots[v.0 as usize] = Some(a);
        }
        Ok(())
    }

    /// `ifelse`: evaluates what the chosen branch still needs, then passes it on.
    fn choose(&self, cx: &mut EvalCx, slots: &mut Slots, node: &Node, at: &Cell<Option<NodeId>>) -> Result<()> {
        let cond = read(slots, node.ins[0])?.item_f64().is_some_and(|x| x != 0.0);
        let branch = node.ins[if cond { 1 } else { 2 }];
        let live = eager_missing(&self.graph, &[branch], slots);
        for (id, inner) in self.graph.nodes().enumerate() {
            if live[id.0 as usize] {
                self.node(cx, slots, id, &SmallVec::<[bool; 8]>::from_elem(false, inner.ins.len()), at)?;
            }
        }
        let chosen = read(slots, branch)?.cast(self.graph.ty(node.outs[0]).dtype);
        slots[node.outs[0].0 as usize] = Some(chosen);
        Ok(())
    }
}

fn last_uses(node: &Node, seen: &mut FxHashSet<Value>, lazy: bool) -> SmallVec<[bool; 4]> {
    let mut last: SmallVec<[bool; 4]> = node.ins.iter().rev().map(|&v| seen.insert(v) && !lazy).collect();
    last.reverse();
    last
}

fn read(slots: &Slots, v: Value) -> Result<Array> {
    slots[v.0 as usize].clone().ok_or_else(|| Diagnostic::internal(format!("value {v:?} is read before it is made")))
}

fn take(slots: &mut Slots, v: Value) -> Result<Array> {
    slots[v.0 as usize].take().ok_or_else(|| Diagnostic::internal(format!("value {v:?} is read before it is made")))
}

/// True per node that the values need whatever the conditions say.
pub fn eager(graph: &Graph, values: &[Value]) -> Vec<bool> {
    eager_missing(graph, values, &vec![None; graph.n_values()])
}

/// As [`eager`], leaving out what has a value already.
fn eager_missing(graph: &Graph, values: &[Value], slots: &Slots) -> Vec<bool> {
    let mut live = vec![false; graph.nodes().len()];
    let mut stack: Vec<Value> = values.to_vec();
    while let Some(v) = stack.pop() {
        let Def::Out(id, _) = graph.def(v) else { continue };
        if live[id.0 as usize] || slots[v.0 as usize].is_some() {
            continue;
        }
        live[id.0 as usize] = true;
        let node = &graph.nodes()[id];
        let always = if matches!(node.op, Op::IfElse(_)) { 1 } else { node.ins.len() };
        stack.extend(&node.ins[..always]);
    }
    live
}

/// Adds the user's line to an error: of the op, and of every loop around it.
pub fn blame(e: Box<Diagnostic>, op: &Op, span: Span) -> Box<Diagnostic> {
    let is_loop = match op {
        Op::Scan(_) => true,
        Op::Native(native) => native.0.is_loop(),
        _ => false,
    };
    if is_loop { in_loop(e, span) } else { e.at(span) }
}

/// Adds the line of a loop to an error of its step.
pub fn in_loop(e: Box<Diagnostic>, span: Span) -> Box<Diagnostic> {
    if e.labels.is_empty() { e.at(span) } else { e.also(span, "in this loop") }
}
