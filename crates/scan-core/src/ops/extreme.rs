//! Where extremes are, and how elements that tie share a cotangent.

use super::reduce::reduced;
use super::support::{check_axes, drop_axes, exactly, lanes_over, none, one};
use crate::base::Result;
use crate::ir::batch::behind;
use crate::ir::op::*;
use crate::ir::{Graph, Value};
use crate::scalar::ElemOp;
use crate::types::{Array, DType, Extents, Type};

/// Bool; all false over axes without elements.
impl OpDef for ExtremeMask {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        let [x] = exactly("extreme_mask", ins)?;
        check_axes("extreme_mask", &self.axes, &x.ty)?;
        Ok(one(x.ty.with_dtype(DType::Bool)))
    }

    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let x = &ins[0];
        if x.is_empty() {
            return Ok(one(Array::zeros(DType::Bool, x.shape())));
        }
        let shape: Extents = drop_axes(x.shape(), &self.axes, Some(1)).collect();
        let (sorted, lanes) = lanes_over(x, &self.axes);
        let kind = if self.kind == Extreme::Max { ReduceKind::Max } else { ReduceKind::Min };
        let top = reduced(cx, kind, &sorted, lanes, &shape)?;
        ElemOp::Eq.eval(cx, &mut [x.clone(), top])
    }

    fn vjp(&self, _: &mut Graph, _: &Site, _: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        Ok(none(1))
    }

    fn connected(&self, _: usize) -> bool {
        false
    }

    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        b.as_is(ExtremeMask { axes: behind(&self.axes), ..self.clone() }, ins)
    }
}

