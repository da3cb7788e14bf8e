//! The memory of a loop whose step is a list.

use super::head::Feed;
use super::held::{Held, Rows};
use crate::backend::cpu::{Memory, Operand, Spot, bytes};
use crate::dispatch;
use crate::ir::Scan;
use crate::plan::StepList;
use crate::plan::list::{At, Place};
use crate::types::{Array, DType};
use smallvec::SmallVec;
use std::cell::Cell;
use std::ops::RangeInclusive;

/// A value that all steps read.
pub struct Steady {
    array: Array,
    /// Where it begins, in bytes.
    offset: usize,
}

/// So many bytes lie in a line of the cache, and in the widest vector.
const LINE: usize = 64;
/// Bytes of matrices that are read from caches at every step.
const CACHED: RangeInclusive<usize> = 1 << 10..=1 << 20;
/// In so few steps a copy does not pay.
const FEW: usize = 8;

impl Steady {
    /// A value for so many steps. Matrices that stay in the cache begin at a line of it: a vector that crosses a line costs twice.
    pub fn new(array: Array, steps: usize) -> Steady {
        if array.data().resident().is_some() {
            return Steady { array, offset: 0 };
        }
        let there = bytes(&array);
        let matrix = array.rank() == 2 && array.dtype().is_float() && CACHED.contains(&there.len());
        if !matrix || steps <= FEW || there.as_ptr().addr().is_multiple_of(LINE) {
            return Steady { array, offset: 0 };
        }
        dispatch!(array.dtype(), T => {
            let more = LINE / size_of::<T>();
            let mut copy = Array::dirty(array.dtype(), &[array.len() + more]);
            let first = (LINE - bytes(&copy).as_ptr().addr() % LINE) % LINE / size_of::<T>();
            copy.as_mut_slice::<T>()[first..first + array.len()].copy_from_slice(array.as_slice::<T>());
            Steady { array: copy, offset: first * size_of::<T>() }
        })
    }
}

/// The rows of states, as long as they do not move.
pub struct HeldRows<'a> {
    /// The first buffers, and all others: one step of a few states takes no memory. No `SmallVec`, which would fix the lifetime.
    few: [Memory<'a>; 4],
    more: Vec<Memory<'a>>,
    /// How each buffer is used.
    kinds: SmallVec<[Rows; 4]>,
    /// Number of the row with which each buffer begins.
    base: SmallVec<[usize; 4]>,
    /// After so many steps operands are found where they were, or go on as they do: two, where rows take turns.
    pub period: usize,
}

impl<'a> HeldRows<'a> {
    /// Of these states.
    pub fn new(held: &'a mut [Held]) -> HeldRows<'a> {
        let kinds: SmallVec<[Rows; 4]> = held.iter().map(|h| h.kind).collect();
        let base = held.iter().map(|h| h.base).collect();
        let period = if kinds.contains(&Rows::Turns) { 2 } else { 1 };
        let mut rows = held.iter_mut().map(|h| Memory::of_mut(&mut h.rows, true));
        let few = std::array::from_fn(|_| rows.next().unwrap_or(Memory::Write(&[])));
        HeldRows { few, more: rows.collect(), kinds, base, period }
    }
    /// The buffer of a state.
    fn rows(&self, state: usize) -> Memory<'a> {
        self.few.get(state).copied().unwrap_or_else(|| self.more[state - self.few.len()])
    }
}

/// The memory of a run, as long as it does not move.
#[derive(Clone, Copy)]
pub struct Memories<'a> {
    scan: &'a Scan,
    plan: &'a StepList,
    ins: &'a [Array],
    before: &'a [Steady],
    feed: &'a Feed<'a>,
    arena: &'a [Cell<u8>],
    held: &'a HeldRows<'a>,
    /// What is read is looked up where it lies on a device.
    there: bool,
}

