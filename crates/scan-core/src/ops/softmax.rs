//! logsumexp, softmax and log-softmax, each with its own stable gradient. Ints are taken as floats.

use super::reduce::keep_axes;
use super::support::{Lane, Lanes, check_axes, drop_axes, exactly, is_float, lanes_over, none, one, per_lane};
use crate::base::Result;
use crate::ir::op::*;
use crate::ir::{Graph, Value};
use crate::types::{Array, DType, Dim, Extents, Type};

/// `m + log Σ exp(x − m)` with m the maximum; −∞ for an empty axis or one that holds only −∞.
impl OpDef for LogSumExp {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        let [x] = exactly("logsumexp", ins)?;
        check_axes("logsumexp", &self.axes, &x.ty)?;
        Ok(one(Type::new(x.ty.dtype.to_float(), drop_axes(&x.ty.dims, &self.axes, self.keepdims.then(|| Dim::known(1))))))
    }

    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let shape: Extents = drop_axes(ins[0].shape(), &self.axes, self.keepdims.then_some(1)).collect();
        let (x, lanes) = lanes_over(&ins[0].cast(DType::F64), &self.axes);
        Ok(one(per_lane(&x, lanes, &shape, log_sum_exp).cast(ins[0].dtype().to_float())))
    }

    /// `ct · exp(x − y)`, where the elements that equal y weigh 1, or 0 where y is −∞.
    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let x = site.ins[0];
        let (Some(ct), true) = (cts[0], is_float(g, x)) else { return Ok(none(1)) };
        let ct = keep_axes(g, ct, &self.axes, self.keepdims);
        let y = keep_axes(g, site.outs[0], &self.axes, self.keepdims);
        let (zero, low) = (g.number(g.ty(x).dtype, 0.0), g.number(g.ty(x).dtype, f64::NEG_INFINITY));
        let (is_top, is_low, difference) = (g.eq(x, y), g.eq(y, low), g.sub(x, y));
        let top = g.select(is_low, low, zero);
        let exponent = g.select(is_top, top, difference);
        let weight = g.exp(exponent);
        Ok(vec![Some(g.mul(ct, weight))])
    }
}

/// `exp(x − m) / Σ exp(x − m)`; NaN where the axis holds +∞ or only −∞.
impl OpDef for Softmax {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        infer("softmax", self.axis, ins)
    }

    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        Ok(one(map_lanes(&ins[0], self.axis, |lane| {
            let (m, sum) = maximum_and_sum(lane);
            move |x| (x - m).exp() / sum
        })))
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
}

/// `x − logsumexp(x)`; NaN where the axis holds +∞ or only −∞.
impl OpDef for LogSoftmax {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        infer("log_softmax", self.axis, ins)
    }

    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        Ok(one(map_lanes(&ins[0], self.axis, |lane| {
            let (m, sum) = maximum_and_sum(lane);
            let log = sum.ln();
            move |x| (x - m) - log
        })))
    }

    /// `ct − exp(y) · Σ ct`.
    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let (Some(ct), true) = (cts[0], is_float(g, site.ins[0])) else { return Ok(none(1)) };
        let sum = g.sum(ct, &[self.axis], true);
        let weight = g.exp(site.outs[0]);
        let share = g.mul(weight, sum);
        Ok(vec![Some(g.sub(ct, share))])
    }
}

fn infer(op: &str, axis: usize, ins: &[Arg]) -> Result<Outs<Type>> {
    let [x] = exactly(op, ins)?;
    check_axes(op, &[axis], &x.ty)?;
    Ok(one(x.ty.with_dtype(x.ty.dtype.to_float())))
}

/// Each element mapped by the function that `f` makes of its lane. Computed in f64, given in the float dtype of x.
fn map_lanes<F: Fn(f64) -> f64>(x: &Array, axis: usize, f: impl Fn(Lane<f64>) -> F) -> Array {
    let wide = x.cast(DType::F64);
    let (data, lanes) = (wide.as_slice::<f64>(), Lanes::along(x.shape(), axis));
    let mut out = vec![0.0; data.len()];
    for start in lanes.starts() {
        let lane = Lane::new(data, lanes, start);
        let map = f(lane);
        (0..lane.n).for_each(|k| out[start + k * lanes.step] = map(lane.get(k)));
    }
    Array::new(x.shape(), out).cast(x.dtype().to_float())
}

/// The maximum m and `Σ exp(x − m)`.
fn maximum_and_sum(lane: Lane<f64>) -> (f64, f64) {
    let m = maximum(lane);
    (m, lane.iter().map(|x| (x - m).exp()).sum())
}

/// The maximum; NaN wins, and −∞ is that of an empty lane.
fn maximum(lane: Lane<f64>) -> f64 {
    lane.iter().fold(f64::NEG_INFINITY, |m, x| if x > m || x.is_nan() { x } else { m })
}

fn log_sum_exp(lane: Lane<f64>) -> f64 {
    let (m, sum) = maximum_and_sum(lane);
    if m.is_finite() { m + sum.ln() } else { m }
}
