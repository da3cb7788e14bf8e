//! Shapes: reshape, transpose, expand, squeeze, flip.

use super::args::{expect_count, expect_int_scalar, integer};
use super::support::{check_axes, drop_axes, exactly, none, one};
use crate::base::{Diagnostic, Kind, Result};
use crate::ir::op::*;
use crate::ir::{Graph, Value};
use crate::types::shape::{count, strides, tuple};
use crate::types::{Array, Dim, Dims, Element, Extents, Type};
use crate::{bail, dispatch};
use smallvec::SmallVec;

/// Row-major order is kept. One extent may be −1: as many as there are elements for. Where the number of elements
/// differs: `E0204`.
impl OpDef for Reshape {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        expect_count("reshape", 1, true, ins)?;
        let (x, extents) = (&ins[0], &ins[1..]);
        extents.iter().try_for_each(|d| expect_int_scalar("reshape", "an extent", d))?;
        Ok(one(Type { dtype: x.ty.dtype, dims: reshaped_dims(&x.ty, extents)? }))
    }

    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let x = &ins[0];
        let wanted: SmallVec<[i64; 4]> = ins[1..].iter().map(integer).collect();
        match resolve(x.len(), &wanted) {
            Some(shape) => Ok(one(x.reshaped(&shape))),
            None => Err(no_reshape(&tuple(x.shape()), &wanted)),
        }
    }

    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let mut out = none(site.ins.len());
        out[0] = cts[0].map(|ct| g.reshape_like(ct, site.ins[0]));
        Ok(out)
    }

    fn connected(&self, input: usize) -> bool {
        input == 0
    }

    fn can_fail(&self) -> bool {
        true
    }
}

/// The second input gives its shape only.
impl OpDef for ReshapeLike {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        let [x, y] = exactly("reshape_like", ins)?;
        if let (Some(a), Some(b)) = (known_count(&x.ty.dims), known_count(&y.ty.dims)) {
            if a != b {
                return Err(no_reshape_like(&x.ty.to_string(), &y.ty.to_string()));
            }
        }
        Ok(one(y.ty.with_dtype(x.ty.dtype)))
    }

    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let [x, y] = ins else { unreachable!("two inputs") };
        if x.len() != y.len() {
            return Err(no_reshape_like(&tuple(x.shape()), &tuple(y.shape())));
        }
        Ok(one(x.reshaped(y.shape())))
    }

    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        Ok(vec![cts[0].map(|ct| g.reshape_like(ct, site.ins[0])), None])
    }

    fn connected(&self, input: usize) -> bool {
        input == 0
    }

    fn can_fail(&self) -> bool {
        true
    }
}

/// `perm` names each axis once.
impl OpDef for Transpose {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        let [x] = exactly("transpose", ins)?;
        check_axes("transpose", &self.perm, &x.ty)?;
        if self.perm.len() != x.ty.rank() {
            bail!(Type, "E0222", "`transpose` by {:?}, but its input {} has {} axes", self.perm, x.ty, x.ty.rank());
        }
        Ok(one(Type::new(x.ty.dtype, self.perm.iter().map(|&axis| x.ty.dims[axis].clone()))))
    }

    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        Ok(one(permuted(&ins[0], &self.perm)))
    }

    fn vjp(&self, g: &mut Graph, _: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let mut inverse = vec![0; self.perm.len()];
        self.perm.iter().enumerate().for_each(|(i, &axis)| inverse[axis] = i);
        Ok(vec![cts[0].map(|ct| g.transpose(ct, &inverse))])
    }
}

/// `axes` are positions in the result.
impl OpDef for Expand {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        let [x] = exactly("expand", ins)?;
        let dims: Dims = expanded(&x.ty.dims, &self.axes, Dim::known(1));
        let ty = Type::new(x.ty.dtype, dims);
        check_axes("expand", &self.axes, &ty)?;
        Ok(one(ty))
    }

    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let shape: Extents = expanded(ins[0].shape(), &self.axes, 1);
        Ok(one(ins[0].reshaped(&shape)))
    }

    fn vjp(&self, g: &mut Graph, _: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        Ok(vec![cts[0].map(|ct| g.squeeze(ct, &self.axes))])
    }
}

