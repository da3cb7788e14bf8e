//! Addresses of functions of numbers.

use crate::errors::{guard, to_py};
use pyo3::exceptions::PyBaseException;
use pyo3::prelude::*;
use scan_core::prelude::{self as core, Array};
use std::sync::Arc;

/// Addresses of a function of numbers, which are good as long as this lives.
#[pyclass(frozen, module = "rscan._native")]
pub struct EntryPoint(core::EntryPoint);

impl EntryPoint {
    /// Of a function, with a value per input that is fixed.
    ///
    /// # Errors
    /// `E0541` where the function has no address.
    pub fn new(py: Python<'_>, function: &Arc<core::Function>, fixed: &[Option<Array>]) -> PyResult<EntryPoint> {
        guard(py, || core::EntryPoint::new(function.clone(), fixed.to_vec()).map(EntryPoint))
    }
}

#[pymethods]
impl EntryPoint {
    /// dtypes of the arguments, and of the result.
    #[getter]
    fn dtypes(&self) -> (Vec<&'static str>, &'static str) {
        (self.0.params().iter().map(|dtype| dtype.name()).collect(), self.0.result().name())
    }
    /// That of a function of the numbers.
    #[getter]
    fn address(&self, py: Python<'_>) -> PyResult<usize> {
        guard(py, || self.0.address())
    }
    /// That of `double f(int n, double *x, void *context)`.
    #[getter]
    fn list_address(&self, py: Python<'_>) -> PyResult<usize> {
        guard(py, || self.0.list_address())
    }
    /// That of `int f(double *x, intptr_t n, double *result, void *context)`.
    #[getter]
    fn window_address(&self, py: Python<'_>) -> PyResult<usize> {
        guard(py, || self.0.window_address())
    }
    /// The context of the last two.
    #[getter]
    fn context(&self) -> usize {
        self.0.context()
    }
    /// What was wrong in the last call that failed.
    #[getter]
    fn error<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBaseException>> {
        self.0.last_error().map(|e| to_py(py, &e).value(py).clone())
    }
}
