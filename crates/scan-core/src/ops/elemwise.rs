//! Elementwise functions and casts.

use crate::base::{Diagnostic, Kind, Result};
use crate::ir::op::{Arg, Cast, EvalCx, OpDef, Outs, Site};
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
    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let operand = operand(*self, ins.iter().map(Array::dtype))?;
        for (i, x) in ins.iter_mut().enumerate() {
            let wanted = if (self.row().rule, i) == (Rule::Where, 0) { DType::Bool } else { operand };
            if x.dtype() != wanted {
                *x = x.cast(wanted);
            }
        }
        let operands = Operands::new(ins)?;
        let out = if self.row().rule == Rule::Where { choose(operand, &operands) } else { map(*self, operand, &operands) };
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
    fn dim(&self, ins: &[Arg]) -> Option<Dim> {
        let dims: SmallVec<[Dim; 3]> = ins.iter().map(extent).collect::<Option<_>>()?;
        match (self, &dims[..]) {
            (ElemOp::Add, [a, b]) => Some(a.add(b)),
            (ElemOp::Sub, [a, b]) => Some(a.sub(b)),
            (ElemOp::Neg, [a]) => Some(a.scale(-1)),
            (ElemOp::Mul, [a, b]) => number(a).map(|k| b.scale(k)).or_else(|| number(b).map(|k| a.scale(k))),
            (ElemOp::Minimum | ElemOp::Maximum, [a, b]) => extreme(*self, a, b),
            _ => None,
        }
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
    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        Ok(smallvec![ins[0].cast(self.dtype)])
    }
    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let from = g.ty(site.ins[0]).dtype;
        let flows = from.is_float() && self.dtype.is_float();
        Ok(vec![cts[0].filter(|_| flows).map(|ct| g.cast(ct, from))])
    }
    fn dim(&self, ins: &[Arg]) -> Option<Dim> {
        ins[0].dim.clone().filter(|_| self.dtype == DType::I64)
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
mod tests {
    use super::*;
    use crate::ops::testing::{apply, build_error, check_vjp, eval_graph, run_error, sample, vjp_of};
    use crate::types::DType::*;

    fn elem(op: ElemOp, ins: &[Array]) -> Array {
        apply(Op::Elem(op), ins)
    }

    fn floats(op: ElemOp, ins: &[f64]) -> f64 {
        elem(op, &ins.iter().map(|&x| Array::scalar(x)).collect::<Vec<_>>()).as_slice::<f64>()[0]
    }

    /// The element of x that broadcasting puts at a position of the result.
    fn at(x: &Array, idx: &[usize]) -> f64 {
        let own = &idx[idx.len() - x.rank()..];
        let k = x.shape().iter().zip(own).fold(0, |k, (&n, &i)| k * n + if n == 1 { 0 } else { i });
        x.as_slice::<f64>()[k]
    }

    #[test]
    fn operands_broadcast_as_numpy_says() {
        let shapes: [(&[usize], &[usize], &[usize]); 8] = [
            (&[2, 3], &[2, 3], &[2, 3]),
            (&[2, 3], &[], &[2, 3]),
            (&[], &[4], &[4]),
            (&[2, 1], &[3], &[2, 3]),
            (&[3, 1, 2], &[4, 1], &[3, 4, 2]),
            (&[1, 1], &[1], &[1, 1]),
            (&[0, 3], &[1, 3], &[0, 3]),
            (&[1, 3], &[4, 0, 1], &[4, 0, 3]),
        ];
        for (a, b, expected) in shapes {
            let (a, b) = (sample(a, 1), sample(b, 2));
            let out = elem(ElemOp::Sub, &[a.clone(), b.clone()]);
            assert_eq!(out.shape(), expected);
            let third = elem(ElemOp::Clip, &[Array::full(F64, expected, 9.0), a.clone(), b.clone()]);
            let select = elem(ElemOp::Where, &[elem(ElemOp::Lt, &[a.clone(), b.clone()]), a.clone(), b.clone()]);
            for k in 0..out.len() {
                let mut rest = k;
                let mut idx: Vec<usize> = expected.iter().rev().map(|&n| (rest % n, rest /= n).0).collect();
                idx.reverse();
                assert_eq!(out.as_slice::<f64>()[k], at(&a, &idx) - at(&b, &idx), "{idx:?}");
                assert_eq!(third.as_slice::<f64>()[k], at(&b, &idx), "{idx:?}");
                assert_eq!(select.as_slice::<f64>()[k], at(&a, &idx).min(at(&b, &idx)), "{idx:?}");
            }
        }
    }

    #[test]
    fn results_have_numpys_dtypes() {
        let rows: [(ElemOp, &[DType], DType); 20] = [
            (ElemOp::Add, &[Bool, Bool], Bool),
            (ElemOp::Add, &[I8, U8], I16),
            (ElemOp::Mul, &[I64, F32], F64),
            (ElemOp::Mul, &[I16, F32], F32),
            (ElemOp::Add, &[U64, I64], F64),
            (ElemOp::Div, &[I32, I32], F64),
            (ElemOp::Div, &[F32, F32], F32),
            (ElemOp::FloorDiv, &[Bool, Bool], I8),
            (ElemOp::Pow, &[Bool, I32], I32),
            (ElemOp::Exp, &[F32], F32),
            (ElemOp::Exp, &[I64], F64),
            (ElemOp::Sqrt, &[Bool], F64),
            (ElemOp::Floor, &[I16], I16),
            (ElemOp::Square, &[Bool], I8),
            (ElemOp::Lt, &[I8, F64], Bool),
            (ElemOp::Or, &[F32, I8], Bool),
            (ElemOp::BitAnd, &[Bool, U8], U8),
            (ElemOp::ShiftLeft, &[Bool, Bool], I8),
            (ElemOp::Where, &[F64, I8, U8], I16),
            (ElemOp::Where, &[I64, Bool, Bool], Bool),
        ];
        for (op, dtypes, expected) in rows {
            let ins: Vec<Array> = dtypes.iter().map(|&d| Array::full(d, &[2], 1.0)).collect();
            assert_eq!(elem(op, &ins).dtype(), expected, "{} of {dtypes:?}", op.name());
        }
    }

    #[test]
    fn mixed_dtypes_meet_in_the_common_one() {
        let out = elem(ElemOp::Add, &[Array::vector(&[200u8, 255]), Array::vector(&[-1i8, 1])]);
        assert_eq!(out, Array::vector(&[199i16, 256]));
        let halves = elem(ElemOp::Div, &[Array::vector(&[1i64, -3]), Array::scalar(2u8)]);
        assert_eq!(halves, Array::vector(&[0.5, -1.5]));
        let cond = Array::vector(&[256i64, 0]);
        assert_eq!(elem(ElemOp::Where, &[cond, Array::scalar(1i8), Array::scalar(2i8)]), Array::vector(&[1i8, 2]));
        assert_eq!(elem(ElemOp::And, &[Array::vector(&[0.25f32, f32::NAN, 0.0]), Array::scalar(7u8)]), Array::vector(&[true, true, false]));
    }

    #[test]
    fn bools_follow_numpy() {
        let (a, b) = (Array::vector(&[false, false, true, true]), Array::vector(&[false, true, false, true]));
        let table = [
            (ElemOp::Add, [false, true, true, true]),
            (ElemOp::Mul, [false, false, false, true]),
            (ElemOp::Maximum, [false, true, true, true]),
            (ElemOp::Lt, [false, true, false, false]),
            (ElemOp::Le, [true, true, false, true]),
            (ElemOp::Gt, [false, false, true, false]),
            (ElemOp::Ge, [true, false, true, true]),
            (ElemOp::Ne, [false, true, true, false]),
            (ElemOp::BitXor, [false, true, true, false]),
        ];
        for (op, expected) in table {
            assert_eq!(elem(op, &[a.clone(), b.clone()]), Array::vector(&expected), "{}", op.name());
        }
        assert_eq!(elem(ElemOp::Invert, &[b]), Array::vector(&[true, false, true, false]));
    }

    #[test]
    fn refused_dtypes_and_counts_are_errors() {
        let (mask, x) = (Array::scalar(true), Array::scalar(1.5));
        assert_eq!(build_error(Op::Elem(ElemOp::Sub), &[mask.clone(), mask.clone()]).code, "E0230");
        assert_eq!(build_error(Op::Elem(ElemOp::Neg), std::slice::from_ref(&mask)).code, "E0230");
        assert_eq!(build_error(Op::Elem(ElemOp::BitAnd), &[mask.clone(), x.clone()]).code, "E0230");
        assert_eq!(build_error(Op::Elem(ElemOp::Add), std::slice::from_ref(&x)).code, "E0231");
        assert_eq!(build_error(Op::from(Cast { dtype: F32 }), &[]).code, "E0231");
        let (two, three) = (Array::zeros(F64, &[2]), Array::zeros(F64, &[3]));
        assert_eq!(build_error(Op::Elem(ElemOp::Add), &[two.clone(), three.clone()]).code, "E0201");
        assert_eq!(run_error(Op::Elem(ElemOp::Add), &[two, three]).code, "E0201");
    }

    #[test]
    fn special_values_are_those_of_ieee_and_python() {
        use ElemOp::*;
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        let rows: [(ElemOp, &[f64], f64); 40] = [
            (Maximum, &[nan, 1.0], nan),
            (Maximum, &[1.0, nan], nan),
            (Minimum, &[nan, 1.0], nan),
            (Minimum, &[1.0, nan], nan),
            (Clip, &[nan, 0.0, 1.0], nan),
            (Clip, &[5.0, 3.0, 1.0], 1.0),
            (Relu, &[nan], nan),
            (Sign, &[nan], nan),
            (Sign, &[-0.0], 0.0),
            (Mod, &[-1.0, inf], inf),
            (Mod, &[5.0, 0.0], nan),
            (Mod, &[-6.0, 3.0], 0.0),
            (Mod, &[6.0, -3.0], -0.0),
            (FloorDiv, &[5.0, 0.0], inf),
            (FloorDiv, &[-5.0, 0.0], -inf),
            (FloorDiv, &[-1.0, inf], -1.0),
            (FloorDiv, &[0.0, -2.0], -0.0),
            (FloorDiv, &[1.0, 0.1], 9.0),
            (Fmod, &[-6.0, 4.0], -2.0),
            (Round, &[2.5], 2.0),
            (Round, &[-3.5], -4.0),
            (Pow, &[0.0, 0.0], 1.0),
            (Pow, &[-8.0, 1.0 / 3.0], nan),
            (XLogY, &[0.0, 0.0], 0.0),
            (XLogY, &[0.0, nan], nan),
            (LogAddExp, &[-inf, -inf], -inf),
            (LogAddExp, &[inf, inf], inf),
            (LogAddExp, &[-inf, 2.0], 2.0),
            (Sigmoid, &[1000.0], 1.0),
            (Sigmoid, &[-1000.0], 0.0),
            (Softplus, &[1000.0], 1000.0),
            (LogSigmoid, &[-800.0], -800.0),
            (ErfInv, &[1.0], inf),
            (ErfInv, &[-1.5], nan),
            (GammaLn, &[0.0], inf),
            (Digamma, &[0.0], -inf),
            (Digamma, &[-2.0], nan),
            (Digamma, &[inf], inf),
            (Trigamma, &[-1.0], inf),
            (Hypot, &[1e300, 1e300], 1e300 * std::f64::consts::SQRT_2),
        ];
        for (op, ins, expected) in rows {
            let got = floats(op, ins);
            assert!(
                got.to_bits() == expected.to_bits() || (got.is_nan() && expected.is_nan()),
                "{}{ins:?} = {got}, expected {expected}",
                op.name()
            );
        }
    }

    /// The cotangents of scalars, given 1.
    fn slopes(op: ElemOp, ins: &[f64]) -> Vec<f64> {
        let ins: Vec<Array> = ins.iter().map(|&x| Array::scalar(x)).collect();
        let (mut g, params) = crate::ops::testing::graph_of(&ins, true);
        let y = g.emit(Op::Elem(op), &params);
        let one = g.number(F64, 1.0);
        let grads = vjp_of(&mut g, y, one, &params).expect("has a gradient");
        grads.iter().map(|v| v.map_or(0.0, |v| eval_graph(&g, &ins, &[v]).expect("evaluates")[0].as_slice::<f64>()[0])).collect()
    }

    #[test]
    fn gradients_at_the_edges_are_as_promised() {
        use ElemOp::*;
        assert_eq!(slopes(Maximum, &[2.0, 2.0]), [0.5, 0.5]);
        assert_eq!(slopes(Minimum, &[2.0, 3.0]), [1.0, 0.0]);
        assert_eq!(slopes(Abs, &[0.0]), [0.0]);
        assert_eq!(slopes(Pow, &[0.0, 0.0]), [0.0, 0.0]);
        assert_eq!(slopes(Pow, &[0.0, 1.0])[0], 1.0);
        assert_eq!(slopes(Pow, &[-2.0, 3.0]), [12.0, 0.0]);
        assert_eq!(slopes(Hypot, &[0.0, 0.0]), [0.0, 0.0]);
        assert_eq!(slopes(Clip, &[1.0, 0.0, 1.0]), [0.5, 0.0, 0.5]);
        assert_eq!(slopes(Clip, &[-1.0, 2.0, 0.0]), [0.0, 0.0, 1.0]);
        assert_eq!(slopes(LogAddExp, &[f64::NEG_INFINITY, f64::NEG_INFINITY]), [0.5, 0.5]);
        assert_eq!(slopes(XLogY, &[0.0, 0.0])[1], 0.0);
        assert_eq!(slopes(Floor, &[1.5]), [0.0]);
    }

    #[test]
    fn where_keeps_foreign_infinities_out() {
        let x = Array::vector(&[-1.0, 0.0, 2.0]);
        let (mut g, p) = crate::ops::testing::graph_of(std::slice::from_ref(&x), true);
        let zero = g.number(F64, 0.0);
        let positive = g.emit(Op::Elem(ElemOp::Gt), &[p[0], zero]);
        let log = g.log(p[0]);
        let y = g.select(positive, log, zero);
        let ct = g.ones_like(y);
        let grad = vjp_of(&mut g, y, ct, &p).expect("has a gradient")[0].expect("is connected");
        let got = eval_graph(&g, &[x], &[grad]).expect("evaluates").remove(0).to_f64_vec();
        assert_eq!((got[0], got[2]), (-0.0, 0.5));
    }

    #[test]
    fn cotangents_have_the_dtype_and_shape_of_their_inputs() {
        let ins = [Array::full(F32, &[3, 1], 2.0), sample(&[2], 1), Array::scalar(3i64)];
        for known in [true, false] {
            let (mut g, p) = crate::ops::testing::graph_of(&ins, known);
            let product = g.mul(p[0], p[1]);
            let y = g.mul(product, p[2]);
            let ct = g.ones_like(y);
            let grads = vjp_of(&mut g, y, ct, &p).expect("has a gradient");
            assert_eq!(grads[2], None);
            let got = eval_graph(&g, &ins, &[grads[0].expect("float"), grads[1].expect("float")]).expect("evaluates");
            assert_eq!((got[0].dtype(), got[0].shape()), (F32, &[3, 1][..]));
            assert_eq!((got[1].dtype(), got[1].shape(), got[1].as_slice::<f64>()[0]), (F64, &[2][..], 18.0));
        }
        for op in [ElemOp::Mul, ElemOp::Atan2, ElemOp::Maximum] {
            check_vjp(|g, v| g.emit(Op::Elem(op), v), &[sample(&[3, 1], 1), sample(&[2], 2)]);
        }
    }

    #[test]
    fn unwritten_derivatives_say_so() {
        let (mut g, p) = crate::ops::testing::graph_of(&[Array::scalar(1.5)], true);
        let y = g.emit(Op::Elem(ElemOp::Tetragamma), &p);
        let ct = g.ones_like(y);
        assert_eq!(vjp_of(&mut g, y, ct, &p).expect_err("not written").code, "E0403");
    }

    #[test]
    fn casts_convert_and_their_cotangents_return() {
        let x = Array::vector(&[1.9, -1.9, f64::NAN, 300.0]);
        assert_eq!(apply(Cast { dtype: I8 }, std::slice::from_ref(&x)), Array::vector(&[1i8, -1, 0, 127]));
        assert_eq!(apply(Cast { dtype: Bool }, &[Array::vector(&[0.0, -0.0, 0.5])]), Array::vector(&[false, false, true]));
        let (mut g, p) = crate::ops::testing::graph_of(std::slice::from_ref(&x), true);
        for (to, flows) in [(F32, true), (I64, false), (Bool, false)] {
            let y = g.cast(p[0], to);
            let ct = g.ones_like(y);
            let grad = vjp_of(&mut g, y, ct, &p).expect("has a rule")[0];
            assert_eq!(grad.map(|v| g.ty(v).dtype), flows.then_some(F64));
        }
    }

    #[test]
    fn extents_stay_symbolic_through_arithmetic() {
        let mut g = Graph::new();
        let n = Dim::fresh();
        let x = g.param(Type::new(F64, [n.clone()]), None);
        let d = g.dim(x, 0);
        let (two, huge) = (g.int(2), g.int(i64::MAX));
        let doubled = g.mul(two, d);
        let more = g.add(doubled, two);
        let back = g.sub(more, doubled);
        let least = g.minimum(more, doubled);
        let overflow = g.mul(d, huge);
        let square = g.mul(d, d);
        let dim = |v| g.arg(v).as_dim();
        assert_eq!(dim(more), n.scale(2).add(&Dim::known(2)));
        assert_eq!(dim(back), Dim::known(2));
        assert_eq!(dim(least), n.scale(2));
        assert_eq!((g.arg(overflow).dim, g.arg(square).dim), (None, None));
    }
}
