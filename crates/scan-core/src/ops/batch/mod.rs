//! Batching of graphs: each node by the rule of its op.

mod diagonal;
pub mod indexing;
pub mod products;
pub mod shapes;
mod stacked;

use super::args::{integer, one};
use super::index::{Item, Pattern};
use super::properties::Cost;
use crate::base::{Id, Result};
use crate::ir::op::*;
use crate::ir::{Def, Graph, Held, Node, NodeId, Op, Value, Whole};
use crate::scalar::ElemOp;
use crate::types::{DType, Sym};
use rustc_hash::FxHashMap;

/// An elementwise function.
pub fn elementwise(op: ElemOp, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
    b.broadcasting(Op::Elem(op), ins)
}

/// The values of a graph for all rows, written to another one, given some of them there. `None` where rows have different lengths and
/// something needs to see them side by side, or where the order of effects would change: then nothing is better than a loop over the rows.
///
/// # Errors
/// What type inference reports.
pub fn graph(b: &mut Batching, from: &Graph, given: &FxHashMap<Value, Batched>, wanted: &[Value]) -> Result<Option<Images>> {
    let since = Sym::fresh();
    let mut images = Images { of: given.clone() };
    let live = needed(from, given, wanted, true);
    let mut eager = needed(from, given, wanted, false);
    for (&v, _) in given.iter().filter(|(_, x)| x.varies()) {
        if let Def::Out(id, _) = from.def(v) {
            eager[id.idx()] = true;
        }
    }
    for (id, node) in from.nodes().enumerate().filter(|(id, _)| live[id.idx()]) {
        let outer = b.g.set_span(node.span);
        b.g.set_span(node.span.or(outer));
        let before = (b.looped, b.apart);
        let outs = images.node(b, from, (id, node), &eager);
        b.g.set_span(outer);
        let Some(outs) = outs? else {
            if eager[id.idx()] {
                return Ok(None);
            }
            // The `ifelse` whose branch this is computes the branch anew, for the rows that take it.
            (b.looped, b.apart) = before;
            continue;
        };
        for (&old, new) in node.outs.iter().zip(outs) {
            if !matches!(new, Batched::Ragged { .. }) {
                b.g.learn_rows(new.value(), new.axis(), from, old, since);
            }
            images.of.entry(old).or_insert(new);
        }
    }
    Ok(Some(images))
}

/// True per node that the wanted values need, not looking behind those that are given; without branches, not those that only a branch of
/// `ifelse` needs.
fn needed(from: &Graph, given: &FxHashMap<Value, Batched>, wanted: &[Value], branches: bool) -> Vec<bool> {
    let mut live = vec![false; from.nodes().len()];
    let mut stack = wanted.to_vec();
    while let Some(v) = stack.pop() {
        let Def::Out(id, _) = from.def(v) else { continue };
        if given.contains_key(&v) || std::mem::replace(&mut live[id.idx()], true) {
            continue;
        }
        let node = &from.nodes()[id];
        let skipped = !branches && matches!(node.op, Op::IfElse(_));
        stack.extend(if skipped { &node.ins[..1] } else { &node.ins[..] });
    }
    live
}

/// What stands for the values of a graph.
pub struct Images {
    of: FxHashMap<Value, Batched>,
}

impl Images {
    /// What stands for a value; none for one that was not needed.
    pub fn get(&self, v: Value) -> Option<Batched> {
        self.of.get(&v).copied()
    }

    fn node(&self, b: &mut Batching, from: &Graph, (id, node): (NodeId, &Node), eager: &[bool]) -> Result<Option<Outs<Batched>>> {
        let Some(ins) = node.ins.iter().map(|v| self.get(*v)).collect::<Option<Vec<Batched>>>() else {
            let cond = self.get(node.ins[0]).filter(|x| matches!(node.op, Op::IfElse(_)) && matches!(x, Batched::Rows(_)));
            return cond.map_or(Ok(None), |cond| self.choice(b, from, (id, node), (cond, None), eager));
        };
        let varies = ins.iter().any(|x| x.varies());
        if varies && matches!(&node.op, Op::Extern(e) if !e.0.pure()) {
            return Ok(None);
        }
        if ins.iter().any(|x| matches!(x, Batched::Ragged { .. })) {
            return ragged(b, &node.op, &ins);
        }
        if let Some(outs) = diagonal::diagonal(b, &node.op, &ins)? {
            return Ok(Some(outs));
        }
        if let Some(outs) = stacked::stacked(b, &node.op, &ins)? {
            return Ok(Some(outs));
        }
        let is_loop = matches!(node.op, Op::Scan(_));
        let ins: Vec<Batched> = ins.into_iter().map(|x| if is_loop { x } else { b.settled(x) }).collect();
        let outs = match &node.op {
            Op::IfElse(_) if ins[0].varies() => self.choice(b, from, (id, node), (ins[0], Some(&ins)), eager)?,
            op => Some(op.batch(b, &ins)?),
        };
        Ok(outs.filter(|_| !b.apart))
    }

