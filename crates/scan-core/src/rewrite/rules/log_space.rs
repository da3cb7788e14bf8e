//! Sums of exponentials as they are written by hand, with or without the maximum taken out: `log(Σ exp(x − m)) + m`, `e / Σ e`.
//!
//! What is on the left is not computed: where x holds nothing but −∞, the difference with its maximum is NaN and the logarithm of the sum is
//! −∞; where exponentials overflow, quotients of them are NaN and softmax is not. Where x holds +∞, all of softmax is NaN.
//! What is taken out must be an extreme of x (or of what x is a sum of), or a finite number: then NaN in x is NaN in the result.

use super::seen::{Fold, Seen, behind_views, is_term};
use super::{Rule, either};
use crate::ir::Value;
use crate::ir::op::{LogSoftmax, LogSumExp, Op, ReduceKind, Softmax};
use crate::ops::views::view;
use crate::rewrite::local::Local;
use crate::scalar::ElemOp::*;

/// The rules. Gradients know them.
pub static RULES: &[Rule] = &[
    Rule { doc: "log(Σ eˣ) → logsumexp(x)", on: &["log"], apply: |l, _, ins| behind_views(l, ins[0], &log_sum_exp) },
    Rule { doc: "log(Σ eˣ / n) → logsumexp(x) − log(n)", on: &["log"], apply: |l, _, ins| log_mean_exp(l, ins[0]) },
    Rule { doc: "log(eᵃ + eᵇ) → logaddexp(a, b)", on: &["log"], apply: |l, _, ins| log_add_exp(l, ins[0]) },
    Rule { doc: "log(softmax(x)[i]) → log_softmax(x)[i]", on: &["log"], apply: |l, _, ins| behind_views(l, ins[0], &log_softmax) },
    Rule { doc: "logsumexp(x − m) + m → logsumexp(x)", on: &["add"], apply: |l, _, ins| either(l, ins, put_back) },
    Rule {
        doc: "logsumexp(x − m) + (a + m) → logsumexp(x) + a",
        on: &["add"],
        apply: |l, _, ins| {
            either(l, ins, |l, sum, terms| in_log_space(l, sum).then(|| in_a_term(l, terms, NEAR, &|l, m| put_back(l, sum, m)))?)
        },
    },
    Rule {
        doc: "(logsumexp(x − m) + a) + m → logsumexp(x) + a",
        on: &["add"],
        apply: |l, _, ins| either(l, ins, |l, terms, m| in_a_term(l, terms, NEAR, &|l, sum| put_back(l, sum, m))),
    },
    Rule { doc: "e / Σ e, e = eˣ⁻ᵐ → softmax(x)", on: &["div"], apply: |l, _, ins| quotient(l, ins[0], ins[1]) },
    Rule { doc: "e · (1 / Σ e), e = eˣ⁻ᵐ → softmax(x)", on: &["mul"], apply: |l, _, ins| either(l, ins, times_reciprocal) },
    Rule { doc: "d − logsumexp(d), d = x − m → log_softmax(x)", on: &["sub"], apply: |l, _, ins| log_quotient(l, ins[0], ins[1]) },
    Rule {
        doc: "x + softplus(−x) → softplus(x)",
        on: &["add"],
        apply: |l, _, ins| {
            either(l, ins, |l, x, s| l.of(s, Softplus).and_then(|n| l.of(n, Neg)).filter(|&y| y == x).and_then(|x| l.elem(Softplus, &[x])))
        },
    },
    Rule { doc: "max(x, 0) + softplus(−|x|) → softplus(x)", on: &["add"], apply: |l, _, ins| either(l, ins, softplus_in_parts) },
    Rule {
        doc: "max(a, b) + softplus(−|a − b|) → logaddexp(a, b)", on: &["add"], apply: |l, _, ins| either(l, ins, logaddexp_in_parts)
    },
    Rule { doc: "eˣ / (1 + eˣ) → sigmoid(x)", on: &["div"], apply: |l, _, ins| sigmoid(l, ins[0], ins[1]) },
];

