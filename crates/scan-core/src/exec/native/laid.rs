//! The memory of a loop whose step is a list, on a device: where places lie in it, and what crosses.

use super::memories::Memories;
use super::tasks::{Spot, Task};
use crate::backend::cpu::{Memory, Operand};
use crate::backend::gpu::heap::{Plan, Region, Space};
use crate::backend::gpu::launch::{Base, in_words};
use crate::backend::gpu::{DeviceRef, words};
use crate::base::Result;
use crate::base::clock::Instant;
use crate::ir::{EvalCx, StateId};
use crate::plan::list::{At, Place};
use crate::plan::{StepList, Window};
use crate::types::DType;
use smallvec::SmallVec;
use std::ops::Range;
use std::time::Duration;

/// So long a device may work before it is looked at whether the caller wants to stop.
const PATIENCE: Duration = Duration::from_millis(100);
/// Launches that are handed over at first before that.
const FIRST: usize = 64;

/// Where the operands of a launch lie, and so many words behind the begin of that.
pub type Operands = SmallVec<[(Option<Place>, usize); 4]>;

/// The memory of a run on the device.
pub struct Laid {
    space: Space,
    arena: Region,
    /// Bytes of the host's temporaries per word.
    bytes: usize,
    scratch: Region,
    rows: Vec<Region>,
    seqs: Vec<Option<Region>>,
    before: Vec<Region>,
    /// Launches since the device was waited for, when that was, and how many there may be.
    pace: (usize, Instant, usize),
}

