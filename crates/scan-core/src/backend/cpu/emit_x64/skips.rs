//! Jumps over what only one side of a choice needs, where no lane takes that side.
//!
//! Both ways meet with the same values in the same places: behind the operations, what was in a register before them is there again, and what
//! they have made lies where nothing lay before. On the way past them there is anything, which no choice takes.

use super::alloc::Emitter;
use super::asm::mask;
use super::codes as code;
use super::order::kept;
use super::select::{Class, Form, Operation, Program, Val};
use crate::base::{Id, IdxVec};
use crate::kernel::sides::{Choice, Instruction, Skip, skippable};
use iced_x86::{Code, Register};
use rustc_hash::FxHashSet;

/// Puts operations next to each other that can be jumped over; conditions of choices that count are those that `foreseen` has.
pub(super) fn arrange(program: &mut Program, foreseen: &FxHashSet<Val>) {
    let mut maker: IdxVec<Val, Option<usize>> = program.values.iter().map(|_| None).collect();
    program.operations.iter().enumerate().for_each(|(i, o)| maker[o.dst] = Some(i));
    let all: Vec<Instruction> = program.operations.iter().map(|o| instruction(program, &maker, o, foreseen)).collect();
    let last: Vec<usize> = kept(program).into_iter().filter_map(|v| maker[v]).collect();
    if let Some((order, skips)) = skippable(&all, &last) {
        program.operations = order.into_iter().map(|i| program.operations[i].clone()).collect();
        program.skips = skips;
    }
}

fn instruction(program: &Program, maker: &IdxVec<Val, Option<usize>>, o: &Operation, foreseen: &FxHashSet<Val>) -> Instruction {
    let by = |c: Val, sides| foreseen.contains(&c).then(|| Choice { condition: c.idx(), sides });
    let choice = match (o.form, &o.args[..]) {
        (Form::BlendMask | Form::BlendVector, &[c, x, y]) => by(c, [maker[y], maker[x]]),
        (Form::KeepMask, &[c, x]) => by(c, [None, maker[x]]),
        _ => None,
    };
    let args = o.args.iter().filter_map(|&a| maker[a]).collect();
    Instruction { args, choice, weight: weight(program, o), fixed: matches!(o.form, Form::Load(_)) }
}

/// About how long an operation keeps a processor busy, in sums.
fn weight(program: &Program, o: &Operation) -> usize {
    let lanes = if program.values[o.dst].uniform { 1 } else { program.width };
    match (o.form, o.row) {
        (Form::Call(f), _) if f.seldom() => 2,
        (Form::Call(_), _) => 40 * lanes,
        (Form::Gather(_), _) => 2 * lanes,
        (_, Some(row)) if [&code::DIV_F64, &code::SQRT_F64].contains(&row) => 12,
        (_, Some(row)) if [&code::DIV_F32, &code::SQRT_F32].contains(&row) => 8,
        _ => 1,
    }
}

/// Where values were before operations that may be jumped over.
pub(super) struct Before {
    /// Per class: what each register held.
    holder: [[Option<usize>; 32]; 2],
    /// Per value: its slot.
    slots: Vec<Option<i64>>,
    /// To behind the operations.
    jump: usize,
}

impl Emitter<'_> {
    /// The values that decide whether operations are jumped over: one for each copy.
    pub(super) fn conditions(&self, skip: usize) -> impl Iterator<Item = usize> + use<> {
        let condition = Val::new(self.program.skips[skip].condition);
        let copies = if self.program.values[condition].uniform { 1 } else { self.shape.copies };
        let first = self.of(condition, 0);
        first..first + copies
    }

    /// Jumps to behind the operations where no lane of any copy needs them.
    pub(super) fn enter_skip(&mut self, skip: usize) {
        let Skip { holds, .. } = self.program.skips[skip];
        let conditions: Vec<usize> = self.conditions(skip).collect();
        for &v in &conditions {
            self.use_reg(v);
        }
        let mut enters = vec![];
        let mut jump = 0;
        for (k, &v) in conditions.iter().enumerate() {
            self.compare_with_none(v, holds);
            match k + 1 == conditions.len() {
                true => jump = self.asm.jump_ahead(Code::Je_rel32_64),
                false => enters.push(self.asm.jump_ahead(Code::Jne_rel32_64)),
            }
        }
        enters.into_iter().for_each(|enter| self.asm.land(enter));
        self.release(&conditions);
        let slots = self.virtuals.iter().map(|v| v.slot).collect();
        self.skipped.push(Before { holder: self.holder, slots, jump });
    }
    /// Compares the lanes of a condition with those of one that holds nowhere, or, for what is needed where it does not hold, everywhere.
    fn compare_with_none(&mut self, v: usize, holds: bool) {
        let (reg, bytes) = (self.use_reg(v), self.bytes(v));
        let size = usize::from(self.program.values[self.virtuals[v].val].size);
        let lanes = if self.class(v) == Class::Mask { self.program.width } else { bytes / size };
        let all = (1u64 << lanes) - 1;
        if self.class(v) == Class::Mask {
            self.asm.two(Code::VEX_Kmovw_r32_kr, Register::EAX, mask(reg));
            self.asm.number(Code::And_rm32_imm32, Register::EAX, all);
        } else {
            let code = match (size, bytes) {
                (8, 32) => Code::VEX_Vmovmskpd_r32_ymm,
                (8, _) => Code::VEX_Vmovmskpd_r32_xmm,
                (_, 32) => Code::VEX_Vmovmskps_r32_ymm,
                _ => Code::VEX_Vmovmskps_r32_xmm,
            };
            self.asm.two(code, Register::EAX, self.register(v, reg));
        }
        self.asm.number(Code::Cmp_rm32_imm32, Register::EAX, if holds { 0 } else { all });
    }

    /// Brings what was in registers before the operations back there.
    pub(super) fn leave_skip(&mut self, skip: usize) {
        let Some(before) = self.skipped.pop() else { return self.asm.fail("operations end that have not begun") };
        let mut made = vec![false; self.virtuals.len()];
        for o in &self.program.operations[self.program.skips[skip].range.clone()] {
            let copies = if self.program.values[o.dst].uniform { 1 } else { self.shape.copies };
            (0..copies).for_each(|copy| made[self.of(o.dst, copy)] = true);
        }
        let places = || (0..2).flat_map(|side| (0..32).map(move |reg| (side, reg)));
        for (side, reg) in places() {
            let (now, then) = (self.holder[side][reg], before.holder[side][reg]);
            // What has been made may stay where nothing lies that is still needed.
            let stays = |v: usize| now == then || made[v] && then.is_none_or(|then| self.dead(then));
            if let Some(v) = now.filter(|&v| !stays(v)) {
                self.put_away(v);
            }
        }
        for (side, reg) in places() {
            if let Some(v) = before.holder[side][reg].filter(|&v| self.holder[side][reg].is_none() && !self.dead(v)) {
                self.fill(v, reg as u8);
                self.hold(v, reg as u8);
            }
        }
        // On the way past the operations nothing was stored.
        for v in (0..made.len()).filter(|&v| !made[v] && before.slots[v].is_none()) {
            self.leaving.extend(self.virtuals[v].slot.take());
        }
        self.asm.land(before.jump);
    }
}
