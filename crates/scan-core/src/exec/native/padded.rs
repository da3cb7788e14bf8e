//! Rows added into zeros: what the slope of `x[k:]` is. One pass instead of three over the memory.

use crate::base::Result;
use crate::dispatch;
use crate::eval::Walk;
use crate::ir::op::{BroadcastLike, Flip, IndexWrite, NativeOp, Outs, Write};
use crate::ir::{EvalCx, Graph, Node, Op, Value};
use crate::ops::support::Number;
use crate::types::shape::count;
use crate::types::{Array, Type};
use std::sync::Arc;

/// `0 + y` in the rows from `k` on of zeros that are as large as another array, or the same of y flipped.
pub struct Padded {
    /// The law: parameters are the array that gives the extents, and y before it is flipped.
    walk: Walk<Arc<Graph>>,
    k: usize,
    /// The rows of y come from the last to the first, as those of a gradient.
    flipped: bool,
}

impl Padded {
    /// Where a node does that: the op, its inputs. `once` tells whether a value is used by one node alone.
    ///
    /// # Errors
    /// An internal error where the graph is not consistent.
    pub fn of(graph: &Graph, node: &Node, once: impl Fn(Value) -> bool) -> Result<Option<(Padded, Vec<Value>)>> {
        let Op::IndexWrite(IndexWrite { mode: Write::Inc, pattern }) = &node.op else { return Ok(None) };
        let [zeros, y, start] = node.ins[..] else { return Ok(None) };
        let made = graph.node_of(zeros).filter(|n| pattern == "s:" && matches!(n.op, Op::BroadcastLike(BroadcastLike {})));
        let k = graph.const_value(start).and_then(Array::item_i64).and_then(|k| usize::try_from(k).ok());
        let (Some(made), Some(k)) = (made, k) else { return Ok(None) };
        if !of_zero(graph, made) || !once(zeros) || graph.ty(y).dtype != graph.ty(zeros).dtype || graph.ty(zeros).rank() == 0 {
            return Ok(None);
        }
        let turned = graph.node_of(y).filter(|n| matches!(n.op, Op::Flip(Flip { axis: 0 })) && once(y));
        let ins = vec![made.ins[1], turned.map_or(y, |n| n.ins[0])];
        Ok(law(graph, &ins, &node.outs)?.map(|walk| (Padded { walk, k, flipped: turned.is_some() }, ins)))
    }

    /// Where y has all the rows from k on.
    fn quick(&self, like: &[usize], y: &Array) -> Option<Array> {
        let (rows, rest) = like.split_first()?;
        if y.rank() != like.len() || y.shape()[1..] != *rest || y.shape()[0] + self.k != *rows {
            return None;
        }
        let (width, lead) = (count(rest), self.k * count(rest));
        Some(dispatch!(y.dtype(), T => {
            let mut out = Array::dirty(y.dtype(), like);
            let (zeros, rows) = out.as_mut_slice::<T>().split_at_mut(lead);
            zeros.fill(T::ZERO);
            let add = |to: &mut [T], from: &[T]| to.iter_mut().zip(from).for_each(|(to, &x)| *to = T::ZERO.plus(x));
            match self.flipped && width > 0 {
                true => rows.chunks_exact_mut(width).zip(y.as_slice::<T>().chunks_exact(width).rev()).for_each(|(to, from)| add(to, from)),
                false => add(rows, y.as_slice()),
            }
            out
        }))
    }
}

/// True where a node repeats a zero, +0.
pub fn of_zero(graph: &Graph, node: &Node) -> bool {
    graph.const_value(node.ins[0]).is_some_and(|a| a.len() == 1 && a.bits()[0] == 0)
}

/// What the law computes: results of a graph from some of its values, where these differ.
///
/// # Errors
/// An internal error where the graph is not consistent.
pub fn law(graph: &Graph, ins: &[Value], outs: &[Value]) -> Result<Option<Walk<Arc<Graph>>>> {
    let mut law = Graph::new();
    let mut image = rustc_hash::FxHashMap::default();
    for &v in ins {
        image.entry(v).or_insert_with(|| law.param(graph.ty(v).clone(), None));
    }
    let results = law.inline(graph, &image, outs)?;
    law.set_results(results);
    Ok((law.params().len() == ins.len()).then(|| Walk::new(Arc::new(law))))
}

impl NativeOp for Padded {
    fn name(&self) -> &str {
        "index_write"
    }
    fn types(&self) -> Outs<Type> {
        let law = self.walk.graph();
        law.results().iter().map(|&v| law.ty(v).clone()).collect()
    }
    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        if let Some(out) = self.quick(ins[0].shape(), &ins[1]) {
            return Ok(smallvec::smallvec![out]);
        }
        cx.as_one(|cx| self.walk.run(cx, &mut self.walk.slots(), &mut ins.to_vec())).map(Outs::from_vec)
    }
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}
