//! Advanced indexing, read and written.

use super::args::{expect_count, fit, integers, one};
use super::batch::indexing;
use super::index::{check_written, position};
use super::region::{Region, spread, write_run};
use crate::bail;
use crate::base::Result;
use crate::dispatch;
use crate::ir::op::*;
use crate::ir::{Graph, Value};
use crate::scalar::ElemOp;
use crate::types::shape::{Extents, broadcast_dims, broadcast_shapes, count, strides};
use crate::types::{Array, DType, Dim, Dims, Type, memory};
use smallvec::SmallVec;

/// Where the axes of the index arrays go in the result: in place of indexed axes that are adjacent, else in front.
pub(crate) fn index_axis(axes: &[usize]) -> usize {
    let adjacent = axes.windows(2).all(|w| w[1] == w[0] + 1);
    if adjacent { axes[0] } else { 0 }
}

/// What takes the place of the indexed axes: `spot` is put where NumPy puts it.
fn place<T: Clone, Room: smallvec::Array<Item = T>>(extents: &[T], axes: &[usize], spot: &[T]) -> SmallVec<Room> {
    let mut out: SmallVec<Room> = (0..extents.len()).filter(|k| !axes.contains(k)).map(|k| extents[k].clone()).collect();
    let at = index_axis(axes);
    out.insert_many(at, spot.iter().cloned());
    out
}

/// Checks array, axes and index arrays; returns the dims of the selected place.
fn check(op: &str, axes: &[usize], x: &Arg, idxs: &[Arg]) -> Result<Dims> {
    let sorted = axes.windows(2).all(|w| w[0] < w[1]);
    if axes.is_empty() || !sorted || axes[axes.len() - 1] >= x.ty.rank() {
        bail!(Index, "E0221", "axes {axes:?} of `{op}` do not fit {}", x.ty);
    }
    if idxs.len() != axes.len() {
        bail!(Type, "E0222", "`{op}` of {} axes needs as many index arrays and got {}", axes.len(), idxs.len());
    }
    if let Some(bad) = idxs.iter().find(|a| !a.ty.dtype.is_int()) {
        bail!(Type, "E0222", "an index array of `{op}` must hold integers, got {}", bad.ty);
    }
    let spot = broadcast_dims(&idxs.iter().map(|a| &a.ty).collect::<Vec<_>>())?;
    Ok(place(&x.ty.dims, axes, &spot))
}

/// Where index arrays of certain extents select elements of an array of certain extents: positions are `before + spot + after`, then `run` in
/// a row.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Extents of what is selected.
    pub shape: Extents,
    /// Those that the index arrays broadcast to.
    pub common: Extents,
    before: Vec<usize>,
    after: Vec<usize>,
    /// Elements in a row.
    pub run: usize,
    /// Per index array: the axis, its extent, and the elements from one place along it to the next.
    axes: SmallVec<[(usize, usize, usize); 4]>,
}

