//! Single elements added into zeros, one after the other: what the slope of `p[0], p[1], …` is. One node instead of one per element,
//! and of two where the element is the last row of a loop.

use super::shortcut::{Found, Quick, of_zero};
use crate::base::Result;
use crate::dispatch;
use crate::ir::op::{BroadcastLike, Index, IndexWrite, Join, Write};
use crate::ir::{Graph, Node, Op, Value};
use crate::ops::support::Number;
use crate::types::{Array, DType, memory};

/// `0 + y` at some places of zeros that are as long as another array.
pub struct Gathered {
    dtype: DType,
    /// Per element: its place, and which input ends with it.
    elements: Vec<(i64, usize)>,
}

impl Gathered {
    /// Where a node, with others before it, does that, given the array that gives the extent, and where the elements come from. `once` tells whether a value is used by one node alone.
    ///
    /// # Errors
    /// An internal error where the graph is not consistent.
    pub fn of(graph: &Graph, node: &Node, once: impl Fn(Value) -> bool) -> Result<Option<Found>> {
        let dtype = graph.ty(node.outs[0]).dtype;
        let (mut elements, mut inner, mut top) = (vec![], vec![], node);
        while let Some((zeros, y, at)) = written(graph, top) {
            let source = last_of(graph, y, dtype).filter(|_| once(y));
            inner.extend(source.map(|_| y));
            elements.push((at, source.unwrap_or(y)));
            let Some(below) = graph.node_of(zeros).filter(|_| once(zeros)) else { return Ok(None) };
            inner.push(zeros);
            top = below;
        }
        if elements.len() < 2 || !matches!(top.op, Op::BroadcastLike(BroadcastLike {})) || !of_zero(graph, top) {
            return Ok(None);
        }
        let mut ins = vec![top.ins[1]];
        elements.iter().map(|e| e.1).for_each(|v| {
            if !ins.contains(&v) {
                ins.push(v)
            }
        });
        let place = |v: Value| ins.iter().position(|&x| x == v).unwrap_or(0);
        let elements = elements.iter().rev().map(|&(at, v)| (at, place(v))).collect();
        Found::new(graph, node, ins, inner, Gathered { dtype, elements })
    }
}

impl Quick for Gathered {
    const NAME: &'static str = "index_write";

    /// Where all places are there, and all elements.
    fn quick(&self, ins: &[Array]) -> Option<Array> {
        let &[n] = ins[0].shape() else { return None };
        dispatch!(self.dtype, T => {
            let mut out = memory::zeros::<T>(n);
            for &(at, from) in &self.elements {
                let at = if at < 0 { at + n as i64 } else { at };
                let to = out.get_mut(usize::try_from(at).ok()?)?;
                *to = to.plus(*ins[from].as_slice::<T>().last()?);
            }
            Some(Array::new(&[n], out))
        })
    }
}

/// The array, the element and the place of a node that adds one element.
fn written(graph: &Graph, node: &Node) -> Option<(Value, Value, i64)> {
    let Op::IndexWrite(IndexWrite { mode: Write::Inc, pattern }) = &node.op else { return None };
    let [x, y, at] = node.ins[..] else { return None };
    let fits = pattern == "i" && graph.ty(x).rank() == 1 && graph.ty(y).rank() == 0 && graph.ty(x).dtype == graph.ty(y).dtype;
    graph.const_value(at).and_then(Array::item_i64).filter(|_| fits).map(|at| (x, y, at))
}

/// The array that ends with an element: the last of those whose join has it as the last row.
fn last_of(graph: &Graph, element: Value, dtype: DType) -> Option<Value> {
    let node = graph.node_of(element)?;
    let Op::Index(Index { pattern }) = &node.op else { return None };
    let [all, at] = node.ins[..] else { return None };
    let joined = graph.node_of(all).filter(|n| matches!(n.op, Op::Join(Join { axis: 0 })))?;
    let last = pattern == "i" && graph.const_value(at).and_then(Array::item_i64) == Some(-1);
    let alike = joined.ins.iter().all(|&v| graph.ty(v).dtype == dtype && graph.ty(v).rank() == 1);
    joined.ins.last().copied().filter(|_| last && alike)
}
