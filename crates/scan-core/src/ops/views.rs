//! Ops that show an array under another shape: which axis is which.

use super::certain::integer;
use super::index::{Item, Pattern};
use crate::ir::op::Op;
use crate::ir::{Graph, Value};
use crate::types::Dim;
use smallvec::SmallVec;

/// For each axis of a value, the axis of another that it is; `None` where elements repeat, or there is one.
pub type Axes = SmallVec<[Option<usize>; 4]>;

/// What a value is a view of, and what its axes are there.
pub fn view(g: &Graph, v: Value) -> Option<(Value, Axes)> {
    let node = g.node_of(v)?;
    let (op, ins) = (&node.op, &node.ins[..]);
    let x = *ins.first()?;
    let (rank, own) = (g.ty(v).rank(), g.ty(x).rank());
    let kept = |gone: &[usize]| (0..own).filter(|k| !gone.contains(k)).map(Some).collect();
    let axes: Axes = match op {
        Op::Expand(op) => {
            let mut next = 0..own;
            (0..rank).map(|k| if op.axes.contains(&k) { None } else { next.next() }).collect()
        }
        Op::Squeeze(op) => kept(&op.axes),
        Op::Transpose(op) => op.perm.iter().map(|&k| Some(k)).collect(),
        Op::StopGradient(_) => (0..rank).map(Some).collect(),
        Op::BroadcastTo(_) | Op::BroadcastLike(_) => (0..rank).map(|k| (k + own).checked_sub(rank)).collect(),
        Op::Index(op) => kept(&only_elements(g, &op.pattern, ins)?),
        Op::Reshape(_) | Op::ReshapeLike(_) => reshaped(g, x, v)?,
        _ => return None,
    };
    Some((x, axes))
}

/// Axes of one element of which an index takes that; `None` where it does something else.
fn only_elements(g: &Graph, pattern: &str, ins: &[Value]) -> Option<Vec<usize>> {
    let mut numbers = ins[1..].iter();
    let mut gone = vec![];
    for (axis, item) in Pattern::parse(pattern).ok()?.items.into_iter().enumerate() {
        match item {
            Item::ALL => {}
            Item::At if g.ty(ins[0]).dims[axis].is_one() && matches!(integer(g, *numbers.next()?), Some(0 | -1)) => gone.push(axis),
            _ => return None,
        }
    }
    Some(gone)
}

/// A reshape that only adds or drops axes of extent 1.
fn reshaped(g: &Graph, x: Value, v: Value) -> Option<Axes> {
    let long = |v: Value| g.ty(v).dims.iter().enumerate().filter(|(_, d)| !d.is_one()).collect::<Vec<(usize, &Dim)>>();
    let (from, to) = (long(x), long(v));
    if from.len() != to.len() || from.iter().zip(&to).any(|(a, b)| a.1 != b.1) {
        return None;
    }
    let axis = |k: usize| to.iter().position(|t| t.0 == k).map(|at| from[at].0);
    Some((0..g.ty(v).rank()).map(axis).collect())
}
