//! Runs loops whose step is a list of kernels, moves, products and calls.

use super::before::Before;
use super::bound::{Bound, Halt, bytes_of};
use super::foot::Flow;
use super::held::{Held, make_room};
use super::memories::{Memories, Steady};
use super::plan::native;
use super::tier::{Engine, Tiered};
use crate::backend::cpu::{Operand, cells, copy, truth_at};
use crate::base::{Result, Span};
use crate::ir::op::Write;
use crate::ir::{EvalCx, Op, Scan, StateId};
use crate::kernel::Nest;
use crate::lower::Window;
use crate::lower::inner::{Count, Guard};
use crate::lower::mixed::{At, Item, MixedLoop, Place, Run, Work};
use crate::ops::direct::Direct;
use crate::ops::select::Selector;
use crate::scan::{kept, step};
use crate::types::{Array, DType};
use smallvec::SmallVec;
use std::cell::Cell;
use std::sync::Arc;

/// A loop whose step is a list, ready to run.
pub struct Mixed {
    plan: MixedLoop,
    pieces: Vec<Piece>,
    before: Before,
}

/// A part of a step: what runs it, and on what.
pub(super) struct Piece {
    pub part: Part,
    pub ins: Vec<Place>,
    pub outs: Vec<Place>,
    pub span: Span,
}

/// What runs a part.
pub(super) enum Part {
    Nest(Box<Tiered>, Box<Nest>),
    Move(Vec<Run>),
    MatMul([usize; 3]),
    Read(Selector),
    Write(Selector, Write),
    Direct(Direct, Op),
    Call(Op),
    Guard(Guard),
    Loop(Box<InnerLoop>),
    For(Box<InnerFor>),
}

/// A loop in a step that is one kernel.
pub(super) struct InnerLoop {
    pub scan: Arc<Scan>,
    pub tier: Tiered,
    pub nest: Nest,
    /// What the kernel reads and writes.
    pub operands: Vec<Place>,
    pub count: Count,
    /// Where it tells that it has stopped.
    pub stopped: Option<Place>,
}

/// A loop in a step whose own step is a list.
pub(super) struct InnerFor {
    pub scan: Arc<Scan>,
    pub level: usize,
    pub count: Count,
    pub parts: Vec<Piece>,
    pub writes: Vec<[Place; 2]>,
    pub stop: Option<Place>,
    pub step: Place,
}

impl Piece {
    fn new(item: Item, engine: Engine) -> Piece {
        let part = match item.work {
            Work::Nest(nest) => Part::Nest(Box::new(Tiered::new(nest.kernel.clone(), engine)), nest),
            Work::Move(runs) => Part::Move(runs),
            Work::MatMul(extents) => Part::MatMul(extents),
            Work::Read(selector) => Part::Read(selector),
            Work::Write(selector, mode) => Part::Write(selector, mode),
            Work::Direct(direct, op) => Part::Direct(direct, op),
            Work::Call(op, types) => Part::Call(native(&op, types.into(), engine)),
            Work::Guard(guard) => Part::Guard(guard),
            Work::Loop(inner) => {
                let tier = Tiered::new(inner.nest.kernel.clone(), engine);
                Part::Loop(Box::new(InnerLoop { scan: inner.scan, tier, nest: inner.nest, operands: inner.operands, count: inner.count, stopped: inner.stopped }))
            }
            Work::For(inner) => {
                let parts = inner.items.into_iter().map(|item| Piece::new(item, engine)).collect();
                let (scan, level, count) = (inner.scan, inner.level, inner.count);
                Part::For(Box::new(InnerFor { scan, level, count, parts, writes: inner.writes, stop: inner.stop, step: inner.step }))
            }
        };
        Piece { part, ins: item.ins, outs: item.outs, span: item.span }
    }
    /// Announces so many runs.
    fn expect(&self, runs: usize) {
        match &self.part {
            Part::Nest(tier, nest) => tier.expect(nest.lanes, (nest.steps * nest.places()).saturating_mul(runs)),
            Part::Loop(inner) => inner.tier.expect(inner.nest.lanes, inner.count.about().saturating_mul(runs)),
            Part::For(inner) => inner.parts.iter().for_each(|p| p.expect(inner.count.about().saturating_mul(runs))),
            _ => {}
        }
    }
    /// Calls `visit` with this part, and with those of loops in it.
    fn each<'a>(&'a self, visit: &mut dyn FnMut(&'a Piece)) {
        visit(self);
        if let Part::For(inner) = &self.part {
            inner.parts.iter().for_each(|p| p.each(visit));
        }
    }
    /// Its kernel.
    fn tier(&self) -> Option<&Tiered> {
        match &self.part {
            Part::Nest(tier, _) => Some(tier),
            Part::Loop(inner) => Some(&inner.tier),
            _ => None,
        }
    }
}

impl Part {
    /// As profiles show it.
    pub(super) fn name(&self) -> &str {
        match self {
            Part::Nest(..) => "kernel",
            Part::Move(_) => "move",
            Part::MatMul(_) => "matmul",
            Part::Read(_) => "index",
            Part::Write(..) => "index_write",
            Part::Guard(_) => "guard",
            Part::Loop(_) | Part::For(_) => "scan",
            Part::Call(op) | Part::Direct(_, op) => op.name(),
        }
    }
}

impl Mixed {
    /// Prepares a plan.
    pub fn new(scan: &Scan, mut plan: MixedLoop, engine: Engine) -> Mixed {
        let pieces = std::mem::take(&mut plan.items).into_iter().map(|item| Piece::new(item, engine)).collect();
        let before = Before::new(scan, &plan.before);
        Mixed { plan, pieces, before }
    }

