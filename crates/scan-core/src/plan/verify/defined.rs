//! What a part reads of a temporary, or of a row that the step writes, has been written.
//!
//! A part that may write some elements of a span counts as one that writes all of them, and a loop in a step as one that runs all its steps:
//! what is reported here is wrong in any case.

use super::bounds::{Bounds, Checked, ensure};
use super::reach::Reach;
use crate::ir::Scan;
use crate::kernel::{LEVELS, Nest, Use};
use crate::plan::list::{At, InnerKernel, InnerList, Item, Place, Run, STEP, StepList, Work};
use rustc_hash::FxHashMap;

/// Fails where something is read that nothing has written.
pub(super) fn check(plan: &StepList, scan: &Scan) -> Checked {
    let mut flow = Flow { bounds: Bounds { plan, scan, steps: [1; LEVELS - 1], level: 0 }, written: FxHashMap::default() };
    flow.written.insert(At::Slot(STEP), Spans(vec![(0, 8)]));
    plan.items.iter().enumerate().try_for_each(|(k, item)| flow.item(item).map_err(|text| format!("part {k}: {text}")))?;
    plan.writes.iter().map(|w| &w.2).chain(&plan.stop).try_for_each(|place| flow.reads(place))?;
    for (id, state) in scan.states.enumerate().filter(|(id, _)| !plan.in_place[id.0 as usize]) {
        for &offset in &state.writes {
            let window = &plan.windows[id.0 as usize];
            let last = plan.writes.iter().any(|w| (w.0, w.1) == (id, offset));
            let made = flow.written.get(&At::Row(id, offset)).is_some_and(|spans| spans.holds((0, window.row_bytes() as i128)));
            ensure(last != made || window.row_bytes() == 0, || format!("row {offset} of state {} is not written once", id.0))?;
        }
    }
    Ok(())
}

/// Bytes, as spans apart from each other in order.
#[derive(Clone, Default)]
struct Spans(Vec<Reach>);

impl Spans {
    fn add(&mut self, (low, high): Reach) {
        if high <= low {
            return;
        }
        let (mut low, mut high) = (low, high);
        self.0.retain(|&(from, to)| {
            let apart = to < low || high < from;
            if !apart {
                (low, high) = (low.min(from), high.max(to));
            }
            apart
        });
        let at = self.0.partition_point(|s| s.0 < low);
        self.0.insert(at, (low, high));
    }
    fn holds(&self, (low, high): Reach) -> bool {
        high <= low || self.0.iter().any(|&(from, to)| from <= low && high <= to)
    }
}

struct Flow<'a> {
    bounds: Bounds<'a>,
    written: FxHashMap<At, Spans>,
}

