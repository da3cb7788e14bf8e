//! What turns expressions into others: gradients, substitution, the way through text.

use crate::errors::guard;
use crate::var::{Var, unwrap, unwrap_pairs, wrap};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use scan_core::prelude::{self as core, AsWritten, GradOptions, PassOptions, Span};

/// A level of optimisation, and names of passes that do not run.
type Passes = (String, Vec<String>);

fn options(consider_constant: &[Var], known_grads: &[(Var, Var)], span: u32, passes: Option<Passes>) -> core::Result<GradOptions> {
    let passes = passes.map_or_else(|| Ok(PassOptions::full()), |(level, without)| PassOptions::named(&level, &without))?;
    let passes = passes.with_environment()?;
    Ok(GradOptions {
        consider_constant: unwrap(consider_constant),
        known_grads: unwrap_pairs(known_grads),
        as_written: AsWritten { formulas: !passes.runs("stabilise"), products: !passes.runs("contract") },
        span: Span::from_raw(span),
    })
}

fn wrap_options(vars: Vec<Option<core::Var>>) -> Vec<Option<Var>> {
    vars.into_iter().map(|v| v.map(Var)).collect()
}

/// The gradient of a scalar with respect to each of `wrt`; `None` where it is disconnected.
#[pyfunction]
#[pyo3(signature = (cost, wrt, consider_constant=vec![], known_grads=vec![], span=0, passes=None))]
pub fn grad(
    py: Python<'_>,
    cost: Option<Var>,
    wrt: Vec<Var>,
    consider_constant: Vec<Var>,
    known_grads: Vec<(Var, Var)>,
    span: u32,
    passes: Option<Passes>,
) -> PyResult<Vec<Option<Var>>> {
    guard(py, || {
        let options = options(&consider_constant, &known_grads, span, passes)?;
        core::grad_with(cost.as_ref().map(|c| &c.0), &unwrap(&wrt), &options).map(wrap_options)
    })
}

/// Cotangents of `wrt`, given those of `outputs`; `None` where disconnected.
#[pyfunction]
#[pyo3(signature = (outputs, cotangents, wrt, consider_constant=vec![], known_grads=vec![], span=0, passes=None))]
pub fn vjp(
    py: Python<'_>,
    outputs: Vec<Var>,
    cotangents: Vec<Var>,
    wrt: Vec<Var>,
    consider_constant: Vec<Var>,
    known_grads: Vec<(Var, Var)>,
    span: u32,
    passes: Option<Passes>,
) -> PyResult<Vec<Option<Var>>> {
    guard(py, || {
        let options = options(&consider_constant, &known_grads, span, passes)?;
        core::vjp(&unwrap(&outputs), &unwrap(&cotangents), &unwrap(&wrt), &options).map(wrap_options)
    })
}

/// Tangents of `outputs`, given those of `wrt`; `None` where disconnected.
#[pyfunction]
#[pyo3(signature = (outputs, wrt, tangents, span=0, passes=None))]
pub fn jvp(
    py: Python<'_>,
    outputs: Vec<Var>,
    wrt: Vec<Var>,
    tangents: Vec<Var>,
    span: u32,
    passes: Option<Passes>,
) -> PyResult<Vec<Option<Var>>> {
    guard(py, || {
        let options = options(&[], &[], span, passes)?;
        core::jvp_with(&unwrap(&outputs), &unwrap(&wrt), &unwrap(&tangents), &options).map(wrap_options)
    })
}

/// Extents of expressions where symbols are what was noted of a call; `None` where that does not tell.
#[pyfunction]
pub fn expected_shapes(vars: Vec<Var>, known: &Bound<'_, PyDict>) -> Vec<Vec<Option<i64>>> {
    core::expected_extents(&unwrap(&vars), &|sym| known.get_item(sym.0).ok()??.extract().ok())
}

/// An expression for one row of an array, to be given to a function under `vmap`.
#[pyfunction]
pub fn row(py: Python<'_>, rows: Var, span: u32) -> PyResult<Var> {
    guard(py, || core::row(&rows.0, Span::from_raw(span)).map(Var))
}

/// The values of expressions for many rows, given expressions of one row with the arrays of all; and whether rows differ.
#[pyfunction]
pub fn vmap(py: Python<'_>, outputs: Vec<Var>, rows: Vec<(Var, Var)>, span: u32) -> PyResult<Vec<(Var, bool)>> {
    guard(py, || {
        let found = core::vmap(&unwrap(&outputs), &unwrap_pairs(&rows), Span::from_raw(span))?;
        Ok(found.into_iter().map(|(v, varies)| (Var(v), varies)).collect())
    })
}

/// [`vmap`] for the rows of an identity matrix.
#[pyfunction]
pub fn vmap_units(py: Python<'_>, outputs: Vec<Var>, one: Var, units: Var, span: u32) -> PyResult<Vec<(Var, bool)>> {
    guard(py, || {
        let found = core::vmap_units(&unwrap(&outputs), (one.0, units.0), Span::from_raw(span))?;
        Ok(found.into_iter().map(|(v, varies)| (Var(v), varies)).collect())
    })
}

/// The outputs with some expressions replaced, all at once.
#[pyfunction]
pub fn substitute(py: Python<'_>, outputs: Vec<Var>, pairs: Vec<(Var, Var)>) -> PyResult<Vec<Var>> {
    guard(py, || core::substitute(&unwrap(&outputs), &unwrap_pairs(&pairs)).map(|v| wrap(&v)))
}

/// Outputs as the text of a function of `leaves`, which may be any expressions.
#[pyfunction]
#[pyo3(signature = (outputs, leaves, name="f"))]
pub fn to_text(py: Python<'_>, outputs: Vec<Var>, leaves: Vec<Var>, name: &str) -> PyResult<String> {
    guard(py, || core::to_text(&unwrap(&outputs), &unwrap(&leaves), name))
}

/// The results of a function in text form, applied to `leaves`.
#[pyfunction]
pub fn from_text(py: Python<'_>, text: &str, leaves: Vec<Var>) -> PyResult<Vec<Var>> {
    guard(py, || core::from_text(text, &unwrap(&leaves)).map(|v| wrap(&v)))
}
