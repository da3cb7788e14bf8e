//! The function around a step: blocks of lanes, and in each the loop over time.

use super::alloc::{Emitter, Item, Shape};
use super::asm::{Asm, Place, mask, vector};
use super::homes::{Carried, Home};
use super::memory::{ENTRY, POOL, Pointer, STEP, STEPS, TABLE, TEMP, offset};
use super::select::{Birth, Class, Program};
use super::stagger::Turn;
use crate::backend::cpu::Refusal;
use crate::backend::cpu::isa::Isa;
use crate::base::Id;
use crate::kernel::{Lane, MemId};
use iced_x86::{Code, Register};

/// What the function is given.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// Pointer and stride of each operand, then the place of each uniform carry's last value. The function moves the pointers of
    /// operands with lanes behind the lanes that it has done.
    pub table: *mut [*mut u8; 2],
    /// Per operand: bytes from one place to the next, for code of places.
    pub moves: *const isize,
    /// Blocks to do, or places.
    pub blocks: usize,
    /// Steps of each.
    pub steps: usize,
    /// The number of the first step.
    pub first: i64,
    /// A bit for each lane of the last vector.
    pub mask: u64,
    /// The same as sign bits of 64 bits.
    pub wide: [i64; 4],
    /// The same as sign bits of 32 bits.
    pub narrow: [i32; 8],
}

/// Places in the frame.
const OLD_STACK: i64 = 0;
const TASK: i64 = 8;
const BLOCKS: i64 = 16;
const COUNT: i64 = 24;
const FIRST: i64 = 32;
/// A bit for each lane of the last vector, as the task has them.
pub(super) const TAIL: i64 = 40;
/// Bytes that the system adds to the stack at a time.
const PAGE: i64 = 4096;
/// Most bytes of a frame.
const FRAME: i64 = 128 * 1024;

const SAVED: [Register; 6] = [Register::RBX, Register::RBP, Register::R12, Register::R13, Register::R14, Register::R15];

/// What a step does, some copies side by side so that their chains of dependencies overlap; and how much of it is done before the
/// first block.
pub(super) fn items(program: &Program, shape: Shape, room: usize) -> (Vec<(Item, usize)>, usize) {
    let fixed = if shape.hoists { super::order::fixed(program) } else { vec![false; program.operations.len()] };
    let mut items: Vec<(Item, usize)> = (0..fixed.len()).filter(|&o| fixed[o]).map(|o| (Item::Operation(o), 0)).collect();
    let ahead = items.len();
    let once = |o: usize| program.values[program.operations[o].dst].uniform;
    let uniform = |s: usize| program.mems[program.stores[s].0].lane == Lane::Uniform;
    for (operations, copy) in turns(program, shape, room) {
        if operations.is_empty() {
            // What differs between lanes can go at once: lanes do not see each other.
            items.extend((0..program.stores.len()).filter(|&s| !uniform(s)).map(|s| (Item::Store(s), copy)));
        }
        let (begins, ends) = (operations.start, operations.end);
        let (enters, leaves) = (copy == 0 && begins < ends, copy + 1 == shape.copies && begins < ends);
        let skips = || program.skips.iter().enumerate();
        items.extend(skips().filter(|(_, s)| enters && s.range.start == begins).map(|(k, _)| (Item::Enter(k), 0)));
        let mine = operations.filter(|&o| !fixed[o] && (copy == 0 || !once(o)));
        items.extend(mine.map(|o| (Item::Operation(o), copy)));
        items.extend(skips().rev().filter(|(_, s)| leaves && s.range.end == ends).map(|(k, _)| (Item::Leave(k), 0)));
    }
    items.extend((0..program.stores.len()).filter(|&s| uniform(s)).map(|s| (Item::Store(s), 0)));
    (items, ahead)
}

