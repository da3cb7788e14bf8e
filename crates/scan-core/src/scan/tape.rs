//! What a loop's steps saw, for its gradient: the returned buffers where they still tell, a tape where they do not.

use super::decided::is_flat;
use super::vjp::StepVjp;
use crate::base::Result;
use crate::ir::op::StopGradient;
use crate::ir::{Graph, Keep, Offsets, Op, Scan, Site, State, StateId, Tag, Value};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Access to the rows of a forward loop.
pub struct Forward;

impl Forward {
    /// The whole buffers of some states. `quiet` is the step as it runs once more.
    ///
    /// # Errors
    /// What type inference reports: an internal fault.
    pub fn buffers(scan: &Scan, quiet: &Graph, g: &mut Graph, site: &Site, ids: &[StateId]) -> Result<FxHashMap<StateId, Value>> {
        let outs = extended(scan, quiet, g, site, ids, &[])?;
        Ok(ids.iter().map(|&id| (id, outs[scan.state_output(id)])).collect())
    }

    /// For each read of some states, a buffer and an offset such that step i saw row `i + offset`.
    ///
    /// # Errors
    /// As [`Forward::buffers`].
    pub fn seen(
        scan: &Scan,
        quiet: &Graph,
        g: &mut Graph,
        site: &Site,
        ids: &[StateId],
    ) -> Result<FxHashMap<(StateId, usize), (Value, usize)>> {
        let (stable, taped): (Vec<StateId>, Vec<StateId>) = ids.iter().partition(|id| scan.states[**id].stable());
        let outs = extended(scan, quiet, g, site, &stable, &taped)?;
        let mut seen = FxHashMap::default();
        for id in stable {
            for (k, &r) in scan.states[id].reads.iter().enumerate() {
                seen.insert((id, k), (outs[scan.state_output(id)], r));
            }
        }
        let mut at = scan.states.len();
        for id in taped {
            for k in 0..scan.states[id].reads.len() {
                seen.insert((id, k), (outs[at], 0));
                at += 1;
            }
        }
        Ok(seen)
    }

    /// The rows of what the steps decided. No gradient flows through those whose derivatives are zero.
    ///
    /// # Errors
    /// As [`Forward::buffers`].
    pub(super) fn decided(scan: &Scan, g: &mut Graph, site: &Site, step: &StepVjp) -> Result<Vec<Value>> {
        if step.decided.is_empty() {
            return Ok(vec![]);
        }
        let mut more = scan.with_body(step.quiet.clone().into_owned());
        let rows = more.body.inline(&step.graph, &step.origin, &step.decided)?;
        let outs = with_tapes(more, g, site, rows.into_iter().map(|v| (v, None)).collect())?;
        let flat = |v: &Value| step.graph.node_of(*v).is_some_and(|n| is_flat(&n.op)) && step.graph.ty(*v).dtype.is_float();
        let rows = outs[scan.states.len()..].iter().zip(&step.decided);
        Ok(rows.map(|(&rows, of)| if flat(of) { g.emit(StopGradient {}, &[rows]) } else { rows }).collect())
    }
}

/// The outputs of the loop with `whole` buffers kept whole and one more output per read of `taped`: the loop itself where
/// that changes nothing. Outputs of states come first, then the tapes.
fn extended(scan: &Scan, quiet: &Graph, g: &mut Graph, site: &Site, whole: &[StateId], taped: &[StateId]) -> Result<Vec<Value>> {
    if taped.is_empty() && whole.iter().all(|&id| scan.states[id].keep == Keep::All) {
        return Ok(site.outs.to_vec());
    }
    let mut more = scan.with_body(quiet.clone());
    for &id in whole {
        more.states[id].keep = Keep::All;
    }
    let name = |id: StateId| scan.states[id].name.as_ref().map(|n| Arc::from(format!("tape of {n}")));
    let tapes = taped.iter().flat_map(|&id| more.read_values(id).iter().map(move |&row| (row, name(id)))).collect();
    with_tapes(more, g, site, tapes)
}

/// The outputs of a loop, and the rows of named values of its step, which it returns, too.
fn with_tapes(mut scan: Scan, g: &mut Graph, site: &Site, tapes: Vec<(Value, Option<Arc<str>>)>) -> Result<Vec<Value>> {
    let until = scan.until_result().map(|at| scan.body.results()[at]);
    let mut results: Vec<Value> = scan.body.results()[..scan.body.results().len() - usize::from(scan.until)].to_vec();
    for (row, name) in tapes {
        results.push(row);
        scan.states.push(State {
            row: scan.body.ty(row).clone(),
            init: false,
            reads: Offsets::new(),
            writes: Offsets::from_slice(&[0]),
            keep: Keep::All,
            tag: Tag::Cotangent,
            name,
        });
    }
    results.extend(until);
    scan.body.set_results(results);
    Ok(g.apply(Op::Scan(Arc::new(scan)), site.ins)?.to_vec())
}
