//! Elementwise functions and casts.

use super::batch;
use super::certain::broadcasts;
use super::parts::in_parts;
use crate::base::{Diagnostic, Kind, Result};
use crate::ir::op::{Arg, Batched, Batching, Cast, EvalCx, OpDef, Outs, Site};
use crate::ir::{Graph, Op, Value};
use crate::scalar::walk::Operands;
use crate::scalar::{ElemOp, Rule, Term};
use crate::types::shape::{Dims, broadcast_dims};
use crate::types::{Array, DType, Dim, Type};
use smallvec::{SmallVec, smallvec};
use std::cell::RefCell;

impl OpDef for ElemOp {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        if ins.len() != self.arity() {
            return Err(wrong_arity(*self, ins.len()));
        }
        let operand = operand(*self, ins.iter().map(|a| a.ty.dtype))?;
        Ok(smallvec![Type { dtype: self.row().result(operand), dims: common_dims(ins)? }])
    }
    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let operand = operand(*self, ins.iter().map(Array::dtype))?;
        for (i, x) in ins.iter_mut().enumerate() {
            let wanted = if (self.row().rule, i) == (Rule::Where, 0) { DType::Bool } else { operand };
            if x.dtype() != wanted {
                *x = x.cast(wanted);
            }
        }
        let out = in_parts(cx, ins, |ins| {
            let operands = Operands::new(ins)?;
            Ok(if self.row().rule == Rule::Where { choose(operand, &operands) } else { map(*self, operand, &operands) })
        })?;
        Ok(smallvec![out.ok_or_else(|| refused(*self, operand))?])
    }
    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let Some(ct) = cts[0].filter(|_| g.ty(site.outs[0]).dtype.is_float()) else { return Ok(vec![None; site.ins.len()]) };
        if self.lacks_derivative() {
            let title = format!("the derivative of `{}` is not available", self.name());
            return Err(Diagnostic::new(Kind::Gradient, "E0403", title));
        }
        let dtype = g.ty(site.outs[0]).dtype;
        Ok((0..site.ins.len()).map(|i| cotangent(*self, g, i, site, ct, dtype)).collect())
    }
    fn fallible(&self, g: &Graph, ins: &[Value]) -> bool {
        !broadcasts(&ins.iter().map(|&v| g.ty(v)).collect::<SmallVec<[&Type; 4]>>())
    }
    fn dim(&self, ins: &[Arg]) -> Option<Dim> {
        let dims: SmallVec<[Dim; 3]> = ins.iter().map(extent).collect::<Option<_>>()?;
        match (self, &dims[..]) {
            (ElemOp::Add, [a, b]) => Some(a.add(b)),
            (ElemOp::Sub, [a, b]) => Some(a.sub(b)),
            (ElemOp::Neg, [a]) => Some(a.scale(-1)),
            (ElemOp::Mul, [a, b]) => number(a).map(|k| b.scale(k)).or_else(|| number(b).map(|k| a.scale(k))),
            (ElemOp::Minimum | ElemOp::Maximum, [a, b]) => extreme(*self, a, b),
            _ => self.of_numbers(&dims),
        }
    }
    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        batch::elementwise(*self, b, ins)
    }
}

impl ElemOp {
    /// The integer that a function of known integers is.
    fn of_numbers(self, dims: &[Dim]) -> Option<Dim> {
        let mut ins = dims.iter().map(|d| number(d).map(Array::scalar)).collect::<Option<SmallVec<[Array; 3]>>>()?;
        let made = self.eval(&mut EvalCx::new(), &mut ins).ok()?;
        made.first().filter(|a| a.dtype().is_int()).and_then(Array::item_i64).map(|n| Dim::from_parts([], n))
    }
}

/// Cast: `x.cast(dtype)`. The cotangent is cast back; through integers and bools none flows.
impl OpDef for Cast {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        let [x] = ins else {
            return Err(Diagnostic::new(Kind::Type, "E0231", format!("`cast` takes 1 input, got {}", ins.len())));
        };
        Ok(smallvec![x.ty.with_dtype(self.dtype)])
    }
    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        if ins[0].dtype() == self.dtype {
            return Ok(smallvec![ins[0].clone()]);
        }
        Ok(in_parts(cx, &ins[..1], |ins| Ok(Some(ins[0].cast(self.dtype))))?.into_iter().collect())
    }
    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let from = g.ty(site.ins[0]).dtype;
        let flows = from.is_float() && self.dtype.is_float();
        Ok(vec![cts[0].filter(|_| flows).map(|ct| g.cast(ct, from))])
    }
    fn dim(&self, ins: &[Arg]) -> Option<Dim> {
        ins[0].dim.clone().filter(|_| self.dtype == DType::I64)
    }
    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        b.as_is(self.clone(), ins)
    }
}

fn wrong_arity(op: ElemOp, got: usize) -> Box<Diagnostic> {
    let plural = if op.arity() == 1 { "" } else { "s" };
    Diagnostic::new(Kind::Type, "E0231", format!("`{}` takes {} input{plural}, got {got}", op.name(), op.arity()))
}

/// The dtype computed in.
fn operand(op: ElemOp, dtypes: impl Iterator<Item = DType> + Clone) -> Result<DType> {
    let refuse = || {
        let promoted = dtypes.clone().reduce(DType::promote).unwrap_or(DType::Bool);
        refused(op, promoted)
    };
    op.row().operand(dtypes.clone()).ok_or_else(refuse)
}

