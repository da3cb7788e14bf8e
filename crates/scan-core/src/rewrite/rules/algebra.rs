//! Arithmetic identities that hold bit for bit (a NaN stays a NaN; its sign and payload are nobody's).

use super::{Rule, const_fold, either};
use crate::ir::{Op, Value};
use crate::rewrite::local::Local;
use crate::scalar::ElemOp::{self, *};
use crate::types::DType;

/// The rules.
pub static RULES: &[Rule] = &[
    Rule { doc: "x + (−0) → x; of integers x + 0 → x", on: &["add"], apply: |l, _, ins| either(l, ins, adds_nothing) },
    Rule { doc: "x − 0 → x", on: &["sub"], apply: |l, _, ins| neutral(l, ins[0], ins[1], 0.0) },
    Rule { doc: "x · 1 → x", on: &["mul"], apply: |l, _, ins| either(l, ins, |l, x, y| neutral(l, x, y, 1.0)) },
    Rule { doc: "x / 1 → x", on: &["div"], apply: |l, _, ins| neutral(l, ins[0], ins[1], 1.0).filter(|&x| l.dtype(x).is_float()) },
    Rule { doc: "x / 2ᵏ → x · 2⁻ᵏ", on: &["div"], apply: |l, _, ins| by_power_of_two(l, ins[0], ins[1]) },
    Rule { doc: "x · 0 → 0, of integers", on: &["mul"], apply: |l, _, ins| either(l, ins, times_zero) },
    Rule { doc: "x − x → 0, of integers", on: &["sub"], apply: |l, _, ins| minus_itself(l, ins[0], ins[1]) },
    Rule { doc: "−(−x) → x", on: &["neg"], apply: |l, _, ins| l.of(ins[0], Neg) },
    Rule { doc: "−(x · c) → x · (−c)", on: &["neg"], apply: |l, _, ins| negated_product(l, ins[0]) },
    Rule { doc: "x + (−y) → x − y", on: &["add"], apply: |l, _, ins| either(l, ins, |l, x, y| with_negated(l, Add, Sub, x, y)) },
    Rule { doc: "x − (−y) → x + y", on: &["sub"], apply: |l, _, ins| with_negated(l, Sub, Add, ins[0], ins[1]) },
    Rule { doc: "(−x) · y → −(x · y)", on: &["mul"], apply: |l, _, ins| either(l, ins, |l, x, y| minus_out(l, Mul, x, y)) },
    Rule { doc: "(−x) / y → −(x / y)", on: &["div"], apply: |l, _, ins| minus_out(l, Div, ins[0], ins[1]) },
    Rule { doc: "x / (−y) → −(x / y)", on: &["div"], apply: |l, _, ins| minus_under(l, ins[0], ins[1]) },
    Rule { doc: "(x + c) + d → x + (c + d), of integers", on: &["add", "sub"], apply: shifted_twice },
    Rule { doc: "(x + y) − y → x, of integers", on: &["sub"], apply: |l, _, ins| back_again(l, ins[0], ins[1]) },
    Rule { doc: "max(x, x) → x", on: &["minimum", "maximum"], apply: |_, _, ins| (ins[0] == ins[1]).then_some(ins[0]) },
    Rule { doc: "f(f(x)) → f(x), of roundings and |x|", on: &["floor", "ceil", "trunc", "round", "abs", "relu"], apply: twice },
    Rule { doc: "|−x| → |x|", on: &["abs"], apply: |l, op, ins| of_negated(l, op, ins[0]) },
    Rule { doc: "xⁿ → x · x, x or 1, of integers", on: &["pow"], apply: |l, _, ins| integer_power(l, ins[0], ins[1]) },
];

/// x, where y is `unit` everywhere and the result has the type of x.
fn neutral(l: &mut Local, x: Value, y: Value, unit: f64) -> Option<Value> {
    let is_unit = l.splat(y).is_some_and(|n| n.to_bits() == unit.to_bits());
    (is_unit && l.absorbs(x, y)).then_some(x)
}

/// A float may be −0, to which adding 0 gives 0: only −0 adds nothing.
fn adds_nothing(l: &mut Local, x: Value, y: Value) -> Option<Value> {
    let zero = if l.dtype(x).is_float() { -0.0 } else { 0.0 };
    neutral(l, x, y, zero)
}

/// Both round the same number, as long as 2⁻ᵏ is a normal number.
fn by_power_of_two(l: &mut Local, x: Value, y: Value) -> Option<Value> {
    let dtype = l.dtype(x);
    let number = l.splat(y).filter(|_| l.g.const_value(y).is_some() && l.dtype(y) == dtype)?;
    let (fraction, largest) = match dtype {
        DType::F64 => (number.to_bits() & ((1 << 52) - 1), 1022),
        DType::F32 => (u64::from((number as f32).to_bits() & ((1 << 23) - 1)), 126),
        _ => return None,
    };
    let exponent = number.abs().log2();
    if fraction != 0 || exponent.abs() > f64::from(largest) {
        return None;
    }
    let inverse = const_fold::evaluated(l.g, &Op::Elem(Reciprocal), &[y])?;
    l.elem(Mul, &[x, inverse])
}

