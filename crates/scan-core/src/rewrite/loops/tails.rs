//! Which rows of a value can be other than zero, and values of only its last rows.

use super::facts::integer;
use super::rows::Prover;
use crate::base::Result;
use crate::ir::op::{BroadcastTo, DimOf, Flip, Index, IndexWrite};
use crate::ir::{Graph, Node, Op, Value};
use crate::ops::index::{Item, Pattern};
use crate::rewrite::rebuild::Rebuild;
use crate::types::Dim;

/// Looks behind values of a graph.
pub struct Tails<'a, 'g> {
    g: &'g Graph,
    prover: &'a mut Prover<'g>,
}

/// What a flip along the first axis flips.
pub fn flipped(g: &Graph, v: Value) -> Option<Value> {
    g.node_of(v).filter(|n| matches!(&n.op, Op::Flip(f) if f.axis == 0)).map(|n| n.ins[0])
}

/// A write into the first axis.
enum Wrote {
    /// Into some of the last so many rows.
    Last(usize),
    /// Into all rows from this one on, with as many rows as there are.
    From,
}

impl<'a, 'g> Tails<'a, 'g> {
    /// Nothing seen yet.
    pub fn new(g: &'g Graph, prover: &'a mut Prover<'g>) -> Tails<'a, 'g> {
        Tails { g, prover }
    }

    /// True where rows `n ..` of a value are zero.
    pub fn zero_behind(&mut self, v: Value, n: usize) -> bool {
        match flipped(self.g, v) {
            Some(x) => self.zero_before_last(x, n),
            None => self.zero(v),
        }
    }

    /// True where all rows but the last n are zero.
    fn zero_before_last(&mut self, v: Value, n: usize) -> bool {
        if self.zero(v) {
            return true;
        }
        let Some(node) = self.g.node_of(v) else { return false };
        match &node.op {
            Op::Index(_) => self.whole(node).is_some_and(|x| self.zero_before_last(x, n)),
            Op::Elem(crate::scalar::ElemOp::Add) if self.same_rows(node.ins[0], node.ins[1]) => {
                self.zero_before_last(node.ins[0], n) && self.zero_before_last(node.ins[1], n)
            }
            Op::IndexWrite(op) => {
                let behind = match self.wrote(op, node) {
                    Some(Wrote::Last(k)) => k <= n,
                    Some(Wrote::From) => self.zero_before_last(node.ins[1], n),
                    None => false,
                };
                behind && self.zero_before_last(node.ins[0], n)
            }
            _ => false,
        }
    }

    /// True for zeros.
    pub fn zero(&self, v: Value) -> bool {
        if let Some(a) = self.g.const_value(v) {
            return a.to_f64_vec().iter().all(|x| *x == 0.0);
        }
        self.g.node_of(v).is_some_and(|n| n.op.moves() && self.zero(n.ins[0]))
    }

    fn same_rows(&mut self, a: Value, b: Value) -> bool {
        let (rank, rows) = (self.g.ty(a).rank(), self.prover.rows(a));
        rank == self.g.ty(b).rank() && rank > 0 && rows == self.prover.rows(b)
    }

    /// What a slice cuts nothing off.
    fn whole(&mut self, node: &Node) -> Option<Value> {
        let Op::Index(op) = &node.op else { return None };
        let pattern = Pattern::parse(&op.pattern).ok()?;
        let [Item::Slice { start, end, step: 1 }] = pattern.items[..] else { return None };
        let from_front = !start || integer(self.g, node.ins[1]) == Some(0);
        let to_end = !end || self.prover.scalar(node.ins[1 + usize::from(start)]) == self.prover.rows(node.ins[0]).form;
        (from_front && to_end).then_some(node.ins[0])
    }

