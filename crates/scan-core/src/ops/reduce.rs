//! Reductions.

use super::cumulate::exclusive_products;
use super::extreme::extreme_vjp;
use super::support::{Lane, Lanes, Number, check_axes, drop_axes, exactly, is_float, is_nan, lanes_over, none, one, per_lane};
use crate::base::Result;
use crate::ir::op::*;
use crate::ir::{Graph, Value};
use crate::types::shape::tuple;
use crate::types::{Array, DType, Dim, Element, Extents, Type};
use crate::{bail, dispatch};

/// Sum and product give the accumulator dtype, any and all bool, max and min the dtype of x. An empty sum is 0, an empty
/// product 1; the extreme of an empty axis is `E0203`.
impl OpDef for Reduce {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        let [x] = exactly("reduce", ins)?;
        check_axes("reduce", &self.axes, &x.ty)?;
        let dtype = match self.kind {
            ReduceKind::Sum | ReduceKind::Prod => x.ty.dtype.accumulator(),
            ReduceKind::Any | ReduceKind::All => DType::Bool,
            ReduceKind::Max | ReduceKind::Min => x.ty.dtype,
        };
        if self.axes.iter().any(|&axis| x.ty.dims[axis].value() == Some(0)) {
            self.check_not_empty(&x.ty.to_string())?;
        }
        Ok(one(Type::new(dtype, drop_axes(&x.ty.dims, &self.axes, self.keepdims.then(|| Dim::known(1))))))
    }

    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let x = &ins[0];
        let shape: Extents = drop_axes(x.shape(), &self.axes, self.keepdims.then_some(1)).collect();
        let (x, lanes) = lanes_over(x, &self.axes);
        if lanes.n == 0 {
            self.check_not_empty(&tuple(ins[0].shape()))?;
        }
        Ok(one(match self.kind {
            ReduceKind::Sum | ReduceKind::Prod => reduced(self.kind, &x.cast(x.dtype().accumulator()), lanes, &shape),
            ReduceKind::Any => per_lane(&x.cast(DType::Bool), lanes, &shape, |lane: Lane<bool>| lane.iter().any(|b| b)),
            ReduceKind::All => per_lane(&x.cast(DType::Bool), lanes, &shape, |lane: Lane<bool>| lane.iter().all(|b| b)),
            ReduceKind::Max | ReduceKind::Min => reduced(self.kind, &x, lanes, &shape),
        }))
    }

    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let x = site.ins[0];
        let (Some(ct), true) = (cts[0], is_float(g, x)) else { return Ok(none(1)) };
        let ct = keep_axes(g, ct, &self.axes, self.keepdims);
        Ok(vec![match self.kind {
            ReduceKind::Sum => Some(g.broadcast_like(ct, x)),
            ReduceKind::Prod => Some(prod_vjp(g, x, ct, &self.axes)),
            ReduceKind::Max => Some(extreme_vjp(g, x, Extreme::Max, &self.axes, ct)),
            ReduceKind::Min => Some(extreme_vjp(g, x, Extreme::Min, &self.axes, ct)),
            ReduceKind::Any | ReduceKind::All => None,
        }])
    }

    fn can_fail(&self) -> bool {
        matches!(self.kind, ReduceKind::Max | ReduceKind::Min)
    }
}

impl Reduce {
    fn check_not_empty(&self, shape: &str) -> Result<()> {
        let word = match self.kind {
            ReduceKind::Max => "max",
            ReduceKind::Min => "min",
            _ => return Ok(()),
        };
        bail!(Value, "E0203", "{word} over axes {:?} of {shape}: there are no elements", self.axes)
    }
}

