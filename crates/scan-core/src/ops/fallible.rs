//! Which nodes of a graph can fail.

use super::index::{Item, Pattern};
use crate::ir::{Graph, Node, Op, Value};
use crate::types::{Dim, Type};

/// True where no values of the node's inputs let its evaluation fail.
pub fn infallible(g: &Graph, node: &Node) -> bool {
    let types: Vec<&Type> = node.ins.iter().map(|&v| g.ty(v)).collect();
    match &node.op {
        Op::Elem(_) => broadcast(&types),
        Op::BroadcastLike(_) => fits(types[0], types[1]),
        Op::SumTo(_) => fits(types[1], types[0]),
        Op::MatMul(_) => product(types[0], types[1]),
        Op::Index(op) => Pattern::parse(&op.pattern).is_ok_and(|p| inside(g, &p, types[0], &node.ins[1..])),
        Op::Assert(_) => node.ins.len() == 1,
        Op::Join(op) => {
            let same = |(axis, d): (usize, &Dim)| axis == op.axis || types.iter().all(|t| t.dims[axis] == *d);
            types[0].dims.iter().enumerate().all(same)
        }
        Op::FoldIn(_) => types[0].dims[0].value() == Some(2),
        Op::Scan(_) | Op::Extern(_) => false,
        op => !op.def().can_fail(),
    }
}

/// Axis by axis from the last, all extents that are not 1 are the same.
fn broadcast(types: &[&Type]) -> bool {
    let rank = types.iter().map(|t| t.rank()).max().unwrap_or(0);
    let axis = |back: usize| types.iter().filter_map(move |t| t.rank().checked_sub(back).map(|at| &t.dims[at]));
    (1..=rank).all(|back| {
        let mut wide = axis(back).filter(|d| !d.is_one());
        let first = wide.next();
        wide.all(|d| Some(d) == first)
    })
}

/// The first broadcasts to the second.
fn fits(x: &Type, y: &Type) -> bool {
    let (x, y) = (x.dims.iter().rev(), y.dims.iter().rev());
    x.len() <= y.len() && x.zip(y).all(|(a, b)| a.is_one() || a == b)
}

fn product(a: &Type, b: &Type) -> bool {
    let inner = |ty: &Type, back: usize| ty.rank().checked_sub(back).map(|at| ty.dims[at].clone());
    let (m, n) = (inner(a, 1), if b.rank() == 1 { inner(b, 1) } else { inner(b, 2) });
    let (a, b) = (&a.dims[..a.rank().saturating_sub(2)], &b.dims[..b.rank().saturating_sub(2)]);
    m.is_some() && m == n && a.iter().rev().zip(b.iter().rev()).all(|(x, y)| x == y || x.is_one() || y.is_one())
}

/// Every integer of a basic index is a constant inside its axis.
fn inside(g: &Graph, pattern: &Pattern, x: &Type, idxs: &[Value]) -> bool {
    let mut idxs = idxs.iter();
    pattern.items.iter().zip(&x.dims).all(|(item, extent)| {
        let used: Vec<Option<i64>> = idxs.by_ref().take(item.inputs()).map(|&v| integer(g, v)).collect();
        match (item, used.first().copied().flatten()) {
            (Item::At, Some(i)) if i >= 0 => not_negative(&extent.add(&Dim::from_parts([], -1 - i))),
            (Item::At, Some(i)) => not_negative(&extent.add(&Dim::from_parts([], i))),
            (Item::At, None) => false,
            (Item::Slice { .. }, _) => true,
        }
    })
}

/// The value of an integer constant.
pub fn integer(g: &Graph, v: Value) -> Option<i64> {
    g.const_value(v).filter(|a| a.dtype().is_int() && a.rank() == 0).and_then(|a| a.item_i64())
}

/// True where the form is at least 0 for all extents.
pub fn not_negative(dim: &Dim) -> bool {
    let (terms, constant) = dim.parts();
    constant >= 0 && terms.iter().all(|t| t.1 >= 0)
}

/// True where it is the extents of a node's inputs that decide whether its evaluation fails, not their elements; `varies` tells which
/// inputs have elements that may decide.
pub fn by_extents(g: &Graph, node: &Node, varies: &[bool]) -> bool {
    let same = |from: usize| !varies.iter().skip(from).any(|v| *v);
    match &node.op {
        Op::Scan(_) | Op::Extern(_) | Op::Native(_) => false,
        Op::Elem(_) | Op::MatMul(_) | Op::BroadcastLike(_) | Op::SumTo(_) | Op::ReshapeLike(_) | Op::Squeeze(_) | Op::Join(_) => true,
        Op::Recurrence(_) | Op::Reduce(_) | Op::ArgReduce(_) | Op::OuterSum(_) | Op::SLogDet(_) | Op::Det(_) | Op::Cofactor(_) => true,
        Op::CofactorSlope(_) | Op::LogMatMul(_) | Op::LogMatMulSums(_) | Op::LogMatMulQuotients(_) => true,
        Op::LogMatMulLeft(_) | Op::LogMatMulRight(_) | Op::Diag(_) => true,
        Op::Index(_) | Op::Gather(_) | Op::Reshape(_) | Op::BroadcastTo(_) => same(1),
        Op::IndexWrite(_) | Op::GatherWrite(_) => same(2),
        Op::FoldIn(_) | Op::RandomUniform(_) | Op::RandomNormal(_) | Op::RandomPermutation(_) => same(1),
        _ => same(0) || infallible(g, node),
    }
}
