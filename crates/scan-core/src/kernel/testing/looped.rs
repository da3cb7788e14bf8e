//! Loops in the steps of random kernels.

use super::Generator;
use crate::kernel::{Argument, Bin, Carry, Cmp, Inst, Kernel, Lane, Loop, Mem, MemId, Op, Reg, Store};
use crate::types::DType;
use smallvec::SmallVec;
use std::sync::Arc;

/// What is written to memory of a loop's own before its first step.
type Begin = SmallVec<[(MemId, usize, Reg); 2]>;

impl Generator<'_> {
    /// A loop of a few steps on values that are there, with its carries; some stop, some run none, some hold another loop.
    pub(super) fn looped(&mut self) {
        if self.case.lanes > 1 || self.depth > 1 || !self.options.dtypes.contains(&DType::I64) {
            return;
        }
        let mut operands: SmallVec<[Argument; 8]> = SmallVec::new();
        let mut inner = Kernel::default();
        for kind in 0..2 + self.random.below(4) {
            let dtype = self.dtype();
            operands.push(Argument::Value(self.value(dtype)));
            let mem = inner.mems.push(Mem::new(dtype, Lane::Uniform));
            if kind == 0 || self.random.one_in(3) {
                inner.body.push(Inst { op: Op::Load(mem), dtype });
            } else {
                let carry = inner.carries.push(Carry { mem, next: Reg(0) });
                let now = inner.body.push(Inst { op: Op::Carry(carry), dtype });
                inner.carries[carry].next = now;
            }
        }
        self.lent(&mut inner, &mut operands);
        self.left(&mut inner, &mut operands);
        let (own, begin) = self.own(&mut inner, &mut operands);
        let steps = self.count();
        let kernel = self.within(inner, own);
        let last: Vec<_> = kernel.carries.enumerate().map(|(id, carry)| (id, kernel.mems[carry.mem].dtype)).collect();
        let made = self.push(Op::Loop(Loop { kernel: Arc::new(kernel), operands, steps, begin }), DType::I64);
        for (carry, dtype) in last {
            self.push(Op::Last(made, carry), dtype);
        }
        if let Some((mem, dtype)) = own {
            let number = self.value(DType::I64);
            self.push(Op::Left(made, mem, number), dtype);
        }
    }

    /// Memory of its own, of which all elements begin with values that are there, and an element of it.
    fn own(&mut self, inner: &mut Kernel, operands: &mut SmallVec<[Argument; 8]>) -> (Option<(MemId, DType)>, Begin) {
        if self.random.one_in(2) {
            return (None, Begin::new());
        }
        let (dtype, elements) = (self.dtype(), 1 + self.random.below(4));
        let mem = inner.mems.push(Mem { table: elements, stride: Some(0), ..Mem::new(dtype, Lane::Uniform) });
        operands.push(Argument::Own);
        let number = inner.body.push(Inst { op: Op::Step, dtype: DType::I64 });
        inner.body.push(Inst { op: Op::Gather(mem, number), dtype });
        (Some((mem, dtype)), (0..elements).map(|at| (mem, at, self.value(dtype))).collect())
    }
    /// What loops before it left in memory of their own, with an element of each.
    fn left(&mut self, inner: &mut Kernel, operands: &mut SmallVec<[Argument; 8]>) {
        let loops = self.case.kernel.body.enumerate().filter_map(|(r, inst)| if let Op::Loop(l) = &inst.op { Some((r, l)) } else { None });
        let left: Vec<_> = loops.flat_map(|(r, l)| l.own().map(move |mem| (r, mem, l.kernel.mems[mem].clone()))).collect();
        for (r, of, kind) in left.into_iter().take(2) {
            operands.push(Argument::Left(r, of));
            let dtype = kind.dtype;
            let mem = inner.mems.push(kind);
            let number = inner.body.push(Inst { op: Op::Step, dtype: DType::I64 });
            inner.body.push(Inst { op: Op::Gather(mem, number), dtype });
        }
    }

    /// Parts of tables, with an element of each.
    fn lent(&mut self, inner: &mut Kernel, operands: &mut SmallVec<[Argument; 8]>) {
        let tables: Vec<MemId> = self.case.kernel.mems.ids().filter(|&m| self.case.kernel.mems[m].table > 0).collect();
        for table in tables.into_iter().take(2) {
            let Mem { dtype, table: elements, .. } = self.case.kernel.mems[table];
            let first = self.random.below(elements);
            operands.push(Argument::Table(table, first));
            let mem = inner.mems.push(Mem { table: elements - first, ..Mem::new(dtype, Lane::Uniform) });
            let number = inner.body.push(Inst { op: Op::Step, dtype: DType::I64 });
            inner.body.push(Inst { op: Op::Gather(mem, number), dtype });
        }
    }

    /// A number of steps: known, or a few bits of a value.
    fn count(&mut self) -> Reg {
        if self.random.one_in(2) {
            let n = self.random.below(6) as i64 - 1;
            return self.push(Op::Const(n as u64), DType::I64);
        }
        let (any, mask) = (self.value(DType::I64), self.push(Op::Const(5), DType::I64));
        self.push(Op::Bin(Bin::And, any, mask), DType::I64)
    }

    /// The kernel of a loop, from what it begins with on, which may store in memory of its own.
    fn within(&mut self, inner: Kernel, own: Option<(MemId, DType)>) -> Kernel {
        let outer = std::mem::replace(&mut self.case.kernel, inner);
        self.depth += 1;
        self.push(Op::Step, DType::I64);
        for _ in 0..self.random.below(8) {
            self.compute();
        }
        for id in self.case.kernel.carries.ids().collect::<Vec<_>>() {
            self.case.kernel.carries[id].next = self.fitting(self.case.kernel.carries[id].mem);
        }
        if let Some((mem, dtype)) = own {
            let (value, at) = (self.value(dtype), Some(self.value(DType::I64)));
            self.case.kernel.stores.push(Store { mem, value, at });
        }
        if self.random.one_in(3) {
            let dtype = self.dtype();
            let (x, y) = (self.value(dtype), self.value(dtype));
            self.case.kernel.stop = Some(self.push(Op::Cmp(Cmp::Le, x, y), DType::Bool));
        }
        self.depth -= 1;
        std::mem::replace(&mut self.case.kernel, outer)
    }
}

