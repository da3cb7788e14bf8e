//! Places of the user's source as small integers.

use pyo3::prelude::*;
use scan_core::prelude::Span;

/// Interns a place and returns its number; equal places have equal numbers. 0 is "unknown".
#[pyfunction]
pub fn span(file: &str, line: u32, function: &str) -> u32 {
    Span::new(file, line, function).raw()
}

/// File, line and function of a number, or `None` where it is unknown.
#[pyfunction]
pub fn span_place(span: u32) -> Option<(String, u32, String)> {
    Span::from_raw(span).place().map(|p| (p.file.to_string(), p.line, p.function.to_string()))
}
