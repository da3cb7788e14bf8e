//! Reads by index arrays as parts of fusions: an array in memory of which each place reads the element whose number is computed there.
//!
//! ```text
//! y = w * q[i, j + 1]       one kernel:  t = w * table(q)[wrapped(i) * columns + wrapped(j + 1)]
//! ```
//!
//! A kernel cannot report an index that lies outside its axis, and reads some element then. So the list looks at the index arrays, which
//! have memory for that ([`Work::Within`]), before anything that a step makes counts.

use super::Lowered;
use super::extents::known_shape;
use super::kinds::Kind;
use super::planner::Planner;
use crate::ir::{Coord, Graph, Node, NodeId, Op, Value, View};
use crate::ops::index::Item as At;
use crate::ops::select::{Selector, index_axis, position};
use crate::plan::list::{Item, Work};
use crate::types::shape::{Extents, broadcast_shapes, count, strides};
use crate::types::{Array, DType};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// Bytes of the smallest elements that kernels of many lanes read by number.
const LEAST: usize = 4;

/// A read by index arrays.
pub(super) struct Gathered {
    /// Extents of the array.
    pub extents: Extents,
    /// The axes that the index arrays name places of, in their order.
    pub axes: SmallVec<[usize; 4]>,
    /// What the index arrays broadcast to, and the axis of the result with which that begins.
    common: Extents,
    first: usize,
}

impl Gathered {
    /// That of a node, where a fusion can read so.
    pub fn of(body: &Graph, node: &Node) -> Option<Gathered> {
        let axes: SmallVec<[usize; 4]> = match (&node.op, Selector::of(&node.op)?) {
            (Op::Gather(_), Selector::Advanced(axes)) => axes.into(),
            (Op::Index(_), Selector::Basic(pattern)) if pattern.items.iter().all(|item| *item == At::At) => {
                (0..pattern.items.len()).collect()
            }
            _ => return None,
        };
        let (x, idxs) = (node.ins[0], &node.ins[1..]);
        let shape = |v: Value| known_shape(body, v).ok();
        let (extents, result) = (shape(x)?, shape(node.outs[0])?);
        let shapes = idxs.iter().map(|&v| shape(v)).collect::<Option<Vec<_>>>()?;
        let common = broadcast_shapes(&shapes.iter().map(|s| &s[..]).collect::<Vec<_>>()).ok()?;
        let first = index_axis(axes.get(..).filter(|axes| !axes.is_empty())?);
        // The last axis of the result becomes the lanes, most often: they read one table.
        let numbered = axes.len() == extents.len() || !common.is_empty() && first + common.len() == result.len();
        let sized = body.ty(x).dtype.size() >= LEAST && count(&extents) > 0 && count(&result) > 0;
        let inside = |(&v, &axis): (&Value, &usize)| body.const_value(v).is_none_or(|a| all_inside(a, extents[axis]));
        let integers = idxs.iter().all(|&v| body.ty(v).dtype.is_int());
        let fits = numbered && sized && integers && idxs.len() == axes.len() && idxs.iter().zip(&axes).all(inside);
        fits.then_some(Gathered { extents, axes, common, first })
    }
    /// Elements between the first that is read and the last, with both.
    pub fn elements(&self) -> usize {
        let steps = strides(&self.extents);
        1 + self.axes.iter().map(|&axis| (self.extents[axis] - 1) * steps[axis]).sum::<usize>()
    }
    /// What numbers of elements are computed in, of such index arrays: in 32 bits where that holds them all, since vectors have no product of wider
    /// integers. Of an index that lies outside the number may be any.
    pub fn counted_in(&self, body: &Graph, idxs: &[Value]) -> DType {
        let steps = strides(&self.extents);
        let multiplied = self.axes.iter().any(|&axis| steps[axis] > 1);
        let narrow = idxs.iter().all(|&v| body.ty(v).dtype.size() <= 4);
        if count(&self.extents) < 1 << 31 && (multiplied || narrow) { DType::I32 } else { DType::I64 }
    }
    /// Where the table of a place of the result begins in the array.
    pub fn table(&self) -> View {
        let rest = (0..self.extents.len()).filter(|axis| !self.axes.contains(axis));
        let mut view = View((0..self.extents.len()).map(|_| Coord::at(0)).collect());
        for (k, axis) in rest.enumerate() {
            view.0[axis] = Coord::along(if k < self.first { k } else { k + self.common.len() });
        }
        view
    }
    /// Which element of an index array of this shape belongs to a place of the result.
    pub fn index(&self, shape: &[usize]) -> View {
        let mut view = View::broadcast(shape, &self.common);
        view.0.iter_mut().for_each(|coord| coord.axis = coord.axis.map(|axis| axis + self.first));
        view
    }
}

fn all_inside(index: &Array, extent: usize) -> bool {
    let wide = index.cast(DType::I64);
    wide.as_slice::<i64>().iter().all(|&i| position(i, 0, extent).is_ok())
}

impl Planner<'_> {
    /// Looks at the index arrays of reads that stand before a node, where these are there.
    pub(super) fn within(
        &mut self,
        before: NodeId,
        waiting: &mut BTreeMap<NodeId, Gathered>,
        seen: &mut FxHashSet<(Value, usize)>,
    ) -> Lowered<()> {
        let body = self.body;
        for (id, read) in std::mem::take(waiting) {
            let node = &body.nodes()[id];
            let there = node.ins[1..].iter().all(|v| self.kinds.of(*v) != Kind::Step || self.places.contains_key(v));
            if id > before || !there {
                waiting.insert(id, read);
                continue;
            }
            for (&v, &axis) in node.ins[1..].iter().zip(&read.axes) {
                if body.const_value(v).is_none() && seen.insert((v, read.extents[axis])) {
                    let ins = vec![self.place(v)?];
                    let work = Work::Within { axis, extent: read.extents[axis] };
                    self.items.push(Item { work, ins, outs: vec![], span: node.span });
                }
            }
        }
        Ok(())
    }
}
