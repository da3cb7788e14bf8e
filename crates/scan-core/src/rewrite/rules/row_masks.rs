//! Rows that are masked, and read and written by a place in each: what `vmap` makes of `x[i]` and `x.at[i].set(y)` in loops whose rows stop
//! on their own. A mask of rows is one of the places then, too, and no row is copied.

use super::Rule;
use super::scatter::{Part, masked_write};
use crate::ir::Value;
use crate::ir::op::{Expand, Gather, GatherWrite, IndexWrite, Op};
use crate::ops::gather::index_axis;
use crate::ops::index::{Item, Pattern};
use crate::ops::rowwise::numbered;
use crate::rewrite::local::Local;
use crate::scalar::ElemOp;

/// The rules.
pub static WRITES: &[Rule] = &[Rule {
    doc: "where(c, set(x, y, i), x) → set(x, where(c, y, x[i]), i), for rows c, each of which is written by places of its own",
    on: &["where"],
    apply: |l, _, ins| written(l, [ins[0], ins[1], ins[2]]),
}];

/// The rules that come after guards of rows that have stopped were dropped.
pub static READS: &[Rule] = &[Rule {
    doc: "where(c, x, y)[i] → where(c, x[i], y[i]), for rows c and a place in each",
    on: &["gather"],
    apply: |l, op, ins| read(l, op, ins),
}];

/// A condition for each row of arrays of so many axes: one vector, and the axis along which it lies.
struct Rows {
    mask: Value,
    axis: usize,
}

impl Rows {
    fn of(l: &Local, cond: Value, rank: usize) -> Option<Rows> {
        match l.node(cond) {
            _ if l.ty(cond).rank() == 1 => Some(Rows { mask: cond, axis: rank.checked_sub(1)? }),
            Some((Op::Expand(Expand { axes }), &[mask])) if l.ty(mask).rank() == 1 => {
                let kept = (0..=axes.len()).find(|axis| !axes.contains(axis))?;
                Some(Rows { mask, axis: (rank + kept).checked_sub(axes.len() + 1)? })
            }
            _ => None,
        }
    }
    /// The condition of what an op reads or writes, where that is a part of each row: as many axes follow the one of rows in it.
    fn at(&self, l: &mut Local, op: &Op, (x, idxs): (Value, &[Value])) -> Option<Value> {
        let behind = match index_arrays(op) {
            Some(axes) => self.gathered(l, axes, (x, idxs))?,
            None => self.sliced(op, l.ty(x).rank())?,
        };
        if behind == 0 {
            return Some(self.mask);
        }
        l.make(Expand { axes: (1..=behind).collect() }, &[self.mask])
    }
    fn sliced(&self, op: &Op, rank: usize) -> Option<usize> {
        let Op::IndexWrite(IndexWrite { pattern, .. }) = op else { return None };
        let mut items = Pattern::parse(pattern).ok()?.items;
        items.resize(rank, Item::ALL);
        (items[self.axis] == Item::ALL).then(|| items[self.axis + 1..].iter().filter(|&item| *item != Item::At).count())
    }
    fn gathered(&self, l: &Local, axes: &[usize], (x, idxs): (Value, &[Value])) -> Option<usize> {
        let rank = numbered(l.g, axes, self.axis, (x, idxs))?;
        Some(l.ty(x).rank() - axes.len() + rank - index_axis(axes) - 1)
    }
}

/// The axes that index arrays stand for.
fn index_arrays(op: &Op) -> Option<&[usize]> {
    match op {
        Op::GatherWrite(GatherWrite { axes, .. }) | Op::Gather(Gather { axes }) => Some(axes),
        _ => None,
    }
}

fn alike(l: &Local, x: Value, y: Value) -> bool {
    let (x, y) = (l.ty(x), l.ty(y));
    x.dtype == y.dtype && x.rank() == y.rank() && x.dims.iter().zip(&y.dims).all(|(x, y)| l.alike(x, y))
}

/// True for a write of single elements or rows.
fn single(op: &Op) -> bool {
    matches!(op, Op::GatherWrite(_)) || matches!(op, Op::IndexWrite(IndexWrite { pattern, .. }) if pattern.contains('i'))
}

/// Writes into an array, or into what it is where the rows' condition holds.
fn written(l: &mut Local, [cond, x, y]: [Value; 3]) -> Option<Value> {
    let (from, to, holds) = if l.node(x).is_some_and(|(op, _)| single(op)) { (y, x, true) } else { (x, y, false) };
    let rows = Rows::of(l, cond, l.ty(from).rank())?;
    let mut parts: Vec<Part> = vec![];
    let mut at = to;
    while let Some((op, ins)) = l.node(at).filter(|(op, _)| single(op)) {
        parts.push((op.clone(), ins[1..].to_vec()));
        at = ins[0];
    }
    let base = match l.node(at) {
        _ if at == from => true,
        Some((Op::Elem(ElemOp::Where), ins)) => ins[0] == cond && ins[if holds { 1 } else { 2 }] == from,
        _ => false,
    };
    let extents = [rows.mask, from].map(|v| &l.ty(v).dims);
    let whole = extents[0][0].is_one() || l.alike(&extents[0][0], &extents[1][rows.axis]);
    let exact = parts.iter().all(|(_, ins)| l.dtype(ins[0]) == l.dtype(from));
    if parts.is_empty() || !base || !whole || !exact || !alike(l, from, to) || !l.safe(at) {
        return None;
    }
    parts.into_iter().rev().try_fold(from, |into, (op, ins)| {
        let cond = rows.at(l, &op, (into, &ins[1..]))?;
        masked_write(l, (cond, holds), into, &(op, ins))
    })
}

/// Of rows that are chosen, a place in each.
fn read(l: &mut Local, op: &Op, ins: &[Value]) -> Option<Value> {
    let (Op::Elem(ElemOp::Where), &[cond, x, y]) = l.node(ins[0])? else { return None };
    let rows = Rows::of(l, cond, l.ty(ins[0]).rank())?;
    if ins[1..].iter().any(|&v| l.ty(v).rank() > 1) || !alike(l, x, ins[0]) || !alike(l, y, ins[0]) {
        return None;
    }
    let cond = rows.at(l, op, (x, &ins[1..]))?;
    let [x, y] = [x, y].map(|x| l.make(op.clone(), &[&[x], &ins[1..]].concat()));
    l.elem(ElemOp::Where, &[cond, x?, y?])
}
