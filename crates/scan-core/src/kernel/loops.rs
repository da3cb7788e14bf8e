//! Loops in the steps of a kernel.

use super::{Kernel, Mem, MemId, Op, Reg};
use smallvec::SmallVec;
use std::sync::Arc;

/// A loop in a step.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Loop {
    /// What it does: it stores at numbers in memory of its own, and its steps are counted from 0.
    pub kernel: Arc<Kernel>,
    /// What its operands are.
    pub operands: SmallVec<[Argument; 8]>,
    /// How many steps (i64) it runs at most; none where that is negative.
    pub steps: Reg,
    /// What is written to memory of its own before the first step: where, which element, and the value.
    pub begin: SmallVec<[(MemId, usize, Reg); 2]>,
}

/// What an operand of a loop in a step is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Argument {
    /// A value of the step: the loop loads it, or a carry begins with it.
    Value(Reg),
    /// A table of the step's, from the element with this number on.
    Table(MemId, usize),
    /// A table of its own, which it alone writes.
    Own,
    /// The own table of a loop before it, with this operand.
    Left(Reg, MemId),
}

/// Where memory of a loop's own may begin: no two share a line of the cache.
pub const OWN: usize = 64;

impl Argument {
    /// The table that it is, or a part of.
    pub(super) fn table(&self) -> Option<MemId> {
        if let Argument::Table(mem, _) = self { Some(*mem) } else { None }
    }
}

impl Loop {
    /// The values of the step that it is given, and loops of which it reads what they left.
    pub(super) fn values(&self) -> impl Iterator<Item = Reg> + '_ {
        let given = self.operands.iter().filter_map(|argument| match argument {
            Argument::Value(r) | Argument::Left(r, _) => Some(*r),
            Argument::Table(..) | Argument::Own => None,
        });
        given.chain(self.begin.iter().map(|b| b.2))
    }
    /// The operands that are memory of its own.
    pub fn own(&self) -> impl Iterator<Item = MemId> + '_ {
        self.kernel.mems.ids().zip(&self.operands).filter(|o| matches!(o.1, Argument::Own)).map(|o| o.0)
    }
}

impl Kernel {
    /// The loop that an instruction is.
    ///
    /// # Panics
    /// Where it is none: a fault of who made the kernel.
    pub fn loop_at(&self, of: Reg) -> &Loop {
        let Op::Loop(inner) = &self.body[of].op else { panic!("r{} is no loop", of.0) };
        inner
    }
    /// The memory of a loop's own that is its operand.
    pub fn own_table(&self, of: Reg, mem: MemId) -> Mem {
        self.loop_at(of).kernel.mems[mem].clone()
    }
    /// Bytes of memory that loops in a step have of their own, each of which begins at a multiple of [`OWN`].
    pub fn own(&self) -> usize {
        let bytes = |inner: &Loop| inner.own().map(|mem| inner.kernel.mems[mem].own()).sum::<usize>() + inner.kernel.own();
        self.loops().map(bytes).sum()
    }
}

impl Mem {
    /// Bytes that it takes as the memory of a loop's own.
    pub fn own(&self) -> usize {
        (self.table * self.dtype.size()).next_multiple_of(OWN)
    }
}
