//! Parts added where they belong: what gradients of `x[i]` look like in a loop would else be an array of zeros each step.

use super::{Rule, either};
use crate::ir::op::{GatherWrite, IfElse, IndexWrite, Op, Write};
use crate::ir::{Graph, Value};
use crate::rewrite::local::Local;

/// The rules.
pub static RULES: &[Rule] = &[
    Rule { doc: "x + inc(0, y, i) → inc(x, y, i)", on: &["add"], apply: |l, _, ins| either(l, ins, add_to) },
    Rule {
        doc: "ifelse(c, inc(0, y, i), 0) → inc(0, ifelse(c, y, 0), ifelse(c, i, 0))",
        on: &["ifelse"],
        apply: |l, _, ins| chosen(l, ins[0], ins[1], ins[2], true).or_else(|| chosen(l, ins[0], ins[2], ins[1], false)),
    },
];

/// Parts that are named by slices alone are left to `join_writes`, which joins them where they lie beside each other.
fn add_to(l: &mut Local, x: Value, parts: Value) -> Option<Value> {
    if is_zero(l.g, x) || l.ty(x) != l.ty(parts) {
        return None;
    }
    let parts = increments(l, parts)?;
    parts.iter().any(|(op, _)| single(op)).then_some(())?;
    parts.into_iter().rev().try_fold(x, |x, (op, ins)| l.make(op, &[&[x], &ins[..]].concat()))
}

/// Where an element is written in a branch alone, the first one is increased by zero where it is not taken: of arrays without elements that is
/// an error, and the call is done again as it was written.
fn chosen(l: &mut Local, cond: Value, parts: Value, zeros: Value, holds: bool) -> Option<Value> {
    if !l.speculate || !is_zero(l.g, zeros) || l.ty(zeros) != l.ty(parts) {
        return None;
    }
    let parts = increments(l, parts)?;
    let elements = |(op, ins): &(Op, Vec<Value>)| {
        let pattern = matches!(op, Op::IndexWrite(IndexWrite { pattern, .. }) if pattern.chars().all(|c| matches!(c, 'i' | ',')));
        pattern && ins.iter().all(|&v| l.ty(v).rank() == 0)
    };
    parts.iter().all(elements).then_some(())?;
    parts.into_iter().rev().try_fold(zeros, |x, (op, ins)| {
        let masked = ins.iter().map(|&v| {
            let zero = l.g.number(l.dtype(v), 0.0);
            l.make(IfElse {}, &if holds { [cond, v, zero] } else { [cond, zero, v] })
        });
        let masked: Vec<Value> = masked.collect::<Option<_>>()?;
        l.make(op, &[&[x], &masked[..]].concat())
    })
}

/// What is added to zeros one after the other, the last first: the ops, and their inputs but for the array.
fn increments(l: &Local, mut v: Value) -> Option<Vec<(Op, Vec<Value>)>> {
    let mut parts = vec![];
    while !is_zero(l.g, v) {
        let (op, ins) = l.node(v).filter(|(op, _)| adds(op))?;
        parts.push((op.clone(), ins[1..].to_vec()));
        v = ins[0];
    }
    Some(parts)
}

fn adds(op: &Op) -> bool {
    matches!(op, Op::IndexWrite(IndexWrite { mode: Write::Inc, .. }) | Op::GatherWrite(GatherWrite { mode: Write::Inc, .. }))
}

fn single(op: &Op) -> bool {
    !matches!(op, Op::IndexWrite(IndexWrite { pattern, .. }) if !pattern.contains('i'))
}

fn is_zero(g: &Graph, v: Value) -> bool {
    if let Some(a) = g.const_value(v) {
        return a.to_f64_vec().iter().all(|x| *x == 0.0);
    }
    g.node_of(v).is_some_and(|n| matches!(n.op, Op::BroadcastLike(_) | Op::BroadcastTo(_)) && is_zero(g, n.ins[0]))
}