    /// `ifelse` with a condition for each row, which selects. Where a branch may fail, rows that do not take it compute what the first of those
    /// that do computes; where it may fail or costs much, none where no row takes it. Where that cannot be written, each row takes its branch
    /// by itself. `ins` are missing where what only a branch needs could not be written for all rows.
    fn choice(
        &self,
        b: &mut Batching,
        from: &Graph,
        (id, node): (NodeId, &Node),
        (cond, ins): (Batched, Option<&[Batched]>),
        eager: &[bool],
    ) -> Result<Option<Outs<Batched>>> {
        let known = self.of.iter().filter(|(v, _)| !matches!(from.def(**v), Def::Out(at, _) if !eager[at.idx()]));
        let known: FxHashMap<Value, Batched> = known.map(|(v, x)| (*v, *x)).collect();
        let nodes_behind = |values: &[Value]| {
            let cone = needed(from, &known, values, true);
            from.nodes().enumerate().filter(move |(at, _)| cone[at.idx()] && *at < id).map(|(_, n)| n)
        };
        let together = ins.filter(|_| nodes_behind(&node.ins[1..]).all(|n| !n.op.def().fallible(from, &n.ins)));
        if let Some(ins) = together.filter(|_| !much(nodes_behind(&node.ins[1..]))) {
            return shapes::if_else(b, ins).map(Some);
        }
        // The condition itself may belong to a branch around that is not taken: then it is not known, and the loop computes it.
        let mut given: Vec<(Value, Batched)> =
            nodes_behind(&node.ins).flat_map(|n| &n.ins).chain(&node.ins).filter_map(|v| Some((*v, *known.get(v)?))).collect();
        given.sort_unstable_by_key(|(v, _)| *v);
        given.dedup_by_key(|(v, _)| *v);
        if given.iter().any(|(_, x)| matches!(x, Batched::Ragged { .. })) {
            return Ok(None);
        }
        let given: Vec<(Value, Batched)> = given.into_iter().map(|(v, x)| (v, b.settled(x))).collect();
        Ok(Some(match (self.as_first(b, from, (node, cond), &known)?, together) {
            (Some(found), _) => one(found),
            (None, Some(ins)) => shapes::if_else(b, ins)?,
            (None, None) => b.loop_over(from, &given, &node.outs)?,
        }))
    }
}

impl Images {
    /// Both branches of an `ifelse` for all rows, of which those that take the other one are given what the first that takes it is given.
    fn as_first(
        &self,
        b: &mut Batching,
        from: &Graph,
        (node, cond): (&Node, Batched),
        known: &FxHashMap<Value, Batched>,
    ) -> Result<Option<Batched>> {
        let [x, y] = [node.ins[1], node.ins[2]];
        if !known.contains_key(&node.ins[0]) || from.ty(x).rank() != from.ty(y).rank() {
            return Ok(None);
        }
        let same = from.ty(x).dims == from.ty(y).dims;
        let taken = b.g.cast(cond.value(), DType::Bool);
        let left = b.g.emit(Op::Elem(ElemOp::Not), &[taken]);
        let (Some(x), Some(y)) = (self.branch(b, from, known, (x, taken))?, self.branch(b, from, known, (y, left))?) else {
            return Ok(None);
        };
        let (a, c) = (b.rows(x.of)?, b.rows(y.of)?);
        let rows = [taken, a, c].map(Batched::Rows);
        let mixed = match same {
            true => b.broadcasting(Op::Elem(ElemOp::Where), &rows)?[0],
            false => shapes::chosen(b, &rows)?,
        };
        let mut of = |kind, rows: Value| b.g.emit(Reduce { kind, axes: vec![0], keepdims: false }, &[rows]);
        let (all, any) = (of(ReduceKind::All, taken), of(ReduceKind::Any, taken));
        let mut found = b.rows(mixed)?;
        if y.lazy {
            found = b.apply(IfElse {}, &[all, a, found])?;
        }
        if x.lazy {
            found = b.apply(IfElse {}, &[any, found, c])?;
        }
        Ok(Some(Batched::Rows(found)))
    }

    /// The value of a branch for all rows, those that do not take it doing as the first that does.
    fn branch(
        &self,
        b: &mut Batching,
        from: &Graph,
        known: &FxHashMap<Value, Batched>,
        (value, takes): (Value, Value),
    ) -> Result<Option<Branch>> {
        let cone = needed(from, known, &[value], true);
        let nodes = || from.nodes().enumerate().filter(|(id, _)| cone[id.idx()]).map(|(_, n)| n);
        // What prints does so for the rows that take it.
        if nodes().any(|n| Whole::of_op(&n.op, n.ins.len()).impure) {
            return Ok(None);
        }
        let fails = nodes().any(|n| n.op.def().fallible(from, &n.ins));
        let mut given = known.clone();
        if fails {
            let ones = b.g.cast(takes, DType::I64);
            let first = b.apply(ArgReduce { kind: Extreme::Max, axis: 0 }, &[ones])?;
            let numbers = b.numbers(0)?;
            let places = b.g.select(takes, numbers, first);
            let read = nodes().flat_map(|n| n.ins.iter().copied()).chain([value]);
            for v in read.filter(|v| known.get(v).is_some_and(|x| x.varies())) {
                let Batched::Rows(rows) = b.settled(known[&v]) else { return Ok(None) };
                given.insert(v, Batched::Rows(b.apply(Gather { axes: vec![0] }, &[rows, places])?));
            }
        }
        let images = graph(b, from, &given, &[value])?;
        let of = images.and_then(|images| images.get(value)).filter(|x| !matches!(x, Batched::Ragged { .. }));
        let lazy = fails || much(nodes());
        Ok(of.map(|x| Branch { of: b.settled(x), lazy }))
    }
}

