//! Factorises a matrix once for several right sides and its determinant.
//!
//! ```text
//! before  x = solve(a, b);   y = solve(a, v);   i = inverse(a)         b a matrix of p columns, v a vector
//! after   xyi = solve(a, join(b, v as a column, eye(n), axis=1))
//!         x = xyi[:, :p];   y = xyi[:, p];   i = xyi[:, p + 1:]
//!
//! before  x = solve(a, b);   s, l = slogdet(a)
//! after   x, s, l = solve_slogdet(a, b)                                 one factorisation, however many right sides there are
//! ```
//!
//! A factorisation costs as much as solving for a third as many right sides as the matrix has rows, so sharing it pays for few of
//! them, as in a Kalman filter. The right sides are known to have the same number of rows, none depends on the solution for another,
//! and every evaluation computes all of them. A column's solution does not depend on the others: every bit stays. A determinant
//! comes of the factors that solve for a general matrix, and only of them: where nothing is solved for, it stays alone.

use crate::base::{Id, Result};
use crate::ir::op::{Eye, Index, Join, MatrixKind, Outs, Solve, SolveSLogDet};
use crate::ir::{Graph, Node, NodeId, Op, Value};
use crate::rewrite::Cx;
use crate::rewrite::loops::facts::eager;
use crate::rewrite::rebuild::{Rebuild, copy_with};
use crate::types::Dim;
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
    let mut images: FxHashMap<NodeId, Outs<Value>> = FxHashMap::default();
    copy_with(graph, |rebuild, id, node| {
        if let Some(group) = groups.iter().find(|g| g[0] == id) {
            images.extend(group.iter().copied().zip(solve_all(rebuild, group)?));
        }
        let Some(image) = images.get(&id) else { return Ok(false) };
        node.outs.iter().zip(image).for_each(|(&old, &new)| rebuild.set(old, new));
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
        let Some(kind) = kind_of(g, id).filter(|_| node.outs.iter().any(|v| eager[v.idx()])) else { continue };
        let beside = |group: &&mut Vec<NodeId>| {
            let first = &g.nodes()[group[0]];
            let alike =
                first.ins[0] == node.ins[0] && kind_of(g, group[0]) == Some(kind) && g.ty(first.outs[0]).dtype == g.ty(node.outs[0]).dtype;
            let fits = |other: &NodeId| rows(g, id).zip(rows(g, *other)).is_none_or(|(x, y)| x == y);
            alike && group.iter().all(fits) && !group.iter().any(|on| g.needed(&node.ins)[on.idx()])
        };
        match groups.iter_mut().find(beside) {
            Some(group) => group.push(id),
            None => groups.push(vec![id]),
        }
    }
    groups.retain(|group| group.len() > 1 && group.iter().any(|&id| is_system(&g.nodes()[id])));
    groups
}

/// What is known of the matrix of a system: of one matrix, and right sides that are a vector or a matrix.
fn kind_of(g: &Graph, id: NodeId) -> Option<MatrixKind> {
    let node = &g.nodes()[id];
    let plain = node.ins.first().is_some_and(|a| g.ty(*a).rank() == 2);
    match &node.op {
        Op::Solve(op) if plain && g.ty(node.ins[1]).rank() <= 2 && float(g, node.ins[1]) && float(g, node.ins[0]) => Some(op.kind),
        Op::Inverse(_) | Op::SLogDet(_) if plain && float(g, node.ins[0]) => Some(MatrixKind::General),
        _ => None,
    }
}

/// True for what has right sides.
fn is_system(node: &Node) -> bool {
    !matches!(node.op, Op::SLogDet(_))
}

fn float(g: &Graph, v: Value) -> bool {
    g.ty(v).dtype.is_float()
}

/// The number of rows of the right side, if there is one.
fn rows(g: &Graph, id: NodeId) -> Option<Dim> {
    let node = &g.nodes()[id];
    let of = if matches!(node.op, Op::Solve(_)) { node.ins[1] } else { node.ins[0] };
    is_system(node).then(|| g.ty(of).dims[0].clone())
}

/// Images of the outputs of all nodes of a group. What the later ones read is copied first.
fn solve_all(rebuild: &mut Rebuild, group: &[NodeId]) -> Result<Vec<Outs<Value>>> {
    let old = rebuild.old;
    rebuild.inputs_of(group)?;
    let matrix = rebuild.image(old.nodes()[group[0]].ins[0])?;
    let kind = kind_of(old, group[0]).unwrap_or(MatrixKind::General);
    let (systems, determinants): (Vec<NodeId>, Vec<NodeId>) = group.iter().partition(|id| is_system(&old.nodes()[**id]));
    let mut sides = vec![];
    for &id in &systems {
        let node = &old.nodes()[id];
        sides.push(match node.op {
            Op::Solve(_) => (rebuild.image(node.ins[1])?, old.ty(node.ins[1]).rank() == 1),
            _ => (identity(&mut rebuild.new, matrix), false),
        });
    }
    let right = joined(&mut rebuild.new, &sides);
    let mut factored = if determinants.is_empty() {
        rebuild.new.apply(Solve { kind }, &[matrix, right])?
    } else {
        rebuild.new.apply(SolveSLogDet {}, &[matrix, right])?
    };
    let mut parts = parts(&mut rebuild.new, factored.remove(0), &sides).into_iter();
    let image = |id: &NodeId| if is_system(&old.nodes()[*id]) { parts.next().into_iter().collect() } else { factored.clone() };
    Ok(group.iter().map(image).collect())
}

fn identity(g: &mut Graph, like: Value) -> Value {
    let (n, zero) = (g.dim(like, 0), g.int(0));
    g.emit(Eye { dtype: g.ty(like).dtype }, &[n, n, zero])
}

/// All right sides beside each other; which of them are vectors is told. A single one stays as it is.
fn joined(g: &mut Graph, sides: &[(Value, bool)]) -> Value {
    if let [(side, _)] = sides {
        return *side;
    }
    let columns: Vec<Value> = sides.iter().map(|&(b, vector)| if vector { g.expand(b, &[1]) } else { b }).collect();
    g.emit(Join { axis: 1 }, &columns)
}

/// The solution for all right sides in parts.
fn parts(g: &mut Graph, all: Value, sides: &[(Value, bool)]) -> Vec<Value> {
    if sides.len() == 1 {
        return vec![all];
    }
    let mut rest = all;
    let mut parts = vec![];
    for (k, &(b, vector)) in sides.iter().enumerate() {
        let n = if vector { g.int(1) } else { g.dim(b, 1) };
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
