//! A loop that makes one step per call: its states stay where they are in between.

use super::head::Feed;
use super::held::{Held, make_room};
use super::loops::{NativeLoop, Variant};
use super::memories::Steady;
use super::ready::Standing;
use crate::base::Result;
use crate::ir::{EvalCx, Scan};
use crate::types::Array;
use smallvec::SmallVec;
use std::sync::Arc;

/// The memory of a loop between two steps. The first states are kept; of the others the row that the last step made is there.
pub struct Paused {
    scan: Arc<Scan>,
    variant: Arc<Variant>,
    /// Inputs of the loop. Sequences have the one row of the next step.
    ins: Vec<Array>,
    held: SmallVec<[Held; 8]>,
    /// What all steps read, where it is computed, and the memory of a list.
    computed: Vec<Array>,
    list: Option<(SmallVec<[Steady; 4]>, Array)>,
    /// Where a kernel finds its operands, where that is the same at every step.
    standing: Option<Standing>,
    done: usize,
    kept: usize,
}

/// More steps than a session makes: nothing is laid out for them.
const ENDLESS: usize = 1 << 60;

impl NativeLoop {
    /// The loop from these inputs on, of whose states the first ones are kept and the others returned row by row; `None` where a step may be left
    /// to the law, or writes over what it reads: it must be possible to make it again.
    ///
    /// # Errors
    /// What the ops report that all steps read.
    pub fn paused(&self, cx: &mut EvalCx, mut ins: Vec<Array>, kept: usize) -> Result<Option<Paused>> {
        let scan = self.scan().clone();
        let variant = self.variant(&ins);
        let (windows, before, list) = match &*variant {
            Variant::Kernel(ready) if !ready.plan.guarded && ready.tier.device().is_none() => {
                ready.tier.expect(ready.plan.lanes, ENDLESS);
                (&ready.plan.windows[..], &ready.before, None)
            }
            Variant::Mixed(list, _) if !list.guarded && !list.in_place().contains(&true) => (list.windows(), list.before(), Some(list)),
            _ => return Ok(None),
        };
        let computed = before.run(&scan, cx, &ins)?;
        let mut held: SmallVec<[Held; 8]> = SmallVec::new();
        for (id, window) in scan.states.ids().zip(windows) {
            held.push(match list {
                _ if id.0 as usize >= kept => Held::one_row(window),
                None => Held::new(&scan, id, window, &mut ins, [ENDLESS; 2], 0, None),
                Some(_) => Held::in_memory(&scan, id, window, &mut ins, [ENDLESS; 2], false, None),
            });
        }
        let list = list.map(|list| list.memory(&ins, &computed));
        let standing = match &*variant {
            Variant::Kernel(ready) => ready.standing(&scan, &ins, &computed, &mut held),
            _ => None,
        };
        Ok(Some(Paused { standing, scan, variant: variant.clone(), ins, held, computed, list, done: 0, kept }))
    }
}

impl Paused {
    /// The row of a sequence that the next step reads.
    pub fn row_mut(&mut self, seq: usize) -> &mut Array {
        &mut self.ins[1 + seq]
    }
    /// The row that the last step made of a state that is returned.
    pub fn made(&self, state: usize) -> &Array {
        &self.held[state].rows
    }
    /// The rows that the next step reads of a state that is kept.
    pub fn kept(&self, state: usize) -> Array {
        let held = &self.held[state];
        let span = self.windows()[state].span;
        if self.list.is_none() {
            return held.window.clone();
        }
        held.rows.rows(self.done - held.base, self.done - held.base + span)
    }
    fn windows(&self) -> &[crate::lower::Window] {
        match &*self.variant {
            Variant::Kernel(ready) => &ready.plan.windows,
            Variant::Mixed(list, _) => list.windows(),
            _ => &[],
        }
    }

    /// One step.
    ///
    /// # Errors
    /// What the ops report; the states are then as they were.
    pub fn step(&mut self, cx: &mut EvalCx) -> Result<()> {
        let done = self.done;
        self.held[self.kept..].iter_mut().for_each(|held| held.base = done);
        let feed = Feed::from(done);
        match (&*self.variant, &self.standing) {
            (Variant::Kernel(ready), Some(standing)) => {
                ready.stand(cx, (&self.scan, &self.ins, &self.computed), standing, &mut self.held, done)?;
            }
            (Variant::Kernel(ready), None) => {
                ready.one(cx, (&self.scan, &self.ins, &self.computed, &feed), &mut self.held, done)?;
            }
            (Variant::Mixed(list, _), _) => {
                make_room(&mut self.held, list.windows(), &mut { ENDLESS }, done, ENDLESS);
                if let Some((before, arena)) = &mut self.list {
                    list.one(cx, (&self.scan, &self.ins, before, arena, &feed), &mut self.held, done)?;
                }
            }
            _ => {}
        }
        self.done += 1;
        Ok(())
    }
}
