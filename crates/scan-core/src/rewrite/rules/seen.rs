//! Values seen through ops that only move or repeat elements: two spellings of one value are told to be the same.

use crate::base::Id;
use crate::ir::Value;
use crate::ir::op::{Op, ReduceKind};
use crate::ops::views::{Axes, view};
use crate::rewrite::local::Local;
use crate::scalar::ElemOp;

/// What combines elements along axes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fold {
    /// `reduce`.
    Reduce(ReduceKind),
    /// `logsumexp`.
    LogSumExp,
}

/// A value in the frame of another that it is broadcast to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen {
    /// What it is made of.
    pub root: Value,
    /// What is made of the root, and along which axes.
    pub fold: Option<(Fold, Vec<usize>)>,
    /// For each axis of the frame, the axis of the root.
    pub axes: Axes,
    /// No gradient flows to the root.
    pub stopped: bool,
}

impl Seen {
    /// A value in a frame of so many axes, of which its own are the last ones.
    pub fn of(l: &Local, v: Value, rank: usize) -> Seen {
        let offset = rank.saturating_sub(l.ty(v).rank());
        let mut seen = Seen { root: v, fold: None, axes: (0..rank).map(|k| k.checked_sub(offset)).collect(), stopped: false };
        seen.drop_ones(l);
        while let Some((inner, axes)) = view(l.g, seen.root).or_else(|| guarded(l, seen.root)) {
            seen.stopped |= matches!(l.node(seen.root), Some((Op::StopGradient(_), _)));
            seen.follow(l, inner, &axes);
        }
        if let Some((fold, over, inner, axes)) = folded(l, seen.root) {
            seen.follow(l, inner, &axes);
            seen.fold = Some((fold, over));
        }
        seen
    }
    fn follow(&mut self, l: &Local, inner: Value, axes: &[Option<usize>]) {
        self.root = inner;
        self.axes.iter_mut().for_each(|axis| *axis = axis.and_then(|k| axes[k]));
        self.drop_ones(l);
    }
    /// Along axes of one element there is nothing to tell apart.
    fn drop_ones(&mut self, l: &Local) {
        let dims = &l.ty(self.root).dims;
        self.axes.iter_mut().for_each(|axis| *axis = axis.filter(|&k| !dims[k].is_one()));
    }
    /// The same value in the frame of what is seen through `axes`, which say what each axis of this frame is there; `None` where
    /// it has axes that the other lacks.
    pub fn within(&self, axes: &[Option<usize>], rank: usize) -> Option<Seen> {
        let mut inner: Axes = (0..rank).map(|_| None).collect();
        for (own, to) in self.axes.iter().zip(axes) {
            match (own, to) {
                (Some(_), None) => return None,
                (_, Some(k)) => inner[*k] = *own,
                (None, None) => {}
            }
        }
        Some(Seen { axes: inner, ..self.clone() })
    }
    /// True where the value is what `fold` makes of all elements of `root` along an axis, for a frame of the root's own axes.
    pub fn is_fold(&self, l: &Local, fold: Fold, root: Value) -> bool {
        let Some((found, over)) = &self.fold else { return false };
        let dims = &l.ty(root).dims;
        let own = |(k, axis): (usize, &Option<usize>)| *axis == (!over.contains(&k) && !dims[k].is_one()).then_some(k);
        *found == fold && self.root == root && !self.stopped && self.axes.len() == dims.len() && self.axes.iter().enumerate().all(own)
    }
}

/// The value that a choice lets pass where it is finite.
fn guarded(l: &Local, v: Value) -> Option<(Value, Axes)> {
    let (Op::Elem(ElemOp::Where), &[cond, x, y]) = l.node(v)? else { return None };
    let (Op::Elem(test), of) = l.node(cond)? else { return None };
    let (test, tested, limit) = (*test, of[0], of.get(1).copied());
    let low = || limit.is_some_and(|v| l.splat(v).is_some_and(f64::is_infinite));
    let (passes, other) = match test {
        ElemOp::IsFinite => (x, y),
        ElemOp::Ne | ElemOp::Gt | ElemOp::Lt if low() => (x, y),
        ElemOp::IsInf | ElemOp::IsNan => (y, x),
        ElemOp::Eq if low() => (y, x),
        _ => return None,
    };
    let harmless = passes == tested && l.splat(other).is_some_and(f64::is_finite) && l.ty(v) == l.ty(passes);
    harmless.then(|| (passes, (0..l.ty(v).rank()).map(Some).collect()))
}

/// What is folded to a value, along which axes, and what the value's axes are there.
fn folded(l: &Local, v: Value) -> Option<(Fold, Vec<usize>, Value, Axes)> {
    let (op, ins) = l.node(v)?;
    let (fold, over, keepdims) = match op {
        Op::Reduce(op) => (Fold::Reduce(op.kind), &op.axes, op.keepdims),
        Op::LogSumExp(op) => (Fold::LogSumExp, &op.axes, op.keepdims),
        _ => return None,
    };
    let own = |k: &usize| keepdims || !over.contains(k);
    let axes = (0..l.ty(ins[0]).rank()).filter(own).map(|k| (!over.contains(&k)).then_some(k)).collect();
    Some((fold, over.clone(), ins[0], axes))
}

/// What `found` makes of a value, or of the one that it is moved from, moved likewise.
pub fn behind_views(l: &mut Local, v: Value, found: &dyn Fn(&mut Local, Value) -> Option<Value>) -> Option<Value> {
    if let Some(made) = found(l, v) {
        return Some(made);
    }
    let (op, ins) = l.node(v).filter(|(op, _)| op.moves())?;
    let (op, mut ins) = (op.clone(), ins.to_vec());
    ins[0] = behind_views(l, ins[0], found)?;
    l.make(op, &ins)
}

/// True where a value is made of another by sums, choices and changes of shape: what is NaN or +∞ there is so here.
pub fn is_term(l: &Local, term: Value, of: Value) -> bool {
    const DEPTH: usize = 6;
    fn look(l: &Local, term: Value, of: Value, depth: usize) -> bool {
        let sums = |op: &Op| {
            matches!(op, Op::Elem(ElemOp::Add | ElemOp::Sub | ElemOp::Neg | ElemOp::Where | ElemOp::LogAddExp))
                || matches!(op, Op::LogSumExp(_) | Op::Join(_))
                || op.moves()
        };
        term == of || depth > 0 && l.node(of).is_some_and(|(op, ins)| sums(op) && ins.iter().any(|&v| look(l, term, v, depth - 1)))
    }
    debug_assert!(of.idx() < l.g.n_values());
    look(l, term, of, DEPTH)
}
