//! Branches of `ifelse` in a step that is a list: what one branch alone needs is a loop of at most one step, or computed in any case where
//! that costs less.
//!
//! ```text
//! y = ifelse(c, a(x), b(x))        z = scan n_steps=int(not c) { state s init=0;  next s = b(x) }
//!                                  y = scan n_steps=int(c)     { state s init=z;  next s = a(x) }
//! ```
//!
//! Choices by one condition of which none needs another share their loops.

use super::extents::known_shape;
use super::kinds::{Kind, Kinds};
use super::rooms::Roomy;
use super::{Lowered, refuse};
use crate::base::{Id, Result};
use crate::ir::op::BroadcastTo;
use crate::ir::scan::NonSeq;
use crate::ir::{Def, Graph, Keep, Node, NodeId, Offsets, Op, Scan, Seq, State, Tag, Value};
use crate::ops::properties::Cost;
use crate::scalar::ElemOp;
use crate::types::shape::count;
use crate::types::{DType, Dim, Type};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Work on so many elements, functions like tanh counting as several, is done whether or not its branch is taken.
const LITTLE: usize = 256;
/// What a function like tanh counts as.
const FUNCTION: usize = 8;

/// A step without `ifelse`, and whether it computes what may fail although only a branch needs it: what several branches need, and what
/// does not depend on the step.
///
/// # Errors
/// Where branches differ in their extents, or users' operations stand beside them.
pub(super) fn looped(scan: &Scan, body: &Graph) -> Lowered<(Graph, bool)> {
    let kinds = Kinds::new(scan, body);
    let choice = |n: &Node| matches!(n.op, Op::IfElse(_));
    if !kinds.nodes(body).any(choice) {
        return Ok((body.clone(), false));
    }
    if kinds.nodes(body).filter(|n| choice(n)).any(|n| known_shape(body, n.ins[1]).ok() != known_shape(body, n.ins[2]).ok()) {
        return refuse("it has branches of different extents");
    }
    // An operation of a user that fails is not done again, and its error would name the loop of the branch.
    if kinds.nodes(body).any(|n| matches!(n.op, Op::Extern(_))) {
        return refuse("it has branches beside operations of users");
    }
    let branches = Branches::new(body, &kinds);
    let eager = branches.eager();
    Ok((branches.made()?, eager))
}

/// A branch of the choices of a group: the first (true) or the second.
type Side = (usize, bool);

/// Choices by one condition.
struct Group {
    condition: Value,
    choices: Vec<NodeId>,
}

/// A step on its way.
struct Branches<'a> {
    from: &'a Graph,
    kinds: &'a Kinds,
    live: Vec<bool>,
    groups: Vec<Group>,
    /// Per node: the branch that alone needs it, of a choice that is made in any case.
    sides: Vec<Option<Side>>,
    group_of: FxHashMap<NodeId, usize>,
    out: Graph,
    image: FxHashMap<Value, Value>,
}

