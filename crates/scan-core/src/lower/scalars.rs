//! How many elements a step has that a kernel keeps one by one.

use super::by_number::keeps_rows;
use super::extents::known_shape;
use super::kinds::{Kind, Kinds};
use super::refusal::Lowered;
use super::tables::Tables;
use crate::ir::{Graph, Op, Value};
use crate::types::shape::count;

/// So many scalars at most are kept one by one.
pub(super) const SCALARS: usize = 1500;

/// Elements that a step computes, or is given, but for those of tables. What only moves elements costs nothing where they are scalars.
pub(super) fn scalars(body: &Graph, kinds: &Kinds, tables: &Tables) -> Lowered<usize> {
    let size = |v: Value| match kinds.of(v) == Kind::Step && !tables.holds(v) {
        true => known_shape(body, v).map(|s| count(&s)),
        false => Ok(0),
    };
    let params: usize = body.params().iter().map(|&v| size(v)).sum::<Lowered<_>>()?;
    let made = kinds.nodes(body).map(|node| match &node.op {
        _ if keeps_rows(node) => Ok(node.outs.iter().filter(|&&v| body.ty(v).rank() == 0).count()),
        Op::IndexWrite(_) | Op::GatherWrite(_) if kinds.of(node.outs[0]) == Kind::Step => known_shape(body, node.ins[1]).map(|s| count(&s)),
        op if op.moved(node.ins.len()).is_some() => Ok(0),
        _ => node.outs.iter().map(|&v| size(v)).sum(),
    });
    Ok(params + made.sum::<Lowered<usize>>()?)
}
