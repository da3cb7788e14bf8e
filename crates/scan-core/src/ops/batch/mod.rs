//! Batching of graphs: each node by the rule of its op.

pub mod indexing;
pub mod products;
pub mod shapes;
mod stacked;

use super::args::{integer, one};
use super::index::{Item, Pattern};
use crate::base::{Id, Result};
use crate::ir::op::*;
use crate::ir::{Graph, Node, NodeId, Op, Value};
use crate::scalar::ElemOp;
use crate::types::Sym;
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
    let eager = needed(from, given, wanted, false);
    for (id, node) in from.nodes().enumerate().filter(|(id, _)| live[id.idx()]) {
        let outer = b.g.set_span(node.span);
        b.g.set_span(node.span.or(outer));
        let outs = images.node(b, from, (id, node), &eager);
        b.g.set_span(outer);
        let Some(outs) = outs? else { return Ok(None) };
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
        let crate::ir::Def::Out(id, _) = from.def(v) else { continue };
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
        let ins: Vec<Batched> = node.ins.iter().map(|v| self.of[v]).collect();
        let varies = ins.iter().any(|x| x.varies());
        if varies && matches!(&node.op, Op::Extern(e) if !e.0.pure()) {
            return Ok(None);
        }
        if ins.iter().any(|x| matches!(x, Batched::Ragged { .. })) {
            return ragged(b, &node.op, &ins);
        }
        if let Some(outs) = stacked::stacked(b, &node.op, &ins)? {
            return Ok(Some(outs));
        }
        let is_loop = matches!(node.op, Op::Scan(_));
        let ins: Vec<Batched> = ins.into_iter().map(|x| if is_loop { x } else { b.settled(x) }).collect();
        match &node.op {
            Op::IfElse(_) if ins[0].varies() => self.choice(b, from, (id, node), &ins, eager),
            op => {
                let outs = op.batch(b, &ins)?;
                Ok(Some(outs).filter(|_| !b.apart))
            }
        }
    }

    /// `ifelse` with a condition for each row. Where a branch may fail, only rows that take it compute it.
    fn choice(
        &self,
        b: &mut Batching,
        from: &Graph,
        (id, node): (NodeId, &Node),
        ins: &[Batched],
        eager: &[bool],
    ) -> Result<Option<Outs<Batched>>> {
        let known = self.of.iter().filter(|(v, _)| !matches!(from.def(**v), crate::ir::Def::Out(at, _) if !eager[at.idx()]));
        let known: FxHashMap<Value, Batched> = known.map(|(v, x)| (*v, *x)).collect();
        let nodes_behind = |values: &[Value]| {
            let cone = needed(from, &known, values, true);
            from.nodes().enumerate().filter(move |(at, _)| cone[at.idx()] && *at < id).map(|(_, n)| n)
        };
        if nodes_behind(&node.ins[1..]).all(|n| !n.op.def().fallible(from, &n.ins)) {
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
        b.loop_over(from, &given, &node.outs).map(Some)
    }
}

/// What can be made of rows of different lengths without bringing them to one: an extent, a row's element, what follows the first ones.
fn ragged(b: &mut Batching, op: &Op, ins: &[Batched]) -> Result<Option<Outs<Batched>>> {
    let (Batched::Ragged { rows, lengths }, rest) = (ins[0], &ins[1..]) else { return Ok(None) };
    match op {
        Op::DimOf(op) if op.axis == 0 => Ok(Some(one(Batched::Rows(lengths)))),
        Op::DimOf(op) => Ok(Some(one(Batched::Fixed(b.g.dim(rows, op.axis + 1))))),
        Op::Index(op) if !rest.iter().any(|x| matches!(x, Batched::Ragged { .. })) => part(b, op, (rows, lengths), rest),
        _ => Ok(None),
    }
}

/// The element of each row at an index, or the elements that follow its first ones.
fn part(b: &mut Batching, op: &Index, (rows, lengths): (Value, Value), rest: &[Batched]) -> Result<Option<Outs<Batched>>> {
    let items = Pattern::parse(&op.pattern)?.items;
    let (first, behind) = op.pattern.split_once(',').unwrap_or((&op.pattern, ""));
    match items.first() {
        Some(Item::At) => {
            let place = place_in(b, rows, lengths, rest[0])?;
            let element = indexing::index(&Index { pattern: "i".into() }, b, &[Batched::Rows(rows), place])?[0];
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
            Ok(Some(one(Batched::Ragged { rows, lengths: b.g.maximum(left, zero) })))
        }
        _ => Ok(None),
    }
}

/// The position in each row that an index means: one that no row has, where it lies outside.
fn place_in(b: &mut Batching, rows: Value, lengths: Value, index: Batched) -> Result<Batched> {
    let index = b.g.cast(index.value(), crate::types::DType::I64);
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
