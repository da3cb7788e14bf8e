//! Checks a graph. Every fact that the rest of the crate takes for granted is listed here:
//!
//! - **SSA** (`E0911`): parameters and outputs of nodes know where they come from, each value has one origin, and a node reads
//!   only parameters and outputs of earlier nodes.
//! - **Types** (`E0912`): inference succeeds for every node and finds as many outputs as there are, with the recorded dtype and
//!   rank and no conflicting known extent.
//! - **Results** (`E0913`): each one exists.
//! - **Slots of a loop** (`E0914`): inputs of the node, parameters and results of the body are as many as its slots need.
//! - **Rows of a loop** (`E0915`): sequences and initial rows have an axis of rows; rows, body parameters and body results of a slot
//!   have one dtype and rank and no conflicting known extents.
//! - **Scalars of a loop** (`E0916`): `n_steps` and the step index are i64 scalars, the condition of `until` is a bool scalar.
//! - **Offsets of a state** (`E0917`): no offset is read twice or written twice; known initial rows number at least the span.
//! - **Initial rows** (`E0918`): a state that is read has some, since the first step reads before anything is written.
//! - Bodies satisfy all of this, too; an error in one names the loop.

use super::graph::{Def, Graph, Node, NodeId, Value};
use super::op::{Arg, Op};
use super::scan::{Scan, State, StateId};
use crate::bail;
use crate::base::{Diagnostic, Id, Result};
use crate::types::{DType, Type};
use std::fmt::Display;

/// Checks every fact listed at the head of this module.
///
/// # Errors
/// `E0911`…`E0918`, at the span of the node.
pub fn verify(graph: &Graph) -> Result<()> {
    origins(graph)?;
    for (id, node) in graph.nodes().enumerate() {
        check_node(graph, id, node).map_err(|e| e.at(node.span))?;
    }
    match graph.results().iter().position(|v| v.idx() >= graph.n_values()) {
        Some(i) => bail!(Parse, "E0913", "result {i} does not exist"),
        None => Ok(()),
    }
}

/// Each value is where its origin says, and nowhere else.
fn origins(graph: &Graph) -> Result<()> {
    let outs: usize = graph.nodes().iter().map(|n| n.outs.len()).sum();
    let params = graph.params().iter().enumerate().map(|(i, &v)| (v, Def::Param(i)));
    let made = graph.nodes().enumerate().flat_map(|(id, n)| n.outs.iter().enumerate().map(move |(i, &v)| (v, Def::Out(id, i))));
    for (v, def) in params.chain(made) {
        if v.idx() >= graph.n_values() || graph.def(v) != def {
            bail!(Parse, "E0911", "value {} is not what its origin {def:?} says", v.idx());
        }
    }
    if outs + graph.params().len() != graph.n_values() {
        bail!(Parse, "E0911", "expected {} values, got {}", outs + graph.params().len(), graph.n_values());
    }
    Ok(())
}

fn check_node(graph: &Graph, id: NodeId, node: &Node) -> Result<()> {
    let early = |v: &Value| v.idx() < graph.n_values() && !matches!(graph.def(*v), Def::Out(n, _) if n >= id);
    if let Some(i) = node.ins.iter().position(|v| !early(v)) {
        bail!(Parse, "E0911", "input {i} of `{}` is read before it is made", node.op.name());
    }
    if let Op::Scan(scan) = &node.op {
        let types: Vec<&Type> = node.ins.iter().map(|&v| graph.ty(v)).collect();
        check_scan(scan, &types)?;
        let name = scan.name.as_deref().unwrap_or("without a name");
        verify(&scan.body).map_err(|e| e.note(format!("in the body of loop {name}")))?;
    }
    let args: Vec<Arg> = node.ins.iter().map(|&v| graph.arg(v)).collect();
    let found = node.op.def().infer(&args).map_err(|e| wrong_type(node, e.title))?;
    if found.len() != node.outs.len() {
        return Err(wrong_type(node, format!("expected {} outputs, got {}", found.len(), node.outs.len())));
    }
    for (i, (ty, &v)) in found.iter().zip(&node.outs).enumerate() {
        if !agree(ty, graph.ty(v)) {
            return Err(wrong_type(node, format!("expected {ty} for output {i}, got {}", graph.ty(v))));
        }
    }
    Ok(())
}

fn wrong_type(node: &Node, what: impl Display) -> Box<Diagnostic> {
    Diagnostic::new(crate::base::Kind::Parse, "E0912", format!("`{}`: {what}", node.op.name()))
}

