//! Reductions.

use super::cumulate::exclusive_products;
use super::extreme::extreme_vjp;
use super::support::{Lane, Lanes, Number, check_axes, drop_axes, exactly, is_float, is_nan, lanes_over, none, one, per_lane};
use crate::base::Result;
use crate::ir::batch::behind;
use crate::ir::op::*;
use crate::ir::{Graph, Value};
use crate::scalar::slices::BESIDE;
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

    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let x = &ins[0];
        let shape: Extents = drop_axes(x.shape(), &self.axes, self.keepdims.then_some(1)).collect();
        let (x, lanes) = lanes_over(x, &self.axes);
        if lanes.n == 0 {
            self.check_not_empty(&tuple(ins[0].shape()))?;
        }
        Ok(one(match self.kind {
            ReduceKind::Sum | ReduceKind::Prod => reduced(cx, self.kind, &x.cast(x.dtype().accumulator()), lanes, &shape)?,
            ReduceKind::Any => per_lane(&x.cast(DType::Bool), lanes, &shape, |lane: Lane<bool>| lane.iter().any(|b| b)),
            ReduceKind::All => per_lane(&x.cast(DType::Bool), lanes, &shape, |lane: Lane<bool>| lane.iter().all(|b| b)),
            ReduceKind::Max | ReduceKind::Min => reduced(cx, self.kind, &x, lanes, &shape)?,
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

    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        b.as_is(Reduce { axes: behind(&self.axes), ..self.clone() }, ins)
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

    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        b.as_is(ArgReduce { axis: self.axis + 1, ..self.clone() }, ins)
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
pub(super) const BLOCK: usize = 256;

/// A lane folded in one fixed order, whose rounding error grows with the logarithm of a long lane's length: up to
/// [`BLOCK`] elements as eight strided partials (`k mod 8`), then a tree over the partials; longer lanes in two parts,
/// the first a multiple of [`BLOCK`].
fn fold<T: Element>(lane: Lane<T>, lo: usize, hi: usize, unit: T, op: impl Fn(T, T) -> T + Copy) -> T {
    if hi - lo > BLOCK {
        let mid = halved(lo, hi);
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

/// As [`fold`] of a whole lane, with a pause in between where it is long.
fn fold_long<T: Element>(lane: Lane<T>, [lo, hi]: [usize; 2], unit: T, op: impl Fn(T, T) -> T + Copy, pause: Pause) -> Result<T> {
    if hi - lo > LONG {
        let mid = halved(lo, hi);
        let first = fold_long(lane, [lo, mid], unit, op, pause)?;
        return Ok(op(first, fold_long(lane, [mid, hi], unit, op, pause)?));
    }
    pause(hi - lo)?;
    Ok(fold(lane, lo, hi, unit, op))
}

/// Where a lane that is longer than [`BLOCK`] is halved.
pub(crate) fn halved(lo: usize, hi: usize) -> usize {
    lo + (hi - lo).div_ceil(2).next_multiple_of(BLOCK)
}

/// Told how many elements were looked at; the caller may stop it.
pub(crate) type Pause<'a> = &'a mut dyn FnMut(usize) -> Result<()>;

/// So many elements are folded without a pause.
const LONG: usize = 1 << 20;

/// Eight partial results as one.
fn tree<T>([a, b, c, d, e, f, g, h]: [T; 8], op: impl Fn(T, T) -> T) -> T {
    op(op(op(a, e), op(c, g)), op(op(b, f), op(d, h)))
}

/// As [`fold`], for each of the lanes whose elements `k` lie side by side, `step` after those before, from the first of `x` on.
fn fold_beside<T: Element>(x: &[T], step: usize, [lo, hi]: [usize; 2], unit: T, op: impl Fn(T, T) -> T + Copy, out: &mut [T]) {
    if hi - lo > BLOCK {
        let mid = halved(lo, hi);
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
fn fold_all<T: Element>(x: &[T], lanes: Lanes, unit: T, op: impl Fn(T, T) -> T + Copy, out: &mut [T], pause: Pause) -> Result<()> {
    if lanes.n == 0 {
        out.fill(unit);
        return Ok(());
    }
    // Few elements are not worth clearing the sums of so many lanes.
    if lanes.step <= 1 || lanes.n * lanes.step.min(BESIDE) < 8 * BESIDE {
        let lane = |start| Lane::new(x, lanes, start);
        let mut starts = lanes.starts();
        for out in out.chunks_mut((LONG / lanes.n).max(1)) {
            match out {
                [out] => *out = fold_long(lane(starts.next().unwrap_or(0)), [0, lanes.n], unit, op, pause)?,
                _ => {
                    out.iter_mut().zip(starts.by_ref()).for_each(|(out, start)| *out = fold(lane(start), 0, lanes.n, unit, op));
                    pause(out.len() * lanes.n)?;
                }
            }
        }
        return Ok(());
    }
    for (o, out) in out.chunks_mut(lanes.step).enumerate() {
        let x = &x[o * lanes.n * lanes.step..];
        for (i, out) in out.chunks_mut(BESIDE).enumerate() {
            fold_beside(&x[i * BESIDE..], lanes.step, [0, lanes.n], unit, op, out);
            pause(lanes.n * out.len())?;
        }
    }
    Ok(())
}

/// Lanes reduced into `out`; extremes only of lanes that are not empty.
///
/// # Errors
/// An interruption.
pub(crate) fn compute<T: Number>(kind: ReduceKind, lanes: Lanes, x: &[T], out: &mut [T], pause: Pause) -> Result<()> {
    match kind {
        ReduceKind::Prod => fold_all(x, lanes, T::ONE, T::times, out, pause),
        ReduceKind::Max => best_of(x, lanes, |new, old| new > old, out, pause),
        ReduceKind::Min => best_of(x, lanes, |new, old| new < old, out, pause),
        _ => fold_all(x, lanes, T::ZERO, T::plus, out, pause),
    }
}

/// [`compute`], as an array of this shape.
pub(super) fn reduced(cx: &mut EvalCx, kind: ReduceKind, x: &Array, lanes: Lanes, shape: &[usize]) -> Result<Array> {
    let mut out = Array::dirty(x.dtype(), shape);
    dispatch!(x.dtype(), T => compute(kind, lanes, x.as_slice::<T>(), out.as_mut_slice::<T>(), &mut |work| cx.worked(work)))?;
    Ok(out)
}

/// The extreme of every lane: the first of equal ones, or the first NaN.
fn best_of<T: Number>(x: &[T], lanes: Lanes, beats: impl Fn(T, T) -> bool + Copy, out: &mut [T], pause: Pause) -> Result<()> {
    let wins = or_nan(beats);
    if lanes.step > 1 {
        for (out, x) in out.chunks_mut(lanes.step).zip(x.chunks(lanes.n * lanes.step)) {
            let mut rows = x.chunks(lanes.step);
            rows.next().into_iter().for_each(|first| out.copy_from_slice(first));
            for row in rows {
                out.iter_mut().zip(row).for_each(|(out, &x)| *out = if wins(x, *out) { x } else { *out });
                pause(row.len())?;
            }
        }
        return Ok(());
    }
    let keep = |old: T, new: T| if beats(new, old) { new } else { old };
    for (out, start) in out.iter_mut().zip(lanes.starts()) {
        let x = &x[start..start + lanes.n];
        let best = fold_long(Lane::new(x, lanes, 0), [0, lanes.n], x[0], keep, pause)?;
        // Equal zeros may differ in their signs, and NaNs in their bits: the first counts.
        *out = match T::DTYPE.is_float() {
            true if x.iter().fold(false, |any, &x| any | is_nan(x)) => x.iter().copied().find(|&x| is_nan(x)).unwrap_or(best),
            true if best == T::ZERO => x.iter().copied().find(|&x| x == best).unwrap_or(best),
            _ => best,
        };
    }
    Ok(())
}

/// x summed over sorted `axes` in its own dtype (bool: any), as an array of this shape.
///
/// # Errors
/// An interruption.
pub(super) fn sum_axes(cx: &mut EvalCx, x: &Array, axes: &[usize], shape: &[usize]) -> Result<Array> {
    let (x, lanes) = lanes_over(x, axes);
    reduced(cx, ReduceKind::Sum, &x, lanes, shape)
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
mod tests;