impl<'a> Memories<'a> {
    /// Of a loop with these inputs and values computed before.
    pub fn new(
        scan: &'a Scan,
        plan: &'a StepList,
        ins: &'a [Array],
        before: &'a [Steady],
        feed: &'a Feed<'a>,
        arena: &'a [Cell<u8>],
        held: &'a HeldRows<'a>,
    ) -> Memories<'a> {
        Memories { scan, plan, ins, before, feed, arena, held, there: false }
    }
    /// The same for a device.
    pub fn there(self) -> Memories<'a> {
        Memories { there: true, ..self }
    }
    /// The same for the host.
    pub fn here(self) -> Memories<'a> {
        Memories { there: false, ..self }
    }

    /// Dtypes of the sequences.
    pub fn seq_dtypes(&self) -> impl Iterator<Item = DType> {
        self.scan.seqs.ids().map(|id| self.ins[self.scan.seq_input(id)].dtype())
    }
    /// The values that all steps read.
    pub fn before(&self) -> impl Iterator<Item = (DType, Operand<'a>)> {
        self.before.iter().enumerate().map(|(k, steady)| (steady.array.dtype(), self.operand(&At::Before(k), 0)))
    }
    /// The loop.
    pub fn scan(&self) -> &'a Scan {
        self.scan
    }
    /// Writes the number of a step where steps read it.
    pub fn count(&self, step: usize) {
        self.arena.iter().zip((step as i64).to_ne_bytes()).for_each(|(cell, byte)| cell.set(byte));
    }

    /// A value that is the same in all steps, as an array.
    pub fn steady(&self, place: &Place) -> Option<Array> {
        let At::Before(k) = place.at else { return None };
        let Steady { array, offset } = &self.before[k];
        (*offset == 0 && place.first == 0 && array.shape() == &place.shape[..]).then(|| array.clone())
    }
    /// After so many steps operands are found where they were, or go on as they do.
    pub fn period(&self) -> usize {
        self.held.period
    }
    /// A value as step `step` sees it, and how it goes on.
    #[inline]
    pub fn spot(&self, place: &Place, step: usize) -> Spot<'a> {
        let size = place.dtype.size() as isize;
        Spot::new(self.place(place, step), place.along.map(|elements| elements * size))
    }
    /// A value as step `step` sees it.
    #[inline]
    pub fn place(&self, place: &Place, step: usize) -> Operand<'a> {
        let at = self.operand(&place.at, step);
        Operand { offset: at.offset + place.first * place.dtype.size(), ..at }
    }
    /// Where step `step` finds what lies there, and how far on that lies for the step a period later.
    #[inline]
    pub fn operand(&self, at: &At, step: usize) -> Operand<'a> {
        match *at {
            At::Slot(slot) => Operand { memory: Memory::Write(self.arena), offset: self.plan.temporaries[slot].at, stride: 0 },
            _ => self.outside(at, step),
        }
    }
    /// The same of what does not lie in the memory of a step.
    fn outside(&self, at: &At, step: usize) -> Operand<'a> {
        match *at {
            At::Slot(_) => unreachable!("in the memory of a step"),
            At::Seq(id) => {
                let x = &self.ins[self.scan.seq_input(id)];
                let (rows, row) = (x.shape()[0], x.len() * x.dtype().size() / x.shape()[0]);
                let stride = self.period() as isize * if self.scan.seqs[id].reverse { -(row as isize) } else { row as isize };
                Operand { memory: Memory::of(x, self.there), offset: self.feed.row(self.scan, id, rows, step) * row, stride }
            }
            At::Before(k) => {
                let Steady { array, offset } = &self.before[k];
                Operand { memory: Memory::of(array, self.there), offset: *offset, stride: 0 }
            }
            At::Row(id, offset) => {
                let k = id.0 as usize;
                let memory = self.held.rows(k);
                let row = self.plan.windows[k].row_bytes();
                match self.held.kinds[k] {
                    Rows::One => Operand { memory, offset: 0, stride: 0 },
                    Rows::Turns => Operand { memory, offset: (step + offset) % 2 * row, stride: 0 },
                    _ => Operand { memory, offset: (step + offset - self.held.base[k]) * row, stride: (self.period() * row) as isize },
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::DType;

    #[test]
    fn matrices_begin_at_a_line_of_the_cache() {
        for dtype in [DType::F32, DType::F64] {
            for n in [1, 16, 33, 64] {
                let matrix = Array::vector(&(0..n * n).map(|i| i as f64).collect::<Vec<_>>()).cast(dtype).reshaped(&[n, n]);
                let steady = Steady::new(matrix.clone(), 100);
                let there = &bytes(&steady.array)[steady.offset..][..bytes(&matrix).len()];
                assert_eq!(there, bytes(&matrix), "{dtype} {n}");
                let large = bytes(&matrix).len() >= 1024;
                assert!(!large || there.as_ptr().addr().is_multiple_of(LINE), "{dtype} {n}");
                let few = Steady::new(matrix.clone(), 1);
                assert!(few.offset == 0 && bytes(&few.array) == bytes(&matrix));
            }
        }
    }
}
