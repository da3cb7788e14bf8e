//! Sums of products along an axis as products of matrices, without the array of all products; and products with a vector that is 1 in
//! one place.

use super::Rule;
use crate::ir::op::{Expand, Index, MatMul, Op, ReduceKind, Squeeze, Transpose};
use crate::ir::{Graph, Value};
use crate::rewrite::local::Local;
use crate::scalar::ElemOp::Mul;
use crate::types::Dim;

/// The rules. Gradients know them.
pub static RULES: &[Rule] = &[
    Rule { doc: "Σₖ a[i, k, 1] · b[1, k, j] → a @ b", on: &["reduce"], apply: |l, op, ins| summed(l, op, ins) },
    Rule { doc: "sum_to(a[i, k, 1] · b[1, k, j], y) → a @ b", on: &["sum_to"], apply: |l, _, ins| summed_to(l, ins[0], ins[1]) },
    Rule { doc: "x @ e → x[…, i], e being 1 at i and 0 elsewhere", on: &["matmul"], apply: |l, _, ins| one_hot(l, ins[0], ins[1]) },
];

fn summed(l: &mut Local, op: &Op, ins: &[Value]) -> Option<Value> {
    let Op::Reduce(reduce) = op else { return None };
    let (ReduceKind::Sum, &[axis], keepdims) = (reduce.kind, &reduce.axes[..], reduce.keepdims) else { return None };
    let product = product(l, ins[0], axis)?;
    if keepdims { l.make(Expand { axes: vec![axis] }, &[product]) } else { Some(product) }
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
    /// Its own axes are those of the frame.
    fn fits(&self, l: &Local, frame: &[Dim]) -> bool {
        let own = &l.ty(self.value).dims;
        let offset = frame.len() - own.len();
        (0..frame.len()).all(|k| !self.varies[k] || own[k - offset] == frame[k])
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
    if !shared || rows.is_empty() && columns.is_empty() || !a.fits(l, &frame) || !b.fits(l, &frame) {
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
