//! A loop of one lane in stages, of which some run the steps of a block as lanes ([`crate::kernel::distribute`]).

use super::tier::{Engine, Tiered};
use crate::backend::cpu::{Memory, Operand, cells};
use crate::base::Id;
use crate::kernel::Kernel;
use crate::kernel::distribute::Source;
use crate::lower::stages::{stages, worth_calls};
use crate::plan::kernel::Place;
use crate::types::{Array, DType};
use smallvec::SmallVec;

/// The kernels of a loop's stages.
pub(super) struct Distributed {
    stages: Vec<(Tiered, bool, Vec<Source>)>,
    /// Bytes before each of the values between stages, and of all.
    between: Vec<(usize, DType)>,
    bytes: usize,
}

/// Steps of a block: what lies between stages stays in the innermost cache.
pub(super) const BLOCK: usize = 256;

impl Distributed {
    /// Of a kernel of one lane with operands that lie at these places, where that is quicker.
    pub fn of(kernel: &Kernel, places: &[Place], engine: Engine) -> Option<Distributed> {
        let found = stages(kernel, places, BLOCK)?;
        let (mut bytes, mut between) = (0, vec![]);
        for dtype in found.between {
            between.push((bytes, dtype));
            bytes += (BLOCK * dtype.size()).next_multiple_of(64);
        }
        let stages = found.stages.into_iter().map(|stage| (Tiered::new(stage.kernel, engine), stage.lanes, stage.operands)).collect();
        Some(Distributed { stages, between, bytes })
    }
    /// The kernels of its stages, and whether each has steps as lanes.
    pub fn kernels(&self) -> impl Iterator<Item = (&Tiered, bool)> {
        self.stages.iter().map(|(tier, lanes, _)| (tier, *lanes))
    }
    /// The stages, for so many steps.
    pub fn takes(&self, steps: usize) -> Option<&Distributed> {
        worth_calls(steps).then_some(self)
    }
    /// Announces so many steps.
    pub fn expect(&self, steps: usize) {
        for (tier, lanes, _) in &self.stages {
            if *lanes { tier.expect(steps.min(BLOCK), steps.div_ceil(BLOCK)) } else { tier.expect(1, steps) }
        }
    }
    /// The engines of its stages, where it has run.
    pub fn engines(&self) -> Option<String> {
        let mut engines: Vec<&str> = self.stages.iter().filter(|stage| stage.0.is_made()).map(|stage| stage.0.describe().0).collect();
        engines.sort_unstable();
        engines.dedup();
        (!engines.is_empty()).then(|| engines.join("+"))
    }
    /// Memory for the values between.
    pub fn room(&self) -> Array {
        Array::dirty(DType::U64, &[self.bytes.div_ceil(8)])
    }
    /// Runs so many steps, a block at most, of which the first finds its operands here.
    pub fn run(&self, operands: &[Operand], steps: usize, room: &mut Array) -> usize {
        let between = Memory::Write(cells(room));
        for (tier, lanes, sources) in &self.stages {
            let mut now: SmallVec<[Operand; 16]> = SmallVec::new();
            for source in sources {
                now.push(match *source {
                    Source::Operand(m) => operands[m.idx()],
                    Source::Between(at) => {
                        let (offset, dtype) = self.between[at];
                        Operand { memory: between, offset, stride: dtype.size() as isize }
                    }
                });
            }
            now.iter_mut().filter(|_| *lanes).for_each(|operand| operand.stride = 0);
            if *lanes {
                tier.run_alone(&now, steps, 1, 0)
            } else {
                tier.run_alone(&now, 1, steps, 0)
            };
        }
        steps
    }
}
