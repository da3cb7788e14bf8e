//! logsumexp, softmax and log-softmax, each with its own stable gradient. Ints are taken as floats.

use super::reduce::{BLOCK, Pause, halved, keep_axes};
use super::support::{Lanes, check_axes, drop_axes, exactly, is_float, is_nan, lanes_over, none, one};
use crate::base::Result;
use crate::ir::batch::behind;
use crate::ir::op::*;
use crate::ir::{Graph, Value};
use crate::scalar::slices::{BESIDE, Slices};
use crate::scalar::{Host, Lanes as _};
use crate::types::{Array, DType, Dim, Extents, Type, memory};

/// `m + log Σ exp(x − m)` with m the maximum; −∞ for an empty axis or one that holds only −∞.
impl OpDef for LogSumExp {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        let [x] = exactly("logsumexp", ins)?;
        check_axes("logsumexp", &self.axes, &x.ty)?;
        Ok(one(Type::new(x.ty.dtype.to_float(), drop_axes(&x.ty.dims, &self.axes, self.keepdims.then(|| Dim::known(1))))))
    }

    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let shape: Extents = drop_axes(ins[0].shape(), &self.axes, self.keepdims.then_some(1)).collect();
        let (x, lanes) = lanes_over(&ins[0].cast(ins[0].dtype().to_float()), &self.axes);
        Ok(one(computed(cx, Of::LogSumExp, &x, lanes, &shape)?))
    }

    /// `ct · w` with the weights w, in f32 `ct / Σ w · w`. The sum is 1 but for the rounding of y, by which all weights are off alike: |y| times
    /// the precision at every step of a loop. In f64 that is no more than the rounding of x itself, and the sums would cost more than they mend.
    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let x = site.ins[0];
        let (Some(ct), true) = (cts[0], is_float(g, x)) else { return Ok(none(1)) };
        let ct = keep_axes(g, ct, &self.axes, self.keepdims);
        let y = keep_axes(g, site.outs[0], &self.axes, self.keepdims);
        let weight = weights(g, x, y);
        let share = if g.ty(x).dtype == DType::F64 {
            ct
        } else {
            let total = total(g, weight, y, &self.axes);
            g.div(ct, total)
        };
        Ok(vec![Some(g.mul(share, weight))])
    }

    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        b.as_is(LogSumExp { axes: behind(&self.axes), ..self.clone() }, ins)
    }
}

/// `exp(x − y)`, where the elements that equal y weigh 1, or 0 where y is −∞.
pub(crate) fn weights(g: &mut Graph, x: Value, y: Value) -> Value {
    let (zero, low) = (g.number(g.ty(x).dtype, 0.0), g.number(g.ty(x).dtype, f64::NEG_INFINITY));
    let (is_top, is_low, difference) = (g.eq(x, y), g.eq(y, low), g.sub(x, y));
    let top = g.select(is_low, low, zero);
    let exponent = g.select(is_top, top, difference);
    g.exp(exponent)
}

/// The sum of weights; 1 where y is −∞, and they are 0.
fn total(g: &mut Graph, weight: Value, y: Value, axes: &[usize]) -> Value {
    let (one, low) = (g.number(g.ty(weight).dtype, 1.0), g.number(g.ty(weight).dtype, f64::NEG_INFINITY));
    let (is_low, sum) = (g.eq(y, low), g.sum(weight, axes, true));
    g.select(is_low, one, sum)
}

/// `exp(x − m) / Σ exp(x − m)`; NaN where the axis holds +∞ or only −∞.
impl OpDef for Softmax {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        infer("softmax", self.axis, ins)
    }

    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        Ok(one(along(cx, Of::Softmax, &ins[0], self.axis)?))
    }

    /// `y · (ct − Σ ct·y)`.
    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let (Some(ct), true) = (cts[0], is_float(g, site.ins[0])) else { return Ok(none(1)) };
        let y = site.outs[0];
        let product = g.mul(ct, y);
        let sum = g.sum(product, &[self.axis], true);
        let centred = g.sub(ct, sum);
        Ok(vec![Some(g.mul(y, centred))])
    }

    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        b.as_is(Softmax { axis: self.axis + 1 }, ins)
    }
}

