//! Moves what is the same at every step out of the loop.
//!
//! ```text
//! before  scan n { state h; const W, c;   next h = h @ transpose(W) + exp(c) }
//! after   t = transpose(W); e = exp(c)
//!         scan n { state h; const t, e;   next h = h @ t + e }
//! ```
//!
//! - What can fail leaves only where every step computes it: the first step would have failed, too. Where no step runs, the graph as it
//!   was written decides. Loops, which may take long, and steps with operations of users leave only a loop that provably runs a step.
//! - What only a branch of `ifelse` needs leaves where it cannot fail, or where a call that fails is done again as it was written.
//! - What prints, draws from the outside or asserts stays.
//! - What only repeats or relabels elements (broadcasts, new axes) stays inside, where it costs nothing, unless something that
//!   leaves reads it.

use crate::base::{Id, Result};
use crate::ir::{Graph, Node, NodeId, Value};
use crate::ops::properties::Cost;
use crate::rewrite::Cx;
use crate::rewrite::loops::Parts;
use crate::rewrite::loops::facts::{eager, effect, infallible, some_step};
use crate::rewrite::loops::parts::title;
use crate::rewrite::rebuild::{Rebuild, copy_with};
use rustc_hash::FxHashMap;

const NAME: &str = "scan_hoist_non_seq";

/// The graph with step-invariant computation before its loops.
///
/// # Errors
/// Internal ones.
pub fn run(cx: &mut Cx, graph: &Graph) -> Result<Option<Graph>> {
    copy_with(graph, |rebuild, _, node| {
        let Some(scan) = node.op.as_scan() else { return Ok(false) };
        let mut parts = Parts::open(scan, &node.ins);
        let leaving = leaving(&parts, cx.speculate, some_step(graph, parts.n_steps));
        let frontier = frontier(&parts, &leaving);
        if frontier.is_empty() {
            return Ok(false);
        }
        let names: Vec<&str> =
            parts.body.nodes().enumerate().filter(|(id, n)| leaving[id.idx()] && worthy(n)).map(|(_, n)| n.op.name()).collect();
        cx.done(NAME, title(scan), names.join(", "));
        parts.fill(|v| rebuild.image(v))?;
        let outside = outside(rebuild, &parts, &leaving)?;
        for v in frontier {
            parts.capture(outside[&v], v);
        }
        let live = parts.live();
        parts.captured.retain(|c| live[c.param.idx()]);
        parts.put(rebuild, node).map(|_| true)
    })
}

/// True for what costs something at every step.
fn worthy(node: &Node) -> bool {
    node.op.properties().cost != Cost::Free
}

/// True per node that leaves: invariant, allowed to, and worth it or read by one that is.
fn leaving(parts: &Parts, speculate: bool, some_step: bool) -> Vec<bool> {
    let body = &parts.body;
    let eager = eager(body);
    let mut invariant = vec![false; body.n_values()];
    parts.captured.iter().for_each(|c| invariant[c.param.idx()] = true);
    let mut can = vec![false; body.nodes().len()];
    for (id, node) in body.nodes().enumerate() {
        let always = node.outs.iter().any(|v| eager[v.idx()]);
        let may_fail = always && some_step || speculate && node.op.as_scan().is_none();
        let allowed = !effect(node) && (may_fail || infallible(body, node));
        can[id.idx()] = allowed && node.ins.iter().all(|v| invariant[v.idx()]);
        if can[id.idx()] {
            node.outs.iter().for_each(|v| invariant[v.idx()] = true);
        }
    }
    let mut leaves = vec![false; can.len()];
    for (id, node) in body.nodes().enumerate().rev() {
        let wanted = leaves[id.idx()] || worthy(node);
        if can[id.idx()] && wanted {
            leaves[id.idx()] = true;
            for at in node.ins.iter().filter_map(|&v| made_by(body, v)) {
                leaves[at.idx()] = true;
            }
        }
    }
    leaves
}

fn made_by(g: &Graph, v: Value) -> Option<NodeId> {
    match g.def(v) {
        crate::ir::Def::Out(id, _) => Some(id),
        crate::ir::Def::Param(_) => None,
    }
}

/// Values of leaving nodes that the rest of the body reads. Constants and what is not worth a captured value are made again inside.
fn frontier(parts: &Parts, leaving: &[bool]) -> Vec<Value> {
    let body = &parts.body;
    let live = parts.live();
    let mut found: Vec<Value> = vec![];
    let mut stack: Vec<Value> = parts.results();
    for (id, node) in body.nodes().enumerate() {
        if !leaving[id.idx()] && node.outs.iter().any(|v| live[v.idx()]) {
            stack.extend(&node.ins);
        }
    }
    while let Some(v) = stack.pop() {
        let Some(id) = made_by(body, v).filter(|id| leaving[id.idx()]) else { continue };
        match worthy(&body.nodes()[id]) {
            true if !found.contains(&v) => found.push(v),
            true => {}
            false => stack.extend(&body.nodes()[id].ins),
        }
    }
    found.sort_unstable();
    found
}

/// The leaving nodes in the graph around.
fn outside(rebuild: &mut Rebuild, parts: &Parts, leaving: &[bool]) -> Result<FxHashMap<Value, Value>> {
    let mut images: FxHashMap<Value, Value> = parts.captured.iter().map(|c| (c.param, c.value)).collect();
    for (id, node) in parts.body.nodes().enumerate().filter(|(id, _)| leaving[id.idx()]) {
        let ins: Vec<Value> = node.ins.iter().map(|v| images[v]).collect();
        let outs = rebuild.new.copy(&parts.body, id, &node.op, &ins)?;
        images.extend(node.outs.iter().copied().zip(outs));
    }
    Ok(images)
}
