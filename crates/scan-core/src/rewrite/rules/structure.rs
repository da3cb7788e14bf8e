//! Casts and changes of shape that cancel.

use super::Rule;
use crate::ir::Value;
use crate::ir::op::{Cast, Diag, Expand, Flip, Op, Reshape, ReshapeLike, Transpose};
use crate::rewrite::local::Local;
use crate::types::{DType, Dim};

/// The rules.
pub static RULES: &[Rule] = &[
    Rule {
        doc: "cast to the same dtype → x",
        on: &["cast"],
        apply: |l, op, ins| matches!(op, Op::Cast(c) if c.dtype == l.dtype(ins[0])).then_some(ins[0]),
    },
    Rule { doc: "cast of a cast that loses nothing → cast", on: &["cast"], apply: |l, op, ins| cast_twice(l, op, ins[0]) },
    Rule {
        doc: "transpose by the identity → x",
        on: &["transpose"],
        apply: |_, op, ins| matches!(op, Op::Transpose(t) if t.perm.is_sorted()).then_some(ins[0]),
    },
    Rule { doc: "transpose of a transpose → transpose", on: &["transpose"], apply: |l, op, ins| transposed_twice(l, op, ins[0]) },
    Rule { doc: "transpose of a diagonal matrix → diagonal matrix", on: &["transpose"], apply: |l, _, ins| turned_diagonal(l, ins[0]) },
    Rule { doc: "flip of a transpose → transpose of a flip", on: &["flip"], apply: |l, op, ins| flipped_behind(l, op, ins[0]) },
    Rule {
        doc: "flip of a flip → x",
        on: &["flip"],
        apply: |l, op, ins| l.node(ins[0]).filter(|(inner, _)| *inner == op).map(|(_, x)| x[0]),
    },
    Rule {
        doc: "expand or squeeze of no axis → x",
        on: &["expand", "squeeze"],
        apply: |_, op, ins| axes(op).is_some_and(|a| a.is_empty()).then_some(ins[0]),
    },
    Rule { doc: "squeeze of expand → x", on: &["squeeze"], apply: |l, op, ins| undone(l, op, ins[0]) },
    Rule { doc: "expand of squeeze → x", on: &["expand"], apply: |l, op, ins| undone(l, op, ins[0]).filter(|_| l.safe_squeeze(ins[0])) },
    Rule { doc: "reshape to the same shape → x", on: &["reshape", "reshape_like"], apply: |l, op, ins| same_shape(l, op, ins) },
    Rule { doc: "reshape of a reshape → reshape", on: &["reshape", "reshape_like"], apply: |l, op, ins| reshaped_twice(l, op, ins) },
];

/// True where each value of one dtype is one of the other, and different values stay different.
fn lossless(from: DType, to: DType) -> bool {
    let bits = |d: DType| 8 * d.size();
    match (from, to) {
        _ if from == to => true,
        (DType::Bool, _) => true,
        (_, DType::Bool) => false,
        (DType::F32, DType::F64) => true,
        _ if from.is_float() => false,
        (_, DType::F32) => bits(from) <= 16,
        (_, DType::F64) => bits(from) <= 32,
        _ if from.is_unsigned() == to.is_unsigned() => bits(from) <= bits(to),
        _ => from.is_unsigned() && bits(from) < bits(to),
    }
}

/// A float that is cast to integers ends at the largest one, an integer that is cast goes around.
fn cast_twice(l: &mut Local, op: &Op, inner: Value) -> Option<Value> {
    let (Op::Cast(to), (Op::Cast(_), &[x])) = (op, l.node(inner)?) else { return None };
    let (from, by, to) = (l.dtype(x), l.dtype(inner), to.dtype);
    let around = by.is_float() && !from.is_float() && to.is_int() && !lossless(from, to);
    (lossless(from, by) && !around).then(|| l.make(op.clone(), &[x]))?
}