/// So deep are sums looked into.
const DEPTH: usize = 5;

/// x where v is `eˣ`: powers, products and quotients of them, choices between them and zero, all of that moved.
fn exponent(l: &mut Local, v: Value) -> Option<Value> {
    if is_power(l, v, DEPTH) { made_exponent(l, v) } else { None }
}

fn is_power(l: &Local, v: Value, depth: usize) -> bool {
    let Some((op, ins)) = l.node(v).filter(|_| depth > 0) else { return false };
    let power = |x: Value| l.dtype(x) == l.dtype(v) && is_power(l, x, depth - 1);
    // A product of a column and a row takes fewer exponentials than the exponential of their sum: only the law of `log_matmul` mends that.
    let wide = || l.dtype(v) == crate::types::DType::F64 || ins.iter().all(|&x| l.same_shape(x, v));
    match op {
        Op::Elem(Exp) => l.dtype(ins[0]) == l.dtype(v),
        Op::Elem(Mul | Div) => ins.iter().all(|&x| power(x)) && wide(),
        Op::Elem(Where) => {
            let zero = |x: Value| l.splat(x).is_some_and(|n| n == 0.0);
            power(ins[1]) && (zero(ins[2]) || power(ins[2])) || zero(ins[1]) && power(ins[2])
        }
        Op::Join(_) => ins.iter().all(|&x| power(x)),
        op => op.moves() && power(ins[0]),
    }
}

fn made_exponent(l: &mut Local, v: Value) -> Option<Value> {
    let (op, ins) = l.node(v)?;
    let (op, mut ins) = (op.clone(), ins.to_vec());
    match op {
        Op::Elem(Exp) => Some(ins[0]),
        Op::Elem(f @ (Mul | Div)) => {
            let (x, y) = (made_exponent(l, ins[0])?, made_exponent(l, ins[1])?);
            l.elem(if f == Mul { Add } else { Sub }, &[x, y])
        }
        Op::Elem(Where) => {
            let low = l.g.number(l.dtype(v), f64::NEG_INFINITY);
            for x in &mut ins[1..] {
                *x = if l.splat(*x) == Some(0.0) { low } else { made_exponent(l, *x)? };
            }
            l.elem(Where, &ins)
        }
        Op::Join(_) => {
            let parts = ins.iter().map(|&x| made_exponent(l, x)).collect::<Option<Vec<_>>>()?;
            l.make(op, &parts)
        }
        _ => {
            ins[0] = made_exponent(l, ins[0])?;
            l.make(op, &ins)
        }
    }
}

fn log_sum_exp(l: &mut Local, sum: Value) -> Option<Value> {
    let (Op::Reduce(reduce), &[power]) = l.node(sum)? else { return None };
    let (ReduceKind::Sum, axes, keepdims) = (reduce.kind, reduce.axes.clone(), reduce.keepdims) else { return None };
    let x = exponent(l, power).filter(|_| l.dtype(power) == l.dtype(sum))?;
    l.make(LogSumExp { axes, keepdims }, &[x])
}

fn log_mean_exp(l: &mut Local, mean: Value) -> Option<Value> {
    let (Op::Elem(f @ (Div | Mul)), &[sum, n]) = l.node(mean)? else { return None };
    let (f, certain) = (*f, l.splat(n).is_some_and(|n| n > 0.0 && n.is_finite()) || is_count(l, n));
    if !certain || l.dtype(n) != l.dtype(sum) || !l.absorbs_shape(sum, n) {
        return None;
    }
    let top = behind_views(l, sum, &log_sum_exp)?;
    let log = l.elem(Log, &[n])?;
    l.elem(if f == Div { Sub } else { Add }, &[top, log])
}

