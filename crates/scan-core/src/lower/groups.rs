//! Groups of elementwise nodes that become one kernel each.

use crate::base::Result;
use crate::ir::needs::Needs;
use crate::ir::op::{BroadcastLike, SumTo};
use crate::ir::{Def, Graph, Node, NodeId, Op, Value};
use crate::types::Dim;
use rustc_hash::{FxHashMap, FxHashSet};

/// Groups of elementwise nodes. Each is told by one node, its root: where there is one kernel per result, the node whose result is
/// used outside.
pub struct Groups {
    of: Vec<Option<NodeId>>,
    members: FxHashMap<NodeId, Vec<NodeId>>,
    users: FxHashMap<Value, Vec<NodeId>>,
}

impl Groups {
    /// The groups among the nodes that results depend on and that `eligible` admits; extents are looked at when they run. Nodes that give an operand the shape of another are among them, and
    /// groups that read the same arrays are one, with several results.
    pub fn large(graph: &Graph, eligible: &dyn Fn(&Node) -> bool) -> Groups {
        let admit = |node: &Node| (elementwise(node) || keeps_shape(graph, node)) && eligible(node);
        let mut groups = Groups::with(graph, &admit, &|own, root| alike(graph, own, root));
        groups.merge(graph);
        groups
    }

    fn with(graph: &Graph, admit: &dyn Fn(&Node) -> bool, fits: &dyn Fn(Value, Value) -> bool) -> Groups {
        let live = graph.needed(graph.results());
        let results: FxHashSet<Value> = graph.results().iter().copied().collect();
        let mut users: FxHashMap<Value, Vec<NodeId>> = FxHashMap::default();
        for (id, node) in graph.nodes().enumerate().filter(|n| live[n.0.0 as usize]) {
            node.ins.iter().for_each(|&v| users.entry(v).or_default().push(id));
        }
        let mut groups = Groups { of: vec![None; graph.nodes().len()], members: FxHashMap::default(), users };
        for (id, node) in graph.nodes().enumerate().rev() {
            if !live[id.0 as usize] || !admit(node) {
                continue;
            }
            let v = node.outs[0];
            let root = groups.common(groups.users.get(&v).map_or(&[], |u| u)).filter(|_| !results.contains(&v));
            let root = root.filter(|r| graph.ty(v).rank() == 0 || fits(v, graph.nodes()[*r].outs[0])).unwrap_or(id);
            groups.of[id.0 as usize] = Some(root);
            groups.members.entry(root).or_default().push(id);
        }
        groups
    }

    /// The one group that all of these nodes belong to.
    fn common(&self, nodes: &[NodeId]) -> Option<NodeId> {
        let root = self.of[nodes.first()?.0 as usize]?;
        nodes.iter().all(|n| self.of[n.0 as usize] == Some(root)).then_some(root)
    }

    /// Puts groups into those before them that make or read one of their arrays, where all else that they read is there by then.
    fn merge(&mut self, graph: &Graph) {
        let needs = Needs::of(graph, 0..graph.nodes().len(), graph.results().iter().copied());
        let mut roots: Vec<NodeId> = self.members.keys().copied().filter(|&root| self.plain(graph, root)).collect();
        roots.sort_unstable();
        let mut readers: FxHashMap<Value, NodeId> = FxHashMap::default();
        for root in roots {
            let ins = self.inputs(graph, &self.members[&root]);
            let into = self.earlier(graph, &needs, root, (&ins, &readers));
            for &v in ins.iter().filter(|v| graph.ty(**v).rank() > 0) {
                readers.insert(v, into.unwrap_or(root));
            }
            let Some(into) = into else { continue };
            let moved = self.members.remove(&root).unwrap_or_default();
            moved.iter().for_each(|m| self.of[m.0 as usize] = Some(into));
            let all = self.members.entry(into).or_default();
            all.extend(moved);
            all.sort_unstable_by(|a, b| b.cmp(a));
        }
    }

    /// The group that a group is put into: one that is needed where this one is.
    fn earlier(&self, graph: &Graph, needs: &Needs, root: NodeId, (ins, readers): (&[Value], &FxHashMap<Value, NodeId>)) -> Option<NodeId> {
        let arrays = ins.iter().filter(|v| graph.ty(**v).rank() > 0);
        let mut found: Vec<NodeId> = arrays.flat_map(|v| [self.maker(graph, *v), readers.get(v).copied()]).flatten().collect();
        found.sort_unstable();
        found.dedup();
        let there = |v: Value, into: NodeId| match graph.def(v) {
            Def::Param(_) => true,
            Def::Out(id, _) => self.of[id.0 as usize].unwrap_or(id) <= into,
        };
        let of = |id: NodeId| graph.nodes()[id].outs[0];
        let at = needs.value(of(root));
        let fits = |into: &NodeId| {
            *into < root
                && self.plain(graph, *into)
                && self.members[into].len() + self.members[&root].len() <= MEMBERS
                && alike(graph, of(root), of(*into))
                && needs.value(of(*into)) == at
                && ins.iter().all(|&v| there(v, *into))
        };
        found.into_iter().rev().find(fits)
    }

    /// The group that makes a value.
    fn maker(&self, graph: &Graph, v: Value) -> Option<NodeId> {
        let Def::Out(id, _) = graph.def(v) else { return None };
        self.of[id.0 as usize].filter(|root| self.members.contains_key(root))
    }

