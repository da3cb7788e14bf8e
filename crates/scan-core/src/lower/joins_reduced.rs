//! Extremes of an array that one element was joined to, as the number of rows that run a step is among zero and those of all rows.
//!
//! ```text
//! before  y = join(c, x);   z = max(y)      c has one element, x has some: an array is made
//! after   w = max(x);       z = max(w, c)
//! ```
//!
//! Of integers and truth values, of which no order gives another extreme. While extents are not known, x may be empty, and has none.

use super::Lowered;
use super::extents::known_shape;
use super::rewritten::rewritten;
use crate::ir::op::{Expand, Join, Reduce, ReduceKind, Squeeze};
use crate::ir::{Graph, Node, Op, Value};
use crate::scalar::ElemOp;

/// The step with such extremes taken apart; `None` where it has none.
///
/// # Errors
/// Internal ones.
pub(super) fn with_joins_reduced(body: &Graph) -> Lowered<Option<Graph>> {
    if !body.nodes().iter().any(|node| found(body, node).is_some()) {
        return Ok(None);
    }
    rewritten(body, |out, image, _, node| {
        let Some((reduce, op, one, others)) = found(body, node) else { return Ok(None) };
        let squeezed = out.apply(Squeeze { axes: reduce.axes.clone() }, &[image[&one]])?[0];
        let one = if reduce.keepdims { out.apply(Expand { axes: reduce.axes.clone() }, &[squeezed])?[0] } else { squeezed };
        let others = out.apply(reduce.clone(), &[image[&others]])?[0];
        Ok(Some(out.apply(Op::Elem(op), &[others, one])?[0]))
    })
}

/// The reduction, the function of two elements that it is of, the part of one element and the other one.
fn found<'a>(body: &Graph, node: &'a Node) -> Option<(&'a Reduce, ElemOp, Value, Value)> {
    let Op::Reduce(reduce) = &node.op else { return None };
    let joined = body.node_of(node.ins[0])?;
    let (Op::Join(Join { axis }), &[a, b]) = (&joined.op, &joined.ins[..]) else { return None };
    let op = match reduce.kind {
        ReduceKind::Max => ElemOp::Maximum,
        ReduceKind::Min => ElemOp::Minimum,
        _ => return None,
    };
    if body.ty(node.ins[0]).dtype.is_float() || reduce.axes != [*axis] {
        return None;
    }
    let extent = |v: Value| known_shape(body, v).ok().map(|shape| shape[*axis]);
    match (extent(a)?, extent(b)?) {
        (1, n) if n > 1 => Some((reduce, op, a, b)),
        (n, 1) if n > 1 => Some((reduce, op, b, a)),
        _ => None,
    }
}
