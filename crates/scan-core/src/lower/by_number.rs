//! Arrays of which a step reads nothing but elements, or rows, by their numbers: they may stay in memory.

use super::dynamic_slice;
use super::rooms::{Roomy, roomy};
use crate::base::Id;
use crate::ir::{Graph, Keep, Node, Op, Scan, Value};
use std::sync::Arc;

/// A loop in a step, and what is known of its number of steps where an integer of the step tells that.
pub(super) fn loop_of(op: &Op) -> Option<(&Arc<Scan>, Option<&Roomy>)> {
    match (op, roomy(op)) {
        (Op::Scan(scan), _) => Some((scan, None)),
        (_, Some(roomy)) => Some((&roomy.scan, Some(roomy))),
        _ => None,
    }
}

/// True for a node that reads of a value nothing but elements by numbers.
pub(super) fn picks(node: &Node, v: Value) -> bool {
    dynamic_slice::reads_by_index(&node.op) && !node.ins[1..].contains(&v) || reads_by_number(node, v)
}

/// True for a node that needs nothing of a value but its extents.
pub(super) fn needs_extents_alone(node: &Node, v: Value) -> bool {
    node.ins.iter().enumerate().all(|(k, &x)| x != v || node.op.properties().shape_only.contains(&k))
}

/// True for a loop that reads of an array nothing but elements, or rows, by numbers.
fn reads_by_number(node: &Node, v: Value) -> bool {
    let Some((scan, _)) = loop_of(&node.op) else { return false };
    let captured = |k: usize| scan.captured.ids().find(|&id| scan.captured_input(id) == k);
    let reads = |k: usize| match captured(k) {
        Some(id) => by_number(&scan.body, scan.body.params()[scan.captured_param(id)]),
        None => scan.seqs.ids().any(|id| scan.seq_input(id) == k),
    };
    node.ins.iter().enumerate().all(|(k, &x)| x != v || reads(k))
}

/// True for a value of which a graph reads nothing but elements by numbers, and its extents.
pub(super) fn by_number(graph: &Graph, v: Value) -> bool {
    let mut users = graph.nodes().iter().filter(|n| n.ins.contains(&v));
    !graph.results().contains(&v) && users.all(|node| picks(node, v) || needs_extents_alone(node, v))
}

/// True for a loop that keeps the rows of all steps.
pub(super) fn keeps_rows(node: &Node) -> bool {
    loop_of(&node.op).is_some_and(|(scan, _)| scan.states.iter().any(|s| s.keep == Keep::All))
}

/// True where of the rows that a loop keeps nothing is read but elements, by their numbers.
pub(super) fn by_rows(body: &Graph, node: &Node, scan: &Scan) -> bool {
    scan.states.ids().all(|id| scan.states[id].keep != Keep::All || by_number(body, node.outs[id.idx()]))
}
