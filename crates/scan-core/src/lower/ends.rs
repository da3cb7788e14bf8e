//! What a step reads of the rows that loops in it return.

use crate::ir::op::Join;
use crate::ir::{Graph, Keep, Node, Op, Scan, StateId, Value};
use crate::types::Array;

/// True for an index that begins with the last place of the first axis.
fn takes_last(body: &Graph, node: &Node) -> bool {
    let Op::Index(index) = &node.op else { return false };
    index.pattern.split(',').next() == Some("i") && body.const_value(node.ins[1]).and_then(Array::item_i64) == Some(-1)
}

/// True where of rows nothing is read but the last one, or of them in reverse the first.
fn reads_last(body: &Graph, rows: Value) -> bool {
    let users = |v: Value| body.nodes().iter().filter(move |n| n.ins.contains(&v));
    let first = |n: &Node| {
        let Op::Index(index) = &n.op else { return false };
        let number = body.const_value(*n.ins.get(1).unwrap_or(&n.ins[0])).and_then(Array::item_i64);
        matches!((index.pattern.split(',').next(), number), (Some("i"), Some(0)) | (Some(":e"), Some(1)))
    };
    let last = |n: &Node| {
        let turned = matches!(&n.op, Op::Flip(flip) if flip.axis == 0) && !body.results().contains(&n.outs[0]);
        takes_last(body, n) || turned && users(n.outs[0]).all(first)
    };
    !body.results().contains(&rows) && users(rows).all(last)
}

/// True where of each state of a loop nothing is read but the row that it ends with, which is the initial one where no step runs.
pub(super) fn reads_on(body: &Graph, node: &Node) -> bool {
    node.op.as_scan().is_some_and(|scan| scan.states.ids().all(|id| reads_end(body, node, scan, id)))
}

/// The same of one state.
pub(super) fn reads_end(body: &Graph, node: &Node, scan: &Scan, id: StateId) -> bool {
    let users = |v: Value| body.nodes().iter().filter(move |n| n.ins.contains(&v));
    let ends = |n: &Node, ins: [Value; 2]| matches!(n.op, Op::Join(Join { axis: 0 })) && n.ins[..] == ins && reads_last(body, n.outs[0]);
    let v = node.outs[scan.state_output(id)];
    let begins = scan.init_input(id).map(|at| node.ins[at]);
    let read = users(v).next().is_some() || body.results().contains(&v);
    let fits = |begins: Value| !body.results().contains(&v) && users(v).all(|n| ends(n, [begins, v]));
    !read || scan.states[id].keep == Keep::Last(1) && begins.is_some_and(fits)
}
