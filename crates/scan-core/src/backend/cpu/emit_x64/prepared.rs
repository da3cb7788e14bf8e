//! Calls of emitted code that are made again and again from other pointers on: what does their lanes is chosen once.

use super::layout::Task;
use super::{Blocks, Emitted, Entry, MANY, Native};
use crate::backend::cpu::code::{Frame, Moving, Places, Ready};
use crate::backend::cpu::spot::{Steps, moved};
use smallvec::SmallVec;
use std::mem::MaybeUninit;

/// A call of all steps and places, but for its pointers.
pub(super) struct Prepared<'a> {
    code: &'a Emitted,
    way: Way<'a>,
    /// Bytes from one step to the next, per operand.
    strides: SmallVec<[isize; 12]>,
    lanes: usize,
    steps: usize,
    first: i64,
    /// Where one task is all of the call: that, but for its table.
    task: Option<Task>,
}

/// Entries of the table of a call that is one task: a place for each operand, most of which are found by way of others.
const TABLE: usize = 128;

/// What does the lanes.
enum Way<'a> {
    /// A version for all of them that goes along the innermost axis.
    Along(&'a Native),
    /// A version for all of them.
    Once(&'a Native),
    /// Blocks in order.
    Blocks(Blocks),
}

impl<'a> Prepared<'a> {
    /// What runs a frame at all places; none where it hangs on the pointers of each call.
    pub(super) fn new(code: &'a Emitted, frame: &Frame, places: &Places, reach: &[(isize, isize)]) -> Option<Prepared<'a>> {
        let operands = code.roles.len();
        // SAFETY: a frame has a pointer and a stride for each operand.
        let (ptrs, strides) =
            unsafe { (std::slice::from_raw_parts(frame.ptrs, operands), std::slice::from_raw_parts(frame.strides, operands)) };
        let table: SmallVec<[Entry; 12]> = ptrs.iter().zip(strides).map(|(&p, &s)| [p, s as *mut u8]).collect();
        let held = code.held_within(|operand| strides[operand] == 0, || reach.iter().copied());
        // Operands that overlap in some of the calls alone: each decides for itself.
        let held = if frame.steps < MANY { 0 } else { held };
        if code.is_large(frame) || held != code.held(&table, frame) {
            return None;
        }
        let along = if places.extents.is_empty() || !code.handed.is_empty() { None } else { code.one_block(frame, true, held) };
        let way = match (along, code.one_block(frame, false, held)) {
            (Some(native), _) => Way::Along(native),
            (None, Some(native)) => Way::Once(native),
            (None, None) => Way::Blocks(code.parts(&table, frame, held).1),
        };
        let (lanes, steps, first) = (frame.lanes, frame.steps, frame.first);
        let mut all = Prepared { code, way, strides: SmallVec::from_slice(strides), lanes, steps, first, task: None };
        all.task = all.only_task(frame, places);
        Some(all)
    }

    /// The task of a call that is one: of a kernel without carries, whose operands have room in a table on the stack.
    fn only_task(&self, frame: &Frame, places: &Places) -> Option<Task> {
        let count = match (&self.way, places.extents) {
            (Way::Once(_), []) => 1,
            (Way::Along(_), &[count]) => count,
            _ => return None,
        };
        let plain = self.code.program.carries.is_empty() && self.strides.len() <= TABLE;
        plain.then(|| Task::new(&mut [], count, frame, self.code.tail(self.lanes)))
    }

    fn frame(&self, ptrs: &[*mut u8]) -> Frame {
        let (lanes, steps, first) = (self.lanes, self.steps, self.first);
        Frame { ptrs: ptrs.as_ptr(), strides: self.strides.as_ptr(), lanes, steps, first, whole: lanes }
    }

    /// Calls `run` at each place with the table of operands, a place for what only the first block writes, and the frame.
    fn each(&self, ptrs: &mut [*mut u8], places: &Places, run: impl Fn(&mut [Entry], *mut u8, &Frame)) {
        let here = |ptrs: &[*mut u8]| {
            let frame = self.frame(ptrs);
            self.code.with_table(ptrs, &self.strides, |table, aside| run(table, aside, &frame));
        };
        if places.extents.is_empty() { here(ptrs) } else { places.each(ptrs, here) }
    }
}

impl Ready for Prepared<'_> {
    unsafe fn run(&self, ptrs: &mut [*mut u8], places: &Places) {
        match &self.way {
            // SAFETY: the caller's promise; the version is that for these lanes.
            Way::Along(native) => unsafe { self.code.run_along(native, &self.frame(ptrs), ptrs, places) },
            Way::Once(native) => {
                let tail = self.code.tail(self.lanes);
                // SAFETY: as above.
                self.each(ptrs, places, |table, _, frame| unsafe { native.call(&mut Task::new(table, 1, frame, tail)) });
            }
            // SAFETY: the caller's promise; the blocks are those of these lanes.
            Way::Blocks(blocks) => self.each(ptrs, places, |table, aside, frame| unsafe {
                self.code.run_blocks(table, frame, aside, (0, blocks));
            }),
        }
    }
    fn few(&self) -> Option<&[usize]> {
        self.task.is_some().then_some(&self.code.program.few)
    }
    unsafe fn run_few(&self, ptrs: &[*mut u8], along: &Moving, at: &Steps, moves: *const isize) {
        let (Way::Along(native) | Way::Once(native), Some(task)) = (&self.way, &self.task) else { return };
        let mut table: [MaybeUninit<Entry>; TABLE] = [const { MaybeUninit::uninit() }; TABLE];
        let mut set = |k: usize, by: isize| _ = table[k].write([ptrs[k].wrapping_offset(by), self.strides[k] as *mut u8]);
        self.code.program.few.iter().for_each(|&k| set(k, 0));
        for (strides, operands) in along {
            let by = moved(strides, at);
            operands.iter().for_each(|&k| set(k, by));
        }
        // SAFETY: the caller's promise; the version is that for these lanes, and reads no other entries of the table.
        unsafe { native.call(&mut Task { table: table.as_mut_ptr().cast(), moves, ..*task }) };
    }
}
