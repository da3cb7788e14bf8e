//! Jumps over what only one side of a choice needs, where that side is not taken.

use super::body::{Body, machine};
use super::select::converted;
use crate::base::{Id, IdxVec};
use crate::kernel::sides::{Choice, Instruction, Skip, foreseen, skippable};
use crate::kernel::{Bin, Kernel, Op, Reg, Un};
use crate::types::DType;
use cranelift_codegen::ir::{Block, InstBuilder, Value};
use rustc_hash::FxHashMap;

/// The order of a step's instructions, and what is jumped over.
pub struct Order {
    pub order: Vec<Reg>,
    pub skips: Vec<Skip>,
}

impl Order {
    /// That of instructions that are needed, but for those of which `known` holds: they have values before the step.
    pub fn of(kernel: &Kernel, needed: &IdxVec<Reg, bool>, known: impl Fn(Reg) -> bool) -> Order {
        let made = |r: Reg| needed[r] && !known(r);
        let found = foreseen(kernel).and_then(|foreseen| {
            let all: Vec<Instruction> = kernel.body.ids().map(|r| instruction(kernel, r, &made, &foreseen)).collect();
            skippable(&all, &kernel.ends().map(Id::idx).collect::<Vec<_>>())
        });
        match found {
            Some((order, skips)) => Order { order: order.into_iter().map(Reg::new).collect(), skips },
            None => Order { order: kernel.body.ids().collect(), skips: vec![] },
        }
    }
}

fn instruction(kernel: &Kernel, r: Reg, made: &dyn Fn(Reg) -> bool, foreseen: &IdxVec<Reg, bool>) -> Instruction {
    let op = &kernel.body[r].op;
    if !made(r) {
        return Instruction { fixed: true, ..Instruction::default() };
    }
    let choice = match op {
        Op::Select(c, x, y) if foreseen[*c] => {
            let condition = converted(kernel, *c).unwrap_or(*c).idx();
            Some(Choice { condition, sides: [y, x].map(|side| made(*side).then(|| side.idx())) })
        }
        _ => None,
    };
    let loops = matches!(op, Op::Loop(_) | Op::Last(..) | Op::Left(..));
    let fixed = loops || matches!(op, Op::Const(_) | Op::Step | Op::Load(_) | Op::Carry(_));
    let args = reads(kernel, r).map(Id::idx).collect();
    Instruction { args, choice, weight: weight(op, kernel.dtype(r)), fixed }
}

/// What an instruction reads, what decides first: that may be what a number was made of that is compared with 0.
fn reads(kernel: &Kernel, r: Reg) -> impl Iterator<Item = Reg> {
    let op = &kernel.body[r].op;
    let decides = if let Op::Select(c, ..) = op { *c } else { r };
    converted(kernel, decides).into_iter().chain(op.uses())
}

/// About how long an instruction keeps a processor busy, in sums.
fn weight(op: &Op, dtype: DType) -> usize {
    match op {
        Op::Const(_) => 0,
        Op::Call(f, _) if f.seldom() => 2,
        Op::Call(..) => 40,
        Op::Bin(Bin::Div, ..) | Op::Un(Un::Sqrt, _) if dtype == DType::F64 => 8,
        Op::Bin(bin, ..) if bin.divides_integers() => 16,
        Op::Bin(Bin::Div, ..) | Op::Un(Un::Sqrt, _) => 6,
        _ => 1,
    }
}

/// Instructions under construction that may be jumped over.
pub struct Open {
    /// Behind them, with a parameter for each of their values that is read there.
    after: Block,
    read: Vec<Reg>,
    /// Masks that were there before.
    masks: FxHashMap<(Reg, DType), Value>,
}

impl Body<'_, '_> {
    /// Jumps to behind instructions where their side is not taken.
    pub fn enter_skip(&mut self, skip: &Skip, read: Vec<Reg>) -> Open {
        let condition = self.get(Reg::new(skip.condition));
        let (side, after) = (self.builder.create_block(), self.builder.create_block());
        let mut anything = vec![];
        for &r in &read {
            let dtype = self.kernel.dtype(r);
            self.builder.append_block_param(after, machine(dtype));
            anything.push(self.constant(dtype, 0).into());
        }
        match skip.holds {
            true => self.builder.ins().brif(condition, side, &[], after, &anything),
            false => self.builder.ins().brif(condition, after, &anything, side, &[]),
        };
        self.builder.switch_to_block(side);
        self.builder.seal_block(side);
        Open { after, read, masks: self.masks.clone() }
    }
    /// Behind them: values that are read there are those that were made, or anything. No other can be read.
    pub fn leave_skip(&mut self, open: Open, made_within: &[Reg]) {
        let made: Vec<_> = open.read.iter().map(|&r| self.get(r).into()).collect();
        self.builder.ins().jump(open.after, &made);
        self.builder.switch_to_block(open.after);
        self.builder.seal_block(open.after);
        made_within.iter().for_each(|&r| self.set(r, None));
        for (k, &r) in open.read.iter().enumerate() {
            self.set(r, Some(self.builder.block_params(open.after)[k]));
            // What it was compared of is not here.
            self.compared[r] = None;
        }
        self.masks = open.masks;
    }
}

/// Per range: its values that others read.
pub fn read_outside(kernel: &Kernel, needed: &IdxVec<Reg, bool>, order: &Order) -> Vec<Vec<Reg>> {
    if order.skips.is_empty() {
        return vec![];
    }
    let mut at: IdxVec<Reg, usize> = kernel.body.iter().map(|_| 0).collect();
    order.order.iter().enumerate().for_each(|(k, &r)| at[r] = k);
    let mut read: Vec<Vec<Reg>> = vec![vec![]; order.skips.len()];
    for r in kernel.body.ids().filter(|r| needed[*r]) {
        for used in reads(kernel, r) {
            let left = |skip: &Skip| skip.range.contains(&at[used]) && !skip.range.contains(&at[r]);
            order.skips.iter().zip(&mut read).filter(|(skip, _)| left(skip)).for_each(|(_, read)| read.push(used));
        }
    }
    read.iter_mut().for_each(|read| {
        read.sort_unstable();
        read.dedup();
    });
    read
}
