//! Regions: nodes outside of loops that can run as one list of kernels, as the step of a loop does.
//!
//! The nodes between two *barriers* (loops, calls, what may be left out, where such things need a node of a region) are one region, if there are
//! enough of them. Whoever runs it decides by the extents of a call whether a list is quicker than node by node.

use super::groups::Part;
use crate::base::{Id, Result};
use crate::ir::{Def, Graph, Keep, Node, NodeId, Op, Scan, Value};
use crate::ops::properties::{Cost, Makes};
use crate::types::{DType, Type};
use rustc_hash::{FxHashMap, FxHashSet};

/// How many nodes a region has at least: so many that compute, of which so many sum, multiply or choose along an axis.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Least(usize, usize);

/// With the host: elementwise nodes alone are kernels already.
pub const HERE: Least = Least(3, 2);
/// On a device, where nothing that it computes is to cross.
pub const THERE: Least = Least(1, 0);

/// Nodes that cannot be in a region are found one after the other; what is left then has none.
const ROUNDS: usize = 8;

/// What a node is to regions, in the order in which those of one level run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Role {
    /// A constant, or an integer that is made of extents: computed where it is needed, in regions once more. Or what cannot be a member and needs
    /// none: no region ends there.
    Before,
    Member,
    Barrier,
}

/// The regions of a graph.
pub struct Regions {
    /// The region of a node: its number is how many barriers are before it, one after the other.
    of: Vec<Option<usize>>,
    /// Number and role of each node.
    keys: Vec<(usize, Role)>,
    counts: FxHashSet<Value>,
    parts: FxHashMap<usize, Vec<NodeId>>,
}

/// True where there are enough nodes for a region.
fn enough(graph: &Graph, nodes: impl Iterator<Item = NodeId>, Least(least, least_folds): Least) -> bool {
    let (mut computes, mut folds) = (0, 0);
    for op in nodes.map(|id| &graph.nodes()[id].op).filter(|op| op.fuses()) {
        computes += usize::from(op.properties().cost != Cost::Free);
        folds += usize::from(op.folds());
    }
    computes >= least && folds >= least_folds
}

/// False where a graph has no region: told at once.
pub fn possible(graph: &Graph, live: &[bool], least: Least) -> bool {
    !graph.whole().user_ops && enough(graph, graph.nodes().enumerate().map(|n| n.0).filter(|id| live[id.idx()]), least)
}

impl Regions {
    /// Of the live nodes those that `free` admits; `more` are the values that a node needs besides its inputs.
    pub fn new(
        graph: &Graph,
        live: &[bool],
        free: &dyn Fn(NodeId, &Node) -> bool,
        more: &dyn Fn(NodeId) -> Vec<Value>,
        least: Least,
    ) -> Regions {
        let mut found =
            Regions { of: vec![None; graph.nodes().len()], keys: vec![], counts: FxHashSet::default(), parts: FxHashMap::default() };
        let admits = |id: NodeId, node: &Node| live[id.idx()] && free(id, node) && node.op.fuses() && node.outs.len() == 1;
        let mut barred: FxHashSet<NodeId> = FxHashSet::default();
        for _ in 0..ROUNDS {
            found.level(graph, live, &|id, node| admits(id, node) && !barred.contains(&id), more);
            let dropped = if least == THERE { vec![] } else { found.dropped(graph, live) };
            if dropped.is_empty() {
                found.gather(graph, live, least);
                return found;
            }
            barred.extend(dropped);
        }
        found
    }

    /// True where there is none.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }
    /// True where a node is part of a region.
    pub fn has(&self, id: NodeId) -> bool {
        self.of[id.idx()].is_some()
    }
    /// The region of a node, if the node is its first one.
    pub fn begun(&self, id: NodeId) -> Option<usize> {
        self.of[id.idx()].filter(|k| self.parts[k][0] == id)
    }
    /// All nodes in an order in which regions can run where their first node stands.
    pub fn order(&self, graph: &Graph) -> Vec<NodeId> {
        let mut order: Vec<NodeId> = graph.nodes().enumerate().map(|n| n.0).collect();
        order.sort_by_key(|id| self.keys[id.idx()]);
        order
    }

    /// How many barriers are before each node.
    fn level(&mut self, graph: &Graph, live: &[bool], admits: &dyn Fn(NodeId, &Node) -> bool, more: &dyn Fn(NodeId) -> Vec<Value>) {
        let mut levels = vec![0; graph.n_values()];
        let mut needs_members = vec![false; graph.n_values()];
        (self.keys, self.counts) = (vec![], FxHashSet::default());
        let mut members: FxHashSet<Value> = FxHashSet::default();
        for (id, node) in graph.nodes().enumerate() {
            let extra = if live[id.idx()] { more(id) } else { vec![] };
            let level = node.ins.iter().chain(&extra).map(|v| levels[v.idx()]).max().unwrap_or(0);
            let behind = node.ins.iter().chain(&extra).any(|v| needs_members[v.idx()]);
            let counted = self.counted(graph, node, &members);
            let role = match !counted && admits(id, node) {
                true => Role::Member,
                false if behind && !counted => Role::Barrier,
                false => Role::Before,
            };
            for &v in &node.outs {
                levels[v.idx()] = level + usize::from(role == Role::Barrier);
                needs_members[v.idx()] = behind || role == Role::Member;
                if counted {
                    self.counts.insert(v);
                }
                if role == Role::Member {
                    members.insert(v);
                }
            }
            self.keys.push((level, role));
        }
    }
    /// True for a constant, and for an integer made of extents and of such integers.
    fn counted(&self, graph: &Graph, node: &Node, members: &FxHashSet<Value>) -> bool {
        let integer = |v: &Value| graph.ty(*v).rank() == 0 && graph.ty(*v).dtype == DType::I64;
        match &node.op {
            Op::Const(_) => true,
            Op::DimOf(_) => !members.contains(&node.ins[0]),
            Op::Elem(_) => node.outs.iter().all(integer) && node.ins.iter().all(|v| self.counts.contains(v)),
            _ => false,
        }
    }