/// An extent that is not 1 is `E0205`.
impl OpDef for Squeeze {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        let [x] = exactly("squeeze", ins)?;
        check_axes("squeeze", &self.axes, &x.ty)?;
        if let Some(&axis) = self.axes.iter().find(|&&axis| x.ty.dims[axis].conflicts(&Dim::known(1))) {
            return Err(no_squeeze(axis, &x.ty.to_string()));
        }
        Ok(one(Type::new(x.ty.dtype, drop_axes(&x.ty.dims, &self.axes, None))))
    }

    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let x = &ins[0];
        if let Some(&axis) = self.axes.iter().find(|&&axis| x.shape()[axis] != 1) {
            return Err(no_squeeze(axis, &tuple(x.shape())));
        }
        let shape: Extents = drop_axes(x.shape(), &self.axes, None).collect();
        Ok(one(x.reshaped(&shape)))
    }

    fn vjp(&self, g: &mut Graph, _: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        Ok(vec![cts[0].map(|ct| g.expand(ct, &self.axes))])
    }

    fn can_fail(&self) -> bool {
        true
    }
}

/// Its own transpose.
impl OpDef for Flip {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        let [x] = exactly("flip", ins)?;
        check_axes("flip", &[self.axis], &x.ty)?;
        Ok(one(x.ty.clone()))
    }

    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let x = &ins[0];
        let mut steps = signed_strides(x.shape());
        let start = (x.shape()[self.axis] as isize - 1) * steps[self.axis];
        steps[self.axis] *= -1;
        Ok(one(view(x, start, x.shape(), &steps)))
    }

    fn vjp(&self, g: &mut Graph, _: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        Ok(vec![cts[0].map(|ct| g.emit(self.clone(), &[ct]))])
    }
}

/// Row-major strides, signed.
pub(super) fn signed_strides(shape: &[usize]) -> SmallVec<[isize; 4]> {
    strides(shape).iter().map(|&s| s as isize).collect()
}

/// The axes of x in another order.
pub(super) fn permuted(x: &Array, perm: &[usize]) -> Array {
    let shape: Extents = perm.iter().map(|&axis| x.shape()[axis]).collect();
    let moving = perm.iter().filter(|&&axis| x.shape()[axis] != 1);
    if moving.is_sorted() {
        return x.reshaped(&shape);
    }
    let steps = signed_strides(x.shape());
    let steps: SmallVec<[isize; 4]> = perm.iter().map(|&axis| steps[axis]).collect();
    view(x, 0, &shape, &steps)
}

/// The strided view of x that starts at element `start`, as a new array.
pub(super) fn view(x: &Array, start: isize, shape: &[usize], steps: &[isize]) -> Array {
    dispatch!(x.dtype(), T => {
        let mut out: Vec<T> = Vec::with_capacity(count(shape));
        if count(shape) > 0 {
            copy(x.as_slice::<T>(), start, shape, steps, &mut out);
        }
        Array::new(shape, out)
    })
}

fn copy<T: Element>(data: &[T], start: isize, shape: &[usize], steps: &[isize], out: &mut Vec<T>) {
    match (shape, steps) {
        ([n], [1]) => out.extend_from_slice(&data[start as usize..start as usize + n]),
        ([n], [step]) => out.extend((0..*n as isize).map(|k| data[(start + k * step) as usize])),
        ([n, shape @ ..], [step, steps @ ..]) => (0..*n as isize).for_each(|k| copy(data, start + k * step, shape, steps, out)),
        _ => out.push(data[start as usize]),
    }
}

/// The extents with `one` at these positions of the result.
fn expanded<T: Clone, C: FromIterator<T>>(dims: &[T], axes: &[usize], one: T) -> C {
    let mut old = dims.iter();
    (0..dims.len() + axes.len()).filter_map(|i| if axes.contains(&i) { Some(one.clone()) } else { old.next().cloned() }).collect()
}

fn known_count(dims: &[Dim]) -> Option<usize> {
    dims.iter().map(Dim::value).product()
}

