//! Broadcasting and its transpose.

use super::args::{expect_count, expect_int_scalar, extents, integer};
use super::batch::shapes;
use super::certain::{extent, fits};
use super::reduce::sum_axes;
use super::shape::{signed_strides, view};
use super::support::{exactly, none, one};
use crate::base::{Diagnostic, Kind, Result};
use crate::ir::op::*;
use crate::ir::{Graph, Value, View, Viewed};
use crate::types::array::elements;
use crate::types::shape::{count, tuple};
use crate::types::{Array, Dim, Dims, Type, memory};
use crate::{bail, dispatch};
use smallvec::SmallVec;

/// x repeated along new leading axes and along axes of extent 1. Where it cannot be: `E0201`.
impl OpDef for BroadcastTo {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        expect_count("broadcast_to", 1, true, ins)?;
        let (x, extents) = (&ins[0], &ins[1..]);
        extents.iter().try_for_each(|d| expect_int_scalar("broadcast_to", "an extent", d))?;
        if let Some(bad) = extents.iter().filter_map(|d| d.value.as_ref()).map(integer).find(|&d| d < 0) {
            bail!(Value, "E0222", "an extent of `broadcast_to` is {bad}; extents cannot be negative");
        }
        let target = Type::new(x.ty.dtype, extents.iter().map(Arg::as_dim));
        Ok(one(Type { dtype: x.ty.dtype, dims: broadcast_dims_to(&x.ty, &target)? }))
    }

    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let shape = extents("broadcast_to", &ins[1..])?;
        Ok(one(broadcast(&ins[0], &shape)?))
    }

    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let mut out = none(site.ins.len());
        out[0] = cts[0].map(|ct| g.sum_to(ct, site.ins[0]));
        Ok(out)
    }

    fn view(&self, of: &Viewed) -> Option<View> {
        Some(View::broadcast(of.from, of.to))
    }

    fn connected(&self, input: usize) -> bool {
        input == 0
    }

    fn can_fail(&self) -> bool {
        true
    }
    fn fallible(&self, g: &Graph, ins: &[Value]) -> bool {
        let wanted: Option<Vec<Dim>> = ins[1..].iter().map(|&v| extent(g, v)).collect();
        wanted.is_none_or(|wanted| !fits(&g.ty(ins[0]).dims, &wanted))
    }

    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        shapes::broadcast_to(self, b, ins)
    }
}

/// The second input gives its shape only. Where x does not broadcast to it: `E0201`.
impl OpDef for BroadcastLike {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        let [x, y] = exactly("broadcast_like", ins)?;
        Ok(one(Type { dtype: x.ty.dtype, dims: broadcast_dims_to(&x.ty, &y.ty)? }))
    }

    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        Ok(one(broadcast(&ins[0], ins[1].shape())?))
    }

    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        Ok(vec![cts[0].map(|ct| g.sum_to(ct, site.ins[0])), None])
    }

    fn view(&self, of: &Viewed) -> Option<View> {
        Some(View::broadcast(of.from, of.to))
    }

    fn connected(&self, input: usize) -> bool {
        input == 0
    }

    fn can_fail(&self) -> bool {
        true
    }
    fn fallible(&self, g: &Graph, ins: &[Value]) -> bool {
        !fits(&g.ty(ins[0]).dims, &g.ty(ins[1]).dims)
    }

    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        shapes::broadcast_like(b, ins)
    }
}

/// The second input gives its shape only. The dtype stays that of x. Where nothing is added up the elements are handed on as they
/// are, the sign of a zero, too. Where y cannot have been broadcast to the shape of
/// x: `E0201`.
impl OpDef for SumTo {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        let [x, y] = exactly("sum_to", ins)?;
        if x.ty.rank() < y.ty.rank() || aligned(&x.ty.dims, &y.ty.dims).any(|(x, y)| !y.is_one() && y.conflicts(x)) {
            return Err(no_sum(&x.ty.to_string(), &y.ty.to_string()));
        }
        Ok(one(y.ty.with_dtype(x.ty.dtype)))
    }

    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let [x, y] = ins else { unreachable!("two inputs") };
        if x.shape() == y.shape() {
            return Ok(one(x.clone()));
        }
        if x.rank() < y.rank() || aligned(x.shape(), y.shape()).any(|(&x, &y)| y != 1 && y != x) {
            return Err(no_sum(&tuple(x.shape()), &tuple(y.shape())));
        }
        if count(x.shape()) == count(y.shape()) {
            return Ok(one(x.reshaped(y.shape())));
        }
        let new = x.rank() - y.rank();
        let stretched = (new..x.rank()).filter(|&axis| x.shape()[axis] != y.shape()[axis - new]);
        let axes: SmallVec<[usize; 4]> = (0..new).chain(stretched).collect();
        Ok(one(sum_axes(cx, x, &axes, y.shape())?))
    }

    fn view(&self, of: &Viewed) -> Option<View> {
        View::reshaped(of.from, of.to)
    }

    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        Ok(vec![cts[0].map(|ct| g.broadcast_like(ct, site.ins[0])), None])
    }

    fn connected(&self, input: usize) -> bool {
        input == 0
    }

    fn can_fail(&self) -> bool {
        true
    }
    fn fallible(&self, g: &Graph, ins: &[Value]) -> bool {
        !fits(&g.ty(ins[1]).dims, &g.ty(ins[0]).dims)
    }

    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        shapes::sum_to(b, ins)
    }
}

