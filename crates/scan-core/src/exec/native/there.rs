//! A loop whose step is a list, on a device: its states, temporaries and what all steps read lie there; parts that have no launch run on the
//! host, between which what they read and write crosses.

use super::apart::touched;
use super::bound::Halt;
use super::memories::Memories;
use super::mixed::{Part as Kind, Piece};
use super::tasks::{self, Spot, Task};
use super::whole::Whole;
use crate::backend::cpu::{Memory, Operand, truth_at};
use crate::backend::gpu::heap::{Plan, Region, Space};
use crate::backend::gpu::launch::{Base, in_words};
use crate::backend::gpu::{DeviceRef, Launch, words};
use crate::base::clock::Instant;
use crate::base::{Diagnostic, Result};
use crate::ir::{EvalCx, StateId};
use crate::kernel::Nest;
use crate::plan::list::{At, Place, STEP};
use crate::plan::{StepList, Window};
use crate::types::DType;
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// So long a device may work before it is looked at whether the caller wants to stop.
const PATIENCE: Duration = Duration::from_millis(100);
/// Launches that are handed over at first before that.
const FIRST: usize = 64;

/// So many steps are worth a launch of their own kind.
const MANY: usize = 2;

/// Where the operands of a launch lie, and so many words behind the begin of that.
pub type Operands = SmallVec<[(Option<Place>, usize); 4]>;

/// Where a part runs.
pub enum Part {
    /// On the device.
    There(Vec<Task>),
    /// On the host.
    Here {
        /// Why.
        why: String,
        /// The bytes that it touches of what it reads, from its begin on.
        reads: Vec<Range<isize>>,
        /// The same of its results, and whether it writes all of them: else what is there must be.
        writes: Vec<(Range<isize>, bool)>,
    },
}

/// The launches of a loop's step.
pub struct There {
    device: DeviceRef,
    /// Per item.
    pub parts: Vec<Part>,
    /// Per row that is written behind the items.
    writes: Vec<Vec<Task>>,
    /// Counts the steps, where a launch reads their number.
    count: Vec<Task>,
    /// Words between the launches of a part.
    scratch: usize,
    /// Bytes of the host's temporaries that a word of the device's stands for.
    bytes: usize,
    /// A launch may find that it needs the host.
    may_need_host: bool,
    /// The host looks after each step whether the loop stops.
    stops: bool,
    /// All of it as one launch, once it was asked for.
    whole: OnceLock<Option<Whole>>,
    /// Bytes that crossed in the last call, to the device and back.
    crossed: [AtomicU64; 2],
}

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

impl There {
    /// The launches of a plan's parts; `None` where none of these has one, or where the host might have to repeat effects.
    ///
    /// # Errors
    /// `E0522` where the device lacks a dtype.
    pub fn new(device: DeviceRef, plan: &StepList, pieces: &[Piece]) -> Result<Option<There>> {
        let (mut parts, mut scratch) = (vec![], 0);
        for piece in pieces {
            scratch = scratch.max(tasks::scratch(piece));
            let tasks = tasks::of(device, piece, plan)?;
            parts.push(tasks.map_or_else(|refusal| here(piece, refusal.0), Part::There));
        }
        if !parts.iter().any(|p| matches!(p, Part::There(_))) {
            return Ok(None);
        }
        let mut writes = vec![];
        for (.., place) in &plan.writes {
            writes.push(tasks::written(device, place)?.map_err(|r| Diagnostic::internal(r.0))?);
        }
        let reads_step = |(piece, part): (&Piece, &Part)| matches!(part, Part::There(_)) && piece.ins.iter().any(is_step);
        let mut count = vec![];
        if pieces.iter().zip(&parts).any(reads_step) || plan.writes.iter().any(|w| is_step(&w.2)) {
            count = tasks::count_up(device)?.map_err(|r| Diagnostic::internal(r.0))?;
        }
        let may_need_host = parts.iter().any(|p| if let Part::There(t) = p { tasks::may_need_host(t) } else { false });
        if may_need_host && plan.impure {
            return Ok(None);
        }
        Ok(Some(There {
            device,
            parts,
            writes,
            count,
            scratch,
            bytes: temporaries(plan, pieces),
            may_need_host,
            stops: plan.stop.is_some(),
            whole: OnceLock::new(),
            crossed: Default::default(),
        }))
    }