/// i64; ties go to the first, and the first NaN wins. An empty axis is `E0203`.
impl OpDef for ArgReduce {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        let [x] = exactly("argreduce", ins)?;
        check_axes("argreduce", &[self.axis], &x.ty)?;
        if x.ty.dims[self.axis].value() == Some(0) {
            return self.empty(&x.ty.to_string());
        }
        Ok(one(Type::new(DType::I64, drop_axes(&x.ty.dims, &[self.axis], None))))
    }

    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let x = &ins[0];
        let lanes = Lanes::along(x.shape(), self.axis);
        if lanes.n == 0 {
            return self.empty(&tuple(x.shape()));
        }
        let shape: Extents = drop_axes(x.shape(), &[self.axis], None).collect();
        Ok(one(dispatch!(x.dtype(), T => per_lane(x, lanes, &shape, |lane: Lane<T>| extreme(lane, self.kind) as i64))))
    }

    fn vjp(&self, _: &mut Graph, _: &Site, _: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        Ok(none(1))
    }

    fn connected(&self, _: usize) -> bool {
        false
    }

    fn can_fail(&self) -> bool {
        true
    }
}

impl ArgReduce {
    fn empty<T>(&self, shape: &str) -> Result<T> {
        let word = match self.kind {
            Extreme::Max => "argmax",
            Extreme::Min => "argmin",
        };
        bail!(Value, "E0203", "{word} along axis {} of {shape}: there are no elements", self.axis)
    }
}

/// Lanes up to this length are summed as eight strided partials; longer ones are halved.
const BLOCK: usize = 256;

/// A lane folded in one fixed order, whose rounding error grows with the logarithm of a long lane's length: up to
/// [`BLOCK`] elements as eight strided partials (`k mod 8`), then a tree over the partials; longer lanes in two parts,
/// the first a multiple of [`BLOCK`].
pub(super) fn fold<T: Element>(lane: Lane<T>, lo: usize, hi: usize, unit: T, op: impl Fn(T, T) -> T + Copy) -> T {
    if hi - lo > BLOCK {
        let mid = lo + (hi - lo).div_ceil(2).next_multiple_of(BLOCK);
        return op(fold(lane, lo, mid, unit, op), fold(lane, mid, hi, unit, op));
    }
    let mut part = [unit; 8];
    match lane.slice(lo, hi) {
        Some(x) => {
            let (eights, rest) = x.as_chunks::<8>();
            eights.iter().for_each(|x| part.iter_mut().zip(x).for_each(|(p, &x)| *p = op(*p, x)));
            part.iter_mut().zip(rest).for_each(|(p, &x)| *p = op(*p, x));
        }
        None => (lo..hi).for_each(|k| part[(k - lo) % 8] = op(part[(k - lo) % 8], lane.get(k))),
    }
    tree(part, op)
}

/// Eight partial results as one.
fn tree<T>([a, b, c, d, e, f, g, h]: [T; 8], op: impl Fn(T, T) -> T) -> T {
    op(op(op(a, e), op(c, g)), op(op(b, f), op(d, h)))
}

/// Lanes that lie side by side are folded so many at a time.
const BESIDE: usize = 64;

/// As [`fold`], for each of the lanes whose elements `k` lie side by side, `step` after those before, from the first of `x` on.
fn fold_beside<T: Element>(x: &[T], step: usize, [lo, hi]: [usize; 2], unit: T, op: impl Fn(T, T) -> T + Copy, out: &mut [T]) {
    if hi - lo > BLOCK {
        let mid = lo + (hi - lo).div_ceil(2).next_multiple_of(BLOCK);
        let mut second = [unit; BESIDE];
        fold_beside(x, step, [lo, mid], unit, op, out);
        fold_beside(x, step, [mid, hi], unit, op, &mut second[..out.len()]);
        return out.iter_mut().zip(second).for_each(|(out, x)| *out = op(*out, x));
    }
    let mut part = [[unit; BESIDE]; 8];
    for k in lo..hi {
        let row = &x[k * step..k * step + out.len()];
        part[(k - lo) % 8].iter_mut().zip(row).for_each(|(p, &x)| *p = op(*p, x));
    }
    for (l, out) in out.iter_mut().enumerate() {
        *out = tree(part.each_ref().map(|p| p[l]), op);
    }
}

