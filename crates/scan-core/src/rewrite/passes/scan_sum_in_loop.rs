//! Sums the rows of an output inside the loop, so that they need not be kept.
//!
//! ```text
//! before  %0 = scan n { state h keep=all;  next h = f(h) };   return sum(%0.h[1:], axis=0)
//! after   %0 = scan n { state h keep=all; state sum init=0 keep=last(1);  next h = f(h);  next sum = sum + f(h) }
//!         return last row of (0, %0.sum)                         and scan_keep_last lets go of the rows of h
//! ```
//!
//! Only where nothing else reads all rows, and the number of steps is not known when the function is made; not over the lanes of a loop that is
//! one kernel, where it keeps other rows. The sum is then
//! taken in the order of the steps, while a sum over an array adds up eight partial sums: floats are rounded otherwise, with an
//! error of at most `n · ε · Σ|x|` instead of about `n/8 · ε · Σ|x|`.

use crate::base::Result;
use crate::ir::op::{BroadcastTo, Expand, Reduce};
use crate::ir::{Graph, Keep, Node, NodeId, Offsets, Op, Scan, State, StateId, Tag, Value};
use crate::rewrite::Cx;
use crate::rewrite::loops::cost::several_kernels;
use crate::rewrite::loops::facts::integer;
use crate::rewrite::loops::parts::title;
use crate::rewrite::loops::readers::{Users, Want};
use crate::rewrite::loops::rows::Prover;
use crate::rewrite::loops::{Parts, StatePart};
use crate::rewrite::rebuild::{Rebuild, copy_with};
use crate::types::Array;
use rustc_hash::FxHashMap;

const NAME: &str = "scan_sum_in_loop";

/// The graph with sums inside its loops.
///
/// # Errors
/// Internal ones.
pub fn run(cx: &mut Cx, graph: &Graph) -> Result<Option<Graph>> {
    let users = Users::new(graph);
    let mut prover = Prover::new(graph);
    let mut sums: FxHashMap<NodeId, Vec<Sum>> = FxHashMap::default();
    for (id, node) in graph.nodes().enumerate() {
        let Some(scan) = node.op.as_scan().filter(|s| !s.body.whole().effects) else { continue };
        if integer(graph, node.ins[Scan::N_STEPS]).is_some() {
            continue;
        }
        let found: Vec<Sum> = scan.states.ids().flat_map(|state| summed(graph, &users, &mut prover, node, scan, state)).collect();
        if !found.is_empty() {
            sums.insert(id, found);
        }
    }
    let mut images: FxHashMap<NodeId, Value> = FxHashMap::default();
    copy_with(graph, |rebuild, id, node| {
        if let Some(&image) = images.get(&id) {
            rebuild.set(node.outs[0], image);
            return Ok(true);
        }
        let (Some(found), Some(scan)) = (sums.get(&id), node.op.as_scan()) else { return Ok(false) };
        cx.done(NAME, title(scan), format!("{} sums are taken inside", found.len()));
        let mut parts = Parts::open(scan, &rebuild.images(&node.ins)?);
        let first = parts.states.len();
        for sum in found {
            accumulate(rebuild, &mut parts, sum);
        }
        let inits: Vec<Option<Value>> = parts.states[first..].iter().map(|s| s.init).collect();
        let outs = parts.put(rebuild, node)?;
        for (k, (sum, init)) in found.iter().zip(inits).enumerate() {
            let (Some(init), g) = (init, &mut rebuild.new) else { continue };
            let all = g.join_rows(&[init, outs[first + k]]);
            let last = g.int(-1);
            let total = g.row(all, last);
            let total = if sum.op.keepdims { g.emit(Expand { axes: sum.op.axes.clone() }, &[total]) } else { total };
            images.insert(sum.node, total);
        }
        Ok(true)
    })
}

/// A sum over the rows of a state.
struct Sum {
    node: NodeId,
    op: Reduce,
    state: StateId,
}

/// The sums that read a state, where nothing reads all its rows but these.
fn summed(g: &Graph, users: &Users, prover: &mut Prover, node: &Node, scan: &Scan, id: StateId) -> Vec<Sum> {
    let state = &scan.states[id];
    let span = state.span();
    let once = state.writes.len() == 1 && state.writes[0] == span && state.keep == Keep::All;
    let init = scan.init_input(id).map(|at| node.ins[at]);
    if !once || !init.is_none_or(|init| prover.at_most(init, span)) {
        return vec![];
    }
    let Ok((readers, _)) = users.readers(node.outs[scan.state_output(id)]) else { return vec![] };
    let behind = readers.iter().all(|r| r.view.skip == span || r.want != Want::Sum && state.init && r.view.skip < span);
    let sum = |node: NodeId| match &g.nodes()[node].op {
        Op::Reduce(op) => Some(Sum { node, op: op.clone(), state: id }),
        _ => None,
    };
    let sums: Vec<Sum> = readers.iter().filter(|r| r.want == Want::Sum).filter_map(|r| sum(r.node)).collect();
    // A kernel of wide rows sums none of them: it stays one where rows as long are kept in any case.
    let others = || scan.states.ids().filter(|&other| other != id).any(|other| users.readers(node.outs[scan.state_output(other)]).is_err());
    if sums.iter().any(|s| s.op.axes.len() > 1) && !several_kernels(&scan.body) && others() {
        return vec![];
    }
    let known = |op: &Reduce| state.init || kept_axes(op, state).all(|axis| state.row.dims[axis].value().is_some());
    if behind && sums.iter().all(|s| known(&s.op)) { sums } else { vec![] }
}

/// The axes of a row that a sum over rows keeps.
fn kept_axes<'a>(op: &'a Reduce, state: &'a State) -> impl Iterator<Item = usize> + 'a {
    (0..state.row.rank()).filter(|axis| !op.axes.contains(&(axis + 1)))
}

/// Adds an accumulator.
fn accumulate(rebuild: &mut Rebuild, parts: &mut Parts, sum: &Sum) {
    let Some(source) = parts.states.iter().find(|s| s.id == Some(sum.state)).cloned() else { return };
    let axes: Vec<usize> = sum.op.axes[1..].iter().map(|axis| axis - 1).collect();
    let (row, body) = (source.results[0], &mut parts.body);
    let dtype = source.slot.row.dtype.accumulator();
    let wide = body.cast(row, dtype);
    let part = if axes.is_empty() { wide } else { body.sum(wide, &axes, false) };
    let ty = body.ty(part).clone();
    let before = body.param(ty.clone(), None);
    let after = body.add(before, part);
    let g = &mut rebuild.new;
    let mut ins = vec![g.constant(Array::full(dtype, &[], 0.0)), g.int(1)];
    for axis in kept_axes(&sum.op, &source.slot) {
        ins.push(match (source.slot.row.dims[axis].value(), source.init) {
            (None, Some(init)) => g.dim(init, axis + 1),
            (n, _) => g.int(n.unwrap_or(1) as i64),
        });
    }
    let init = g.emit(BroadcastTo {}, &ins);
    let slot = State {
        row: ty,
        init: true,
        reads: Offsets::from_slice(&[0]),
        writes: Offsets::from_slice(&[1]),
        keep: Keep::Last(1),
        tag: Tag::Output,
        name: source.slot.name.as_ref().map(|n| format!("sum of {n}").into()),
    };
    parts.states.push(StatePart { id: None, slot, init: Some(init), params: vec![before], results: vec![after] });
}
