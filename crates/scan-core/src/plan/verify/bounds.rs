//! What a list may touch.

use crate::base::Id;
use crate::ir::Scan;
use crate::kernel::LEVELS;
use crate::plan::StepList;
use crate::plan::list::{At, Place, STEP};
use crate::plan::print::known;
use crate::types::{DType, Type};

pub(super) type Checked<T = ()> = Result<T, String>;

pub(super) fn ensure(holds: bool, text: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(text()) }
}

/// Bytes of a value of this type; `None` where an extent is not known.
pub(super) fn bytes_of(ty: &Type) -> Option<usize> {
    known(ty)?.iter().try_fold(ty.dtype.size(), |all, &n| all.checked_mul(n))
}

/// What a list may touch, at the steps of the loops around.
#[derive(Clone, Copy)]
pub(super) struct Bounds<'a> {
    pub(super) plan: &'a StepList,
    pub(super) scan: &'a Scan,
    /// How many steps the loops around run at most, by level.
    pub(super) steps: [usize; LEVELS - 1],
    /// How many there are.
    pub(super) level: usize,
}

impl<'a> Bounds<'a> {
    /// Bytes of a memory, and its dtype, where it has one.
    pub(super) fn memory(&self, at: At) -> Checked<(usize, Option<DType>)> {
        let typed = |ty: &Type| bytes_of(ty).map(|n| (n, Some(ty.dtype))).ok_or_else(|| format!("{at} has extents that are not known"));
        let before = &self.plan.before;
        match at {
            At::Slot(slot) => self.plan.temporaries.get(slot).map(|t| (t.bytes, None)).ok_or_else(|| format!("there is no {at}")),
            At::Seq(id) => match self.scan.seqs.get(id) {
                Some(_) => typed(before.ty(before.params()[self.scan.seq_param(id)])),
                None => Err(format!("there is no {at}")),
            },
            At::Before(k) => before.results().get(k).map_or_else(|| Err(format!("there is no {at}")), |&v| typed(before.ty(v))),
            At::Row(id, offset) => {
                let Some(state) = self.scan.states.get(id) else { return Err(format!("there is no {at}")) };
                let known = state.reads.contains(&offset) || state.writes.contains(&offset) || self.plan.in_place[id.idx()] && offset == 0;
                ensure(known, || format!("no step names {at}"))?;
                let window = &self.plan.windows[id.idx()];
                Ok((window.row_bytes(), Some(window.dtype)))
            }
        }
    }
    /// What a part writes is a temporary, or a row that steps write.
    pub(super) fn written(&self, place: &Place) -> Checked {
        match place.at {
            At::Slot(slot) => ensure(slot != STEP, || "the number of the step is written".into()),
            At::Row(id, offset) => {
                let Some(state) = self.scan.states.get(id) else { return Err(format!("there is no {}", place.at)) };
                let in_place = self.plan.in_place[id.idx()];
                let own = if in_place { offset == 0 } else { state.writes.contains(&offset) && !state.reads.contains(&offset) };
                // A row that no later step reads is memory like another, once the last part has read it.
                let free = own || !in_place && offset == 0 && state.one_by_one();
                ensure(free, || format!("{} is written, which steps read", place.at))
            }
            at => Err(format!("{at} is written")),
        }
    }
}
