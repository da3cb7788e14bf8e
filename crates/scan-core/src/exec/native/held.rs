//! The memory of a state while its loop runs.

use super::home::Home;
use crate::backend::cpu::{Memory, Operand, bytes, cells, copy};
use crate::ir::{Keep, Scan, StateId};
use crate::plan::Window;
use crate::types::{Array, Extents};
use smallvec::SmallVec;
use std::cell::Cell;

/// The memory of a state.
pub struct Held {
    /// The buffer, where rows are stored or enter.
    pub rows: Array,
    /// The rows that one step hands to the next.
    pub window: Array,
    /// Number of initial rows.
    init: usize,
    /// How the buffer is used.
    pub kind: Rows,
    /// The number of the first row in the buffer.
    pub base: usize,
}

/// What the buffer of a state holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rows {
    /// None: the rows that one step hands to the next are all there is.
    None,
    /// All rows.
    All,
    /// So many at a time, of which the last are kept where it is full.
    Sliding {
        /// How many.
        capacity: usize,
        /// How many are kept.
        kept: usize,
    },
    /// One, which each step writes over.
    One,
    /// Two in turns: row r is at r mod 2.
    Turns,
}

/// Bytes of rows that are kept behind a state of which only the last are returned, before they are moved to the front: that must be rare,
/// since all operands are then found and checked again.
const SPARE: usize = 1 << 15;

/// How a buffer of n steps slides over rows of which the last are returned; `None` where it must not, or need not.
fn sliding(keep: Keep, window: &Window, n: usize) -> Option<Rows> {
    let Keep::Last(last) = keep else { return None };
    let kept = window.span + last.max(1);
    let capacity = kept + (SPARE / window.row_bytes().max(1)).clamp(32, 4096);
    (!window.entering && capacity < n + window.span).then_some(Rows::Sliding { capacity, kept })
}

/// As [`sliding`], where a step sees one row and makes the next: two rows in turns stay in the cache, and operands where they are.
fn turning(keep: Keep, window: &Window, init: usize) -> Option<Rows> {
    let last = matches!(keep, Keep::Last(0 | 1));
    (last && window.span <= 1 && init <= 1 && !window.entering && window.far.is_empty()).then_some(Rows::Turns)
}

/// How a buffer slides from which the rows of at most so many steps are taken at a time.
fn taking(window: &Window, rows: Option<usize>) -> Rows {
    Rows::Sliding { capacity: window.span + rows.unwrap_or(0), kept: window.span }
}

/// The same as bytes.
pub struct HeldCells<'a> {
    /// The number of the first row in the buffer.
    pub base: usize,
    /// The buffer.
    pub rows: Memory<'a>,
    /// The rows that one step hands to the next.
    pub window: Memory<'a>,
}

impl Held {
    /// Memory for `room` of n steps of a loop that is one kernel: a window of rows, and a buffer where rows are stored.
    /// The first `skip` rows are not returned: where they can, they are left away. Where so many steps' rows are `taken` at a time, none is
    /// returned.
    pub fn new(
        scan: &Scan,
        id: StateId,
        window: &Window,
        ins: &mut [Array],
        [n, room]: [usize; 2],
        (skip, home): (usize, Home),
        taken: Option<usize>,
    ) -> Held {
        let at = scan.init_input(id);
        let init = at.map_or(0, |at| ins[at].shape()[0]);
        let mut kept = home.zeros(window.dtype, &with_rows(window.carried_offsets().count(), &window.shape));
        for (k, j) in window.carried_offsets().enumerate() {
            if let Some(at) = at.filter(|_| j < init) {
                kept.copy_rows(k, &ins[at], j..j + 1);
            }
        }
        let kind = match window.stored {
            true if taken.is_some() => taking(window, taken),
            false if !window.entering => Rows::None,
            false => Rows::All,
            true => sliding(scan.states[id].keep, window, n).unwrap_or(Rows::All),
        };
        let all = window.entering || !window.far.is_empty();
        let base = if kind != Rows::All || all || skip > window.first_write { 0 } else { skip };
        let rows = match kind {
            Rows::None => Array::zeros(window.dtype, &[0]),
            Rows::Sliding { capacity, .. } => first_rows(scan, at, window, ins, [0, capacity], home),
            _ => all_rows(scan, at, window, ins, [room, base], home),
        };
        Held { rows, window: kept, init, kind, base }
    }

