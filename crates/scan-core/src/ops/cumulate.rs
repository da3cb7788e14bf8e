//! Cumulative sums and products, and the linear recurrence that is their gradient.

use super::sort::positions;
use super::support::{Lanes, Number, agree, check_axes, exactly, is_float, is_nan, none, one, slice_axis};
use crate::base::Result;
use crate::ir::op::*;
use crate::ir::{Graph, Value};
use crate::types::shape::tuple;
use crate::types::{Array, DType, Element, Type, memory};
use crate::{bail, dispatch};

/// From the first element to the last, one after the other; small ints and bool widen as in a sum.
impl OpDef for CumSum {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        infer("cumsum", self.axis, ins)
    }

    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let x = widened(&mut ins[0]);
        Ok(one(dispatch!(x.dtype(), T => cumulate::<T>(cx, x, self.axis, self.reverse, T::plus)?)))
    }

    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let (Some(ct), true) = (cts[0], is_float(g, site.ins[0])) else { return Ok(none(1)) };
        Ok(vec![Some(g.emit(CumSum { axis: self.axis, reverse: !self.reverse }, &[ct]))])
    }

    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        b.as_is(CumSum { axis: self.axis + 1, ..self.clone() }, ins)
    }
}

/// From the first element to the last, one after the other; small ints and bool widen as in a product.
impl OpDef for CumProd {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        infer("cumprod", self.axis, ins)
    }

    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let x = widened(&mut ins[0]);
        Ok(one(dispatch!(x.dtype(), T => cumulate::<T>(cx, x, self.axis, false, T::times)?)))
    }

    /// `dx[i] = Π_{j<i} x[j] · s[i]` with `s[i] = ct[i] + x[i+1]·s[i+1]`: no division, so zeros are right.
    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let x = site.ins[0];
        let (Some(ct), true) = (cts[0], is_float(g, x)) else { return Ok(none(1)) };
        let next = rolled(g, x, self.axis, true);
        let sums = g.emit(Recurrence { axis: self.axis, reverse: true }, &[next, ct]);
        let before = exclusive_products(g, x, self.axis);
        Ok(vec![Some(g.mul(before, sums))])
    }

    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        b.as_is(CumProd { axis: self.axis + 1 }, ins)
    }
}

/// The first of equal elements, or the first NaN.
impl OpDef for CumExtreme {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        let [x] = exactly("cumextreme", ins)?;
        check_axes("cumextreme", &[self.axis], &x.ty)?;
        Ok(one(x.ty.clone()))
    }

    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let (x, largest) = (&mut ins[0], self.kind == Extreme::Max);
        Ok(one(dispatch!(x.dtype(), T => along(cx, x, self.axis, false, |y: &mut [T], now, before| {
            if !beats(largest, y[now], y[before]) {
                y[now] = y[before];
            }
        })?)))
    }

    /// The cotangents go to where the extremes stand.
    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let x = site.ins[0];
        let (Some(ct), true) = (cts[0], is_float(g, x)) else { return Ok(none(1)) };
        let places = g.emit(ArgCumExtreme { kind: self.kind, axis: self.axis }, &[x]);
        let rank = g.ty(x).rank();
        let zeros = g.zeros_like(x);
        let mut ins = vec![zeros, ct];
        ins.extend((0..rank).map(|axis| if axis == self.axis { places } else { positions(g, x, axis) }));
        Ok(vec![Some(g.emit(GatherWrite { mode: Write::Inc, axes: (0..rank).collect() }, &ins))])
    }

    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        b.as_is(CumExtreme { axis: self.axis + 1, ..self.clone() }, ins)
    }
}

/// i64.
impl OpDef for ArgCumExtreme {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        let [x] = exactly("argcumextreme", ins)?;
        check_axes("argcumextreme", &[self.axis], &x.ty)?;
        Ok(one(x.ty.with_dtype(DType::I64)))
    }

    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let (x, largest) = (&ins[0], self.kind == Extreme::Max);
        let lanes = Lanes::along(x.shape(), self.axis);
        let mut out: Vec<i64> = memory::zeros(x.len());
        dispatch!(x.dtype(), T => {
            let x = x.as_slice::<T>();
            for start in lanes.starts() {
                let mut best = 0;
                for k in 1..lanes.n {
                    best = if beats(largest, x[start + k * lanes.step], x[start + best * lanes.step]) { k } else { best };
                    out[start + k * lanes.step] = best as i64;
                }
                cx.worked(lanes.n)?;
            }
        });
        Ok(one(Array::new(x.shape(), out)))
    }

    fn vjp(&self, _: &mut Graph, _: &Site, _: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        Ok(none(1))
    }

    fn connected(&self, _: usize) -> bool {
        false
    }

    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        b.as_is(ArgCumExtreme { axis: self.axis + 1, ..self.clone() }, ins)
    }
}

/// Whether a later element takes the place of the extreme so far; the first NaN does.
fn beats<T: Element>(largest: bool, new: T, best: T) -> bool {
    (if largest { new > best } else { new < best }) || is_nan(new) && !is_nan(best)
}