    /// Members that had better stand alone: they move what others made and hand it on, or write into it.
    fn dropped(&self, graph: &Graph, live: &[bool]) -> Vec<NodeId> {
        let member = |id: NodeId| self.keys[id.idx()].1 == Role::Member;
        let mut handed: FxHashSet<Value> = graph.results().iter().copied().collect();
        let mut found = vec![];
        for (id, node) in graph.nodes().enumerate().rev().filter(|(id, _)| live[id.idx()]) {
            if !member(id) {
                handed.extend(node.ins.iter().copied());
                continue;
            }
            let from = graph.def(node.ins[0]);
            let outside = !matches!(from, Def::Out(source, _) if member(source) && self.keys[source.idx()].0 == self.keys[id.idx()].0);
            let moves = node.op.properties().aliases || node.op.properties().makes == Makes::Moved;
            if outside && !self.counts.contains(&node.ins[0]) && (node.op.writes() || moves && handed.contains(&node.outs[0])) {
                found.push(id);
                handed.extend(node.ins.iter().copied());
            }
            let later = |v: &Value| !matches!(graph.def(*v), Def::Out(source, _) if self.keys[source.idx()].0 == self.keys[id.idx()].0);
            handed.extend(node.ins.iter().copied().filter(later));
        }
        found
    }

    fn gather(&mut self, graph: &Graph, live: &[bool], least: Least) {
        for (id, _) in graph.nodes().enumerate().filter(|(id, _)| live[id.idx()]) {
            if let (level, Role::Member) = self.keys[id.idx()] {
                self.parts.entry(level).or_default().push(id);
            }
        }
        self.parts.retain(|_, part| enough(graph, part.iter().copied(), least));
        for (&k, part) in &self.parts {
            part.iter().for_each(|id| self.of[id.idx()] = Some(k));
        }
    }

    /// A region as a graph of its own. Constants of one element and integers made of extents become part of it.
    ///
    /// # Errors
    /// An internal error where the graph is not consistent.
    pub fn part(&self, graph: &Graph, k: usize, live: &[bool]) -> Result<Part> {
        let inside = |id: NodeId| self.of[id.idx()] == Some(k);
        let mut handed: FxHashSet<Value> = graph.results().iter().copied().collect();
        for (_, node) in graph.nodes().enumerate().filter(|(id, _)| live[id.idx()] && !inside(*id)) {
            handed.extend(node.ins.iter().copied());
        }
        let made = self.parts[&k].iter().flat_map(|&id| graph.nodes()[id].outs.iter().copied());
        let outs: Vec<Value> = made.filter(|v| handed.contains(v)).collect();
        let (mut inner, mut image, mut ins) = (Graph::new(), FxHashMap::default(), vec![]);
        let mut open = outs.clone();
        let mut seen: FxHashSet<Value> = FxHashSet::default();
        while let Some(v) = open.pop() {
            if !seen.insert(v) {
                continue;
            }
            let within = match graph.def(v) {
                Def::Param(_) => false,
                Def::Out(id, _) => inside(id) || self.counts.contains(&v) && graph.const_value(v).is_none_or(|a| a.len() <= 1),
            };
            match graph.node_of(v).filter(|_| within) {
                Some(node) => open.extend(node.ins.iter().copied()),
                None => ins.push(v),
            }
        }
        ins.sort_unstable();
        for &v in &ins {
            image.insert(v, inner.param(graph.ty(v).clone(), graph.name(v).map(|n| &**n)));
        }
        let results = inner.inline(graph, &image, &outs)?;
        inner.set_results(results);
        Ok(Part { graph: inner, ins, outs })
    }
}

/// A region as a loop of one step, to whose arrays an axis was added: which of its parameters are sequences, and which, being integers, are
/// captured.
///
/// # Errors
/// An internal error where the graph is not consistent.
pub fn as_loop(graph: &Graph) -> Result<(Scan, Vec<usize>, Vec<usize>)> {
    let ty = |k: usize| graph.ty(graph.params()[k]);
    let (captured, seqs): (Vec<usize>, Vec<usize>) =
        (0..graph.params().len()).partition(|&k| ty(k).rank() == 0 && ty(k).dtype == DType::I64);
    let (mut body, mut image) = (Graph::new(), FxHashMap::default());
    body.param(Type::scalar(DType::I64), None);
    for &k in seqs.iter().chain(&captured) {
        image.insert(graph.params()[k], body.param(ty(k).clone(), None));
    }
    let results = body.inline(graph, &image, graph.results())?;
    body.set_results(results);
    let scan = Scan::mapped(body, seqs.len(), captured.len(), Keep::Last(1));
    Ok((scan, seqs, captured))
}
