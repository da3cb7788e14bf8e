//! Extents and integers of a step that are known when it is lowered.

use super::refusal::{Lowered, refuse};
use crate::ir::{EvalCx, Graph, Scan, StateId, Value};
use crate::scan::retype::state_row;
use crate::types::{Array, Extents};

/// Why a loop is left to the evaluator, unless the extent depends on what the loop is given.
pub const BY_VALUES: &str = "an extent that depends on values";
/// Why a loop is left to the evaluator, which reports it.
pub const CHANGES: &str = "a state whose shape changes";

/// The extents of a value.
///
/// # Errors
/// [`BY_VALUES`].
pub(super) fn known_shape(graph: &Graph, v: Value) -> Lowered<Extents> {
    let dims: Option<Extents> = graph.ty(v).dims.iter().map(|d| d.value()).collect();
    dims.map_or_else(|| refuse(BY_VALUES), Ok)
}

/// Extents of a state's rows: of those that a step reads and of those that it writes. Where they differ the evaluator reports it.
pub(super) fn known_row(scan: &Scan, body: &Graph, id: StateId) -> Lowered<Extents> {
    let written = scan.write_results(id).map(|at| body.results()[at]);
    let rows: Vec<Value> = scan.read_params(id).map(|p| body.params()[p]).chain(written).collect();
    let shapes = rows.iter().map(|&v| known_shape(body, v)).collect::<Lowered<Vec<Extents>>>()?;
    match (state_row(rows.iter().map(|&v| body.ty(v))), shapes.into_iter().next()) {
        (_, None) => refuse("a state that is never written"),
        (Some(_), Some(row)) => Ok(row),
        (None, _) => refuse(CHANGES),
    }
}

/// So many nodes after each other are evaluated to know an integer.
pub(super) const DEEP: usize = 8;

/// A scalar that depends on nothing but extents.
pub(super) fn known(body: &Graph, v: Value, deep: usize) -> Option<Array> {
    if let Some(a) = body.const_value(v) {
        return Some(a.clone());
    }
    let node = body.node_of(v).filter(|n| deep > 0 && n.op.elementwise())?;
    let mut ins = node.ins.iter().map(|&x| known(body, x, deep - 1).filter(|a| a.len() == 1)).collect::<Option<Vec<Array>>>()?;
    node.op.evaluate(&mut EvalCx::new(), &mut ins).ok()?.into_iter().next()
}
