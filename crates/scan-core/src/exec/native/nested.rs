//! Loops in a step that are one kernel with their operands, found once for all steps in which no memory moves; how many steps loops make.

use super::halt::Halt;
use super::piece::Compiled;
use super::tier::Tiered;
use crate::backend::cpu::{NestRun, Operand, Spot, Steps, clear, integer_at, truth_at, with_slices};
use crate::ir::EvalCx;
use crate::plan::list::{Count, InnerKernel, Place};
use crate::plan::votes::Votes;
use crate::types::DType;
use crate::types::shape::count;

/// So many instructions of a kernel run between two looks at whether the caller wants to stop.
const PORTION: usize = 1 << 22;

/// What a loop in the step of a kernel is.
pub(super) const WITHIN: &str = "a loop of the kernel of the loop around";

/// The number of steps of a loop in a step.
pub(super) enum Counted<'a> {
    Known(usize),
    Read(Spot<'a>, DType),
}

impl Counted<'_> {
    #[inline]
    pub(super) fn at(&self, k: &Steps) -> usize {
        match self {
            Counted::Known(n) => *n,
            Counted::Read(spot, dtype) => usize::try_from(integer_at(&spot.at(k), *dtype)).unwrap_or(0),
        }
    }
}

/// A loop in a step that is one kernel.
pub(super) struct LoopRun<'a> {
    nest: NestRun<'a>,
    tier: &'a Tiered,
    pub(super) count: Counted<'a>,
    /// Where it tells that it has stopped.
    stopped: Option<Spot<'a>>,
    /// Where its lanes vote on that at each step.
    votes: Option<(Spot<'a>, Votes)>,
    /// Where it tells, in so many bools, that the law must run the loop around.
    failed: Option<(Spot<'a>, usize)>,
    /// Where it tells how many steps it ran.
    ran: Option<Spot<'a>>,
    /// Steps between two looks at whether the caller wants to stop.
    portion: usize,
}

impl<'a> LoopRun<'a> {
    /// Of such a loop, with what finds its places.
    pub(super) fn new(inner: &'a InnerKernel<Compiled>, at: &dyn Fn(&Place) -> Spot<'a>, counts: Steps) -> LoopRun<'a> {
        let Compiled { tier, nest } = &inner.nest;
        let work = nest.lanes * tier.size();
        LoopRun {
            tier,
            nest: tier.nest(nest, inner.operands.iter().map(at), counts),
            count: counted(&inner.count, at),
            stopped: inner.stopped.as_ref().map(at),
            votes: inner.votes.as_ref().map(|(place, votes)| (at(place), *votes)),
            failed: inner.failed.as_ref().map(|place| (at(place), count(&place.shape))),
            ran: inner.ran.as_ref().map(at),
            portion: if inner.votes.is_some() { 1 } else { (PORTION / work.max(1)).max(1) },
        }
    }

    /// True where it could not do what the law does: nothing that it made counts then.
    fn has_failed(&self, k: &Steps) -> bool {
        self.failed.is_some_and(|(spot, lanes)| with_bools(&spot.at(k), lanes, |failed| failed.contains(&1)))
    }

    /// All n steps; how many ran.
    pub(super) fn run(&self, cx: &mut EvalCx, k: &Steps, n: usize) -> Result<usize, Halt> {
        let (mut done, mut stops) = (0, false);
        self.stopped.iter().for_each(|spot| clear(&spot.at(k), 1));
        self.failed.iter().for_each(|(spot, lanes)| clear(&spot.at(k), *lanes));
        while done < n && !stops {
            if done > 0 {
                cx.check_clock()?;
            }
            done += self.tier.watched(cx, || self.nest.run_part(k, done, self.portion.min(n - done)))?;
            stops = self.stopped.is_some_and(|spot| truth_at(&spot.at(k), DType::Bool))
                || self.votes.is_some_and(|(spot, votes)| with_bools(&spot.at(k), votes.voters, |cast| votes.stop(cast)));
            // What comes of it might never stop.
            if self.has_failed(k) {
                return Err(Halt::Refused);
            }
        }
        self.ran.iter().for_each(|ran| tell(ran, k, done));
        Ok(done)
    }
}

/// What bools say.
fn with_bools(at: &Operand, n: usize, of: impl FnOnce(&[u8]) -> bool) -> bool {
    let mut said = false;
    with_slices::<u8, _>([at; 3], [n, 0, 0], |bools, _, _| said = of(bools));
    said
}

/// Writes a number of steps.
#[inline]
pub(super) fn tell(to: &Spot, k: &Steps, n: usize) {
    with_slices::<i64, _>([&to.at(k); 3], [0, 0, 1], |_, _, to| to[0] = n as i64);
}

pub(super) fn counted<'a>(count: &Count, at: &dyn Fn(&Place) -> Spot<'a>) -> Counted<'a> {
    match count {
        Count::Known(n) => Counted::Known(*n),
        Count::Read(place, _) => Counted::Read(at(place), place.dtype),
    }
}