impl Layout {
    /// # Errors
    /// `E0201` where index arrays do not broadcast together.
    pub fn new(shape: &[usize], axes: &[usize], idxs: &[&[usize]]) -> Result<Layout> {
        let common = broadcast_shapes(idxs)?;
        let steps = strides(shape);
        let rest = |range: std::ops::Range<usize>| range.filter(|k| !axes.contains(k)).map(|k| (shape[k], steps[k] as isize)).collect();
        let split = index_axis(axes);
        let before = Region { offset: 0, axes: rest(0..split) };
        let after = Region { offset: 0, axes: rest(split..shape.len()) };
        let (before, _) = positions(&before, false);
        let (after, run) = positions(&after, true);
        let selected = place(shape, axes, &common);
        let axes = axes.iter().map(|&axis| (axis, shape[axis], steps[axis])).collect();
        Ok(Layout { shape: selected, common, before, after, run, axes })
    }
    /// How far an element of index array `k` moves the spot; `None` where it lies outside its axis.
    #[inline]
    pub fn step(&self, k: usize, index: i64) -> Option<usize> {
        let (_, extent, step) = self.axes[k];
        let shifted = if index < 0 { index + extent as i64 } else { index };
        (0..extent as i64).contains(&shifted).then(|| shifted as usize * step)
    }
    /// The error of an element of index array `k` that lies outside its axis.
    pub fn outside(&self, k: usize, index: i64) -> Box<crate::base::Diagnostic> {
        let (axis, extent, _) = self.axes[k];
        position(index, axis, extent).err().unwrap_or_else(|| crate::base::Diagnostic::internal("an index that fits"))
    }
    /// What adds to a spot how far an element of index array `k` moves it, and tells whether that lies within its axis.
    #[inline]
    pub fn moves(&self, k: usize) -> impl Fn(&mut usize, i64) -> bool + use<> {
        let (_, extent, step) = self.axes[k];
        move |spot, index| {
            let shifted = index.wrapping_add(if index < 0 { extent as i64 } else { 0 });
            *spot = spot.wrapping_add((shifted as usize).wrapping_mul(step));
            (shifted as u64) < extent as u64
        }
    }
    /// The axis that index array `k` names places of, and its extent.
    pub fn named(&self, k: usize) -> [usize; 2] {
        let (axis, extent, _) = self.axes[k];
        [axis, extent]
    }
    /// The extent of the axis of index array `k`, and how far apart the spots of its neighbours are.
    pub fn axis(&self, k: usize) -> (usize, usize) {
        let (_, extent, step) = self.axes[k];
        (extent, step)
    }
    /// True where a run at each spot is all that is selected.
    pub fn only_spots(&self) -> bool {
        self.begins() == Some(&[0])
    }
    /// Where the spots count from, each time that a run at each of them is selected; `None` where more than one run is selected at a spot.
    pub fn begins(&self) -> Option<&[usize]> {
        (self.after[..] == [0]).then_some(&self.before)
    }
    /// Calls `visit(position)` per run, in row-major order of the result.
    #[inline]
    pub fn runs(&self, spots: &[usize], mut visit: impl FnMut(usize)) {
        if let Some(begins) = self.begins() {
            return begins.iter().for_each(|begin| spots.iter().for_each(|spot| visit(begin + spot)));
        }
        for before in &self.before {
            for spot in spots {
                self.after.iter().for_each(|after| visit(before + spot + after));
            }
        }
    }
}

/// The selected elements.
pub struct Places {
    layout: Layout,
    spots: Vec<usize>,
}

impl Places {
    /// # Errors
    /// `E0202` where an index lies outside its axis, `E0201` where index arrays do not broadcast together.
    pub(super) fn new(shape: &[usize], axes: &[usize], idxs: &[Array]) -> Result<Places> {
        let layout = Layout::new(shape, axes, &idxs.iter().map(Array::shape).collect::<SmallVec<[&[usize]; 4]>>())?;
        let mut spots = memory::zeros(count(&layout.common));
        for (k, idx) in idxs.iter().enumerate() {
            let idx = spread(idx, &layout.common)?;
            for (spot, i) in spots.iter_mut().zip(integers(&idx)) {
                *spot += layout.step(k, i).ok_or_else(|| layout.outside(k, i))?;
            }
        }
        Ok(Places { layout, spots })
    }
    /// Extents of what is selected.
    pub(super) fn shape(&self) -> &Extents {
        &self.layout.shape
    }
    /// Elements in a row.
    pub(super) fn run(&self) -> usize {
        self.layout.run
    }
    /// Calls `visit(position)` per run, in row-major order of the result.
    pub(super) fn runs(&self, visit: impl FnMut(usize)) {
        self.layout.runs(&self.spots, visit);
    }
}

/// Positions of a region's runs and their length; with `whole = false` of its elements.
fn positions(region: &Region, whole: bool) -> (Vec<usize>, usize) {
    let (mut out, mut length) = (vec![], 1);
    region.runs(|at, run| {
        memory::reserve(&mut out, if whole { 1 } else { run });
        if whole {
            out.push(at);
            length = run;
        } else {
            out.extend(at..at + run);
        }
    });
    (out, length)
}

impl Gather {
    /// Of the extents of what is read from an array of so many axes: how many stand before those of the index, and the latter.
    pub(crate) fn layout<'a>(&self, rank: usize, shape: &'a [usize]) -> (usize, &'a [usize]) {
        let before = index_axis(&self.axes);
        (before, &shape[before..before + shape.len() + self.axes.len() - rank])
    }
}

