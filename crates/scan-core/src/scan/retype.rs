//! A loop for inputs of other types than it was built for.

use crate::bail;
use crate::base::Result;
use crate::ir::{Graph, Scan, Value};
use crate::types::Type;
use rustc_hash::FxHashMap;

/// True where inputs of these types do not fit the parameters of the body.
pub fn differs(scan: &Scan, ins: &[Type]) -> bool {
    let kept = param_types(scan, ins);
    let params = scan.body.params();
    kept.iter().zip(params).any(|(new, &p)| new.dtype != scan.body.ty(p).dtype || new.rank() != scan.body.ty(p).rank())
}

/// The loop with its step inferred again for inputs of other types.
///
/// # Errors
/// `E0120` where a state would no longer keep its type; whatever type inference reports.
pub fn retyped(scan: &Scan, ins: &[Type]) -> Result<Scan> {
    let body = &scan.body;
    let mut graph = Graph::new();
    let mut image: FxHashMap<Value, Value> = FxHashMap::default();
    for (&p, ty) in body.params().iter().zip(param_types(scan, ins)) {
        image.insert(p, graph.param(ty, body.name(p).map(|n| &**n)));
    }
    let results = graph.inline(body, &image, body.results())?;
    let mut new = scan.clone();
    for id in scan.states.ids() {
        let written = results[scan.write_results(id).start];
        let row = match scan.init_input(id) {
            Some(at) => ins[at].row(),
            None => graph.ty(written).clone(),
        };
        for &value in &results[scan.write_results(id)] {
            let ty = graph.ty(value);
            if ty.dtype != row.dtype || ty.rank() != row.rank() {
                let name = scan.states[id].name.as_deref().unwrap_or("?");
                bail!(Scan, "E0120", "with these inputs state `{name}` would start as {row} and go on as {ty}");
            }
        }
        new.states[id].row = row;
    }
    graph.set_results(results);
    new.body = graph;
    Ok(new)
}

/// The row of a state that all agree on: its initial ones, those that a step reads and those that it writes, as far as they are given.
pub fn state_row<'a>(rows: impl IntoIterator<Item = &'a Type>) -> Option<&'a Type> {
    let mut rows = rows.into_iter();
    let row = rows.next()?;
    let agrees = |other: &Type| other.rank() == row.rank() && !other.dims.iter().zip(&row.dims).any(|(a, b)| a.conflicts(b));
    rows.all(agrees).then_some(row)
}

/// The types of the body's parameters that inputs ask for.
pub fn param_types(scan: &Scan, ins: &[Type]) -> Vec<Type> {
    let mut types: Vec<Type> = scan.body.params().iter().map(|&p| scan.body.ty(p).clone()).collect();
    for id in scan.seqs.ids() {
        types[scan.seq_param(id)] = ins[scan.seq_input(id)].row();
    }
    for id in scan.states.ids() {
        if let Some(at) = scan.init_input(id) {
            scan.read_params(id).for_each(|p| types[p] = ins[at].row());
        }
    }
    for id in scan.captured.ids() {
        types[scan.captured_param(id)] = ins[scan.captured_input(id)].clone();
    }
    types
}
