//! Choices that are decided, and truth values.

use super::{Rule, either};
use crate::ir::op::BroadcastLike;
use crate::ir::{Op, Value};
use crate::rewrite::local::Local;
use crate::scalar::ElemOp::*;
use crate::types::DType;

/// The rules.
pub static RULES: &[Rule] = &[
    Rule { doc: "where(true, x, y) → x", on: &["where"], apply: |l, _, ins| decided(l, ins[0], ins[1], ins[2]) },
    Rule { doc: "where(c, x, x) → x", on: &["where"], apply: |l, _, ins| same(l, ins[0], ins[1], ins[2]) },
    Rule { doc: "where(c, where(c, a, b), d) → where(c, a, d)", on: &["where"], apply: |l, _, ins| chosen_twice(l, ins) },
    Rule { doc: "where(not c, x, y) → where(c, y, x)", on: &["where"], apply: |l, _, ins| turned(l, ins[0], ins[1], ins[2]) },
    Rule {
        doc: "cast of where(c, a, b) → where(c, cast of a, cast of b)", on: &["cast"], apply: |l, op, ins| cast_choice(l, op, ins[0])
    },
    Rule { doc: "ifelse(true, x, y) → x", on: &["ifelse"], apply: |l, _, ins| branch(l, ins[0], ins[1], ins[2]) },
    Rule { doc: "not not x → x", on: &["logical_not"], apply: |l, _, ins| l.of(ins[0], Not).filter(|&x| l.dtype(x) == DType::Bool) },
    Rule { doc: "x and x → x", on: &["logical_and", "logical_or"], apply: |l, _, ins| itself(l, ins[0], ins[1]) },
    Rule {
        doc: "x and true → x, x or false → x",
        on: &["logical_and", "logical_or"],
        apply: |l, op, ins| either(l, ins, |l, x, y| kept(l, op, x, y)),
    },
    Rule {
        doc: "assert(x, true) → x",
        on: &["assert"],
        apply: |l, _, ins| ins[1..].iter().all(|&ok| l.splat(ok).is_some_and(|t| t != 0.0)).then_some(ins[0]),
    },
];

/// The chosen one, where it has the type of the result and the other may be dropped.
fn decided(l: &mut Local, cond: Value, x: Value, y: Value) -> Option<Value> {
    let (chosen, other) = if l.splat(cond)? != 0.0 { (x, y) } else { (y, x) };
    (l.absorbs(chosen, other) && l.absorbs_shape(chosen, cond) && l.safe(other)).then_some(chosen)
}

/// The gradient of a power of an array chooses between two exponents, which are one number where that is known.
fn same(l: &mut Local, cond: Value, x: Value, y: Value) -> Option<Value> {
    if x != y || !l.safe(cond) {
        return None;
    }
    if l.absorbs_shape(x, cond) {
        return Some(x);
    }
    if l.absorbs_shape(cond, x) { l.make(BroadcastLike {}, &[x, cond]) } else { None }
}

/// What the inner choice drops was never chosen; it must not be what gives the result its type.
fn chosen_twice(l: &mut Local, ins: &[Value]) -> Option<Value> {
    let cond = ins[0];
    let inner = |l: &Local, k: usize| match l.node(ins[k]) {
        Some((Op::Elem(Where), of)) if of[0] == cond => Some((of[k], of[3 - k])),
        _ => None,
    };
    let k = (1..3).find(|&k| inner(l, k).is_some())?;
    let (kept, dropped) = inner(l, k)?;
    let mut all = [cond, ins[1], ins[2]];
    all[k] = kept;
    let ty = |ins: &[Value]| Op::Elem(Where).def().infer(&ins.iter().map(|&v| l.g.arg(v)).collect::<Vec<_>>()).ok();
    let same = ty(ins).is_some_and(|before| ty(&all).is_some_and(|after| before == after));
    (same && l.safe(dropped)).then(|| l.elem(Where, &all))?
}

fn turned(l: &mut Local, cond: Value, x: Value, y: Value) -> Option<Value> {
    let cond = l.of(cond, Not)?;
    l.elem(Where, &[cond, y, x])
}

/// Where both are constants, or a constant and what has been cast from that dtype without a loss, so that what is chosen is as narrow as
/// the result: lanes of kernels are as wide as the widest value.
fn cast_choice(l: &mut Local, op: &Op, chosen: Value) -> Option<Value> {
    let Op::Cast(to) = op else { return None };
    let (Op::Elem(Where), &[cond, x, y]) = l.node(chosen)? else { return None };
    let (known, uncast) = ([x, y].map(|v| l.splat(v).is_some()), [x, y].map(|v| l.uncast(v, to.dtype).is_some()));
    if known == [false; 2] || (0..2).any(|k| !known[k] && !uncast[k]) {
        return None;
    }
    let [x, y] = [x, y].map(|v| l.uncast(v, to.dtype).or_else(|| l.cast(v, to.dtype)));
    l.elem(Where, &[cond, x?, y?])
}

/// The other branch is never evaluated, so it may be anything.
fn branch(l: &mut Local, cond: Value, x: Value, y: Value) -> Option<Value> {
    l.splat(cond).map(|c| if c != 0.0 { x } else { y }).or((x == y && l.safe(cond)).then_some(x))
}

fn itself(l: &mut Local, x: Value, y: Value) -> Option<Value> {
    (x == y && l.dtype(x) == DType::Bool).then_some(x)
}

fn kept(l: &mut Local, op: &Op, x: Value, y: Value) -> Option<Value> {
    let unit = *op == Op::Elem(And);
    let is_unit = l.splat(y).is_some_and(|n| (n != 0.0) == unit);
    (is_unit && l.dtype(x) == DType::Bool && l.absorbs_shape(x, y)).then_some(x)
}
