//! Fusions that walk the same places, made one with several results: where they read an array in common, or one reads what another makes, or
//! where there is one place.
//! Reductions along the same axes are made one where they read an array in common: an extreme and its index, a sum and a sum of squares;
//! and short ones to one number in any case.

use super::fused::Schedules;
use super::fusions::{Folds, Fusion, LEAVES, Leaf};
use super::mixed::Planner;
use crate::ir::{Graph, NodeId, Value, View};
use crate::types::shape::count;
use rustc_hash::FxHashMap;

/// Nodes of one fusion at most: the values of a place should find room in registers.
const MEMBERS: usize = 64;

/// Sums of so few numbers to one are computed together, whatever they are of.
const SHORT: usize = 4096;

/// The parts of a step in order, by the node that each is found under in the schedules.
struct Parts<'a> {
    planner: &'a Planner<'a>,
    order: Vec<NodeId>,
    /// The part that makes a value.
    made: FxHashMap<Value, usize>,
}

impl Planner<'_> {
    /// The order of a step's parts, fusions that can run with an earlier one being part of that.
    pub(super) fn joined(&self, order: &[NodeId], schedules: &mut Schedules) -> Vec<NodeId> {
        let mut parts = Parts { planner: self, order: vec![], made: FxHashMap::default() };
        for &id in order {
            let at = parts.earlier(id, schedules).unwrap_or(parts.order.len());
            if at == parts.order.len() {
                parts.order.push(id);
            } else {
                schedules.remove(&id);
            }
            self.body.nodes()[id].outs.iter().for_each(|&v| {
                parts.made.insert(v, at);
            });
        }
        parts.order
    }
}

impl Parts<'_> {
    /// The part that a fusion was made part of.
    fn earlier(&self, id: NodeId, schedules: &mut Schedules) -> Option<usize> {
        let [(own, _)] = &schedules.get(&id)?[..] else { return None };
        let first = own.leaves.iter().filter_map(|leaf| self.made.get(&leaf.value)).max().copied().unwrap_or(0);
        for at in (first..self.order.len()).rev() {
            let Some([(other, _)]) = schedules.get(&self.order[at]).map(|parts| &parts[..]) else { continue };
            let Some(both) = self.both(at, other, own) else { continue };
            let Ok(schedule) = self.planner.scheduled(&both) else { continue };
            schedules.insert(self.order[at], vec![(both, schedule)]);
            return Some(at);
        }
        None
    }

    /// Two fusions as one, the second of which can run where the first does.
    fn both(&self, at: usize, a: &Fusion, b: &Fusion) -> Option<Fusion> {
        let folds = match (&a.folds, &b.folds) {
            (None, None) => None,
            (Some(a), Some(b)) if a.axes == b.axes => Some(Folds { axes: a.axes.clone(), by: a.by.iter().chain(&b.by).copied().collect() }),
            _ => return None,
        };
        let fits = a.space == b.space && a.graph.nodes().len() + b.graph.nodes().len() <= MEMBERS;
        let whole = View::identity(b.space.len());
        let result = |leaf: &Leaf| a.roots.iter().position(|&r| self.planner.body.nodes()[r].outs[0] == leaf.value);
        // What the first makes is there element by element, not yet as an array.
        let there = b.leaves.iter().all(|leaf| match result(leaf) {
            Some(_) => folds.is_none() && leaf.view == whole,
            None => self.made.get(&leaf.value).is_none_or(|&made| made < at),
        });
        // A call takes longer than what it does to a number, and much of what it takes to sum few to one.
        let kept = |folds: &Folds| (0..b.space.len()).filter(|axis| !folds.axes.contains(axis)).all(|axis| b.space[axis] == 1);
        let short = folds.as_ref().map_or(count(&b.space) == 1, |folds| count(&b.space) <= SHORT && kept(folds));
        let near = short
            || b.leaves.iter().any(|leaf| result(leaf).is_some() || a.leaves.iter().any(|l| l.value == leaf.value && l.view == leaf.view));
        if !(fits && there && near) {
            return None;
        }
        let mut leaves = a.leaves.clone();
        let mut graph = Graph::new();
        let mut image = FxHashMap::default();
        for &p in a.graph.params() {
            image.insert(p, graph.param(a.graph.ty(p).clone(), None));
        }
        let mut results = graph.inline(&a.graph, &image, a.graph.results()).ok()?;
        let mut second = FxHashMap::default();
        for (leaf, &p) in b.leaves.iter().zip(b.graph.params()) {
            let value = match (result(leaf), leaves.iter().position(|l| l.value == leaf.value && l.view == leaf.view)) {
                (Some(made), _) => results[made],
                (None, Some(known)) => graph.params()[known],
                (None, None) => {
                    leaves.push(leaf.clone());
                    graph.param(b.graph.ty(p).clone(), None)
                }
            };
            second.insert(p, value);
        }
        results.extend(graph.inline(&b.graph, &second, b.graph.results()).ok()?);
        graph.set_results(results);
        let roots = a.roots.iter().chain(&b.roots).copied().collect();
        (leaves.len() <= LEAVES).then(|| Fusion {
            folds,
            leaves,
            graph,
            roots,
            space: a.space.clone(),
            start: a.start.clone(),
            whole: a.whole.clone(),
        })
    }
}
