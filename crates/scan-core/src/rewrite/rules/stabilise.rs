//! Formulas that overflow or cancel where a function of the table does not. Results are as near or nearer to the true ones, but
//! not the same bits.

use super::{Rule, either};
use crate::ir::{Op, Value};
use crate::rewrite::local::Local;
use crate::scalar::ElemOp::*;

/// The rules that gradients know, too: they differentiate what is on the right.
pub static RULES: &[Rule] = &[
    Rule { doc: "log(1 + eˣ) → softplus(x)", on: &["log"], apply: |l, _, ins| log_of(l, ins[0], softplus) },
    Rule { doc: "log(1 − sigmoid(x)) → log_sigmoid(−x)", on: &["log"], apply: |l, _, ins| log_of_difference(l, ins[0], not_sigmoid) },
    Rule { doc: "log(1 + x) → log1p(x)", on: &["log"], apply: |l, _, ins| log_of(l, ins[0], |l, x| l.elem(Log1p, &[x])) },
    Rule { doc: "log(1 − x) → log1p(−x)", on: &["log"], apply: |l, _, ins| log_of_difference(l, ins[0], log1p_of_negated) },
    Rule { doc: "log1p(eˣ) → softplus(x)", on: &["log1p"], apply: |l, _, ins| softplus(l, ins[0]) },
    Rule {
        doc: "log1p(−sigmoid(x)) → log_sigmoid(−x)",
        on: &["log1p"],
        apply: |l, _, ins| l.of(ins[0], Neg).and_then(|s| not_sigmoid(l, s)),
    },
    Rule {
        doc: "log(sigmoid(x)) → log_sigmoid(x)",
        on: &["log"],
        apply: |l, _, ins| l.of(ins[0], Sigmoid).and_then(|x| l.elem(LogSigmoid, &[x])),
    },
    Rule { doc: "log(eˣ) → x", on: &["log"], apply: |l, _, ins| l.of(ins[0], Exp).filter(|&x| l.dtype(x) == l.dtype(ins[0])) },
    Rule { doc: "−softplus(−x) → log_sigmoid(x)", on: &["neg"], apply: |l, _, ins| log_sigmoid(l, ins[0]) },
    Rule { doc: "eˣ − 1 → expm1(x)", on: &["sub"], apply: |l, _, ins| expm1(l, ins[0], ins[1], 1.0) },
    Rule { doc: "eˣ − 1 → expm1(x)", on: &["add"], apply: |l, _, ins| either(l, ins, |l, x, y| expm1(l, x, y, -1.0)) },
    Rule {
        doc: "1 − eˣ → −expm1(x)", on: &["sub"], apply: |l, _, ins| expm1(l, ins[1], ins[0], 1.0).and_then(|x| l.elem(Neg, &[x]))
    },
    Rule {
        doc: "1 / (1 + e⁻ˣ) → sigmoid(x)",
        on: &["div"],
        apply: |l, _, ins| if is_one(l, ins[1], ins[0]) { sigmoid(l, ins[1]) } else { None },
    },
    Rule { doc: "1 / (1 + e⁻ˣ) → sigmoid(x)", on: &["reciprocal"], apply: |l, _, ins| sigmoid(l, ins[0]) },
];

/// Powers that cost less otherwise.
pub static POWERS: &[Rule] =
    &[Rule {
        doc: "xⁿ → x · x · … · √x, of x or 1 / x, 2n a small integer", on: &["pow"], apply: |l, _, ins| power(l, ins[0], ins[1])
    }];

/// True where y is 1 everywhere, and x with it stays what it is.
fn is_one(l: &Local, x: Value, y: Value) -> bool {
    l.splat(y) == Some(1.0) && l.dtype(x).is_float() && l.absorbs(x, y)
}

/// x in `1 + x`.
fn one_plus(l: &mut Local, sum: Value) -> Option<Value> {
    let ins = l.of2(sum, Add)?;
    either(l, &ins, |l, x, y| is_one(l, x, y).then_some(x))
}

/// x in `1 − x`.
fn one_minus(l: &Local, difference: Value) -> Option<Value> {
    let [one, x] = l.of2(difference, Sub)?;
    is_one(l, x, one).then_some(x)
}

/// The x of `eˣ` of the same dtype.
fn exponent(l: &Local, v: Value) -> Option<Value> {
    l.of(v, Exp).filter(|&x| l.dtype(x) == l.dtype(v))
}

fn log_of(l: &mut Local, sum: Value, then: impl Fn(&mut Local, Value) -> Option<Value>) -> Option<Value> {
    one_plus(l, sum).and_then(|x| then(l, x))
}

