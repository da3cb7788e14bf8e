//! The parts of a step that is a list: what runs each.

use super::indexed::ByArrays;
use super::kernels::{Kernels, Versions};
use super::moves::Turned;
use super::strided::Strided;
use super::tier::{Engine, Tiered};
use crate::backend::cpu::NestPlan;
use crate::base::Span;
use crate::ir::Op;
use crate::ir::op::Write;
use crate::ops::direct::Direct;
use crate::ops::select::{ByIntegers, Selector};
use crate::plan::list::{InnerKernel, InnerList, Item, Place, Run, Slice, Work};
use crate::types::shape::count;
use std::sync::Arc;

/// A part of a step: what runs it, and on what.
pub(super) struct Piece {
    pub part: Part,
    pub ins: Vec<Place>,
    pub outs: Vec<Place>,
    pub span: Span,
}

/// What runs a part.
pub(super) enum Part {
    Nest(Arc<Tiered>, Box<NestPlan>),
    /// A kernel in two versions: for where a condition does not hold, and for where it holds.
    Either(Box<Versions>),
    /// Runs, and the strided ones that they are.
    Move(Vec<Run>, Vec<Strided>),
    /// Columns that become rows.
    Turn(Vec<Turned>),
    Add(Vec<Run>),
    MatMul([usize; 3]),
    Read(Selector),
    Write(Selector, Write),
    /// A read by index arrays, or a write if so.
    ByArrays(Box<ByArrays>, Option<Write>),
    /// The same by integers.
    ByIntegers(Box<ByIntegers>, Option<Write>),
    Slice(Box<Slice>),
    Direct(Direct, Op),
    Call(Op),
    Guard([usize; 2]),
    /// Integers name places of an axis of such an extent.
    Within([usize; 2]),
    Loop(Box<InnerKernel<Compiled>>),
    For(Box<InnerList<Piece>>),
}

/// The kernel of a loop in a step, with what runs it.
pub(super) struct Compiled {
    pub tier: Arc<Tiered>,
    pub nest: NestPlan,
}

/// True where y has the elements that integers name in x, or one for all.
fn fills(by: &ByIntegers, x: &Place, y: &Place) -> bool {
    let (n, named) = (count(&y.shape), by.first.count * by.first.run);
    y.dtype == x.dtype && (n == named || n == 1) && named > 0
}

impl Piece {
    pub fn new(item: Item, kernels: &Kernels) -> Piece {
        let part = match item.work {
            Work::Nest(nest) => match kernels.versions(&nest) {
                Some(versions) => Part::Either(Box::new(versions)),
                None => Part::Nest(kernels.get(&nest), Box::new(NestPlan::new(*nest))),
            },
            Work::Move(runs) => match Turned::of(&runs).filter(|_| !matches!(kernels.planner.engine, Engine::Device(_))) {
                Some(turned) => Part::Turn(turned),
                None => {
                    let strided = Strided::of(&runs);
                    Part::Move(runs, strided)
                }
            },
            Work::Add(runs) => Part::Add(runs),
            Work::MatMul(extents) => Part::MatMul(extents),
            Work::Read(selector) => {
                let (x, out, idxs) = (&item.ins[0], &item.outs[0], &item.ins[1..]);
                match (ByArrays::new(&selector, x, out, idxs), selector.by_integers(&x.shape)) {
                    (Some(by), _) => Part::ByArrays(Box::new(by), None),
                    (None, Some(by)) => Part::ByIntegers(Box::new(by), None),
                    (None, None) => Part::Read(selector),
                }
            }
            Work::Write(selector, mode) => {
                let (x, y, idxs) = (&item.outs[0], &item.ins[0], &item.ins[1..]);
                match (ByArrays::new(&selector, x, y, idxs), selector.by_integers(&x.shape).filter(|by| fills(by, x, y))) {
                    (Some(by), _) => Part::ByArrays(Box::new(by), Some(mode)),
                    (None, Some(by)) => Part::ByIntegers(Box::new(by), Some(mode)),
                    (None, None) => Part::Write(selector, mode),
                }
            }
            Work::Slice(slice) => Part::Slice(slice),
            Work::Direct(direct, op) => Part::Direct(direct, op),
            Work::Call(op, types) => Part::Call(kernels.planner.op(&op, types.into())),
            Work::Guard(range) => Part::Guard(range),
            Work::Within { axis, extent } => Part::Within([axis, extent]),
            Work::Loop(inner) => {
                let compiled = |nest| Compiled { tier: kernels.get(&nest), nest: NestPlan::new(nest) };
                Part::Loop(Box::new(inner.with(compiled)))
            }
            Work::For(inner) => Part::For(Box::new(inner.with(|item| Piece::new(item, kernels)))),
        };
        Piece { part, ins: item.ins, outs: item.outs, span: item.span }
    }
    /// Announces so many runs.
    pub fn expect(&self, runs: usize) {
        match &self.part {
            Part::Nest(tier, nest) => {
                let runs = nest.places().saturating_mul(runs);
                tier.expect_runs(nest.lanes, nest.steps.saturating_mul(runs), runs);
            }
            Part::Either(versions) => versions.expect(runs),
            Part::Loop(inner) => inner.nest.tier.expect(inner.nest.nest.lanes, inner.count.about().saturating_mul(runs)),
            Part::For(inner) => inner.items.iter().for_each(|p| p.expect(inner.count.about().saturating_mul(runs))),
            _ => {}
        }
    }
    /// Calls `visit` with this part, and with those of loops in it.
    pub fn each<'a>(&'a self, visit: &mut dyn FnMut(&'a Piece)) {
        visit(self);
        if let Part::For(inner) = &self.part {
            inner.items.iter().for_each(|p| p.each(visit));
        }
    }
    /// Its kernel.
    pub fn tier(&self) -> Option<&Tiered> {
        match &self.part {
            Part::Nest(tier, _) => Some(tier),
            Part::Either(versions) => Some(&versions.larger().0),
            Part::Loop(inner) => Some(&inner.nest.tier),
            _ => None,
        }
    }
}

impl Part {
    /// True where it may find that the law must run the loop.
    pub fn guards(&self) -> bool {
        matches!(self, Part::Guard(_) | Part::Slice(_)) || matches!(self, Part::Loop(inner) if inner.failed.is_some())
    }
    /// True where it may write some elements of its result alone.
    pub fn writes_some(&self) -> bool {
        let by_index = matches!(self, Part::Write(..) | Part::ByArrays(_, Some(_)) | Part::ByIntegers(_, Some(_)));
        by_index || matches!(self, Part::Add(_) | Part::Move(..) | Part::Turn(_))
    }
    /// As profiles show it.
    pub fn name(&self) -> &str {
        match self {
            Part::Nest(..) | Part::Either(..) => "kernel",
            Part::Move(..) | Part::Turn(_) => "move",
            Part::MatMul(_) => "matmul",
            Part::Read(_) | Part::Slice(_) | Part::ByArrays(_, None) | Part::ByIntegers(_, None) => "index",
            Part::Write(..) | Part::Add(_) | Part::ByArrays(_, Some(_)) | Part::ByIntegers(_, Some(_)) => "index_write",
            Part::Guard(_) | Part::Within(_) => "guard",
            Part::Loop(_) | Part::For(_) => "scan",
            Part::Call(op) | Part::Direct(_, op) => op.name(),
        }
    }
}
