//! States of which a step writes a part over the row that it read (`buf[i] = x`): one row of memory, and no step copies it.
//!
//! A row may be written over where everything that reads what was there runs before: the step's parts are put into such an
//! order. Where that is not possible (something reads the old row and needs the new one, too) the state has rows of its own. What reads other
//! arrays that the step may write over runs before, too, where it can: then no copy of them is needed (`coalesce`).

use super::fusions::Fusions;
use super::inner;
use super::kinds::{Kind, Kinds};
use crate::ir::{Def, Graph, Keep, Node, NodeId, Op, Scan, StateId, Value};
use crate::scan::in_place::rows;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The nodes of a step in the order in which they run, and what they write over.
pub(super) struct Order {
    /// Nodes that depend on the step; of a fusion its root.
    pub nodes: Vec<NodeId>,
    /// Values that lie in the one row of a state.
    pub rows: FxHashMap<Value, StateId>,
}

/// The first must run before the second.
type Before = (NodeId, NodeId);

impl Order {
    /// The order of a step in which as many states as possible are written in place.
    pub fn new(scan: &Scan, body: &Graph, kinds: &Kinds, fusions: &Fusions) -> Order {
        let uses = Uses::new(body, kinds, fusions);
        let mut order = Order { nodes: uses.sorted(&[]).unwrap_or_default(), rows: FxHashMap::default() };
        let mut agreed: Vec<Before> = vec![];
        for id in scan.states.ids() {
            let Some((chain, before)) = uses.chain(scan, id) else { continue };
            let wanted = [&agreed[..], &before].concat();
            if let Some(nodes) = uses.sorted(&wanted) {
                order.nodes = nodes;
                order.rows.extend(chain.into_iter().map(|v| (v, id)));
                agreed = wanted;
            }
        }
        for (v, writer) in uses.written_over() {
            let Some(readers) = uses.readers(v, writer).filter(|readers| !readers.is_empty()) else { continue };
            let known = agreed.len();
            agreed.extend(readers.into_iter().map(|reader| (reader, writer)));
            let at: FxHashMap<NodeId, usize> = order.nodes.iter().enumerate().map(|(k, &id)| (id, k)).collect();
            if agreed[known..].iter().any(|(first, second)| at.get(first) > at.get(second)) {
                match uses.sorted(&agreed) {
                    Some(nodes) => order.nodes = nodes,
                    None => agreed.truncate(known),
                }
            }
        }
        order
    }
}

/// The values that a node may write over, if nothing needs them later.
fn overwritten(body: &Graph, node: &Node) -> Vec<Value> {
    match &node.op {
        Op::IndexWrite(_) | Op::GatherWrite(_) => vec![origin(body, node.ins[0])],
        op => inner::taken_over(op).map(|at| origin(body, node.ins[at])).collect(),
    }
}

/// The value of which this one is another shape.
fn origin(body: &Graph, mut v: Value) -> Value {
    while let Some(node) = body.node_of(v).filter(|n| n.op.properties().aliases) {
        v = node.ins[0];
    }
    v
}

/// Reads by index arrays that fusions do which need what is written over the array that is read: on their own they can run before.
pub(super) fn late_reads(body: &Graph, fusions: &Fusions) -> Vec<NodeId> {
    if fusions.reads.is_empty() {
        return vec![];
    }
    let over = |(id, node)| overwritten(body, node).into_iter().map(move |v| (v, id));
    let writers: Vec<(Value, NodeId)> = body.nodes().enumerate().flat_map(over).collect();
    let late = |&id: &NodeId| {
        let (root, read) = (fusions.root(id), origin(body, body.nodes()[id].ins[0]));
        let needs = |writer: NodeId| body.needed(&body.nodes()[root].outs)[writer.0 as usize];
        root != id && writers.iter().any(|&(v, writer)| v == read && needs(writer))
    };
    fusions.reads.keys().copied().filter(late).collect()
}

/// Who reads what in a step.
struct Uses<'a> {
    body: &'a Graph,
    fusions: &'a Fusions,
    /// Nodes that depend on the step, fusions' inner ones too.
    nodes: Vec<NodeId>,
    users: FxHashMap<Value, Vec<NodeId>>,
}