    /// True for a group of arrays whose operands have one element or all: none is broadcast along some axes.
    fn plain(&self, graph: &Graph, root: NodeId) -> bool {
        let of = graph.nodes()[root].outs[0];
        let Some(members) = self.members.get(&root) else { return false };
        let one = |v: Value| graph.ty(v).dims.iter().all(|d| d.is_one());
        graph.ty(of).rank() > 0 && self.inputs(graph, members).into_iter().all(|v| one(v) || alike(graph, v, of))
    }

    /// What nodes read that they do not make, but for constants of one element.
    fn inputs(&self, graph: &Graph, members: &[NodeId]) -> Vec<Value> {
        let inside: FxHashSet<NodeId> = members.iter().copied().collect();
        let mut seen = FxHashSet::default();
        let read = members.iter().rev().flat_map(|&id| &graph.nodes()[id].ins).copied();
        let outer = |v: &Value| !matches!(graph.def(*v), Def::Out(n, _) if inside.contains(&n)) && constant(graph, *v).is_none();
        read.filter(outer).filter(|&v| seen.insert(v)).collect()
    }

    /// Dissolves the groups of one result that `keep` does not admit, given root and size.
    pub fn retain(&mut self, keep: &dyn Fn(NodeId, usize) -> bool) {
        let of = &mut self.of;
        self.members.retain(|&root, members| {
            let keep = members[0] != root || keep(root, members.len());
            if !keep {
                members.iter().for_each(|m| of[m.0 as usize] = None);
            }
            keep
        });
    }

    /// True for a value that a group makes.
    pub fn makes(&self, graph: &Graph, v: Value) -> bool {
        self.maker(graph, v).is_some()
    }

    /// True for a node that is part of another node's group.
    pub fn is_inner(&self, id: NodeId) -> bool {
        self.root(id) != id
    }

    /// The node with whose group a node runs: itself, where it is in none.
    pub fn root(&self, id: NodeId) -> NodeId {
        self.of[id.0 as usize].unwrap_or(id)
    }

    /// The group of a root as a graph of its own, the values that are its parameters, and those that are its results: all that is used
    /// outside. Constants become part of it.
    ///
    /// # Errors
    /// An internal error where the graph is not consistent.
    pub fn graph(&self, graph: &Graph, root: NodeId) -> Result<Option<Part>> {
        let Some(members) = self.members.get(&root) else { return Ok(None) };
        let mut inner = Graph::new();
        let mut image: FxHashMap<Value, Value> = FxHashMap::default();
        let ins = self.inputs(graph, members);
        for &v in &ins {
            image.insert(v, inner.param(graph.ty(v).clone(), None));
        }
        for v in members.iter().flat_map(|&id| &graph.nodes()[id].ins) {
            if let Some(a) = constant(graph, *v) {
                let new = inner.constant(a.clone());
                image.insert(*v, new);
            }
        }
        let outs = if members[0] == root { graph.nodes()[root].outs.to_vec() } else { self.results(graph, members) };
        let results = inner.inline(graph, &image, &outs)?;
        inner.set_results(results);
        Ok(Some(Part { graph: inner, ins, outs }))
    }

    /// Values of members that others use.
    fn results(&self, graph: &Graph, members: &[NodeId]) -> Vec<Value> {
        let own = self.of[members[0].0 as usize];
        let elsewhere = |v: &Value| self.users.get(v).is_some_and(|u| u.iter().any(|n| self.of[n.0 as usize] != own));
        let made = members.iter().rev().map(|&id| graph.nodes()[id].outs[0]);
        made.filter(|v| elsewhere(v) || graph.results().contains(v)).collect()
    }
}

/// A group as a graph of its own.
pub struct Part {
    /// The graph.
    pub graph: Graph,
    /// Its parameters outside.
    pub ins: Vec<Value>,
    /// Its results outside.
    pub outs: Vec<Value>,
}

/// As many nodes are put together at most: the values of a step should find room in registers.
const MEMBERS: usize = 48;

fn constant(graph: &Graph, v: Value) -> Option<&crate::types::Array> {
    graph.const_value(v).filter(|a| a.len() == 1)
}

fn elementwise(node: &Node) -> bool {
    node.op.elementwise() || node.op.is_mark() && node.ins.len() == 1
}

/// Nodes that hand on the elements of an operand that has one or all of them, as far as is known.
fn keeps_shape(graph: &Graph, node: &Node) -> bool {
    let one = |v: Value| graph.ty(v).dims.iter().all(|d| d.is_one());
    match node.op {
        Op::BroadcastLike(BroadcastLike {}) => one(node.ins[0]) || alike(graph, node.ins[0], node.outs[0]),
        Op::SumTo(SumTo {}) => alike(graph, node.ins[0], node.outs[0]),
        _ => false,
    }
}

/// True where two values have the same extents as far as is known: what is not known is hardly ever 1, and looked at when they are computed.
fn alike(graph: &Graph, a: Value, b: Value) -> bool {
    let (a, b) = (&graph.ty(a).dims, &graph.ty(b).dims);
    let may_be = |(a, b): (&Dim, &Dim)| a == b || (a.value().is_none() || b.value().is_none()) && !a.is_one() && !b.is_one();
    a.len() == b.len() && a.iter().zip(b).all(may_be)
}
