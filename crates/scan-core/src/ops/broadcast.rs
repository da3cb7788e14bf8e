//! Broadcasting and its transpose.

use super::args::{expect_count, expect_int_scalar, integer};
use super::reduce::sum_axes;
use super::shape::{signed_strides, view};
use super::support::{exactly, none, one};
use crate::bail;
use crate::base::{Diagnostic, Kind, Result};
use crate::ir::op::*;
use crate::ir::{Graph, Value};
use crate::types::shape::tuple;
use crate::types::{Array, Dims, Extents, Type};
use smallvec::SmallVec;

/// x repeated along new leading axes and along axes of extent 1. Where it cannot be: `E0201`.
impl OpDef for BroadcastTo {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        expect_count("broadcast_to", 1, true, ins)?;
        let (x, extents) = (&ins[0], &ins[1..]);
        extents.iter().try_for_each(|d| expect_int_scalar("broadcast_to", "an extent", d))?;
        if let Some(bad) = extents.iter().filter_map(|d| d.value.as_ref()).map(integer).find(|&d| d < 0) {
            bail!(Shape, "E0201", "cannot broadcast {} to an extent of {bad}", x.ty);
        }
        let target = Type::new(x.ty.dtype, extents.iter().map(Arg::as_dim));
        Ok(one(Type { dtype: x.ty.dtype, dims: broadcast_dims_to(&x.ty, &target)? }))
    }

    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let wanted: SmallVec<[i64; 4]> = ins[1..].iter().map(integer).collect();
        if let Some(bad) = wanted.iter().find(|&&d| d < 0) {
            bail!(Shape, "E0201", "cannot broadcast {} to an extent of {bad}", tuple(ins[0].shape()));
        }
        let shape: Extents = wanted.iter().map(|&d| d as usize).collect();
        Ok(one(broadcast(&ins[0], &shape)?))
    }

    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let mut out = none(site.ins.len());
        out[0] = cts[0].map(|ct| g.sum_to(ct, site.ins[0]));
        Ok(out)
    }

    fn connected(&self, input: usize) -> bool {
        input == 0
    }

    fn can_fail(&self) -> bool {
        true
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

    fn connected(&self, input: usize) -> bool {
        input == 0
    }

    fn can_fail(&self) -> bool {
        true
    }
}

/// The second input gives its shape only. The dtype stays that of x. Where y cannot have been broadcast to the shape of
/// x: `E0201`.
impl OpDef for SumTo {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        let [x, y] = exactly("sum_to", ins)?;
        if x.ty.rank() < y.ty.rank() || aligned(&x.ty.dims, &y.ty.dims).any(|(x, y)| !y.is_one() && y.conflicts(x)) {
            return Err(no_sum(&x.ty.to_string(), &y.ty.to_string()));
        }
        Ok(one(y.ty.with_dtype(x.ty.dtype)))
    }

    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let [x, y] = ins else { unreachable!("two inputs") };
        if x.shape() == y.shape() {
            return Ok(one(x.clone()));
        }
        if x.rank() < y.rank() || aligned(x.shape(), y.shape()).any(|(&x, &y)| y != 1 && y != x) {
            return Err(no_sum(&tuple(x.shape()), &tuple(y.shape())));
        }
        let new = x.rank() - y.rank();
        let stretched = (new..x.rank()).filter(|&axis| x.shape()[axis] != y.shape()[axis - new]);
        let axes: SmallVec<[usize; 4]> = (0..new).chain(stretched).collect();
        Ok(one(sum_axes(x, &axes, y.shape())))
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
fn broadcast(x: &Array, shape: &[usize]) -> Result<Array> {
    if x.shape() == shape {
        return Ok(x.clone());
    }
    if x.rank() > shape.len() || aligned(x.shape(), shape).any(|(&x, &n)| x != 1 && x != n) {
        return Err(no_broadcast(&tuple(x.shape()), &tuple(shape)));
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