fn refused(op: ElemOp, dtype: DType) -> Box<Diagnostic> {
    let error = Diagnostic::new(Kind::Type, "E0230", format!("`{}` does not take {dtype}", op.name()));
    match op {
        _ if dtype.is_float() => error.help("cast the inputs to an integer dtype first"),
        ElemOp::Sub => error.help("use `logical_xor` on truth values, or cast them to an integer dtype"),
        ElemOp::Neg => error.help("use `logical_not` on truth values, or cast them to an integer dtype"),
        _ => error.help("cast the truth values to an integer dtype first"),
    }
}

/// The dims of the inputs broadcast together; where all are the same, without new unknowns.
fn common_dims(ins: &[Arg]) -> Result<Dims> {
    broadcast_dims(&ins.iter().map(|a| &a.ty).collect::<SmallVec<[&Type; 3]>>())
}

fn choose(dtype: DType, operands: &Operands) -> Option<Array> {
    Some(crate::dispatch!(dtype, T => operands.choose::<T>()))
}

fn map(op: ElemOp, dtype: DType, operands: &Operands) -> Option<Array> {
    match dtype {
        DType::Bool => op.map_bool(operands),
        DType::I8 => op.map_int::<i8>(operands),
        DType::I16 => op.map_int::<i16>(operands),
        DType::I32 => op.map_int::<i32>(operands),
        DType::I64 => op.map_int::<i64>(operands),
        DType::U8 => op.map_int::<u8>(operands),
        DType::U16 => op.map_int::<u16>(operands),
        DType::U32 => op.map_int::<u32>(operands),
        DType::U64 => op.map_int::<u64>(operands),
        DType::F32 => op.map_float::<f32>(operands),
        DType::F64 => op.map_float::<f64>(operands),
    }
}

/// The cotangent of input `i` in its own dtype and shape.
fn cotangent(op: ElemOp, g: &mut Graph, i: usize, site: &Site, ct: Value, dtype: DType) -> Option<Value> {
    let (input, own) = (site.ins[i], g.ty(site.ins[i]).dtype);
    if !own.is_float() || !op.row().differentiable {
        return None;
    }
    let squares = op == ElemOp::Pow && i == 0 && g.const_value(site.ins[1]).and_then(Array::item_f64) == Some(2.0);
    let full = if squares {
        let x = g.cast(input, dtype);
        let (two, product) = (g.number(dtype, 2.0), g.mul(ct, x));
        g.mul(product, two)
    } else {
        let cell = RefCell::new(&mut *g);
        let term = |v: Value| Node { g: &cell, v, dtype };
        let ins: SmallVec<[Node; 3]> = site.ins.iter().enumerate().map(|(k, &v)| term(operand_value(op, &cell, k, v, dtype))).collect();
        op.cotangent(i, &ins, term(site.outs[0]), term(ct))?.v
    };
    let full = g.sum_to(full, input);
    Some(g.cast(full, own))
}

/// An input in the dtype computed in; the condition of `where` as it is.
fn operand_value(op: ElemOp, g: &RefCell<&mut Graph>, k: usize, v: Value, dtype: DType) -> Value {
    if (op.row().rule, k) == (Rule::Where, 0) { v } else { g.borrow_mut().cast(v, dtype) }
}

/// A value of a graph in a derivative.
#[derive(Clone, Copy)]
struct Node<'a, 'g> {
    g: &'a RefCell<&'g mut Graph>,
    v: Value,
    dtype: DType,
}

impl Term for Node<'_, '_> {
    fn num(self, x: f64) -> Self {
        let v = self.g.borrow_mut().number(self.dtype, x);
        Node { v, ..self }
    }
    fn apply(op: ElemOp, ins: &[Self]) -> Self {
        let values: SmallVec<[Value; 3]> = ins.iter().map(|t| t.v).collect();
        let v = ins[0].g.borrow_mut().emit(Op::Elem(op), &values);
        Node { v, ..ins[0] }
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $op:ident),+) => {$(
        impl std::ops::$trait for Node<'_, '_> {
            type Output = Self;
            fn $method(self, other: Self) -> Self { Term::apply(ElemOp::$op, &[self, other]) }
        }
        impl std::ops::$trait<f64> for Node<'_, '_> {
            type Output = Self;
            fn $method(self, x: f64) -> Self { Term::apply(ElemOp::$op, &[self, self.num(x)]) }
        }
    )+};
}

operators!(Add add Add, Sub sub Sub, Mul mul Mul, Div div Div);

impl std::ops::Neg for Node<'_, '_> {
    type Output = Self;
    fn neg(self) -> Self {
        Term::apply(ElemOp::Neg, &[self])
    }
}

/// Larger numbers are not extents; below, sums and products of two cannot overflow.
const LARGEST: u64 = 1 << 30;

/// The i64 scalar as an affine form, where one is known.
fn extent(arg: &Arg) -> Option<Dim> {
    if arg.ty != Type::scalar(DType::I64) {
        return None;
    }
    let number = arg.value.as_ref().and_then(Array::item_i64).map(|n| Dim::from_parts([], n));
    number.or_else(|| arg.dim.clone()).filter(|d| {
        let (terms, constant) = d.parts();
        terms.iter().all(|t| t.1.unsigned_abs() < LARGEST) && constant.unsigned_abs() < LARGEST
    })
}

fn number(d: &Dim) -> Option<i64> {
    let (terms, constant) = d.parts();
    terms.is_empty().then_some(constant)
}

/// The lesser or greater of two forms that differ by a number.
fn extreme(op: ElemOp, a: &Dim, b: &Dim) -> Option<Dim> {
    let gap = number(&a.sub(b))?;
    Some(if (gap <= 0) == (op == ElemOp::Minimum) { a.clone() } else { b.clone() })
}

#[cfg(test)]
mod tests;
