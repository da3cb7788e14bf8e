//! The last row of arrays joined, which nothing else reads: what a loop handed on, or where it began, had it no step.

use super::shortcut::{Found, Quick};
use crate::base::Result;
use crate::ir::op::{Index, Join};
use crate::ir::{Graph, Node, Op, Value};
use crate::types::Array;

/// `join(a, b, …)[-1]` without the join.
pub struct LastRow;

impl LastRow {
    /// Where a node does that, given the arrays. `once` tells whether a value is used by one node alone.
    ///
    /// # Errors
    /// An internal error where the graph is not consistent.
    pub fn of(graph: &Graph, node: &Node, once: impl Fn(Value) -> bool) -> Result<Option<Found>> {
        let Op::Index(Index { pattern }) = &node.op else { return Ok(None) };
        let [all, at] = node.ins[..] else { return Ok(None) };
        let joined = graph.node_of(all).filter(|n| matches!(n.op, Op::Join(Join { axis: 0 })) && once(all));
        let last = pattern == "i" && graph.const_value(at).and_then(Array::item_i64) == Some(-1);
        let Some(joined) = joined.filter(|n| last && n.ins.iter().all(|&v| graph.ty(v).dtype == graph.ty(all).dtype)) else {
            return Ok(None);
        };
        let ins = joined.ins.to_vec();
        Found::new(graph, node, ins, vec![], LastRow)
    }
}

impl Quick for LastRow {
    const NAME: &'static str = "index";

    fn quick(&self, ins: &[Array]) -> Option<Array> {
        let alike = ins.iter().all(|a| a.rank() > 0 && a.rank() == ins[0].rank() && a.shape()[1..] == ins[0].shape()[1..]);
        let last = ins.iter().rev().find(|a| alike && a.shape()[0] > 0)?;
        Some(last.row(last.shape()[0] - 1))
    }
}
