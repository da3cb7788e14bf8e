//! Fusions as parts of a step.

use super::Lowered;
use super::extents::known_shape;
use super::fusions::{Cuts, Fusion, Fusions, Role};
use super::in_place::late_reads;
use super::kinds::Kind;
use super::nodes::instructions;
use super::pass::{Of, Pass};
use super::planner::{Planner, Root};
use super::schedule::{Failure, Schedule, schedule};
use crate::base::Id;
use crate::ir::{Graph, NodeId, Value};
use crate::plan::list::{At, Item, Place, Work};
use crate::types::DType;
use rustc_hash::FxHashMap;

/// The parts of fusions with their schedules, by root.
pub(super) type Schedules = FxHashMap<NodeId, Vec<(Fusion, Schedule)>>;

/// A root's parts, and the nodes whose roles they depend on.
struct Scheduled {
    parts: Vec<(Fusion, Schedule)>,
    seen: Vec<NodeId>,
}

impl Planner<'_> {
    /// Fusions, each with a schedule. What has none as it is tried is cut: a view or what is reduced gets memory of its own, or a node is
    /// computed alone.
    pub(super) fn fused(&self) -> Lowered<(Fusions, Schedules)> {
        let (body, kinds) = (self.body, self.kinds);
        let lengths: Vec<Option<usize>> = body.nodes().iter().map(|node| instructions(body, node)).collect();
        let mut cuts = Cuts::default();
        let (mut roles, mut known): (Vec<Role>, FxHashMap<NodeId, Scheduled>) = (vec![], FxHashMap::default());
        loop {
            let fusions = Fusions::new(body, kinds, &lengths, &cuts);
            let before = cuts.len();
            cuts.stored.extend(late_reads(body, &fusions));
            if cuts.len() > before {
                continue;
            }
            // A cut leaves most fusions as they were.
            known.retain(|_, scheduled| scheduled.seen.iter().all(|id| fusions.role[id.idx()] == roles[id.idx()]));
            for id in body.nodes().ids().filter(|id| fusions.role[id.idx()] == Role::Root) {
                if known.contains_key(&id) {
                    continue;
                }
                match self.scheduled_root(&fusions, id) {
                    Ok(scheduled) => drop(known.insert(id, scheduled)),
                    Err(Failure::Without(view)) => drop(cuts.alone.insert(view)),
                    Err(Failure::Apart) => cuts.reduced(body, &fusions, id),
                    Err(Failure::Wide) => cuts.wide(body, &fusions, id),
                    Err(Failure::Never) => drop(cuts.alone.insert(id)),
                }
            }
            if cuts.len() == before {
                return Ok((fusions, known.into_iter().map(|(id, scheduled)| (id, scheduled.parts)).collect()));
            }
            roles = fusions.role;
        }
    }
    fn scheduled_root(&self, fusions: &Fusions, root: NodeId) -> Result<Scheduled, Failure> {
        let (parts, seen) = fusions.fusion(self.body, self.kinds, root)?;
        let scheduled = |fusion: Fusion| self.scheduled(&fusion).map(|schedule| (fusion, schedule));
        Ok(Scheduled { parts: parts.into_iter().map(scheduled).collect::<Result<_, _>>()?, seen })
    }
    pub(super) fn scheduled(&self, fusion: &Fusion) -> Result<Schedule, Failure> {
        let shapes = fusion.leaves.iter().map(|leaf| known_shape(self.body, leaf.value)).collect::<Lowered<Vec<_>>>()?;
        let steady: Vec<bool> = fusion.leaves.iter().map(|leaf| self.kinds.of(leaf.value) != Kind::Step).collect();
        schedule(fusion, &shapes, &steady)
    }

    /// The passes of the parts of a fusion as items.
    pub(super) fn passes(&mut self, parts: &[(Fusion, Schedule)]) -> Lowered<()> {
        let roots = &parts[0].0.roots;
        let outs = roots.iter().map(|&root| self.slot(self.body.nodes()[root].outs[0])).collect::<Lowered<Vec<_>>>()?;
        parts.iter().try_for_each(|(fusion, schedule)| self.passes_of(fusion, schedule, &outs))
    }
    fn passes_of(&mut self, fusion: &Fusion, schedule: &Schedule, outs: &[Place]) -> Lowered<()> {
        let body = self.body;
        let mut leaves = vec![];
        for (leaf, turned) in fusion.leaves.iter().zip(&schedule.turned) {
            leaves.push(match turned {
                None => self.place(leaf.value)?,
                Some(perm) => self.turned(leaf.value, perm)?,
            });
        }
        let temporaries: Vec<Place> = schedule.temporaries.iter().map(|&(dtype, n)| self.temporary(dtype, n)).collect();
        for Pass { nest, operands } in &schedule.passes {
            let (mut read, mut made) = (vec![], vec![]);
            for (k, &(of, first)) in operands.iter().enumerate() {
                let place = match of {
                    Of::Leaf(leaf) => &leaves[leaf],
                    Of::Out(k) => &outs[k],
                    Of::Temporary(t) => &temporaries[t],
                };
                let place = Place { first: place.first + first, ..place.clone() };
                if nest.writes(k) { made.push(place) } else { read.push(place) }
            }
            let work = Work::Nest(Box::new(nest.clone()));
            debug_assert!((0..operands.len()).is_sorted_by_key(|k| nest.writes(k)), "operands that are read come first");
            self.items.push(Item { work, ins: read, outs: made, span: body.nodes()[fusion.roots[0]].span });
        }
        Ok(())
    }
    /// A temporary of so many elements.
    fn temporary(&mut self, dtype: DType, n: usize) -> Place {
        self.slots.push(n * dtype.size());
        Place::whole(At::Slot(self.slots.len() - 1), std::iter::once(n).collect(), dtype)
    }
    /// A value that is computed before the loop, with its axes in another order.
    fn turned(&mut self, v: Value, perm: &[usize]) -> Lowered<Place> {
        let shape = known_shape(self.body, v)?;
        let at = self.root(Root::Turned(v, perm.to_vec()));
        Ok(Place::whole(At::Before(at), perm.iter().map(|&i| shape[i]).collect(), self.body.ty(v).dtype))
    }
    /// Where something lies among what is computed before the loop.
    fn root(&mut self, root: Root) -> usize {
        let known = self.roots.iter().position(|known| *known == root);
        known.unwrap_or_else(|| {
            self.roots.push(root);
            self.roots.len() - 1
        })
    }
    /// What is computed before the loop.
    pub(super) fn before(&mut self) -> Lowered<Graph> {
        let mut before = self.body.clone();
        let mut results = vec![];
        for root in std::mem::take(&mut self.roots) {
            results.push(match root {
                Root::Of(v) => v,
                Root::Turned(v, perm) => before.transpose(v, &perm),
            });
        }
        before.set_results(results);
        Ok(before)
    }
}
