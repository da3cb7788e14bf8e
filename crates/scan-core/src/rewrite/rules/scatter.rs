//! Parts added where they belong: what gradients of `x[i]` look like in a loop would else be an array of zeros each step.

use super::{Rule, either};
use crate::ir::op::{GatherWrite, IndexWrite, Op, Write};
use crate::ir::{Graph, Value};
use crate::rewrite::local::Local;

/// The rules.
pub static RULES: &[Rule] = &[Rule { doc: "x + inc(0, y, i) → inc(x, y, i)", on: &["add"], apply: |l, _, ins| either(l, ins, add_to) }];

/// Parts that are named by slices alone are left to `join_writes`, which joins them where they lie beside each other.
fn add_to(l: &mut Local, x: Value, part: Value) -> Option<Value> {
    let (op, ins) = l.node(part)?;
    let single = match op {
        Op::IndexWrite(IndexWrite { mode: Write::Inc, pattern }) => pattern.contains('i'),
        Op::GatherWrite(GatherWrite { mode: Write::Inc, .. }) => true,
        _ => false,
    };
    if !single || !is_zero(l.g, ins[0]) || is_zero(l.g, x) || l.ty(x) != l.ty(part) {
        return None;
    }
    let (op, ins) = (op.clone(), [&[x], &ins[1..]].concat());
    l.make(op, &ins)
}

fn is_zero(g: &Graph, v: Value) -> bool {
    if let Some(a) = g.const_value(v) {
        return a.to_f64_vec().iter().all(|x| *x == 0.0);
    }
    g.node_of(v).is_some_and(|n| matches!(n.op, Op::BroadcastLike(_) | Op::BroadcastTo(_)) && is_zero(g, n.ins[0]))
}
