//! Sums of products along axes as products of matrices, without the array of all products; and products with a vector that is 1 in
//! one place.

use super::Rule;
use crate::ir::op::{Expand, Index, MatMul, Op, Reduce, ReduceKind, Squeeze, Transpose};
use crate::ir::{Graph, Value};
use crate::rewrite::local::Local;
use crate::scalar::ElemOp::Mul;
use crate::types::Dim;

/// The rules. Gradients know them.
pub static RULES: &[Rule] = &[
    Rule { doc: "Σₖ a[i, k, 1] · b[1, k, j] → a @ b", on: &["reduce"], apply: |l, op, ins| summed(l, op, ins) },
    Rule {
        doc: "Σⱼₖ a[i, j, k] · b[j] · c[k] → Σⱼ (a @ c)[i, j] · b[j]", on: &["reduce"], apply: |l, op, ins| one_axis(l, op, ins)
    },
    Rule { doc: "sum_to(a[i, k, 1] · b[1, k, j], y) → a @ b", on: &["sum_to"], apply: |l, _, ins| summed_to(l, ins[0], ins[1]) },
    Rule { doc: "x @ e → x[…, i], e being 1 at i and 0 elsewhere", on: &["matmul"], apply: |l, _, ins| one_hot(l, ins[0], ins[1]) },
];

fn summed(l: &mut Local, op: &Op, ins: &[Value]) -> Option<Value> {
    let Op::Reduce(reduce) = op else { return None };
    let (ReduceKind::Sum, &[axis], keepdims) = (reduce.kind, &reduce.axes[..], reduce.keepdims) else { return None };
    let product = product(l, ins[0], axis)?;
    if keepdims { l.make(Expand { axes: vec![axis] }, &[product]) } else { Some(product) }
}

/// A sum of products of three or more arrays: where a vector varies along an axis of the sum beside one other array alone, that axis is
/// summed first, and the rest is smaller by it.
fn one_axis(l: &mut Local, op: &Op, ins: &[Value]) -> Option<Value> {
    let Op::Reduce(Reduce { kind: ReduceKind::Sum, axes, keepdims }) = op else { return None };
    let frame = l.ty(ins[0]).dims.to_vec();
    let mut factors = vec![];
    factors_of(l, ins[0], &mut factors);
    let factors: Vec<Operand> = factors.into_iter().map(|v| Operand::new(l, v, &frame)).collect();
    let all = (0..frame.len()).all(|k| factors.iter().any(|f| f.varies[k]));
    if factors.len() < 3 || !all || !l.dtype(ins[0]).is_float() {
        return None;
    }
    let (axis, [array, vector]) = axes.iter().rev().find_map(|&axis| Some((axis, beside(l, &factors, axis)?)))?;
    let others = (0..factors.len()).filter(|&k| k != array && k != vector);
    let (array, vector) = (&factors[array], &factors[vector]);
    let left: Vec<usize> = (0..frame.len()).filter(|&k| array.varies[k]).collect();
    let (p, v) = (array.arranged(l, &left)?, vector.arranged(l, &[axis])?);
    let sums = if left.last() == Some(&axis) { l.make(MatMul {}, &[p, v])? } else { l.make(MatMul {}, &[v, p])? };
    // All without that axis.
    let without = |k: usize| k - usize::from(k > axis);
    let new = (0..frame.len()).filter(|&k| k != axis && !array.varies[k]).map(without).collect::<Vec<usize>>();
    let mut product = if new.is_empty() { sums } else { l.make(Expand { axes: new }, &[sums])? };
    for factor in others.map(|k| factors[k].value) {
        // An axis that it does not have needs not go.
        let own = (axis + l.ty(factor).rank()).checked_sub(frame.len());
        let value = own.map_or(Some(factor), |own| squeezed(l, factor, vec![own]))?;
        product = l.elem(Mul, &[product, value])?;
    }
    let rest: Vec<usize> = axes.iter().filter(|&&k| k != axis).map(|&k| without(k)).collect();
    let sum = if rest.is_empty() { product } else { l.make(Reduce { kind: ReduceKind::Sum, axes: rest, keepdims: false }, &[product])? };
    if *keepdims { l.make(Expand { axes: axes.clone() }, &[sum]) } else { Some(sum) }
}