    /// The device's name.
    pub fn name(&self) -> &'static str {
        self.device.0.name()
    }
    /// True where a run may come to nothing: its inputs must be kept.
    pub fn may_need_host(&self) -> bool {
        self.may_need_host
    }
    /// The device.
    pub fn device(&self) -> DeviceRef {
        self.device
    }
    /// True where no part runs on the host, and nothing else looks at a step's values there: then states need no memory with the host.
    pub fn is_whole(&self) -> bool {
        !self.stops && self.parts.iter().all(|p| matches!(p, Part::There(_)))
    }
    /// Bytes that crossed in the last call, to the device and back.
    pub fn crossed(&self) -> [u64; 2] {
        self.crossed.each_ref().map(|c| c.load(Ordering::Relaxed))
    }
    /// Notes what crossed in a call.
    pub fn note(&self, crossed: [u64; 2]) {
        self.crossed.iter().zip(crossed).for_each(|(c, n)| c.store(n, Ordering::Relaxed));
    }

    /// Lays out the memory of a segment, or takes what is there where it fits, and writes what its steps read.
    fn lay_out(&self, laid: &mut Option<Laid>, plan: &StepList, memories: &Memories, [first, steps]: [usize; 2]) -> Result<()> {
        let scan = memories.scan();
        let seqs: Vec<Option<Range<usize>>> = scan.seqs.ids().map(|id| rows_of(&memories.operand(&At::Seq(id), first), steps)).collect();
        let len = |at: &At| memories.operand(at, first).memory.span().1;
        let rows: Vec<usize> = scan.states.ids().map(|id| len(&At::Row(id, 0))).collect();
        let fits = laid.as_ref().is_some_and(|l| {
            let same = |r: &Option<Region>, b: &Option<Range<usize>>| match (r, b) {
                (Some(r), Some(b)) => r.words == b.len() / r.dtype.size() * words(r.dtype),
                (r, b) => r.is_none() && b.is_none(),
            };
            l.rows.iter().zip(&rows).all(|(r, &n)| r.words == n / r.dtype.size() * words(r.dtype))
                && l.seqs.iter().zip(&seqs).all(|(r, b)| same(r, b))
        });
        if !fits {
            let new = self.regions(plan, memories, &rows, &seqs)?;
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
        laid.space.set(&laid.arena.as_dtype(DType::I64), first as i64 - 1)
    }

    fn regions(&self, plan: &StepList, memories: &Memories, rows: &[usize], seqs: &[Option<Range<usize>>]) -> Result<Laid> {
        let mut layout = Plan::new();
        let arena = layout.region(DType::I8, 0..plan.memory().div_ceil(self.bytes));
        let scratch = layout.region(DType::I32, 0..4 * self.scratch);
        let windows = plan.windows.iter().zip(rows);
        let rows = windows.map(|(w, &n)| layout.region(w.dtype, 0..n)).collect();
        let seq = |(s, bytes): (DType, &Option<Range<usize>>)| bytes.clone().map(|bytes| layout.region(s, bytes));
        let seqs = memories.seq_dtypes().zip(seqs).map(seq).collect();
        let steady: Vec<(DType, Operand)> = memories.before().collect();
        let before: Vec<Region> = steady.iter().map(|(dtype, o)| layout.region(*dtype, o.offset..o.memory.span().1)).collect();
        let mut space = Space::new(self.device, &layout)?;
        for (region, (_, o)) in before.iter().zip(&steady) {
            space.bring(region, o.memory, o.offset..o.memory.span().1)?;
        }
        Ok(Laid { space, arena, bytes: self.bytes, scratch, rows, seqs, before, pace: (0, Instant::now(), FIRST) })
    }

    /// Runs from step `done` up to step `end`, in memory of the host that does not move; `here(k, step)` runs part k on the host.
    ///
    /// # Errors
    /// What the ops report; `E0523`.
    pub fn segment(
        &self,
        cx: &mut EvalCx,
        laid: &mut Option<Laid>,
        (plan, pieces, memories): (&StepList, &[Piece], &Memories),
        done: &mut usize,
        end: usize,
        here: &mut dyn FnMut(&mut EvalCx, usize, usize) -> std::result::Result<(), Halt>,
    ) -> std::result::Result<bool, Halt> {
        let first = *done;
        self.lay_out(laid, plan, memories, [first, end - first])?;
        let laid = laid.as_mut().expect("laid out");
        let mut stopped = false;
        if let Some(whole) = self.whole(plan, pieces, end - first)? {
            whole.run(cx, laid, memories, &self.operands(plan, pieces), done, end)?;
        }
        while *done < end && !stopped {
            memories.count(*done);
            self.step(cx, laid, (plan, pieces, memories), *done, &mut |cx, k| here(cx, k, *done - first))?;
            if let Some(stop) = &plan.stop {
                laid.fetch(memories, stop, *done, &whole(stop))?;
                stopped = truth_at(&memories.place(stop, *done), stop.dtype);
            }
            *done += 1;
            cx.reached(*done);
        }
        if laid.space.status()?.taken {
            return Err(Halt::Refused);
        }
        for (id, region) in memories.scan().states.ids().zip(&laid.rows) {
            let bytes = made_rows(memories, id, first, *done, &plan.windows[id.0 as usize]);
            laid.space.take(region, memories.operand(&At::Row(id, 0), first).memory, bytes)?;
        }
        // What is handed over lies there for whoever asks next.
        laid.space.finish()?;
        Ok(stopped)
    }

    /// The launches of a step in order, and where their operands lie; `None`: between the launches of a part.
    fn operands<'t>(&'t self, plan: &StepList, pieces: &[Piece]) -> Vec<(&'t Task, Operands)> {
        let of = |task: &'t Task, place: &dyn Fn(Spot) -> Place| {
            let spots = task.operands.iter().map(|&(spot, by)| ((spot != Spot::Scratch).then(|| place(spot)), by));
            (task, spots.collect())
        };
        let mut all: Vec<(&Task, Operands)> = self.count.iter().map(|task| of(task, &|_| Place::step())).collect();
        for (part, item) in self.parts.iter().zip(pieces) {
            let tasks = if let Part::There(tasks) = part { &tasks[..] } else { &[] };
            let place = |spot| if let Spot::In(i) = spot { item.ins[i].clone() } else { out_of(item, spot).clone() };
            all.extend(tasks.iter().map(|task| of(task, &place)));
        }
        for (tasks, (id, offset, place)) in self.writes.iter().zip(&plan.writes) {
            let row = Place { at: At::Row(*id, *offset), first: 0, ..place.clone() };
            all.extend(tasks.iter().map(|task| of(task, &|spot| if spot == Spot::Out(0) { row.clone() } else { place.clone() })));
        }
        all
    }

    /// All of a step as one launch; `None` where there is none, or where so few steps do not need it.
    fn whole(&self, plan: &StepList, pieces: &[Piece], steps: usize) -> Result<Option<&Whole>> {
        if !self.is_whole() || steps < MANY && self.whole.get().is_none() {
            return Ok(None);
        }
        if let Some(found) = self.whole.get() {
            return Ok(found.as_ref());
        }
        let launches: Vec<&Launch> = self.operands(plan, pieces).iter().map(|(task, _)| &task.launch).collect();
        let made = Whole::new(self.device, &launches)?;
        Ok(self.whole.get_or_init(|| made).as_ref())
    }

    fn step(
        &self,
        cx: &mut EvalCx,
        laid: &mut Laid,
        (plan, pieces, memories): (&StepList, &[Piece], &Memories),
        step: usize,
        here: &mut dyn FnMut(&mut EvalCx, usize) -> std::result::Result<(), Halt>,
    ) -> std::result::Result<(), Halt> {
        let number = Place::step();
        for task in &self.count {
            laid.launch(memories, task, &|_| &number, step)?;
        }
        for (k, (part, item)) in self.parts.iter().zip(pieces).enumerate() {
            match part {
                Part::There(tasks) => {
                    for task in tasks {
                        laid.launch(memories, task, &|spot| if let Spot::In(i) = spot { &item.ins[i] } else { out_of(item, spot) }, step)?;
                    }
                }
                Part::Here { reads, writes, .. } => {
                    for (place, bytes) in item.ins.iter().zip(reads).filter(|(place, _)| !is_step(place)) {
                        laid.fetch(memories, place, step, bytes)?;
                    }
                    for (place, (bytes, _)) in item.outs.iter().zip(writes).filter(|(_, (_, all))| !all) {
                        laid.fetch(memories, place, step, bytes)?;
                    }
                    here(cx, k)?;
                    for (place, (bytes, _)) in item.outs.iter().zip(writes) {
                        laid.send(memories, place, step, bytes)?;
                    }
                }
            }
            laid.wait(cx)?;
        }
        for (tasks, (id, offset, place)) in self.writes.iter().zip(&plan.writes) {
            let row = Place { at: At::Row(*id, *offset), first: 0, ..place.clone() };
            for task in tasks {
                laid.launch(memories, task, &|spot| if spot == Spot::Out(0) { &row } else { place }, step)?;
            }
        }
        Ok(laid.wait(cx)?)
    }
}

