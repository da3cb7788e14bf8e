//! Registers for the values of one step: a walk over the operations that always drops the value whose next use is farthest away.
//! Values that memory already has (constants, elements of operands, what was spilled before) are dropped at no cost.

use super::asm::{Asm, Masking, Place, Rm, mask, vector};
use super::codes as code;
use super::homes::{Carried, Home, kept};
use super::memory::Pointers;
use super::select::{Birth, Class, Program, Val};
use super::skips::Before;
use crate::backend::cpu::isa::Isa;
use crate::base::IdxVec;
use iced_x86::{Code, Register};

/// One version of a kernel's code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shape {
    /// Vectors of a block.
    pub copies: usize,
    /// The last of them has only some lanes.
    pub masked: bool,
    /// Stores go past the caches; the operands are aligned to whole vectors.
    pub streams: bool,
    /// There is one step: what is the same for all blocks is computed before the first of them.
    pub hoists: bool,
    /// Operands, a bit each, that all steps read at the same place and none writes: they are read before the first step.
    pub held: u64,
    /// The blocks are places, an operand being as far from one to the next as it is told.
    pub places: bool,
}

/// What is done, and for which copy.
#[derive(Clone, Copy, Debug)]
pub(super) enum Item {
    /// An operation.
    Operation(usize),
    /// A store.
    Store(usize),
    /// Before operations that may be jumped over, for all copies.
    Enter(usize),
    /// Behind them.
    Leave(usize),
}

/// A value of a copy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Virtual {
    pub val: Val,
    pub copy: usize,
    /// The register that holds it.
    pub reg: Option<u8>,
    /// The stack slot that holds it.
    pub slot: Option<i64>,
    /// Its uses that are still to come, in `Emitter::uses`.
    cursor: usize,
    end: usize,
}

/// Code under construction, with the state of registers at this point of it.
pub(super) struct Emitter<'a> {
    pub program: &'a Program,
    pub shape: Shape,
    pub asm: Asm,
    pub pointers: Pointers,
    pub virtuals: Vec<Virtual>,
    first: IdxVec<Val, usize>,
    uses: Vec<u32>,
    pub items: Vec<(Item, usize)>,
    /// Items before the first block.
    pub ahead: usize,
    /// Slots below this place of the frame are for all blocks.
    lasting: i64,
    /// The item being emitted.
    pub at: u32,
    pub holder: [[Option<usize>; 32]; 2],
    locked: [u32; 2],
    /// Registers of each class that values may have.
    pub usable: [u32; 2],
    pub carried: Vec<Carried>,
    /// Vector registers that are homes.
    pub homes: u32,
    /// The home that a value would best be made in.
    pub preferred: Vec<Option<u8>>,
    /// Values that are read before the first step, and constants in registers.
    pub kept: Vec<bool>,
    free_slots: Vec<i64>,
    /// Slots that the current item may still read.
    pub leaving: Vec<i64>,
    /// What registers and slots held before operations that are being emitted and may be jumped over.
    pub skipped: Vec<Before>,
    /// Bytes of the frame so far.
    pub frame: i64,
}