/// The order of a step's operations and stores.
fn turns(program: &Program, shape: Shape, room: usize) -> Vec<Turn> {
    let staggered = super::order::waits(program).then(|| super::stagger::turns(program, shape.copies, room));
    if let Some(turns) = staggered.flatten() {
        return turns;
    }
    let bundles = super::order::bundles(program);
    let size = super::order::side_by_side(program, shape.copies);
    let mut turns = vec![];
    for first in (0..shape.copies).step_by(size) {
        let copies = first..shape.copies.min(first + size);
        turns.extend(bundles.iter().flat_map(|b| copies.clone().map(|copy| (b.clone(), copy))));
        turns.extend(copies.map(|copy| (0..0, copy)));
    }
    turns
}

/// The code of a function that takes a `Task` by the calling convention of System V.
pub(super) fn function(program: &Program, shape: Shape) -> Result<Vec<u8>, Refusal> {
    let mut e = Emitter::new(program, shape);
    e.enter();
    e.compute_ahead();
    let block = e.asm.here();
    e.begin_block();
    e.asm.align(32);
    let step = e.asm.here();
    for at in e.ahead..e.items.len() {
        e.item(at);
    }
    e.advance(e.items.len());
    e.hand_over();
    e.next_step(step);
    e.end_block(block);
    let frame = e.frame;
    e.leave();
    if frame > FRAME {
        return Err(Refusal(format!("{frame} bytes of values that no register holds")));
    }
    let mut code = prologue(program.isa, frame)?;
    code.extend(e.asm.finish()?);
    Ok(code)
}

fn prologue(isa: Isa, frame: i64) -> Result<Vec<u8>, Refusal> {
    let mut asm = Asm::new(isa);
    SAVED.iter().for_each(|&r| asm.one(Code::Push_r64, r));
    asm.two(Code::Mov_r64_rm64, TEMP, Register::RSP);
    asm.number(Code::Sub_rm64_imm32, Register::RSP, frame as u64);
    asm.number(Code::And_rm64_imm8, Register::RSP, -64i64 as u64);
    for page in (0..frame / PAGE).rev() {
        asm.put(Code::Mov_rm64_r64, Place::at(Register::RSP, page * PAGE), TEMP);
    }
    asm.put(Code::Mov_rm64_r64, Place::at(Register::RSP, OLD_STACK), TEMP);
    asm.put(Code::Mov_rm64_r64, Place::at(Register::RSP, TASK), Register::RDI);
    asm.align(64);
    asm.finish()
}

fn task(field: usize) -> Place {
    Place::at(Register::RDI, field as i64)
}

fn frame(place: i64) -> Place {
    Place::at(Register::RSP, place)
}