/// Every lane folded into its element of `out`.
fn fold_all<T: Element>(x: &[T], lanes: Lanes, unit: T, op: impl Fn(T, T) -> T + Copy, out: &mut [T]) {
    if lanes.n == 0 {
        return out.fill(unit);
    }
    // Few elements are not worth clearing the sums of so many lanes.
    if lanes.step <= 1 || lanes.n * lanes.step.min(BESIDE) < 8 * BESIDE {
        let lane = |start| Lane::new(x, lanes, start);
        return out.iter_mut().zip(lanes.starts()).for_each(|(out, start)| *out = fold(lane(start), 0, lanes.n, unit, op));
    }
    for (o, out) in out.chunks_mut(lanes.step).enumerate() {
        let x = &x[o * lanes.n * lanes.step..];
        for (i, out) in out.chunks_mut(BESIDE).enumerate() {
            fold_beside(&x[i * BESIDE..], lanes.step, [0, lanes.n], unit, op, out);
        }
    }
}

/// Lanes reduced into `out`; extremes only of lanes that are not empty.
pub(crate) fn compute<T: Number>(kind: ReduceKind, lanes: Lanes, x: &[T], out: &mut [T]) {
    match kind {
        ReduceKind::Prod => fold_all(x, lanes, T::ONE, T::times, out),
        ReduceKind::Max => best_of(x, lanes, |new, old| new > old, out),
        ReduceKind::Min => best_of(x, lanes, |new, old| new < old, out),
        _ => fold_all(x, lanes, T::ZERO, T::plus, out),
    }
}

/// [`compute`], as an array of this shape.
pub(super) fn reduced(kind: ReduceKind, x: &Array, lanes: Lanes, shape: &[usize]) -> Array {
    dispatch!(x.dtype(), T => {
        let mut out = Array::dirty(x.dtype(), shape);
        compute(kind, lanes, x.as_slice::<T>(), out.as_mut_slice::<T>());
        out
    })
}

/// The extreme of every lane: the first of equal ones, or the first NaN.
fn best_of<T: Number>(x: &[T], lanes: Lanes, beats: impl Fn(T, T) -> bool + Copy, out: &mut [T]) {
    let wins = or_nan(beats);
    if lanes.step > 1 {
        for (out, x) in out.chunks_mut(lanes.step).zip(x.chunks(lanes.n * lanes.step)) {
            let mut rows = x.chunks(lanes.step);
            rows.next().into_iter().for_each(|first| out.copy_from_slice(first));
            rows.for_each(|row| out.iter_mut().zip(row).for_each(|(out, &x)| *out = if wins(x, *out) { x } else { *out }));
        }
        return;
    }
    let keep = |old: T, new: T| if beats(new, old) { new } else { old };
    for (out, start) in out.iter_mut().zip(lanes.starts()) {
        let x = &x[start..start + lanes.n];
        let best = fold(Lane::new(x, lanes, 0), 0, lanes.n, x[0], keep);
        // Equal zeros may differ in their signs, and NaNs in their bits: the first counts.
        *out = match T::DTYPE.is_float() {
            true if x.iter().fold(false, |any, &x| any | is_nan(x)) => x.iter().copied().find(|&x| is_nan(x)).unwrap_or(best),
            true if best == T::ZERO => x.iter().copied().find(|&x| x == best).unwrap_or(best),
            _ => best,
        };
    }
}

/// x summed over sorted `axes` in its own dtype (bool: any), as an array of this shape.
pub(super) fn sum_axes(x: &Array, axes: &[usize], shape: &[usize]) -> Array {
    let (x, lanes) = lanes_over(x, axes);
    reduced(ReduceKind::Sum, &x, lanes, shape)
}

