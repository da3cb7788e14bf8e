//! Loops under construction.

use crate::errors::{guard, misuse};
use crate::var::{Var, unwrap_pairs, wrap};
use pyo3::prelude::*;
use scan_core::prelude::{self as core, LoopOptions, Span};
use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard};

/// A loop under construction: placeholders first, then what the step made of them.
#[pyclass(frozen, module = "rscan._native")]
pub struct LoopBuilder(Mutex<Option<core::LoopBuilder>>);

impl LoopBuilder {
    fn slot(&self) -> MutexGuard<'_, Option<core::LoopBuilder>> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }
}

fn open(builder: &mut Option<core::LoopBuilder>) -> PyResult<&mut core::LoopBuilder> {
    builder.as_mut().ok_or_else(|| misuse("the loop is finished"))
}

#[pymethods]
impl LoopBuilder {
    #[new]
    #[pyo3(signature = (name=None, n_steps=None, go_backwards=false, truncate=None, strict=false, span=0))]
    fn new(
        py: Python<'_>,
        name: Option<String>,
        n_steps: Option<Var>,
        go_backwards: bool,
        truncate: Option<usize>,
        strict: bool,
        span: u32,
    ) -> PyResult<LoopBuilder> {
        let options = LoopOptions { name, n_steps: n_steps.map(|v| v.0), go_backwards, truncate, strict, span: Span::from_raw(span) };
        guard(py, || Ok(LoopBuilder(Mutex::new(Some(core::LoopBuilder::new(options)?)))))
    }
    /// Adds a sequence; its slices of one step, in the order of the taps.
    #[pyo3(signature = (x, taps, name=None))]
    fn sequence(&self, py: Python<'_>, x: &Var, taps: Vec<i64>, name: Option<&str>) -> PyResult<Vec<Var>> {
        let mut slot = self.slot();
        let builder = open(&mut slot)?;
        guard(py, || builder.sequence(&x.0, &taps, name).map(|v| wrap(&v)))
    }
    /// Adds a state; what the step sees of it, in the order of the taps.
    #[pyo3(signature = (initial, taps, name=None))]
    fn state(&self, py: Python<'_>, initial: &Var, taps: Vec<i64>, name: Option<&str>) -> PyResult<Vec<Var>> {
        let mut slot = self.slot();
        let builder = open(&mut slot)?;
        guard(py, || builder.state(&initial.0, &taps, name).map(|v| wrap(&v)))
    }
    /// Declares a variable as passed explicitly; `fixed`: as an input with the value that it has when the loop begins.
    #[pyo3(signature = (var, fixed=false))]
    fn pass_(&self, py: Python<'_>, var: &Var, fixed: bool) -> PyResult<()> {
        let mut slot = self.slot();
        let builder = open(&mut slot)?;
        guard(py, || {
            if fixed {
                builder.pass_fixed(&var.0)
            } else {
                builder.pass(&var.0)
            }
            Ok(())
        })
    }
    /// The index of the step, an int64 scalar.
    fn step_index(&self, py: Python<'_>) -> PyResult<Var> {
        let mut slot = self.slot();
        let builder = open(&mut slot)?;
        guard(py, || Ok(Var(builder.step_index())))
    }
    /// Ends the loop: `(outputs, updates, steps)`. `outputs` are pairs of a state's position (or `None`) and the value after the step.
    #[pyo3(signature = (outputs, updates, until=None))]
    fn finish(
        &self,
        py: Python<'_>,
        outputs: Vec<(Option<usize>, Var)>,
        updates: Vec<(Var, Var)>,
        until: Option<Var>,
    ) -> PyResult<(Vec<Var>, Vec<(Var, Var)>, Var)> {
        let builder = self.slot().take().ok_or_else(|| misuse("the loop is finished"))?;
        let outputs: Vec<_> = outputs.into_iter().map(|(i, v)| (i, v.0)).collect();
        let updates = unwrap_pairs(&updates);
        let result = guard(py, || builder.finish(&outputs, &updates, until.as_ref().map(|u| &u.0)))?;
        let after = result.updates.into_iter().map(|(a, b)| (Var(a), Var(b))).collect();
        Ok((wrap(&result.outputs), after, Var(result.steps)))
    }
}

/// What the expressions depend on and was made since node number `since`, with the older expressions that it uses directly;
/// users before inputs.
#[pyfunction]
pub fn recent(vars: Vec<Var>, since: u64) -> Vec<Var> {
    let mut stack: Vec<core::Var> = vars.into_iter().map(|v| v.0).collect();
    let mut seen = HashSet::new();
    let mut found = vec![];
    while let Some(var) = stack.pop() {
        if !seen.insert(var.key()) {
            continue;
        }
        if let Some((_, ins, _)) = var.owner().filter(|_| var.key().0 >= since) {
            stack.extend(ins.iter().cloned());
        }
        found.push(Var(var));
    }
    found
}
