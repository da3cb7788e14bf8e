//! What parts of a step reach of the memory that their operands name.

use super::bounds::{Bounds, Checked, ensure};
use crate::kernel::{Nest, Use};
use crate::plan::list::{InnerList, Item, Place, Work};
use crate::types::DType;
use crate::types::shape::count;

/// Bytes from a place's first element on: from where to where.
pub(super) type Reach = (i128, i128);

impl Bounds<'_> {
    /// All elements of a place.
    pub(super) fn array(&self, place: &Place) -> Checked {
        self.within(place, (0, place.bytes() as i128))
    }
    /// What a part touches, and the parts of loops in it.
    pub(super) fn touched(&self, item: &Item) -> Checked {
        let operands = || item.ins.iter().chain(&item.outs);
        match &item.work {
            Work::Nest(nest) => self.nest(nest, operands()),
            Work::Loop(inner) => {
                self.arrays(operands())?;
                let told = inner.stopped.iter().chain(&inner.failed).chain(inner.votes.iter().map(|v| &v.0));
                self.arrays(told.chain(&inner.ran).chain(inner.count.place()))?;
                self.nest(&inner.nest, inner.operands.iter())
            }
            Work::For(inner) => {
                self.arrays(operands())?;
                self.arrays([&inner.step].into_iter().chain(&inner.ran).chain(inner.count.place()))?;
                let within = self.within_loop(inner);
                within.arrays(inner.writes.iter().flatten().chain(&inner.stop))?;
                let touched = |(k, item): (usize, &Item)| within.touched(item).map_err(|text| format!("part {k} of a loop: {text}"));
                inner.items.iter().enumerate().try_for_each(touched)
            }
            _ => self.arrays(operands()),
        }
    }
    /// The same in the steps of a loop.
    pub(super) fn within_loop(&self, inner: &InnerList) -> Self {
        let mut within = *self;
        if let Some(steps) = within.steps.get_mut(inner.level.wrapping_sub(1)) {
            *steps = inner.count.most();
        }
        Bounds { level: inner.level.min(within.steps.len()), ..within }
    }
    fn arrays<'p>(&self, mut places: impl Iterator<Item = &'p Place>) -> Checked {
        places.try_for_each(|place| self.array(place))
    }
    /// A number of such a dtype.
    pub(super) fn flag(&self, place: &Place, dtype: DType) -> Checked {
        ensure(place.dtype == dtype && count(&place.shape) == 1, || format!("{place} is no {dtype}"))
    }
    /// So much of a place lies in its memory, at all steps of the loops around.
    pub(super) fn within(&self, place: &Place, reach: Reach) -> Checked {
        let (bytes, dtype) = self.memory(place.at)?;
        ensure(dtype.is_none_or(|dtype| dtype == place.dtype), || format!("{} holds no {}", place.at, place.dtype))?;
        let still = place.along[self.level..].iter().all(|&far| far == 0);
        ensure(still, || format!("{place} moves with a loop that is not around it"))?;
        let (low, high) = self.span(place, reach);
        ensure(high <= low || low >= 0 && high <= bytes as i128, || format!("{place} reaches over {low} to {high} of {bytes} bytes"))
    }
    /// The bytes of a memory over which such a part of a place reaches at all steps of the loops around.
    pub(super) fn span(&self, place: &Place, (low, high): Reach) -> Reach {
        let size = place.dtype.size() as i128;
        let spans = place.along.iter().zip(self.steps).map(|(&far, steps)| far as i128 * size * (steps as i128 - 1));
        let (low, high) =
            if high <= low { (0, 0) } else { spans.fold((low, high), |(low, high), span| (low + span.min(0), high + span.max(0))) };
        let first = place.first as i128 * size;
        (first + low, first + high)
    }
    /// What a nest touches of its operands.
    pub(super) fn nest<'p>(&self, nest: &Nest, operands: impl Iterator<Item = &'p Place>) -> Checked {
        let uses = Use::of(&nest.kernel);
        for (k, place) in operands.enumerate() {
            ensure(nest.kernel.mems.iter().nth(k).is_some_and(|mem| mem.dtype == place.dtype), || format!("m{k} is no {}", place.dtype))?;
            let (low, high) = nest.reach(k, uses[k]);
            self.within(place, (low as i128, high as i128))?;
            if uses[k] != Use::Read {
                self.written(place)?;
            }
        }
        Ok(())
    }
}
