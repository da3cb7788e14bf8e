//! Reductions over axes that do not lie beside each other, as reductions over axes that do.

use super::extents::known_shape;
use crate::base::Result;
use crate::ir::op::{Expand, Reduce};
use crate::ir::{Graph, Node, Op, Value};
use crate::types::shape::count;
use rustc_hash::FxHashMap;

/// The result of a reduction over axes with others between them: that over the last axes of the array with its axes in another order. `None`
/// for whatever else.
pub(super) fn together(out: &mut Graph, body: &Graph, node: &Node, image: &FxHashMap<Value, Value>) -> Result<Option<Value>> {
    let Op::Reduce(op) = &node.op else { return Ok(None) };
    let Ok(shape) = known_shape(body, node.ins[0]) else { return Ok(None) };
    let reduced = |axis: &usize| op.axes.contains(axis);
    let wide: Vec<bool> = (0..shape.len()).filter(|&axis| shape[axis] > 1).map(|axis| reduced(&axis)).collect();
    let groups = wide.chunk_by(|a, b| a == b).filter(|group| group[0]).count();
    if groups < 2 || count(&shape) == 0 {
        return Ok(None);
    }
    let (last, first): (Vec<usize>, Vec<usize>) = (0..shape.len()).partition(reduced);
    let axes = (first.len()..shape.len()).collect();
    let turned = out.transpose(image[&node.ins[0]], &[first, last.clone()].concat());
    let value = out.apply(Reduce { axes, keepdims: false, ..op.clone() }, &[turned])?[0];
    Ok(Some(if op.keepdims { out.apply(Expand { axes: last }, &[value])?[0] } else { value }))
}
