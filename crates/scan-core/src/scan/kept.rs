//! The memory of the rows that a loop keeps.

use crate::base::{Diagnostic, Result};
use crate::ir::{Keep, Scan, StateId};
use crate::scan::step::in_step;
use crate::types::memory::{self, Refused};
use std::cell::Cell;

/// Refuses, before the first step, what all rows of n steps cannot have; `row` tells the bytes of a state's row, 0 where that is not
/// known yet, or where its rows are not all kept. A loop that may stop is left to grow.
///
/// # Errors
/// `E0392`.
pub fn foresee(scan: &Scan, n: usize, row: impl Fn(StateId) -> usize) -> Result<()> {
    if scan.until {
        return Ok(());
    }
    let all = || scan.states.enumerate().filter(|(_, state)| state.keep == Keep::All);
    let bytes = all().map(|(id, state)| (n as u128 + state.span() as u128).saturating_mul(row(id) as u128)).fold(0, u128::saturating_add);
    memory::foresee(bytes, 1).map_err(|refused| {
        let name = |id: StateId| format!("`{}`", scan.states[id].name.as_deref().unwrap_or("?"));
        let names: Vec<String> = all().filter(|(id, _)| row(*id) > 0).map(|(id, _)| name(id)).collect();
        let word = if names.len() == 1 { "state" } else { "states" };
        let error = refused.diagnostic(&format!("all rows of {word} {}, of {n} steps", names.join(", ")));
        error.help("where only the last rows of a loop are used it keeps no others")
    })
}

/// Runs what lays out memory of a loop, or makes it grow; that there is none is an error of the loop, in the step that it has come to.
///
/// # Errors
/// `E0392`.
pub fn laid_out<T>(scan: &Scan, step: &Cell<usize>, run: impl FnOnce() -> T) -> Result<T> {
    memory::attempt(run).map_err(|refused| no_rows(refused, scan, step.get()))
}

fn no_rows(refused: Refused, scan: &Scan, step: usize) -> Box<Diagnostic> {
    in_step(refused.diagnostic("the rows of the loop's states"), scan.name.as_deref(), step)
}
