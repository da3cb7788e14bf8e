//! The last rows of an array, the last one first, with zeros behind where it has too few: what the gradient of a loop begins with.

use super::shortcut::{Found, Quick, of_zero};
use crate::base::Result;
use crate::dispatch;
use crate::ir::op::{BroadcastTo, DimOf, Flip, Index, IndexWrite, Write};
use crate::ir::{Graph, Node, Op, Value};
use crate::ops::support::Number;
use crate::scalar::ElemOp;
use crate::types::{Array, memory};

/// `0 + y[-k:]` behind zeros, `min(n, rows)` elements in all, flipped; the rows are those of another array.
pub struct Tail {
    n: usize,
    k: usize,
}

impl Tail {
    /// Where a node, with others before it, does that, given the array that gives the rows, and y.
    ///
    /// # Errors
    /// An internal error where the graph is not consistent.
    pub fn of(graph: &Graph, node: &Node) -> Result<Option<Found>> {
        let Some((n, k, ins)) = parts(graph, node) else { return Ok(None) };
        Found::new(graph, node, ins, vec![], Tail { n, k })
    }
}

impl Quick for Tail {
    const NAME: &'static str = "flip";

    /// Where there is room for the rows of y.
    fn quick(&self, ins: &[Array]) -> Option<Array> {
        let (like, y) = (&ins[0], &ins[1]);
        let (rows, have) = (like.shape().first()?.min(&self.n), y.len().min(self.k));
        let zeros = rows.checked_sub(have).filter(|_| y.rank() == 1)?;
        Some(dispatch!(y.dtype(), T => {
            let last = y.as_slice::<T>().iter().rev().take(have).map(|&x| T::ZERO.plus(x));
            Array::new(&[*rows], memory::collect(last.chain(std::iter::repeat_n(T::ZERO, zeros))))
        }))
    }
}

/// n, k, the array that gives the rows, and y.
fn parts(graph: &Graph, node: &Node) -> Option<(usize, usize, Vec<Value>)> {
    let integer = |v: Value| graph.const_value(v).and_then(Array::item_i64);
    let rows_of = |v: Value| graph.node_of(v).filter(|d| matches!(d.op, Op::DimOf(DimOf { axis: 0 }))).map(|d| d.ins[0]);
    let Op::Flip(Flip { axis: 0 }) = &node.op else { return None };
    let write = graph.node_of(node.ins[0])?;
    let Op::IndexWrite(IndexWrite { mode: Write::Inc, pattern: from }) = &write.op else { return None };
    let [zeros, last, start] = write.ins[..] else { return None };
    let made = graph.node_of(zeros).filter(|m| matches!(m.op, Op::BroadcastTo(BroadcastTo {})) && of_zero(graph, m))?;
    let [_, rows] = made.ins[..] else { return None };
    let least = graph.node_of(rows).filter(|m| matches!(m.op, Op::Elem(ElemOp::Minimum)))?;
    let (like, n) = (rows_of(least.ins[0])?, integer(least.ins[1])?);
    let cut = graph.node_of(last)?;
    let Op::Index(Index { pattern: slice }) = &cut.op else { return None };
    let [y, k] = cut.ins[..] else { return None };
    let gap = graph.node_of(start).filter(|s| matches!(s.op, Op::Elem(ElemOp::Sub)))?;
    let behind = rows_of(gap.ins[0]) == Some(zeros) && rows_of(gap.ins[1]) == Some(last);
    let types = [zeros, y].map(|v| graph.ty(v));
    let fits = types[0].dtype == types[1].dtype && types.iter().all(|t| t.rank() == 1) && from == "s:" && slice == "s:" && behind;
    let k = integer(k).filter(|&k| k < 0 && fits)?.unsigned_abs();
    Some((usize::try_from(n).ok()?, usize::try_from(k).ok()?, vec![like, y]))
}
