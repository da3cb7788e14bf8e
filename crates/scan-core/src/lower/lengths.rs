//! Lengths that depend on integers of the step, computed from these: so that nothing has to be made for its length alone.

use crate::base::Result;
use crate::ir::op::DimOf;
use crate::ir::{Graph, Node, Op, Value};
use crate::ops::index::{Item, Pattern};
use crate::scalar::ElemOp;
use crate::types::{Array, DType};

/// The first extent of an `arange` or of a slice, where that is asked for and not known; `ins` are the node's inputs in the graph.
pub(super) fn length(graph: &mut Graph, node: &Node, ins: &[Value]) -> Result<Option<Value>> {
    if node.op != Op::DimOf(DimOf { axis: 0 }) || graph.ty(ins[0]).dims[0].value().is_some() {
        return Ok(None);
    }
    let Some(made) = graph.node_of(ins[0]) else { return Ok(None) };
    let (op, from) = (made.op.clone(), made.ins.to_vec());
    match op {
        Op::Arange(_) => counted(graph, &from),
        Op::Index(index) => sliced(graph, &index.pattern, &from),
        _ => Ok(None),
    }
}

/// `max(stop − start, 0)` numbers from a small start on.
fn counted(graph: &mut Graph, ins: &[Value]) -> Result<Option<Value>> {
    let integer = |v: Value| graph.const_value(v).and_then(Array::item_i64);
    let Some(start) = integer(ins[0]).filter(|n| n.unsigned_abs() < 1 << 32) else { return Ok(None) };
    if integer(ins[2]) != Some(1) || graph.ty(ins[1]).dtype != DType::I64 {
        return Ok(None);
    }
    let (zero, first) = (graph.int(0), graph.int(start));
    // Differences from a number near the least integer would wrap.
    let least = graph.int(-(1 << 40));
    let stop = graph.apply(Op::Elem(ElemOp::Maximum), &[ins[1], least])?[0];
    let n = graph.apply(Op::Elem(ElemOp::Sub), &[stop, first])?[0];
    Ok(Some(graph.apply(Op::Elem(ElemOp::Maximum), &[n, zero])?[0]))
}

/// Elements of a slice along the first of an array's axes, whose extent is known.
fn sliced(graph: &mut Graph, pattern: &str, ins: &[Value]) -> Result<Option<Value>> {
    let Some(all) = graph.ty(ins[0]).dims[0].value() else { return Ok(None) };
    let Ok(Pattern { items }) = Pattern::parse(pattern) else { return Ok(None) };
    let Some(&Item::Slice { start, end, step: 1 }) = items.first() else { return Ok(None) };
    let bounds = &ins[1..1 + usize::from(start) + usize::from(end)];
    if bounds.iter().any(|&v| graph.ty(v).dtype != DType::I64) {
        return Ok(None);
    }
    let first = if start { within(graph, bounds[0], all)? } else { graph.int(0) };
    let last = if end { within(graph, bounds[bounds.len() - 1], all)? } else { graph.int(all as i64) };
    let n = graph.apply(Op::Elem(ElemOp::Sub), &[last, first])?[0];
    let zero = graph.int(0);
    Ok(Some(graph.apply(Op::Elem(ElemOp::Maximum), &[n, zero])?[0]))
}

/// A bound of a slice among so many elements, counted from the end where it is negative.
fn within(graph: &mut Graph, bound: Value, all: usize) -> Result<Value> {
    let (n, zero) = (graph.int(all as i64), graph.int(0));
    let negative = graph.apply(Op::Elem(ElemOp::Lt), &[bound, zero])?[0];
    let (behind, above) = (graph.apply(Op::Elem(ElemOp::Add), &[bound, n])?[0], graph.apply(Op::Elem(ElemOp::Minimum), &[bound, n])?[0]);
    let behind = graph.apply(Op::Elem(ElemOp::Maximum), &[behind, zero])?[0];
    Ok(graph.apply(Op::Elem(ElemOp::Where), &[negative, behind, above])?[0])
}