    /// Memory for `room` of n steps of a loop whose states lie in memory: a buffer that has all rows, or slides over them, or is
    /// the one row of a state that steps write in place. Where so many steps' rows are `taken` at a time, none is returned. `turns`: two
    /// rows may take turns.
    pub fn in_memory(
        scan: &Scan,
        id: StateId,
        window: &Window,
        ins: &mut [Array],
        [n, room]: [usize; 2],
        (in_place, turns, home): (bool, bool, Home),
        taken: Option<usize>,
    ) -> Held {
        let at = scan.init_input(id);
        let init = at.map_or(0, |at| ins[at].shape()[0]);
        let kind = match in_place {
            true => Rows::One,
            false if taken.is_some() => taking(window, taken),
            false => {
                let two = turning(scan.states[id].keep, window, init).filter(|_| turns && n > 2);
                two.or_else(|| sliding(scan.states[id].keep, window, n)).unwrap_or(Rows::All)
            }
        };
        let rows = match kind {
            Rows::One => first_row(scan, at, window, ins, home),
            Rows::Turns => first_rows(scan, at, window, ins, [0, 2], home),
            Rows::All | Rows::None => all_rows(scan, at, window, ins, [room, 0], home),
            Rows::Sliding { capacity, .. } => first_rows(scan, at, window, ins, [0, capacity], home),
        };
        let empty = Array::zeros(window.dtype, &[0]);
        Held { rows, window: empty, init, kind, base: 0 }
    }

    /// Memory for the row that one step makes of a state that no step reads: the row of step `base`.
    pub fn one_row(window: &Window) -> Held {
        let rows = Array::zeros(window.dtype, &with_rows(1, &window.shape));
        Held { rows, window: Array::zeros(window.dtype, &[0]), init: 0, kind: Rows::All, base: 0 }
    }

    /// Memory for more steps.
    pub fn grow(&mut self, window: &Window, room: usize) {
        let total = (room + window.span).max(self.init) - self.base;
        if self.kind == Rows::All && self.rows.shape()[0] < total {
            self.rows.resize_rows(total);
        }
    }

    /// Moves the rows that are still needed to the front of a full buffer; the step before which it is full the next time.
    pub fn slide(&mut self, window: &Window, step: usize) -> usize {
        let Rows::Sliding { capacity, .. } = self.kind else { return usize::MAX };
        if step + window.span - self.base >= capacity {
            self.restart(window, step);
        }
        self.base + capacity - window.span
    }

    /// Moves the rows that are still needed to the front of a sliding buffer.
    pub fn restart(&mut self, window: &Window, step: usize) {
        let Rows::Sliding { kept, .. } = self.kind else { return };
        let (row, first) = (window.row_bytes(), step + window.span - kept);
        if self.rows.data().is_on_device() {
            self.rows.move_rows(first - self.base..first - self.base + kept, 0);
            self.base = first;
            return;
        }
        let memory = Memory::Write(cells(&mut self.rows));
        let from = Operand { memory, offset: (first - self.base) * row, stride: 0 };
        copy(&from, &Operand { memory, offset: 0, stride: 0 }, kept * row);
        self.base = first;
    }

    /// True where the rows that steps read or write have another place in its buffer at each step.
    pub fn moves(&self) -> bool {
        !self.rows.is_empty() && (self.kind != Rows::All || self.rows.shape()[0] != 1 || !self.window.is_empty())
    }
    /// Its one memory, where rows do not move.
    pub fn only(&mut self) -> &[Cell<u8>] {
        cells(if self.window.is_empty() { &mut self.rows } else { &mut self.window })
    }
    /// As bytes; on a device where they lie there, if that is asked for.
    pub fn cells(&mut self, there: bool) -> HeldCells<'_> {
        HeldCells { base: self.base, rows: Memory::of_mut(&mut self.rows, there), window: Memory::of_mut(&mut self.window, there) }
    }

    /// What a loop that is one kernel returns.
    pub fn finish(mut self, keep: Keep, window: &Window, steps: usize) -> Array {
        if window.stored {
            for (k, j) in window.carried_offsets().enumerate().filter(|c| c.1 >= window.first_write) {
                self.rows.copy_rows(steps + j - self.base, &self.window, k..k + 1);
            }
            return self.finish_in_memory(keep, window, steps);
        }
        let Keep::Last(k) = keep else { return self.rows };
        let have = self.window.shape()[0];
        self.window.rows(have - k.min(steps).min(have), have)
    }

    /// What a loop whose states lie in memory returns.
    pub fn finish_in_memory(mut self, keep: Keep, window: &Window, steps: usize) -> Array {
        match keep {
            Keep::Last(k) if self.kind == Rows::One => self.rows.rows(1 - k.min(steps), 1),
            Keep::Last(k) if self.kind == Rows::Turns => {
                let at = (steps + window.span + 1) % 2;
                self.rows.rows(at, at + k.min(steps))
            }
            Keep::All if matches!(self.kind, Rows::Sliding { .. }) => Array::zeros(window.dtype, &[0]), // the rows were taken
            Keep::All => {
                self.rows.resize_rows((steps + window.span).max(self.init) - self.base);
                self.rows
            }
            Keep::Last(k) => {
                let end = steps + window.span - self.base;
                self.rows.rows(end - k.min(steps), end)
            }
        }
    }
}

