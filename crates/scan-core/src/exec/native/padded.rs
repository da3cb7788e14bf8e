//! Rows added into zeros: what the slope of `x[k:]` is. One pass instead of three over the memory.

use super::shortcut::{Found, Quick, of_zero};
use crate::base::Result;
use crate::dispatch;
use crate::ir::op::{BroadcastLike, Flip, IndexWrite, Write};
use crate::ir::{Graph, Node, Op, Value};
use crate::ops::support::Number;
use crate::types::Array;
use crate::types::shape::count;

/// `0 + y` in the rows from `k` on of zeros that are as large as another array, or the same of y flipped.
pub struct Padded {
    k: usize,
    /// The rows of y come from the last to the first, as those of a gradient.
    flipped: bool,
}

impl Padded {
    /// Where a node does that, given the array that gives the extents, and y before it is flipped. `once` tells whether a value is used by one node alone.
    ///
    /// # Errors
    /// An internal error where the graph is not consistent.
    pub fn of(graph: &Graph, node: &Node, once: impl Fn(Value) -> bool) -> Result<Option<Found>> {
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
        Found::new(graph, node, ins, vec![], Padded { k, flipped: turned.is_some() })
    }
}

impl Quick for Padded {
    const NAME: &'static str = "index_write";

    /// Where y has all the rows from k on.
    fn quick(&self, ins: &[Array]) -> Option<Array> {
        let (like, y) = (ins[0].shape(), &ins[1]);
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
