//! Sorting.

use super::order::{Key, Ordered, is_short};
use super::support::{Lane, Lanes, check_axes, exactly, is_float, none, one};
use crate::base::Result;
use crate::dispatch;
use crate::ir::op::*;
use crate::ir::{Graph, Value};
use crate::types::shape::{Extents, count};
use crate::types::{Array, DType, Dim, Type, memory};
use smallvec::SmallVec;
use std::ops::Range;

/// Ascending, NaN last, stable.
impl OpDef for Sort {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        let [x] = exactly("sort", ins)?;
        check_axes("sort", &[self.axis], &x.ty)?;
        Ok(one(x.ty.clone()))
    }

    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let (x, lanes) = (&ins[0], Lanes::along(ins[0].shape(), self.axis));
        Ok(one(dispatch!(x.dtype(), T => {
            let (data, mut out) = (x.as_slice::<T>(), memory::zeros::<T>(x.len()));
            each_order(cx, x, lanes, &mut |starts, at, order| {
                for (&start, order) in starts.iter().zip(order.chunks(lanes.n)) {
                    let lane = Lane::new(data, lanes, start);
                    order.iter().zip(at..).for_each(|(&from, k)| out[start + k * lanes.step] = lane.get(from));
                }
            })?;
            Array::new(x.shape(), out)
        })))
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
        let (x, lanes) = (&ins[0], Lanes::along(ins[0].shape(), self.axis));
        let mut out = memory::zeros::<i64>(x.len());
        each_order(cx, x, lanes, &mut |starts, at, order| {
            for (&start, order) in starts.iter().zip(order.chunks(lanes.n)) {
                order.iter().zip(at..).for_each(|(&from, k)| out[start + k * lanes.step] = from as i64);
            }
        })?;
        Ok(one(Array::new(x.shape(), out)))
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
        let (x, kept) = (&ins[0], self.kept(ins[0].shape()[self.axis]));
        let shape: Extents = x.shape().iter().enumerate().map(|(axis, &n)| if axis == self.axis { kept.len() } else { n }).collect();
        let (lanes, results) = (Lanes::along(x.shape(), self.axis), Lanes::along(&shape, self.axis));
        let mut out = memory::zeros::<i64>(count(&shape));
        let mut put = |to: usize, at: usize, order: &[usize]| {
            order.iter().zip(at..).for_each(|(&place, k)| out[to + k * results.step] = place as i64);
        };
        if kept.len() > FEW || kept.len() == lanes.n && lanes.n > 0 {
            each_selected(cx, x, [lanes, results], &kept, &mut put)?;
        } else if !kept.is_empty() {
            for (from, to) in lanes.starts().zip(results.starts()) {
                cx.worked(lanes.n + 16 * kept.len())?;
                put(to, 0, &dispatch!(x.dtype(), T => outermost::<T>(Lane::new(x.as_slice(), lanes, from), kept.len(), self.largest)));
            }
        }
        Ok(one(Array::new(&shape, out)))
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

/// So few keys are found by comparing each key with the outermost of those so far.
const FEW: usize = 32;

/// So many elements are compared at once with the last of those that are kept.
const BLOCK: usize = 32;

