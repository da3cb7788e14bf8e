//! Sessions: functions that are given the rows of their sequences one by one.

use crate::array::{read_numpy, to_numpy};
use crate::call::{Function, Slot};
use crate::caller::Form;
use crate::errors::{carry, guard, guard_py, misuse};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use scan_core::prelude::{self as core, Array, EvalCx, Kind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The base of the class that users see. Rows that need no conversion are taken here; all others go through the method
/// `_step(args, named)`, which converts, or says what is wrong, and comes back with `_step_with`.
#[pyclass(frozen, subclass, module = "rscan._native")]
pub struct Session(OnceLock<Parts>);

struct Parts {
    function: Py<Function>,
    form: Form,
    /// Per sequence, what a row has to be.
    slots: Vec<Slot>,
    state: Mutex<core::Session>,
    /// The last call was long enough to give the interpreter lock away.
    slow: AtomicBool,
}

/// Calls that take longer give the interpreter lock away.
const BRIEF: Duration = Duration::from_micros(20);

#[pymethods]
impl Session {
    #[new]
    #[pyo3(signature = (*_args, **_named))]
    fn new(_args: &Bound<'_, PyTuple>, _named: Option<&Bound<'_, PyDict>>) -> Session {
        Session(OnceLock::new())
    }

    /// Begins, or begins anew. keys: of a dict of results; None for a list. given: per input an array or None.
    fn _begin(
        &self,
        function: &Bound<'_, Function>,
        single: bool,
        keys: Option<Vec<Py<PyAny>>>,
        given: Vec<Option<Bound<'_, PyAny>>>,
    ) -> PyResult<()> {
        let py = function.py();
        let values = given.iter().map(|a| a.as_ref().map(read_numpy).transpose()).collect::<PyResult<Vec<_>>>()?;
        let state = guard_py(py, || {
            let inner = function.get().inner();
            let begun = py.detach(|| inner.session(&mut polled(), &values));
            begun.map_err(|e| crate::errors::to_py(py, &e))
        })?;
        match self.0.get() {
            Some(parts) => *parts.state(py) = state,
            None => self.open(function, Form::of(single, keys), state)?,
        }
        Ok(())
    }
    /// Is what another session is now; once.
    fn _copied(&self, py: Python<'_>, other: &Bound<'_, Session>) -> PyResult<()> {
        let parts = other.get().parts()?;
        let state = parts.state(py).clone();
        self.open(parts.function.bind(py), parts.form.copy(py), state)
    }

    /// One step: the row of each result, given a row of each sequence in their order, or by name.
    #[pyo3(signature = (*args, **named))]
    fn step<'py>(slf: &Bound<'py, Self>, args: &Bound<'py, PyTuple>, named: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let parts = slf.get().parts()?;
        let quick = || named.is_none_or(|n| n.is_empty()).then(|| parts.rows(args)).flatten();
        match quick() {
            Some(rows) => parts.step(py, &rows),
            None => {
                let named = named.cloned().unwrap_or_else(|| PyDict::new(py));
                slf.call_method1(pyo3::intern!(py, "_step"), (args, named))
            }
        }
    }
    /// A step with plain arrays of the types of the rows.
    #[pyo3(signature = (*args))]
    fn _step_with<'py>(&self, args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        let parts = self.parts()?;
        parts.step(args.py(), &arrays(args)?)
    }
    /// Up to n steps with plain arrays of rows.
    #[pyo3(signature = (n, *args))]
    fn _run_with<'py>(&self, n: usize, args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        let (parts, py, rows) = (self.parts()?, args.py(), arrays(args)?);
        let outs = guard(py, || py.detach(|| parts.locked().run(&mut polled(), n, &rows)))?;
        parts.form.results(py, outs, true)
    }

    /// The states: names and values.
    fn _states<'py>(&self, py: Python<'py>) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
        let (names, values) = {
            let state = self.parts()?.state(py);
            (state.steps().states(), state.states())
        };
        names.into_iter().zip(values).map(|(name, value)| Ok((name, to_numpy(py, value)?))).collect()
    }
    /// The states as bytes.
    fn snapshot<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let parts = self.parts()?;
        Ok(PyBytes::new(py, &guard(py, || parts.state(py).snapshot())?))
    }
    /// Goes to where a session of the same function was.
    fn restore(&self, py: Python<'_>, snapshot: &[u8]) -> PyResult<()> {
        let parts = self.parts()?;
        guard(py, || parts.state(py).restore(snapshot))
    }
    /// Writes the shared variables that the function updates.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        let parts = self.parts()?;
        let function = parts.function.bind(py).get();
        guard(py, || py.detach(|| function.inner().commit(&parts.locked())))
    }
    /// Number of steps so far.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.parts()?.state(py).len())
    }
    /// A session without steps is one, too.
    fn __bool__(&self) -> bool {
        true
    }
    /// True where there are no more steps.
    #[getter]
    fn stopped(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.parts()?.state(py).stopped())
    }
}

