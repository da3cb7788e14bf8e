//! Which instructions use which values.

use crate::base::IdxVec;
use crate::kernel::{Carry, Inst, Kernel, Op, Reg, Store};

/// The last use of what is needed when the body is done.
const END: usize = usize::MAX;

/// The kernel with what takes the bits of a value led to that value: they are the same in memory.
pub fn without_bits(kernel: &Kernel) -> Kernel {
    let mut to: IdxVec<Reg, Reg> = kernel.body.ids().collect();
    for (r, inst) in kernel.body.enumerate() {
        if let Op::Bits(x) = inst.op {
            to[r] = to[x];
        }
    }
    Kernel {
        mems: kernel.mems.clone(),
        carries: kernel.carries.iter().map(|c| Carry { next: to[c.next], ..c.clone() }).collect(),
        body: kernel.body.iter().map(|i| Inst { op: i.op.of(|r| to[r]), ..i.clone() }).collect(),
        stores: kernel.stores.iter().map(|s| Store { value: to[s.value], at: s.at.map(|at| to[at]), ..s.clone() }).collect(),
        stop: kernel.stop.map(|r| to[r]),
    }
}

/// The last instruction that uses a value, or `END`; nothing uses dead ones.
pub fn last_uses(kernel: &Kernel) -> IdxVec<Reg, Option<usize>> {
    let mut last = filled(kernel, None);
    kernel.ends().for_each(|r| last[r] = Some(END));
    for (r, inst) in kernel.body.enumerate().rev() {
        if last[r].is_some() {
            inst.op.uses().iter().for_each(|&used| last[used] = last[used].max(Some(r.0 as usize)));
        }
    }
    last
}

/// The same for every value.
pub fn filled<T: Clone>(kernel: &Kernel, x: T) -> IdxVec<Reg, T> {
    std::iter::repeat_n(x, kernel.body.len()).collect()
}
