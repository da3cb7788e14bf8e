//! Which values of a step have the same shape at every step: those may become rows of an output.

use crate::base::Id;
use crate::ir::{Graph, Node, Op, Value};
use crate::ops::properties::Extents;

/// What can change from step to step.
#[derive(Clone, Copy, Default)]
struct Change {
    /// Elements.
    value: bool,
    /// Extents.
    shape: bool,
}

/// True per value of a step whose extents certainly are the same at every step; `varying` are rows and the step's number.
pub fn steady(body: &Graph, varying: impl IntoIterator<Item = Value>) -> Vec<bool> {
    let mut changes = vec![Change::default(); body.n_values()];
    varying.into_iter().for_each(|p| changes[p.idx()].value = true);
    for node in body.nodes().iter() {
        let value = |v: &Value| changes[v.idx()].value;
        let shape = node.ins.iter().any(|v| changes[v.idx()].shape);
        let change = match &node.op {
            Op::DimOf(_) => Change { value: shape, shape: false },
            _ => Change { value: shape || node.ins.iter().any(value), shape: shape || by_values(body, node, &value) },
        };
        node.outs.iter().for_each(|v| changes[v.idx()] = change);
    }
    changes.iter().map(|c| !c.shape).collect()
}

/// True where extents of a node's outputs depend on elements of inputs that change.
fn by_values(body: &Graph, node: &Node, changes: &dyn Fn(&Value) -> bool) -> bool {
    let any = |ins: &[Value]| ins.iter().any(changes);
    match node.op.extents() {
        Extents::Shapes => false,
        Extents::From(first) => any(&node.ins[first..]),
        Extents::Choice => changes(&node.ins[0]) && body.ty(node.ins[1]) != body.ty(node.ins[2]),
        Extents::First => changes(&node.ins[0]),
        Extents::Unknown => true,
    }
}