/// Positions of the first k elements of a lane in ascending order, or of the last.
fn outermost<T: Ordered>(lane: Lane<T>, k: usize, last: bool) -> SmallVec<[usize; FEW]> {
    let keys = |from: usize, to: usize| (from..to).map(move |k| <u128 as Key>::new(lane.get(k).rank(), k));
    let mut best: SmallVec<[u128; FEW]> = keys(0, k).collect();
    best.sort_unstable();
    for from in (k..lane.n).step_by(BLOCK) {
        let to = lane.n.min(from + BLOCK);
        let bound = lane.get(best[if last { 0 } else { k - 1 }].position());
        if !lane.slice(from, to).is_some_and(|block| none_enters(block, bound, last)) {
            keys(from, to).for_each(|key| enter(&mut best, key, last));
        }
    }
    best.iter().map(|key| key.position()).collect()
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
fn enter(best: &mut [u128], key: u128, last: bool) {
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

/// Given `starts, at, order`: places `at..` of the order of each lane that starts there, one lane behind the other.
type Put<'a> = &'a mut dyn FnMut(&[usize], usize, &[usize]);

/// Hands on the positions of each lane's elements in ascending order: of several short lanes at once, and of a long one piece by piece.
fn each_order(cx: &mut EvalCx, x: &Array, lanes: Lanes, put: Put) -> Result<()> {
    match is_short(x.dtype(), lanes.n) {
        _ if x.is_empty() => Ok(()),
        true => each_sorted::<u64>(cx, &Ranks::of(x, lanes), lanes, put),
        false => each_sorted::<u128>(cx, &Ranks::of(x, lanes), lanes, put),
    }
}

fn each_sorted<K: Key>(cx: &mut EvalCx, ranks: &Ranks, lanes: Lanes, put: Put) -> Result<()> {
    let together = (PIECE / lanes.n).clamp(1, lanes.count());
    let (mut starts, mut keys) = (lanes.starts(), memory::room::<K>(together * lanes.n));
    loop {
        let some: SmallVec<[usize; 16]> = starts.by_ref().take(together).collect();
        if some.is_empty() {
            return Ok(());
        }
        ranks.keys(&some, &mut keys);
        if some.len() == 1 {
            sort(cx, &mut keys)?;
        } else {
            cx.worked(16 * keys.len())?;
            keys.chunks_mut(lanes.n).for_each(sort_run);
        }
        hand_on(&keys, &mut |at, order| put(&some, at, order));
    }
}

/// Hands on, for each lane, the positions of the elements that are kept of the order of all, in that order: where its results begin, the first
/// place, and the positions from there on.
fn each_selected(
    cx: &mut EvalCx,
    x: &Array,
    lanes: [Lanes; 2],
    kept: &Range<usize>,
    put: &mut dyn FnMut(usize, usize, &[usize]),
) -> Result<()> {
    let ranks = Ranks::of(x, lanes[0]);
    match is_short(x.dtype(), lanes[0].n) {
        true => selected::<u64>(cx, &ranks, lanes, kept, put),
        false => selected::<u128>(cx, &ranks, lanes, kept, put),
    }
}

fn selected<K: Key>(
    cx: &mut EvalCx,
    ranks: &Ranks,
    [lanes, results]: [Lanes; 2],
    kept: &Range<usize>,
    put: &mut dyn FnMut(usize, usize, &[usize]),
) -> Result<()> {
    let mut keys: Vec<K> = memory::room(lanes.n);
    for (from, to) in lanes.starts().zip(results.starts()) {
        cx.worked(lanes.n + 16 * kept.len())?;
        ranks.keys(&[from], &mut keys);
        if kept.len() < lanes.n {
            keys.select_nth_unstable(if kept.start > 0 { kept.start } else { kept.end });
        }
        keys[kept.clone()].sort_unstable();
        hand_on(&keys[kept.clone()], &mut |at, order| put(to, at, order));
    }
    Ok(())
}

/// So many ranks or positions are handed on at once.
const PIECE: usize = 128;

fn hand_on<K: Key>(keys: &[K], put: &mut dyn FnMut(usize, &[usize])) {
    let mut order = [0; PIECE];
    for (at, piece) in keys.chunks(PIECE).enumerate() {
        order.iter_mut().zip(piece).for_each(|(to, key)| *to = key.position());
        put(at * PIECE, &order[..piece.len()]);
    }
}

/// Given `starts, at, to`: writes the ranks of elements `at..` of each lane that starts there, one lane behind the other.
type WriteRanks<'a> = Box<dyn Fn(&[usize], usize, &mut [u64]) + 'a>;

/// The ranks of the elements of lanes, whatever their type: what is generic over it is compiled once for each dtype, and sorting is large.
struct Ranks<'a> {
    n: usize,
    write: WriteRanks<'a>,
}

impl<'a> Ranks<'a> {
    fn of(x: &'a Array, lanes: Lanes) -> Ranks<'a> {
        let write: WriteRanks<'a> = dispatch!(x.dtype(), T => {
            let data = x.as_slice::<T>();
            Box::new(move |starts, at, to| {
                for (&start, to) in starts.iter().zip(to.chunks_mut(lanes.n)) {
                    let lane = Lane::new(data, lanes, start);
                    to.iter_mut().zip(at..).for_each(|(to, k)| *to = lane.get(k).rank());
                }
            })
        });
        Ranks { n: lanes.n, write }
    }
    /// The keys of lanes, in place of those that were there: of one, or of some that have [`PIECE`] elements together at most.
    fn keys<K: Key>(&self, starts: &[usize], keys: &mut Vec<K>) {
        let mut ranks = [0; PIECE];
        let n = self.n * starts.len();
        keys.clear();
        for at in (0..n).step_by(PIECE) {
            let piece = &mut ranks[..PIECE.min(n - at)];
            (self.write)(starts, at, piece);
            piece.chunks(self.n).for_each(|lane| keys.extend(lane.iter().zip(at..).map(|(&rank, k)| K::new(rank, k))));
        }
    }
}

/// Elements that are sorted at once, without a look at the clock.
const RUN: usize = 1 << 16;

/// So many keys are sorted by putting each where it belongs among those before it.
const INSERTED: usize = 24;

#[inline]
fn sort_run<K: Key>(run: &mut [K]) {
    if run.len() > INSERTED {
        return run.sort_unstable();
    }
    for end in 1..run.len() {
        let (key, mut at) = (run[end], end);
        while at > 0 && key < run[at - 1] {
            run[at] = run[at - 1];
            at -= 1;
        }
        run[at] = key;
    }
}

/// Sorts: runs first, then twice as long ones, between which the caller may stop it.
fn sort<K: Key>(cx: &mut EvalCx, order: &mut Vec<K>) -> Result<()> {
    for run in order.chunks_mut(RUN) {
        cx.worked(16 * run.len())?;
        sort_run(run);
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
