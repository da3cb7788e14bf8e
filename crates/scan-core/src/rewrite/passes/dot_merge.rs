//! Multiplies once where a step multiplies the same value with several matrices.
//!
//! ```text
//! before  scan n { state h; const U, V;   a = h @ U;   b = h @ V;   … }
//! after   UV = join(U, V, axis=1)
//!         scan n { state h; const UV;     ab = h @ UV;   a = ab[:, :p];   b = ab[:, p:];   … }
//! ```
//!
//! These are the gates of recurrent networks. The matrices are the same at every step, so that they are joined once, and every step
//! computes all the products. Small products written out as scalars stay as they are. Matrices that do not fit each other are joined
//! without their rows, so that it is the product that fails, as before. Floats may be rounded otherwise, since a product's order of
//! summation depends on its extents.

use crate::base::{Id, Result};
use crate::ir::op::{Index, Join, MatMul};
use crate::ir::{Graph, Node, Op, Value};
use crate::rewrite::Cx;
use crate::rewrite::loops::Parts;
use crate::rewrite::loops::cost::heavy;
use crate::rewrite::loops::facts::{eager, for_values};
use crate::rewrite::loops::parts::title;
use crate::rewrite::rebuild::{Rebuild, copy_with};
use crate::scalar::ElemOp;

const NAME: &str = "dot_merge";

/// More elements than any axis has.
const ALL: i64 = i64::MAX;

/// The graph with fewer products in its loops.
///
/// # Errors
/// Internal ones.
pub fn run(cx: &mut Cx, graph: &Graph) -> Result<Option<Graph>> {
    copy_with(graph, |rebuild, _, node| {
        let Some(scan) = node.op.as_scan().filter(|s| !s.body.whole().effects) else { return Ok(false) };
        let mut parts = Parts::open(scan, &node.ins);
        let groups = groups(&parts);
        if groups.is_empty() {
            return Ok(false);
        }
        for group in &groups {
            cx.done(NAME, title(scan), format!("{} products become one", group.products.len()));
        }
        parts.fill(|v| rebuild.image(v))?;
        for group in groups {
            merge(rebuild, &mut parts, &group)?;
        }
        parts.put(rebuild, node).map(|_| true)
    })
}

/// Products of one value with captured matrices.
struct Group {
    left: Value,
    /// Per product: its value, and which captured value its matrix is.
    products: Vec<(Value, usize)>,
}

fn groups(parts: &Parts) -> Vec<Group> {
    let body = &parts.body;
    let (eager, values, live) = (eager(body), for_values(body), parts.live());
    let mut groups: Vec<Group> = vec![];
    for node in body.nodes().iter().filter(|n| matches!(n.op, Op::MatMul(_)) && live[n.outs[0].idx()]) {
        let value = node.outs[0];
        let Some(at) = parts.captured.iter().position(|c| c.param == node.ins[1]) else { continue };
        if !eager[value.idx()] || !values[value.idx()] || !fits(parts, node) {
            continue;
        }
        match groups.iter_mut().find(|g| g.left == node.ins[0] && body.ty(g.products[0].0).dtype == body.ty(value).dtype) {
            Some(group) => group.products.push((value, at)),
            None => groups.push(Group { left: node.ins[0], products: vec![(value, at)] }),
        }
    }
    groups.retain(|g| g.products.len() > 1);
    groups
}

/// True for a product of a vector or matrix, not the same at every step, with a matrix of its dtype, that is no scalar code.
fn fits(parts: &Parts, node: &Node) -> bool {
    let (body, fixed) = (&parts.body, parts.captured.iter().any(|c| c.param == node.ins[0]));
    let (x, w) = (body.ty(node.ins[0]), body.ty(node.ins[1]));
    !fixed && matches!(x.rank(), 1 | 2) && w.rank() == 2 && x.dtype == w.dtype && heavy(body, node)
}

fn merge(rebuild: &mut Rebuild, parts: &mut Parts, group: &Group) -> Result<()> {
    let matrices: Vec<Value> = group.products.iter().map(|&(_, at)| parts.captured[at].value).collect();
    let g = &mut rebuild.new;
    let joined = joined(g, &matrices);
    let param = parts.body.param(g.ty(joined).clone(), None);
    let rank = parts.body.ty(group.left).rank();
    let product = parts.body.apply(MatMul {}, &[group.left, param])?[0];
    let params: Vec<Value> = group.products.iter().map(|&(_, at)| parts.captured[at].param).collect();
    parts.capture(joined, param);
    let mut rest = product;
    let last = group.products.len() - 1;
    for (k, (&(value, _), w)) in group.products.iter().zip(params).enumerate() {
        let columns = parts.body.dim(w, 1);
        let part = if k == last { rest } else { cut(&mut parts.body, rest, columns, rank, ":e") };
        if k < last {
            rest = cut(&mut parts.body, rest, columns, rank, "s:");
        }
        parts.alias(value, part);
    }
    Ok(())
}

/// Some of the last axis.
fn cut(g: &mut Graph, x: Value, at: Value, rank: usize, part: &str) -> Value {
    let pattern = if rank == 2 { format!(":,{part}") } else { part.to_string() };
    g.emit(Index { pattern }, &[x, at])
}

/// Matrices beside each other: without rows where they do not have the same number.
fn joined(g: &mut Graph, matrices: &[Value]) -> Value {
    let rows = |g: &Graph, v: Value| g.ty(v).dims[0].clone();
    if matrices.iter().all(|&m| rows(g, m) == rows(g, matrices[0])) {
        return g.emit(Join { axis: 1 }, matrices);
    }
    let (first, all, none) = (g.dim(matrices[0], 0), g.int(ALL), g.int(0));
    let mut end = all;
    for &m in &matrices[1..] {
        let here = g.dim(m, 0);
        let same = g.emit(Op::Elem(ElemOp::Eq), &[first, here]);
        end = g.select(same, end, none);
    }
    let cut: Vec<Value> = matrices.iter().map(|&m| g.emit(Index { pattern: ":e".into() }, &[m, end])).collect();
    g.emit(Join { axis: 1 }, &cut)
}
