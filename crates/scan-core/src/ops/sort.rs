//! Sorting.

use super::order::{Key, Ordered, is_short};
use super::support::{Lane, Lanes, check_axes, exactly, is_float, is_nan, none, one};
use crate::base::Result;
use crate::dispatch;
use crate::ir::op::*;
use crate::ir::{Graph, Value};
use crate::types::shape::{Extents, count};
use crate::types::{Array, DType, Dim, Element, Type, memory};
use std::cmp::Ordering;
use std::ops::Range;

/// Ascending, NaN last, stable.
impl OpDef for Sort {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        let [x] = exactly("sort", ins)?;
        check_axes("sort", &[self.axis], &x.ty)?;
        Ok(one(x.ty.clone()))
    }

    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let x = &ins[0];
        Ok(one(dispatch!(x.dtype(), T => along_sorted(cx, x, self.axis, |lane: Lane<T>, k| lane.get(k))?)))
    }

    /// The cotangents go back to where their elements came from.
    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let x = site.ins[0];
        let (Some(ct), true) = (cts[0], is_float(g, x)) else { return Ok(none(1)) };
        let order = g.emit(ArgSort { axis: self.axis }, &[x]);
        let rank = g.ty(x).rank();
        let zeros = g.zeros_like(x);
        let mut ins = vec![zeros, ct];
        ins.extend((0..rank).map(|axis| if axis == self.axis { order } else { positions(g, x, axis) }));
        Ok(vec![Some(g.emit(GatherWrite { mode: Write::Set, axes: (0..rank).collect() }, &ins))])
    }

    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        b.as_is(Sort { axis: self.axis + 1 }, ins)
    }
}

/// i64; NaN last, stable.
impl OpDef for ArgSort {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        let [x] = exactly("argsort", ins)?;
        check_axes("argsort", &[self.axis], &x.ty)?;
        Ok(one(x.ty.with_dtype(DType::I64)))
    }

    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let x = &ins[0];
        Ok(one(dispatch!(x.dtype(), T => along_sorted(cx, x, self.axis, |_: Lane<T>, k| k as i64)?)))
    }

    fn vjp(&self, _: &mut Graph, _: &Site, _: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        Ok(none(1))
    }

    fn connected(&self, _: usize) -> bool {
        false
    }

    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        b.as_is(ArgSort { axis: self.axis + 1 }, ins)
    }
}

impl ArgTopK {
    /// Which of the n places in ascending order are kept.
    pub fn kept(&self, n: usize) -> Range<usize> {
        let k = self.k.min(n);
        if self.largest { n - k..n } else { 0..k }
    }
}

/// i64; as those of `argsort`.
impl OpDef for ArgTopK {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        let [x] = exactly("argtopk", ins)?;
        check_axes("argtopk", &[self.axis], &x.ty)?;
        let mut ty = x.ty.with_dtype(DType::I64);
        ty.dims[self.axis] = ty.dims[self.axis].value().map_or_else(Dim::fresh, |n| Dim::known(self.kept(n).len()));
        Ok(one(ty))
    }

    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let x = &ins[0];
        Ok(one(dispatch!(x.dtype(), T => match is_short(T::DTYPE, x.shape()[self.axis]) {
            true => topmost::<T, u64>(cx, self, x)?,
            false => topmost::<T, u128>(cx, self, x)?,
        })))
    }

    fn vjp(&self, _: &mut Graph, _: &Site, _: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        Ok(none(1))
    }

    fn connected(&self, _: usize) -> bool {
        false
    }

    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        b.as_is(ArgTopK { axis: self.axis + 1, ..self.clone() }, ins)
    }
}

