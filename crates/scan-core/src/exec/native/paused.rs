//! A loop that makes one step per call: its states stay where they are in between.

use super::common::Common;
use super::head::Feed;
use super::held::{Held, make_room};
use super::home::Home;
use super::loops::NativeLoop;
use super::ready::Standing;
use super::variant::Variant;
use crate::backend::cpu::{Operand, array_at, bytes, cells, copy};
use crate::base::Result;
use crate::ir::{EvalCx, Scan};
use crate::types::{Array, DType};
use smallvec::SmallVec;
use std::sync::{Arc, PoisonError};

/// The memory of a loop between two steps. The first states are kept; of the others the row that the last step made is there.
pub struct Paused {
    scan: Arc<Scan>,
    common: Arc<Common>,
    /// Inputs of the loop. Sequences have the one row of the next step.
    ins: Vec<Array>,
    held: SmallVec<[Held; 8]>,
    /// The memory of a list for a step.
    arena: Option<Array>,
    /// The rows of sequences and states, where a kernel finds them at the same places in every step.
    standing: Option<Standing>,
    done: usize,
    kept: usize,
}

/// More steps than a session makes: nothing is laid out for them.
const ENDLESS: usize = 1 << (usize::BITS - 4);

impl NativeLoop {
    /// The loop from these inputs on, of whose states the first ones are kept and the others returned row by row; `None` where a step may be left
    /// to the law, or writes over what it reads: it must be possible to make it again.
    ///
    /// # Errors
    /// What the ops report that all steps read.
    pub fn paused(&self, cx: &mut EvalCx, mut ins: Vec<Array>, kept: usize) -> Result<Option<Paused>> {
        let scan = self.scan().clone();
        let variant = self.variant(&ins);
        let (windows, list) = match &*variant {
            Variant::Kernel(ready) if !ready.plan.guarded && ready.tier.device().is_none() => {
                ready.tier.expect(ready.plan.lanes, ENDLESS);
                (&ready.plan.windows[..], None)
            }
            Variant::Mixed(list, _) if !list.guarded && !list.in_place().contains(&true) => (list.windows(), Some(list)),
            _ => return Ok(None),
        };
        let common = self.common(cx, &variant, &ins)?;
        let mut held: SmallVec<[Held; 8]> = SmallVec::new();
        for (id, window) in scan.states.ids().zip(windows) {
            held.push(match list {
                _ if id.0 as usize >= kept => Held::one_row(window),
                None => Held::new(&scan, id, window, &mut ins, [ENDLESS; 2], (0, Home::HERE), None),
                Some(_) => Held::in_memory(&scan, id, window, &mut ins, [ENDLESS; 2], (false, false, Home::HERE), None),
            });
        }
        let arena = list.map(|list| list.arena());
        let standing = match &*variant {
            Variant::Kernel(ready) => ready.standing(&scan, &ins, &common.computed, &mut held),
            _ => None,
        };
        Ok(Some(Paused { standing, scan, common, ins, held, arena, done: 0, kept }))
    }

    /// What all steps read: that of a loop which is paused already, where its captured values are the same arrays.
    fn common(&self, cx: &mut EvalCx, variant: &Arc<Variant>, ins: &[Array]) -> Result<Arc<Common>> {
        let captured: Vec<Array> = self.scan().captured.ids().map(|id| ins[self.scan().captured_input(id)].clone()).collect();
        let known = self.common.lock().unwrap_or_else(PoisonError::into_inner).upgrade();
        if let Some(known) = known.filter(|known| known.serves(variant, &captured)) {
            return Ok(known);
        }
        let made = Arc::new(Common::new(self.scan(), cx, variant, ins, captured)?);
        *self.common.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(&made);
        Ok(made)
    }
}

impl Paused {
    /// Type and number of elements of the row of a sequence.
    pub fn row_kind(&self, seq: usize) -> (DType, usize) {
        (self.ins[1 + seq].dtype(), self.ins[1 + seq].len())
    }
    /// Takes over the bytes of the row of a sequence that the next step reads.
    pub fn put_row(&mut self, seq: usize, row: &[u8]) {
        let to = match &mut self.standing {
            Some(standing) => standing.row(seq),
            None => cells(&mut self.ins[1 + seq]),
        };
        copy(&Operand::reading(row), &Operand::writing(to), row.len());
    }
    /// Type and number of elements of the row of a state that is returned.
    pub fn made_kind(&self, state: usize) -> (DType, usize) {
        (self.held[state].rows.dtype(), self.held[state].rows.len())
    }
    /// The bytes of the row that the last step made of such a state.
    pub fn made(&self, state: usize) -> &[u8] {
        self.standing.as_ref().map_or_else(|| bytes(&self.held[state].rows), |standing| standing.state(state))
    }
    /// The same as an array.
    pub fn made_row(&self, state: usize) -> Array {
        let rows = &self.held[state].rows;
        array_at(&Operand::reading(self.made(state)), rows.dtype(), &rows.shape()[1..])
    }
    /// The rows that the next step reads of a state that is kept.
    pub fn kept(&self, state: usize) -> Array {
        let held = &self.held[state];
        let span = self.windows()[state].span;
        if let Some(standing) = &self.standing {
            return array_at(&Operand::reading(standing.state(state)), held.window.dtype(), held.window.shape());
        }
        if self.arena.is_none() {
            return held.window.clone();
        }
        held.rows.rows(self.done - held.base, self.done - held.base + span)
    }
    fn windows(&self) -> &[crate::plan::Window] {
        match &*self.common.variant {
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
        let (feed, common) = (Feed::from(done), &*self.common);
        match (&*common.variant, &mut self.standing) {
            (Variant::Kernel(ready), Some(standing)) => ready.stand(cx, (&self.ins, &common.computed), standing, done)?,
            (Variant::Kernel(ready), None) => {
                ready.one(cx, (&self.scan, &self.ins, &common.computed, &feed), &mut self.held, done)?;
            }
            (Variant::Mixed(list, _), _) => {
                make_room(&mut self.held, list.windows(), &mut { ENDLESS }, done, ENDLESS);
                if let Some(arena) = &mut self.arena {
                    list.one(cx, (&self.scan, &self.ins, &common.steady, arena, &feed), &mut self.held, done)?;
                }
            }
            _ => {}
        }
        self.done += 1;
        Ok(())
    }
}