/// A part that runs on the host, for a reason.
fn here(piece: &Piece, why: String) -> Part {
    let nests: Option<[&Nest; 2]> = match &piece.part {
        Kind::Nest(_, nest) => Some([nest, nest]),
        Kind::Either(versions) => Some(versions.nests().map(|nest| &**nest)),
        _ => None,
    };
    if let Some(nests) = nests {
        let both = |k| {
            let [(a, a_all), (b, b_all)] = nests.map(|nest| touched(nest, k));
            (a.start.min(b.start)..a.end.max(b.end), a_all && b_all && a == b)
        };
        let mut reads: Vec<_> = (0..piece.ins.len() + piece.outs.len()).map(both).collect();
        let writes = reads.split_off(piece.ins.len());
        return Part::Here { why, reads: reads.into_iter().map(|(bytes, _)| bytes).collect(), writes };
    }
    let all = !piece.part.writes_some();
    let writes = piece.outs.iter().map(|place| (whole(place), all)).collect();
    Part::Here { why, reads: piece.ins.iter().map(whole).collect(), writes }
}

/// The bytes of all elements of a place.
fn whole(place: &Place) -> Range<isize> {
    0..place.bytes() as isize
}

fn out_of(item: &Piece, spot: Spot) -> &Place {
    if let Spot::Out(k) = spot { &item.outs[k] } else { &item.outs[0] }
}