/// What is multiplied, of the product's dtype.
fn factors_of(l: &Local, x: Value, factors: &mut Vec<Value>) {
    match l.of2(x, Mul).filter(|ins| ins.iter().all(|&v| l.dtype(v) == l.dtype(x))) {
        Some(ins) => ins.into_iter().for_each(|v| factors_of(l, v, factors)),
        None => factors.push(x),
    }
}

/// The two factors that vary along an axis where there are but two: an array that is there in memory, and a vector. The axis is one of the
/// array's last two, as products of matrices have it.
fn beside(l: &Local, factors: &[Operand], axis: usize) -> Option<[usize; 2]> {
    let along: Vec<usize> = (0..factors.len()).filter(|&k| factors[k].varies[axis]).collect();
    let &[a, b] = &along[..] else { return None };
    let axes = |k: usize| factors[k].varies.iter().filter(|&&v| v).count();
    let [array, vector] = if axes(b) == 1 { [a, b] } else { [b, a] };
    let behind = factors[array].varies[axis + 1..].iter().filter(|&&v| v).count();
    let there = !l.node(factors[array].value).is_some_and(|(op, _)| matches!(op, Op::Elem(_)));
    let fit = axes(vector) == 1 && axes(array) > 1 && factors[array].agrees(l, &factors[vector]);
    (fit && behind < 2 && there).then_some([array, vector])
}

/// The axis over which is summed is the only one that the second lacks, or has one element of.
fn summed_to(l: &mut Local, x: Value, like: Value) -> Option<Value> {
    let (dims, wanted) = (l.ty(x).dims.to_vec(), l.ty(like).dims.to_vec());
    let offset = dims.len().checked_sub(wanted.len())?;
    let gone = |k: usize| k < offset || wanted[k - offset].is_one() && !dims[k].is_one();
    let over: Vec<usize> = (0..dims.len()).filter(|&k| gone(k)).collect();
    let kept = (offset..dims.len()).all(|k| gone(k) || dims[k] == wanted[k - offset]);
    let (&[axis], true) = (&over[..], kept) else { return None };
    let product = product(l, x, axis)?;
    if offset == 0 { l.make(Expand { axes: vec![axis] }, &[product]) } else { Some(product) }
}

/// An operand of a product in its frame: which axes it has more than one element of.
struct Operand {
    value: Value,
    varies: Vec<bool>,
}

impl Operand {
    fn new(l: &Local, value: Value, frame: &[Dim]) -> Operand {
        let own = &l.ty(value).dims;
        let offset = frame.len() - own.len();
        let varies = (0..frame.len()).map(|k| k >= offset && !own[k - offset].is_one()).collect();
        Operand { value, varies }
    }
    /// How many elements it has along an axis of the frame that it varies along.
    fn extent<'a>(&self, l: &'a Local, axis: usize) -> &'a Dim {
        let own = &l.ty(self.value).dims;
        &own[axis + own.len() - self.varies.len()]
    }
    /// Both have as many elements along each axis along which both vary.
    fn agrees(&self, l: &Local, other: &Operand) -> bool {
        let both = |&k: &usize| self.varies[k] && other.varies[k];
        (0..self.varies.len()).filter(both).all(|k| l.alike(self.extent(l, k), other.extent(l, k)))
    }
    /// Without axes of one element, the others in this order.
    fn arranged(&self, l: &mut Local, order: &[usize]) -> Option<Value> {
        let (frame, rank) = (self.varies.len(), l.ty(self.value).rank());
        let gone: Vec<usize> = (frame - rank..frame).filter(|&k| !self.varies[k]).map(|k| k + rank - frame).collect();
        let x = if gone.is_empty() { self.value } else { squeezed(l, self.value, gone)? };
        let left: Vec<usize> = (0..frame).filter(|&k| self.varies[k]).collect();
        let perm = order.iter().map(|k| left.iter().position(|own| own == k)).collect::<Option<Vec<usize>>>()?;
        if perm.is_sorted() { Some(x) } else { l.make(Transpose { perm }, &[x]) }
    }
}

