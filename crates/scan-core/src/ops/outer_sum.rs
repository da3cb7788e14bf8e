//! Sums of outer products over rows, which gradients with respect to weights are.

use super::matmul::Outer;
use super::support::{exactly, none, one};
use crate::bail;
use crate::base::Result;
use crate::ir::op::*;
use crate::ir::{Graph, Value};
use crate::types::shape::{count, tuple};
use crate::types::{Array, DType, Dim, Type, memory};

impl OpDef for OuterSum {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        let [a, b, like] = exactly("outer_sum", ins)?;
        let (a, b, like) = (&a.ty, &b.ty, &like.ty);
        let fits = a.rank() > 1 && a.rank() == b.rank() && a.dims.iter().zip(&b.dims).take(a.rank() - 1).all(|(x, y)| !x.conflicts(y));
        if !fits || like.rank() < 2 || a.dtype != b.dtype || a.dtype != like.dtype || !a.dtype.is_float() {
            bail!(Type, "E0208", "`outer_sum` takes floats with equal leading axes and a matrix, got {a}, {b} and {like}");
        }
        let rows = a.dims[..a.rank() - 1].iter().try_fold(1, |n, d| Some(n * d.value()?));
        let axis = |made: &Dim, like: &Dim| match rows {
            Some(0) => like.value(),
            Some(_) => made.value(),
            None => made.value().filter(|n| like.value() == Some(*n)),
        };
        let dim = |made: &Type, back: usize| {
            axis(&made.dims[made.rank() - 1], &like.dims[like.rank() - back]).map_or_else(Dim::fresh, Dim::known)
        };
        Ok(one(Type::new(a.dtype, [dim(a, 2), dim(b, 1)])))
    }

    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let mut sum = self.zeros(ins)?;
        self.add(&ins[0], &ins[1], &mut sum);
        Ok(one(sum))
    }

    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let Some(ct) = cts[0] else { return Ok(none(3)) };
        let turn = |g: &mut Graph, v: Value| if self.back_a == self.back_b { v } else { g.emit(Flip { axis: 0 }, &[v]) };
        let (a, b) = (turn(g, site.ins[0]), turn(g, site.ins[1]));
        let turned = g.transpose_last(ct);
        Ok(vec![Some(g.matmul(b, turned)), Some(g.matmul(a, ct)), None])
    }

    fn connected(&self, input: usize) -> bool {
        input < 2
    }
    fn can_fail(&self) -> bool {
        true
    }

    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        b.row_by_row(self.clone(), ins)
    }
}

impl OuterSum {
    /// What the sum over no rows is.
    ///
    /// # Errors
    /// E0208 where the rows of the operands are not as many.
    pub(crate) fn zeros(&self, ins: &[Array]) -> Result<Array> {
        let (a, b) = (ins[0].shape(), ins[1].shape());
        let [m, n] = [a, b].map(|shape| shape[shape.len() - 1]);
        if a[..a.len() - 1] != b[..b.len() - 1] {
            bail!(Shape, "E0208", "`outer_sum` of operands that do not fit: {} and {}", tuple(a), tuple(b));
        }
        let like = ins[2].shape();
        let shape = if count(&a[..a.len() - 1]) == 0 { [like[like.len() - 2], like[like.len() - 1]] } else { [m, n] };
        Ok(Array::zeros(ins[0].dtype(), &shape))
    }

    /// Adds what these rows make.
    pub(crate) fn add(&self, a: &Array, b: &Array, sum: &mut Array) {
        let rows = count(&a.shape()[..a.rank() - 1]);
        if rows > 0 {
            match sum.dtype() {
                DType::F32 => self.add_of::<f32>(a, b, rows, sum),
                _ => self.add_of::<f64>(a, b, rows, sum),
            }
        }
    }

    fn add_of<T: Outer>(&self, a: &Array, b: &Array, rows: usize, sum: &mut Array) {
        let (m, n) = (sum.shape()[0], sum.shape()[1]);
        let [turned_a, turned_b] = [(a, self.back_a), (b, self.back_b)].map(|(x, back)| back.then(|| turned::<T>(x)).flatten());
        let back = [self.back_a && turned_a.is_none(), self.back_b && turned_b.is_none()];
        let (a, b) = (turned_a.as_deref().unwrap_or(a.as_slice::<T>()), turned_b.as_deref().unwrap_or(b.as_slice::<T>()));
        T::add_outer([m, rows, n], a, b, back, sum.as_mut_slice::<T>());
    }
}

