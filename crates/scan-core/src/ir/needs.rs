//! Under which conditions values are needed: what a branch of `ifelse` alone reads is computed where that branch is taken.

use super::graph::{Graph, Node, NodeId, Value};
use super::op::Op;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::ops::Range;

/// The conditions under which something is needed, outermost first, and whether each of them holds or does not.
pub type At = SmallVec<[(Value, bool); 2]>;

/// Under which conditions values are needed.
#[derive(Default)]
pub struct Needs {
    homes: FxHashMap<Value, At>,
}

impl Needs {
    /// Among these nodes; `roots` are needed whatever the conditions say.
    pub fn of(g: &Graph, nodes: Range<usize>, roots: impl Iterator<Item = Value>) -> Needs {
        let mut found = Needs::default();
        let node = |i: usize| &g.nodes()[NodeId(i as u32)];
        if !nodes.clone().any(|i| matches!(node(i).op, Op::IfElse(_))) {
            return found;
        }
        found.homes.extend(roots.map(|v| (v, At::new())));
        for i in nodes.rev() {
            if !node(i).outs.iter().any(|v| found.homes.contains_key(v)) {
                continue;
            }
            for (k, &v) in node(i).ins.iter().enumerate() {
                let at = found.input(node(i), k);
                match found.homes.get_mut(&v) {
                    Some(home) => home.retain(|fact| at.contains(fact)),
                    None => drop(found.homes.insert(v, at)),
                }
            }
        }
        found
    }
    /// Under which conditions a node is needed.
    pub fn node(&self, node: &Node) -> At {
        let mut homes = node.outs.iter().filter_map(|v| self.homes.get(v));
        let mut at = homes.next().cloned().unwrap_or_default();
        homes.for_each(|home| at.retain(|fact| home.contains(fact)));
        at
    }
    /// Under which conditions a node needs an input.
    pub fn input(&self, node: &Node, k: usize) -> At {
        let (mut at, fact) = (self.node(node), (node.ins[0], k == 1));
        if k > 0 && matches!(node.op, Op::IfElse(_)) && !at.contains(&fact) {
            at.push(fact);
        }
        at
    }
    /// Under which conditions a value is needed.
    pub fn value(&self, v: Value) -> At {
        self.homes.get(&v).cloned().unwrap_or_default()
    }
}
