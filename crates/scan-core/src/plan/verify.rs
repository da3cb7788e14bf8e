//! What holds of every plan that is run.
//!
//! - **Memory**: what a part names is there, has the dtype that is said, and reaches over all that the part touches.
//! - **Layout**: temporaries that are wanted at the same time have no byte in common.
//! - **Order**: what a part reads of a temporary, or of a row that the step writes, some part before it, or the step before, has written.
//! - **Parts**: kernels are well-formed, elements that are moved lie within their operands, ops get what they take.
//! - **States**: rows are written where steps write them, and no part writes a row that others still read.

mod bounds;
mod defined;
mod layout;
mod loop_kernel;
mod parts;
mod reach;
mod states;

use self::bounds::{Bounds, Checked, ensure};
use self::states::{before, windows};
use super::LoopKernel;
use super::list::StepList;
use crate::base::{Diagnostic, Id, Result};
use crate::ir::Scan;
use crate::kernel::LEVELS;
use crate::types::DType;

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
