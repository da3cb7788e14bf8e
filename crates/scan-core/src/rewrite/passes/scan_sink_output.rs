//! Computes after the loop, for all steps at once, what only feeds outputs.
//!
//! ```text
//! before  scan n { seq x; state h; const U, V;   next h = tanh(x + h @ U);   next y = softmax(h @ V) }
//! after   scan n { seq x; state h; const U;      next h = tanh(x + h @ U);   next kept = h }
//!         y = softmax(kept @ V, axis=2)
//! ```
//!
//! No state and no stopping condition may need it, and all its rows are wanted. This pays for products and sums of exponentials,
//! which are quicker for many rows at once, and takes along what is made of them; elementwise work alone stays in the loop, where it
//! costs no memory. Floats may be rounded otherwise, since a product's order of summation depends on its extents.

use crate::base::{Id, Result};
use crate::ir::{Graph, Keep, Node, Scan, StateId, Tag, Value};
use crate::rewrite::Cx;
use crate::rewrite::loops::outside::{Outputs, only_written, rows_of};
use crate::rewrite::loops::parts::title;
use crate::rewrite::loops::rows::Prover;
use crate::rewrite::loops::{Parts, StatePart};
use crate::rewrite::rebuild::{Rebuild, copy_with};
use crate::types::Sym;
use rustc_hash::FxHashMap;

const NAME: &str = "scan_sink_output";

/// The graph with work on outputs after its loops.
///
/// # Errors
/// Internal ones.
pub fn run(cx: &mut Cx, graph: &Graph) -> Result<Option<Graph>> {
    let mut prover = Prover::new(graph);
    copy_with(graph, |rebuild, _, node| {
        let Some(scan) = node.op.as_scan().filter(|s| !s.body.whole().effects) else { return Ok(false) };
        let mut parts = Parts::open(scan, &node.ins);
        if !parts.states.iter().any(only_written) {
            return Ok(false);
        }
        let outputs = Outputs::new(cx, graph, &parts);
        if !outputs.goes.contains(&true) || !outputs.pays(&parts) {
            if let Some(why) = &outputs.why_not {
                cx.left(NAME, title(scan), why);
            }
            return Ok(false);
        }
        let names: Vec<&str> = parts.body.nodes().enumerate().filter(|(id, _)| outputs.goes[id.idx()]).map(|(_, n)| n.op.name()).collect();
        cx.done(NAME, title(scan), names.join(", "));
        let exact = parts.seqs.iter().map(|s| (s.param, has_rows(&mut prover, s.rows, parts.n_steps))).collect();
        parts.fill(|v| rebuild.image(v))?;
        sink(rebuild, node, scan, parts, &outputs, &exact)
    })
}

fn has_rows(prover: &mut Prover, rows: Value, n_steps: Value) -> bool {
    let rows = prover.rows(rows);
    rows.relies.is_none() && rows.form == prover.scalar(n_steps)
}

fn sink(
    rebuild: &mut Rebuild,
    node: &Node,
    scan: &Scan,
    mut parts: Parts,
    outputs: &Outputs,
    exact: &FxHashMap<Value, bool>,
) -> Result<bool> {
    let frontier = outputs.frontier(&parts.body);
    let made = |body: &Graph, v: Value| matches!(body.def(v), crate::ir::Def::Out(id, _) if outputs.goes[id.idx()]);
    let mut gone: Vec<(StateId, Value)> = vec![];
    for state in parts.states.iter().filter(|s| only_written(s) && made(&parts.body, s.results[0])) {
        gone.extend(state.id.map(|id| (id, state.results[0])));
    }
    parts.states.retain(|s| !gone.iter().any(|(id, _)| s.id == Some(*id)));
    for &v in &frontier {
        let given = parts.seqs.iter().any(|s| s.param == v) || parts.states.iter().any(|s| returned(s, v).is_some());
        if !given {
            parts.keep(v, Tag::Output);
        }
    }
    let place = |v: Value| parts.states.iter().enumerate().find_map(|(at, s)| Some((v, (at, returned(s, v)?))));
    let places: FxHashMap<Value, (usize, usize)> = frontier.iter().filter_map(|&v| place(v)).collect();
    let (seqs, body, until) = (parts.seqs.clone(), parts.body.clone(), parts.until.is_some());
    let captured: FxHashMap<Value, Value> = parts.captured.iter().map(|c| (c.param, c.value)).collect();
    let outs = parts.put(rebuild, node)?;
    let g = &mut rebuild.new;
    let steps = outs[outs.len() - 1];
    let mut rows: FxHashMap<Value, Value> = FxHashMap::default();
    for v in frontier {
        let all = match seqs.iter().find(|s| s.param == v) {
            Some(seq) => rows_of(g, seq, steps, exact[&v] && !until),
            None => from_offset(g, outs[places[&v].0], places[&v].1, steps),
        };
        rows.insert(v, all);
    }
    let since = Sym::fresh();
    let found = outputs.evaluate(g, &body, &rows, &captured)?;
    for (id, v) in gone {
        let (old, new) = (node.outs[scan.state_output(id)], found[&v]);
        rebuild.new.learn(new, rebuild.old, old, since);
        rebuild.set(old, new);
    }
    Ok(true)
}

/// The offset at which a state's rows are a value of every step.
fn returned(state: &StatePart, v: Value) -> Option<usize> {
    match state.slot.writes[..] {
        [w] if state.slot.keep == Keep::All && state.results[0] == v && (w > 0 || only_written(state)) => Some(w),
        _ => None,
    }
}

/// As many rows as there are steps, from an offset on.
fn from_offset(g: &mut Graph, buffer: Value, offset: usize, steps: Value) -> Value {
    if offset == 0 {
        return buffer;
    }
    let lo = g.int(offset as i64);
    let hi = g.add(steps, lo);
    g.slice_rows(buffer, lo, hi)
}
