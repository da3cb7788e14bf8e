//! Diagnostics and panics as Python exceptions. No panic leaves the extension as one.

use crate::reserve;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use scan_core::prelude::{Diagnostic, Kind, Result, error_page as page, memory};
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    /// The exception behind a diagnostic of kind `Callback` or `Interrupted` on its way out of this thread.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
    /// Depth of [`guard`] on this thread: panics below it are reported as exceptions, not printed.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// Text and place of the last panic below [`guard`].
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs the body of an entry point: diagnostics and panics come out as Python exceptions.
pub fn guard<T>(py: Python<'_>, body: impl FnOnce() -> Result<T>) -> PyResult<T> {
    guard_py(py, || body().map_err(|e| to_py(py, &e)))
}

/// As [`guard`], for bodies that raise Python exceptions themselves.
pub fn guard_py<T>(py: Python<'_>, body: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    DEPTH.set(DEPTH.get() + 1);
    let result = catch_unwind(AssertUnwindSafe(body));
    DEPTH.set(DEPTH.get() - 1);
    result.unwrap_or_else(|payload| {
        if let Ok(refused) = payload.downcast::<memory::Refused>() {
            return Err(to_py(py, &refused.diagnostic("a copy of an array")));
        }
        let text = PANIC.take().unwrap_or_else(|| "a panic".to_string());
        Err(to_py(py, &Diagnostic::internal(text)))
    })
}

/// Keeps text and place of panics below [`guard`] for the exception; others are printed as before.
pub fn install_hook() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if DEPTH.get() == 0 {
            return before(info);
        }
        let payload = info.payload();
        let text = payload.downcast_ref::<&str>().map(|s| s.to_string()).or_else(|| payload.downcast_ref::<String>().cloned());
        let place = info.location().map(|l| format!(" ({}:{})", l.file(), l.line())).unwrap_or_default();
        PANIC.set(Some(format!("{}{place}", text.unwrap_or_else(|| "a panic".to_string()))));
    }));
}

/// Remembers a Python exception and returns the diagnostic that carries it through the core.
pub fn carry(kind: Kind, error: PyErr) -> Box<Diagnostic> {
    let title = error.to_string();
    RAISED.set(Some(error));
    let code = if kind == Kind::Interrupted { "E0390" } else { "E0391" };
    Diagnostic::new(kind, code, title)
}

/// The exception of a diagnostic: the one that user code raised, or an instance of a class of `rscan.errors`.
pub fn to_py(py: Python<'_>, error: &Diagnostic) -> PyErr {
    if error.kind == Kind::Memory {
        reserve::refill();
    }
    if matches!(error.kind, Kind::Callback | Kind::Interrupted)
        && let Some(raised) = RAISED.take()
    {
        return raised;
    }
    build(py, error).unwrap_or_else(|e| e)
}

fn build(py: Python<'_>, error: &Diagnostic) -> PyResult<PyErr> {
    let labels: Vec<(String, u32, Option<String>, String)> = error
        .labels
        .iter()
        .filter_map(|l| l.span.place().map(|p| (p.file.to_string(), p.line, p.text.map(|t| t.to_string()), l.text.clone())))
        .collect();
    let make = py.import("rscan.errors")?.getattr("_from_native")?;
    let instance = make.call1((error.kind.name(), error.code, &error.title, labels, error.notes.clone(), error.helps.clone()))?;
    Ok(PyErr::from_value(instance))
}

/// A plain fault of a caller inside the package: reported as RuntimeError.
pub fn misuse(text: &str) -> PyErr {
    PyRuntimeError::new_err(text.to_string())
}

/// The page that explains an error code, or `None` for an unknown code.
#[pyfunction]
pub fn error_page(code: &str) -> Option<&'static str> {
    page(code)
}