/// True for a product of extents as a float: it is not negative.
fn is_count(l: &Local, n: Value) -> bool {
    match l.node(n) {
        Some((Op::Cast(_) | Op::Elem(Mul), ins)) => ins.iter().all(|&v| is_count(l, v)),
        Some((Op::DimOf(_), _)) => true,
        _ => l.splat(n).is_some_and(|n| n >= 0.0),
    }
}

fn log_add_exp(l: &mut Local, sum: Value) -> Option<Value> {
    let [p, q] = l.of2(sum, Add)?;
    let logs = [log_of_term(l, p, DEPTH)?, log_of_term(l, q, DEPTH)?];
    let x = l.elem(LogAddExp, &logs)?;
    (l.dtype(x) == l.dtype(sum)).then_some(x)
}

fn log_of_term(l: &mut Local, v: Value, depth: usize) -> Option<Value> {
    if let Some(x) = exponent(l, v) {
        return Some(x);
    }
    let [p, q] = l.of2(v, Add).filter(|_| depth > 0 && l.dtype(v).is_float())?;
    let logs = [log_of_term(l, p, depth - 1)?, log_of_term(l, q, depth - 1)?];
    l.elem(LogAddExp, &logs)
}

fn log_softmax(l: &mut Local, p: Value) -> Option<Value> {
    let (Op::Softmax(softmax), &[x]) = l.node(p)? else { return None };
    let axis = softmax.axis;
    l.make(LogSoftmax { axis }, &[x])
}

/// True where v is a sum of exponentials in log space, behind views.
fn in_log_space(l: &Local, v: Value) -> bool {
    match l.node(v) {
        Some((Op::LogSumExp(_) | Op::Elem(LogAddExp), _)) => true,
        Some((op, ins)) => op.moves() && in_log_space(l, ins[0]),
        None => false,
    }
}

fn put_back(l: &mut Local, sum: Value, m: Value) -> Option<Value> {
    if !in_log_space(l, sum) || l.dtype(m) != l.dtype(sum) || !l.absorbs_shape(sum, m) {
        return None;
    }
    let shift = Seen::of(l, m, l.ty(sum).rank());
    let mut of = vec![];
    let x = without(l, sum, &shift, DEPTH, &mut of)?;
    of.push(x);
    // Its shape is that of the sum: each operand is put in the place of one of its type.
    is_shift(l, &shift, &of).then_some(x)
}

/// So many terms may stand between a sum of exponentials and what was taken out of it.
const NEAR: usize = 3;

/// v with another value in the place of one of its terms: `a + t`, `t − a`.
fn in_a_term(l: &mut Local, v: Value, depth: usize, put: &dyn Fn(&mut Local, Value) -> Option<Value>) -> Option<Value> {
    let (op, ins) = match l.node(v).filter(|_| depth > 0)? {
        (Op::Elem(op @ (Add | Sub)), &[p, q]) => (*op, [p, q]),
        _ => return None,
    };
    for k in 0..if op == Add { 2 } else { 1 } {
        if let Some(whole) = put(l, ins[k]).or_else(|| in_a_term(l, ins[k], depth - 1, put)) {
            return l.elem(op, &[whole, ins[1 - k]]);
        }
    }
    None
}

