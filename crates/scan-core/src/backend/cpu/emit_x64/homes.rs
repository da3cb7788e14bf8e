//! What registers hold from step to step: carries, operands that all steps read at the same place, constants.

use super::alloc::{Emitter, Shape};
use super::select::{Birth, Class, Program, Val};
use crate::base::Id;
use crate::kernel::{Lane, MemId};

/// Where a carry is at the head of the time loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Home {
    Reg(u8),
    Slot(i64),
}

/// A carry of a copy, or what it reads before the first step and keeps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Carried {
    /// Its operand; none where it is a constant.
    pub mem: Option<MemId>,
    /// Which carry; none where it is only read.
    pub carry: Option<usize>,
    /// Its value in a step.
    pub now: usize,
    /// Its value in the next.
    pub next: usize,
    /// Where it is between them.
    pub home: Home,
}

/// What registers and the frame hold over all steps, besides the carries.
pub(super) struct Kept {
    /// Operands that are read before the first step.
    pub mems: u64,
    /// Registers hold them all. Else they are in the frame, aligned to whole vectors, which they need not be at home; one element for all
    /// lanes is as well where it is.
    pub all: bool,
    /// Constants that have registers.
    pub constants: Vec<Val>,
    /// Registers for carries and all that steps compute.
    pub room: usize,
}

/// Registers that instructions need for a moment: for constants, and masks of lanes.
const SPARE: usize = 3;

/// Chooses what is kept.
pub(super) fn kept(program: &Program, shape: Shape, registers: usize) -> Kept {
    let copies = |uniform: bool| if uniform { 1 } else { shape.copies };
    let held = program.values.iter().filter(|v| v.held(shape.held).is_some());
    let carried = program.carries.iter().map(|c| copies(program.values[c.now].uniform)).sum::<usize>();
    let side = super::order::side_by_side(program, shape.copies);
    let count = held.map(|v| copies(v.uniform)).sum::<usize>() + carried;
    let most = registers.saturating_sub(carried);
    let near = super::stagger::near(program, shape.copies, (most + carried).saturating_sub(SPARE));
    // Registers that copies need between the carries and what is kept.
    let step = near.map_or(0, |need| (need + SPARE).saturating_sub(carried));
    let all = count + super::order::need(program, side).max(step) <= registers;
    let rest = if all { registers - count } else { most };
    let mut constants = if program.carries.is_empty() { vec![] } else { super::order::constants(program, side, rest) };
    constants.truncate(rest.saturating_sub(step));
    let room = rest.saturating_sub(constants.len() + SPARE) + carried;
    let unit = program.mems.enumerate().take(64).filter(|(_, m)| m.lane == Lane::Unit).fold(0, |mask, (id, _)| mask | 1u64 << id.idx());
    Kept { mems: if all { shape.held } else { shape.held & unit }, all, constants, room }
}

impl Emitter<'_> {
    /// Carries that are used first get registers, as long as some remain for the step itself; then what is only read.
    pub(super) fn settle_homes(&mut self, all_held: bool) {
        for (carry, handed) in self.program.carries.iter().enumerate() {
            let copies = if self.program.values[handed.now].uniform { 1 } else { self.shape.copies };
            for copy in 0..copies {
                let (now, next) = (self.of(handed.now, copy), self.of(handed.next, copy));
                self.carried.push(Carried { mem: Some(handed.mem), carry: Some(carry), now, next, home: Home::Slot(0) });
            }
        }
        let room = (self.usable[0].count_ones() as usize).saturating_sub(6);
        let mut order: Vec<usize> = (0..self.carried.len()).filter(|&i| self.class(self.carried[i].now) == Class::Vector).collect();
        order.sort_by_key(|&i| self.next_use(self.carried[i].now));
        order.truncate(room);
        let (read, constants) = (self.settle_kept(), self.settle_constants());
        if all_held {
            order.extend(read);
        }
        order.extend(constants);
        let mut free: Vec<u8> = (0..32).filter(|r| self.usable[0] >> r & 1 == 1).rev().collect();
        for i in order {
            let reg = free.pop().unwrap_or(0);
            self.carried[i].home = Home::Reg(reg);
            self.homes |= 1 << reg;
            let next = self.carried[i].next;
            self.preferred[next] = self.preferred[next].or(Some(reg));
        }
        for i in 0..self.carried.len() {
            if self.carried[i].home == Home::Slot(0) {
                self.carried[i].home = Home::Slot(self.new_slot());
            }
            let now = self.carried[i].now;
            match self.carried[i].home {
                Home::Reg(reg) if !self.dead(now) => self.hold(now, reg),
                Home::Reg(_) => {}
                Home::Slot(slot) => self.virtuals[now].slot = Some(slot),
            }
        }
    }
    /// Adds constants to the carries.
    fn settle_constants(&mut self) -> std::ops::Range<usize> {
        let first = self.carried.len();
        let constant = |v: &usize| self.kept[*v] && matches!(self.birth(*v), Birth::Const(_));
        let found: Vec<usize> = (0..self.kept.len()).filter(constant).collect();
        self.carried.extend(found.into_iter().map(|v| Carried { mem: None, carry: None, now: v, next: v, home: Home::Slot(0) }));
        first..self.carried.len()
    }
    /// Adds what is only read to the carries.
    fn settle_kept(&mut self) -> std::ops::Range<usize> {
        let first = self.carried.len();
        for v in 0..self.kept.len() {
            if let Some(mem) = self.program.values[self.virtuals[v].val].held(self.shape.held) {
                self.carried.push(Carried { mem: Some(mem), carry: None, now: v, next: v, home: Home::Slot(0) });
            }
        }
        first..self.carried.len()
    }
    /// Moves a value that the next step sees to its home, if nothing else is there: at the end of the step many would have to go at once.
    pub(super) fn go_home(&mut self, v: usize) {
        let (home, now) = (self.preferred_of(v), self.virtuals[v].reg);
        if let (Some(home), Some(from), Class::Vector) = (home, now, self.class(v))
            && self.is_free(home)
        {
            self.move_register(v, from, home);
            self.rehome(v, home);
        }
    }
}