/// A branch for all rows.
struct Branch {
    of: Batched,
    /// It may fail, or costs much: it is to be computed only where a row takes it.
    lazy: bool,
}

/// Functions like tanh up to which both branches of a choice are computed, and each row selects.
const FUNCTIONS: usize = 8;

/// True for nodes that are better not computed where no row needs them.
fn much<'a>(nodes: impl Iterator<Item = &'a Node>) -> bool {
    let functions = nodes.map(|n| match n.op.properties().cost {
        Cost::Free | Cost::Folds | Cost::Simple | Cost::Reads => 0,
        Cost::Function => 1,
        _ => FUNCTIONS + 1,
    });
    functions.sum::<usize>() > FUNCTIONS
}

/// What can be made of rows of different lengths without bringing them to one: an extent, a row's element, what follows the first ones.
fn ragged(b: &mut Batching, op: &Op, ins: &[Batched]) -> Result<Option<Outs<Batched>>> {
    let (Batched::Ragged { rows, lengths, last }, rest) = (ins[0], &ins[1..]) else { return Ok(None) };
    match op {
        Op::DimOf(op) if op.axis == 0 => Ok(Some(one(Batched::Rows(lengths)))),
        Op::DimOf(op) => Ok(Some(one(Batched::Fixed(b.g.dim(rows, op.axis + 1))))),
        Op::Index(op) if !rest.iter().any(|x| matches!(x, Batched::Ragged { .. })) => part(b, op, (rows, lengths, last), rest),
        _ => Ok(None),
    }
}

/// The element of each row at an index, or the elements that follow its first ones.
fn part(
    b: &mut Batching,
    op: &Index,
    (rows, lengths, last): (Value, Value, Option<Held>),
    rest: &[Batched],
) -> Result<Option<Outs<Batched>>> {
    let items = Pattern::parse(&op.pattern)?.items;
    let (first, behind) = op.pattern.split_once(',').unwrap_or((&op.pattern, ""));
    match items.first() {
        Some(Item::At) => {
            let last = last.filter(|_| b.g.const_value(rest[0].value()).map(integer) == Some(-1));
            let element = match last {
                Some(held) => Batched::Rows(b.apply(Index { pattern: "i".into() }, &[held.buffer, rest[0].value()])?),
                None => {
                    let place = place_in(b, rows, lengths, rest[0])?;
                    indexing::index(&Index { pattern: "i".into() }, b, &[Batched::Rows(rows), place])?[0]
                }
            };
            if behind.is_empty() {
                return Ok(Some(one(element)));
            }
            let ins: Vec<Batched> = std::iter::once(element).chain(rest[1..].iter().copied()).collect();
            indexing::index(&Index { pattern: behind.to_string() }, b, &ins).map(Some)
        }
        Some(Item::Slice { start: true, end: false, step: 1 }) if behind.is_empty() => {
            let Some(skipped) = b.g.const_value(rest[0].value()).map(integer).filter(|n| *n >= 0) else { return Ok(None) };
            let (skipped, zero) = (b.g.int(skipped), b.g.int(0));
            let rows = b.apply(Index { pattern: format!(":,{first}") }, &[rows, skipped])?;
            let left = b.g.sub(lengths, skipped);
            let held = last.filter(|held| held.together);
            let held = held.map(|held| Held { buffer: b.g.emit(Index { pattern: "s:".into() }, &[held.buffer, skipped]), ..held });
            Ok(Some(one(Batched::Ragged { rows, lengths: b.g.maximum(left, zero), last: held })))
        }
        _ => Ok(None),
    }
}

/// The position in each row that an index means: one that no row has, where it lies outside.
fn place_in(b: &mut Batching, rows: Value, lengths: Value, index: Batched) -> Result<Batched> {
    let index = b.g.cast(index.value(), DType::I64);
    let (zero, outside) = (b.g.int(0), b.g.dim(rows, 1));
    let from_end = b.g.add(index, lengths);
    let negative = b.g.lt(index, zero);
    let place = b.g.select(negative, from_end, index);
    let (below, above) = (b.g.lt(place, zero), b.g.ge(place, lengths));
    let bad = b.apply(Op::Elem(ElemOp::Or), &[below, above])?;
    Ok(Batched::Rows(b.g.select(bad, outside, place)))
}

#[cfg(test)]
mod tests;