impl OpDef for Gather {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        expect_count("gather", 1, true, ins)?;
        Ok(one(Type { dtype: ins[0].ty.dtype, dims: check("gather", &self.axes, &ins[0], &ins[1..])? }))
    }
    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let x = &ins[0];
        let places = Places::new(x.shape(), &self.axes, &ins[1..])?;
        Ok(one(dispatch!(x.dtype(), T => {
            let from = x.as_slice::<T>();
            let mut out: Vec<T> = memory::room(count(places.shape()));
            let mut going = Ok(());
            places.runs(|at| {
                if going.is_ok() {
                    out.extend_from_slice(&from[at..at + places.run()]);
                    going = cx.worked(8 * places.run());
                }
            });
            going?;
            Array::new(places.shape(), out)
        })))
    }
    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        Ok(g.written_back(GatherWrite { mode: Write::Inc, axes: self.axes.clone() }, site, cts[0]))
    }
    fn connected(&self, input: usize) -> bool {
        input == 0
    }
    fn can_fail(&self) -> bool {
        true
    }
    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        indexing::gather(self, b, ins)
    }
}

impl OpDef for GatherWrite {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        expect_count("gather_write", 2, true, ins)?;
        let dims = check("gather_write", &self.axes, &ins[0], &ins[2..])?;
        check_written("gather_write", &ins[0].ty, &ins[1].ty, &dims)?;
        Ok(one(ins[0].ty.clone()))
    }
    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let places = Places::new(ins[0].shape(), &self.axes, &ins[2..])?;
        let mut x = std::mem::replace(&mut ins[0], Array::scalar(false));
        let y = ins[1].cast(x.dtype());
        let y = spread(&y, places.shape())?;
        dispatch!(x.dtype(), T => {
            let (from, to) = (y.as_slice::<T>(), x.as_mut_slice::<T>());
            let mut rows = from.chunks_exact(places.run().max(1));
            places.runs(|at| {
                let row = rows.next().unwrap_or(&[]);
                write_run(&mut to[at..at + row.len()], row, self.mode);
            });
        });
        Ok(one(x))
    }
    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let mut out = vec![None; site.ins.len()];
        let Some(ct) = cts[0] else { return Ok(out) };
        let (y, idxs) = (site.ins[1], &site.ins[2..]);
        out[0] = Some(match self.mode {
            Write::Inc => ct,
            Write::Set => {
                let zero = g.number(g.ty(ct).dtype, 0.0);
                g.emit(self.clone(), &with(&[ct, zero], idxs))
            }
        });
        if g.ty(y).dtype.is_float() {
            let mut read = g.emit(Gather { axes: self.axes.clone() }, &with(&[ct], idxs));
            if self.mode == Write::Set && !distinct(g, idxs) {
                read = keep_last(g, &self.axes, read, ct, idxs);
            }
            out[1] = fit(g, read, y);
        }
        Ok(out)
    }
    fn connected(&self, input: usize) -> bool {
        input < 2
    }
    fn can_fail(&self) -> bool {
        true
    }
    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        indexing::gather_write(self, b, ins)
    }
}

fn with(first: &[Value], idxs: &[Value]) -> Vec<Value> {
    first.iter().chain(idxs).copied().collect()
}

/// True where no place can be named twice: scalars, or a constant vector of different positions.
fn distinct(g: &Graph, idxs: &[Value]) -> bool {
    if idxs.iter().all(|&v| g.ty(v).rank() == 0) {
        return true;
    }
    let [idx] = idxs else { return false };
    g.const_value(*idx).is_some_and(|a| {
        let mut values = integers(a);
        values.sort_unstable();
        values.first().is_none_or(|&least| least >= 0) && values.windows(2).all(|w| w[0] != w[1])
    })
}