fn squeezed(l: &mut Local, x: Value, axes: Vec<usize>) -> Option<Value> {
    match l.node(x) {
        Some((Op::Expand(expand), &[inner])) if expand.axes == axes => Some(inner),
        _ => l.make(Squeeze { axes }, &[x]),
    }
}

/// `Σ a · b` along an axis as a product of matrices; `None` where all products are no more than what is there already.
fn product(l: &mut Local, x: Value, axis: usize) -> Option<Value> {
    let [a, b] = l.of2(x, Mul).filter(|ins| ins.iter().all(|&v| l.dtype(v) == l.dtype(x)) && l.dtype(x).is_float())?;
    let frame = l.ty(x).dims.to_vec();
    let (mut a, mut b) = (Operand::new(l, a, &frame), Operand::new(l, b, &frame));
    let axes =
        |of: &dyn Fn(bool, bool) -> bool| (0..frame.len()).filter(|&k| k != axis && of(a.varies[k], b.varies[k])).collect::<Vec<_>>();
    let (both, neither) = (axes(&|p, q| p && q), axes(&|p, q| !p && !q));
    let (mut rows, mut columns) = (axes(&|p, q| p && !q), axes(&|p, q| !p && q));
    let shared = a.varies[axis] && b.varies[axis] && neither.is_empty() && rows.len() < 2 && columns.len() < 2;
    if !shared || rows.is_empty() && columns.is_empty() || !a.agrees(l, &b) {
        return None;
    }
    if columns < rows && !columns.is_empty() || rows.is_empty() {
        (a, b, rows, columns) = (b, a, columns, rows);
    }
    // A matrix that is computed element by element need not be kept where it is summed as it is made.
    if columns.is_empty() && (!both.is_empty() || l.node(a.value).is_some_and(|(op, _)| matches!(op, Op::Elem(_)))) {
        return None;
    }
    let order = |parts: [&[usize]; 3]| parts.concat();
    // A vector stands on the left where the matrix is read along its rows then.
    let turned = columns.is_empty() && axis < rows[0];
    let (p, q, result) = if turned {
        (b.arranged(l, &[axis])?, a.arranged(l, &[axis, rows[0]])?, rows.clone())
    } else {
        (
            a.arranged(l, &order([&both, &rows, &[axis]]))?,
            b.arranged(l, &order([&both, &[axis], &columns]))?,
            order([&both, &rows, &columns]),
        )
    };
    let y = l.make(MatMul {}, &[p, q])?;
    let mut sorted = result.clone();
    sorted.sort_unstable();
    let perm: Vec<usize> = sorted.iter().map(|k| result.iter().position(|r| r == k)).collect::<Option<_>>()?;
    if perm.is_sorted() { Some(y) } else { l.make(Transpose { perm }, &[y]) }
}

/// The place of the only 1 among zeros.
fn place(g: &Graph, v: Value) -> Option<usize> {
    let numbers = g.const_value(v).filter(|a| a.rank() == 1 && a.len() > 1)?.to_f64_vec();
    let mut some = numbers.iter().enumerate().filter(|(_, n)| **n != 0.0);
    let (at, one) = some.next()?;
    (*one == 1.0 && some.next().is_none()).then_some(at)
}

fn one_hot(l: &mut Local, x: Value, y: Value) -> Option<Value> {
    let picked = |l: &mut Local, x: Value, e: Value, axis: usize| {
        let at = place(l.g, e)?;
        if l.dtype(x).promote(l.dtype(e)) != l.dtype(x) || l.ty(x).dims[axis] != l.ty(e).dims[0] {
            return None;
        }
        let pattern = [":", ","].concat().repeat(axis) + "i";
        let at = l.g.int(at as i64);
        l.make(Index { pattern }, &[x, at])
    };
    let (rank, other) = (l.ty(x).rank(), l.ty(y).rank());
    picked(l, x, y, rank - 1).or_else(|| picked(l, y, x, other.saturating_sub(2)))
}
