//! The nodes of a plan: kernels in the place of loops and of groups of elementwise nodes.

use super::foot::Foot;
use super::gathered::Gathered;
use super::head::Head;
use super::last_row::LastRow;
use super::loops::{NativeLoop, Sides};
use super::maps::NativeMap;
use super::padded::Padded;
use super::planner::Planner;
use super::shortcut::Found;
use super::tail::Tail;
use super::tier::Engine;
use crate::base::{Id, Result};
use crate::ir::op::{NativeRef, Outs};
use crate::ir::{Def, Graph, Keep, Node, NodeId, Op, Value};
use crate::lower::expressible;
use crate::lower::feet::{self, Feet};
use crate::lower::groups::{Groups, Part};
use crate::lower::heads::{self, Heads};
use crate::types::Type;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// The plan of a graph without regions: the same parameters and results.
///
/// # Errors
/// An internal error where the graph is not consistent.
pub(super) fn planned_nodes(graph: &Graph, planner: Planner) -> Result<Graph> {
    let mut live = graph.needed(graph.results());
    let mut skips = Skips::new(graph, &live);
    let Beside { mut heads, mut feet } = Beside::new(graph, &mut live, planner.engine);
    let mut groups = Groups::large(graph, &|n| expressible(graph, n) && !heads.has(n) && !feet.has(n));
    groups.retain(&|root, size| size > 1 || gains(graph, &graph.nodes()[root]));
    let mut out = Graph::new();
    let mut image: FxHashMap<Value, Value> = FxHashMap::default();
    for &p in graph.params() {
        let q = out.param(graph.ty(p).clone(), graph.name(p).map(|n| &**n));
        image.insert(p, q);
    }
    feet.own(graph).for_each(|rows| skips.forget(rows));
    let (mut quick, _) = quick(graph, &live, &groups, planner.engine)?;
    for (id, node) in graph.nodes().enumerate() {
        if let Some(&rows) = skips.slices.get(&node.outs[0]).filter(|_| live[id.0 as usize]) {
            image.insert(node.outs[0], image[&rows]);
            continue;
        }
        if !live[id.0 as usize] || groups.is_inner(id) || heads.has(node) || feet.has(node) {
            continue;
        }
        out.set_span(node.span);
        let (op, ins, outs) = match quick.remove(&id) {
            Some((op, ins)) => (Op::Native(op), ins, node.outs.to_vec()),
            None => planned(graph, &groups, &skips, (heads.take(id), feet.take(id)), id, planner)?,
        };
        let ins: Vec<Value> = ins.iter().map(|v| image[v]).collect();
        let made = out.apply(op, &ins)?;
        outs.iter().zip(made).for_each(|(&old, new)| {
            image.insert(old, new);
        });
    }
    out.set_results(graph.results().iter().map(|v| image[v]).collect::<Vec<_>>());
    Ok(out)
}

/// What is computed beside loops, a block of rows at a time: with the host alone.
#[derive(Default)]
pub(super) struct Beside {
    pub heads: Heads,
    pub feet: Feet,
}

impl Beside {
    /// Of the live nodes; `live` becomes what is live without them.
    pub fn new(graph: &Graph, live: &mut Vec<bool>, engine: Engine) -> Beside {
        if matches!(engine, Engine::Device(_)) {
            return Beside::default();
        }
        let heads = Heads::new(graph, live);
        let feet = Feet::new(graph, live, &|n| !heads.has(n));
        Beside { heads, feet }
    }
}

/// The nodes that [`quick`] finds, or leaves out.
pub(super) fn quick_nodes(graph: &Graph, live: &[bool], free: &dyn Fn(&Node) -> bool, engine: Engine) -> Result<FxHashSet<NodeId>> {
    let groups = Groups::large(graph, &|n| expressible(graph, n) && free(n));
    let (found, inside) = quick(graph, live, &groups, engine)?;
    let made = inside.iter().filter_map(|&v| if let Def::Out(id, _) = graph.def(v) { Some(id) } else { None });
    Ok(found.keys().copied().chain(made).collect())
}

/// What is quicker as one node, and its inputs, by the node that makes its result; what is computed on the way.
type Quick = (FxHashMap<NodeId, (NativeRef, Vec<Value>)>, FxHashSet<Value>);

/// Nodes that, with others whose values nothing else reads, are quicker as one.
fn quick(graph: &Graph, live: &[bool], groups: &Groups, engine: Engine) -> Result<Quick> {
    // They are ways of the host.
    if matches!(engine, Engine::Device(_)) {
        return Ok(Quick::default());
    }
    let uses = graph.uses();
    let all = || graph.nodes().enumerate().filter(|(id, _)| live[id.0 as usize]);
    let once = |v: Value| uses[v.idx()] == 1 && !groups.makes(graph, v);
    let mut found = FxHashMap::default();
    let mut inside: FxHashSet<Value> = FxHashSet::default();
    for (id, node) in all().rev().filter(|(_, n)| !n.outs.is_empty()) {
        if inside.contains(&node.outs[0]) {
            continue;
        }
        let mut shortcut = Gathered::of(graph, node, once)?;
        if shortcut.is_none() {
            shortcut = Tail::of(graph, node)?;
        }
        if shortcut.is_none() {
            shortcut = Padded::of(graph, node, once)?;
        }
        if shortcut.is_none() {
            shortcut = LastRow::of(graph, node, once)?;
        }
        if let Some(Found { op, ins, inner }) = shortcut {
            inside.extend(inner);
            found.insert(id, (op, ins));
        }
    }
    Ok((found, inside))
}