/// x where v is `x − shift`, or a sum of exponentials of such. `found`: what the shift was taken out of, which other rules may have changed in x.
fn without(l: &mut Local, v: Value, shift: &Seen, depth: usize, found: &mut Vec<Value>) -> Option<Value> {
    let (op, ins) = l.node(v).filter(|_| depth > 0)?;
    let (op, mut ins, rank) = (op.clone(), ins.to_vec(), l.ty(v).rank());
    if let Some(x) = difference(l, &op, &ins, shift, rank) {
        let x = Some(x).filter(|&x| l.ty(x) == l.ty(v));
        found.extend(x);
        return x;
    }
    let all = match op {
        Op::Elem(Add) => (0..2).any(|k| widened(l, &mut ins, k, shift, rank, depth, found)),
        Op::Elem(Sub) => widened(l, &mut ins, 0, shift, rank, depth, found),
        Op::Elem(LogAddExp) => (0..2).all(|k| widened(l, &mut ins, k, shift, rank, depth, found)),
        Op::Elem(Where) => {
            let low = |l: &Local, v: Value| l.splat(v) == Some(f64::NEG_INFINITY);
            (1..3).all(|k| low(l, ins[k]) || widened(l, &mut ins, k, shift, rank, depth, found))
        }
        Op::LogSumExp(ref sum) => {
            let own = l.ty(ins[0]).rank();
            let left = (0..own).filter(|k| sum.keepdims || !sum.axes.contains(k));
            let axes: Vec<Option<usize>> = left.map(|k| (!sum.axes.contains(&k)).then_some(k)).collect();
            ins[0] = without(l, ins[0], &shift.within(&axes, own)?, depth - 1, found)?;
            true
        }
        _ => {
            let (x, axes) = view(l.g, v).filter(|_| op.moves())?;
            ins[0] = without(l, x, &shift.within(&axes, l.ty(x).rank())?, depth - 1, found)?;
            true
        }
    };
    all.then(|| l.make(op, &ins))?
}

/// x in `x − shift`, or `x + (−shift)`.
fn difference(l: &Local, op: &Op, ins: &[Value], shift: &Seen, rank: usize) -> Option<Value> {
    let is_shift = |v: Value| Seen::of(l, v, rank) == *shift;
    match op {
        Op::Elem(Sub) => is_shift(ins[1]).then_some(ins[0]),
        Op::Elem(Add) => (0..2).find(|&k| l.of(ins[k], Neg).is_some_and(is_shift)).map(|k| ins[1 - k]),
        _ => None,
    }
}

/// Puts in the place of an operand what it is without the shift.
fn widened(l: &mut Local, ins: &mut [Value], k: usize, shift: &Seen, rank: usize, depth: usize, found: &mut Vec<Value>) -> bool {
    let own = l.ty(ins[k]).rank();
    let axes: Vec<Option<usize>> = (0..rank).map(|at| (at + own).checked_sub(rank)).collect();
    let Some(shift) = shift.within(&axes, own) else { return false };
    let Some(x) = without(l, ins[k], &shift, depth - 1, found) else { return false };
    ins[k] = x;
    true
}

/// True where what is taken out is finite, or tells of nothing that these do not tell.
fn is_shift(l: &Local, shift: &Seen, of: &[Value]) -> bool {
    match &shift.fold {
        Some((Fold::Reduce(ReduceKind::Max | ReduceKind::Min), _)) => is_extreme(l, shift.root, of),
        Some(_) => false,
        None => is_extreme(l, shift.root, of) || l.splat(shift.root).is_some_and(f64::is_finite),
    }
}

/// True for one of these, what it is a sum of, a number, and extremes of such.
fn is_extreme(l: &Local, v: Value, of: &[Value]) -> bool {
    if of.iter().any(|&x| is_term(l, v, x)) {
        return true;
    }
    match l.node(v) {
        Some((Op::Elem(Maximum | Minimum), ins)) => ins.iter().all(|&v| is_extreme(l, v, of) || l.splat(v).is_some_and(f64::is_finite)),
        Some((Op::Reduce(op), ins)) => matches!(op.kind, ReduceKind::Max | ReduceKind::Min) && is_extreme(l, ins[0], of),
        Some((op, ins)) if op.moves() => is_extreme(l, ins[0], of),
        _ => false,
    }
}

