//! The memory of a loop whose step is a list.

use super::held::{Held, Rows};
use crate::backend::cpu::{Memory, Operand, bytes, cells};
use crate::ir::Scan;
use crate::lower::Window;
use crate::lower::mixed::At;
use crate::types::Array;
use std::cell::Cell;

/// The memory of a run, as long as it does not move.
pub struct Memories<'a> {
    scan: &'a Scan,
    windows: &'a [Window],
    ins: &'a [Array],
    before: &'a [Array],
    arena: &'a [Cell<u8>],
    rows: Vec<&'a [Cell<u8>]>,
    /// How each buffer is used.
    kinds: Vec<Rows>,
    /// Number of the row with which each buffer begins.
    base: Vec<usize>,
}

impl<'a> Memories<'a> {
    /// Of a loop with these inputs and values computed before.
    pub fn new(
        scan: &'a Scan,
        windows: &'a [Window],
        [ins, before]: [&'a [Array]; 2],
        arena: &'a [Cell<u8>],
        held: &'a mut [Held],
    ) -> Memories<'a> {
        let base = held.iter().map(|h| h.base).collect();
        let kinds = held.iter().map(|h| h.kind).collect();
        let rows = held.iter_mut().map(|h| cells(&mut h.rows)).collect();
        Memories { scan, windows, ins, before, arena, rows, kinds, base }
    }

    /// The loop.
    pub fn scan(&self) -> &'a Scan {
        self.scan
    }
    /// Writes the number of a step where steps read it.
    pub fn count(&self, step: usize) {
        self.arena.iter().zip((step as i64).to_ne_bytes()).for_each(|(cell, byte)| cell.set(byte));
    }

    /// A place as step `step` sees it.
    pub fn operand(&self, at: &At, step: usize) -> Operand<'a> {
        match *at {
            At::Arena(offset) => Operand { memory: Memory::Write(self.arena), offset, stride: 0 },
            At::Slot(_) => unreachable!("laid out"),
            At::Seq(id) => {
                let x = &self.ins[self.scan.seq_input(id)];
                let (rows, row) = (x.shape()[0], bytes(x).len() / x.shape()[0]);
                let reverse = self.scan.seqs[id].reverse;
                let at = if reverse { rows - 1 - step } else { step };
                Operand { memory: Memory::Read(bytes(x)), offset: at * row, stride: if reverse { -(row as isize) } else { row as isize } }
            }
            At::Before(k) => Operand { memory: Memory::Read(bytes(&self.before[k])), offset: 0, stride: 0 },
            At::Row(id, offset) => {
                let k = id.0 as usize;
                let memory = Memory::Write(self.rows[k]);
                if self.kinds[k] == Rows::One {
                    return Operand { memory, offset: 0, stride: 0 };
                }
                let row = self.windows[k].row_bytes();
                Operand { memory, offset: (step + offset - self.base[k]) * row, stride: row as isize }
            }
        }
    }
}