    /// How the states are kept.
    pub fn windows(&self) -> &[Window] {
        &self.plan.windows
    }
    /// True where the list may find that it cannot do what the law does.
    pub fn guarded(&self) -> bool {
        self.all().iter().any(|p| matches!(p.part, Part::Guard(_)))
    }
    /// Parts, those of loops in the step too.
    fn all(&self) -> Vec<&Piece> {
        let mut all = vec![];
        self.pieces.iter().for_each(|p| p.each(&mut |p| all.push(p)));
        all
    }
    /// Instructions of the kernels, and as many more for each part.
    pub fn instructions(&self) -> usize {
        self.all().iter().map(|p| p.tier().map_or(10, |tier| 10 + tier.kernel().body.len())).sum()
    }
    /// Per state: a step writes over the row that it read.
    pub fn in_place(&self) -> &[bool] {
        &self.plan.in_place
    }
    /// The engines of the kernels, and the names of the ops that are called.
    pub fn describe(&self) -> (Vec<&'static str>, Vec<String>) {
        let all = self.all();
        let engines = all.iter().filter_map(|p| p.tier().map(|tier| tier.describe().0)).collect();
        let calls = all.iter().filter_map(|p| if let Part::Call(op) = &p.part { Some(op.name().to_string()) } else { None });
        (engines, calls.collect())
    }
    /// The loops in the step that are parts of the list: where the user wrote them, and what they are.
    pub fn inner(&self) -> Vec<(Span, &'static str)> {
        let what = |p: &Piece| match p.part {
            Part::Loop(_) => Some((p.span, "a kernel in the step of the loop around")),
            Part::For(_) => Some((p.span, "a list in the step of the loop around")),
            _ => None,
        };
        self.all().into_iter().filter_map(what).collect()
    }

    /// What a step copies without computing anything: rows that are written after the step's parts, and rows that are copied
    /// before a part of them is written. State or op, and bytes.
    pub fn copies(&self, scan: &Scan) -> Vec<(String, usize)> {
        let name = |id: StateId| scan.states[id].name.as_deref().unwrap_or("?").to_string();
        let rows = self.plan.writes.iter().map(|(id, _, place)| (name(*id), bytes_of(place)));
        let before = self.pieces.windows(2).filter(|pair| {
            matches!((&pair[0].part, &pair[1].part), (Part::Move(_), Part::Write(..))) && pair[0].outs[0].at == pair[1].outs[0].at
        });
        let copied = before.map(|pair| ("a row of which a part is written".to_string(), bytes_of(&pair[0].outs[0])));
        rows.chain(copied).collect()
    }

    /// Runs at most n steps on the states' memory, which is laid out for `room` of them and grows; how many ran, or `None` where a guard
    /// does not hold: nothing that was made counts then.
    ///
    /// # Errors
    /// What the ops report, with the step.
    pub fn run(
        &self,
        scan: &Scan,
        cx: &mut EvalCx,
        ins: &mut [Array],
        flow: &mut Flow,
        held: &mut [Held],
        [n, mut room]: [usize; 2],
    ) -> Result<Option<usize>> {
        let computed = self.before.run(scan, cx, ins).map_err(|e| step::in_step(e, scan, 0))?;
        let before: SmallVec<[Steady; 4]> = self.before.values(ins, &computed).map(|array| Steady::new(array.clone(), n)).collect();
        let mut arena = Array::zeros(DType::F64, &[self.plan.arena.div_ceil(8)]);
        self.pieces.iter().for_each(|p| p.expect(n));
        let (mut done, mut stopped) = (0, false);
        while done < n && !stopped {
            let end = kept::laid_out(scan, &Cell::new(done), || make_room(held, &self.plan.windows, &mut room, done, n))?;
            let end = end.min(flow.advance(scan, cx, ins, done, n)?);
            let memories = Memories::new(scan, &self.plan.windows, ins, &before, &flow.feed, cells(&mut arena), held);
            stopped = match self.segment(cx, &memories, &mut done, end) {
                Ok(stopped) => stopped,
                Err(Halt::Refused) => return Ok(None),
                Err(Halt::Failed(e)) => return Err(e),
            };
            drop(memories);
            flow.leave(cx, held, &self.plan.windows, [done, n])?;
        }
        Ok(Some(done))
    }

    /// Runs from step `done` up to step `end`, in memory that does not move; true where the loop has stopped.
    fn segment<'a>(&'a self, cx: &mut EvalCx, memories: &Memories<'a>, done: &mut usize, end: usize) -> std::result::Result<bool, Halt> {
        let (first, steps) = (*done, end - *done);
        let parts: SmallVec<[Bound; 4]> = self.pieces.iter().map(|p| Bound::new(p, memories, first, [steps, 1, 1])).collect();
        let at = |place: &Place| memories.place(place, first);
        let writes: SmallVec<[([Operand; 2], usize); 4]> = (self.plan.writes.iter())
            .map(|(id, offset, p)| ([at(p), memories.operand(&At::Row(*id, *offset), first)], bytes_of(p)))
            .collect();
        let stop = self.plan.stop.as_ref().map(|stop| (at(stop), stop.dtype));
        let (mut stopped, mut scratch) = (false, vec![]);
        while *done < end && !stopped {
            cx.check()?;
            memories.count(*done);
            let k = *done - first;
            let mut at = [k, 0, 0];
            for part in &parts {
                part.run(cx, &mut at, &mut scratch).map_err(|h| h.map(|e| step::in_step(e, memories.scan(), *done)))?;
            }
            for ([from, to], n) in &writes {
                copy(&from.after(k), &to.after(k), *n);
            }
            stopped = stop.is_some_and(|(at, dtype)| truth_at(&at.after(k), dtype));
            *done += 1;
        }
        Ok(stopped)
    }
}
