//! Groups of elementwise nodes that become one kernel each.

use crate::base::Result;
use crate::ir::{Def, Graph, Node, NodeId, Op, Value};
use rustc_hash::{FxHashMap, FxHashSet};

/// Groups of elementwise nodes: each has one node, its root, whose result is used outside.
pub struct Groups {
    of: Vec<Option<NodeId>>,
    members: FxHashMap<NodeId, Vec<NodeId>>,
}

impl Groups {
    /// The groups among the nodes that results depend on and that `eligible` admits.
    pub fn new(graph: &Graph, eligible: &dyn Fn(&Node) -> bool) -> Groups {
        let live = graph.needed(graph.results());
        let results: FxHashSet<Value> = graph.results().iter().copied().collect();
        let mut users: FxHashMap<Value, Vec<NodeId>> = FxHashMap::default();
        for (id, node) in graph.nodes().enumerate().filter(|n| live[n.0.0 as usize]) {
            node.ins.iter().for_each(|&v| users.entry(v).or_default().push(id));
        }
        let mut groups = Groups { of: vec![None; graph.nodes().len()], members: FxHashMap::default() };
        for (id, node) in graph.nodes().enumerate().rev() {
            if !live[id.0 as usize] || !elementwise(node) || !eligible(node) {
                continue;
            }
            let v = node.outs[0];
            let root = groups.common(users.get(&v).map_or(&[], |u| u)).filter(|_| !results.contains(&v));
            let fits = |root: NodeId| {
                let (own, of_root) = (graph.ty(v), graph.ty(graph.nodes()[root].outs[0]));
                own.rank() == 0 || own.dims == of_root.dims
            };
            let root = root.filter(|&r| fits(r)).unwrap_or(id);
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

    /// Dissolves the groups that `keep` does not admit, given root and size.
    pub fn retain(&mut self, keep: &dyn Fn(NodeId, usize) -> bool) {
        let of = &mut self.of;
        self.members.retain(|&root, members| {
            let keep = keep(root, members.len());
            if !keep {
                members.iter().for_each(|m| of[m.0 as usize] = None);
            }
            keep
        });
    }

    /// True for a node that is part of another node's group.
    pub fn is_inner(&self, id: NodeId) -> bool {
        self.root(id) != id
    }

    /// The node with whose group a node runs: itself, where it is in none.
    pub fn root(&self, id: NodeId) -> NodeId {
        self.of[id.0 as usize].unwrap_or(id)
    }

    /// The group of a root as a graph of its own, and the values that are its parameters. Constants become part of it.
    ///
    /// # Errors
    /// An internal error where the graph is not consistent.
    pub fn graph(&self, graph: &Graph, root: NodeId) -> Result<Option<(Graph, Vec<Value>)>> {
        let Some(members) = self.members.get(&root) else { return Ok(None) };
        let inside: FxHashSet<NodeId> = members.iter().copied().collect();
        let mut inner = Graph::new();
        let mut image: FxHashMap<Value, Value> = FxHashMap::default();
        let mut ins = vec![];
        for &v in members.iter().rev().flat_map(|&id| &graph.nodes()[id].ins) {
            let made_here = matches!(graph.def(v), Def::Out(n, _) if inside.contains(&n));
            if made_here || image.contains_key(&v) {
                continue;
            }
            let new = match graph.const_value(v).filter(|a| a.len() == 1) {
                Some(a) => inner.constant(a.clone()),
                None => {
                    ins.push(v);
                    inner.param(graph.ty(v).clone(), None)
                }
            };
            image.insert(v, new);
        }
        let results = inner.inline(graph, &image, &graph.nodes()[root].outs)?;
        inner.set_results(results);
        Ok(Some((inner, ins)))
    }
}

fn elementwise(node: &Node) -> bool {
    matches!(node.op, Op::Elem(_) | Op::Cast(_) | Op::StopGradient(_) | Op::Hold(_) | Op::GradClip(_))
}
