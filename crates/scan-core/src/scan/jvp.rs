//! Tangents of a loop: the loop with a tangent beside each state, sequence and captured value that has one, whose step pushes them through.
//!
//! ```text
//! before  scan n { seq x; state h reads R writes W; const c;  next h = f(x, h, c) }
//! after   scan n { seq x, tx; state h; state th reads R writes W; const c, tc
//!                  next h = f(x, h, c);  next th = df/dx · tx + df/dh · th + df/dc · tc }
//! ```

use super::replay::silenced;
use crate::base::{Id, Result};
use crate::grad;
use crate::ir::{Graph, NonSeq, Op, Scan, Seq, Site, State, StateId, Tag, Value};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Adds the loop with its tangents; those of the loop's outputs. `None` where the gradient covers the last steps only, which only
/// the [`vjp`](super::vjp) says.
///
/// # Errors
/// What the derivative of the body reports.
pub fn jvp(scan: &Scan, g: &mut Graph, site: &Site, tangents: &[Option<Value>]) -> Result<Option<Vec<Option<Value>>>> {
    if scan.truncate.is_some() {
        return Ok(None);
    }
    let body = silenced(&scan.body)?;
    let given = |at: usize| tangents[at].is_some();
    let mut moving: Vec<bool> = scan.states.ids().map(|id| scan.init_input(id).is_some_and(given)).collect();
    let step = loop {
        let step = Step::new(scan, &body, g, tangents, &moving)?;
        let grown = step.grown(scan, &moving);
        if grown == moving {
            break step;
        }
        moving = grown;
    };
    let first = scan.states.len();
    let outs = step.run(scan, g, site, tangents, &moving)?;
    let mut own = first..;
    let mut found: Vec<Option<Value>> = moving.iter().map(|&m| if m { own.next().map(|at| outs[at]) } else { None }).collect();
    found.push(None);
    Ok(Some(found))
}

/// The step, and what it pushes through.
struct Step {
    body: Graph,
    /// What the step writes, and its condition to stop.
    results: Vec<Value>,
    /// The tangents of what it writes.
    tangents: Vec<Option<Value>>,
}

impl Step {
    fn new(scan: &Scan, from: &Graph, g: &Graph, tangents: &[Option<Value>], moving: &[bool]) -> Result<Step> {
        let mut body = Graph::new();
        body.set_as_written(g.as_written());
        let (mut image, mut given): (FxHashMap<Value, Value>, Vec<(Value, Value)>) = (FxHashMap::default(), vec![]);
        let groups = [
            (Scan::STEP..1, vec![false]),
            (1..1 + scan.seqs.len(), scan.seqs.ids().map(|id| tangents[scan.seq_input(id)].is_some()).collect()),
            (1 + scan.seqs.len()..scan.n_params() - scan.captured.len(), reads(scan, moving)),
            (
                scan.n_params() - scan.captured.len()..scan.n_params(),
                scan.captured.ids().map(|id| tangents[scan.captured_input(id)].is_some()).collect(),
            ),
        ];
        for (params, moves) in groups {
            for &p in &from.params()[params.clone()] {
                let own = body.param(from.ty(p).clone(), from.name(p).map(|n| &**n));
                image.insert(p, own);
            }
            for (&p, _) in from.params()[params].iter().zip(moves).filter(|(_, moves)| *moves) {
                let tangent = body.param(from.ty(p).clone(), None);
                given.push((image[&p], tangent));
            }
        }
        let results = body.inline(from, &image, from.results())?;
        let tangents = grad::jvp(&mut body, &given, &results[..results.len() - usize::from(scan.until)], &[])?;
        Ok(Step { body, results, tangents })
    }

    /// Which states have tangents by what the step writes.
    fn grown(&self, scan: &Scan, moving: &[bool]) -> Vec<bool> {
        let written = |id: StateId| scan.write_results(id).any(|at| self.tangents[at].is_some());
        scan.states.ids().map(|id| scan.states[id].row.dtype.is_float() && (moving[id.idx()] || written(id))).collect()
    }

    /// Adds the loop.
    fn run(mut self, scan: &Scan, g: &mut Graph, site: &Site, tangents: &[Option<Value>], moving: &[bool]) -> Result<Vec<Value>> {
        let moved: Vec<StateId> = scan.states.ids().filter(|id| moving[id.idx()]).collect();
        let until = self.results.split_off(self.tangents.len());
        for at in moved.iter().flat_map(|&id| scan.write_results(id)) {
            let tangent = self.tangents[at].unwrap_or_else(|| self.body.zeros_like(self.results[at]));
            self.results.push(tangent);
        }
        self.results.extend(until);
        self.body.set_results(self.results);
        let mut more = scan.with_body(self.body);
        let seqs: Vec<Value> = scan
            .seqs
            .ids()
            .filter_map(|id| {
                let tangent = tangents[scan.seq_input(id)]?;
                more.seqs.push(Seq { reverse: scan.seqs[id].reverse, name: None });
                Some(tangent)
            })
            .collect();
        let captured: Vec<Value> = scan.captured.ids().filter_map(|id| tangents[scan.captured_input(id)]).collect();
        captured.iter().for_each(|_| {
            more.captured.push(NonSeq { name: None });
        });
        for &id in &moved {
            let state = &scan.states[id];
            let name = state.name.as_ref().map(|n| Arc::from(format!("d{n}")));
            more.states.push(State { tag: Tag::Cotangent, name, ..state.clone() });
        }
        let inits = moved.iter().filter_map(|&id| scan.init_input(id));
        let inits: Vec<Value> = inits.map(|at| tangents[at].unwrap_or_else(|| g.zeros_like(site.ins[at]))).collect();
        let (before, consts) = (1 + scan.seqs.len(), scan.n_inputs() - scan.captured.len());
        let ins = [&site.ins[..before], &seqs, &site.ins[before..consts], &inits, &site.ins[consts..], &captured].concat();
        Ok(g.apply(Op::Scan(Arc::new(more)), &ins)?.to_vec())
    }
}

/// Which of the rows that steps read of states have tangents.
fn reads(scan: &Scan, moving: &[bool]) -> Vec<bool> {
    scan.states.ids().flat_map(|id| scan.read_params(id).map(move |_| moving[id.idx()])).collect()
}
