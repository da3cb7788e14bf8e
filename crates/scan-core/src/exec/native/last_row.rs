//! The last row of arrays joined, which nothing else reads: what a loop handed on, or where it began, had it no step.

use super::padded::law;
use crate::base::Result;
use crate::eval::Walk;
use crate::ir::op::{Index, Join, NativeOp, Outs};
use crate::ir::{EvalCx, Graph, Node, Op, Value};
use crate::types::{Array, Type};
use std::sync::Arc;

/// `join(a, b, …)[-1]` without the join.
pub struct LastRow {
    /// The law: parameters are the arrays.
    walk: Walk<Arc<Graph>>,
}

impl LastRow {
    /// Where a node does that: the op, its inputs. `once` tells whether a value is used by one node alone.
    ///
    /// # Errors
    /// An internal error where the graph is not consistent.
    pub fn of(graph: &Graph, node: &Node, once: impl Fn(Value) -> bool) -> Result<Option<(LastRow, Vec<Value>)>> {
        let Op::Index(Index { pattern }) = &node.op else { return Ok(None) };
        let [all, at] = node.ins[..] else { return Ok(None) };
        let joined = graph.node_of(all).filter(|n| matches!(n.op, Op::Join(Join { axis: 0 })) && once(all));
        let last = pattern == "i" && graph.const_value(at).and_then(Array::item_i64) == Some(-1);
        let Some(joined) = joined.filter(|n| last && n.ins.iter().all(|&v| graph.ty(v).dtype == graph.ty(all).dtype)) else {
            return Ok(None);
        };
        let ins = joined.ins.to_vec();
        Ok(law(graph, &ins, &node.outs)?.map(|walk| (LastRow { walk }, ins)))
    }
}

impl NativeOp for LastRow {
    fn name(&self) -> &str {
        "index"
    }
    fn types(&self) -> Outs<Type> {
        let law = self.walk.graph();
        law.results().iter().map(|&v| law.ty(v).clone()).collect()
    }
    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let alike = ins.iter().all(|a| a.rank() > 0 && a.rank() == ins[0].rank() && a.shape()[1..] == ins[0].shape()[1..]);
        match ins.iter().rev().find(|a| alike && a.shape()[0] > 0) {
            Some(a) => Ok(smallvec::smallvec![a.row(a.shape()[0] - 1)]),
            None => cx.as_one(|cx| self.walk.run(cx, &mut self.walk.slots(), &mut ins.to_vec())).map(Outs::from_vec),
        }
    }
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}