/// One step of many sessions: the rows that they make in the form of their results (None where all failed), and of those that failed the
/// position and the exception.
#[pyfunction]
pub fn step_all<'py>(
    py: Python<'py>,
    sessions: Vec<Bound<'py, Session>>,
    rows: Vec<Bound<'py, PyAny>>,
) -> PyResult<(Option<Bound<'py, PyAny>>, Vec<(usize, Py<PyAny>)>)> {
    let parts = sessions.iter().map(|s| s.get().parts()).collect::<PyResult<Vec<_>>>()?;
    let rows = rows.iter().map(read_numpy).collect::<PyResult<Vec<_>>>()?;
    // Locks are taken in the order of addresses, so that no two callers wait for each other.
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_unstable_by_key(|&i| std::ptr::from_ref(parts[i]).addr());
    let twice = order.windows(2).find(|w| std::ptr::eq(parts[w[0]], parts[w[1]]));
    let stepped = guard(py, || {
        if let Some([a, b]) = twice {
            let text = format!("sessions {} and {} are the same one", a.min(b), a.max(b));
            return Err(core::Diagnostic::new(Kind::Value, "E0532", text));
        }
        py.detach(|| {
            let mut locked: Vec<(usize, MutexGuard<core::Session>)> = order.iter().map(|&i| (i, parts[i].locked())).collect();
            let mut states: Vec<(usize, &mut core::Session)> = locked.iter_mut().map(|(i, state)| (*i, &mut **state)).collect();
            states.sort_unstable_by_key(|s| s.0);
            let mut states: Vec<&mut core::Session> = states.into_iter().map(|s| s.1).collect();
            core::Session::step_all(&mut polled(), &mut states, &rows)
        })
    })?;
    let failed = stepped.failed.iter().map(|(i, e)| (*i, crate::errors::to_py(py, e).into_value(py).into_any())).collect();
    let some = !stepped.rows.is_empty() || stepped.failed.is_empty();
    let outs = some.then(|| parts[0].form.results(py, stepped.rows, true)).transpose()?;
    Ok((outs, failed))
}

fn arrays(args: &Bound<'_, PyTuple>) -> PyResult<Vec<Array>> {
    args.iter().map(|a| read_numpy(&a)).collect()
}

/// An evaluation that Ctrl-C stops.
fn polled() -> EvalCx<'static> {
    EvalCx::with_poll(&|| Python::attach(|py| py.check_signals()).map_err(|e| carry(Kind::Interrupted, e)))
}

impl Session {
    fn open(&self, function: &Bound<'_, Function>, form: Form, state: core::Session) -> PyResult<()> {
        let py = function.py();
        let inputs = function.get().inner().inputs();
        let row = |&(p, _): &(usize, usize)| Slot::new(py, inputs[p].ty().row());
        let slots = state.steps().streams().iter().map(row).collect::<PyResult<_>>()?;
        let parts = Parts { function: function.clone().unbind(), form, slots, state: Mutex::new(state), slow: AtomicBool::new(true) };
        self.0.set(parts).map_err(|_| misuse("begun twice"))
    }
    fn parts(&self) -> PyResult<&Parts> {
        self.0.get().ok_or_else(|| misuse("used before it was begun"))
    }
}

impl Parts {
    fn locked(&self) -> MutexGuard<'_, core::Session> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// The state, waited for without the interpreter lock: who holds it may want that one.
    fn state(&self, py: Python<'_>) -> MutexGuard<'_, core::Session> {
        loop {
            if let Ok(state) = self.state.try_lock() {
                return state;
            }
            py.detach(|| drop(self.locked()));
        }
    }

    /// Rows that need no conversion.
    fn rows(&self, args: &Bound<'_, PyTuple>) -> Option<Vec<Array>> {
        let fits = args.len() == self.slots.len();
        fits.then(|| self.slots.iter().zip(args).map(|(slot, arg)| slot.read(&arg, false)).collect()).flatten()
    }

    fn step<'py>(&self, py: Python<'py>, rows: &[Array]) -> PyResult<Bound<'py, PyAny>> {
        let run = |state: &mut core::Session| {
            let start = Instant::now();
            let outs = state.step(&mut polled(), rows);
            self.slow.store(start.elapsed() > BRIEF, Ordering::Relaxed);
            outs
        };
        let outs = if self.slow.load(Ordering::Relaxed) {
            guard(py, || py.detach(|| run(&mut self.locked())))?
        } else {
            let mut state = self.state(py);
            guard(py, || run(&mut state))?
        };
        self.form.results(py, outs, true)
    }
}