/// A single node on scalars, or one that hands its input on, is quicker as it is.
fn gains(graph: &Graph, node: &Node) -> bool {
    graph.ty(node.outs[0]).rank() > 0 && node.op.elementwise()
}

/// What stands in the place of a node: an op, its inputs and its results.
fn planned(
    graph: &Graph,
    groups: &Groups,
    skips: &Skips,
    (head, foot): (Option<heads::Head>, Option<feet::Foot>),
    id: NodeId,
    planner: Planner,
) -> Result<(Op, Vec<Value>, Vec<Value>)> {
    let node = &graph.nodes()[id];
    if let Some(Part { graph: inner, ins, outs }) = groups.graph(graph, id)? {
        return Ok((Op::Native(NativeRef(Arc::new(NativeMap::new(inner, planner)))), ins, outs));
    }
    let mut types: Outs<Type> = node.outs.iter().map(|v| graph.ty(*skips.of.get(v).map_or(v, |s| &s.1)).clone()).collect();
    let skip = node.outs.iter().map(|v| skips.of.get(v).map_or(0, |s| s.0)).collect();
    let mut ins = node.ins.to_vec();
    if let (Op::Scan(scan), Some(head)) = (&node.op, &head) {
        head.seqs.iter().for_each(|&id| ins[scan.seq_input(id)] = head.ins[0]);
        ins.extend(&head.ins);
    }
    let mut outs = node.outs.to_vec();
    if let Some(foot) = &foot {
        ins.extend(foot.cut.iter().map(|c| c.0).chain(foot.whole.iter().copied()));
        outs.extend(foot.rows.iter().copied().chain(foot.sums.iter().map(|s| s.0)));
        types.extend(outs[node.outs.len()..].iter().map(|&v| graph.ty(v).clone()));
    }
    let head = head.map(|head| planner.graph(&head.graph).map(|plan| Head::new(plan, head))).transpose()?;
    let foot = foot.map(|foot| planner.graph(&foot.graph).map(|plan| Foot::new(plan, foot))).transpose()?;
    Ok((native_without(&node.op, types, skip, Sides { head, foot }, planner), ins, outs))
}

/// An op as the plan has it: loops are compiled.
pub(super) fn native(op: &Op, types: Outs<Type>, planner: Planner) -> Op {
    let none = vec![0; types.len()];
    native_without(op, types, none, Sides::default(), planner)
}

fn native_without(op: &Op, types: Outs<Type>, skip: Vec<usize>, sides: Sides, planner: Planner) -> Op {
    match op {
        Op::Scan(scan) => Op::Native(NativeRef(Arc::new(NativeLoop::new(scan.clone(), types, skip, sides, planner)))),
        op => op.clone(),
    }
}

/// Rows of states of which only `rows[k:]` is read, with one k: the loop then returns that.
struct Skips {
    /// k and the slice, by the rows of the state.
    of: FxHashMap<Value, (usize, Value)>,
    /// Rows by slice.
    slices: FxHashMap<Value, Value>,
}

impl Skips {
    fn new(graph: &Graph, live: &[bool]) -> Skips {
        let mut slices: FxHashMap<Value, Option<(usize, Value)>> = FxHashMap::default();
        let mut all: Vec<(Value, Value)> = vec![];
        for (_, node) in graph.nodes().enumerate().filter(|n| live[n.0.0 as usize]) {
            let slice = first_of_slice(graph, node);
            for &v in &node.ins {
                let found = slice.filter(|_| v == node.ins[0]).map(|k| (k, node.outs[0]));
                let first = slices.entry(v).or_insert(found);
                if first.map(|f| f.0) != found.map(|f| f.0) {
                    *first = None;
                }
                all.extend(found.map(|f| (v, f.1)));
            }
        }
        graph.results().iter().for_each(|v| _ = slices.insert(*v, None));
        let is_rows = |v: Value| match graph.def(v) {
            // Of a loop that returns the last rows alone, the first of these are not the first rows that it makes.
            Def::Out(id, k) => {
                matches!(&graph.nodes()[id].op, Op::Scan(scan) if scan.states.iter().nth(k).is_some_and(|s| s.keep == Keep::All))
            }
            Def::Param(_) => false,
        };
        let of: FxHashMap<Value, (usize, Value)> = slices.into_iter().filter(|s| is_rows(s.0)).filter_map(|(v, s)| Some((v, s?))).collect();
        let slices = all.into_iter().filter(|s| of.contains_key(&s.0)).map(|(rows, slice)| (slice, rows)).collect();
        Skips { of, slices }
    }
    /// All rows are wanted after all.
    fn forget(&mut self, rows: Value) {
        self.of.remove(&rows);
    }
}

/// k of a node `x[k:]`.
fn first_of_slice(graph: &Graph, node: &Node) -> Option<usize> {
    let Op::Index(index) = &node.op else { return None };
    let k = graph.const_value(*node.ins.get(1)?)?.item_i64()?;
    if index.pattern == "s:" { usize::try_from(k).ok() } else { None }
}
