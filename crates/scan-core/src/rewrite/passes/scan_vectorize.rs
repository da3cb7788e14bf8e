//! Makes array operations of a loop without recurrence.
//!
//! ```text
//! before  scan n { seq x; const W;   next y = softmax(x @ W) }
//! after   y = softmax(x @ W, axis=2)
//! ```
//!
//! The step reads no state, nothing stops the loop, every op of the step has a form for all steps at once. That sequences are long
//! enough, and the number of steps not negative, is known from their extents: else the loop stays, since it would say so. It pays for
//! products with what is the same at every step and sums of exponentials; a loop of products of each row by itself, or of one elementwise
//! kernel, is as quick as array operations, and stays. Floats may be rounded otherwise: a product's order of summation depends on its
//! extents.

use crate::base::{Id, Result};
use crate::ir::{Graph, Node, Scan, Value};
use crate::rewrite::Cx;
use crate::rewrite::loops::Parts;
use crate::rewrite::loops::cost::heavy;
use crate::rewrite::loops::facts::{never_negative, some_step};
use crate::rewrite::loops::outside::{Outputs, only_written, rows_of};
use crate::rewrite::loops::parts::title;
use crate::rewrite::loops::rows::Prover;
use crate::rewrite::rebuild::{Rebuild, copy_with};
use crate::types::Sym;
use rustc_hash::FxHashMap;

const NAME: &str = "scan_vectorize";

/// The graph without loops that hand nothing from step to step.
///
/// # Errors
/// Internal ones.
pub fn run(cx: &mut Cx, graph: &Graph) -> Result<Option<Graph>> {
    let mut prover = Prover::new(graph);
    copy_with(graph, |rebuild, _, node| {
        let Some(scan) = node.op.as_scan().filter(|s| !s.body.whole().effects) else { return Ok(false) };
        if scan.until || scan.states.is_empty() || scan.states.iter().any(|s| !s.reads.is_empty()) {
            return Ok(false);
        }
        let mut parts = Parts::open(scan, &node.ins);
        match outputs(cx, graph, &mut prover, &parts) {
            Err(why) => {
                cx.left(NAME, title(scan), why);
                Ok(false)
            }
            Ok(outputs) => {
                let exact = parts.seqs.iter().map(|s| (s.param, has_rows(&mut prover, s.rows, parts.n_steps))).collect();
                cx.done(NAME, title(scan), format!("{} operations for all steps at once", outputs.goes.iter().filter(|g| **g).count()));
                parts.fill(|v| rebuild.image(v))?;
                at_once(rebuild, node, scan, &parts, &outputs, &exact)
            }
        }
    })
}

/// What is evaluated at once, or why not.
fn outputs(cx: &Cx, graph: &Graph, prover: &mut Prover, parts: &Parts) -> std::result::Result<Outputs, String> {
    let live = parts.live();
    let costly = |n: &&Node| heavy(&parts.body, n) && n.outs.iter().any(|v| live[v.idx()]);
    if !parts.body.nodes().iter().any(|n| costly(&n)) {
        return Err("its step is elementwise, or draws: a loop is as quick as an array operation".into());
    }
    if !parts.states.iter().all(only_written) {
        return Err("not all rows of its outputs are wanted".into());
    }
    if !some_step(graph, parts.n_steps) && !never_negative(graph, parts.n_steps) {
        return Err("its number of steps may be negative".into());
    }
    if !parts.seqs.iter().all(|s| prover.covers(s.rows, parts.n_steps, 0)) {
        return Err("a sequence may be too short".into());
    }
    let mut outputs = Outputs::new(cx, graph, parts);
    if !outputs.everything(parts) {
        return Err(outputs
            .why_not
            .take()
            .unwrap_or_else(|| "an operation has no form for all steps, or might fail where no step runs".into()));
    }
    outputs.all();
    if !outputs.pays(parts) {
        return Err("most of what it costs, or holds, is of each row by itself".into());
    }
    Ok(outputs)
}

fn has_rows(prover: &mut Prover, rows: Value, n_steps: Value) -> bool {
    let rows = prover.rows(rows);
    rows.relies.is_none() && rows.form == prover.scalar(n_steps)
}

fn at_once(
    rebuild: &mut Rebuild,
    node: &Node,
    scan: &Scan,
    parts: &Parts,
    outputs: &Outputs,
    exact: &FxHashMap<Value, bool>,
) -> Result<bool> {
    let since = Sym::fresh();
    let g = &mut rebuild.new;
    let captured: FxHashMap<Value, Value> = parts.captured.iter().map(|c| (c.param, c.value)).collect();
    let rows: FxHashMap<Value, Value> = parts.seqs.iter().map(|s| (s.param, rows_of(g, s, parts.n_steps, exact[&s.param]))).collect();
    let found = outputs.evaluate(g, &parts.body, &rows, &captured)?;
    for (id, state) in scan.states.ids().zip(&parts.states) {
        let (old, new) = (node.outs[scan.state_output(id)], found[&state.results[0]]);
        rebuild.new.learn(new, rebuild.old, old, since);
        rebuild.set(old, new);
    }
    rebuild.set(node.outs[scan.steps_output()], parts.n_steps);
    Ok(true)
}