/// The positions that [`ArgTopK`] gives.
fn topmost<T: Ordered, K: Key>(cx: &mut EvalCx, op: &ArgTopK, x: &Array) -> Result<Array> {
    let (data, lanes, kept) = (x.as_slice::<T>(), Lanes::along(x.shape(), op.axis), op.kept(x.shape()[op.axis]));
    let shape: Extents = x.shape().iter().enumerate().map(|(axis, &n)| if axis == op.axis { kept.len() } else { n }).collect();
    let (mut out, mut order) = (memory::zeros::<i64>(count(&shape)), memory::room::<K>(lanes.n));
    let results = Lanes::along(&shape, op.axis);
    for (from, to) in lanes.starts().zip(results.starts()).filter(|_| !kept.is_empty()) {
        cx.worked(lanes.n + 16 * kept.len())?;
        keep(&mut order, Lane::new(data, lanes, from), &kept, op.largest);
        order.iter().enumerate().for_each(|(k, key)| out[to + k * results.step] = key.position() as i64);
    }
    Ok(Array::new(&shape, out))
}

/// So few keys are found by comparing each key with the outermost of those so far.
const FEW: usize = 32;

/// So many elements are compared at once with the last of those that are kept.
const BLOCK: usize = 32;

/// The keys of the first or last elements of a lane, in ascending order: which ones are kept of an order of all of them.
fn keep<T: Ordered, K: Key>(best: &mut Vec<K>, lane: Lane<T>, kept: &Range<usize>, last: bool) {
    let (n, k) = (lane.n, kept.len());
    let keys = |from: usize, to: usize| (from..to).map(move |k| K::new(lane.get(k).rank(), k));
    best.clear();
    if k > FEW || k == n {
        best.extend(keys(0, n));
        if k < n {
            best.select_nth_unstable(if last { kept.start } else { kept.end });
            best.truncate(kept.end);
            best.drain(..kept.start);
        }
        return best.sort_unstable();
    }
    best.extend(keys(0, k));
    best.sort_unstable();
    for from in (k..n).step_by(BLOCK) {
        let to = n.min(from + BLOCK);
        let bound = lane.get(best[if last { 0 } else { k - 1 }].position());
        if !lane.slice(from, to).is_some_and(|block| none_enters(block, bound, last)) {
            keys(from, to).for_each(|key| enter(best, key, last));
        }
    }
}

/// True where no element comes before the last one that is kept, `last`: after the first. Of equal ones the earlier comes first; NaN, which
/// does not compare, may enter.
fn none_enters<T: PartialOrd + Copy>(block: &[T], bound: T, last: bool) -> bool {
    match last {
        true => block.iter().fold(true, |none, x| none & (*x < bound)),
        false => block.iter().fold(true, |none, x| none & (*x >= bound)),
    }
}

/// Puts a key among those that are kept, where it belongs there, in place of the outermost.
fn enter<K: Key>(best: &mut [K], key: K, last: bool) {
    let end = best.len() - 1;
    if last && key > best[0] {
        let to = best.partition_point(|b| *b < key);
        best.copy_within(1..to, 0);
        best[to - 1] = key;
    } else if !last && key < best[end] {
        let to = best.partition_point(|b| *b < key);
        best.copy_within(to..end, to + 1);
        best[to] = key;
    }
}

/// `value(lane, position)` of each lane's elements in ascending order.
fn along_sorted<T: Ordered, U: Element>(cx: &mut EvalCx, x: &Array, axis: usize, value: impl Fn(Lane<T>, usize) -> U) -> Result<Array> {
    let lanes = Lanes::along(x.shape(), axis);
    match is_short(T::DTYPE, lanes.n) {
        true => by_keys::<T, u64, U>(cx, x, lanes, value),
        false => by_keys::<T, u128, U>(cx, x, lanes, value),
    }
}

fn by_keys<T: Ordered, K: Key, U: Element>(cx: &mut EvalCx, x: &Array, lanes: Lanes, value: impl Fn(Lane<T>, usize) -> U) -> Result<Array> {
    let data = x.as_slice::<T>();
    let mut out = memory::zeros::<U>(data.len());
    let mut order: Vec<K> = memory::room(lanes.n);
    for start in lanes.starts() {
        let lane = Lane::new(data, lanes, start);
        order.clear();
        order.extend((0..lanes.n).map(|k| K::new(lane.get(k).rank(), k)));
        sort(cx, &mut order)?;
        order.iter().enumerate().for_each(|(k, from)| out[start + k * lanes.step] = value(lane, from.position()));
    }
    Ok(Array::new(x.shape(), out))
}

