//! The kernels of lists.

use super::planner::Planner;
use super::tier::{Engine, Tiered};
use crate::backend::cpu::{NestPlan, NestRun, Operand, Spot, Steps, bits_at};
use crate::kernel::{Condition, Kernel, Nest, Unswitched};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::{Arc, Mutex, PoisonError};

/// The kernels of a loop's lists, each compiled once.
pub struct Kernels {
    pub(super) planner: Planner,
    made: Mutex<FxHashMap<(Kernel, usize), Arc<Tiered>>>,
}

impl Kernels {
    /// None yet. Loops that lists call are planned so.
    pub fn new(planner: Planner) -> Kernels {
        Kernels { planner, made: Mutex::default() }
    }
    /// That of a nest.
    pub fn get(&self, nest: &Nest) -> Arc<Tiered> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(Tiered::new(nest.kernel.clone(), self.planner.engine.here()));
        made.entry((nest.kernel.clone(), nest.lanes)).or_insert_with(new).clone()
    }
    /// A kernel in two versions, where that pays; devices take the whole.
    pub(super) fn versions(&self, nest: &Nest) -> Option<Versions> {
        if matches!(self.planner.engine, Engine::Device(_)) {
            return None;
        }
        let Unswitched { condition, kernels } = Unswitched::of(nest)?;
        let version = |kernel| {
            let nest = Nest { kernel, ..nest.clone() };
            (self.get(&nest), NestPlan::new(nest))
        };
        Some(Versions { condition, both: kernels.map(version) })
    }
}

/// A kernel in two versions: for where a condition does not hold, and for where it holds.
pub(super) struct Versions {
    condition: Condition,
    both: [(Arc<Tiered>, NestPlan); 2],
}

impl Versions {
    /// Both kernels.
    pub fn both(&self) -> &[(Arc<Tiered>, NestPlan); 2] {
        &self.both
    }
    /// Announces so many runs.
    pub fn expect(&self, runs: usize) {
        for (tier, nest) in &self.both {
            let runs = nest.places().saturating_mul(runs.div_ceil(2));
            tier.expect_runs(nest.lanes, nest.steps.saturating_mul(runs), runs);
        }
    }
    /// The nests of both.
    pub fn nests(&self) -> [&NestPlan; 2] {
        self.both.each_ref().map(|(_, nest)| nest)
    }
    /// The one that does more.
    pub fn larger(&self) -> &(Arc<Tiered>, NestPlan) {
        let [no, yes] = &self.both;
        if no.1.kernel.body.len() > yes.1.kernel.body.len() { no } else { yes }
    }
}

/// A kernel with its operands.
pub(super) enum KernelRun<'a> {
    /// Inside loops.
    Nest(NestRun<'a>),
    /// Of one step, which threads share.
    Shared(&'a Tiered, usize, Box<[Spot<'a>]>),
}

impl<'a> KernelRun<'a> {
    /// For so many steps of the loops around.
    pub fn new(tier: &'a Tiered, nest: &'a NestPlan, operands: impl Iterator<Item = Spot<'a>> + Clone, counts: Steps) -> KernelRun<'a> {
        match nest.plain() && tier.shared(nest.lanes) {
            true => KernelRun::Shared(tier, nest.lanes, operands.collect()),
            false => KernelRun::Nest(tier.nest(nest, operands, counts)),
        }
    }
    /// Runs at these steps of the loops around.
    #[inline]
    pub fn run(&self, k: &Steps) {
        match self {
            KernelRun::Nest(nest) => nest.run(k),
            KernelRun::Shared(tier, lanes, spots) => shared(tier, *lanes, spots, k),
        }
    }
}

/// Apart from the calls of small kernels, whose frame its operands would widen.
#[inline(never)]
fn shared(tier: &Tiered, lanes: usize, spots: &[Spot], k: &Steps) {
    let now: SmallVec<[Operand; 8]> = spots.iter().map(|s| s.at(k)).collect();
    tier.run(&now, lanes, 1, 0);
}

/// A kernel in two versions with its operands; none where nothing is to be done.
pub(super) struct Either<'a> {
    condition: &'a Condition,
    /// The number of the step.
    first: i64,
    spots: SmallVec<[Spot<'a>; 8]>,
    runs: [Option<KernelRun<'a>>; 2],
}

impl<'a> Either<'a> {
    /// For so many steps of the loops around.
    pub fn new(versions: &'a Versions, spots: SmallVec<[Spot<'a>; 8]>, counts: Steps) -> Either<'a> {
        let version = |(tier, nest): &'a (Arc<Tiered>, NestPlan)| {
            let run = || KernelRun::new(tier, nest, spots.iter().copied(), counts);
            (!nest.keeps(&spots)).then(run)
        };
        let runs = versions.both.each_ref().map(version);
        Either { condition: &versions.condition, first: versions.both[0].1.first, spots, runs }
    }
    /// Runs the version that the condition tells, at these steps of the loops around.
    pub fn run(&self, k: &Steps) {
        let holds = self.condition.holds(self.first, |mem, dtype| bits_at(&self.spots[mem.0 as usize].at(k), dtype));
        if let Some(run) = &self.runs[usize::from(holds)] {
            run.run(k);
        }
    }
}