fn log_of_difference(l: &mut Local, difference: Value, then: impl Fn(&mut Local, Value) -> Option<Value>) -> Option<Value> {
    one_minus(l, difference).and_then(|x| then(l, x))
}

fn softplus(l: &mut Local, power: Value) -> Option<Value> {
    let x = exponent(l, power)?;
    l.elem(Softplus, &[x])
}

fn negated(l: &mut Local, x: Value) -> Option<Value> {
    l.elem(Neg, &[x])
}

fn log1p_of_negated(l: &mut Local, x: Value) -> Option<Value> {
    let x = negated(l, x)?;
    l.elem(Log1p, &[x])
}

fn not_sigmoid(l: &mut Local, s: Value) -> Option<Value> {
    let x = l.of(s, Sigmoid).filter(|&x| l.dtype(x) == l.dtype(s))?;
    let x = negated(l, x)?;
    l.elem(LogSigmoid, &[x])
}

fn log_sigmoid(l: &mut Local, s: Value) -> Option<Value> {
    let minus = l.of(s, Softplus)?;
    let x = l.of(minus, Neg).filter(|&x| l.dtype(x) == l.dtype(s))?;
    l.elem(LogSigmoid, &[x])
}

fn expm1(l: &mut Local, power: Value, one: Value, unit: f64) -> Option<Value> {
    let x = exponent(l, power)?;
    (l.splat(one) == Some(unit) && l.absorbs(power, one)).then(|| l.elem(Expm1, &[x]))?
}

/// `sum` is `1 + e⁻ˣ`.
fn sigmoid(l: &mut Local, sum: Value) -> Option<Value> {
    let power = one_plus(l, sum)?;
    let minus = exponent(l, power)?;
    let x = negated(l, minus)?;
    l.elem(Sigmoid, &[x])
}

fn power(l: &mut Local, x: Value, n: Value) -> Option<Value> {
    if !l.dtype(x).is_float() || !l.absorbs(x, n) {
        return None;
    }
    let n = l.splat(n).or_else(|| one_exponent(l, x, n))?;
    if n == 0.0 || n.abs() > MULTIPLIED || (2.0 * n).fract() != 0.0 {
        return None;
    }
    let (whole, half) = (n.abs().trunc() as u32, n.fract() != 0.0);
    if n == -0.5 {
        let root = root_power(l, x, 0)?;
        return l.elem(Reciprocal, &[root]);
    }
    // The reciprocal first: what it rounds to 0 or infinity, all of these powers do.
    let x = if n < 0.0 { l.elem(Reciprocal, &[x])? } else { x };
    if half { root_power(l, x, whole) } else { multiplied(l, x, whole) }
}

/// The number between which and itself the gradient of a power of x chooses, by what x is.
fn one_exponent(l: &Local, x: Value, n: Value) -> Option<f64> {
    let (Op::Elem(Where), &[cond, a, b]) = l.node(n)? else { return None };
    let (Op::Elem(_), ins) = l.node(cond)? else { return None };
    let of_x = ins.iter().all(|&v| v == x || l.splat(v).is_some());
    l.splat(a).filter(|&n| of_x && l.splat(b) == Some(n))
}

/// `xⁿ · √x`, and what `pow` gives where that is another number: at −∞ and −0.
fn root_power(l: &mut Local, x: Value, n: u32) -> Option<Value> {
    let root = l.elem(Sqrt, &[x])?;
    let product = if n == 0 {
        root
    } else {
        let power = multiplied(l, x, n)?;
        l.elem(Mul, &[power, root])?
    };
    let dtype = l.dtype(x);
    let [least, most] = [f64::NEG_INFINITY, f64::INFINITY].map(|end| l.g.number(dtype, end));
    let (size, endless) = (l.elem(Abs, &[product])?, l.elem(Eq, &[x, least])?);
    l.elem(Where, &[endless, most, size])
}

/// Powers up to this one are multiplied out: each of the few products rounds, where a power rounds once, but takes a fifteenth of its time.
const MULTIPLIED: f64 = 16.0;

/// `xⁿ` by repeated squares.
fn multiplied(l: &mut Local, x: Value, n: u32) -> Option<Value> {
    let (mut base, mut left, mut product) = (x, n, None);
    loop {
        if left & 1 == 1 {
            product = match product {
                None => Some(base),
                Some(product) => l.elem(Mul, &[product, base]),
            };
        }
        left >>= 1;
        if left == 0 {
            return product;
        }
        base = l.elem(Mul, &[base, base])?;
    }
}