impl Laid {
    /// Lays out the memory of a segment, or takes what is there where it fits, and writes what its steps read; so many bytes of the host's
    /// temporaries per word, and so many words between the launches of a part.
    ///
    /// # Errors
    /// `E0392`, `E0523`.
    pub fn out<'l>(
        laid: &'l mut Option<Laid>,
        (device, bytes, scratch): (DeviceRef, usize, usize),
        plan: &StepList,
        memories: &Memories,
        [first, steps]: [usize; 2],
    ) -> Result<&'l mut Laid> {
        let scan = memories.scan();
        let seqs: Vec<Option<Range<usize>>> = scan.seqs.ids().map(|id| rows_of(&memories.operand(&At::Seq(id), first), steps)).collect();
        let len = |at: &At| memories.operand(at, first).memory.span().1;
        let rows: Vec<usize> = scan.states.ids().map(|id| len(&At::Row(id, 0))).collect();
        if !laid.as_ref().is_some_and(|l| l.fits(&rows, &seqs)) {
            let new = Laid::new((device, bytes, scratch), plan, memories, &rows, &seqs)?;
            *laid = Some(new);
        }
        let laid = laid.as_mut().expect("made above");
        for ((id, region), bytes) in scan.seqs.ids().zip(&mut laid.seqs).zip(seqs) {
            if let (Some(region), Some(bytes)) = (region, bytes) {
                region.first = bytes.start;
                laid.space.bring(region, memories.operand(&At::Seq(id), first).memory, bytes)?;
            }
        }
        for (id, region) in scan.states.ids().zip(&laid.rows) {
            let bytes = read_rows(&plan.windows[id.0 as usize], memories, id, first);
            laid.space.bring(region, memories.operand(&At::Row(id, 0), first).memory, bytes)?;
        }
        laid.space.set(&laid.arena.as_dtype(DType::I64), first as i64 - 1)?;
        Ok(laid)
    }

    /// True for states' rows of so many bytes, and those bytes of the sequences.
    fn fits(&self, rows: &[usize], seqs: &[Option<Range<usize>>]) -> bool {
        let same = |r: &Option<Region>, b: &Option<Range<usize>>| match (r, b) {
            (Some(r), Some(b)) => r.words == b.len() / r.dtype.size() * words(r.dtype),
            (r, b) => r.is_none() && b.is_none(),
        };
        self.rows.iter().zip(rows).all(|(r, &n)| r.words == n / r.dtype.size() * words(r.dtype))
            && self.seqs.iter().zip(seqs).all(|(r, b)| same(r, b))
    }

    fn new(
        (device, bytes, scratch): (DeviceRef, usize, usize),
        plan: &StepList,
        memories: &Memories,
        rows: &[usize],
        seqs: &[Option<Range<usize>>],
    ) -> Result<Laid> {
        let mut layout = Plan::new();
        let arena = layout.region(DType::I8, 0..plan.memory().div_ceil(bytes));
        let scratch = layout.region(DType::I32, 0..4 * scratch);
        let windows = plan.windows.iter().zip(rows);
        let rows = windows.map(|(w, &n)| layout.region(w.dtype, 0..n)).collect();
        let seq = |(s, bytes): (DType, &Option<Range<usize>>)| bytes.clone().map(|bytes| layout.region(s, bytes));
        let seqs = memories.seq_dtypes().zip(seqs).map(seq).collect();
        let steady: Vec<(DType, Operand)> = memories.before().collect();
        let before: Vec<Region> = steady.iter().map(|(dtype, o)| layout.region(*dtype, o.offset..o.memory.span().1)).collect();
        let mut space = Space::new(device, &layout)?;
        for (region, (_, o)) in before.iter().zip(&steady) {
            space.bring(region, o.memory, o.offset..o.memory.span().1)?;
        }
        Ok(Laid { space, arena, bytes, scratch, rows, seqs, before, pace: (0, Instant::now(), FIRST) })
    }

    /// Brings back the rows that steps from one on up to another one made; false where a launch found that it needs the host: then nothing counts.
    ///
    /// # Errors
    /// `E0523`.
    pub fn end(&mut self, plan: &StepList, memories: &Memories, [first, done]: [usize; 2]) -> Result<bool> {
        if self.space.status()?.taken {
            return Ok(false);
        }
        for (id, region) in memories.scan().states.ids().zip(&self.rows) {
            let bytes = made_rows(memories, id, first, done, &plan.windows[id.0 as usize]);
            self.space.take(region, memories.operand(&At::Row(id, 0), first).memory, bytes)?;
        }
        // What is handed over lies there for whoever asks next.
        self.space.finish()?;
        Ok(true)
    }

    /// Where a place begins as a step sees it.
    fn base(&self, memories: &Memories, place: &Place, step: usize) -> Base {
        let by = place.first * words(place.dtype);
        let host = |region: &Region| {
            let base = region.base(memories.operand(&place.at, step).offset);
            Base { at: base.at + by, ..base }
        };
        match place.at {
            At::Slot(_) => {
                let offset = memories.operand(&place.at, step).offset;
                Base { at: self.arena.at + offset / self.bytes + by, from: self.arena.at, to: self.arena.at + self.arena.words }
            }
            At::Row(id, _) => host(&self.rows[id.0 as usize]),
            // Of rows without elements nothing is read.
            At::Seq(id) => self.seqs[id.0 as usize].as_ref().map_or(Base { at: 0, from: 0, to: 0 }, host),
            At::Before(k) => host(&self.before[k]),
        }
    }

    fn scratch(&self) -> Base {
        Base { at: self.scratch.at, from: self.scratch.at, to: self.scratch.at + self.scratch.words }
    }
    /// Where an operand begins in a step, of which one place is told; so many words behind.
    pub fn begin(&self, memories: &Memories, place: Option<&Place>, by: usize, step: usize) -> Base {
        let base = place.map_or_else(|| self.scratch(), |place| self.base(memories, place, step));
        Base { at: base.at + by, ..base }
    }
    /// Words from where a place is in a step to where it is a period later.
    pub fn stride(memories: &Memories, place: &Place, step: usize) -> isize {
        in_words(memories.operand(&place.at, step).stride, place.dtype.size(), words(place.dtype))
    }
    /// The memory.
    pub fn space(&mut self) -> &mut Space {
        &mut self.space
    }

    pub fn launch<'p>(&mut self, memories: &Memories, task: &Task, place: &dyn Fn(Spot) -> &'p Place, step: usize) -> Result<()> {
        let bases: SmallVec<[Base; 8]> =
            task.operands.iter().map(|&(spot, by)| self.begin(memories, (spot != Spot::Scratch).then(|| place(spot)), by, step)).collect();
        self.pace.0 += 1;
        let (steps, first) = task.launch.steps();
        self.space.run(&task.launch, &bases, steps, first)
    }

    /// What of the device's memory stands for bytes from the begin of a place on, and where these lie with the host.
    fn region(&self, memories: &Memories, place: &Place, step: usize, bytes: &Range<isize>) -> (Region, Range<usize>) {
        let (size, wide) = (place.dtype.size(), words(place.dtype));
        let first = memories.place(place, step).offset.wrapping_add_signed(bytes.start);
        let at = self.base(memories, place, step).at.wrapping_add_signed(in_words(bytes.start, size, wide));
        let region = Region { at, words: bytes.len() / size * wide, dtype: place.dtype, first };
        (region, first..first + bytes.len())
    }

    /// Brings bytes of a value to the host's memory.
    pub fn fetch(&mut self, memories: &Memories, place: &Place, step: usize, bytes: &Range<isize>) -> Result<()> {
        let operand = memories.place(place, step);
        if !matches!(operand.memory, Memory::Write(_)) {
            return Ok(());
        }
        let (region, bytes) = self.region(memories, place, step, bytes);
        self.space.take(&region, operand.memory, bytes)
    }
    /// Brings bytes of a value to the device's memory.
    pub fn send(&mut self, memories: &Memories, place: &Place, step: usize, bytes: &Range<isize>) -> Result<()> {
        let operand = memories.place(place, step);
        let (region, bytes) = self.region(memories, place, step, bytes);
        self.space.bring(&region, operand.memory, bytes)
    }

    /// Waits for the device where it has enough to do, and looks whether the caller wants to stop.
    pub fn wait(&mut self, cx: &mut EvalCx) -> Result<()> {
        cx.check()?;
        if self.pace.0 < self.pace.2 {
            return Ok(());
        }
        self.space.finish()?;
        let took = self.pace.1.elapsed();
        let most = if took < PATIENCE / 4 { 2 * self.pace.2 } else { self.pace.2 / if took > PATIENCE { 2 } else { 1 } };
        self.pace = (0, Instant::now(), most.clamp(1, 1 << 14));
        cx.check_clock()
    }
}