/// What was read at the index, with 0 where a later write replaced the value: each write stamps its number on the places it
/// names, and a value has survived where its number is still there.
fn keep_last(g: &mut Graph, axes: &[usize], read: Value, x: Value, idxs: &[Value]) -> Value {
    let all: Vec<usize> = (0..axes.len()).collect();
    let zero = g.int(0);
    let dims: Vec<Value> = axes.iter().map(|&axis| g.dim(x, axis)).collect();
    let blank = g.emit(BroadcastTo {}, &with(&[zero], &dims));
    let spot = g.emit(Gather { axes: all.clone() }, &with(&[blank], idxs));
    let rank = g.ty(spot).rank();
    let n = (0..rank).fold(g.int(1), |n, k| {
        let dim = g.dim(spot, k);
        g.mul(n, dim)
    });
    let step = g.int(1);
    let numbers = g.emit(Arange {}, &[zero, n, step]);
    let numbers = g.reshape_like(numbers, spot);
    let stamped = g.emit(GatherWrite { mode: Write::Set, axes: all.clone() }, &with(&[blank, numbers], idxs));
    let there = g.emit(Gather { axes: all }, &with(&[stamped], idxs));
    let kept = g.emit(Op::Elem(ElemOp::Eq), &[there, numbers]);
    let end = index_axis(axes) + rank;
    let trailing: Vec<usize> = (rank..rank + g.ty(read).rank() - end).collect();
    let kept = g.expand(kept, &trailing);
    let zero = g.number(g.ty(read).dtype, 0.0);
    g.select(kept, read, zero)
}

