//! Calls of emitted code that are made again and again from other pointers on: what does their lanes is chosen once.

use super::layout::Task;
use super::native::{Function, Native};
use super::{Block, Blocks, Emitted, Entry, MANY};
use crate::backend::cpu::code::{Action, Frame, Places, Ready};
use crate::kernel::LEVELS;
use smallvec::SmallVec;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

/// A call of all steps and places, but for its pointers.
pub(super) struct Prepared {
    code: Arc<Emitted>,
    way: Way,
    /// Bytes from one step to the next, per operand.
    strides: SmallVec<[isize; 12]>,
    lanes: usize,
    steps: usize,
    first: i64,
    /// Operands that are read before the first step.
    held: u64,
    /// Where a few tasks on one table are all of the call.
    few: Option<Few>,
}

/// A call that is a few tasks on one table.
struct Few {
    tasks: SmallVec<[(Function, Task); 1]>,
    /// An entry for each operand: those are read by whose pointers all others are found.
    table: Rc<[Cell<Entry>]>,
}

/// What does the lanes.
enum Way {
    /// A version for all of them that goes along the innermost axis.
    Along(Function),
    /// A version for all of them.
    Once(Function),
    /// Blocks in order.
    Blocks(Blocks),
}

/// Operands that all calls within this reach can read before the first step; none where some of them alone can.
fn held(code: &Emitted, frame: &Frame, table: &[Entry], reach: &[(isize, isize)]) -> Option<u64> {
    if frame.steps < MANY {
        return Some(0);
    }
    let held = code.held_within(|operand| table[operand][1].is_null(), || reach.iter().copied());
    (held == code.held(table, frame)).then_some(held)
}

/// Pointers and strides as a table.
fn entries(ptrs: &[*mut u8], strides: &[isize]) -> SmallVec<[Entry; 12]> {
    ptrs.iter().zip(strides).map(|(&p, &s)| [p, s as *mut u8]).collect()
}

impl Prepared {
    /// What runs a frame at all places; none where it hangs on the pointers of each call.
    pub(super) fn new(code: Arc<Emitted>, frame: &Frame, places: &Places, reach: &[(isize, isize)]) -> Option<Prepared> {
        let operands = code.roles.len();
        // SAFETY: a frame has a pointer and a stride for each operand.
        let (ptrs, strides) =
            unsafe { (std::slice::from_raw_parts(frame.ptrs, operands), std::slice::from_raw_parts(frame.strides, operands)) };
        let table = entries(ptrs, strides);
        let held = held(&code, frame, &table, reach).filter(|_| !code.is_large(frame))?;
        let along = if places.extents.is_empty() || !code.handed.is_empty() { None } else { code.one_block(frame, true, held) };
        let way = match (along, code.one_block(frame, false, held)) {
            (Some(native), _) => Way::Along(native),
            (None, Some(native)) => Way::Once(native),
            (None, None) => Way::Blocks(code.parts(&table, frame, held).1),
        };
        let (lanes, steps, first) = (frame.lanes, frame.steps, frame.first);
        let mut all = Prepared { code, way, strides: SmallVec::from_slice(strides), lanes, steps, first, held, few: None };
        all.few = all.as_few(frame, places, &table);
        Some(all)
    }

    /// The call as a few tasks on one table: of a kernel whose lanes share no carry. `None` where it is not.
    fn as_few(&self, frame: &Frame, places: &Places, table: &[Entry]) -> Option<Few> {
        let code = &*self.code;
        if !code.handed.is_empty() {
            return None;
        }
        let table: Rc<[Cell<Entry>]> = table.iter().copied().map(Cell::new).collect();
        let at = Rc::as_ptr(&table).cast::<Entry>().cast_mut();
        let task = |count, tail| Task { table: at, moves: places.moves.as_ptr(), ..Task::new(&mut [], count, frame, tail) };
        let tasks = match (&self.way, places.extents) {
            (Way::Once(native), []) => [(*native, task(1, code.tail(self.lanes)))].into_iter().collect(),
            (Way::Along(native), &[count]) => [(*native, task(count, code.tail(self.lanes)))].into_iter().collect(),
            // What only the first block writes has another table behind it.
            (Way::Blocks(blocks), []) if !code.roles.iter().any(|role| role.once()) => {
                let mut left = self.lanes;
                let mut of_block = |block: &Block| {
                    let covered = block.lanes * block.count;
                    let lanes = left.min(covered);
                    left -= lanes;
                    let native = code.versions[block.version].get()?.as_ref().map(Native::function)?;
                    Some((native, task(block.count, lanes + code.program.width - covered)))
                };
                blocks.iter().map(&mut of_block).collect::<Option<_>>()?
            }
            _ => return None,
        };
        Some(Few { tasks, table })
    }

    fn frame(&self, ptrs: &[*mut u8]) -> Frame {
        let (lanes, steps, first) = (self.lanes, self.steps, self.first);
        Frame { ptrs: ptrs.as_ptr(), strides: self.strides.as_ptr(), lanes, steps, first, whole: lanes, own: std::ptr::null_mut() }
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

impl Ready for Prepared {
    unsafe fn run(&self, ptrs: &mut [*mut u8], places: &Places) {
        match &self.way {
            // SAFETY: the caller's promise; the version is that for these lanes.
            Way::Along(native) => unsafe { self.code.run_along(*native, &self.frame(ptrs), ptrs, places) },
            Way::Once(native) => {
                let tail = self.code.tail(self.lanes);
                // SAFETY: as above.
                self.each(ptrs, places, |table, _, frame| unsafe { native.call(&Task::new(table, 1, frame, tail)) });
            }
            // SAFETY: the caller's promise; the blocks are those of these lanes.
            Way::Blocks(blocks) => self.each(ptrs, places, |table, aside, frame| unsafe {
                self.code.run_blocks(table, frame, aside, (0, blocks));
            }),
        }
    }
    fn begin(&mut self, ptrs: &[*mut u8], reach: &[(isize, isize)]) -> bool {
        let frame = self.frame(ptrs);
        if self.steps >= MANY && held(&self.code, &frame, &entries(ptrs, &self.strides), reach) != Some(self.held) {
            return false;
        }
        true
    }
    fn actions(&self) -> Option<Vec<Action>> {
        let Few { tasks, table } = self.few.as_ref()?;
        let place = |&operand: &usize| {
            let [ptr, _] = table[operand].get();
            Action::Place { operand, at: table[operand].as_ptr().cast::<*mut u8>(), ptr, strides: [0; LEVELS] }
        };
        // The versions are those for these lanes, read no other entries of the table, and move them on behind the lanes that are done.
        let tasks = tasks.iter().map(|(native, task)| Action::Task(native.address(), task));
        Some(self.code.program.few.iter().map(place).chain(tasks).collect())
    }
}