/// Elements that are sorted at once, without a look at the clock.
const RUN: usize = 1 << 16;

/// Sorts: runs first, then twice as long ones, between which the caller may stop it.
fn sort<K: Key>(cx: &mut EvalCx, order: &mut Vec<K>) -> Result<()> {
    for run in order.chunks_mut(RUN) {
        cx.worked(16 * run.len())?;
        run.sort_unstable();
    }
    let (n, mut size) = (order.len(), RUN);
    while size < n {
        let mut merged = memory::room(n);
        for pair in order.chunks(2 * size) {
            let (mut a, mut b) = pair.split_at(size.min(pair.len()));
            while let (Some(&x), Some(&y)) = (a.first(), b.first()) {
                merged.push(x.min(y));
                if x < y {
                    a = &a[1..]
                } else {
                    b = &b[1..]
                }
                cx.worked(1)?;
            }
            merged.extend_from_slice(a);
            merged.extend_from_slice(b);
        }
        *order = merged;
        size *= 2;
    }
    Ok(())
}

/// The total order of sorting: NaN is above everything and equal to itself.
pub(super) fn ascending<T: Element>(a: T, b: T) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| is_nan(a).cmp(&is_nan(b)))
}

/// `0, 1, …` along an axis of x, with extent 1 along the others.
pub(super) fn positions(g: &mut Graph, x: Value, axis: usize) -> Value {
    let (zero, n, one) = (g.int(0), g.dim(x, axis), g.int(1));
    let row = g.emit(Arange {}, &[zero, n, one]);
    let others: Vec<usize> = (0..g.ty(x).rank()).filter(|&i| i != axis).collect();
    g.expand(row, &others)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::*;

    #[test]
    fn values_are_numpys() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        let x = Array::new(&[2, 4], vec![3.0, nan, 1.0, 2.0, 0.0, 0.0, -1.0, inf]);
        assert_close(&apply(Sort { axis: 1 }, &[x.clone()]).to_f64_vec(), &[1.0, 2.0, 3.0, nan, -1.0, 0.0, 0.0, inf], 0.0, "sort");
        assert_close(&apply(Sort { axis: 0 }, &[x.clone()]).to_f64_vec(), &[0.0, 0.0, -1.0, 2.0, 3.0, nan, 1.0, inf], 0.0, "sort");
        assert_eq!(apply(ArgSort { axis: 1 }, &[x]), Array::new(&[2, 4], vec![2i64, 3, 0, 1, 2, 0, 1, 3]));
    }

    #[test]
    fn ints_bools_and_empty() {
        assert_eq!(apply(Sort { axis: 0 }, &[Array::vector(&[3u8, 1, 2])]), Array::vector(&[1u8, 2, 3]));
        assert_eq!(apply(ArgSort { axis: 0 }, &[Array::vector(&[true, false, true])]), Array::vector(&[1i64, 0, 2]));
        assert_eq!(apply(ArgSort { axis: 0 }, &[Array::zeros(DType::F32, &[0, 2])]), Array::zeros(DType::I64, &[0, 2]));
        assert_eq!(build_error(Sort { axis: 0 }, &[Array::scalar(1.0)]).code, "E0222");
    }

    #[test]
    fn gradients_match_differences() {
        for shape in [&[4][..], &[0], &[1]] {
            check_vjp(|g, v| g.emit(Sort { axis: 0 }, v), &[sample(shape, 1)]);
        }
        for axis in 0..3 {
            check_vjp(|g, v| g.emit(Sort { axis }, v), &[sample(&[2, 3, 2], 2)]);
        }
        check_vjp2(|g, v| g.emit(Sort { axis: 1 }, v), &[sample(&[2, 3], 3)]);
    }
}
