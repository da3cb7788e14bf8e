//! What holds of every plan that is run.
//!
//! - **Memory**: what a part names is there, has the dtype that is said, and reaches over all that the part touches.
//! - **Layout**: temporaries that are wanted at the same time have no byte in common.
//! - **Order**: what a part reads of a temporary, or of a row that the step writes, some part before it, or the step before, has written.
//! - **Parts**: kernels are well-formed, elements that are moved lie within their operands, ops get what they take.
//! - **States**: rows are written where steps write them, and no part writes a row that others still read.

mod defined;
mod layout;
mod loop_kernel;
mod parts;
mod reach;

use super::list::{At, Place, StepList};
use super::print::known;
use super::{LoopKernel, Window};
use crate::base::{Diagnostic, Id, Result};
use crate::ir::{Graph, Scan};
use crate::kernel::LEVELS;
use crate::types::{DType, Type};

type Checked<T = ()> = std::result::Result<T, String>;

fn ensure(holds: bool, text: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(text()) }
}

/// Fails where the list of a loop is not well-formed: a fault of whoever made it.
///
/// # Errors
/// `E9999` with what is wrong.
pub fn verify(plan: &StepList, scan: &Scan) -> Result<()> {
    check(plan, scan).map_err(|text| Diagnostic::internal(format!("a plan that is not well-formed: {text}")))
}

/// What is asked of a list wherever one is made: that no part reaches beyond the memory that its operands name.
///
/// # Errors
/// What does, in words.
pub(crate) fn reaches(plan: &StepList, scan: &Scan) -> Checked {
    let bounds = Bounds { plan, scan, steps: [1; LEVELS - 1], level: 0 };
    plan.items.iter().enumerate().try_for_each(|(k, item)| bounds.touched(item).map_err(|text| format!("part {k}: {text}")))?;
    plan.writes.iter().map(|w| &w.2).chain(&plan.stop).try_for_each(|place| bounds.array(place))
}

/// The same as [`verify`], of a kernel.
///
/// # Errors
/// `E9999` with what is wrong.
pub fn verify_kernel(plan: &LoopKernel, scan: &Scan) -> Result<()> {
    loop_kernel::check(plan, scan).map_err(|text| Diagnostic::internal(format!("a plan that is not well-formed: {text}")))
}

fn check(plan: &StepList, scan: &Scan) -> Checked {
    windows(&plan.windows, scan)?;
    before(&plan.before, scan)?;
    ensure(plan.in_place.len() == plan.windows.len(), || "states that are written in place or not".into())?;
    layout::check(plan)?;
    let bounds = Bounds { plan, scan, steps: [1; LEVELS - 1], level: 0 };
    plan.items.iter().enumerate().try_for_each(|(k, item)| bounds.item(item, None).map_err(|text| format!("part {k}: {text}")))?;
    reaches(plan, scan)?;
    for (k, (id, offset, place)) in plan.writes.iter().enumerate() {
        let once = plan.writes[..k].iter().all(|w| (w.0, w.1) != (*id, *offset)) && plan.in_place.get(id.idx()) == Some(&false);
        ensure(once, || format!("row {offset} of state {} is written twice", id.idx()))?;
        let Some(state) = scan.states.get(*id) else { return Err("a row of no state".into()) };
        let window = &plan.windows[id.idx()];
        ensure(state.writes.contains(offset), || format!("row {offset} of state {}, which no step writes", id.idx()))?;
        ensure(place.shape == window.shape && place.dtype == window.dtype, || format!("a row of state {} of another type", id.idx()))?;
    }
    plan.stop.iter().try_for_each(|stop| bounds.flag(stop, DType::Bool))?;
    ensure(scan.until == plan.stop.is_some(), || "a loop that stops has a condition".into())?;
    defined::check(plan, scan)
}

/// How states are kept fits what steps read and write.
fn windows(windows: &[Window], scan: &Scan) -> Checked {
    ensure(windows.len() == scan.states.len(), || format!("{} windows of {} states", windows.len(), scan.states.len()))?;
    for (state, w) in scan.states.iter().zip(windows) {
        let newest = w.span == state.span() && Some(w.first_write) == state.writes.iter().copied().min();
        ensure(newest, || "a window that does not reach over the rows of its state".into())?;
        ensure(w.carried.len() == w.span && w.far.iter().all(|&j| j < w.span), || "a window that hands on other rows".into())?;
        let seen = |j: usize| j == w.span || w.carried[j] || w.far.contains(&j);
        ensure(state.reads.iter().all(|&j| seen(j)), || "a row that steps read is not handed on".into())?;
    }
    Ok(())
}

/// What is computed before the loop has the parameters of the step.
fn before(before: &Graph, scan: &Scan) -> Checked {
    let fits = before.params().iter().zip(scan.body.params()).all(|(&a, &b)| {
        let (a, b) = (before.ty(a), scan.body.ty(b));
        a.dtype == b.dtype && a.rank() == b.rank()
    });
    ensure(fits && before.params().len() == scan.body.params().len(), || "what is computed before has other parameters".into())
}

/// Bytes of a value of this type; `None` where an extent is not known.
fn bytes_of(ty: &Type) -> Option<usize> {
    known(ty)?.iter().try_fold(ty.dtype.size(), |all, &n| all.checked_mul(n))
}

/// What a list may touch, at the steps of the loops around.
#[derive(Clone, Copy)]
struct Bounds<'a> {
    plan: &'a StepList,
    scan: &'a Scan,
    /// How many steps the loops around run at most, by level.
    steps: [usize; LEVELS - 1],
    /// How many there are.
    level: usize,
}

impl<'a> Bounds<'a> {
    /// Bytes of a memory, and its dtype, where it has one.
    fn memory(&self, at: At) -> Checked<(usize, Option<DType>)> {
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
    fn written(&self, place: &Place) -> Checked {
        match place.at {
            At::Slot(slot) => ensure(slot != super::list::STEP, || "the number of the step is written".into()),
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
