//! Joins parts that are written beside each other into zeros and added up.
//!
//! ```text
//! before  z = zeros like x;   inc(z, a, :, 0:p) + inc(z, b, :, p:q)
//! after   join(0 + a, 0 + b, z[:, q:], axis=1)
//! ```
//!
//! This is what the gradient of `x[:, 0:p]` and `x[:, p:q]` looks like. Bounds are constants, the parts follow each other without a gap
//! from the front on, and nothing else reads the sums between. What is written is broadcast to its place as before; `0 + a` is not a
//! where a is −0.

use crate::base::{Id, Result};
use crate::ir::op::{Index, IndexWrite, Join, Write};
use crate::ir::{Graph, NodeId, Op, Value};
use crate::ops::index::{Item, Pattern};
use crate::rewrite::driver::Cx;
use crate::rewrite::loops::facts::integer;
use crate::rewrite::rebuild::copy_with;
use crate::scalar::ElemOp;
use crate::types::Sym;

const NAME: &str = "join_writes";

/// The graph with joined parts.
///
/// # Errors
/// Internal ones.
pub fn run(cx: &mut Cx, graph: &Graph) -> Result<Option<Graph>> {
    if !graph.nodes().iter().any(|n| matches!(n.op, Op::IndexWrite(_))) {
        return Ok(None);
    }
    let uses = graph.uses();
    copy_with(graph, |rebuild, id, node| {
        let Some(parts) = parts(graph, &uses, id) else { return Ok(false) };
        let (since, into) = (Sym::fresh(), rebuild.image(parts[0].into)?);
        let axis = parts[0].axis;
        let mut joined = vec![];
        for part in &parts {
            let what = rebuild.image(part.what)?;
            let g = &mut rebuild.new;
            let (lo, hi, zero) = (g.int(part.from), g.int(part.to), g.number(g.ty(into).dtype, 0.0));
            let place = g.emit(Index { pattern: pattern(axis, "s:e") }, &[into, lo, hi]);
            let wide = g.broadcast_like(what, place);
            joined.push(g.add(zero, wide));
        }
        let g = &mut rebuild.new;
        let end = g.int(parts[parts.len() - 1].to);
        joined.push(g.emit(Index { pattern: pattern(axis, "s:") }, &[into, end]));
        let value = g.emit(Join { axis }, &joined);
        g.learn(value, graph, node.outs[0], since);
        rebuild.set(node.outs[0], value);
        *cx.report.fired.entry((NAME, "inc(0, a, :p) + inc(0, b, p:) → join(a, b)")).or_default() += 1;
        Ok(true)
    })
}

fn pattern(axis: usize, slice: &str) -> String {
    format!("{}{slice}", ":,".repeat(axis))
}

/// Something written into zeros.
struct Part {
    into: Value,
    what: Value,
    axis: usize,
    from: i64,
    to: i64,
}

/// The parts of a sum, in order, where they follow each other from the front on.
fn parts(g: &Graph, uses: &[u32], id: NodeId) -> Option<Vec<Part>> {
    let node = &g.nodes()[id];
    if !matches!(node.op, Op::Elem(ElemOp::Add)) {
        return None;
    }
    let mut parts = vec![];
    for &v in &node.ins {
        collect(g, uses, v, &mut parts)?;
    }
    parts.sort_by_key(|p| p.from);
    let first = parts.first()?;
    let alike = parts.iter().all(|p| p.into == first.into && p.axis == first.axis);
    let beside = first.from == 0 && parts.windows(2).all(|p| p[0].to == p[1].from);
    (alike && beside && g.ty(node.outs[0]) == g.ty(first.into)).then_some(parts)
}

fn collect(g: &Graph, uses: &[u32], v: Value, parts: &mut Vec<Part>) -> Option<()> {
    let node = g.node_of(v).filter(|_| uses[v.idx()] == 1)?;
    match &node.op {
        Op::Elem(ElemOp::Add) => node.ins.iter().try_for_each(|&v| collect(g, uses, v, parts)),
        Op::IndexWrite(op) => part(g, op, &node.ins).map(|p| parts.push(p)),
        _ => None,
    }
}

fn part(g: &Graph, op: &IndexWrite, ins: &[Value]) -> Option<Part> {
    let pattern = Pattern::parse(&op.pattern).ok()?;
    let (&last, before) = pattern.items.split_last()?;
    let whole = before.iter().all(|item| *item == Item::ALL) && op.mode == Write::Inc && zeros(g, ins[0]);
    let Item::Slice { start, end: true, step: 1 } = last else { return None };
    let from = if start { integer(g, ins[2])? } else { 0 };
    let to = integer(g, ins[2 + usize::from(start)])?;
    let same = g.ty(ins[0]).dtype == g.ty(ins[1]).dtype;
    (whole && same && from >= 0 && to > from).then_some(Part { into: ins[0], what: ins[1], axis: before.len(), from, to })
}

/// True for +0 everywhere.
fn zeros(g: &Graph, v: Value) -> bool {
    match g.node_of(v).map(|n| (&n.op, &n.ins)) {
        Some((op, ins)) if op.broadcasts() => zeros(g, ins[0]),
        Some((Op::Const(a), _)) => a.dtype().is_float() && a.to_f64_vec().iter().all(|x| x.to_bits() == 0),
        _ => false,
    }
}