/// `x − logsumexp(x)`; NaN where the axis holds +∞ or only −∞.
impl OpDef for LogSoftmax {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        infer("log_softmax", self.axis, ins)
    }

    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        Ok(one(along(cx, Of::LogSoftmax, &ins[0], self.axis)?))
    }

    /// `ct − exp(y) · Σ ct`.
    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let (Some(ct), true) = (cts[0], is_float(g, site.ins[0])) else { return Ok(none(1)) };
        let sum = g.sum(ct, &[self.axis], true);
        let weight = g.exp(site.outs[0]);
        let share = g.mul(weight, sum);
        Ok(vec![Some(g.sub(ct, share))])
    }

    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        b.as_is(LogSoftmax { axis: self.axis + 1 }, ins)
    }
}

fn infer(op: &str, axis: usize, ins: &[Arg]) -> Result<Outs<Type>> {
    let [x] = exactly(op, ins)?;
    check_axes(op, &[axis], &x.ty)?;
    Ok(one(x.ty.with_dtype(x.ty.dtype.to_float())))
}

/// What is computed of a lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Of {
    /// One number.
    LogSumExp,
    /// As many as it has.
    Softmax,
    /// As many as it has.
    LogSoftmax,
}

fn along(cx: &mut EvalCx, of: Of, x: &Array, axis: usize) -> Result<Array> {
    let x = x.cast(x.dtype().to_float());
    computed(cx, of, &x, Lanes::along(x.shape(), axis), x.shape())
}

/// What is computed of the lanes of x, a float, as an array of this shape.
fn computed(cx: &mut EvalCx, of: Of, x: &Array, lanes: Lanes, shape: &[usize]) -> Result<Array> {
    let mut out = Array::zeros(x.dtype(), shape);
    let pause: Pause = &mut |work| cx.worked(work);
    match x.dtype() {
        DType::F32 => compute::<f32>(of, lanes, x.as_slice(), out.as_mut_slice(), &mut Scratch::default(), pause)?,
        _ => compute::<f64>(of, lanes, x.as_slice(), out.as_mut_slice(), &mut Scratch::default(), pause)?,
    }
    Ok(out)
}

/// Memory to be used again.
#[derive(Default, Debug)]
pub(crate) struct Scratch {
    narrow: Vec<f32>,
    wide: Vec<f64>,
}

/// Floats, of which exponentials along an axis are made.
pub(crate) trait Exponents: Slices {
    /// So many elements of scratch.
    fn room(scratch: &mut Scratch, n: usize) -> &mut [Self];
    /// `log(x)`
    fn log(self) -> Self;
    /// Neither infinite nor NaN.
    fn is_finite(self) -> bool;
}

macro_rules! exponents {
    ($($t:ident $own:ident),+) => {$(
        impl Exponents for $t {
            fn room(scratch: &mut Scratch, n: usize) -> &mut [$t] {
                memory::resize(&mut scratch.$own, n, 0.0);
                &mut scratch.$own[..n]
            }
            fn log(self) -> $t {
                Host::<$t>::CX.log(self)
            }
            fn is_finite(self) -> bool {
                $t::is_finite(self)
            }
        }
    )+};
}

exponents!(f32 narrow, f64 wide);

/// As [`Of`] says, lane by lane in the dtype of the elements. With the maximum m of the numbers of a lane the sum `Σ exp(x − m)` is taken in the order of
/// every sum.
///
/// # Errors
/// An interruption.
pub(crate) fn compute<T: Exponents>(of: Of, lanes: Lanes, x: &[T], out: &mut [T], scratch: &mut Scratch, pause: Pause) -> Result<()> {
    match lanes.n {
        1..=SHORT if lanes.count() > 1 => compute_beside(of, lanes, x, out, scratch, pause),
        _ => compute_one_by_one(of, lanes, x, out, scratch, pause),
    }
}

