//! Parts added where they belong: what gradients of `x[i]` look like in a loop would else be an array of zeros each step.

use super::{Rule, either};
use crate::ir::Value;
use crate::ir::op::{Expand, Gather, GatherWrite, IfElse, Index, IndexWrite, Op, Transpose, Write};
use crate::ops::certain::is_zero;
use crate::ops::control::zeros;
use crate::ops::index::{Item, Pattern};
use crate::rewrite::local::Local;
use crate::scalar::ElemOp;
use crate::types::DType;

/// A write, and its inputs but for the array.
pub(super) type Part = (Op, Vec<Value>);

/// The rules.
pub static RULES: &[Rule] = &[
    Rule { doc: "x + inc(0, y, i) → inc(x, y, i)", on: &["add"], apply: |l, _, ins| either(l, ins, add_to) },
    Rule {
        doc: "ifelse(c, set(x, y, i), x) → set(x, ifelse(c, y, x[i]), i)",
        on: &["ifelse"],
        apply: |l, _, ins| chosen(l, ins[0], ins[1], ins[2]),
    },
    Rule {
        doc: "where(c, set(x, y, i), x) → set(x, where(c, y, x[i]), i), for a scalar c",
        on: &["where"],
        apply: |l, _, ins| selected(l, ins[0], ins[1], ins[2]),
    },
    Rule { doc: "inc(set(x, a, i), b, i) → set(x, a + b, i)", on: &["index_write"], apply: |l, op, ins| written_twice(l, op, ins) },
    Rule {
        doc: "transpose(write(transpose(x), y, i)) → write(x, y, i) along the other axes",
        on: &["transpose"],
        apply: |l, op, ins| written_turned(l, op, ins[0]),
    },
];

/// What is set, and added to before anything else reads it, is the sum.
fn written_twice(l: &mut Local, op: &Op, ins: &[Value]) -> Option<Value> {
    let Op::IndexWrite(IndexWrite { mode: Write::Inc, pattern }) = op else { return None };
    let (Op::IndexWrite(set), inner) = l.node(ins[0])? else { return None };
    let alike = set.mode == Write::Set && set.pattern == *pattern && inner[2..] == ins[2..];
    let (set, x, a, b) = (set.clone(), inner[0], inner[1], ins[1]);
    let dtype = l.dtype(x);
    if !alike || [a, b].iter().any(|&v| l.dtype(v) != dtype) || dtype == DType::Bool {
        return None;
    }
    let sum = l.elem(ElemOp::Add, &[a, b])?;
    l.make(set, &[&[x, sum], &ins[2..]].concat())
}

/// Axes are turned back behind a write: it is one along other axes, into what has been turned twice.
fn written_turned(l: &mut Local, op: &Op, written: Value) -> Option<Value> {
    let Op::Transpose(Transpose { perm }) = op else { return None };
    let (Op::IndexWrite(write), ins) = l.node(written)? else { return None };
    let (Op::Transpose(_), _) = l.node(ins[0])? else { return None };
    let (mode, ins, mut items) = (write.mode, ins.to_vec(), Pattern::parse(&write.pattern).ok()?.items);
    let words: Vec<&str> =
        write.pattern.split(',').filter(|word| !word.is_empty()).chain(std::iter::repeat(":")).take(perm.len()).collect();
    items.resize(perm.len(), Item::ALL);
    let sliced = |axis: usize| items[axis] != Item::At;
    let number = |axis: usize| (0..axis).filter(|&axis| sliced(axis)).count();
    let first = |axis: usize| 2 + items[..axis].iter().map(|item| item.inputs()).sum::<usize>();
    // Where each axis of what is written is now.
    let turn: Vec<usize> = perm.iter().filter(|&&axis| sliced(axis)).map(|&axis| number(axis)).collect();
    let idxs: Vec<Value> = perm.iter().flat_map(|&axis| ins[first(axis)..][..items[axis].inputs()].iter().copied()).collect();
    let pattern = perm.iter().map(|&axis| words[axis]).collect::<Vec<_>>().join(",");
    let missing = turn.len().checked_sub(l.ty(ins[1]).rank())?;
    let x = l.make(op.clone(), &[ins[0]])?;
    let y = l.make(Expand { axes: (0..missing).collect() }, &[ins[1]])?;
    let y = l.make(Transpose { perm: turn }, &[y])?;
    l.make(IndexWrite { mode, pattern }, &[&[x, y], &idxs[..]].concat())
}

/// Parts that are named by slices alone are left to `join_writes`, which joins them where they lie beside each other.
fn add_to(l: &mut Local, x: Value, parts: Value) -> Option<Value> {
    if is_zero(l.g, x) || l.ty(x) != l.ty(parts) {
        return None;
    }
    let parts = increments(l, parts)?;
    parts.iter().any(|(op, _)| single(op)).then_some(())?;
    parts.into_iter().rev().try_fold(x, |x, (op, ins)| l.make(op, &[&[x], &ins[..]].concat()))
}