/// The cotangent in equal shares to the elements that equal the extreme. Their number is of the mask itself, so that shares sum up to 1.
pub(super) fn extreme_vjp(g: &mut Graph, x: Value, kind: Extreme, axes: &[usize], ct: Value) -> Value {
    let dtype = g.ty(x).dtype;
    let hit = g.emit(ExtremeMask { kind, axes: axes.to_vec() }, &[x]);
    let (zero, one) = (g.number(dtype, 0.0), g.number(dtype, 1.0));
    let ones = g.cast(hit, dtype);
    let ties = g.sum(ones, axes, true);
    // Where the extreme is NaN, no element equals it: 0 / 0 would be the slope of the slope.
    let ties = g.maximum(ties, one);
    let share = g.div(ct, ties);
    g.select(hit, share, zero)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::*;
    use ReduceKind::*;

    fn reduce(kind: ReduceKind, axes: &[usize], keepdims: bool) -> Reduce {
        Reduce { kind, axes: axes.to_vec(), keepdims }
    }

    #[test]
    fn masks_are_where_the_extreme_is() {
        let mask = |kind, axes: &[usize], x: &Array| apply(ExtremeMask { kind, axes: axes.to_vec() }, std::slice::from_ref(x));
        let x = Array::new(&[2, 3], vec![1.0, 5.0, 5.0, f64::NAN, 0.0, -0.0]);
        assert_eq!(mask(Extreme::Max, &[1], &x), Array::new(&[2, 3], vec![false, true, true, false, false, false]));
        assert_eq!(mask(Extreme::Min, &[0], &x), Array::new(&[2, 3], vec![false, false, false, false, true, true]));
        assert_eq!(mask(Extreme::Max, &[0, 1], &Array::new(&[2, 1], vec![3i8, 3])), Array::new(&[2, 1], vec![true, true]));
        assert_eq!(mask(Extreme::Min, &[], &Array::scalar(2.5f32)), Array::scalar(true));
        assert_eq!(mask(Extreme::Max, &[0], &Array::zeros(DType::F64, &[0, 3])), Array::zeros(DType::Bool, &[0, 3]));
        assert_eq!(build_error(ExtremeMask { kind: Extreme::Max, axes: vec![2] }, &[x]).code, "E0222");
    }

    /// The cotangent of x where that of an extreme of it is given.
    fn shares(kind: ReduceKind, axes: &[usize], x: &Array, ct: &Array) -> Vec<f64> {
        let ins = [x.clone(), ct.clone()];
        let (mut g, v) = graph_of(&ins, false);
        let y = g.emit(reduce(kind, axes, false), &v[..1]);
        let found = vjp_of(&mut g, y, v[1], &v[..1]).unwrap()[0].unwrap();
        eval_graph(&g, &ins, &[found]).unwrap()[0].to_f64_vec()
    }

    #[test]
    fn ties_share_the_cotangent() {
        assert_eq!(shares(Max, &[0], &Array::vector(&[2.0, 5.0, 5.0]), &Array::scalar(3.0)), [0.0, 1.5, 1.5]);
        assert_eq!(shares(Max, &[0], &Array::vector(&[f32::INFINITY; 4]), &Array::scalar(2f32)), [0.5; 4]);
        assert_eq!(shares(Min, &[0], &Array::vector(&[0.0, -0.0, 1.0]), &Array::scalar(1.0)), [0.5, 0.5, 0.0]);
        assert_eq!(shares(Max, &[0], &Array::vector(&[1.0, f64::NAN, 1.0]), &Array::scalar(1.0)), [0.0; 3]);
        let x = Array::new(&[2, 3], vec![1.0, 1.0, 0.0, 1.0, 2.0, 2.0]);
        assert_eq!(shares(Max, &[1], &x, &Array::vector(&[1.0, 10.0])), [0.5, 0.5, 0.0, 0.0, 5.0, 5.0]);
        assert_eq!(shares(Max, &[0], &x, &Array::vector(&[1.0, 2.0, 4.0])), [0.5, 0.0, 0.0, 0.5, 2.0, 4.0]);
        assert_eq!(shares(Min, &[0, 1], &x, &Array::scalar(1.0)), [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]);
        assert_eq!(shares(Max, &[], &x, &x), x.to_f64_vec());
        assert!(shares(Max, &[1], &Array::zeros(DType::F64, &[0, 3]), &Array::zeros(DType::F64, &[0])).is_empty());
    }

    #[test]
    fn extremes_of_functions_that_tie_have_their_slopes() {
        // max(s, s, s)² is s², and the mean of extremes over both axes of a matrix of s is s.
        let square = |g: &mut Graph, v: &[Value]| {
            let rows = g.join_rows(&[v[0], v[0], v[0]]);
            let top = g.emit(reduce(Max, &[0], false), &[rows]);
            g.mul(top, top)
        };
        let x = Array::new(&[1, 2], vec![0.5, -1.5]);
        check_vjp(square, &[x.clone()]);
        check_vjp2(square, &[x.clone()]);
        let both = |g: &mut Graph, v: &[Value]| {
            let rows = g.join_rows(&[v[0], v[0], v[0]]);
            let (top, least) = (g.emit(reduce(Max, &[0], true), &[rows]), g.emit(reduce(Min, &[0], false), &[rows]));
            let product = g.mul(top, least);
            g.mul(product, v[0])
        };
        check_vjp(both, &[x.clone()]);
        check_vjp2(both, &[x]);
    }

    #[test]
    fn the_slope_of_a_slope_of_nan_is_no_quotient_of_zeros() {
        let x = Array::vector(&[1.0, f64::NAN]);
        let ins = [x, Array::scalar(1.0)];
        let (mut g, v) = graph_of(&ins, false);
        let y = g.emit(reduce(Max, &[0], false), &v[..1]);
        let slope = vjp_of(&mut g, y, v[1], &v[..1]).unwrap()[0].unwrap();
        let total = g.sum(slope, &[0], false);
        let second = vjp_of(&mut g, total, v[1], &v[1..]).unwrap()[0].unwrap();
        assert_eq!(eval_graph(&g, &ins, &[second]).unwrap()[0], Array::scalar(0.0));
    }

    /// Value and slopes of an elementwise function of numbers.
    fn bent(op: ElemOp, at: &[f64]) -> (f64, Vec<f64>) {
        let ins: Vec<Array> = at.iter().map(|&x| Array::scalar(x)).collect();
        let (mut g, v) = graph_of(&ins, true);
        let (y, one) = (g.emit(Op::Elem(op), &v), g.number(DType::F64, 1.0));
        let found = vjp_of(&mut g, y, one, &v).unwrap().into_iter().map(|v| v.expect("a float"));
        let wanted: Vec<Value> = [y].into_iter().chain(found).collect();
        let numbers: Vec<f64> = eval_graph(&g, &ins, &wanted).unwrap().iter().map(|a| a.to_f64_vec()[0]).collect();
        (numbers[0], numbers[1..].to_vec())
    }

    #[test]
    fn two_that_tie_have_a_half_each() {
        for op in [ElemOp::Maximum, ElemOp::Minimum] {
            for (x, y) in [(2.0, 2.0), (0.0, -0.0), (f64::INFINITY, f64::INFINITY)] {
                assert_eq!(bent(op, &[x, y]).1, [0.5, 0.5]);
            }
            assert_eq!([bent(op, &[f64::NAN, 2.0]).1, bent(op, &[2.0, f64::NAN]).1], [[0.0; 2]; 2]);
        }
        assert_eq!([-1.0, 0.0, -0.0, 2.0, f64::NAN].map(|x| bent(ElemOp::Relu, &[x]).1[0]), [0.0, 0.5, 0.5, 1.0, 0.0]);
    }

    #[test]
    fn clip_has_the_slopes_of_the_minimum_of_a_maximum() {
        let numbers = [-1.0, 0.0, 1.0, f64::NAN, f64::INFINITY];
        for at in 0..125 {
            let [x, lo, hi] = [at / 25, at / 5 % 5, at % 5].map(|k| numbers[k]);
            let (held, lower) = bent(ElemOp::Maximum, &[x, lo]);
            let (_, upper) = bent(ElemOp::Minimum, &[held, hi]);
            let expected = [upper[0] * lower[0], upper[0] * lower[1], upper[1]];
            assert_eq!(bent(ElemOp::Clip, &[x, lo, hi]).1, expected, "{x} in {lo}..{hi}");
        }
    }
}
