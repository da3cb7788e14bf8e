//! Reductions of what is read by index arrays, where elements may be taken in any order.
//!
//! ```text
//! before  y = gather(q, i, axis 0);   z = max(y, axis of q)      more rows are read than there are
//! after   w = max(q, axis 1);         z = gather(w, i, axis 0)
//!
//! before  y = gather(x, i, axis 0);   z = sum(y, last axis of i)  i: [n, 8], the same in all steps, y of integers
//! after   w = gather(x, transpose(i), axis 0);   z = sum(w, axis 0)
//! ```
//!
//! The second is a reduction of rows side by side, which kernels make for many elements at a time.

use super::Lowered;
use super::extents::known_shape;
use super::kinds::{Kind, Kinds};
use super::rewritten::rewritten;
use crate::base::Id;
use crate::ir::op::{Gather, Reduce, ReduceKind, Transpose};
use crate::ir::{Graph, Node, Op, Scan, Value};
use crate::ops::select::index_axis;
use crate::types::shape::count;

/// Rows of so many elements or more are reduced as quickly one by one.
const LONG: usize = 64;

/// The step with such reductions; `None` where it has none.
///
/// # Errors
/// Internal ones.
pub(super) fn with_reads_reduced(scan: &Scan, body: &Graph) -> Lowered<Option<Graph>> {
    if !body.nodes().iter().any(|n| matches!(n.op, Op::Gather(_))) {
        return Ok(None);
    }
    let (kinds, uses) = (Kinds::new(scan, body), body.uses());
    rewritten(body, |out, image, _, node| {
        let Op::Reduce(reduce) = &node.op else { return Ok(None) };
        let Some(read) = body.node_of(node.ins[0]) else { return Ok(None) };
        let Op::Gather(gather) = &read.op else { return Ok(None) };
        let Some(found) = Read::of(body, read, gather) else { return Ok(None) };
        let ins = |first: Value, others: &[Value]| std::iter::once(first).chain(others.iter().copied()).collect::<Vec<Value>>();
        let indices: Vec<Value> = read.ins[1..].iter().map(|v| image[v]).collect();
        if let Some((reduce, gather)) = found.first(reduce).filter(|_| in_any_order(body, reduce.kind, node.ins[0], true)) {
            let rows = out.apply(reduce, &[image[&read.ins[0]]])?[0];
            return Ok(Some(out.apply(gather, &ins(rows, &indices))?[0]));
        }
        let steady = read.ins[1..].iter().all(|&i| kinds.of(i) != Kind::Step) && uses[read.outs[0].idx()] == 1;
        if let Some((turned, reduce)) = found.turned(reduce).filter(|_| steady && in_any_order(body, reduce.kind, node.ins[0], false)) {
            let index = out.apply(turned, &indices)?[0];
            let rows = out.apply(gather.clone(), &[image[&read.ins[0]], index])?[0];
            return Ok(Some(out.apply(reduce, &[rows])?[0]));
        }
        Ok(None)
    })
}

/// True where it does not show in which order elements are taken. Of two zeros one order may find another one the larger: `same` tells that each row is
/// gone through as it was.
fn in_any_order(body: &Graph, kind: ReduceKind, x: Value, same: bool) -> bool {
    match kind {
        ReduceKind::Any | ReduceKind::All => true,
        ReduceKind::Max | ReduceKind::Min if same => true,
        ReduceKind::Sum | ReduceKind::Prod | ReduceKind::Max | ReduceKind::Min => !body.ty(x).dtype.is_float(),
    }
}

/// What is read by index.
struct Read<'a> {
    gather: &'a Gather,
    /// Extents of what it is read from.
    whole: Vec<usize>,
    /// Extents of what is read.
    shape: Vec<usize>,
    /// So many axes of it stand before those of the index, which are so many.
    before: usize,
    spot: usize,
}

impl<'a> Read<'a> {
    fn of(body: &Graph, node: &Node, gather: &'a Gather) -> Option<Read<'a>> {
        let (whole, shape) = (known_shape(body, node.ins[0]).ok()?, known_shape(body, node.outs[0]).ok()?);
        let (before, spot) = gather.layout(whole.len(), &shape);
        let spot = spot.len();
        Some(Read { gather, whole: whole.to_vec(), shape: shape.to_vec(), before, spot })
    }
    /// The axis of what is read from that an axis of what is read is.
    fn axis(&self, of: usize) -> Option<usize> {
        let mut others = (0..self.whole.len()).filter(|axis| !self.gather.axes.contains(axis));
        match of {
            _ if of < self.before => others.nth(of),
            _ => others.nth(of.checked_sub(self.spot).filter(|&at| at >= self.before)?),
        }
    }
    /// The reduction of what is read from, and the read after it: where it is along axes that the index does not name, and no fewer elements are read than
    /// there are.
    fn first(&self, reduce: &Reduce) -> Option<(Reduce, Gather)> {
        if count(&self.whole) == 0 || count(&self.shape) < count(&self.whole) {
            return None;
        }
        let axes = reduce.axes.iter().map(|&axis| self.axis(axis)).collect::<Option<Vec<usize>>>()?;
        let gone = |axis: usize| if reduce.keepdims { 0 } else { axes.iter().filter(|&&gone| gone < axis).count() };
        let gather = Gather { axes: self.gather.axes.iter().map(|&axis| axis - gone(axis)).collect() };
        let before = reduce.axes.iter().filter(|&&axis| axis < self.before && !reduce.keepdims).count();
        (index_axis(&gather.axes) == self.before - before).then(|| (Reduce { axes, ..reduce.clone() }, gather))
    }
    /// The order of the axes of an index by which what is read has its last axis before its others, and the reduction along that: where rows are short.
    fn turned(&self, reduce: &Reduce) -> Option<(Transpose, Reduce)> {
        let last = self.shape.len().checked_sub(1)?;
        let fits = self.gather.axes.len() == 1 && self.spot > 1 && self.before + self.spot == self.shape.len();
        if !fits || reduce.axes != [last] || reduce.keepdims || !(2..LONG).contains(&self.shape[last]) {
            return None;
        }
        let perm = std::iter::once(self.spot - 1).chain(0..self.spot - 1).collect();
        Some((Transpose { perm }, Reduce { axes: vec![self.before], ..reduce.clone() }))
    }
}
