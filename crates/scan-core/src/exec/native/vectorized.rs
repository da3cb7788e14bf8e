//! Loops whose steps do not wait for each other, vectorized: the steps of a kernel of one lane are the lanes of a kernel of one step.

use super::tier::{Engine, Tiered};
use crate::backend::cpu::Operand;
use crate::kernel::{Kernel, Lane, Mem, Op};
use crate::lower::stages::{counts_steps, lane, writes_once};
use crate::plan::kernel::Place;
use smallvec::SmallVec;

/// A kernel whose lanes are the steps of a loop.
pub(super) struct Vectorized {
    tier: Tiered,
}

/// Fewer steps fill no vectors.
const LEAST: usize = 32;
/// Instructions for each element that is read or written apart from that of the next lane, one by one.
const WORTH: usize = 2;

impl Vectorized {
    /// Of a kernel of one lane with operands that lie at these places. `None` where its steps may depend on each other, or most of what they do
    /// is to read and to write.
    pub fn of(kernel: &Kernel, places: &[Place], engine: Engine) -> Option<Vectorized> {
        if !kernel.carries.is_empty() || kernel.is_single() || counts_steps(kernel) {
            return None;
        }
        let mut wide = kernel.clone();
        for (mem, place) in wide.mems.iter_mut().zip(places) {
            *mem = lane(mem, place)?;
        }
        let fixed = |mem: &Mem| mem.lane == Lane::Uniform;
        let loads = kernel.body.iter().filter_map(|inst| if let Op::Load(mem) = inst.op { Some(mem) } else { None });
        let (mut read, mut rows) = (0, true);
        for mem in loads {
            read += 1;
            rows &= !matches!(places[mem.0 as usize], Place::Row { .. });
        }
        // What all steps write at one place is what the last one wrote.
        let written = kernel.stores.iter().all(|store| !fixed(&wide.mems[store.mem]));
        let apart = wide.mems.iter().filter(|mem| matches!(mem.lane, Lane::Apart(_))).count();
        let worth = kernel.body.len() - read >= WORTH * apart;
        (rows && written && writes_once(kernel, places) && worth).then(|| Vectorized { tier: Tiered::new(wide, engine) })
    }

    /// The kernel, for so many steps.
    pub fn takes(&self, steps: usize) -> Option<&Vectorized> {
        (steps >= LEAST).then_some(self)
    }
    /// Announces so many steps.
    pub fn expect(&self, steps: usize) {
        self.tier.expect(steps, 1);
    }
    /// Its engines, where it has run.
    pub fn ran(&self) -> Option<&Tiered> {
        self.tier.is_made().then_some(&self.tier)
    }
    /// Runs so many steps, of which the first finds its operands here.
    pub fn run(&self, operands: &[Operand], steps: usize) -> usize {
        let still: SmallVec<[Operand; 16]> = operands.iter().map(|o| Operand { stride: 0, ..*o }).collect();
        if self.tier.shared(steps) {
            self.tier.run(&still, steps, 1, 0)
        } else {
            self.tier.run_alone(&still, steps, 1, 0)
        };
        steps
    }
}