impl Emitter<'_> {
    /// Before the first block.
    fn enter(&mut self) {
        let asm = &mut self.asm;
        asm.fetch(Code::Mov_r64_rm64, TABLE, task(std::mem::offset_of!(Task, table)));
        asm.number(Code::Mov_r64_imm64, POOL, self.program.pool.as_ptr().addr() as u64);
        for (to, from) in [
            (BLOCKS, std::mem::offset_of!(Task, blocks)),
            (COUNT, std::mem::offset_of!(Task, steps)),
            (FIRST, std::mem::offset_of!(Task, first)),
        ] {
            asm.fetch(Code::Mov_r64_rm64, TEMP, task(from));
            asm.put(Code::Mov_rm64_r64, frame(to), TEMP);
        }
        if self.shape.masked {
            self.asm.fetch(Code::Mov_r64_rm64, TEMP, task(std::mem::offset_of!(Task, mask)));
            self.asm.put(Code::Mov_rm64_r64, frame(TAIL), TEMP);
        }
        self.load_tail_masks();
    }
    /// Brings the masks of the last copy to their registers.
    pub(super) fn load_tail_masks(&mut self) {
        if !self.shape.masked {
            return;
        }
        self.asm.fetch(Code::Mov_r64_rm64, TEMP, frame(TASK));
        let at = |field: usize| Place::at(TEMP, field as i64);
        if self.program.isa == Isa::Avx512 {
            return self.asm.fetch(Code::VEX_Kmovw_kr_km16, mask(1), at(std::mem::offset_of!(Task, mask)));
        }
        let (wide, narrow) = (at(std::mem::offset_of!(Task, wide)), at(std::mem::offset_of!(Task, narrow)));
        if self.program.width == 4 {
            self.asm.fetch(Code::VEX_Vmovupd_ymm_ymmm256, vector(15, 32), wide);
            self.asm.fetch(Code::VEX_Vmovupd_xmm_xmmm128, vector(14, 16), narrow);
        } else {
            self.asm.fetch(Code::VEX_Vmovupd_ymm_ymmm256, vector(15, 32), narrow);
        }
    }
    fn entry(&self, entry: usize) -> Place {
        Place::at(TABLE, ENTRY * entry as i64)
    }
    fn stride(&self, entry: usize) -> Place {
        Place::at(TABLE, ENTRY * entry as i64 + 8)
    }
    /// Computes what all blocks share.
    fn compute_ahead(&mut self) {
        if self.ahead == 0 {
            return;
        }
        self.load_pointers();
        for at in 0..self.ahead {
            self.item(at);
        }
        self.advance(self.ahead);
        self.keep_for_blocks();
    }
    /// Carries, pointers and counters of a block.
    fn begin_block(&mut self) {
        for carried in self.carried.clone() {
            self.load_carry(carried);
        }
        self.load_pointers();
        self.asm.fetch(Code::Mov_r64_rm64, STEPS, frame(COUNT));
    }
    fn load_pointers(&mut self) {
        for mem in self.program.mems.ids() {
            match self.pointers.of[mem] {
                Pointer::None => {}
                Pointer::Reg(r) => self.asm.fetch(Code::Mov_r64_rm64, r, self.entry(mem.idx())),
                Pointer::Slot(slot) => {
                    self.asm.fetch(Code::Mov_r64_rm64, TEMP, self.entry(mem.idx()));
                    self.asm.put(Code::Mov_rm64_r64, frame(slot), TEMP);
                }
            }
        }
        if self.numbered() {
            self.asm.fetch(Code::Mov_r64_rm64, STEP, frame(FIRST));
        }
    }
    fn numbered(&self) -> bool {
        self.program.operations.iter().any(|o| o.form == super::select::Form::Step)
    }
    /// Registers that are nobody's home: free between the steps.
    fn spare(&self) -> [u8; 2] {
        let free = self.usable[0] & !self.homes;
        let top = 31 - free.leading_zeros() as u8;
        [top, 31 - (free & !(1 << top)).leading_zeros() as u8]
    }
    fn carry_place(&mut self, carried: Carried, mem: MemId, out: bool) -> (Place, usize) {
        let copy = self.virtuals[carried.now].copy;
        let aside = carried.carry.filter(|_| out && self.program.mems[mem].lane == Lane::Uniform);
        let (other, bytes) = self.program.found_by(mem);
        let entry = aside.map_or(other.idx(), |carry| self.program.mems.len() + carry);
        self.asm.fetch(Code::Mov_r64_rm64, TEMP, self.entry(entry));
        (Place::at(TEMP, bytes + offset(self.program, mem, copy)), copy)
    }
    fn load_carry(&mut self, carried: Carried) {
        let Some(mem) = carried.mem else { return self.load_kept_constant(carried) };
        let (place, copy) = self.carry_place(carried, mem, false);
        let spare = self.spare();
        match carried.home {
            Home::Reg(reg) => self.load_at(mem, place, copy, reg, Some(spare[0])),
            Home::Slot(slot) => {
                let reg = if self.is_mask(mem) { 2 } else { spare[1] };
                self.load_at(mem, place, copy, reg, Some(spare[0]));
                self.save(carried.now, reg, slot);
            }
        }
    }
    fn load_kept_constant(&mut self, carried: Carried) {
        match (carried.home, self.birth(carried.now)) {
            (Home::Reg(reg), Birth::Const(offset)) => self.load_constant(carried.now, offset, reg),
            _ => self.asm.fail("a constant is kept in a register"),
        }
    }
    fn store_carry(&mut self, carried: Carried) {
        let Some(mem) = carried.mem else { return };
        let (place, copy) = self.carry_place(carried, mem, true);
        let spare = self.spare();
        match carried.home {
            Home::Reg(reg) => self.store_at(mem, place, copy, reg, Some(spare[0]), false),
            Home::Slot(slot) => {
                let reg = if self.is_mask(mem) { 2 } else { spare[1] };
                self.restore(carried.now, reg, slot);
                self.store_at(mem, place, copy, reg, Some(spare[0]), false);
            }
        }
    }

    /// Moves pointers and goes back for the next step.
    fn next_step(&mut self, step: u64) {
        for mem in self.program.mems.ids() {
            match self.pointers.of[mem] {
                Pointer::None => {}
                Pointer::Reg(r) => self.asm.fetch(Code::Add_r64_rm64, r, self.stride(mem.idx())),
                Pointer::Slot(slot) => {
                    self.asm.fetch(Code::Mov_r64_rm64, TEMP, self.stride(mem.idx()));
                    self.asm.put(Code::Add_rm64_r64, frame(slot), TEMP);
                }
            }
        }
        if self.numbered() {
            self.asm.number(Code::Add_rm64_imm8, STEP, 1);
        }
        self.asm.number(Code::Sub_rm64_imm8, STEPS, 1);
        self.asm.jump(Code::Jne_rel32_64, step);
    }
    /// Writes carries back and goes back for the next block.
    fn end_block(&mut self, block: u64) {
        for carried in self.carried.clone().into_iter().filter(|c| c.carry.is_some()) {
            self.store_carry(carried);
        }
        if self.shape.places {
            self.next_place();
        } else {
            for (mem, m) in self.program.mems.enumerate().filter(|(_, m)| m.lane.varies() && m.beside.is_none()) {
                let bytes = m.lane.elements() * (self.shape.copies * self.program.width * m.dtype.size()) as isize;
                self.asm.add_to_place(self.entry(mem.idx()), bytes as i32);
            }
        }
        self.asm.add_to_place(frame(BLOCKS), -1);
        self.asm.jump(Code::Jne_rel32_64, block);
    }
    /// Moves all operands to the next place; the register of the steps is free between blocks.
    fn next_place(&mut self) {
        self.asm.fetch(Code::Mov_r64_rm64, TEMP, frame(TASK));
        self.asm.fetch(Code::Mov_r64_rm64, STEPS, Place::at(TEMP, std::mem::offset_of!(Task, moves) as i64));
        for mem in self.program.mems.ids().filter(|&m| self.program.mems[m].beside.is_none()) {
            self.asm.fetch(Code::Mov_r64_rm64, TEMP, Place::at(STEPS, 8 * mem.idx() as i64));
            self.asm.put(Code::Add_rm64_r64, self.entry(mem.idx()), TEMP);
        }
    }
    fn leave(&mut self) {
        if self.shape.streams {
            // What went past the caches is seen by other threads before what follows.
            self.asm.plain(Code::Sfence);
        }
        self.asm.plain(Code::VEX_Vzeroupper);
        self.asm.fetch(Code::Mov_r64_rm64, Register::RSP, frame(OLD_STACK));
        SAVED.iter().rev().for_each(|&r| self.asm.one(Code::Pop_r64, r));
        self.asm.plain(Code::Retnq);
    }

    /// Brings the values of the next step to the homes of their carries.
    fn hand_over(&mut self) {
        let spare = self.clear_spares();
        self.hand_over_masks();
        let mut moves: Vec<Move> = vec![];
        for c in self.carried.clone() {
            let stays = c.carry.is_none() && matches!(c.home, Home::Slot(_));
            if self.class(c.next) == Class::Mask || stays {
                continue;
            }
            let this = &self.virtuals[c.next];
            let from = match (this.reg, this.slot, self.birth(c.next)) {
                (Some(reg), ..) => Source::Reg(reg),
                (None, Some(slot), _) => Source::Slot(slot),
                (None, None, Birth::Const(_)) => Source::Pool,
                _ => return self.asm.fail("a carry's next value is nowhere"),
            };
            if !from.is(c.home) {
                moves.push(Move { from, to: c.home, v: c.next });
            }
        }
        while !moves.is_empty() {
            let ready = moves.iter().position(|m| !moves.iter().any(|other| other.from.is(m.to)));
            match ready {
                Some(i) => {
                    let m = moves.swap_remove(i);
                    self.perform(m, spare[0]);
                }
                None => {
                    // A circle: one value steps aside.
                    let aside = Move { to: Home::Reg(spare[1]), ..moves[0] };
                    self.perform(aside, spare[0]);
                    let from = aside.from;
                    moves.iter_mut().filter(|m| m.from == from).for_each(|m| m.from = Source::Reg(spare[1]));
                }
            }
        }
    }
    /// Two registers that are nobody's home, emptied where moves might need them.
    fn clear_spares(&mut self) -> [u8; 2] {
        let spare = self.spare();
        let moving = self.carried.iter().any(|c| Some(c.home) != self.virtuals[c.next].reg.map(Home::Reg));
        if moving {
            spare.iter().for_each(|&r| self.empty(r));
        }
        spare
    }
    fn perform(&mut self, m: Move, spare: u8) {
        match (m.from, m.to) {
            (Source::Reg(from), Home::Reg(to)) => self.move_register(m.v, from, to),
            (Source::Reg(from), Home::Slot(to)) => self.save(m.v, from, to),
            (Source::Slot(from), Home::Reg(to)) => self.restore(m.v, to, from),
            (Source::Slot(from), Home::Slot(to)) => {
                self.restore(m.v, spare, from);
                self.save(m.v, spare, to);
            }
            (Source::Pool, Home::Reg(to)) => self.fill(m.v, to),
            (Source::Pool, Home::Slot(to)) => {
                self.fill(m.v, spare);
                self.save(m.v, spare, to);
            }
        }
    }
    /// Masks are at home in the frame; they go there by way of other slots, since one may be the next value of another.
    fn hand_over_masks(&mut self) {
        let masks: Vec<Carried> = self.carried.iter().copied().filter(|c| self.class(c.next) == Class::Mask).collect();
        let aside: Vec<i64> = masks.iter().map(|_| self.new_slot()).collect();
        for (c, &slot) in masks.iter().zip(&aside) {
            let Some(reg) = self.virtuals[c.next].reg else {
                let Some(from) = self.virtuals[c.next].slot else { return self.asm.fail("a carry's next mask is nowhere") };
                self.copy_word(from, slot);
                continue;
            };
            self.save(c.next, reg, slot);
        }
        for (c, &slot) in masks.iter().zip(&aside) {
            if let Home::Slot(home) = c.home {
                self.copy_word(slot, home);
            }
        }
    }
    fn copy_word(&mut self, from: i64, to: i64) {
        self.asm.fetch(Code::Mov_r64_rm64, TEMP, frame(from));
        self.asm.put(Code::Mov_rm64_r64, frame(to), TEMP);
    }
}

/// Where the next value of a carry is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Source {
    Reg(u8),
    Slot(i64),
    Pool,
}

impl Source {
    fn is(self, home: Home) -> bool {
        match home {
            Home::Reg(r) => self == Source::Reg(r),
            Home::Slot(s) => self == Source::Slot(s),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Move {
    from: Source,
    to: Home,
    v: usize,
}
