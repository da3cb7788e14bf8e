//! Fusions that walk the same places, made one with several results: where they read an array in common, or one reads what another makes, or
//! where there is one place.
//! Reductions along the same axes are made one where they read an array in common: an extreme and its index, a sum and a sum of squares;
//! and short ones to one number in any case.

use super::fused::Schedules;
use super::fusions::{Folds, Fusion, Leaf};
use super::planner::Planner;
use super::schedule::Schedule;
use super::walk::LEAVES;
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
    /// What parts are made of several fusions, with their schedules where each is asked for at once.
    joined: FxHashMap<NodeId, (Fusion, Option<Schedule>)>,
    /// Fusions that are part of others.
    within: Vec<NodeId>,
    at_once: bool,
}

impl Planner<'_> {
    /// The order of a step's parts, fusions that can run with an earlier one being part of that.
    pub(super) fn joined(&self, order: &[NodeId], schedules: &mut Schedules) -> Vec<NodeId> {
        // Most fusions have a schedule together: only where some have none is each looked at before the next.
        let mut order_of = |at_once: bool| Parts::of(self, order, schedules, at_once);
        order_of(false).or_else(|| order_of(true)).expect("each has a schedule that is looked at")
    }
}

impl Parts<'_> {
    /// The order, with the schedules as they are then; `None` where fusions that were joined have none.
    fn of(planner: &Planner, order: &[NodeId], schedules: &mut Schedules, at_once: bool) -> Option<Vec<NodeId>> {
        let (made, joined) = (FxHashMap::default(), FxHashMap::default());
        let mut parts = Parts { planner, order: vec![], made, joined, within: vec![], at_once };
        for &id in order {
            let at = parts.earlier(id, schedules).unwrap_or(parts.order.len());
            if at == parts.order.len() {
                parts.order.push(id);
            } else {
                parts.within.push(id);
            }
            planner.body.nodes()[id].outs.iter().for_each(|&v| {
                parts.made.insert(v, at);
            });
        }
        let scheduled = |(id, (fusion, schedule)): (NodeId, (Fusion, Option<Schedule>))| {
            let schedule = schedule.or_else(|| planner.scheduled(&fusion).ok())?;
            Some((id, vec![(fusion, schedule)]))
        };
        let joined: Vec<_> = parts.joined.into_iter().map(scheduled).collect::<Option<_>>()?;
        schedules.extend(joined);
        parts.within.iter().for_each(|id| drop(schedules.remove(id)));
        Some(parts.order)
    }

    /// The part that a fusion was made part of.
    fn earlier(&mut self, id: NodeId, schedules: &Schedules) -> Option<usize> {
        let [(own, _)] = &schedules.get(&id)?[..] else { return None };
        let first = own.leaves.iter().filter_map(|leaf| self.made.get(&leaf.value)).max().copied().unwrap_or(0);
        for at in (first..self.order.len()).rev() {
            let Some(other) = self.part(self.order[at], schedules) else { continue };
            let Some(both) = self.both(at, other, own) else { continue };
            let schedule = match self.at_once.then(|| self.planner.scheduled(&both)) {
                Some(Err(_)) => continue,
                schedule => schedule.and_then(Result::ok),
            };
            self.joined.insert(self.order[at], (both, schedule));
            return Some(at);
        }
        None
    }
    /// What a part is made of, where others can be joined to it.
    fn part<'a>(&'a self, id: NodeId, schedules: &'a Schedules) -> Option<&'a Fusion> {
        match (self.joined.get(&id), &schedules.get(&id)?[..]) {
            (Some((joined, _)), _) => Some(joined),
            (None, [(fusion, _)]) => Some(fusion),
            _ => None,
        }
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