fn compute_one_by_one<T: Exponents>(of: Of, lanes: Lanes, x: &[T], out: &mut [T], scratch: &mut Scratch, pause: Pause) -> Result<()> {
    let n = lanes.n;
    let (own, powers) = T::room(scratch, 2 * n).split_at_mut(n);
    for (at, start) in lanes.starts().enumerate() {
        pause(COSTLY * n)?;
        let place = |k: usize| start + k * lanes.step;
        own.iter_mut().enumerate().for_each(|(k, own)| *own = x[place(k)]);
        let m = T::largest(own);
        T::exp_of_differences(own, m, powers);
        let sum = sum(powers);
        match of {
            Of::LogSumExp => {
                out[at] = log_of_sum(m, sum, own);
                continue;
            }
            Of::Softmax => T::quotients_by(powers, sum),
            Of::LogSoftmax => {
                let log = sum.log();
                powers.iter_mut().zip(&*own).for_each(|(out, &x)| *out = (x - m) - log);
            }
        }
        match lanes.step {
            1 => out[start..start + n].copy_from_slice(powers),
            _ => powers.iter().enumerate().for_each(|(k, x)| out[place(k)] = *x),
        }
    }
    Ok(())
}

/// As [`compute_one_by_one`], of many lanes at a time whose elements are put side by side: vectors then hold elements of several lanes.
fn compute_beside<T: Exponents>(of: Of, lanes: Lanes, x: &[T], out: &mut [T], scratch: &mut Scratch, pause: Pause) -> Result<()> {
    let together = (NEAR / lanes.n).clamp(8, BESIDE) / 8 * 8;
    let room = T::room(scratch, 2 * lanes.n * together);
    for first in (0..lanes.count()).step_by(together) {
        let count = together.min(lanes.count() - first);
        pause(COSTLY * lanes.n * count)?;
        let width = count.next_multiple_of(8);
        let (own, powers) = room[..2 * lanes.n * width].split_at_mut(lanes.n * width);
        Block { lanes, first, count, width }.compute(of, x, own, powers, out);
    }
    Ok(())
}

/// Some lanes that are computed side by side.
struct Block {
    lanes: Lanes,
    first: usize,
    count: usize,
    /// As many, with others that hold zeros, as fill whole vectors.
    width: usize,
}

impl Block {
    fn compute<T: Exponents>(&self, of: Of, x: &[T], own: &mut [T], powers: &mut [T], out: &mut [T]) {
        if self.width != self.count {
            own.chunks_exact_mut(self.width).for_each(|row| row[self.count..].fill(T::default()));
        }
        self.each(|lane, count, start| self.gather(&x[start..], own, lane, count));
        let (mut tops, mut sums) = ([T::default(); BESIDE], [T::default(); BESIDE]);
        let (tops, sums) = (&mut tops[..self.width], &mut sums[..self.width]);
        T::powers_beside(own, tops, powers, sums);
        match of {
            Of::LogSumExp => return logs(tops, sums, own, &mut out[self.first..self.first + self.count]),
            Of::Softmax => T::quotients_beside(powers, sums),
            Of::LogSoftmax => {
                T::logs(sums);
                T::differences_beside(own, tops, sums);
            }
        }
        let from = if of == Of::Softmax { powers } else { own };
        self.each(|lane, count, start| self.scatter(from, &mut out[start..], lane, count));
    }

    /// The first of some lanes that begin side by side, as counted in the block, how many they are, and where the first of them begins.
    fn each(&self, mut f: impl FnMut(usize, usize, usize)) {
        let Lanes { n, step, .. } = self.lanes;
        if step == 1 {
            return f(0, self.count, self.first * n);
        }
        let mut lane = 0;
        while lane < self.count {
            let (outer, inner) = ((self.first + lane) / step, (self.first + lane) % step);
            let count = (step - inner).min(self.count - lane);
            f(lane, count, outer * n * step + inner);
            lane += count;
        }
    }

    fn gather<T: Exponents>(&self, x: &[T], own: &mut [T], lane: usize, count: usize) {
        let Lanes { n, step, .. } = self.lanes;
        for (k, row) in own.chunks_exact_mut(self.width).enumerate() {
            let row = &mut row[lane..lane + count];
            match step {
                1 => row.iter_mut().zip(x[k..].iter().step_by(n)).for_each(|(own, x)| *own = *x),
                _ => row.iter_mut().zip(&x[k * step..]).for_each(|(own, x)| *own = *x),
            }
        }
    }

