//! What parts of a step reach of the step's temporaries: a list of which some part reaches beyond its own is not run.

use super::inner::InnerKernel;
use super::mixed::{At, Item, MixedLoop, Place, Work};
use super::{Lowered, refuse};
use crate::kernel::{LEVELS, Nest, Use};
use crate::types::shape::count;
use smallvec::SmallVec;

/// Bytes from a place's first element on: from where to where.
type Reach = (i128, i128);

impl MixedLoop {
    /// Refuses a list of which a part reads or writes beyond the temporaries (of so many bytes) that its operands name: a fault of planning.
    ///
    /// # Panics
    /// In tests, in place of the refusal.
    pub(super) fn check_reach(&self, slots: &[usize]) -> Lowered<()> {
        let bounds = Bounds { slots, steps: [1; LEVELS - 1] };
        let mut written = self.writes.iter().map(|w| &w.2).chain(&self.stop);
        let within = self.items.iter().all(|item| bounds.holds(item)) && written.all(|place| bounds.array(place));
        debug_assert!(within, "a part that reaches beyond its memory");
        if within { Ok(()) } else { refuse("a part that would reach beyond its memory") }
    }
}

struct Bounds<'a> {
    /// Bytes of each temporary.
    slots: &'a [usize],
    /// How many steps the loops around run at most, by level.
    steps: [usize; LEVELS - 1],
}

impl Bounds<'_> {
    fn holds(&self, item: &Item) -> bool {
        let operands = || item.ins.iter().chain(&item.outs);
        match &item.work {
            Work::Nest(nest) => self.nest(nest, operands()),
            Work::Loop(inner) => self.kernel(inner) && operands().all(|place| self.array(place)),
            Work::For(inner) => {
                let mut bounds = Bounds { slots: self.slots, steps: self.steps };
                bounds.steps[inner.level - 1] = inner.count.most();
                let written = inner.writes.iter().flatten().chain(&inner.stop);
                operands().all(|place| self.array(place))
                    && [&inner.step].into_iter().chain(&inner.ran).all(|place| self.array(place))
                    && written.into_iter().all(|place| bounds.array(place))
                    && inner.items.iter().all(|item| bounds.holds(item))
            }
            _ => operands().all(|place| self.array(place)),
        }
    }

    fn kernel(&self, inner: &InnerKernel) -> bool {
        self.nest(&inner.nest, inner.operands.iter())
            && inner
                .stopped
                .iter()
                .chain(&inner.failed)
                .chain(inner.votes.iter().map(|v| &v.0))
                .chain(&inner.ran)
                .all(|place| self.array(place))
    }

    fn nest<'a>(&self, nest: &Nest, operands: impl Iterator<Item = &'a Place>) -> bool {
        let uses: SmallVec<[Use; 16]> = Use::of(&nest.kernel);
        operands.zip(uses).enumerate().all(|(k, (place, of))| {
            let (low, high) = nest.reach(k, of);
            self.within(place, (low as i128, high as i128))
        })
    }

    /// All elements of a place.
    fn array(&self, place: &Place) -> bool {
        self.within(place, (0, (count(&place.shape) * place.dtype.size()) as i128))
    }

    fn within(&self, place: &Place, (low, high): Reach) -> bool {
        let At::Slot(slot) = place.at else { return true };
        let size = place.dtype.size() as i128;
        let spans = place.along.iter().zip(self.steps).map(|(&far, steps)| far as i128 * size * (steps as i128 - 1));
        let (low, high) = spans.fold((low, high), |(low, high), span| (low + span.min(0), high + span.max(0)));
        let first = place.first as i128 * size;
        high <= low || first + low >= 0 && first + high <= self.slots[slot] as i128
    }
}