/// So that transposes meet.
fn flipped_behind(l: &mut Local, op: &Op, x: Value) -> Option<Value> {
    let (Op::Flip(flip), (Op::Transpose(transpose), &[from])) = (op, l.node(x)?) else { return None };
    let transpose = transpose.clone();
    let flipped = l.make(Flip { axis: transpose.perm[flip.axis] }, &[from])?;
    l.make(transpose, &[flipped])
}

/// Behind the rule for transposes that leave the axes where they are.
fn turned_diagonal(l: &mut Local, x: Value) -> Option<Value> {
    let (&Op::Diag(Diag { k }), &[v]) = l.node(x)? else { return None };
    let k = k.checked_neg().filter(|_| l.ty(v).rank() == 1)?;
    l.make(Diag { k }, &[v])
}

fn transposed_twice(l: &mut Local, op: &Op, inner: Value) -> Option<Value> {
    let (Op::Transpose(outer), (Op::Transpose(first), &[x])) = (op, l.node(inner)?) else { return None };
    let perm = outer.perm.iter().map(|&axis| first.perm[axis]).collect();
    l.make(Transpose { perm }, &[x])
}

fn axes(op: &Op) -> Option<&[usize]> {
    match op {
        Op::Expand(Expand { axes }) => Some(axes),
        Op::Squeeze(s) => Some(&s.axes),
        _ => None,
    }
}

/// What was there before the opposite of an op.
fn undone(l: &mut Local, op: &Op, inner: Value) -> Option<Value> {
    let (before, ins) = l.node(inner)?;
    (axes(before)? == axes(op)? && before.name() != op.name()).then_some(ins[0])
}

impl Local<'_> {
    /// True for a squeeze of axes that are known to have one element.
    fn safe_squeeze(&self, v: Value) -> bool {
        match self.node(v) {
            Some((Op::Squeeze(s), ins)) => s.axes.iter().all(|&axis| self.ty(ins[0]).dims[axis].is_one()),
            _ => false,
        }
    }
    /// The extents that a reshape asks for, where they are certain.
    fn asked(&self, op: &Op, ins: &[Value]) -> Option<Vec<Dim>> {
        match op {
            Op::ReshapeLike(_) => Some(self.ty(ins[1]).dims.to_vec()),
            Op::Reshape(_) => ins[1..].iter().map(|&v| self.extent(v)).collect(),
            _ => None,
        }
    }
}

fn same_shape(l: &mut Local, op: &Op, ins: &[Value]) -> Option<Value> {
    (l.asked(op, ins)? == l.ty(ins[0]).dims.to_vec()).then_some(ins[0])
}

/// The inner reshape must be known to succeed.
fn reshaped_twice(l: &mut Local, op: &Op, ins: &[Value]) -> Option<Value> {
    let (inner, before) = l.node(ins[0])?;
    let flat = matches!(inner, Op::Reshape(Reshape {})) && before.len() == 2 && l.int(before[1]) == Some(-1);
    let counted = matches!(inner, Op::Reshape(Reshape {}) | Op::ReshapeLike(ReshapeLike {}))
        && l.count(ins[0]).is_some()
        && l.count(ins[0]) == l.count(before[0]);
    if !flat && !counted {
        return None;
    }
    let all: Vec<Value> = std::iter::once(before[0]).chain(ins[1..].iter().copied()).collect();
    l.make(op.clone(), &all)
}

impl Local<'_> {
    /// The number of elements, where it is known.
    pub fn count(&self, v: Value) -> Option<usize> {
        self.ty(v).dims.iter().map(Dim::value).try_fold(1usize, |n, d| n.checked_mul(d?))
    }
    /// What a value was cast from, where it had this dtype and nothing was lost.
    pub fn uncast(&self, v: Value, dtype: DType) -> Option<Value> {
        let (Op::Cast(_), &[x]) = self.node(v)? else { return None };
        (self.dtype(x) == dtype && lossless(dtype, self.dtype(v))).then_some(x)
    }
    /// x as another dtype.
    pub fn cast(&mut self, x: Value, dtype: DType) -> Option<Value> {
        if self.dtype(x) == dtype { Some(x) } else { self.make(Cast { dtype }, &[x]) }
    }
}