impl Flow<'_> {
    /// True for what is there before the step.
    fn is_given(&self, at: At) -> bool {
        match at {
            At::Seq(_) | At::Before(_) => true,
            At::Slot(_) => false,
            At::Row(id, offset) => self.bounds.plan.in_place[id.0 as usize] || self.bounds.scan.states[id].reads.contains(&offset),
        }
    }
    fn wants(&self, place: &Place, reach: Reach) -> Checked {
        let span = self.bounds.span(place, reach);
        let there = self.is_given(place.at) || span.1 <= span.0 || self.written.get(&place.at).is_some_and(|spans| spans.holds(span));
        ensure(there, || format!("{place} is read before it is written"))
    }
    fn gives(&mut self, place: &Place, reach: Reach) {
        let span = self.bounds.span(place, reach);
        self.written.entry(place.at).or_default().add(span);
    }
    fn reads(&self, place: &Place) -> Checked {
        self.wants(place, (0, place.bytes() as i128))
    }
    fn writes(&mut self, place: &Place) {
        self.gives(place, (0, place.bytes() as i128));
    }

    fn item(&mut self, item: &Item) -> Checked {
        match &item.work {
            Work::Nest(nest) => self.nest(nest, &item.ins.iter().chain(&item.outs).collect::<Vec<_>>())?,
            Work::Move(runs) => return self.moved(runs, item, false),
            Work::Add(runs) => return self.moved(runs, item, true),
            Work::Write(..) => item.ins.iter().chain(&item.outs).try_for_each(|place| self.reads(place))?,
            Work::Loop(inner) => return self.inner(inner, item),
            Work::For(inner) => return self.inner_list(inner),
            _ => {
                item.ins.iter().try_for_each(|place| self.reads(place))?;
                item.outs.iter().for_each(|place| self.writes(place));
            }
        }
        Ok(())
    }

    fn moved(&mut self, runs: &[Run], item: &Item, adds: bool) -> Checked {
        let size = item.outs[0].dtype.size() as i128;
        for run in runs {
            let to = (run.to as i128 * size, (run.to + run.n) as i128 * size);
            if let Some(input) = run.input.filter(|_| run.n > 0) {
                let (first, last) = (run.from as i128, run.from as i128 + run.step as i128 * (run.n as i128 - 1));
                let (low, high) = (first.min(last) * size, (first.max(last) + 1) * size);
                // Of elements apart from each other the ends.
                let wanted = if run.step.abs() <= 1 { vec![(low, high)] } else { vec![(low, low + size), (high - size, high)] };
                wanted.into_iter().try_for_each(|reach| self.wants(&item.ins[input], reach))?;
            }
            if adds {
                self.wants(&item.outs[0], to)?;
            }
            self.gives(&item.outs[0], to);
        }
        Ok(())
    }

    fn nest(&mut self, nest: &Nest, operands: &[&Place]) -> Checked {
        let uses = Use::of(&nest.kernel);
        let reach = |k: usize| {
            let (low, high) = nest.reach(k, uses[k]);
            (low as i128, high as i128)
        };
        for fill in &nest.fills {
            let place = operands[fill.operand];
            self.gives(place, (0, (fill.count * place.dtype.size()) as i128));
        }
        for (k, place) in operands.iter().enumerate().filter(|(k, _)| uses[*k] != Use::Stored) {
            self.wants(place, reach(k))?;
        }
        operands.iter().enumerate().filter(|(k, _)| uses[*k] != Use::Read).for_each(|(k, place)| self.gives(place, reach(k)));
        Ok(())
    }

    /// What a loop reads that it writes is of the steps before, or what it began with.
    fn inner(&mut self, inner: &InnerKernel, item: &Item) -> Checked {
        inner.count.place().into_iter().try_for_each(|place| self.reads(place))?;
        let uses = Use::of(&inner.nest.kernel);
        let (carried, others): (Vec<usize>, Vec<usize>) = (0..inner.operands.len()).partition(|&k| uses[k] == Use::Carried);
        let reach = |k: usize| {
            let (low, high) = inner.nest.reach(k, uses[k]);
            (low as i128, high as i128)
        };
        // What a loop tells of itself is cleared before it begins.
        inner.stopped.iter().chain(&inner.failed).for_each(|place| self.writes(place));
        carried.iter().try_for_each(|&k| self.wants(&inner.operands[k], reach(k)))?;
        let stored = others.iter().filter(|&&k| uses[k] == Use::Stored);
        stored.for_each(|&k| self.gives(&inner.operands[k], reach(k)));
        others.iter().filter(|&&k| uses[k] == Use::Read).try_for_each(|&k| self.wants(&inner.operands[k], reach(k)))?;
        inner.votes.iter().map(|v| &v.0).chain(&inner.ran).for_each(|place| self.writes(place));
        item.ins.iter().try_for_each(|place| self.bounds.array(place))
    }

    fn inner_list(&mut self, inner: &InnerList) -> Checked {
        inner.count.place().into_iter().try_for_each(|place| self.reads(place))?;
        let around = self.bounds.steps;
        self.bounds.steps[inner.level - 1] = inner.count.most();
        self.bounds.level += 1;
        self.writes(&inner.step);
        let moves = |place: &Place| place.along[inner.level - 1] != 0;
        for [_, to] in inner.writes.iter().filter(|w| moves(&w[1])) {
            self.writes(to);
        }
        self.moving(&inner.items, &moves);
        inner.items.iter().enumerate().try_for_each(|(k, item)| self.item(item).map_err(|text| format!("part {k} of a loop: {text}")))?;
        for [from, to] in &inner.writes {
            self.reads(from)?;
            self.writes(to);
        }
        inner.stop.iter().try_for_each(|place| self.reads(place))?;
        self.bounds.steps = around;
        self.bounds.level -= 1;
        inner.ran.iter().for_each(|place| self.writes(place));
        Ok(())
    }
    /// Rows that steps of a loop write counts as written before steps that read some of them.
    fn moving(&mut self, items: &[Item], moves: &dyn Fn(&Place) -> bool) {
        for item in items {
            match &item.work {
                Work::Nest(nest) => {
                    let uses = Use::of(&nest.kernel);
                    for (k, place) in item.outs.iter().enumerate().filter(|(_, place)| moves(place)) {
                        let k = item.ins.len() + k;
                        let (low, high) = nest.reach(k, uses[k]);
                        self.gives(place, (low as i128, high as i128));
                    }
                }
                Work::For(inner) => {
                    inner.writes.iter().map(|w| &w[1]).filter(|to| moves(to)).for_each(|to| self.writes(to));
                    self.moving(&inner.items, moves);
                }
                _ => item.outs.iter().filter(|place| moves(place)).for_each(|place| self.writes(place)),
            }
        }
    }
}