/// The elements with the first axis from the last one on, where what belongs to one of its positions is more than a row.
fn turned<T: Outer>(x: &Array) -> Option<Vec<T>> {
    let inner = &x.shape()[1..];
    let more = count(&inner[..inner.len() - 1]) > 1;
    more.then(|| {
        let mut out = memory::room(x.len());
        x.as_slice::<T>().chunks(count(inner).max(1)).rev().for_each(|rows| out.extend_from_slice(rows));
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::*;

    fn op(back_a: bool, back_b: bool) -> OuterSum {
        OuterSum { back_a, back_b }
    }

    #[test]
    fn it_is_the_product_of_a_transpose() {
        for shape in [&[5][..], &[4, 3], &[300, 1], &[70, 2, 2]] {
            let of = |n: usize, seed| sample(&[shape, &[n]].concat(), seed);
            let (a, b, like) = (of(3, 1), of(4, 2), sample(&[1, 3, 4], 3));
            let flat = |x: &Array, back: bool| {
                let x = if back { apply(Flip { axis: 0 }, std::slice::from_ref(x)) } else { x.clone() };
                let (rows, last) = (count(shape) as i64, *x.shape().last().unwrap() as i64);
                apply(Reshape {}, &[x, Array::scalar(rows), Array::scalar(last)])
            };
            for (back_a, back_b) in [(false, false), (false, true), (true, false), (true, true)] {
                let left = apply(Transpose { perm: vec![1, 0] }, &[flat(&a, back_a)]);
                let want = apply(MatMul {}, &[left, flat(&b, back_b)]);
                let found = apply(op(back_a, back_b), &[a.clone(), b.clone(), like.clone()]);
                assert_eq!(found.shape(), want.shape());
                assert_close(&found.to_f64_vec(), &want.to_f64_vec(), 1e-12, &format!("{shape:?} {back_a} {back_b}"));
            }
        }
    }

    #[test]
    fn no_rows_give_zeros_of_the_shape_that_is_told() {
        let like = sample(&[1, 3, 4], 3);
        for shape in [&[0, 3][..], &[0, 1, 0], &[2, 0, 5]] {
            let x = Array::zeros(DType::F64, shape);
            let sum = op(false, true).eval(&mut EvalCx::new(), &mut [x.clone(), x, like.clone()]).unwrap();
            assert_eq!(sum[0], Array::zeros(DType::F64, &[3, 4]));
        }
    }

    #[test]
    fn extents_are_those_of_the_factors_only_where_there_are_rows() {
        let known = |n: Option<usize>| n.map_or_else(Dim::fresh, Dim::known);
        let of =
            |rows: Option<usize>, last: usize| Arg { ty: Type::new(DType::F64, [known(rows), Dim::known(last)]), value: None, dim: None };
        let like = Arg { ty: Type::new(DType::F64, [Dim::known(1), Dim::known(4)]), value: None, dim: None };
        let found = |rows: Option<usize>| {
            let made = op(false, false).infer(&[of(rows, 3), of(rows, 4), like.clone()]).expect("fits");
            made[0].dims.iter().map(Dim::value).collect::<Vec<_>>()
        };
        assert_eq!([found(Some(2)), found(Some(0)), found(None)], [[Some(3), Some(4)], [Some(1), Some(4)], [None, Some(4)]]);
    }

    #[test]
    fn misfits_are_errors() {
        let (a, b, like) = (sample(&[5, 3], 1), sample(&[4, 2], 2), sample(&[3, 2], 3));
        assert_eq!(run_error(op(false, false), &[a.clone(), b.clone(), like.clone()]).code, "E0208");
        assert_eq!(build_error(op(false, false), &[a.clone(), b.clone(), like.clone()]).code, "E0208");
        assert_eq!(build_error(op(false, false), &[a.clone(), a.cast(DType::F32), like.clone()]).code, "E0208");
        assert_eq!(build_error(op(false, false), &[a.clone(), sample(&[5, 1, 2], 1), like]).code, "E0208");
        assert_eq!(build_error(op(false, false), &[a.clone(), a.clone(), a.cast(DType::F32)]).code, "E0208");
    }

    #[test]
    fn gradients_match_differences() {
        for (back_a, back_b) in [(false, false), (false, true), (true, false), (true, true)] {
            for shape in [&[5][..], &[4, 2]] {
                let args = [sample(&[shape, &[3]].concat(), 1), sample(&[shape, &[2]].concat(), 2)];
                let sum = |g: &mut Graph, v: &[Value]| {
                    let like = g.constant(sample(&[3, 2], 3).cast(g.ty(v[0]).dtype));
                    g.emit(op(back_a, back_b), &[v[0], v[1], like])
                };
                check_vjp(sum, &args);
                check_vjp2(sum, &args);
            }
        }
    }
}