/// So many bytes of rows are laid out before it is known that the loop runs so long.
const FORESEEN: usize = 1 << 30;
/// The same where the loop may stop.
const FORESEEN_UNTIL: usize = 1 << 20;

/// Steps for which memory is laid out at first, of n at most. Where they are not enough the memory grows.
pub fn room(scan: &Scan, windows: &[Window], n: usize) -> usize {
    let row: usize = windows.iter().map(Window::row_bytes).sum();
    let bytes = if scan.until { FORESEEN_UNTIL } else { FORESEEN };
    n.min((bytes / row.max(1)).max(1))
}

/// Sees to it that step `done` of n finds room: buffers of all rows grow where the `room` that they have is used up, sliding ones are
/// moved. The step before which that is to be done again.
pub fn make_room(held: &mut [Held], windows: &[Window], room: &mut usize, done: usize, n: usize) -> usize {
    if done == *room {
        *room = n.min(2 * *room);
        held.iter_mut().zip(windows).for_each(|(h, w)| h.grow(w, *room));
    }
    held.iter_mut().zip(windows).map(|(h, w)| h.slide(w, done)).min().unwrap_or(usize::MAX).min(*room)
}

/// A buffer of all rows from `base` on: the initial ones, then zeros where a step may see them.
fn all_rows(scan: &Scan, at: Option<usize>, window: &Window, ins: &mut [Array], [n, base]: [usize; 2], home: Home) -> Array {
    let init = at.map_or(0, |at| ins[at].shape()[0]);
    let total = (n + window.span).max(init);
    let Some(at) = at.filter(|_| window.entering) else { return first_rows(scan, at, window, ins, [base, total - base], home) };
    let mut rows = home.own(std::mem::replace(&mut ins[at], Array::scalar(false)));
    if rows.shape()[0] < total {
        rows.resize_rows(total);
    }
    rows
}

/// A buffer of the first row alone; the caller's array itself, where it has no more.
fn first_row(scan: &Scan, at: Option<usize>, window: &Window, ins: &mut [Array], home: Home) -> Array {
    match at {
        Some(at) if ins[at].shape()[0] == 1 => home.own(std::mem::replace(&mut ins[at], Array::scalar(false))),
        _ => first_rows(scan, at, window, ins, [0, 1], home),
    }
}

/// A buffer of so many rows from `base` on that begins with the initial ones. No step sees the others before it, or one before
/// it, wrote them.
fn first_rows(scan: &Scan, at: Option<usize>, window: &Window, ins: &[Array], [base, total]: [usize; 2], home: Home) -> Array {
    let mut rows = home.dirty_apart(window.dtype, &with_rows(total, &window.shape), || read(scan, window, ins, base));
    let init = at.map_or(0, |at| ins[at].shape()[0]);
    let seen = init.max(window.span).clamp(base, base + total);
    let given = init.clamp(base, seen);
    if let Some(at) = at {
        rows.copy_rows(0, &ins[at], base..given);
    }
    rows.clear_rows(given - base..seen - base);
    rows
}

/// The addresses that the first two steps read of sequences, less the bytes of a buffer of rows from `base` on before the first row that is
/// written: where such a buffer should not begin. Only of sequences that go on as the rows do.
fn read(scan: &Scan, window: &Window, ins: &[Array], base: usize) -> SmallVec<[usize; 8]> {
    let row = window.row_bytes();
    let before = window.first_write.saturating_sub(base) * row;
    let forward = scan.seqs.ids().filter(|&id| !scan.seqs[id].reverse).map(|id| &ins[scan.seq_input(id)]);
    let alike = forward.map(|x| (x.shape().first().copied().unwrap_or(0), bytes(x))).filter(|(rows, bytes)| bytes.len() == rows * row);
    alike.flat_map(|(_, bytes)| [0, row].map(|at| (bytes.as_ptr().addr() + at).wrapping_sub(before))).collect()
}

fn with_rows(n: usize, row: &[usize]) -> Extents {
    std::iter::once(n).chain(row.iter().copied()).collect()
}

/// An array without its first rows, as a slice does it: there may be fewer.
pub fn from_row(rows: Array, first: usize) -> Array {
    let n = rows.shape()[0];
    if first == 0 { rows } else { rows.rows(first.min(n), n) }
}