impl<'a> Uses<'a> {
    fn new(body: &'a Graph, kinds: &Kinds, fusions: &'a Fusions) -> Uses<'a> {
        let live = body.needed(body.results());
        let step = |id: &NodeId| live[id.0 as usize] && body.nodes()[*id].outs.iter().any(|&v| kinds.of(v) == Kind::Step);
        let nodes: Vec<NodeId> = body.nodes().ids().filter(step).collect();
        let mut users: FxHashMap<Value, Vec<NodeId>> = FxHashMap::default();
        for &id in &nodes {
            body.nodes()[id].ins.iter().for_each(|&v| users.entry(v).or_default().push(id));
        }
        Uses { body, fusions, nodes, users }
    }

    /// The values that follow each other in a state's row, and what must run before what if they do.
    fn chain(&self, scan: &Scan, id: StateId) -> Option<(Vec<Value>, Vec<Before>)> {
        let rows = rows(scan, self.body, id).filter(|_| matches!(scan.states[id].keep, Keep::Last(0 | 1)))?;
        let mut before = vec![];
        for link in rows.windows(2) {
            let Def::Out(writer, _) = self.body.def(link[0]) else { return None };
            before.extend(self.readers(link[1], writer)?.into_iter().map(|reader| (reader, writer)));
        }
        Some((rows, before))
    }

    /// Values with the nodes that may write over them, if nothing needs them later: rows that loops in the step begin with, and arrays of
    /// which a part is written.
    fn written_over(&self) -> Vec<(Value, NodeId)> {
        let mut found = vec![];
        for &id in self.nodes.iter().filter(|&&id| !self.fusions.is_copied(id) && self.fusions.root(id) == id) {
            found.extend(overwritten(self.body, &self.body.nodes()[id]).into_iter().map(|v| (v, id)));
        }
        found
    }

    /// What reads a value before `writer` writes over it; `None` where something needs it later.
    fn readers(&self, v: Value, writer: NodeId) -> Option<Vec<NodeId>> {
        let (mut same, mut next, mut readers) = (FxHashSet::from_iter([v]), vec![v], vec![]);
        while let Some(v) = next.pop() {
            if self.body.results().contains(&v) {
                return None;
            }
            for &user in self.users.get(&v).map_or(&[][..], |u| u).iter().filter(|&&u| u != writer) {
                let node = &self.body.nodes()[user];
                let copied = self.fusions.is_copied(user);
                if !copied {
                    readers.push(self.fusions.root(user));
                }
                if (node.op.properties().aliases || copied) && same.insert(node.outs[0]) {
                    next.push(node.outs[0]);
                }
            }
        }
        let given = self.body.nodes()[writer].ins.iter().filter(|v| same.contains(v));
        (given.count() < 2).then_some(readers)
    }

    /// Calls `visit` with the nodes that make what a node reads, itself or by way of what has no memory.
    fn makers(&self, id: NodeId, visit: &mut dyn FnMut(NodeId)) {
        let (mut seen, mut next) = (FxHashSet::default(), vec![id]);
        while let Some(id) = next.pop() {
            for &v in &self.body.nodes()[id].ins {
                let Def::Out(maker, _) = self.body.def(v) else { continue };
                if !self.fusions.is_copied(maker) {
                    visit(maker);
                } else if seen.insert(maker) {
                    next.push(maker);
                }
            }
        }
    }

    /// The nodes, those of a fusion together, in an order that keeps to their inputs and to `before`; else as they stand.
    fn sorted(&self, before: &[Before]) -> Option<Vec<NodeId>> {
        let root = |id: NodeId| self.fusions.root(id);
        let mut after: FxHashMap<NodeId, Vec<NodeId>> = FxHashMap::default();
        let nodes = || self.nodes.iter().copied().filter(|&id| !self.fusions.is_copied(id));
        let mut waits: FxHashMap<NodeId, usize> = nodes().map(|id| (root(id), 0)).collect();
        let mut made = vec![];
        for id in nodes() {
            self.makers(id, &mut |maker| made.push((root(maker), root(id))));
        }
        for (first, second) in made.into_iter().chain(before.iter().copied()).filter(|(a, b)| a != b) {
            if waits.contains_key(&first) {
                after.entry(first).or_default().push(second);
                *waits.entry(second).or_default() += 1;
            }
        }
        let mut ready: BinaryHeap<Reverse<u32>> = waits.iter().filter(|w| *w.1 == 0).map(|w| Reverse(w.0.0)).collect();
        let mut sorted = vec![];
        while let Some(Reverse(id)) = ready.pop() {
            sorted.push(NodeId(id));
            for next in after.remove(&NodeId(id)).unwrap_or_default() {
                let left = waits.get_mut(&next)?;
                *left -= 1;
                if *left == 0 {
                    ready.push(Reverse(next.0));
                }
            }
        }
        (sorted.len() == waits.len()).then_some(sorted)
    }
}
