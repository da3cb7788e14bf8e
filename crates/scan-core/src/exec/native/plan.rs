//! From a graph to a plan: a graph again, in which kernels stand for loops and for groups of elementwise nodes.

use super::loops::NativeLoop;
use super::maps::NativeMap;
use super::tier::Engine;
use crate::base::Result;
use crate::ir::op::NativeRef;
use crate::ir::{Graph, Node, NodeId, Op, Value};
use crate::lower::expressible;
use crate::lower::groups::Groups;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The plan of a graph: the same parameters and results.
///
/// # Errors
/// An internal error where the graph is not consistent.
pub fn plan(graph: &Graph, engine: Engine) -> Result<Graph> {
    let mut groups = Groups::new(graph, &|n| expressible(graph, n));
    groups.retain(&|root, size| size > 1 || gains(graph, &graph.nodes()[root]));
    let mut out = Graph::new();
    let mut image: FxHashMap<Value, Value> = FxHashMap::default();
    for &p in graph.params() {
        let q = out.param(graph.ty(p).clone(), graph.name(p).map(|n| &**n));
        image.insert(p, q);
    }
    let live = graph.needed(graph.results());
    for (id, node) in graph.nodes().enumerate() {
        if !live[id.0 as usize] || groups.is_inner(id) {
            continue;
        }
        out.set_span(node.span);
        let (op, ins) = planned(graph, &groups, id, engine)?;
        let ins: Vec<Value> = ins.iter().map(|v| image[v]).collect();
        let outs = out.apply(op, &ins)?;
        node.outs.iter().zip(outs).for_each(|(&old, new)| {
            image.insert(old, new);
        });
    }
    out.set_results(graph.results().iter().map(|v| image[v]).collect::<Vec<_>>());
    Ok(out)
}

/// A single node on scalars, or one that hands its input on, is quicker as it is.
fn gains(graph: &Graph, node: &Node) -> bool {
    graph.ty(node.outs[0]).rank() > 0 && matches!(node.op, Op::Elem(_) | Op::Cast(_))
}

fn planned(graph: &Graph, groups: &Groups, id: NodeId, engine: Engine) -> Result<(Op, Vec<Value>)> {
    let node = &graph.nodes()[id];
    if let Some((inner, ins)) = groups.graph(graph, id)? {
        return Ok((Op::Native(NativeRef(Arc::new(NativeMap::new(inner, engine)))), ins));
    }
    let types = || node.outs.iter().map(|&v| graph.ty(v).clone()).collect();
    Ok((native(&node.op, types(), engine)?, node.ins.to_vec()))
}

/// An op as the plan has it: loops are compiled.
///
/// # Errors
/// An internal error where a body is not consistent.
pub fn native(op: &Op, types: crate::ir::op::Outs<crate::types::Type>, engine: Engine) -> Result<Op> {
    Ok(match op {
        Op::Scan(scan) => Op::Native(NativeRef(Arc::new(NativeLoop::new(scan.clone(), types, engine)?))),
        op => op.clone(),
    })
}