/// Whether a later element takes the place of the best so far; a NaN beats numbers.
fn or_nan<T: Element>(beats: impl Fn(T, T) -> bool + Copy) -> impl Fn(T, T) -> bool + Copy {
    move |new, old| beats(new, old) || (is_nan(new) && !is_nan(old))
}

/// Position of the first extreme of a lane that is not empty; the first NaN wins.
fn extreme<T: Element>(lane: Lane<T>, kind: Extreme) -> usize {
    match kind {
        Extreme::Max => first_of(lane, or_nan(|new, old| new > old)),
        Extreme::Min => first_of(lane, or_nan(|new, old| new < old)),
    }
}

fn first_of<T: Element>(lane: Lane<T>, wins: impl Fn(T, T) -> bool) -> usize {
    (1..lane.n).fold(0, |best, k| if wins(lane.get(k), lane.get(best)) { k } else { best })
}

/// A reduced value with the reduced axes as extents 1.
pub(super) fn keep_axes(g: &mut Graph, y: Value, axes: &[usize], keepdims: bool) -> Value {
    if keepdims { y } else { g.expand(y, axes) }
}

/// The cotangent of x for y = Π x: one axis after the other, each by the products of all *other* elements, without a
/// division, so that zeros are right. `ct` has extent 1 on the axes.
fn prod_vjp(g: &mut Graph, x: Value, ct: Value, axes: &[usize]) -> Value {
    let Some((&axis, rest)) = axes.split_first() else { return ct };
    let inner = g.emit(Reduce { kind: ReduceKind::Prod, axes: vec![axis], keepdims: true }, &[x]);
    let ct = prod_vjp(g, inner, ct, rest);
    let left = exclusive_products(g, x, axis);
    let flipped = g.emit(Flip { axis }, &[x]);
    let right = exclusive_products(g, flipped, axis);
    let right = g.emit(Flip { axis }, &[right]);
    let others = g.mul(left, right);
    g.mul(ct, others)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::*;
    use ReduceKind::*;

    fn reduce(kind: ReduceKind, axes: &[usize], keepdims: bool) -> Reduce {
        Reduce { kind, axes: axes.to_vec(), keepdims }
    }

    fn matrix() -> Array {
        Array::new(&[2, 3], vec![1.0, -2.0, 3.0, 4.0, 5.0, -6.0])
    }

    #[test]
    fn values_are_numpys() {
        let x = matrix();
        assert_eq!(apply(reduce(Sum, &[1], false), &[x.clone()]), Array::vector(&[2.0, 3.0]));
        assert_eq!(apply(reduce(Prod, &[0], false), &[x.clone()]), Array::vector(&[4.0, -10.0, -18.0]));
        assert_eq!(apply(reduce(Max, &[0], true), &[x.clone()]), Array::new(&[1, 3], vec![4.0, 5.0, 3.0]));
        assert_eq!(apply(reduce(Min, &[0, 1], false), &[x.clone()]), Array::scalar(-6.0));
        assert_eq!(apply(reduce(Sum, &[], false), &[x.clone()]), x);
        let t = Array::new(&[2, 3, 4], (0..24).map(f64::from).collect());
        assert_eq!(apply(reduce(Sum, &[0, 2], false), &[t.clone()]), Array::vector(&[60.0, 92.0, 124.0]));
        assert_eq!(apply(reduce(Sum, &[0, 2], true), &[t]).shape(), [1, 3, 1]);
    }

    #[test]
    fn small_ints_and_bools_widen() {
        assert_eq!(apply(reduce(Sum, &[0], false), &[Array::vector(&[200u8, 100])]), Array::scalar(300u64));
        assert_eq!(apply(reduce(Prod, &[0], false), &[Array::vector(&[100i8, 100])]), Array::scalar(10000i64));
        assert_eq!(apply(reduce(Sum, &[0], false), &[Array::vector(&[true, true])]), Array::scalar(2i64));
        assert_eq!(apply(reduce(Sum, &[0], false), &[Array::vector(&[i64::MAX, 1])]), Array::scalar(i64::MIN));
        assert_eq!(apply(reduce(Max, &[0], false), &[Array::vector(&[3u8, 250])]), Array::scalar(250u8));
        assert_eq!(apply(reduce(Max, &[0], false), &[Array::vector(&[false, true])]), Array::scalar(true));
        assert_eq!(apply(reduce(Any, &[0], false), &[Array::vector(&[0.0, f64::NAN])]), Array::scalar(true));
        assert_eq!(apply(reduce(All, &[0], false), &[Array::vector(&[1i32, 0])]), Array::scalar(false));
    }

    #[test]
    fn empty_axes() {
        let x = Array::zeros(DType::F32, &[0, 3]);
        assert_eq!(apply(reduce(Sum, &[0], false), &[x.clone()]), Array::zeros(DType::F32, &[3]));
        assert_eq!(apply(reduce(Prod, &[0], true), &[x.clone()]), Array::full(DType::F32, &[1, 3], 1.0));
        assert_eq!(apply(reduce(All, &[0, 1], false), &[x.clone()]), Array::scalar(true));
        assert_eq!(apply(reduce(Max, &[1], false), &[x.clone()]).shape(), [0]);
        let argmax = |axis| ArgReduce { kind: Extreme::Max, axis };
        for e in
            [build_error(reduce(Max, &[0], false), &[x.clone()]), run_error(argmax(0), &[x.clone()]), build_error(argmax(0), &[x.clone()])]
        {
            assert_eq!(e.code, "E0203", "{}", e.title);
        }
        assert_eq!(run_error(reduce(Min, &[0], false), &[x]).title, "min over axes [0] of (0, 3): there are no elements");
    }

    #[test]
    fn nan_wins_and_ties_go_to_the_first() {
        let x = Array::new(&[3, 3], vec![1.0, f64::NAN, 3.0, 7.0, 2.0, 7.0, -1.0, 5.0, -1.0]);
        let found = |kind, axis| apply(ArgReduce { kind, axis }, &[x.clone()]).to_i64_vec();
        assert_eq!(found(Extreme::Max, 1), [1, 0, 1]);
        assert_eq!(found(Extreme::Min, 1), [1, 1, 0]);
        assert_eq!(found(Extreme::Min, 0), [2, 0, 2]);
        assert!(apply(reduce(Max, &[1], false), &[x.clone()]).to_f64_vec()[0].is_nan());
        assert!(apply(reduce(Min, &[1], false), &[x]).to_f64_vec()[0].is_nan());
    }

    /// Elements of both zeros, NaNs of two signs, and others.
    fn mixture(n: usize) -> Vec<f64> {
        let number = |i: usize| match i * 7919 % 23 {
            0 | 5 => -0.0,
            1 | 6 => 0.0,
            2 if i.is_multiple_of(31) => f64::NAN,
            3 if i.is_multiple_of(37) => -f64::NAN,
            k => -(k as f64 * 0.37).sin().abs(),
        };
        (0..n).map(number).collect()
    }

    #[test]
    fn lanes_that_lie_side_by_side_have_the_bits_of_each_alone() {
        for n in [0, 1, 5, 8, 9, 256, 257, 700] {
            for m in [1, 2, 63, 64, 65, 130] {
                let x = mixture(2 * n * m);
                let lane = |o: usize, i: usize| (0..n).map(|k| x[(o * n + k) * m + i]).collect::<Vec<f64>>();
                let array = Array::new(&[2, n, m], x.clone());
                for kind in [Sum, Prod, Max, Min].into_iter().filter(|kind| n > 0 || matches!(kind, Sum | Prod)) {
                    let found = apply(reduce(kind, &[1], false), std::slice::from_ref(&array)).to_f64_vec();
                    for (at, found) in found.iter().enumerate() {
                        let alone = apply(reduce(kind, &[0], false), &[Array::vector(&lane(at / m, at % m))]).to_f64_vec()[0];
                        assert_eq!(found.to_bits(), alone.to_bits(), "{kind:?} of {n}, lane {at} of {m}");
                    }
                }
            }
        }
    }

    #[test]
    fn extremes_are_the_first_of_equal_ones() {
        for n in 1..300 {
            let x = &mixture(400)[n / 3..n / 3 + n];
            for (kind, of, beats) in
                [(Max, Extreme::Max, (|new, old| new > old) as fn(&f64, &f64) -> bool), (Min, Extreme::Min, |new, old| new < old)]
            {
                let better = |old: f64, new: f64| if beats(&new, &old) || (new.is_nan() && !old.is_nan()) { new } else { old };
                let first = x.iter().copied().reduce(better).unwrap();
                let array = Array::vector(x);
                let found = apply(reduce(kind, &[0], false), std::slice::from_ref(&array)).to_f64_vec()[0];
                assert_eq!(found.to_bits(), first.to_bits(), "{kind:?} of {n}");
                let at = apply(ArgReduce { kind: of, axis: 0 }, &[array]).to_i64_vec()[0] as usize;
                assert_eq!(x[at].to_bits(), first.to_bits(), "arg{kind:?} of {n}");
            }
        }
    }

    #[test]
    fn long_sums_are_accurate() {
        let n = 1_000_003;
        let sum = apply(reduce(Sum, &[0], false), &[Array::full(DType::F32, &[n], 0.1)]).to_f64_vec()[0];
        let exact = n as f64 * 0.1f32 as f64;
        assert!((sum / exact - 1.0).abs() < 5e-7, "{sum} for {exact}");
    }

    #[test]
    fn axes_that_do_not_exist_are_errors() {
        assert_eq!(build_error(reduce(Sum, &[2], false), &[matrix()]).code, "E0222");
        assert_eq!(build_error(reduce(Sum, &[1, 1], false), &[matrix()]).code, "E0222");
        assert_eq!(build_error(reduce(Sum, &[0], false), &[]).code, "E0222");
    }

    #[test]
    fn gradients_match_differences() {
        for axes in [&[][..], &[0], &[1], &[0, 2], &[0, 1, 2]] {
            for (kind, keepdims) in [(Sum, false), (Prod, true), (Prod, false), (Max, false), (Min, true)] {
                check_vjp(|g, v| g.emit(reduce(kind, axes, keepdims), v), &[sample(&[2, 3, 2], 1)]);
            }
        }
        check_vjp(|g, v| g.sum(v[0], &[0], false), &[sample(&[0, 2], 1)]);
        check_vjp(|g, v| g.emit(reduce(Prod, &[0], false), v), &[sample(&[0, 2], 1)]);
        check_vjp(|g, v| g.emit(reduce(Prod, &[0], false), v), &[sample(&[1], 1)]);
    }

    #[test]
    fn products_with_zeros_have_gradients_of_any_order() {
        let product = |axes: &'static [usize]| move |g: &mut Graph, v: &[Value]| g.emit(reduce(Prod, axes, false), v);
        for x in [vec![2.0, 0.0, 3.0, 0.0, 0.0, 5.0], vec![0.0, 1.5, -2.0, 4.0, 0.5, 3.0]] {
            let x = Array::new(&[2, 3], x);
            check_vjp(product(&[1]), &[x.clone()]);
            check_vjp(product(&[0, 1]), &[x.clone()]);
            check_vjp2(product(&[1]), &[x]);
        }
    }

    #[test]
    fn second_order_of_sums_and_extremes() {
        for kind in [Sum, Max] {
            check_vjp2(|g, v| g.emit(reduce(kind, &[1], false), v), &[sample(&[2, 3], 3)]);
        }
        check_vjp2(
            |g, v| {
                let square = g.mul(v[0], v[0]);
                g.sum(square, &[0, 1], false)
            },
            &[sample(&[2, 3], 3)],
        );
    }
}
