//! Runs loops whose step is a list of kernels, moves, products and calls.

use super::before::Before;
use super::bound::Bound;
use super::halt::Halt;
use super::head::Feed;
use super::held::Held;
use super::kernels::Kernels;
use super::laid::Laid;
use super::memories::{HeldRows, Memories, Steady};
use super::nested::WITHIN;
use super::piece::{Part, Piece};
use super::there::{self, There};
use super::tier::Engine;
use crate::backend::cpu::{Operand, cells, copy};
use crate::backend::gpu::DeviceRef;
use crate::base::{Diagnostic, Result, Span};
use crate::ir::{EvalCx, Scan, StateId};
use crate::ops::softmax::Scratch;
use crate::plan::list::{At, Place};
use crate::plan::{StepList, Window};
use crate::scan::step;
use crate::types::{Array, DType};
use smallvec::SmallVec;
use std::sync::OnceLock;

/// Steps of which it is not known how many there will be.
const MANY: usize = 1 << 30;

/// A loop whose step is a list, ready to run.
pub struct Mixed {
    pub(super) plan: StepList,
    pub(super) pieces: Vec<Piece>,
    pub(super) before: Before,
    /// The list may find that it cannot do what the law does.
    pub guarded: bool,
    device: Option<DeviceRef>,
    /// The parts on the device; `None` where it does not run there.
    there: OnceLock<Option<There>>,
}

impl Mixed {
    /// Prepares a plan.
    pub fn new(scan: &Scan, mut plan: StepList, kernels: &Kernels) -> Mixed {
        // Tests interpret the plan.
        let items = if cfg!(any(test, feature = "testing")) { plan.items.clone() } else { std::mem::take(&mut plan.items) };
        let pieces: Vec<Piece> = items.into_iter().map(|item| Piece::new(item, kernels)).collect();
        let mut guarded = plan.eager;
        pieces.iter().for_each(|p| p.each(&mut |p| guarded |= p.part.guards()));
        let before = Before::new(scan, &plan.before);
        let device = if let Engine::Device(device) = kernels.planner.engine { Some(device) } else { None };
        Mixed { plan, pieces, before, guarded, device, there: OnceLock::new() }
    }

    /// Its parts on the device, where it is to run there and one of them has a launch.
    ///
    /// # Errors
    /// `E0522` where the device lacks a dtype.
    pub fn there(&self) -> Result<Option<&There>> {
        let Some(device) = self.device.filter(|_| !self.has_loops()) else { return Ok(None) };
        if let Some(there) = self.there.get() {
            return Ok(there.as_ref());
        }
        let made = There::new(device, &self.plan, &self.pieces)?;
        Ok(self.there.get_or_init(|| made).as_ref())
    }
    fn has_loops(&self) -> bool {
        self.pieces.iter().any(|p| matches!(p.part, Part::Loop(_) | Part::For(_)))
    }
    /// Why it runs on the host though a device was asked for.
    pub fn why_here(&self) -> Option<String> {
        let device = self.device?.0.name();
        let why = if self.has_loops() { "a step that holds a loop is walked by it" } else { "no part of the step has a kernel for it" };
        Some(format!("on the host, not on {device}: {why}"))
    }
    /// On a device: its name, the parts that run on the host with the reason, and the bytes that crossed in the last call, to the device and
    /// back.
    pub fn placed(&self) -> Option<(&'static str, Vec<String>, [u64; 2])> {
        let there = self.there.get()?.as_ref()?;
        let here = self.pieces.iter().zip(&there.parts).filter_map(|(piece, place)| match place {
            there::Part::Here { why, .. } => Some(format!("`{}` runs on the host: {why}", piece.part.name())),
            there::Part::There(_) => None,
        });
        let mut here: Vec<String> = here.collect();
        here.sort();
        here.dedup();
        Some((there.name(), here, there.crossed()))
    }

    /// True where a loop in the step is no part of it, but called.
    pub fn calls_loops(&self) -> bool {
        self.plan.calls_loops()
    }
    /// How the states are kept.
    pub fn windows(&self) -> &[Window] {
        &self.plan.windows
    }
    /// True where an error may be of what no step needs: the law tells.
    pub fn left_to_law(&self, e: &Diagnostic) -> bool {
        self.plan.eager && e.of_values()
    }
    /// True where a loop in the step runs as often as an integer says, but not by these parts, where it runs not at all.
    pub fn counts(&self) -> bool {
        self.all().iter().any(|p| matches!(p.part, Part::Guard([least, _]) if least > 0))
    }
    /// True where it reads slices that begin at computed places: not by these parts, where one of them reaches beyond its array.
    pub fn slices(&self) -> bool {
        self.all().iter().any(|p| matches!(p.part, Part::Slice(_)))
    }
    /// Parts, those of loops in the step too.
    fn all(&self) -> Vec<&Piece> {
        let mut all = vec![];
        self.pieces.iter().for_each(|p| p.each(&mut |p| all.push(p)));
        all
    }
    /// Instructions of the kernels, and as many more for each part.
    pub fn instructions(&self) -> usize {
        self.all().iter().map(|p| p.tier().map_or(10, |tier| 10 + tier.size())).sum()
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
        let mut found = vec![];
        for piece in self.all() {
            match &piece.part {
                Part::Loop(inner) => {
                    found.push((piece.span, "a kernel in the step of the loop around"));
                    found.extend(inner.loops.iter().map(|&span| (span, WITHIN)));
                }
                Part::For(_) => found.push((piece.span, "a list in the step of the loop around")),
                _ => {}
            }
        }
        found
    }

