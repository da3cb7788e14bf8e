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
