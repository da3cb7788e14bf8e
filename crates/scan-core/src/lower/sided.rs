//! Loops in a step that only one branch of `ifelse` needs: no steps where that branch is not taken.
//!
//! ```text
//! y = ifelse(c, h[-1], x)        h = scan where(c, n, 0) { … }
//! h = scan n { … }               y = ifelse(c, h[-1], x)
//! ```
//!
//! Whatever else a branch needs is computed in any case, where the step is a kernel; what a loop in it finds is not taken then.

use super::Lowered;
use super::scan::{Kind, Kinds};
use crate::base::Id;
use crate::ir::{Def, Graph, Node, NodeId, Op, Scan, Value};
use crate::scalar::ElemOp;
use crate::types::DType;
use rustc_hash::FxHashMap;

/// Conditions, from the outermost on, and whether each holds where something is needed.
type Path = Vec<(Value, bool)>;

/// The body with no steps for loops of branches that are not taken; `None` where there are no such loops.
pub(super) fn with_sides(scan: &Scan, body: &Graph) -> Lowered<Option<Graph>> {
    if !body.nodes().iter().any(|n| matches!(n.op, Op::IfElse(_))) {
        return Ok(None);
    }
    let kinds = Kinds::new(scan, body);
    let mut paths = paths(body);
    let step = |node: &Node| matches!(node.op, Op::Scan(_)) && node.outs.iter().any(|&v| kinds.of(v) == Kind::Step);
    paths.retain(|id, path| !path.is_empty() && step(&body.nodes()[*id]));
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
        for &(condition, holds) in paths.get(&id).into_iter().flatten().rev() {
            let (steps, none) = (ins[Scan::N_STEPS], out.int(0));
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

/// Per node that is needed: the conditions under which it is.
fn paths(body: &Graph) -> FxHashMap<NodeId, Path> {
    let mut wanted: FxHashMap<Value, Path> = body.results().iter().map(|&v| (v, vec![])).collect();
    let mut paths = FxHashMap::default();
    let nodes: Vec<_> = body.nodes().enumerate().collect();
    for (id, node) in nodes.into_iter().rev() {
        let Some(path) = node.outs.iter().filter_map(|v| wanted.get(v).cloned()).reduce(common) else { continue };
        for (k, &v) in node.ins.iter().enumerate() {
            let mut use_ = path.clone();
            if k > 0 && matches!(node.op, Op::IfElse(_)) {
                use_.push((node.ins[0], k == 1));
            }
            let all = match wanted.remove(&v) {
                Some(before) => common(before, use_),
                None => use_,
            };
            wanted.insert(v, all);
        }
        paths.insert(id, path);
    }
    paths
}

fn common(mut a: Path, b: Path) -> Path {
    let same = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    a.truncate(same);
    a
}

/// Nodes that are needed, each behind what it needs and behind the conditions on its path. No condition needs what is needed under it alone.
fn ordered(body: &Graph, paths: &FxHashMap<NodeId, Path>) -> Vec<NodeId> {
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
