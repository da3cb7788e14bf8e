//! A list that has begun: what all its steps read; with its operands, for steps in which no memory moves.

use super::bound::Bound;
use super::halt::Halt;
use super::head::Feed;
use super::home::Home;
use super::memories::{HeldRows, Memories, Steady};
use super::mixed::Mixed;
use super::there::There;
use crate::backend::cpu::{Operand, cells, copy, truth_at};
use crate::base::Result;
use crate::ir::{EvalCx, Scan};
use crate::ops::softmax::Scratch;
use crate::scan::step::in_step;
use crate::types::{Array, DType};
use smallvec::SmallVec;

/// A list with the values that all its steps read, and its memory.
pub struct Begun<'a> {
    list: &'a Mixed,
    before: SmallVec<[Steady; 4]>,
    arena: Array,
}

impl<'a> Begun<'a> {
    /// What a list needs for n steps, of which so many are its own, the first of them `step`.
    ///
    /// # Errors
    /// What the ops report.
    pub fn new(list: &'a Mixed, scan: &Scan, cx: &mut EvalCx, ins: &[Array], [n, own, step]: [usize; 3]) -> Result<Begun<'a>> {
        let computed = list.before.run(scan, cx, ins).map_err(|e| in_step(e, scan.name.as_deref(), step))?;
        let there = list.there()?;
        if there.is_none() {
            list.pieces.iter().for_each(|p| p.expect(own));
        }
        let home = Home(there.map(There::device));
        let before = list.before.values(ins, &computed).map(|x| Ok(Steady::new(home.sent(x)?, n))).collect::<Result<_>>()?;
        Ok(Begun { list, before, arena: list.arena() })
    }

    /// The memory of a segment.
    pub fn memories<'s>(&'s mut self, scan: &'s Scan, ins: &'s [Array], feed: &'s Feed<'s>, rows: &'s HeldRows<'s>) -> Memories<'s> {
        let Begun { list, before, arena } = self;
        Memories::new(scan, &list.plan, ins, before, feed, cells(arena), rows)
    }

    /// Its steps from one on.
    pub fn segment<'s>(
        &'s mut self,
        scan: &'s Scan,
        ins: &'s [Array],
        feed: &'s Feed<'s>,
        rows: &'s HeldRows<'s>,
        [first, steps]: [usize; 2],
    ) -> Segment<'s> {
        let list = self.list;
        Segment::new(list, self.memories(scan, ins, feed, rows), first, steps)
    }
}

/// A list with all operands, from a step on, in memory that does not move.
pub struct Segment<'a> {
    list: &'a Mixed,
    memories: Memories<'a>,
    /// As the steps take turns, each from its first step on that is run.
    turns: [Option<Turn<'a>>; 2],
    first: usize,
    steps: usize,
}

/// A step with all operands.
struct Turn<'a> {
    parts: SmallVec<[Bound<'a>; 4]>,
    writes: SmallVec<[([Operand<'a>; 2], usize); 4]>,
    stop: Option<(Operand<'a>, DType)>,
}

impl<'a> Turn<'a> {
    /// Of the steps from `first` on, so many.
    fn new(list: &'a Mixed, memories: &Memories<'a>, first: usize, steps: usize) -> Turn<'a> {
        let parts = list.pieces.iter().map(|p| Bound::new(p, memories, first, [steps, 1, 1])).collect();
        let stop = list.plan.stop.as_ref().map(|stop| (memories.place(stop, first), stop.dtype));
        Turn { parts, writes: list.writes(memories, first).collect(), stop }
    }
}

impl<'a> Segment<'a> {
    /// Of so many steps.
    pub fn new(list: &'a Mixed, memories: Memories<'a>, first: usize, steps: usize) -> Segment<'a> {
        Segment { list, memories, turns: [None, None], first, steps }
    }
    /// One step; true where the loop stops after it.
    pub fn step(&mut self, cx: &mut EvalCx, step: usize, scratch: &mut Scratch) -> std::result::Result<bool, Halt> {
        self.memories.count(step);
        let period = self.memories.period();
        let (at, k) = ((step - self.first) % period, (step - self.first) / period);
        let (list, memories) = (self.list, &self.memories);
        let bind = || Turn::new(list, memories, self.first + at, (self.steps - at).div_ceil(period));
        let turn = self.turns[at].get_or_insert_with(bind);
        let mut steps = [k, 0, 0];
        for part in &turn.parts {
            part.run(cx, &mut steps, scratch)?;
        }
        for ([from, to], n) in &turn.writes {
            copy(&from.after(k), &to.after(k), *n);
        }
        Ok(turn.stop.is_some_and(|(at, dtype)| truth_at(&at.after(k), dtype)))
    }
}
