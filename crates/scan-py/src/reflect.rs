//! What the tables and the loops say about themselves.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString};
use scan_core::prelude::{Attr, ELEMENTWISE, Graph, Op, Row, Scan, inspect};

/// An attribute from Python: bool, int, float, str or a sequence of ints.
pub fn attr_from_py(value: &Bound<'_, PyAny>) -> PyResult<Attr> {
    if value.is_instance_of::<PyBool>() {
        Ok(Attr::Bool(value.extract()?))
    } else if value.is_instance_of::<PyInt>() {
        Ok(Attr::Int(value.extract()?))
    } else if value.is_instance_of::<PyFloat>() {
        Ok(Attr::Float(value.extract()?))
    } else if value.is_instance_of::<PyString>() {
        Ok(Attr::Str(value.extract()?))
    } else {
        Ok(Attr::Ints(value.extract()?))
    }
}

/// Attributes as a dict.
pub fn attrs_to_py<'py>(py: Python<'py>, attrs: &[(&'static str, Attr)]) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, attr) in attrs {
        match attr {
            Attr::Bool(x) => dict.set_item(name, x)?,
            Attr::Int(x) => dict.set_item(name, x)?,
            Attr::Float(x) => dict.set_item(name, x)?,
            Attr::Str(x) => dict.set_item(name, x)?,
            Attr::Ints(x) => dict.set_item(name, x)?,
        }
    }
    Ok(dict)
}

/// A graph in text form.
pub fn text(graph: &Graph, name: &str) -> String {
    graph.to_text(name)
}

/// A loop as a dict: `name`, `text` (its body), `until`, `truncate`, and its slots in order of its inputs:
/// `seqs`, `states`, `captured` as lists of dicts; then `slots` in the canonical order, `connections` and `inner_connections`.
pub fn scan_to_py<'py>(py: Python<'py>, scan: &Scan) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("name", scan.name.as_deref())?;
    out.set_item("text", text(&scan.body, scan.name.as_deref().unwrap_or("step")))?;
    out.set_item("until", scan.until)?;
    out.set_item("truncate", scan.truncate)?;
    let seqs = scan.seqs.enumerate().map(|(id, seq)| {
        let slot = slot(py, seq.name.as_deref(), Some(scan.seq_input(id)), vec![scan.seq_param(id)])?;
        slot.set_item("reverse", seq.reverse)?;
        Ok(slot)
    });
    out.set_item("seqs", seqs.collect::<PyResult<Vec<_>>>()?)?;
    let states = scan.states.enumerate().map(|(id, state)| {
        let slot = slot(py, state.name.as_deref(), scan.init_input(id), scan.read_params(id).collect())?;
        slot.set_item("kind", state.kind())?;
        slot.set_item("reads", state.reads.to_vec())?;
        slot.set_item("writes", state.writes.to_vec())?;
        slot.set_item("keep", format!("{:?}", state.keep))?;
        slot.set_item("tag", format!("{:?}", state.tag).to_lowercase())?;
        slot.set_item("row", state.row.to_string())?;
        slot.set_item("output", scan.state_output(id))?;
        slot.set_item("results", scan.write_results(id).collect::<Vec<_>>())?;
        Ok(slot)
    });
    out.set_item("states", states.collect::<PyResult<Vec<_>>>()?)?;
    let captured =
        scan.captured.enumerate().map(|(id, c)| slot(py, c.name.as_deref(), Some(scan.captured_input(id)), vec![scan.captured_param(id)]));
    out.set_item("captured", captured.collect::<PyResult<Vec<_>>>()?)?;
    let canonical = inspect::slots(scan).iter().map(|s| canonical_slot(py, s)).collect::<PyResult<Vec<_>>>()?;
    out.set_item("slots", canonical)?;
    out.set_item("connections", inspect::connections(scan))?;
    out.set_item("inner_connections", inspect::inner_connections(scan))?;
    Ok(out)
}

/// A slot with its positions in the four lists of variables.
fn canonical_slot<'py>(py: Python<'py>, slot: &inspect::Slot) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("kind", slot.kind.name())?;
    dict.set_item("name", slot.name.as_deref())?;
    dict.set_item("outer_input", slot.outer_input)?;
    dict.set_item("inner_inputs", &slot.inner_inputs)?;
    dict.set_item("inner_outputs", &slot.inner_outputs)?;
    dict.set_item("outer_output", slot.outer_output)?;
    dict.set_item("taps_in", &slot.taps_in)?;
    dict.set_item("taps_out", &slot.taps_out)?;
    dict.set_item("node_input", slot.node_input)?;
    dict.set_item("node_output", slot.node_output)?;
    dict.set_item("params", &slot.params)?;
    dict.set_item("results", &slot.results)?;
    Ok(dict)
}

/// What all slots have: a name, the position of the loop's input, the positions of the body's parameters.
fn slot<'py>(py: Python<'py>, name: Option<&str>, input: Option<usize>, params: Vec<usize>) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("name", name)?;
    dict.set_item("input", input)?;
    dict.set_item("params", params)?;
    Ok(dict)
}

/// Names of the ops that are not elementwise.
#[pyfunction]
pub fn structural_ops() -> Vec<&'static str> {
    Op::STRUCTURAL.to_vec()
}

/// The table of these, a dict per row: `name`, `doc`, `attributes`, of which each has a name, what its values are, and what it says.
#[pyfunction]
pub fn structural_table(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let mut rows = vec![];
    for row in Op::ROWS {
        let dict = PyDict::new(py);
        dict.set_item("name", row.name)?;
        dict.set_item("doc", row.doc.trim())?;
        dict.set_item("attributes", row.attrs.iter().map(|a| (a.0, a.1.trim(), a.2.trim())).collect::<Vec<_>>())?;
        rows.push(dict);
    }
    Ok(rows)
}

/// The elementwise table, a dict per row: `name`, `args`, `doc`, `rule`, `domain`, `ulp`, `tests`, `differentiable`.
#[pyfunction]
pub fn catalogue(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    ELEMENTWISE.iter().map(|row| row_to_py(py, row)).collect()
}

fn row_to_py<'py>(py: Python<'py>, row: &Row) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("name", row.name)?;
    dict.set_item("args", row.args.to_vec())?;
    dict.set_item("doc", row.doc.trim())?;
    dict.set_item("rule", row.rule.doc())?;
    dict.set_item("domain", row.domain)?;
    dict.set_item("ulp", row.ulp)?;
    dict.set_item("tests", row.tests.iter().map(|t| t.to_vec()).collect::<Vec<_>>())?;
    dict.set_item("differentiable", row.differentiable)?;
    Ok(dict)
}
