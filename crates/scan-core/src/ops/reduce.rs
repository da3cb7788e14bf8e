//! Reductions.

use super::cumulate::exclusive_products;
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
            ReduceKind::Sum => sum_lanes(&x.cast(x.dtype().accumulator()), lanes, &shape),
            ReduceKind::Prod => prod_lanes(&x.cast(x.dtype().accumulator()), lanes, &shape),
            ReduceKind::Any => per_lane(&x.cast(DType::Bool), lanes, &shape, |lane: Lane<bool>| lane.iter().any(|b| b)),
            ReduceKind::All => per_lane(&x.cast(DType::Bool), lanes, &shape, |lane: Lane<bool>| lane.iter().all(|b| b)),
            ReduceKind::Max => extreme_lanes(&x, lanes, &shape, Extreme::Max),
            ReduceKind::Min => extreme_lanes(&x, lanes, &shape, Extreme::Min),
        }))
    }

    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let x = site.ins[0];
        let (Some(ct), true) = (cts[0], is_float(g, x)) else { return Ok(none(1)) };
        let ct = keep_axes(g, ct, &self.axes, self.keepdims);
        Ok(vec![match self.kind {
            ReduceKind::Sum => Some(g.broadcast_like(ct, x)),
            ReduceKind::Prod => Some(prod_vjp(g, x, ct, &self.axes)),
            ReduceKind::Max | ReduceKind::Min => {
                let y = keep_axes(g, site.outs[0], &self.axes, self.keepdims);
                Some(extreme_vjp(g, x, y, ct))
            }
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
const BLOCK: usize = 1024;

/// A lane folded in one fixed order, whose rounding error grows with the logarithm of a long lane's length: up to
/// [`BLOCK`] elements as eight strided partials (`k mod 8`), then a tree over the partials; longer lanes in two parts,
/// the first a multiple of [`BLOCK`].
fn fold<T: Element>(lane: Lane<T>, lo: usize, hi: usize, unit: T, op: fn(T, T) -> T) -> T {
    if hi - lo > BLOCK {
        let mid = lo + (hi - lo).div_ceil(2).next_multiple_of(BLOCK);
        return op(fold(lane, lo, mid, unit, op), fold(lane, mid, hi, unit, op));
    }
    let mut part = [unit; 8];
    for k in lo..hi {
        let p = &mut part[(k - lo) % 8];
        *p = op(*p, lane.get(k));
    }
    let [a, b, c, d, e, f, g, h] = part;
    op(op(op(a, e), op(c, g)), op(op(b, f), op(d, h)))
}

fn sum_lanes(x: &Array, lanes: Lanes, shape: &[usize]) -> Array {
    dispatch!(x.dtype(), T => per_lane(x, lanes, shape, |lane: Lane<T>| fold(lane, 0, lane.n, T::ZERO, T::plus)))
}

fn prod_lanes(x: &Array, lanes: Lanes, shape: &[usize]) -> Array {
    dispatch!(x.dtype(), T => per_lane(x, lanes, shape, |lane: Lane<T>| fold(lane, 0, lane.n, T::ONE, T::times)))
}

fn extreme_lanes(x: &Array, lanes: Lanes, shape: &[usize], kind: Extreme) -> Array {
    dispatch!(x.dtype(), T => per_lane(x, lanes, shape, |lane: Lane<T>| lane.get(extreme(lane, kind))))
}

/// x summed over sorted `axes` in its own dtype (bool: any), as an array of this shape.
pub(super) fn sum_axes(x: &Array, axes: &[usize], shape: &[usize]) -> Array {
    let (x, lanes) = lanes_over(x, axes);
    sum_lanes(&x, lanes, shape)
}

/// Position of the first extreme of a lane that is not empty; the first NaN wins.
fn extreme<T: Element>(lane: Lane<T>, kind: Extreme) -> usize {
    let mut best = 0;
    for k in 1..lane.n {
        let (new, old) = (lane.get(k), lane.get(best));
        let beats = match kind {
            Extreme::Max => new > old,
            Extreme::Min => new < old,
        };
        if beats || (is_nan(new) && !is_nan(old)) {
            best = k;
        }
    }
    best
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

/// The whole cotangent to every element that equals the extreme.
fn extreme_vjp(g: &mut Graph, x: Value, y: Value, ct: Value) -> Value {
    let hit = g.eq(x, y);
    let zero = g.number(g.ty(x).dtype, 0.0);
    g.select(hit, ct, zero)
}