#[cfg(test)]
mod tests {
    use crate::kernel::testing::{Case, Options, case};
    use crate::kernel::{Argument, Kernel, Op, verify};

    /// True where a kernel, or a loop in it, is such.
    fn any(kernel: &Kernel, of: &dyn Fn(&Kernel) -> bool) -> bool {
        of(kernel) || kernel.loops().any(|inner| any(&inner.kernel, of))
    }

    #[test]
    fn cases_have_loops_of_every_kind() {
        let options = Options { lanes: 1..=1, loops: true, ..Options::default() };
        let cases: Vec<Case> = (0..500).map(|seed| case(seed, &options)).collect();
        cases.iter().for_each(|c| verify(&c.kernel).unwrap());
        let count = |of: &dyn Fn(&Kernel) -> bool| cases.iter().filter(|c| c.kernel.loops().any(|l| any(&l.kernel, of))).count();
        assert!(cases.iter().filter(|c| c.kernel.has_loops()).count() > 150, "kernels have loops");
        assert!(count(&|k| k.stop.is_some()) > 50, "loops stop");
        assert!(count(&|k| k.has_loops()) > 15, "loops hold loops");
        assert!(count(&|k| k.body.iter().any(|i| matches!(i.op, Op::Gather(..)))) > 30, "loops read tables");
        assert!(count(&|k| k.scatters()) > 50, "loops have memory of their own");
        let read = |c: &Case| c.kernel.loops().any(|l| l.operands.iter().any(|o| matches!(o, Argument::Left(..))));
        assert!(cases.iter().filter(|c| read(c)).count() > 20, "and others read it");
    }
}