impl<'a> Branches<'a> {
    fn new(from: &'a Graph, kinds: &'a Kinds) -> Branches<'a> {
        let live = from.needed(from.results());
        let (mut groups, mut group_of, mut numbers) = (vec![], FxHashMap::default(), FxHashMap::default());
        // Among choices of the same depth none needs another.
        let mut depth = vec![0usize; from.n_values()];
        for (id, node) in from.nodes().enumerate().filter(|n| live[n.0.idx()]) {
            let choice = matches!(node.op, Op::IfElse(_));
            let deep = node.ins.iter().map(|v| depth[v.idx()]).max().unwrap_or(0) + usize::from(choice);
            node.outs.iter().for_each(|v| depth[v.idx()] = deep);
            if choice {
                let group = *numbers.entry((node.ins[0], deep)).or_insert(groups.len());
                if group == groups.len() {
                    groups.push(Group { condition: node.ins[0], choices: vec![] });
                }
                group_of.insert(id, group);
            }
        }
        let mut found = Branches { from, kinds, live, groups, sides: vec![], group_of, out: Graph::new(), image: FxHashMap::default() };
        found.divide();
        found
    }

    /// Finds out what one branch alone needs.
    fn divide(&mut self) {
        let from = self.from;
        self.sides = vec![None; from.nodes().len()];
        // Per value: the branch of all its uses so far; `Some(None)` where there is none.
        let mut wanted: Vec<Option<Option<Side>>> = vec![None; from.n_values()];
        from.results().iter().for_each(|v| wanted[v.idx()] = Some(None));
        for (id, node) in from.nodes().enumerate().rev().filter(|n| self.live[n.0.idx()]) {
            let step = node.outs.iter().any(|&v| self.kinds.of(v) == Kind::Step);
            let mut uses = node.outs.iter().filter_map(|v| wanted[v.idx()]);
            let first = uses.next().flatten();
            let side = first.filter(|_| step && !node.ins.is_empty() && uses.all(|u| u == first));
            self.sides[id.idx()] = side;
            let group = self.group_of.get(&id).copied();
            if let (None, Some(group)) = (side, group) {
                self.groups[group].choices.insert(0, id);
            }
            for (k, v) in node.ins.iter().enumerate() {
                let use_ = side.or(group.filter(|_| k > 0).map(|group| (group, k == 1)));
                let all = wanted[v.idx()].map_or(use_, |before| before.filter(|_| before == use_));
                wanted[v.idx()] = Some(all);
            }
        }
    }

    /// True where something that may fail is computed in any case, and no step may need it.
    fn eager(&self) -> bool {
        let from = self.from;
        let mut sure = vec![false; from.n_values()];
        from.results().iter().for_each(|v| sure[v.idx()] = true);
        let mut eager = false;
        for (id, node) in from.nodes().enumerate().rev().filter(|n| self.live[n.0.idx()]) {
            if node.outs.iter().any(|v| sure[v.idx()]) {
                let needed = if matches!(node.op, Op::IfElse(_)) { &node.ins[..1] } else { &node.ins[..] };
                needed.iter().for_each(|v| sure[v.idx()] = true);
            } else {
                eager |= self.sides[id.idx()].is_none() && node.op.def().fallible(from, &node.ins);
            }
        }
        eager
    }

    fn made(mut self) -> Result<Graph> {
        let from = self.from;
        for &p in from.params() {
            self.image.insert(p, self.out.param(from.ty(p).clone(), from.name(p).map(|n| &**n)));
        }
        // Groups stand where all that they need is there, so that the order of nodes is not kept.
        let mut stack: Vec<(NodeId, bool)> = from.results().iter().rev().filter_map(|&v| Some((self.open(v)?, false))).collect();
        while let Some((id, ready)) = stack.pop() {
            if self.done(id) {
                continue;
            }
            if !ready {
                stack.push((id, true));
                stack.extend(self.needs(id).into_iter().rev().filter_map(|v| Some((self.open(v)?, false))));
                continue;
            }
            self.out.set_span(from.nodes()[id].span);
            match self.group_of.get(&id).copied() {
                Some(group) => self.group(group)?,
                None => self.copy(id)?,
            }
        }
        let results: Vec<Value> = from.results().iter().map(|v| self.image[v]).collect();
        self.out.set_results(results);
        Ok(self.out)
    }

    fn done(&self, id: NodeId) -> bool {
        self.from.nodes()[id].outs.iter().all(|v| self.image.contains_key(v))
    }
    /// The node that makes a value which is not there yet.
    fn open(&self, v: Value) -> Option<NodeId> {
        match self.from.def(v) {
            Def::Out(id, _) if !self.image.contains_key(&v) => Some(id),
            _ => None,
        }
    }
    fn needs(&self, id: NodeId) -> Vec<Value> {
        match self.group_of.get(&id) {
            None => self.from.nodes()[id].ins.to_vec(),
            Some(&group) => {
                let mut needs = vec![self.groups[group].condition];
                [true, false].iter().for_each(|&holds| needs.extend(self.outside((group, holds))));
                needs
            }
        }
    }
    fn copy(&mut self, id: NodeId) -> Result<()> {
        let node = &self.from.nodes()[id];
        let ins: Vec<Value> = node.ins.iter().map(|v| self.image[v]).collect();
        let outs = self.out.apply(node.op.clone(), &ins)?;
        self.image.extend(node.outs.iter().copied().zip(outs));
        Ok(())
    }

    /// What the choices of a group take on one side.
    fn taken(&self, (group, holds): Side) -> Vec<Value> {
        let k = if holds { 1 } else { 2 };
        self.groups[group].choices.iter().map(|&id| self.from.nodes()[id].ins[k]).collect()
    }
    fn inside(&self, side: Side) -> impl Iterator<Item = &'a Node> {
        let (from, sides) = (self.from, &self.sides);
        from.nodes().enumerate().filter(move |(id, _)| sides[id.idx()] == Some(side)).map(|n| n.1)
    }
    /// What one side needs and is computed in any case.
    fn outside(&self, side: Side) -> Vec<Value> {
        let (mut seen, mut found) = (FxHashSet::default(), vec![]);
        let all = self.inside(side).flat_map(|n| n.ins.iter().copied()).chain(self.taken(side));
        for v in all {
            let own = matches!(self.from.def(v), Def::Out(id, _) if self.sides[id.idx()] == Some(side));
            if !own && seen.insert(v) {
                found.push(v);
            }
        }
        found
    }
    /// True where one side is computed at little cost, and cannot fail.
    fn little(&self, side: Side) -> bool {
        let work = |node: &Node| {
            let fails = node.op.number() == Op::OTHERS || node.op.def().fallible(self.from, &node.ins);
            let each = match node.op.properties().cost {
                Cost::Free => 0,
                Cost::Simple => 1,
                Cost::Function => FUNCTION,
                _ => return None,
            };
            let n = node.outs.iter().map(|&v| known_shape(self.from, v).map(|s| count(&s))).sum::<Lowered<usize>>().ok()?;
            (!fails).then_some(each * n)
        };
        self.inside(side).map(work).sum::<Option<usize>>().is_some_and(|n| n <= LITTLE)
    }

    /// The choices of a group.
    fn group(&mut self, group: usize) -> Result<()> {
        let given = self.groups[group].condition;
        let truth = self.image[&given];
        let truth = if self.out.ty(truth).dtype == DType::Bool { truth } else { self.out.cast(truth, DType::Bool) };
        if self.little((group, true)) && self.little((group, false)) {
            return self.selected(group, truth);
        }
        let trivial = [true, false].map(|holds| self.inside((group, holds)).next().is_none());
        let mut rows = self.begun(group, trivial)?;
        for holds in [false, true] {
            if !trivial[usize::from(!holds)] {
                rows = self.side((group, holds), truth, &rows)?;
            }
        }
        for (k, row) in rows.into_iter().enumerate() {
            let chosen = self.from.nodes()[self.groups[group].choices[k]].outs[0];
            let value = self.out.squeeze(row, &[0]);
            self.image.insert(chosen, value);
        }
        Ok(())
    }

    /// Both sides computed, elements of one selected.
    fn selected(&mut self, group: usize, truth: Value) -> Result<()> {
        let ids: Vec<NodeId> = (0..self.from.nodes().len()).map(|i| NodeId(i as u32)).collect();
        let own = |id: &NodeId| matches!(self.sides[id.idx()], Some((g, _)) if g == group);
        for id in ids.into_iter().filter(own).collect::<Vec<_>>() {
            self.copy(id)?;
        }
        for id in self.groups[group].choices.clone() {
            let node = &self.from.nodes()[id];
            let (x, y) = (self.image[&node.ins[1]], self.image[&node.ins[2]]);
            let value = self.out.apply(Op::Elem(ElemOp::Where), &[truth, x, y])?[0];
            self.image.insert(node.outs[0], value);
        }
        Ok(())
    }

    /// What the loops begin with, as arrays of one row: the values of a side that is there, or zeros.
    fn begun(&mut self, group: usize, trivial: [bool; 2]) -> Result<Vec<Value>> {
        if let Some(k) = trivial.iter().position(|&t| t) {
            let taken = self.taken((group, k == 0));
            return Ok(taken.into_iter().map(|v| self.out.expand(self.image[&v], &[0])).collect());
        }
        let taken = self.taken((group, true));
        let zeros = |v: Value| {
            let ty = self.from.ty(v);
            let zero = self.out.number(ty.dtype, 0.0);
            let dims: Vec<Value> = ty.dims.iter().filter_map(|d| d.value()).map(|n| self.out.int(n as i64)).collect();
            let one = self.out.int(1);
            Ok(self.out.apply(BroadcastTo {}, &[&[zero, one], &dims[..]].concat())?[0])
        };
        taken.into_iter().map(zeros).collect()
    }

    /// One side as a loop of no step or one. What depends on the step around is a sequence of one row: a captured value would let the side be
    /// computed before the loop.
    fn side(&mut self, side: Side, truth: Value, rows: &[Value]) -> Result<Vec<Value>> {
        let taken = self.taken(side);
        let outside = self.outside(side).into_iter().filter(|&v| self.from.const_value(v).is_none());
        let (read, captured): (Vec<Value>, Vec<Value>) = outside.partition(|&v| self.kinds.of(v) == Kind::Step);
        let mut body = Graph::new();
        body.param(Type::scalar(DType::I64), None);
        let mut params: FxHashMap<Value, Value> = read.iter().map(|&v| (v, body.param(self.from.ty(v).clone(), None))).collect();
        let states = taken.iter().map(|&v| State {
            row: self.from.ty(v).clone(),
            init: true,
            reads: Offsets::from_slice(&[0]),
            writes: Offsets::from_slice(&[1]),
            keep: Keep::Last(1),
            tag: Tag::Output,
            name: None,
        });
        let states: Vec<State> = states.collect();
        for state in &states {
            body.param(state.row.clone(), None);
        }
        params.extend(captured.iter().map(|&v| (v, body.param(self.from.ty(v).clone(), None))));
        let results = body.inline(self.from, &params, &taken)?;
        body.set_results(results);
        let types = states.iter().map(|s| Type::new(s.row.dtype, std::iter::once(Dim::known(1)).chain(s.row.dims.iter().cloned())));
        let types = types.chain([Type::scalar(DType::I64)]).collect();
        let scan = Scan {
            name: None,
            body,
            seqs: read.iter().map(|_| Seq { reverse: false, name: None }).collect(),
            states: states.into_iter().collect(),
            captured: captured.iter().map(|_| NonSeq { name: None }).collect(),
            until: false,
            truncate: None,
        };
        let holds = if side.1 { truth } else { self.out.apply(Op::Elem(ElemOp::Not), &[truth])?[0] };
        let mut ins = vec![self.out.cast(holds, DType::I64)];
        ins.extend(read.iter().map(|v| self.out.expand(self.image[v], &[0])));
        ins.extend(rows);
        ins.extend(captured.iter().map(|v| self.image[v]));
        let outs = self.out.apply(Roomy::op(Arc::new(scan), (1, true), types), &ins)?;
        Ok(outs[..rows.len()].to_vec())
    }
}