fn times_zero(l: &mut Local, x: Value, zero: Value) -> Option<Value> {
    let fits = l.splat(zero) == Some(0.0) && !l.dtype(x).is_float() && l.absorbs(x, zero) && l.safe(x);
    fits.then(|| l.g.zeros_like(x))
}

fn minus_itself(l: &mut Local, x: Value, y: Value) -> Option<Value> {
    (x == y && l.dtype(x).is_int() && l.safe(x)).then(|| l.g.zeros_like(x))
}

/// The constant takes the sign.
fn negated_product(l: &mut Local, product: Value) -> Option<Value> {
    let ins = l.of2(product, Mul)?;
    either(l, &ins, |l, x, c| {
        let fits = l.g.const_value(c).is_some() && l.dtype(c) == l.dtype(product);
        let c = const_fold::evaluated(l.g, &Op::Elem(Neg), &[c]).filter(|_| fits)?;
        l.elem(Mul, &[x, c])
    })
}

/// The input of a negation that was computed in the dtype of the result of a function of both.
fn negated(l: &Local, minus: Value, other: Value) -> Option<Value> {
    l.of(minus, Neg).filter(|_| l.dtype(minus).promote(l.dtype(other)) == l.dtype(minus))
}

fn with_negated(l: &mut Local, _: ElemOp, to: ElemOp, x: Value, minus: Value) -> Option<Value> {
    let y = negated(l, minus, x)?;
    l.elem(to, &[x, y])
}

/// Where the result is no larger than what was negated; further out the sign may vanish.
fn minus_out(l: &mut Local, op: ElemOp, minus: Value, y: Value) -> Option<Value> {
    let x = negated(l, minus, y).filter(|_| (op == Mul || l.dtype(minus).is_float()) && l.absorbs_shape(minus, y))?;
    let inner = l.elem(op, &[x, y])?;
    l.elem(Neg, &[inner])
}

fn minus_under(l: &mut Local, x: Value, minus: Value) -> Option<Value> {
    let y = negated(l, minus, x).filter(|_| l.dtype(minus).is_float() && l.absorbs_shape(minus, x))?;
    let inner = l.elem(Div, &[x, y])?;
    l.elem(Neg, &[inner])
}

/// A value that was made by adding or subtracting an integer constant of its dtype.
fn shifted(l: &Local, v: Value) -> Option<(ElemOp, Value, Value)> {
    let (op, [x, c]) = l.of2(v, Add).map(|ins| (Add, ins)).or_else(|| l.of2(v, Sub).map(|ins| (Sub, ins)))?;
    let same = |c: Value| l.g.const_value(c).is_some() && l.dtype(c) == l.dtype(v) && l.ty(c).rank() == 0;
    if !l.dtype(v).is_int() || l.dtype(x) != l.dtype(c) {
        return None;
    }
    match op {
        _ if same(c) => Some((op, x, c)),
        Add if same(x) => Some((op, c, x)),
        _ => None,
    }
}

fn shifted_twice(l: &mut Local, op: &Op, ins: &[Value]) -> Option<Value> {
    let Op::Elem(outer) = *op else { return None };
    let (inner, x, c, d) = match (shifted(l, ins[0]), shifted(l, ins[1])) {
        (Some((inner, x, c)), _) => (inner, x, c, ins[1]),
        (None, Some((inner, x, c))) if outer == Add => (inner, x, c, ins[0]),
        _ => return None,
    };
    if l.g.const_value(d).is_none() || l.dtype(d) != l.dtype(x) || l.ty(d).rank() > 0 {
        return None;
    }
    let sum = const_fold::evaluated(l.g, &Op::Elem(if inner == outer { Add } else { Sub }), &[c, d])?;
    l.elem(inner, &[x, sum])
}

fn back_again(l: &mut Local, sum: Value, y: Value) -> Option<Value> {
    let ins = l.of2(sum, Add).filter(|_| l.dtype(sum).is_int())?;
    either(l, &ins, |l, x, other| (other == y && l.absorbs(x, y) && l.dtype(x) == l.dtype(sum) && l.safe(y)).then_some(x))
}

fn twice(l: &mut Local, op: &Op, ins: &[Value]) -> Option<Value> {
    let Op::Elem(f) = *op else { return None };
    l.of(ins[0], f).map(|_| ins[0])
}

/// Not of unsigned integers, of which the negative ones are others.
fn of_negated(l: &mut Local, op: &Op, x: Value) -> Option<Value> {
    let Op::Elem(f) = *op else { return None };
    let y = l.of(x, Neg).filter(|_| !l.dtype(x).is_unsigned())?;
    l.elem(f, &[y])
}

fn integer_power(l: &mut Local, x: Value, n: Value) -> Option<Value> {
    if !l.dtype(x).is_int() || !l.absorbs(x, n) {
        return None;
    }
    match l.splat(n)? {
        0.0 if l.safe(x) => Some(l.g.ones_like(x)),
        1.0 => Some(x),
        2.0 => l.elem(Mul, &[x, x]),
        _ => None,
    }
}