/// `y[t] = a[t]·y[t−1] + b[t]`, the y before the first being absent: `y[0] = b[0]`, whatever `a[0]`.
impl OpDef for Recurrence {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        let [a, b] = exactly("recurrence", ins)?;
        check_axes("recurrence", &[self.axis], &a.ty)?;
        let dims: Option<Vec<_>> = a.ty.dims.iter().zip(&b.ty.dims).map(|(a, b)| agree(b, a)).collect();
        match dims.filter(|_| a.ty.dtype == b.ty.dtype && a.ty.rank() == b.ty.rank()) {
            Some(dims) => Ok(one(Type::new(a.ty.dtype, dims))),
            None => bail!(Shape, "E0201", "`recurrence` takes two inputs of one type, got {} and {}", a.ty, b.ty),
        }
    }

    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let [a, b] = ins else { unreachable!("two inputs") };
        if a.shape() != b.shape() {
            bail!(Shape, "E0201", "`recurrence` takes two inputs of one shape, got {} and {}", tuple(a.shape()), tuple(b.shape()));
        }
        Ok(one(dispatch!(a.dtype(), T => {
            let a = a.as_slice::<T>();
            along(cx, b, self.axis, self.reverse, |y: &mut [T], now, before| y[now] = a[now].times(y[before]).plus(y[now]))?
        })))
    }

    /// The cotangent runs through the same recurrence the other way, with a moved by one.
    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let (a, y) = (site.ins[0], site.outs[0]);
        let (Some(ct), true) = (cts[0], is_float(g, a)) else { return Ok(none(2)) };
        let next = rolled(g, a, self.axis, !self.reverse);
        let ct_b = g.emit(Recurrence { axis: self.axis, reverse: !self.reverse }, &[next, ct]);
        let before = moved(g, y, self.axis, self.reverse, 0.0);
        Ok(vec![Some(g.mul(ct_b, before)), Some(ct_b)])
    }

    fn can_fail(&self) -> bool {
        true
    }

    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        b.all_rows(Recurrence { axis: self.axis + 1, ..self.clone() }, ins)
    }
}

fn infer(op: &str, axis: usize, ins: &[Arg]) -> Result<Outs<Type>> {
    let [x] = exactly(op, ins)?;
    check_axes(op, &[axis], &x.ty)?;
    Ok(one(x.ty.with_dtype(x.ty.dtype.accumulator())))
}

fn widened(x: &mut Array) -> &mut Array {
    if x.dtype() != x.dtype().accumulator() {
        *x = x.cast(x.dtype().accumulator());
    }
    x
}

fn cumulate<T: Number>(cx: &mut EvalCx, x: &mut Array, axis: usize, reverse: bool, op: impl Fn(T, T) -> T) -> Result<Array> {
    if axis + 1 < x.shape().len() || reverse {
        return along(cx, x, axis, reverse, |y: &mut [T], now, before| y[now] = op(y[before], y[now]));
    }
    let (n, mut y) = (x.shape()[axis], take(x));
    for lane in y.as_mut_slice::<T>().chunks_exact_mut(n.max(1)) {
        let Some((first, rest)) = lane.split_first_mut() else { continue };
        let mut sum = *first;
        for block in rest.chunks_mut(BLOCK) {
            for element in block.iter_mut() {
                sum = op(sum, *element);
                *element = sum;
            }
            cx.worked(block.len())?;
        }
    }
    Ok(y)
}

/// Elements between two looks at the clock.
const BLOCK: usize = 1 << 20;

/// Runs `step(elements, position, position before)` along an axis, in place where nothing else holds the buffer.
fn along<T: Number>(cx: &mut EvalCx, x: &mut Array, axis: usize, reverse: bool, step: impl Fn(&mut [T], usize, usize)) -> Result<Array> {
    let lanes = Lanes::along(x.shape(), axis);
    let mut y = take(x);
    let data = y.as_mut_slice::<T>();
    for start in lanes.starts() {
        let at = |k: usize| start + lanes.step * if reverse { lanes.n - 1 - k } else { k };
        cx.in_blocks(lanes.n, BLOCK, |ks| ks.filter(|&k| k > 0).for_each(|k| step(data, at(k), at(k - 1))))?;
        cx.worked(lanes.n)?;
    }
    Ok(y)
}

/// The array itself; its place holds an empty one.
fn take(x: &mut Array) -> Array {
    std::mem::replace(x, Array::scalar(false))
}

/// Products of the elements before each one along an axis.
pub(super) fn exclusive_products(g: &mut Graph, x: Value, axis: usize) -> Value {
    let products = g.emit(CumProd { axis }, &[x]);
    moved(g, products, axis, false, 1.0)
}