/// The axes of both, counted from the last.
fn aligned<'a, T>(x: &'a [T], y: &'a [T]) -> impl Iterator<Item = (&'a T, &'a T)> {
    x.iter().rev().zip(y.iter().rev())
}

/// The dims of x broadcast to a type; an extent of x that is known and not 1 decides where the target's is unknown.
fn broadcast_dims_to(x: &Type, target: &Type) -> Result<Dims> {
    if x.rank() > target.rank() || aligned(&x.dims, &target.dims).any(|(x, t)| !x.is_one() && x.conflicts(t)) {
        return Err(no_broadcast(&x.to_string(), &target.to_string()));
    }
    let mut dims = target.dims.clone();
    for (d, x) in dims.iter_mut().rev().zip(x.dims.iter().rev()) {
        if d.value().is_none() && x.value().is_some_and(|n| n != 1) {
            *d = x.clone();
        }
    }
    Ok(dims)
}

/// x broadcast to a shape; O(1) where it has it.
pub(crate) fn broadcast(x: &Array, shape: &[usize]) -> Result<Array> {
    if x.shape() == shape {
        return Ok(x.clone());
    }
    if x.rank() > shape.len() || aligned(x.shape(), shape).any(|(&x, &n)| x != 1 && x != n) {
        return Err(no_broadcast(&tuple(x.shape()), &tuple(shape)));
    }
    if x.len() == 1 {
        return Ok(dispatch!(x.dtype(), T => Array::new(shape, memory::filled(x.as_slice::<T>()[0], elements(x.dtype(), shape)))));
    }
    let mut steps: SmallVec<[isize; 4]> = SmallVec::from_elem(0, shape.len() - x.rank());
    steps.extend(signed_strides(x.shape()).iter().zip(x.shape()).map(|(&step, &n)| if n == 1 { 0 } else { step }));
    Ok(view(x, 0, shape, &steps))
}

fn no_broadcast(from: &str, to: &str) -> Box<Diagnostic> {
    Diagnostic::new(Kind::Shape, "E0201", format!("{from} does not broadcast to {to}"))
}

