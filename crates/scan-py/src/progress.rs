//! How far a call has come, told to a callable of Python's while the call runs.

use pyo3::prelude::*;
use scan_core::prelude::Walked;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// The time between two words.
const PACE: Duration = Duration::from_millis(100);

/// More steps than anybody counts: a loop that ends by its condition alone.
const ENDLESS: usize = 1 << 40;

/// One call, and whom it tells.
pub struct Telling<'a> {
    callback: &'a Py<PyAny>,
    began: Instant,
    last: Cell<Instant>,
    told: Cell<bool>,
    /// Where the evaluation is.
    pub walked: Cell<Walked>,
}

impl<'a> Telling<'a> {
    /// A call that begins now.
    pub fn new(callback: &'a Py<PyAny>) -> Telling<'a> {
        let now = Instant::now();
        Telling { callback, began: now, last: Cell::new(now), told: Cell::new(false), walked: Cell::default() }
    }
    /// Tells, where it is time.
    ///
    /// # Errors
    /// What the callback raises, which stops the call.
    pub fn tell(&self, py: Python<'_>) -> PyResult<()> {
        if self.last.get().elapsed() < PACE {
            return Ok(());
        }
        let Walked { done, steps } = self.walked.get();
        let most = (1..ENDLESS).contains(&steps).then_some(steps);
        self.told.set(true);
        self.callback.call1(py, (done, most, self.began.elapsed().as_secs_f64()))?;
        self.last.set(Instant::now());
        Ok(())
    }
    /// The call is over.
    ///
    /// # Errors
    /// What the callback's `close` raises.
    pub fn close(&self, py: Python<'_>) -> PyResult<()> {
        match self.callback.bind(py).getattr_opt("close")? {
            Some(close) if self.told.get() => close.call0().map(drop),
            _ => Ok(()),
        }
    }
}
