//! A list with its operands, for steps in which no memory moves.

use super::bound::{Bound, Halt};
use super::memories::Memories;
use super::mixed::Mixed;
use crate::backend::cpu::{Operand, copy, truth_at};
use crate::ir::EvalCx;
use crate::ops::softmax::Scratch;
use crate::types::DType;
use smallvec::SmallVec;

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
    pub fn step(&mut self, cx: &mut EvalCx, step: usize, scratch: &mut Scratch) -> Result<bool, Halt> {
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