fn no_sum(from: &str, to: &str) -> Box<Diagnostic> {
    Diagnostic::new(Kind::Shape, "E0201", format!("cannot sum {from} to {to}, which does not broadcast to it"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::*;
    use crate::types::{DType, Dim};

    fn ints(shape: &[i64]) -> Vec<Array> {
        shape.iter().map(|&n| Array::scalar(n)).collect()
    }

    fn to(x: &Array, shape: &[i64]) -> Vec<Array> {
        [x.clone()].into_iter().chain(ints(shape)).collect()
    }

    #[test]
    fn broadcasts_are_numpys() {
        let x = Array::new(&[2, 1], vec![1u8, 2]);
        let expected = Array::new(&[2, 2, 3], vec![1u8, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2]);
        assert_eq!(apply(BroadcastTo {}, &to(&x, &[2, 2, 3])), expected);
        assert_eq!(apply(BroadcastLike {}, &[x.clone(), Array::zeros(DType::F32, &[2, 2, 3])]), expected);
        assert_eq!(apply(BroadcastTo {}, &to(&x, &[2, 0])), Array::zeros(DType::U8, &[2, 0]));
        assert_eq!(apply(BroadcastTo {}, &to(&Array::scalar(true), &[])), Array::scalar(true));
        assert_eq!(apply(BroadcastTo {}, &to(&Array::scalar(1.5), &[2])), Array::vector(&[1.5, 1.5]));
    }

    #[test]
    fn sums_undo_broadcasts() {
        let x = Array::new(&[2, 2, 3], (0..12).map(f64::from).collect());
        let sum = |shape: &[usize]| apply(SumTo {}, &[x.clone(), Array::zeros(DType::Bool, shape)]);
        assert_eq!(sum(&[2, 1]), Array::new(&[2, 1], vec![24.0, 42.0]));
        assert_eq!(sum(&[1, 2, 3]), Array::new(&[1, 2, 3], vec![6.0, 8.0, 10.0, 12.0, 14.0, 16.0]));
        assert_eq!(sum(&[2, 1, 1]), Array::new(&[2, 1, 1], vec![15.0, 51.0]));
        assert_eq!(sum(&[]), Array::scalar(66.0));
        assert_eq!(sum(&[2, 2, 3]), x);
        let small = Array::vector(&[100i8, 100]);
        assert_eq!(apply(SumTo {}, &[small, Array::scalar(0i8)]), Array::scalar(-56i8));
        let empty = Array::zeros(DType::F64, &[0, 2]);
        assert_eq!(apply(SumTo {}, &[empty, Array::zeros(DType::F64, &[1, 2])]), Array::zeros(DType::F64, &[1, 2]));
    }

    #[test]
    fn misfits_are_errors_with_both_shapes() {
        let x = Array::vector(&[1.0, 2.0]);
        assert_eq!(run_error(BroadcastTo {}, &to(&x, &[3])).title, "(2,) does not broadcast to (3,)");
        assert_eq!(run_error(BroadcastTo {}, &to(&x, &[-2])).title, "an extent of `broadcast_to` is -2; extents cannot be negative");
        assert_eq!(build_error(BroadcastTo {}, &to(&x, &[])).title, "float64[2] does not broadcast to float64");
        assert_eq!(build_error(BroadcastTo {}, &[x.clone(), Array::scalar(2.0)]).code, "E0222");
        let y = Array::zeros(DType::F64, &[3, 3]);
        assert_eq!(build_error(BroadcastLike {}, &[x.clone(), y.clone()]).code, "E0201");
        assert_eq!(run_error(BroadcastLike {}, &[y.clone(), x.clone()]).code, "E0201");
        assert_eq!(run_error(SumTo {}, &[y.clone(), x.clone()]).title, "cannot sum (3, 3) to (2,), which does not broadcast to it");
        assert_eq!(build_error(SumTo {}, &[y.clone(), x.clone()]).code, "E0201");
        assert_eq!(build_error(SumTo {}, &[x, y]).code, "E0201");
    }

    #[test]
    fn known_extents_and_symbols_are_kept() {
        let (n, m) = (Dim::fresh(), Dim::fresh());
        let mut g = Graph::new();
        let x = g.param(Type::new(DType::F64, [Dim::known(1), Dim::known(4)]), None);
        let y = g.param(Type::new(DType::F32, [n.clone(), m.clone()]), None);
        let z = g.emit(BroadcastLike {}, &[x, y]);
        assert_eq!(*g.ty(z), Type::new(DType::F64, [n.clone(), Dim::known(4)]));
        let extent = g.dim(y, 0);
        let z = g.emit(BroadcastTo {}, &[x, extent, extent]);
        assert_eq!(*g.ty(z), Type::new(DType::F64, [n.clone(), Dim::known(4)]));
        let sum = g.emit(SumTo {}, &[z, x]);
        assert_eq!(g.ty(sum), g.ty(x));
    }

    const PAIRS: [(&[usize], &[usize]); 6] =
        [(&[], &[2, 3]), (&[2, 1], &[2, 3]), (&[3], &[2, 3]), (&[2, 3], &[2, 3]), (&[1, 3], &[0, 3]), (&[1], &[2, 2, 1])];

    #[test]
    fn gradients_match_differences_at_any_order() {
        for (small, large) in PAIRS {
            let (x, y) = (sample(small, 1), sample(large, 2));
            check_vjp(|g, v| g.emit(BroadcastLike {}, v), &[x.clone(), y.clone()]);
            check_vjp2(|g, v| g.emit(BroadcastLike {}, v), &[x.clone(), y.clone()]);
            check_vjp(|g, v| g.emit(SumTo {}, v), &[y.clone(), x.clone()]);
            check_vjp2(|g, v| g.emit(SumTo {}, v), &[y.clone(), x.clone()]);
            let shape: Vec<i64> = large.iter().map(|&n| n as i64).collect();
            check_vjp(|g, v| g.emit(BroadcastTo {}, v), &to(&x, &shape));
        }
    }
}
