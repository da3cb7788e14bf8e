//! Building a loop from a user's step: placeholders first, then what the step made of them.

use super::Var;
use crate::base::{Result, Span};

/// How a loop runs.
#[derive(Clone, Default)]
pub struct LoopOptions {
    /// Its name in prints and errors.
    pub name: Option<String>,
    /// Number of steps (integer scalar); without it the shortest sequence tells.
    pub n_steps: Option<Var>,
    /// Sequences are read from the end.
    pub go_backwards: bool,
    /// The gradient covers the last so many steps.
    pub truncate: Option<usize>,
    /// Captured shared variables must have been passed as non_sequences.
    pub strict: bool,
    /// Where the loop was called.
    pub span: Span,
}

/// A loop under construction.
pub struct LoopBuilder {}

/// What a loop gives.
pub struct LoopResult {
    /// One per output of the step, the rows of all steps stacked (initial rows are not among them).
    pub outputs: Vec<Var>,
    /// Leaves of the shared variables updated in the loop, with their values after it.
    pub updates: Vec<(Var, Var)>,
    /// Number of steps that ran (i64 scalar).
    pub steps: Var,
}

impl LoopBuilder {
    /// Starts a loop.
    ///
    /// # Errors
    /// `E0111` for a constant negative n_steps, or one that is not an integer scalar.
    pub fn new(_options: LoopOptions) -> Result<LoopBuilder> { todo!() }
    /// Adds a sequence; returns its slices of one step, in the order of the taps (`k` is row t+k).
    ///
    /// # Errors
    /// Where it has no axis to scan over, or no taps.
    pub fn sequence(&mut self, _x: &Var, _taps: &[i64], _name: Option<&str>) -> Result<Vec<Var>> { todo!() }
    /// Adds a state with its initial rows (`[-1]` alone: the row itself, without an axis of rows); returns what the step
    /// sees of it, in the order of the taps.
    ///
    /// # Errors
    /// `E0112` for a tap >= 0, `E0104` where rows are missing.
    pub fn state(&mut self, _initial: &Var, _taps: &[i64], _name: Option<&str>) -> Result<Vec<Var>> { todo!() }
    /// Declares a shared variable as passed explicitly (`strict`).
    pub fn pass(&mut self, _var: &Var) { todo!() }
    /// The index of the step (i64 scalar), for use in the step.
    pub fn step_index(&self) -> Var { todo!() }
    /// Ends the loop. `outputs` in the user's order: each with the position of its state (order of [`LoopBuilder::state`]
    /// calls), or `None` for one that the step does not read back. `updates`: shared leaf and its value after the step.
    ///
    /// # Errors
    /// `E0101`…`E0110`, `E0113`, `E0115`: see `base/codes`.
    pub fn finish(self, _outputs: &[(Option<usize>, Var)], _updates: &[(Var, Var)], _until: Option<&Var>) -> Result<LoopResult> { todo!() }
}