/// Bytes of the host's temporaries per word of the device's, which has room for whatever elements lie there: the size of the smallest ones.
fn temporaries(plan: &StepList, pieces: &[Piece]) -> usize {
    let places = pieces.iter().flat_map(|piece| piece.ins.iter().chain(&piece.outs)).chain(plan.writes.iter().map(|w| &w.2));
    let there = places.chain(&plan.stop).filter(|place| matches!(place.at, At::Slot(_)));
    there.map(|place| place.dtype.size()).min().unwrap_or(1).min(size_of::<u32>())
}

fn is_step(place: &Place) -> bool {
    place.at == At::Slot(STEP)
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

impl Laid {
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

    fn launch<'p>(&mut self, memories: &Memories, task: &Task, place: &dyn Fn(Spot) -> &'p Place, step: usize) -> Result<()> {
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
    fn fetch(&mut self, memories: &Memories, place: &Place, step: usize, bytes: &Range<isize>) -> Result<()> {
        let operand = memories.place(place, step);
        if !matches!(operand.memory, Memory::Write(_)) {
            return Ok(());
        }
        let (region, bytes) = self.region(memories, place, step, bytes);
        self.space.take(&region, operand.memory, bytes)
    }
    /// Brings bytes of a value to the device's memory.
    fn send(&mut self, memories: &Memories, place: &Place, step: usize, bytes: &Range<isize>) -> Result<()> {
        let operand = memories.place(place, step);
        let (region, bytes) = self.region(memories, place, step, bytes);
        self.space.bring(&region, operand.memory, bytes)
    }

    /// Waits for the device where it has enough to do, and looks whether the caller wants to stop.
    fn wait(&mut self, cx: &mut EvalCx) -> Result<()> {
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
