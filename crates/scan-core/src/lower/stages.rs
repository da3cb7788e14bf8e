//! Loops of one lane whose steps become lanes, all of them or in stages ([`crate::kernel::distribute`]): which can, and where that is quicker.

use super::cost::worth_stages;
#[cfg(any(test, feature = "testing"))]
use crate::base::small;
use crate::base::{Id, IdxVec};
use crate::kernel::distribute::{Distributed, distributed};
use crate::kernel::{Kernel, Lane, Mem, MemId, Op, Reg};
use crate::plan::kernel::Place;
use rustc_hash::FxHashMap;

/// Fewer steps are not worth the calls.
const LEAST: usize = 64;
/// Most bytes from one step's element to that of the next: machine code has them as distances of so many lanes.
const FAR: i32 = (1 << 28) / LANES as i32;
/// Steps of a call as lanes at most: what they read and write should stay in the caches.
pub(crate) const LANES: usize = 1024;

/// The stages of a kernel of one lane with operands that lie at these places, for so many steps at a time; `None` where it is as quick as it is.
pub(crate) fn stages(kernel: &Kernel, places: &[Place], steps: usize) -> Option<Distributed> {
    let known = |place: &Place| matches!(place, Place::Seq { .. } | Place::Before { .. } | Place::Row { .. } | Place::Window { .. });
    // A row that the loop has written is read when it is there.
    let own = |m: MemId| matches!(places[m.idx()], Place::Row { .. });
    let reads = kernel.body.iter().any(|inst| matches!(inst.op, Op::Load(m) | Op::Gather(m, _) if own(m)));
    if !places.iter().all(known) || reads || !writes_once(kernel, places) || counts_steps(kernel) {
        return None;
    }
    let wide: IdxVec<MemId, _> = kernel.mems.iter().zip(places).map(|(mem, place)| lane(mem, place)).collect();
    distributed(kernel, &|m| wide[m].clone()).filter(|found| always() || worth_stages(kernel, found, steps))
}

/// True for so many steps of a loop that stages are worth the calls.
pub(crate) fn worth_calls(steps: usize) -> bool {
    steps >= if always() { 2 } else { LEAST }
}

/// The same of a loop in a step, of which it is known before.
pub(crate) fn fills_lanes(steps: usize) -> bool {
    steps >= if always() { 2 } else { LEAST / 4 }
}

/// True where no row is written by several steps, of which it is the last that counts.
pub(crate) fn writes_once(kernel: &Kernel, places: &[Place]) -> bool {
    let mut offsets = FxHashMap::default();
    kernel.stores.iter().all(|store| match places[store.mem.0 as usize] {
        Place::Row { id, offset, .. } => *offsets.entry(id).or_insert(offset) == offset,
        _ => true,
    })
}

/// True where the number of a step matters: every kernel of a loop has it.
pub(crate) fn counts_steps(kernel: &Kernel) -> bool {
    let is_step = |&x: &Reg| matches!(kernel.body[x].op, Op::Step);
    kernel.body.iter().any(|inst| inst.op.uses().iter().any(is_step)) || kernel.stores.iter().any(|store| is_step(&store.value))
}

/// An operand whose elements at the steps are those of the lanes.
pub(crate) fn lane(mem: &Mem, place: &Place) -> Option<Mem> {
    let (stride, size) = (mem.stride?, mem.dtype.size() as i32);
    let lane = match stride {
        0 => Lane::Uniform,
        _ if mem.table > 0 || stride % size != 0 => return None,
        _ if stride == size => Lane::Unit,
        // Narrow elements are not read one by one.
        _ if size < 4 || stride.unsigned_abs() > FAR.unsigned_abs() => return None,
        _ => Lane::Apart(stride / size),
    };
    let known = matches!(place, Place::Seq { .. } | Place::Before { .. } | Place::Row { .. });
    known.then_some(Mem { lane, stride: None, ..*mem })
}

/// True where tests ask for stages wherever there can be some.
fn always() -> bool {
    #[cfg(any(test, feature = "testing"))]
    return small::in_stages();
    #[cfg(not(any(test, feature = "testing")))]
    false
}