    /// What a step copies without computing anything: rows that are written after the step's parts, rows that are copied before a part
    /// of them is written, and those that loops in the step begin with. State or op, and bytes.
    pub fn copies(&self, scan: &Scan) -> Vec<(String, usize)> {
        let name = |id: StateId| scan.states[id].name.as_deref().unwrap_or("?").to_string();
        let rows = self.plan.writes.iter().map(|(id, _, place)| (name(*id), place.bytes()));
        let before = self.pieces.windows(2).filter(|pair| {
            matches!(&pair[0].part, Part::Move(..) | Part::Turn(_))
                && pair[1].part.writes_some()
                && pair[0].outs[0].at == pair[1].outs[0].at
        });
        let copied = before.map(|pair| ("a row of which a part is written".to_string(), pair[0].outs[0].bytes()));
        let begins = |k: usize| {
            let at = self.pieces[k].outs.first()?.at;
            let user = self.pieces[k + 1..].iter().find(|p| p.outs.iter().any(|out| out.at == at))?;
            let moved = match &self.pieces[k].part {
                Part::Move(runs, _) => runs.iter().any(|run| run.input.is_some()),
                part => matches!(part, Part::Turn(_)),
            };
            (moved && matches!(user.part, Part::Loop(_) | Part::For(_))).then(|| self.pieces[k].outs[0].bytes())
        };
        let begun = (0..self.pieces.len()).filter_map(begins).map(|bytes| ("what a loop in the step begins with".to_string(), bytes));
        rows.chain(copied).chain(begun).collect()
    }

    /// The values that all of many steps read.
    pub fn steady(&self, ins: &[Array], computed: &[Array]) -> SmallVec<[Steady; 4]> {
        self.pieces.iter().for_each(|p| p.expect(MANY));
        self.before.values(ins, computed).map(|array| Steady::new(array.clone(), MANY)).collect()
    }
    /// Memory for a step.
    pub fn arena(&self) -> Array {
        Array::zeros(DType::F64, &[self.plan.memory().div_ceil(8)])
    }
    /// Runs one step of a loop that is paused after each: of its inputs, the values that all steps read, memory for a step, and where rows are.
    ///
    /// # Errors
    /// What the ops report, with the step.
    pub fn one(
        &self,
        cx: &mut EvalCx,
        (scan, ins, before, arena, feed): (&Scan, &[Array], &[Steady], &mut Array, &Feed),
        held: &mut [Held],
        step: usize,
    ) -> Result<()> {
        cx.check()?;
        let rows = HeldRows::new(held);
        let memories = Memories::new(scan, &self.plan, ins, before, feed, cells(arena), &rows);
        memories.count(step);
        // One part after the other, so that no memory is taken for all of them.
        let mut run = |piece| Bound::new(piece, &memories, step, [1; 3]).run(cx, &mut [0; 3], &mut Scratch::default());
        match self.pieces.iter().try_for_each(|piece| run(piece).map(drop)) {
            Err(Halt::Failed(e)) => return Err(step::in_step(e, scan.name.as_deref(), step)),
            Err(Halt::Refused) => return Err(Diagnostic::internal("a guard in a list without any")),
            Ok(()) => {}
        }
        self.writes(&memories, step).for_each(|([from, to], n)| copy(&from, &to, n));
        Ok(())
    }
    /// What a step writes when all of its parts have run: from where, to where, and how many bytes, as they are at a step.
    pub(super) fn writes<'m, 'a>(&'m self, memories: &'m Memories<'a>, step: usize) -> impl Iterator<Item = ([Operand<'a>; 2], usize)> {
        let row = move |(id, offset, p): &'m (StateId, usize, Place)| {
            ([memories.place(p, step), memories.operand(&At::Row(*id, *offset), step)], p.bytes())
        };
        self.plan.writes.iter().map(row)
    }

    /// Runs from step `done` up to step `end` on a device, but for parts that have no launch; true where the loop has stopped.
    pub fn segment_there(
        &self,
        cx: &mut EvalCx,
        there: &There,
        laid: &mut Option<Laid>,
        memories: &Memories,
        done: &mut usize,
        end: usize,
    ) -> std::result::Result<bool, Halt> {
        let (first, steps) = (*done, end - *done);
        let (memories, here) = (&memories.there(), memories.here());
        let bind = |(piece, place)| match place {
            &there::Part::There(_) => None,
            there::Part::Here { .. } => Some(Bound::new(piece, &here, first, [steps, 1, 1])),
        };
        let bound: Vec<Option<Bound>> = self.pieces.iter().zip(&there.parts).map(bind).collect();
        let mut scratch = Scratch::default();
        let mut here = |cx: &mut EvalCx, part: usize, k: usize| match &bound[part] {
            Some(bound) => bound.run(cx, &mut [k, 0, 0], &mut scratch),
            None => Ok(()),
        };
        let ran = there.segment(cx, laid, (&self.plan, &self.pieces, memories), done, end, &mut here);
        ran.map_err(|h| h.map(|e| step::in_step(e, memories.scan().name.as_deref(), *done)))
    }
}
