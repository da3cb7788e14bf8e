//! States of which a step writes parts.

use crate::ir::{Def, Graph, Op, Scan, StateId, Value};

/// The values that follow each other in the row of a state whose step (`body`) writes parts over the row before, if it writes at
/// all: the new row first, the old one last. `None` for other states.
pub fn rows(scan: &Scan, body: &Graph, id: StateId) -> Option<Vec<Value>> {
    let state = &scan.states[id];
    if state.reads[..] != [0] || state.writes[..] != [1] {
        return None;
    }
    let first = body.params()[scan.read_params(id).next()?];
    let mut rows = vec![body.results()[scan.write_results(id).next()?]];
    while *rows.last()? != first {
        let Def::Out(writer, 0) = body.def(*rows.last()?) else { return None };
        let node = &body.nodes()[writer];
        if !matches!(node.op, Op::IndexWrite(_) | Op::GatherWrite(_)) {
            return None;
        }
        rows.push(node.ins[0]);
    }
    Some(rows)
}
