//! Arithmetic identities that hold bit for bit.

use super::Rule;
use crate::ir::Value;
use crate::rewrite::local::Local;
use crate::scalar::ElemOp;

/// The rules.
pub static RULES: &[Rule] = &[
    Rule { doc: "x + (−0) → x; of integers x + 0 → x", on: &["add"], apply: |l, _, ins| either(l, ins, adds_nothing) },
    Rule { doc: "x − 0 → x", on: &["sub"], apply: |l, _, ins| neutral(l, ins[0], ins[1], 0.0) },
    Rule { doc: "x · 1 → x", on: &["mul"], apply: |l, _, ins| either(l, ins, |l, x, y| neutral(l, x, y, 1.0)) },
    Rule { doc: "x / 1 → x", on: &["div"], apply: |l, _, ins| neutral(l, ins[0], ins[1], 1.0).filter(|&x| l.dtype(x).is_float()) },
    Rule { doc: "−(−x) → x", on: &["neg"], apply: |l, _, ins| l.of(ins[0], ElemOp::Neg) },
];

/// A rule for either order of two inputs.
fn either(l: &mut Local, ins: &[Value], rule: impl Fn(&mut Local, Value, Value) -> Option<Value>) -> Option<Value> {
    rule(l, ins[0], ins[1]).or_else(|| rule(l, ins[1], ins[0]))
}

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