/// Writes of elements or rows in branches alone, into one array: where the branch is not taken, the first one is written with what is there.
/// Of arrays without elements that is an error, and the call is done again as it was written.
fn chosen(l: &mut Local, cond: Value, x: Value, y: Value) -> Option<Value> {
    let (base, sides) = common(l, x, y)?;
    let twins = sides[0].len() == sides[1].len() && sides[0].iter().zip(&sides[1]).all(|(a, b)| alike(l, a, b));
    if twins {
        let mut pairs = sides[0].iter().zip(&sides[1]).rev();
        return pairs.try_fold(base, |into, ((op, x), (_, y))| {
            let ins: Vec<Value> = x.iter().zip(y).map(|(&x, &y)| l.make(IfElse {}, &[cond, x, y])).collect::<Option<_>>()?;
            l.make(op.clone(), &[&[into], &ins[..]].concat())
        });
    }
    if !l.speculate || !sides.iter().flatten().all(|part| whole(l, part, base)) {
        return None;
    }
    let parts = sides.iter().enumerate().flat_map(|(side, parts)| parts.iter().rev().map(move |part| (side == 0, part)));
    parts.collect::<Vec<_>>().into_iter().try_fold(base, |into, (holds, (op, ins))| {
        let branch = |l: &mut Local, v: Value, other: Value| l.make(IfElse {}, &if holds { [cond, v, other] } else { [cond, other, v] });
        let places: Vec<Value> = ins[1..]
            .iter()
            .map(|&v| {
                let first = l.g.number(l.dtype(v), 0.0);
                branch(l, v, first)
            })
            .collect::<Option<_>>()?;
        let other = match op {
            Op::IndexWrite(IndexWrite { mode: Write::Set, pattern }) => {
                l.make(Index { pattern: pattern.clone() }, &[&[into], &places[..]].concat())?
            }
            _ => zeros(l.g, ins[0]),
        };
        let value = branch(l, ins[0], other)?;
        l.make(op.clone(), &[&[into, value], &places[..]].concat())
    })
}

/// Writes of elements or rows into one array, of which a scalar selects: where it does not, what is there is written, or nothing added.
fn selected(l: &mut Local, cond: Value, x: Value, y: Value) -> Option<Value> {
    let (base, sides) = common(l, x, y)?;
    let fits = l.ty(cond).rank() == 0 && l.ty(x) == l.ty(base) && l.ty(y) == l.ty(base);
    if !fits || !sides.iter().flatten().all(|part| whole(l, part, base)) {
        return None;
    }
    let parts = sides.iter().enumerate().flat_map(|(side, parts)| parts.iter().rev().map(move |part| (side == 0, part)));
    parts.collect::<Vec<_>>().into_iter().try_fold(base, |into, (holds, part)| masked_write(l, (cond, holds), into, part))
}

/// A write that is done where a condition is what it is said to be: elsewhere what is there is written, or nothing added.
pub(super) fn masked_write(l: &mut Local, (cond, holds): (Value, bool), into: Value, (op, ins): &Part) -> Option<Value> {
    let place = [&[into], &ins[1..]].concat();
    let other = match op {
        Op::IndexWrite(IndexWrite { mode: Write::Set, pattern }) => l.make(Index { pattern: pattern.clone() }, &place)?,
        Op::GatherWrite(GatherWrite { mode: Write::Set, axes }) => l.make(Gather { axes: axes.clone() }, &place)?,
        // The only zero that changes nothing when it is added.
        _ => l.g.number(l.dtype(ins[0]), -0.0),
    };
    let value = l.elem(ElemOp::Where, &if holds { [cond, ins[0], other] } else { [cond, other, ins[0]] })?;
    l.make(op.clone(), &[&[into, value], &ins[1..]].concat())
}

/// What two values are made of by writing into it, and what is written by each, the last first. At least one writes.
fn common(l: &Local, x: Value, y: Value) -> Option<(Value, [Vec<Part>; 2])> {
    let (xs, ys) = (written(l, x), written(l, y));
    for (i, &(from, _)) in xs.iter().enumerate() {
        let same = |&(other, _): &(Value, _)| other == from || is_zero(l.g, other) && is_zero(l.g, from) && l.ty(other) == l.ty(from);
        if let Some(j) = ys.iter().position(same) {
            let parts =
                |chain: &[(Value, Option<Part>)], n: usize| chain[..n].iter().filter_map(|(_, part)| part.clone()).collect::<Vec<Part>>();
            return (i + j > 0).then(|| (from, [parts(&xs, i), parts(&ys, j)]));
        }
    }
    None
}

/// A value, what it is made of by writing into that, and so on, with what is written.
fn written(l: &Local, mut v: Value) -> Vec<(Value, Option<Part>)> {
    let mut chain = vec![];
    while chain.len() < LONGEST {
        let part = l.node(v).filter(|(op, _)| matches!(op, Op::IndexWrite(_)));
        let Some((op, ins)) = part else { break };
        chain.push((v, Some((op.clone(), ins[1..].to_vec()))));
        v = ins[0];
    }
    chain.push((v, None));
    chain
}

/// So many writes one after the other are looked at.
const LONGEST: usize = 8;

/// True where two writes differ in what they write and where alone.
fn alike(l: &Local, (op, x): &Part, (other, y): &Part) -> bool {
    op == other && x.iter().zip(y).all(|(&x, &y)| l.ty(x) == l.ty(y))
}

/// True for a write of a whole element or row of an array, where integers say.
fn whole(l: &Local, (op, ins): &Part, base: Value) -> bool {
    let Op::IndexWrite(IndexWrite { pattern, .. }) = op else { return false };
    let (x, y, picked) = (l.ty(base), l.ty(ins[0]), ins.len() - 1);
    let integers = pattern.chars().all(|c| matches!(c, 'i' | ',')) && ins[1..].iter().all(|&v| l.ty(v).rank() == 0);
    integers && x.dtype == y.dtype && x.rank() == y.rank() + picked && x.dims[picked..] == y.dims[..]
}

/// What is added to zeros one after the other, the last first: the ops, and their inputs but for the array.
fn increments(l: &Local, mut v: Value) -> Option<Vec<Part>> {
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
