//! Where the fusions of a step end though they could go on: what has no kernel otherwise is parted.

use super::fusions::{Cuts, Fusions, Role, elementwise};
use super::walk::LEAVES;
use crate::base::Id;
use crate::ir::{Def, Graph, NodeId, Value};
use rustc_hash::{FxHashMap, FxHashSet};

impl Cuts {
    /// What a node reduces gets memory of its own; where it has that, the node is computed alone.
    pub fn reduced(&mut self, body: &Graph, fusions: &Fusions, id: NodeId) {
        let made = match body.def(body.nodes()[id].ins[0]) {
            Def::Out(made, _) => Some(made).filter(|made| matches!(fusions.role[made.idx()], Role::Inner(_) | Role::Copied)),
            _ => None,
        };
        match made {
            Some(made) if elementwise(&body.nodes()[made]) => self.stored.insert(made),
            made => self.alone.insert(made.unwrap_or(id)),
        };
    }
    /// The part of a fusion that reads the most arrays, but few enough for a fusion of its own, gets memory.
    pub fn wide(&mut self, body: &Graph, fusions: &Fusions, root: NodeId) {
        let mut below: FxHashMap<NodeId, FxHashSet<Value>> = FxHashMap::default();
        let mut best = None;
        for (id, node) in body.nodes().enumerate().take_while(|(id, _)| *id < root) {
            let inner = fusions.role[id.idx()] == Role::Inner(root);
            if !inner && !fusions.is_copied(id) {
                continue;
            }
            let mut reads = FxHashSet::default();
            for &x in node.ins.iter().filter(|&&x| body.const_value(x).is_none_or(|a| a.len() > 1)) {
                match body.def(x) {
                    Def::Out(made, _) if below.contains_key(&made) => reads.extend(&below[&made]),
                    _ => drop(reads.insert(x)),
                }
            }
            if inner && elementwise(node) && (2..=3 * LEAVES / 4).contains(&reads.len()) && best.is_none_or(|(most, _)| reads.len() >= most)
            {
                best = Some((reads.len(), id));
            }
            below.insert(id, reads);
        }
        match best {
            Some((_, inner)) => self.stored.insert(inner),
            None => self.alone.insert(root),
        };
    }
}
