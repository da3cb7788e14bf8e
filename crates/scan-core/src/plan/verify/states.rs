//! What holds of the states of lists and kernels, and of what is computed before.

use super::bounds::{Checked, ensure};
use crate::ir::{Graph, Scan};
use crate::plan::Window;

/// How states are kept fits what steps read and write.
pub(super) fn windows(windows: &[Window], scan: &Scan) -> Checked {
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
pub(super) fn before(before: &Graph, scan: &Scan) -> Checked {
    let fits = before.params().iter().zip(scan.body.params()).all(|(&a, &b)| {
        let (a, b) = (before.ty(a), scan.body.ty(b));
        a.dtype == b.dtype && a.rank() == b.rank()
    });
    ensure(fits && before.params().len() == scan.body.params().len(), || "what is computed before has other parameters".into())
}