impl OpDef for Nonzero {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        expect_count("nonzero", 1, false, ins)?;
        if ins[0].ty.rank() == 0 {
            bail!(Type, "E0222", "`nonzero` takes an array of at least one axis, got {}", ins[0].ty);
        }
        let found = Type::new(DType::I64, [Dim::fresh()]);
        Ok(ins[0].ty.dims.iter().map(|_| found.clone()).collect())
    }
    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let x = &ins[0];
        let found: Vec<usize> = dispatch!(x.dtype(), T => {
            memory::collect(x.as_slice::<T>().iter().enumerate().filter(|(_, v)| **v != T::default()).map(|(at, _)| at))
        });
        let along = |(stride, &n): (usize, &usize)| memory::collect(found.iter().map(|at| (at / stride % n) as i64));
        Ok(strides(x.shape()).into_iter().zip(x.shape()).map(|axis| Array::new(&[found.len()], along(axis))).collect())
    }
    fn vjp(&self, _: &mut Graph, _: &Site, _: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        Ok(vec![None])
    }
    fn connected(&self, _: usize) -> bool {
        false
    }
    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        b.row_by_row(self.clone(), ins)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    fn gather(axes: &[usize]) -> Gather {
        Gather { axes: axes.to_vec() }
    }
    fn write(mode: Write, axes: &[usize]) -> GatherWrite {
        GatherWrite { mode, axes: axes.to_vec() }
    }
    fn counting(shape: &[usize]) -> Array {
        Array::new(shape, (0..count(shape) as i64).collect())
    }
    fn ints(x: &[i64]) -> Array {
        Array::vector(x)
    }

    #[test]
    fn axes_go_where_numpy_puts_them() {
        let x = counting(&[2, 3, 4]);
        let adjacent = apply(gather(&[1, 2]), &[x.clone(), ints(&[2, -3]), Array::new(&[2, 1], vec![1u8, 3])]);
        assert_eq!(adjacent, Array::new(&[2, 2, 2], vec![9i64, 1, 11, 3, 21, 13, 23, 15]));
        let apart = apply(gather(&[0, 2]), &[x.clone(), ints(&[1, 0, 1]), ints(&[3, 0, -1])]);
        assert_eq!(apart, Array::new(&[3, 3], vec![15i64, 19, 23, 0, 4, 8, 15, 19, 23]));
        assert_eq!(apply(gather(&[1]), &[x.clone(), ints(&[])]).shape(), [2, 0, 4]);
        assert_eq!(apply(gather(&[1]), &[x.clone(), Array::scalar(2i8)]).to_i64_vec(), [8, 9, 10, 11, 20, 21, 22, 23]);
        let rows = apply(gather(&[0]), &[x, Array::new(&[1, 2], vec![1i64, 1])]);
        assert_eq!(rows.shape(), [1, 2, 3, 4]);
    }

    #[test]
    fn the_last_write_wins_and_additions_add_up() {
        let (x, i) = (Array::zeros(DType::F32, &[3]), ints(&[0, 2, 0, -1]));
        let y = ints(&[1, 2, 3, 4]);
        assert_eq!(apply(write(Write::Set, &[0]), &[x.clone(), y.clone(), i.clone()]).to_f64_vec(), [3., 0., 4.]);
        assert_eq!(apply(write(Write::Inc, &[0]), &[x.clone(), y, i]).to_f64_vec(), [4., 0., 6.]);
        let m = counting(&[2, 2, 2]);
        let apart = apply(write(Write::Inc, &[0, 2]), &[m, Array::new(&[1, 2], vec![100i64, 1000]), ints(&[1, 1]), ints(&[0, 0])]);
        assert_eq!(apart.to_i64_vec(), [0, 1, 2, 3, 204, 5, 2006, 7]);
        let none = apply(write(Write::Set, &[0]), &[x.clone(), Array::scalar(1i8), ints(&[])]);
        assert_eq!(none, x);
    }

    #[test]
    fn every_dtype_is_gathered_and_written() {
        for (dtype, ..) in crate::types::dtype::DTYPES {
            let x = ints(&[1, 0, 1]).cast(dtype);
            assert_eq!(apply(gather(&[0]), &[x.clone(), ints(&[1, 0])]), ints(&[0, 1]).cast(dtype));
            let set = apply(write(Write::Set, &[0]), &[x.clone(), Array::full(dtype, &[], 1.0), ints(&[1])]);
            assert_eq!(set, Array::full(dtype, &[3], 1.0));
            assert_eq!(apply(Nonzero {}, &[x]), ints(&[0, 2]));
        }
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let x = counting(&[2, 3]);
        let e = run_error(gather(&[1]), &[x.clone(), ints(&[0, 3])]);
        assert_eq!((e.code, e.title.as_str()), ("E0202", "index 3 is out of range for axis 1 with extent 3"));
        assert_eq!(run_error(gather(&[0, 1]), &[x.clone(), ints(&[0, 1]), ints(&[0, 1, 2])]).code, "E0201");
        assert_eq!(run_error(gather(&[0]), &[x.clone(), Array::vector(&[true, false])]).code, "E0222");
        assert_eq!(run_error(gather(&[2]), &[x.clone(), ints(&[0])]).code, "E0221");
        assert_eq!(run_error(write(Write::Set, &[0]), &[x.clone(), Array::scalar(0.5), ints(&[0])]).code, "E0207");
        let e = run_error(write(Write::Set, &[0]), &[x.clone(), ints(&[1, 2]), ints(&[0])]);
        assert_eq!((e.code, e.title.as_str()), ("E0201", "shape (2,) cannot be written into a place of shape (1, 3)"));
        assert_eq!(build_error(Nonzero {}, &[Array::scalar(1i64)]).code, "E0222");
    }

    #[test]
    fn nonzero_is_numpys() {
        let x = Array::new(&[2, 3], vec![0.0, f64::NAN, -0.0, 2.0, 0.0, 1.0]);
        let found = try_apply_all(Nonzero {}, &[x]).unwrap();
        assert_eq!(found, [ints(&[0, 1, 1]), ints(&[1, 0, 2])]);
        let none = try_apply_all(Nonzero {}, &[Array::zeros(DType::I8, &[0, 2])]).unwrap();
        assert_eq!(none, [ints(&[]), ints(&[])]);
    }

    #[test]
    fn gradients_match_differences() {
        let x = sample(&[2, 3, 4], 1);
        let cases: [(&[usize], Vec<Array>); 5] = [
            (&[0], vec![ints(&[1, 0, 1])]),
            (&[1], vec![Array::new(&[2, 2], vec![2i64, -1, 0, 2])]),
            (&[0, 2], vec![ints(&[1, -1, 1]), ints(&[3, -1, 0])]),
            (&[1, 2], vec![Array::new(&[2, 1], vec![0i64, -3]), ints(&[1, 1])]),
            (&[2], vec![Array::scalar(3i64)]),
        ];
        for (axes, idxs) in cases {
            let read: Vec<Array> = std::iter::once(x.clone()).chain(idxs.clone()).collect();
            let build = |g: &mut Graph, v: &[Value]| {
                let y = g.emit(gather(axes), v);
                g.mul(y, y)
            };
            check_vjp(build, &read);
            check_vjp2(build, &read);
            for mode in [Write::Set, Write::Inc] {
                for y in [sample(&[], 2), sample(apply(gather(axes), &read).shape(), 5)] {
                    let all: Vec<Array> = [x.clone(), y].into_iter().chain(idxs.clone()).collect();
                    let build = |g: &mut Graph, v: &[Value]| {
                        let out = g.emit(write(mode, axes), v);
                        g.mul(out, out)
                    };
                    check_vjp(build, &all);
                    check_vjp2(build, &all);
                }
            }
        }
    }
}
