//! Kernels made anew, some of their instructions in another way.

use super::kir::{Inst, Kernel, Op, Reg};
use super::record::Builder;
use crate::base::IdxVec;
use smallvec::SmallVec;

/// The kernel with what `other` makes in place of an instruction, of operands that are made already, and without what is not needed then.
pub fn rebuilt(kernel: &Kernel, other: impl Fn(&mut Builder, Reg, &Op) -> Option<Reg>) -> Kernel {
    let mut builder = Builder::on(kernel.mems.clone());
    let carries: SmallVec<[_; 4]> = kernel.carries.iter().map(|carry| builder.carry(carry.mem)).collect();
    let mut image: IdxVec<Reg, Reg> = IdxVec::new();
    for (r, inst) in kernel.body.enumerate() {
        let op = inst.op.of(|r| image[r]);
        let made = other(&mut builder, r, &op).unwrap_or_else(|| match op {
            Op::Carry(carry) => carries[carry.0 as usize].1,
            _ => builder.again(&op, inst.dtype),
        });
        image.push(made);
    }
    for (carry, of) in carries.iter().zip(kernel.carries.iter()) {
        builder.set_next(carry.0, image[of.next]);
    }
    for store in &kernel.stores {
        match store.at {
            Some(at) => builder.store_at(store.mem, image[at], image[store.value]),
            None => builder.store(store.mem, image[store.value]),
        }
    }
    if let Some(stop) = kernel.stop {
        builder.stop(image[stop]);
    }
    pruned(builder.finish())
}

/// The kernel without instructions that nothing needs.
fn pruned(kernel: Kernel) -> Kernel {
    let needed = kernel.needed();
    let mut image: IdxVec<Reg, Reg> = IdxVec::new();
    let mut body: IdxVec<Reg, Inst> = IdxVec::new();
    for (r, inst) in kernel.body.enumerate() {
        let to = if needed[r] { body.push(Inst { op: inst.op.of(|r| image[r]), ..inst.clone() }) } else { Reg(u32::MAX) };
        image.push(to);
    }
    let mut pruned = Kernel { body, ..kernel };
    pruned.carries.iter_mut().for_each(|carry| carry.next = image[carry.next]);
    for store in &mut pruned.stores {
        store.value = image[store.value];
        store.at = store.at.map(|at| image[at]);
    }
    pruned.stop = pruned.stop.map(|stop| image[stop]);
    pruned
}