/// x where v is x less an extreme of it that is the same all along these axes.
fn unshifted(l: &Local, v: Value, over: &[usize]) -> Option<Value> {
    let [x, m] = l.of2(v, Sub).or_else(|| {
        let [p, q] = l.of2(v, Add)?;
        l.of(q, Neg).map(|m| [p, m]).or_else(|| l.of(p, Neg).map(|m| [q, m]))
    })?;
    let shift = Seen::of(l, m, l.ty(v).rank());
    let level = over.iter().all(|&k| shift.axes[k].is_none());
    (level && l.ty(x) == l.ty(v) && is_shift(l, &shift, &[x])).then_some(x)
}

fn quotient(l: &mut Local, power: Value, sum: Value) -> Option<Value> {
    let rank = l.ty(power).rank();
    if l.ty(sum).rank() > rank || l.dtype(sum) != l.dtype(power) || !is_power(l, power, DEPTH) {
        return None;
    }
    let seen = Seen::of(l, sum, rank);
    let over = seen.fold.clone().filter(|_| seen.is_fold(l, Fold::Reduce(ReduceKind::Sum), power))?.1;
    let exponent = exponent(l, power)?;
    let x = unshifted(l, exponent, &over).unwrap_or(exponent);
    match over[..] {
        [axis] => l.make(Softmax { axis }, &[x]),
        _ => {
            let top = l.make(LogSumExp { axes: over, keepdims: true }, &[x])?;
            let difference = l.elem(Sub, &[x, top])?;
            l.elem(Exp, &[difference])
        }
    }
}

fn times_reciprocal(l: &mut Local, power: Value, reciprocal: Value) -> Option<Value> {
    let over_one = || l.of2(reciprocal, Div).filter(|ins| l.splat(ins[0]) == Some(1.0)).map(|ins| ins[1]);
    let sum = l.of(reciprocal, Reciprocal).or_else(over_one)?;
    quotient(l, power, sum)
}

fn log_quotient(l: &mut Local, d: Value, sum: Value) -> Option<Value> {
    let rank = l.ty(d).rank();
    if !in_log_space(l, sum) || l.ty(sum).rank() > rank || l.dtype(sum) != l.dtype(d) {
        return None;
    }
    let seen = Seen::of(l, sum, rank);
    let over = seen.fold.clone().filter(|_| seen.is_fold(l, Fold::LogSumExp, d))?.1;
    let (x, &[axis]) = (unshifted(l, d, &over)?, &over[..]) else { return None };
    l.make(LogSoftmax { axis }, &[x])
}

/// x in `−|x|` in `softplus(−|x|)`.
fn folded_softplus(l: &Local, v: Value) -> Option<Value> {
    let minus = l.of(v, Softplus)?;
    l.of(l.of(minus, Neg)?, Abs)
}

fn softplus_in_parts(l: &mut Local, top: Value, rest: Value) -> Option<Value> {
    let x = folded_softplus(l, rest)?;
    let zero = |l: &Local, y: Value| l.splat(y) == Some(0.0) && l.absorbs(x, y);
    let clipped = l.of(top, Relu) == Some(x) || l.of2(top, Maximum).is_some_and(|[a, b]| a == x && zero(l, b) || b == x && zero(l, a));
    clipped.then(|| l.elem(Softplus, &[x]))?
}

fn logaddexp_in_parts(l: &mut Local, top: Value, rest: Value) -> Option<Value> {
    let ([a, b], d) = (l.of2(top, Maximum)?, folded_softplus(l, rest)?);
    let [x, y] = l.of2(d, Sub)?;
    ([a, b] == [x, y] || [b, a] == [x, y]).then(|| l.elem(LogAddExp, &[a, b]))?
}

fn sigmoid(l: &mut Local, power: Value, sum: Value) -> Option<Value> {
    let x = l.of(power, Exp).filter(|&x| l.dtype(x) == l.dtype(power))?;
    let [a, b] = l.of2(sum, Add)?;
    let one = |l: &Local, v: Value| l.splat(v) == Some(1.0) && l.absorbs(power, v);
    (a == power && one(l, b) || b == power && one(l, a)).then(|| l.elem(Sigmoid, &[x]))?
}