/// x moved by one along an axis: towards the end, or (`back`) towards the start; `fill` enters.
fn moved(g: &mut Graph, x: Value, axis: usize, back: bool, fill: f64) -> Value {
    let number = g.number(g.ty(x).dtype, fill);
    let edge = slice_axis(g, x, axis, None, Some(1));
    let edge = g.broadcast_like(number, edge);
    let rest = if back { slice_axis(g, x, axis, Some(1), None) } else { slice_axis(g, x, axis, None, Some(-1)) };
    let parts = if back { [rest, edge] } else { [edge, rest] };
    let joined = g.emit(Join { axis }, &parts);
    g.reshape_like(joined, x)
}

/// x moved by one along an axis; what leaves at one end enters at the other.
fn rolled(g: &mut Graph, x: Value, axis: usize, back: bool) -> Value {
    let cut = if back { 1 } else { -1 };
    let head = slice_axis(g, x, axis, None, Some(cut));
    let tail = slice_axis(g, x, axis, Some(cut), None);
    let joined = g.emit(Join { axis }, &[tail, head]);
    g.reshape_like(joined, x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::*;
    use crate::types::DType;

    fn matrix() -> Array {
        Array::new(&[2, 3], vec![1.0, -2.0, 3.0, 4.0, 5.0, -6.0])
    }

    #[test]
    fn values_are_numpys() {
        let x = matrix();
        let sum = |axis, reverse| apply(CumSum { axis, reverse }, &[x.clone()]).to_f64_vec();
        assert_eq!(sum(1, false), [1.0, -1.0, 2.0, 4.0, 9.0, 3.0]);
        assert_eq!(sum(1, true), [2.0, 1.0, 3.0, 3.0, -1.0, -6.0]);
        assert_eq!(sum(0, false), [1.0, -2.0, 3.0, 5.0, 3.0, -3.0]);
        assert_eq!(apply(CumProd { axis: 0 }, &[x.clone()]).to_f64_vec(), [1.0, -2.0, 3.0, 4.0, -10.0, -18.0]);
    }

    #[test]
    fn ints_widen_and_empty_stays_empty() {
        let x = Array::vector(&[100i8, 100, 100]);
        assert_eq!(apply(CumSum { axis: 0, reverse: false }, &[x.clone()]), Array::vector(&[100i64, 200, 300]));
        assert_eq!(apply(CumProd { axis: 0 }, &[x]), Array::vector(&[100i64, 10_000, 1_000_000]));
        assert_eq!(apply(CumSum { axis: 0, reverse: true }, &[Array::vector(&[true, true])]), Array::vector(&[2i64, 1]));
        let empty = Array::zeros(DType::U16, &[2, 0]);
        assert_eq!(apply(CumProd { axis: 1 }, &[empty]), Array::zeros(DType::U64, &[2, 0]));
        assert_eq!(build_error(CumProd { axis: 0 }, &[Array::scalar(1.0)]).code, "E0222");
    }

    #[test]
    fn recurrences_ignore_the_first_factor() {
        let (a, b) = (Array::vector(&[f64::NAN, 2.0, 0.5]), Array::vector(&[1.0, 10.0, 100.0]));
        assert_eq!(apply(Recurrence { axis: 0, reverse: false }, &[a.clone(), b.clone()]).to_f64_vec(), [1.0, 12.0, 106.0]);
        let a = Array::vector(&[3.0, 2.0, f64::NAN]);
        assert_eq!(apply(Recurrence { axis: 0, reverse: true }, &[a.clone(), b]).to_f64_vec(), [631.0, 210.0, 100.0]);
        let short = Array::vector(&[1.0]);
        assert_eq!(run_error(Recurrence { axis: 0, reverse: true }, &[a.clone(), short.clone()]).code, "E0201");
        assert_eq!(build_error(Recurrence { axis: 0, reverse: true }, &[a, short]).code, "E0201");
    }

    #[test]
    fn gradients_match_differences() {
        for axis in [0, 1] {
            for x in [matrix(), sample(&[3, 1], 2), sample(&[1, 0], 0), sample(&[0, 2], 0)] {
                check_vjp(|g, v| g.emit(CumSum { axis, reverse: axis == 0 }, v), &[x.clone()]);
                check_vjp(|g, v| g.emit(CumProd { axis }, v), &[x]);
            }
        }
    }

    #[test]
    fn products_with_zeros_have_gradients_of_any_order() {
        let x = Array::vector(&[2.0, 0.0, -3.0, 0.0, 1.5]);
        check_vjp(|g, v| g.emit(CumProd { axis: 0 }, v), &[x.clone()]);
        check_vjp2(|g, v| g.emit(CumProd { axis: 0 }, v), &[x]);
    }

    #[test]
    fn recurrences_have_gradients_of_any_order() {
        let ins = [sample(&[2, 3], 1), sample(&[2, 3], 2)];
        for (axis, reverse) in [(0, false), (1, true), (1, false)] {
            check_vjp(|g, v| g.emit(Recurrence { axis, reverse }, v), &ins);
            check_vjp2(|g, v| g.emit(Recurrence { axis, reverse }, v), &ins);
        }
    }
}
