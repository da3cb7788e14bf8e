//! Loops in a step that only one branch of `ifelse` needs: no steps where that branch is not taken, or one of a loop that is known to have some,
//! so that it has a last row.
//!
//! ```text
//! h = scan n { … }               h = scan where(c, n, 0) { … }
//! y = ifelse(c, h[-1], x)        y = ifelse(c, h[-1], x)
//! ```
//!
//! Whatever else a branch needs is computed in any case, where the step is a kernel; what a loop in it finds is not taken then.

use super::Lowered;
use super::kinds::{Kind, Kinds};
use super::rooms::UNBOUNDED;
use crate::base::Id;
use crate::ir::needs::{At, Needs};
use crate::ir::{Def, Graph, Node, NodeId, Op, Scan, Value};
use crate::scalar::ElemOp;
use crate::types::{Array, DType};
use rustc_hash::FxHashMap;

/// The body with no steps for loops of branches that are not taken; `None` where there are no such loops.
pub(super) fn with_sides(scan: &Scan, body: &Graph) -> Lowered<Option<Graph>> {
    if !body.nodes().iter().any(|n| matches!(n.op, Op::IfElse(_))) {
        return Ok(None);
    }
    let kinds = Kinds::new(scan, body);
    let (live, needs) = (body.needed(body.results()), Needs::of(body, 0..body.nodes().len(), body.results().iter().copied()));
    let step = |node: &Node| matches!(node.op, Op::Scan(_)) && node.outs.iter().any(|&v| kinds.of(v) == Kind::Step);
    let loops = body.nodes().enumerate().filter(|(id, node)| live[id.idx()] && step(node));
    let paths: FxHashMap<NodeId, At> = loops.map(|(id, node)| (id, needs.node(node))).filter(|(_, at)| !at.is_empty()).collect();
    if paths.is_empty() {
        return Ok(None);
    }
    let (mut out, mut image) = (Graph::new(), FxHashMap::default());
    for &p in body.params() {
        image.insert(p, out.param(body.ty(p).clone(), body.name(p).map(|n| &**n)));
    }
    for id in ordered(body, &paths) {
        let node = &body.nodes()[id];
        out.set_span(node.span);
        let mut ins: Vec<Value> = node.ins.iter().map(|v| image[v]).collect();
        let path = paths.get(&id).filter(|path| !counted(body, node, path, &paths));
        let known = path.and_then(|_| body.const_value(node.ins[Scan::N_STEPS]).and_then(Array::item_i64));
        if let Some(n) = known {
            ins[Scan::N_STEPS] = out.int(n.min(UNBOUNDED as i64));
        }
        for &(condition, holds) in path.into_iter().flatten().rev() {
            let (steps, none) = (ins[Scan::N_STEPS], out.int(i64::from(known.is_some_and(|n| n > 0))));
            let truth = out.cast(image[&condition], DType::Bool);
            let (then, other) = if holds { (steps, none) } else { (none, steps) };
            ins[Scan::N_STEPS] = out.apply(Op::Elem(ElemOp::Where), &[truth, then, other])?[0];
        }
        let outs = out.apply(node.op.clone(), &ins)?;
        image.extend(node.outs.iter().copied().zip(outs));
    }
    let results: Vec<Value> = body.results().iter().map(|v| image[v]).collect();
    out.set_results(results);
    Ok(Some(out))
}

/// True for a loop of as many steps as one has made that has the same path.
fn counted(body: &Graph, node: &Node, path: &At, paths: &FxHashMap<NodeId, At>) -> bool {
    let made = |v: Value| if let Def::Out(id, _) = body.def(v) { paths.get(&id) } else { None };
    made(node.ins[Scan::N_STEPS]) == Some(path)
}

/// Nodes that are needed, each behind what it needs and behind the conditions on its path. No condition needs what is needed under it alone.
fn ordered(body: &Graph, paths: &FxHashMap<NodeId, At>) -> Vec<NodeId> {
    let (mut order, mut placed) = (vec![], vec![false; body.nodes().len()]);
    let maker = |v: &Value| if let Def::Out(id, _) = body.def(*v) { Some(id) } else { None };
    let mut stack: Vec<(NodeId, bool)> = body.results().iter().rev().filter_map(maker).map(|id| (id, false)).collect();
    while let Some((id, ready)) = stack.pop() {
        if placed[id.idx()] {
            continue;
        }
        if ready {
            placed[id.idx()] = true;
            order.push(id);
            continue;
        }
        stack.push((id, true));
        let conditions = paths.get(&id).into_iter().flatten().map(|(condition, _)| condition);
        let needs = conditions.chain(&body.nodes()[id].ins).filter_map(maker).filter(|need| !placed[need.idx()]);
        stack.extend(needs.map(|need| (need, false)).collect::<Vec<_>>());
    }
    order
}