/// The bytes of rows that so many steps see of a sequence; `None` where rows are empty.
fn rows_of(operand: &Operand, steps: usize) -> Option<Range<usize>> {
    let row = operand.stride.unsigned_abs();
    let last = operand.offset as isize + operand.stride * (steps as isize - 1);
    let (low, high) = (operand.offset.min(last as usize), operand.offset.max(last as usize));
    (row > 0).then_some(low..high + row)
}

/// The bytes of a state's rows that steps from `first` on may see before they are written.
fn read_rows(window: &Window, memories: &Memories, id: StateId, first: usize) -> Range<usize> {
    let operand = memories.operand(&At::Row(id, 0), first);
    let (len, row) = (operand.memory.span().1, window.row_bytes());
    if operand.stride == 0 || window.entering {
        return 0..len;
    }
    operand.offset.min(len)..(operand.offset + (window.span + 1) * row).min(len)
}

/// The bytes of a state's rows that steps may have written.
fn made_rows(memories: &Memories, id: StateId, first: usize, done: usize, window: &Window) -> Range<usize> {
    let operand = memories.operand(&At::Row(id, 0), first);
    let len = operand.memory.span().1;
    if operand.stride == 0 {
        return 0..len;
    }
    let end = operand.offset + (done - first + window.span) * window.row_bytes();
    operand.offset.min(len)..end.min(len)
}
