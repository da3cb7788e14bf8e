//! `logsumexp` of a sum of terms of different shapes: what does not change along the axis is added to the result, and terms of the same
//! smaller shape are added to each other first. What is left is a row and a matrix, which is what `scan_log_matmul` looks for.

use super::Rule;
use super::seen::{Fold, Seen};
use crate::ir::Value;
use crate::ir::op::{LogSumExp, Op, ReduceKind, Squeeze};
use crate::rewrite::local::Local;
use crate::scalar::ElemOp::{self, Add, Neg, Sub};

/// The rules. Gradients know them.
pub static RULES: &[Rule] =
    &[Rule { doc: "logsumexp(x + y + c) → logsumexp((x) + (y)) + c", on: &["logsumexp"], apply: |l, op, ins| regrouped(l, op, ins[0]) }];

/// A term of a sum: which axes of the sum it has more than one element of.
struct Term {
    value: Value,
    minus: bool,
    axes: Vec<bool>,
}

fn regrouped(l: &mut Local, op: &Op, x: Value) -> Option<Value> {
    let Op::LogSumExp(LogSumExp { axes: over, keepdims }) = op else { return None };
    let (Op::Elem(Add | Sub), rank) = (l.node(x)?.0, l.ty(x).rank()) else { return None };
    let mut terms = vec![];
    flatten(l, x, false, rank, true, &mut terms);
    // What is taken out before exponentials are, and put back after the logarithm, is none of ours.
    let extreme = |t: &Term| {
        let fold = Seen::of(l, t.value, rank).fold;
        matches!(fold, Some((Fold::Reduce(ReduceKind::Max | ReduceKind::Min), _))) || l.splat(t.value).is_some()
    };
    if terms.iter().any(extreme) || terms.iter().any(|t| l.dtype(t.value) != l.dtype(x)) {
        return None;
    }
    let (outside, inside): (Vec<Term>, Vec<Term>) = terms.into_iter().partition(|t| over.iter().all(|&k| !t.axes[k]));
    let partial = |t: &Term| t.axes.contains(&false);
    let twice = |t: &Term| inside.iter().filter(|other| other.axes == t.axes).count() > 1;
    let several = inside.iter().any(|t| partial(t) && twice(t)) && inside.iter().any(|t| t.axes != inside[0].axes);
    if inside.is_empty() || outside.is_empty() && !several {
        return None;
    }
    let x = grouped(l, inside)?;
    // What is left may lack leading axes, which those outside have.
    let offset = rank - l.ty(x).rank();
    let axes = over.iter().map(|k| k.checked_sub(offset)).collect::<Option<Vec<usize>>>()?;
    let mut y = l.make(LogSumExp { axes, keepdims: *keepdims }, &[x])?;
    for term in outside {
        let c = if *keepdims { term.value } else { without(l, term.value, over, rank)? };
        y = l.elem(if term.minus { Sub } else { Add }, &[y, c])?;
    }
    Some(y)
}

/// The terms of a sum that has all axes; sums that lack some are terms.
fn flatten(l: &Local, v: Value, minus: bool, rank: usize, whole: bool, terms: &mut Vec<Term>) {
    let own = &l.ty(v).dims;
    let axes: Vec<bool> = (0..rank).map(|k| k + own.len() >= rank && !own[k + own.len() - rank].is_one()).collect();
    match l.node(v) {
        Some((Op::Elem(op @ (Add | Sub)), &[p, q])) if (whole || !axes.contains(&false)) && terms.len() < 8 => {
            flatten(l, p, minus, rank, false, terms);
            flatten(l, q, minus ^ (*op == Sub), rank, false, terms);
        }
        _ => terms.push(Term { value: v, minus, axes }),
    }
}

/// The sum of all, those of the same axes first.
fn grouped(l: &mut Local, terms: Vec<Term>) -> Option<Value> {
    let mut groups: Vec<Term> = vec![];
    for term in terms {
        match groups.iter().position(|g| g.axes == term.axes) {
            Some(at) => groups[at] = sum(l, &groups[at], &term)?,
            None => groups.push(term),
        }
    }
    let all = groups.into_iter().try_fold(None, |sum_of: Option<Term>, term| {
        Some(Some(match sum_of {
            Some(before) => sum(l, &before, &term)?,
            None => term,
        }))
    })??;
    if all.minus { l.elem(Neg, &[all.value]) } else { Some(all.value) }
}

fn sum(l: &mut Local, p: &Term, q: &Term) -> Option<Term> {
    let (op, ins, minus): (ElemOp, [Value; 2], bool) = match (p.minus, q.minus) {
        (false, true) => (Sub, [p.value, q.value], false),
        (true, false) => (Sub, [q.value, p.value], false),
        (minus, _) => (Add, [p.value, q.value], minus),
    };
    let axes = p.axes.iter().zip(&q.axes).map(|(a, b)| *a || *b).collect();
    Some(Term { value: l.elem(op, &ins)?, minus, axes })
}

/// Without the axes over which is summed, as far as it has them.
fn without(l: &mut Local, v: Value, over: &[usize], rank: usize) -> Option<Value> {
    let offset = rank - l.ty(v).rank();
    let axes: Vec<usize> = over.iter().filter_map(|k| k.checked_sub(offset)).collect();
    match l.node(v) {
        _ if axes.is_empty() => Some(v),
        Some((Op::Expand(expand), &[inner])) if expand.axes == axes => Some(inner),
        _ => l.make(Squeeze { axes }, &[v]),
    }
}
