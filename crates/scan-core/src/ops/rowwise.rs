//! Ops of which a row of the result depends on one row of some inputs: rows are elements of the first axis.

use crate::ir::op::*;
use crate::ir::{Graph, Node, Value};
use crate::ops::certain::integer;
use crate::ops::gather::index_axis;
use crate::ops::index::{Item, Pattern};
use crate::scalar::ElemOp;
use crate::types::{Dim, Type};
use smallvec::{SmallVec, smallvec};

/// For each input, whether row r of the result depends on nothing of it but row r; of the other inputs it may depend on everything. `None`
/// where nothing of the kind is known.
pub fn reads_rows(graph: &Graph, node: &Node) -> Option<SmallVec<[bool; 4]>> {
    let ty = |k: usize| graph.ty(node.ins[k]);
    let rank = graph.ty(*node.outs.first()?).rank();
    if rank == 0 || node.ins.is_empty() {
        return None;
    }
    let first = |n: usize| -> SmallVec<[bool; 4]> { (0..n).map(|k| k == 0).collect() };
    Some(match &node.op {
        Op::Elem(_) | Op::Cast(_) | Op::StopGradient(_) | Op::GradClip(_) => {
            (0..node.ins.len()).map(|k| ty(k).rank() == rank && !ty(k).dims[0].is_one()).collect()
        }
        Op::MatMul(_) => factors(ty(0), ty(1))?,
        Op::Index(op) if op.pattern == ":" || op.pattern.starts_with(":,") => first(node.ins.len()),
        Op::Reduce(Reduce { axes, .. }) | Op::LogSumExp(LogSumExp { axes, .. }) | Op::Expand(Expand { axes }) if !axes.contains(&0) => {
            first(1)
        }
        Op::ExtremeMask(op) if !op.axes.contains(&0) => first(1),
        Op::Softmax(Softmax { axis }) | Op::LogSoftmax(LogSoftmax { axis }) | Op::Flip(Flip { axis }) if *axis > 0 => first(1),
        Op::Transpose(op) if op.perm.first() == Some(&0) => first(1),
        _ => return None,
    })
}

/// As [`reads_rows`], of more ops: of those, too, whose other inputs say where.
pub fn rows_apart(graph: &Graph, node: &Node) -> Option<SmallVec<[bool; 4]>> {
    let (out, ins) = (*node.outs.first()?, &node.ins[..]);
    let rank = |v: Value| graph.ty(v).rank();
    let as_many = || graph.ty(ins[0]).dims.first() == graph.ty(out).dims.first();
    let with = |first: &[bool], cut: &dyn Fn(Value) -> bool| {
        Some(first.iter().copied().chain(ins[first.len()..].iter().map(|&v| cut(v))).collect::<SmallVec<[bool; 4]>>())
    };
    match &node.op {
        Op::Gather(Gather { axes }) if axes[0] == 0 => {
            let deep = ins[1..].iter().map(|&v| rank(v)).max()?;
            let own = numbered(graph, axes, 0, (ins[0], &ins[1..])).is_some();
            with(&[own], &|v| rank(v) == deep)
        }
        Op::Gather(Gather { axes }) if index_axis(axes) > 0 => with(&[true], &|_| false),
        Op::GatherWrite(GatherWrite { axes, .. }) if axes[0] == 0 => {
            let deep = numbered(graph, axes, 0, (ins[0], &ins[2..]))?;
            let selected = rank(out) - axes.len() + deep;
            with(&[true, rank(ins[1]) == selected], &|v| rank(v) == deep)
        }
        Op::IndexWrite(IndexWrite { pattern, .. }) => {
            let pattern = Pattern::parse(pattern).ok()?;
            let picked = pattern.items.iter().filter(|&item| *item == Item::At).count();
            let whole = pattern.items.first().is_none_or(|item| *item == Item::ALL);
            if whole { with(&[true, rank(ins[1]) + picked == rank(out)], &|_| false) } else { None }
        }
        Op::Join(join) if join.axis > 0 => with(&[], &|_| true),
        Op::Reshape(_) if as_many() => with(&[true], &|_| false),
        Op::ReshapeLike(_) if as_many() => with(&[true], &|_| true),
        Op::BroadcastLike(_) => with(&[rank(ins[0]) == rank(out)], &|_| true),
        _ => reads_rows(graph, node),
    }
}

/// Which sides of a product have a row, or a matrix, per row of the result.
fn factors(a: &Type, b: &Type) -> Option<SmallVec<[bool; 4]>> {
    let many = |ty: &Type, rank: usize| ty.rank() == rank && !ty.dims[0].is_one();
    match a.rank().max(b.rank()) {
        0 | 1 => None,
        2 => (many(a, 2)).then(|| smallvec![true, false]),
        rank => Some(smallvec![many(a, rank), many(b, rank)]),
    }
}

/// The extent of an array of the numbers 0, 1, 2, …
pub fn counts(graph: &Graph, v: Value) -> Option<Dim> {
    let (Op::Arange(_), [first, _, step]) = graph.node_of(v).map(|node| (&node.op, &node.ins[..]))? else { return None };
    (integer(graph, *first) == Some(0) && integer(graph, *step) == Some(1)).then(|| graph.ty(v).dims[0].clone())
}

/// Of index arrays of some axes: how many axes they broadcast to, where that of one axis has the numbers 0, 1, 2, … along the first of them, as
/// many as there are, of the array, rows along that axis.
pub fn numbered(graph: &Graph, axes: &[usize], axis: usize, (x, idxs): (Value, &[Value])) -> Option<usize> {
    let numbers = idxs[axes.iter().position(|&other| other == axis)?];
    let rank = idxs.iter().map(|&v| graph.ty(v).rank()).max()?;
    let counted = match graph.node_of(numbers).map(|node| (&node.op, &node.ins[..]))? {
        (Op::Expand(Expand { axes }), &[numbers]) if axes.iter().copied().eq(1..rank) => counts(graph, numbers),
        _ if rank == 1 => counts(graph, numbers),
        _ => None,
    };
    (counted? == graph.ty(x).dims[axis]).then_some(rank)
}

/// True for the number of the first row for which a condition holds, or of the last one: that of a row which is there, wherever there is one.
pub fn is_first(g: &Graph, v: Value, (cond, numbers): (Value, Value), rows: &Dim) -> bool {
    let node = |v: Value| g.node_of(v).map(|node| (&node.op, &node.ins[..]));
    let Some((Op::Reduce(Reduce { kind: ReduceKind::Min, .. }), &[joined])) = node(v) else { return false };
    let Some((Op::Join(_), &[running, behind])) = node(joined) else { return false };
    let Some((Op::Expand(_), &[last])) = node(behind) else { return false };
    let Some((Op::Elem(ElemOp::Where), ins)) = node(running) else { return false };
    *ins == [cond, numbers, last] && g.arg(last).dim.as_ref() == Some(&rows.add(&Dim::from_parts([], -1)))
}
