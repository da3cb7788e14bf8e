//! Factorises a matrix once for several right sides.
//!
//! ```text
//! before  x = solve(a, b);   y = solve(a, v);   i = inverse(a)         b a matrix of p columns, v a vector
//! after   xyi = solve(a, join(b, v as a column, eye(n), axis=1))
//!         x = xyi[:, :p];   y = xyi[:, p];   i = xyi[:, p + 1:]
//! ```
//!
//! A factorisation costs as much as solving for a third as many right sides as the matrix has rows, so sharing it pays for few of
//! them, as in a Kalman filter. The right sides are known to have the same number of rows, none depends on the solution for another,
//! and every evaluation computes all of them. A column's solution does not depend on the others: every bit stays.

use crate::base::{Id, Result};
use crate::ir::op::{Eye, Index, Join, MatrixKind, Solve};
use crate::ir::{Graph, NodeId, Op, Value};
use crate::rewrite::Cx;
use crate::rewrite::loops::facts::eager;
use crate::rewrite::rebuild::{Rebuild, copy_with};
use rustc_hash::FxHashMap;

const NAME: &str = "linalg_share";

/// The graph with fewer factorisations.
///
/// # Errors
/// Internal ones.
pub fn run(cx: &mut Cx, graph: &Graph) -> Result<Option<Graph>> {
    let groups = groups(graph);
    if groups.is_empty() {
        return Ok(None);
    }
    for group in &groups {
        cx.done(NAME, "graph", format!("{} systems with one matrix share its factors", group.len()));
    }
    let mut images: FxHashMap<NodeId, Value> = FxHashMap::default();
    copy_with(graph, |rebuild, id, node| {
        if let Some(&image) = images.get(&id) {
            rebuild.set(node.outs[0], image);
            return Ok(true);
        }
        let Some(group) = groups.iter().find(|g| g[0] == id) else { return Ok(false) };
        for (&member, value) in group.iter().zip(solve_all(rebuild, group)?) {
            images.insert(member, value);
        }
        rebuild.set(node.outs[0], images[&id]);
        Ok(true)
    })
}

/// Nodes with one matrix. All that the first one is replaced by must be there before it.
fn groups(g: &Graph) -> Vec<Vec<NodeId>> {
    if g.nodes().enumerate().filter(|(id, _)| kind_of(g, *id).is_some()).count() < 2 {
        return vec![];
    }
    let eager = eager(g);
    let mut groups: Vec<Vec<NodeId>> = vec![];
    for (id, node) in g.nodes().enumerate() {
        let Some(kind) = kind_of(g, id).filter(|_| eager[node.outs[0].idx()]) else { continue };
        let beside = |group: &&mut Vec<NodeId>| {
            let first = &g.nodes()[group[0]];
            let alike =
                first.ins[0] == node.ins[0] && kind_of(g, group[0]) == Some(kind) && g.ty(first.outs[0]).dtype == g.ty(node.outs[0]).dtype;
            alike && rows(g, id) == rows(g, group[0]) && !group.iter().any(|on| g.needed(&node.ins)[on.idx()])
        };
        match groups.iter_mut().find(beside) {
            Some(group) => group.push(id),
            None => groups.push(vec![id]),
        }
    }
    groups.retain(|g| g.len() > 1);
    groups
}

/// What is known of the matrix of a system: of one matrix, and right sides that are a vector or a matrix.
fn kind_of(g: &Graph, id: NodeId) -> Option<MatrixKind> {
    let node = &g.nodes()[id];
    let plain = node.ins.first().is_some_and(|a| g.ty(*a).rank() == 2);
    match &node.op {
        Op::Solve(op) if plain && g.ty(node.ins[1]).rank() <= 2 && float(g, node.ins[1]) && float(g, node.ins[0]) => Some(op.kind),
        Op::Inverse(_) if plain && float(g, node.ins[0]) => Some(MatrixKind::General),
        _ => None,
    }
}

fn float(g: &Graph, v: Value) -> bool {
    g.ty(v).dtype.is_float()
}

/// The number of rows of the right side.
fn rows(g: &Graph, id: NodeId) -> crate::types::Dim {
    let node = &g.nodes()[id];
    let of = if matches!(node.op, Op::Solve(_)) { node.ins[1] } else { node.ins[0] };
    g.ty(of).dims[0].clone()
}

/// Solutions of all systems of a group. What the later ones read is copied first.
fn solve_all(rebuild: &mut Rebuild, group: &[NodeId]) -> Result<Vec<Value>> {
    let old = rebuild.old;
    rebuild.inputs_of(group)?;
    let matrix = rebuild.image(old.nodes()[group[0]].ins[0])?;
    let kind = kind_of(old, group[0]).unwrap_or(MatrixKind::General);
    let mut sides = vec![];
    for &id in group {
        let node = &old.nodes()[id];
        sides.push(match node.op {
            Op::Solve(_) => (rebuild.image(node.ins[1])?, old.ty(node.ins[1]).rank() == 1),
            _ => (identity(&mut rebuild.new, matrix), false),
        });
    }
    Ok(shared(&mut rebuild.new, kind, matrix, &sides))
}

fn identity(g: &mut Graph, like: Value) -> Value {
    let (n, zero) = (g.dim(like, 0), g.int(0));
    g.emit(Eye { dtype: g.ty(like).dtype }, &[n, n, zero])
}

/// One system for all right sides, and its solution in parts.
fn shared(g: &mut Graph, kind: MatrixKind, matrix: Value, sides: &[(Value, bool)]) -> Vec<Value> {
    let columns: Vec<Value> = sides.iter().map(|&(b, vector)| if vector { g.expand(b, &[1]) } else { b }).collect();
    let all = g.emit(Join { axis: 1 }, &columns);
    let mut rest = g.emit(Solve { kind }, &[matrix, all]);
    let mut parts = vec![];
    for (k, (&b, &(_, vector))) in columns.iter().zip(sides).enumerate() {
        let n = g.dim(b, 1);
        let part = match (vector, k + 1 == sides.len()) {
            (true, _) => {
                let first = g.int(0);
                g.emit(Index { pattern: ":,i".into() }, &[rest, first])
            }
            (false, true) => rest,
            (false, false) => g.emit(Index { pattern: ":,:e".into() }, &[rest, n]),
        };
        parts.push(part);
        if k + 1 < sides.len() {
            rest = g.emit(Index { pattern: ":,s:".into() }, &[rest, n]);
        }
    }
    parts
}