/// True where both can be the type of one value.
pub(crate) fn agree(a: &Type, b: &Type) -> bool {
    a.dtype == b.dtype && a.rank() == b.rank() && a.dims.iter().zip(&b.dims).all(|(x, y)| !x.conflicts(y))
}

/// Checks a loop against the types of its inputs, but not its body's nodes.
///
/// # Errors
/// `E0913`…`E0918`.
pub(crate) fn check_scan(scan: &Scan, ins: &[&Type]) -> Result<()> {
    check_counts(scan, ins.len())?;
    let scalars = [("n_steps", ins[Scan::N_STEPS].clone(), DType::I64), ("the step index", param(scan, Scan::STEP), DType::I64)];
    let until = scan.until_result().map(|at| ("the condition of `until`", scan.body.ty(scan.body.results()[at]).clone(), DType::Bool));
    for (what, ty, dtype) in scalars.into_iter().chain(until) {
        if ty != Type::scalar(dtype) {
            bail!(Parse, "E0916", "expected {dtype} for {what}, got {ty}");
        }
    }
    for (id, seq) in scan.seqs.enumerate() {
        let what = format!("sequence `{}`", seq.name.as_deref().unwrap_or("?"));
        same_rows(&what, "the body's parameter", &rows(&what, ins[scan.seq_input(id)])?, &param(scan, scan.seq_param(id)))?;
    }
    for (id, captured) in scan.captured.enumerate() {
        let what = format!("captured value `{}`", captured.name.as_deref().unwrap_or("?"));
        same_rows(&what, "the body's parameter", ins[scan.captured_input(id)], &param(scan, scan.captured_param(id)))?;
    }
    scan.states.ids().try_for_each(|id| check_state(scan, id, ins))
}

fn check_counts(scan: &Scan, inputs: usize) -> Result<()> {
    let reads: usize = scan.states.iter().map(|s| s.reads.len()).sum();
    let writes: usize = scan.states.iter().map(|s| s.writes.len()).sum();
    let counts = [
        ("inputs of the loop", scan.n_inputs(), inputs),
        ("parameters of the body", 1 + scan.seqs.len() + reads + scan.captured.len(), scan.body.params().len()),
        ("results of the body", writes + usize::from(scan.until), scan.body.results().len()),
    ];
    for (what, want, got) in counts {
        if want != got {
            bail!(Parse, "E0914", "expected {want} {what}, got {got}");
        }
    }
    match scan.body.results().iter().position(|v| v.idx() >= scan.body.n_values()) {
        Some(i) => bail!(Parse, "E0913", "result {i} of the body does not exist"),
        None => Ok(()),
    }
}

fn param(scan: &Scan, at: usize) -> Type {
    scan.body.ty(scan.body.params()[at]).clone()
}

fn rows(what: &str, ty: &Type) -> Result<Type> {
    if ty.rank() == 0 {
        bail!(Parse, "E0915", "{what}: expected an array of rows, got {ty}");
    }
    Ok(ty.row())
}

fn same_rows(what: &str, place: &str, want: &Type, got: &Type) -> Result<()> {
    if !agree(want, got) {
        bail!(Parse, "E0915", "{what}: expected {want} for {place}, got {got}");
    }
    Ok(())
}

fn check_state(scan: &Scan, id: StateId, ins: &[&Type]) -> Result<()> {
    let state = &scan.states[id];
    let what = format!("state `{}`", state.name.as_deref().unwrap_or("?"));
    for (verb, offsets) in [("reads", &state.reads), ("writes", &state.writes)] {
        if let Some(i) = (1..offsets.len()).find(|&i| offsets[..i].contains(&offsets[i])) {
            bail!(Parse, "E0917", "{what} {verb} offset {} twice", offsets[i]);
        }
    }
    match scan.init_input(id) {
        Some(at) => check_init(&what, state, ins[at])?,
        None if !state.reads.is_empty() => bail!(Parse, "E0918", "{what} is read but has no initial rows"),
        None => {}
    }
    for &v in scan.read_values(id) {
        same_rows(&what, "the row that is read", &state.row, scan.body.ty(v))?;
    }
    for &v in scan.write_values(id) {
        same_rows(&what, "the row that is written", &state.row, scan.body.ty(v))?;
    }
    Ok(())
}

fn check_init(what: &str, state: &State, init: &Type) -> Result<()> {
    same_rows(what, "the initial rows", &state.row, &rows(what, init)?)?;
    match init.dims[0].value() {
        Some(n) if n < state.span() => bail!(Parse, "E0917", "{what}: expected at least {} initial rows, got {n}", state.span()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