    /// Where a write goes, along the first axis.
    fn wrote(&mut self, op: &IndexWrite, node: &Node) -> Option<Wrote> {
        let pattern = Pattern::parse(&op.pattern).ok()?;
        let at = |k: usize| integer(self.g, *node.ins.get(2 + k)?);
        match *pattern.items.first()? {
            Item::At => at(0).filter(|i| *i < 0).map(|i| Wrote::Last(i.unsigned_abs() as usize)),
            Item::Slice { start: true, end, step: 1 } if at(0)? < 0 && (!end || at(1)? < 0) => {
                Some(Wrote::Last(at(0)?.unsigned_abs() as usize))
            }
            Item::Slice { start: true, end: false, step: 1 } if pattern.items.len() == 1 => {
                let from = at(0)?;
                let (x, y) = (node.ins[0], node.ins[1]);
                let fits = self.g.ty(x).rank() == self.g.ty(y).rank() && {
                    let (have, written) = (self.prover.rows(x), self.prover.rows(y));
                    have.form.sub(&written.form) == Dim::from_parts([], from)
                };
                fits.then_some(Wrote::From)
            }
            _ => None,
        }
    }

    /// The first n rows of a value, in the copy.
    ///
    /// # Errors
    /// Internal ones.
    pub fn first(&mut self, rebuild: &mut Rebuild, v: Value, n: usize) -> Result<Value> {
        if let Some(x) = flipped(self.g, v) {
            let last = self.last(rebuild, x, n)?;
            return Ok(rebuild.new.emit(Flip { axis: 0 }, &[last]));
        }
        let (x, n) = (rebuild.image(v)?, rebuild.new.int(n as i64));
        Ok(rebuild.new.emit(Index { pattern: ":e".into() }, &[x, n]))
    }

    /// The last `min(n, rows)` rows of a value, in the copy: made without the other rows where that is possible.
    fn last(&mut self, rebuild: &mut Rebuild, v: Value, n: usize) -> Result<Value> {
        let node = self.g.node_of(v).cloned();
        if let Some(node) = &node {
            match &node.op {
                Op::Index(_) => {
                    if let Some(x) = self.whole(node) {
                        return self.last(rebuild, x, n);
                    }
                }
                Op::BroadcastLike(_) if self.g.ty(node.ins[0]).rank() == 0 => return last_of_repeated(rebuild, node, n),
                Op::IndexWrite(op) => match self.wrote(op, node) {
                    Some(Wrote::Last(k)) if k <= n => {
                        let x = self.last(rebuild, node.ins[0], n)?;
                        let mut ins = vec![x];
                        ins.extend(rebuild.images(&node.ins[1..])?);
                        return Ok(rebuild.new.emit(op.clone(), &ins));
                    }
                    Some(Wrote::From) => return self.last_of_written(rebuild, op, node, n),
                    _ => {}
                },
                _ => {}
            }
        }
        let (x, start) = (rebuild.image(v)?, rebuild.new.int(-(n as i64)));
        Ok(rebuild.new.emit(Index { pattern: "s:".into() }, &[x, start]))
    }

    /// y written behind the first rows of x: of the last rows, those that y has.
    fn last_of_written(&mut self, rebuild: &mut Rebuild, op: &IndexWrite, node: &Node, n: usize) -> Result<Value> {
        let (x, y) = (self.last(rebuild, node.ins[0], n)?, self.last(rebuild, node.ins[1], n)?);
        let g = &mut rebuild.new;
        let (have, written) = (g.dim(x, 0), g.dim(y, 0));
        let start = g.sub(have, written);
        Ok(g.emit(op.clone(), &[x, y, start]))
    }
}

/// The last rows of a scalar repeated to the shape of another value.
fn last_of_repeated(rebuild: &mut Rebuild, node: &Node, n: usize) -> Result<Value> {
    let (x, like) = (rebuild.image(node.ins[0])?, rebuild.image(node.ins[1])?);
    let g = &mut rebuild.new;
    let most = g.int(n as i64);
    let rows = match g.ty(like).dims[0].value() {
        Some(rows) => g.int(rows as i64),
        None => g.emit(DimOf { axis: 0 }, &[like]),
    };
    let mut ins = vec![x, g.minimum(rows, most)];
    for axis in 1..g.ty(like).rank() {
        let extent = g.dim(like, axis);
        ins.push(extent);
    }
    Ok(g.emit(BroadcastTo {}, &ins))
}