    fn scatter<T: Exponents>(&self, from: &[T], out: &mut [T], lane: usize, count: usize) {
        let Lanes { n, step, .. } = self.lanes;
        for (k, row) in from.chunks_exact(self.width).enumerate() {
            let row = &row[lane..lane + count];
            match step {
                1 => out[k..].iter_mut().step_by(n).zip(row).for_each(|(out, x)| *out = *x),
                _ => out[k * step..].iter_mut().zip(row).for_each(|(out, x)| *out = *x),
            }
        }
    }
}

fn logs<T: Exponents>(tops: &[T], sums: &mut [T], own: &[T], out: &mut [T]) {
    T::logs(sums);
    for (l, (out, (m, log))) in out.iter_mut().zip(tops.iter().zip(sums)).enumerate() {
        let lane = own[l..].iter().step_by(tops.len());
        *out = if m.is_finite() { *m + *log } else { without_sum(*m, lane) };
    }
}

/// So many elements lie side by side at a time, or those of eight lanes: they and their powers stay near the processor.
const NEAR: usize = 1024;

/// Lanes of at most so many elements are computed side by side: longer ones fill vectors alone.
const SHORT: usize = 48;

/// What an element takes, in simple operations.
const COSTLY: usize = 8;

/// In the order of every sum.
fn sum<T: Exponents>(x: &[T]) -> T {
    if x.len() <= BLOCK {
        return T::sum(x);
    }
    let (first, second) = x.split_at(halved(0, x.len()));
    sum(first) + sum(second)
}

fn log_of_sum<T: Exponents>(m: T, sum: T, x: &[T]) -> T {
    if m.is_finite() { m + sum.log() } else { without_sum(m, x.iter()) }
}

/// The result where the maximum is not finite: the first NaN, else that.
fn without_sum<'a, T: Exponents>(m: T, mut x: impl Iterator<Item = &'a T>) -> T {
    x.find(|x| is_nan(**x)).copied().unwrap_or(m)
}