impl<'a> Emitter<'a> {
    /// An emitter before the first operation; carries have homes.
    pub(super) fn new(program: &'a Program, shape: Shape) -> Emitter<'a> {
        let vectors = if program.isa == Isa::Avx512 { u32::MAX } else { 0xffff };
        let masks = if shape.masked { 0b1111_1100 } else { 0b1111_1110 };
        let kept = kept(program, shape, vectors.count_ones() as usize);
        let held = kept.mems;
        let shape = Shape { held, ..shape };
        let (items, ahead) = super::layout::items(program, shape, kept.room);
        let pointers = Pointers::new(program, held);
        let frame = pointers.frame;
        let mut e = Emitter {
            program,
            shape,
            asm: Asm::new(program.isa),
            pointers,
            virtuals: vec![],
            first: IdxVec::new(),
            uses: vec![],
            items,
            ahead,
            lasting: 0,
            at: 0,
            holder: [[None; 32]; 2],
            locked: [0; 2],
            usable: [vectors, masks],
            carried: vec![],
            homes: 0,
            preferred: vec![],
            kept: vec![],
            free_slots: vec![],
            leaving: vec![],
            skipped: vec![],
            frame,
        };
        e.reserve_tail_masks();
        e.number(&kept.constants);
        e.settle_homes(kept.all);
        e
    }
    fn number(&mut self, constants: &[Val]) {
        for val in self.program.values.ids() {
            self.first.push(self.virtuals.len());
            let copies = if self.program.values[val].uniform { 1 } else { self.shape.copies };
            self.virtuals.extend((0..copies).map(|copy| Virtual { val, copy, reg: None, slot: None, cursor: 0, end: 0 }));
        }
        self.preferred = vec![None; self.virtuals.len()];
        let kept = |v: &Virtual| constants.contains(&v.val) || self.program.values[v.val].held(self.shape.held).is_some();
        self.kept = self.virtuals.iter().map(kept).collect();
        let mut pairs: Vec<(usize, u32)> = vec![];
        for (at, &(item, copy)) in self.items.iter().enumerate() {
            match item {
                Item::Operation(o) => pairs.extend(self.program.operations[o].args.iter().map(|&a| (self.of(a, copy), at as u32))),
                Item::Store(s) => pairs.push((self.of(self.program.stores[s].1, copy), at as u32)),
                Item::Enter(skip) => pairs.extend(self.conditions(skip).map(|v| (v, at as u32))),
                Item::Leave(_) => {}
            }
        }
        for handed in self.program.carries.iter() {
            let copies = if self.program.values[handed.now].uniform { 1 } else { self.shape.copies };
            pairs.extend((0..copies).map(|c| (self.of(handed.next, c), self.items.len() as u32)));
        }
        pairs.extend((0..self.kept.len()).filter(|&v| self.kept[v]).map(|v| (v, self.items.len() as u32)));
        pairs.sort_by_key(|p| p.0);
        let mut at = 0;
        for (v, this) in self.virtuals.iter_mut().enumerate() {
            this.cursor = at;
            while at < pairs.len() && pairs[at].0 == v {
                at += 1;
            }
            this.end = at;
        }
        self.uses = pairs.into_iter().map(|p| p.1).collect();
    }

    /// The value of a copy.
    pub(super) fn of(&self, val: Val, copy: usize) -> usize {
        self.first[val] + if self.program.values[val].uniform { 0 } else { copy }
    }
    pub(super) fn class(&self, v: usize) -> Class {
        self.program.values[self.virtuals[v].val].class
    }
    pub(super) fn bytes(&self, v: usize) -> usize {
        self.program.bytes(self.virtuals[v].val)
    }
    pub(super) fn birth(&self, v: usize) -> Birth {
        match self.program.values[self.virtuals[v].val].birth {
            Birth::Load(_) if self.kept[v] => Birth::Carry,
            birth => birth,
        }
    }
    fn side(&self, v: usize) -> usize {
        usize::from(self.class(v) == Class::Mask)
    }
    /// The register of a value that has one.
    pub(super) fn register(&self, v: usize, reg: u8) -> Register {
        match self.class(v) {
            Class::Vector => vector(reg, self.bytes(v)),
            Class::Mask => mask(reg),
        }
    }
    pub(super) fn next_use(&self, v: usize) -> u32 {
        let this = &self.virtuals[v];
        if this.cursor < this.end { self.uses[this.cursor] } else { u32::MAX }
    }
    pub(super) fn dead(&self, v: usize) -> bool {
        self.virtuals[v].cursor == self.virtuals[v].end
    }
    /// True where the current item is the last to use it.
    pub(super) fn dies(&self, v: usize) -> bool {
        let this = &self.virtuals[v];
        this.end > this.cursor && self.uses[this.end - 1] == self.at
    }
    pub(super) fn hold(&mut self, v: usize, reg: u8) {
        let side = self.side(v);
        self.holder[side][reg as usize] = Some(v);
        self.virtuals[v].reg = Some(reg);
    }
    fn drop_reg(&mut self, v: usize) {
        if let Some(reg) = self.virtuals[v].reg.take() {
            let side = self.side(v);
            self.holder[side][reg as usize] = None;
        }
    }
    pub(super) fn new_slot(&mut self) -> i64 {
        if let Some(slot) = self.free_slots.pop() {
            return slot;
        }
        self.frame += self.program.vector as i64;
        self.frame - self.program.vector as i64
    }
    fn in_memory(&self, v: usize) -> bool {
        let again = match self.birth(v) {
            Birth::Const(_) => true,
            // What lies apart takes many instructions to read.
            Birth::Load(mem) => !self.program.is_apart(mem),
            _ => false,
        };
        self.virtuals[v].slot.is_some() || again
    }

    /// Keeps a register until the end of the current item.
    pub(super) fn lock(&mut self, side: usize, reg: u8) {
        self.locked[side] |= 1 << reg;
    }
    /// Frees a register of a class and keeps it for the current item.
    pub(super) fn take(&mut self, side: usize, preferred: Option<u8>) -> u8 {
        let free = (0..32).fold(0u32, |m, r| m | u32::from(self.holder[side][r].is_none()) << r) & self.usable[side] & !self.locked[side];
        let other = if side == 0 { free & !self.homes } else { free };
        let reg = match preferred.filter(|&p| free >> p & 1 == 1) {
            Some(reg) => reg,
            None if other != 0 => other.trailing_zeros() as u8,
            None if free != 0 => free.trailing_zeros() as u8,
            None => self.farthest(side),
        };
        if let Some(v) = self.holder[side][reg as usize] {
            self.put_away(v);
        }
        self.lock(side, reg);
        reg
    }
    fn farthest(&self, side: usize) -> u8 {
        let candidates = (0..32u8).filter(|&r| (self.usable[side] & !self.locked[side]) >> r & 1 == 1);
        let score = |r: &u8| {
            let v = self.holder[side][*r as usize].expect("a register that is not free holds a value");
            let distance = u64::from(self.next_use(v) - self.at);
            if self.in_memory(v) { 2 * distance + 1 } else { distance }
        };
        candidates.max_by_key(score).expect("an instruction never locks all registers")
    }
    /// Takes a value out of its register; into a slot, if it is nowhere else.
    pub(super) fn put_away(&mut self, v: usize) {
        if !self.in_memory(v) && !self.dead(v) {
            let slot = self.new_slot();
            self.virtuals[v].slot = Some(slot);
            let reg = self.virtuals[v].reg.expect("a value is somewhere");
            self.save(v, reg, slot);
        }
        self.drop_reg(v);
    }
    /// Puts all values where every block finds them.
    pub(super) fn keep_for_blocks(&mut self) {
        self.put_all_away();
        self.lasting = self.frame;
    }
    /// Puts all values of registers away: before a call.
    pub(super) fn put_all_away(&mut self) {
        for side in 0..2 {
            for reg in 0..32 {
                if let Some(v) = self.holder[side][reg] {
                    self.put_away(v);
                }
            }
        }
    }
    /// Stores a register into a slot.
    pub(super) fn save(&mut self, v: usize, reg: u8, slot: i64) {
        let place = Place::at(Register::RSP, slot);
        let code = match self.class(v) {
            Class::Vector => self.asm.code(&code::STORE_F64, self.bytes(v)),
            Class::Mask => Code::VEX_Kmovw_m16_kr,
        };
        let register = self.register(v, reg);
        self.asm.put(code, place, register);
    }
    /// Loads a slot into a register.
    pub(super) fn restore(&mut self, v: usize, reg: u8, slot: i64) {
        let place = Place::at(Register::RSP, slot);
        let code = match self.class(v) {
            Class::Vector => self.asm.code(&code::MOVE_F64, self.bytes(v)),
            Class::Mask => Code::VEX_Kmovw_kr_km16,
        };
        let register = self.register(v, reg);
        self.asm.fetch(code, register, place);
    }
    /// Brings a value that is in memory into a register.
    pub(super) fn fill(&mut self, v: usize, reg: u8) {
        let Virtual { slot, copy, .. } = self.virtuals[v];
        match (slot, self.birth(v)) {
            (Some(slot), _) => self.restore(v, reg, slot),
            (None, Birth::Const(offset)) => self.load_constant(v, offset, reg),
            (None, Birth::Load(mem)) => self.load(mem, copy, reg, None),
            (None, _) => self.asm.fail("a value is neither in a register nor in memory"),
        }
    }
    /// The register of a value, brought there if need be.
    pub(super) fn use_reg(&mut self, v: usize) -> u8 {
        let side = self.side(v);
        if let Some(reg) = self.virtuals[v].reg {
            self.lock(side, reg);
            return reg;
        }
        let reg = self.take(side, None);
        self.fill(v, reg);
        self.hold(v, reg);
        reg
    }
    /// Where an instruction of `bytes` can read a value that is in no register without loading it first. A value with more uses
    /// is better loaded.
    pub(super) fn foldable(&self, v: usize) -> Option<Place> {
        let this = &self.virtuals[v];
        let (once, wide) = (this.end - this.cursor == 1 + usize::from(self.kept[v]), self.program.isa == Isa::Avx512);
        if this.reg.is_some() || self.class(v) == Class::Mask {
            return None;
        }
        match (this.slot, self.birth(v)) {
            (Some(slot), _) => once.then(|| Place::at(Register::RSP, slot)),
            (None, Birth::Const(offset)) => Some(Place { broadcast: wide, ..Place::at(super::memory::POOL, i64::from(offset)) }),
            (None, Birth::Load(mem)) if !self.program.is_apart(mem) => {
                let uniform = self.program.values[this.val].uniform;
                let whole = if uniform { wide } else { !(self.shape.masked && this.copy + 1 == self.shape.copies) };
                let place = self.pointers.reachable(self.program, mem).then(|| self.pointers.place(self.program, mem, this.copy))?;
                (once && whole).then_some(Place { broadcast: uniform, ..place })
            }
            _ => None,
        }
    }
    /// The value as a last operand.
    pub(super) fn use_rm(&mut self, v: usize) -> Rm {
        match self.foldable(v) {
            Some(place) => Rm::Mem(place),
            None => Rm::Reg(self.use_reg(v)),
        }
    }
    /// Ends the uses of the current item: what is dead leaves its register and slot.
    pub(super) fn release(&mut self, args: &[usize]) {
        for &v in args {
            while self.next_use(v) <= self.at {
                self.virtuals[v].cursor += 1;
            }
            if self.dead(v) {
                self.drop_reg(v);
                if let Some(slot) = self.virtuals[v].slot.take()
                    && slot >= self.lasting
                    && !self.carried.iter().any(|c| c.home == Home::Slot(slot))
                {
                    self.leaving.push(slot);
                }
            }
        }
    }
    /// A register for a value that the current item makes.
    pub(super) fn define(&mut self, v: usize) -> u8 {
        let side = self.side(v);
        let reg = self.take(side, self.preferred[v]);
        self.hold(v, reg);
        reg
    }
    /// Gives a value a register that has just become free.
    pub(super) fn define_in(&mut self, v: usize, reg: u8) {
        let side = self.side(v);
        debug_assert!(self.holder[side][reg as usize].is_none(), "a register for one value");
        self.lock(side, reg);
        self.hold(v, reg);
    }
    /// The next item.
    pub(super) fn advance(&mut self, at: usize) {
        self.at = at as u32;
        self.locked = [0; 2];
        self.free_slots.append(&mut self.leaving);
    }
    /// Lets values have the registers that the current item reads: what it makes is written after it has read.
    pub(super) fn unlock(&mut self) {
        self.locked = [0; 2];
    }
    /// Ends what an item needed a register for only for a moment.
    pub(super) fn give(&mut self, side: usize, reg: u8) {
        self.locked[side] &= !(1 << reg);
    }
    /// True where no value is in a vector register.
    pub(super) fn is_free(&self, reg: u8) -> bool {
        self.holder[0][reg as usize].is_none()
    }
    /// Holds a value in another register from now on.
    pub(super) fn rehome(&mut self, v: usize, reg: u8) {
        self.drop_reg(v);
        self.hold(v, reg);
    }
    /// Empties a vector register.
    pub(super) fn empty(&mut self, reg: u8) {
        if let Some(v) = self.holder[0][reg as usize] {
            self.put_away(v);
        }
    }
    /// The home that a value would best be made in.
    pub(super) fn preferred_of(&self, v: usize) -> Option<u8> {
        self.preferred[v]
    }
    /// Keeps the mask registers of the last copy's lanes: k1, or vectors from the top.
    fn reserve_tail_masks(&mut self) {
        if self.shape.masked && self.program.isa == Isa::Avx2 {
            self.usable[0] &= if self.program.width == 4 { 0x3fff } else { 0x7fff };
        }
    }
    /// The masking of a copy on AVX-512.
    pub(super) fn masking(&self, copy: usize, zero: bool) -> Masking {
        match (self.shape.masked && copy + 1 == self.shape.copies, zero) {
            (false, _) => Masking::None,
            (true, true) => Masking::Zero(1),
            (true, false) => Masking::Merge(1),
        }
    }
}