/// The shape of `n` elements under these extents, one of which may be −1.
fn resolve(n: usize, wanted: &[i64]) -> Option<Extents> {
    let others = wanted.iter().filter(|&&d| d != -1).try_fold(1usize, |product, &d| product.checked_mul(usize::try_from(d).ok()?))?;
    let open = match wanted.iter().filter(|&&d| d == -1).count() {
        0 if others == n => 0,
        1 if others != 0 && n % others == 0 => n / others,
        _ => return None,
    };
    Some(wanted.iter().map(|&d| if d == -1 { open } else { d as usize }).collect())
}

/// The dims of a reshape. Symbols are kept; an unknown extent that the others determine becomes what they say.
fn reshaped_dims(x: &Type, extents: &[Arg]) -> Result<Dims> {
    let numbers: SmallVec<[Option<i64>; 4]> = extents.iter().map(|d| d.value.as_ref().map(integer)).collect();
    if let (Some(n), Some(wanted)) = (known_count(&x.dims), numbers.iter().copied().collect::<Option<SmallVec<[i64; 4]>>>()) {
        let shape = resolve(n, &wanted).ok_or_else(|| no_reshape(&x.to_string(), &wanted))?;
        return Ok(shape.iter().map(|&n| Dim::known(n)).collect());
    }
    if let Some(bad) = numbers.iter().flatten().find(|&&d| d < -1) {
        bail!(Shape, "E0204", "cannot reshape {x} to an extent of {bad}");
    }
    if numbers.iter().filter(|d| **d == Some(-1)).count() > 1 {
        bail!(Shape, "E0204", "cannot reshape {x}: only one extent may be -1");
    }
    let mut dims: Dims = extents.iter().map(Arg::as_dim).collect();
    let open: SmallVec<[usize; 4]> = (0..dims.len()).filter(|&i| numbers[i].is_none_or(|d| d == -1) && extents[i].dim.is_none()).collect();
    if let [i] = open[..] {
        let others = dims.iter().enumerate().filter(|(k, _)| *k != i).map(|(_, d)| d.clone()).collect();
        if let Some(rest) = quotient(&x.dims, others, numbers[i] == Some(-1)) {
            dims[i] = rest;
        }
    }
    Ok(dims)
}

/// The product of `dims` divided by that of `others`, where it is an affine form. Equal symbols cancel only where `cancel`
/// says that they are not 0, as beside a −1.
fn quotient(dims: &[Dim], mut others: Dims, cancel: bool) -> Option<Dim> {
    let mut left = Dims::new();
    for d in dims {
        match others.iter().position(|o| cancel && o == d && d.value().is_none()) {
            Some(i) => drop(others.remove(i)),
            None => left.push(d.clone()),
        }
    }
    let divisor = known_count(&others).filter(|&n| n > 0)? as i64;
    let factor: usize = left.iter().filter_map(Dim::value).product();
    let mut unknown = left.iter().filter(|d| d.value().is_none());
    let form = unknown.next().cloned().unwrap_or_else(|| Dim::known(1)).scale(factor as i64);
    let (terms, constant) = form.parts();
    let exact = unknown.next().is_none() && constant % divisor == 0 && terms.iter().all(|t| t.1 % divisor == 0);
    exact.then(|| Dim::from_parts(terms.iter().map(|t| (t.0, t.1 / divisor)), constant / divisor))
}

fn no_reshape(from: &str, to: &[i64]) -> Box<Diagnostic> {
    let to: Vec<String> = to.iter().map(i64::to_string).collect();
    let comma = if to.len() == 1 { "," } else { "" };
    Diagnostic::new(Kind::Shape, "E0204", format!("cannot reshape {from} to ({}{comma}): the numbers of elements differ", to.join(", ")))
}

fn no_reshape_like(from: &str, to: &str) -> Box<Diagnostic> {
    Diagnostic::new(Kind::Shape, "E0204", format!("cannot reshape {from} to the shape of {to}: the numbers of elements differ"))
}

fn no_squeeze(axis: usize, shape: &str) -> Box<Diagnostic> {
    Diagnostic::new(Kind::Shape, "E0205", format!("cannot squeeze axis {axis} of {shape}: its extent is not 1"))
}