/// `log Σ exp(x)`; `powers` is as long as x and overwritten.
pub(super) fn log_sum_exp(x: &[f64], powers: &mut [f64]) -> f64 {
    let m = f64::largest(x);
    f64::exp_of_differences(x, m, powers);
    log_of_sum(m, sum(powers), x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::*;

    fn logits() -> Array {
        Array::new(&[2, 3], vec![1.0, 2.0, 3.0, 0.5, -1.0, 700.0])
    }

    fn over(axes: &[usize], keepdims: bool) -> LogSumExp {
        LogSumExp { axes: axes.to_vec(), keepdims }
    }

    #[test]
    fn values_are_numpys() {
        let y = apply(over(&[1], false), &[logits()]);
        assert_close(&y.to_f64_vec(), &[3.407_605_964_444_380_6, 700.0], 1e-15, "logsumexp");
        assert_eq!(apply(over(&[0, 1], true), &[logits()]), Array::new(&[1, 1], vec![700.0]));
        let p = [0.090_030_573_170_380_46, 0.244_728_471_054_797_64, 0.665_240_955_774_821_8, 1.625_585_843_991_985_6e-304, 0.0, 1.0];
        assert_close(&apply(Softmax { axis: 1 }, &[logits()]).to_f64_vec(), &p, 1e-15, "softmax");
        let log = [-2.407_605_964_444_38, -1.407_605_964_444_380_4, -0.407_605_964_444_380_46, -699.5, -701.0, 0.0];
        assert_close(&apply(LogSoftmax { axis: 1 }, &[logits()]).to_f64_vec(), &log, 1e-15, "log_softmax");
    }

    #[test]
    fn other_dtypes_and_empty_axes() {
        let x = Array::vector(&[0i32, 0]);
        assert_eq!(apply(over(&[0], false), &[x.clone()]), Array::scalar(2f64.ln()));
        assert_eq!(apply(Softmax { axis: 0 }, &[x]), Array::vector(&[0.5, 0.5]));
        assert_eq!(apply(Softmax { axis: 0 }, &[Array::vector(&[1f32])]), Array::vector(&[1f32]));
        let empty = Array::zeros(DType::F32, &[2, 0]);
        assert_eq!(apply(over(&[1], false), &[empty.clone()]), Array::full(DType::F32, &[2], f64::NEG_INFINITY));
        assert_eq!(apply(Softmax { axis: 1 }, &[empty.clone()]), empty);
        assert_eq!(apply(LogSoftmax { axis: 0 }, &[empty.clone()]), empty);
    }

    #[test]
    fn bits_of_a_lane_do_not_depend_on_those_beside_it() {
        let (rows, n) = (70, 11);
        let x: Vec<f64> = sample(&[rows, n], 6).to_f64_vec();
        for of in [Of::LogSumExp, Of::Softmax, Of::LogSoftmax] {
            let per_row = if of == Of::LogSumExp { 1 } else { n };
            let (mut all, mut alone) = (vec![0.0; rows * per_row], vec![0.0; rows * per_row]);
            let of_all = compute(of, Lanes::along(&[rows, n], 1), &x, &mut all, &mut Scratch::default(), &mut |_| Ok(()));
            let of_each = x.chunks(n).zip(alone.chunks_mut(per_row));
            assert!(of_all.is_ok());
            of_each.for_each(|(x, out)| compute(of, Lanes::along(&[n], 0), x, out, &mut Scratch::default(), &mut |_| Ok(())).unwrap());
            assert_eq!(all, alone);
        }
    }

    #[test]
    fn float32_is_right_to_a_few_units_in_the_last_place() {
        for n in [1, 3, 16, 47, 300, 5000] {
            let wide = sample(&[3, n], 8);
            let narrow = wide.cast(DType::F32);
            let exact = |op: Softmax| apply(op, &[narrow.cast(DType::F64)]).to_f64_vec();
            assert_close(&apply(Softmax { axis: 1 }, &[narrow.clone()]).to_f64_vec(), &exact(Softmax { axis: 1 }), 5e-7, "softmax");
            let sums = apply(over(&[1], false), &[narrow.cast(DType::F64)]).to_f64_vec();
            assert_close(&apply(over(&[1], false), &[narrow]).to_f64_vec(), &sums, 5e-7, "logsumexp");
        }
    }

    #[test]
    fn infinities_and_nan() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        let x = Array::new(&[5, 2], vec![-inf, -inf, inf, 1.0, nan, 1.0, -inf, 2.0, inf, nan]);
        assert_close(&apply(over(&[1], false), &[x]).to_f64_vec(), &[-inf, inf, nan, 2.0, nan], 0.0, "logsumexp");
    }

    #[test]
    fn gradients_at_infinity_are_not_nan() {
        let inf = f64::INFINITY;
        let ins = [Array::new(&[3, 2], vec![-inf, -inf, inf, 1.0, -inf, 2.0]), Array::vector(&[1.0, 2.0, 3.0])];
        let (mut g, v) = graph_of(&ins, false);
        let y = g.emit(over(&[1], false), &v[..1]);
        let first = vjp_of(&mut g, y, v[1], &v[..1]).unwrap()[0].unwrap();
        let ones = g.ones_like(v[0]);
        let second = vjp_of(&mut g, first, ones, &v[..1]).unwrap()[0].unwrap();
        let values = eval_graph(&g, &ins, &[first, second]).unwrap();
        assert_eq!(values[0].to_f64_vec(), [0.0, 0.0, 2.0, 0.0, 0.0, 3.0]);
        assert!(values[1].to_f64_vec().iter().all(|x| *x == 0.0), "{:?}", values[1]);
    }

    #[test]
    fn gradients_match_differences() {
        for shape in [&[2, 3][..], &[3, 1], &[0, 2], &[2, 0]] {
            for axis in [0, 1] {
                let x = sample(shape, 4);
                check_vjp(|g, v| g.emit(over(&[axis], axis == 0), v), &[x.clone()]);
                check_vjp(|g, v| g.emit(Softmax { axis }, v), &[x.clone()]);
                check_vjp(|g, v| g.emit(LogSoftmax { axis }, v), &[x]);
            }
        }
        check_vjp(|g, v| g.emit(over(&[0, 2], false), v), &[sample(&[2, 2, 3], 4)]);
    }

    #[test]
    fn second_order() {
        let x = sample(&[2, 3], 5);
        check_vjp2(|g, v| g.emit(over(&[1], false), v), &[x.clone()]);
        check_vjp2(|g, v| g.emit(Softmax { axis: 1 }, v), &[x.clone()]);
        check_vjp2(|g, v| g.emit(LogSoftmax { axis: 0 }, v), &[x]);
    }
}
