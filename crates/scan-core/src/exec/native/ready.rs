//! A loop that is one kernel, ready to run.

use super::before::Before;
use super::device::OnDevice;
use super::distributed::{BLOCK, Distributed};
use super::foot::Flow;
use super::head::Feed;
use super::held::{Held, HeldCells, make_room};
use super::home::Home;
use super::tier::{Engine, Tiered};
use super::vectorized::Vectorized;
use crate::backend::cpu::{Memory, Operand, bytes, cells, team};
use crate::base::Result;
use crate::base::clock::Instant;
use crate::ir::{EvalCx, Scan, SeqId};
use crate::lower::stages::LANES;
use crate::plan::kernel::Place;
use crate::plan::{LoopKernel, Window};
use crate::scan::kept;
use crate::types::{Array, DType};
use smallvec::SmallVec;
use std::cell::Cell;
use std::ops::Range;

/// A loop as one kernel.
pub(super) struct Ready {
    /// The loop.
    pub plan: LoopKernel,
    /// Its engines.
    pub tier: Tiered,
    /// The same with the steps as lanes, where they do not wait for each other.
    pub vectorized: Option<Vectorized>,
    /// The same in stages, where that is quicker.
    pub distributed: Option<Distributed>,
    /// What all steps read.
    pub before: Before,
}

/// A loop that is paused after each step, and finds what it reads and writes at the same places in every one.
pub(super) struct Standing {
    /// The rows that a step reads of sequences, and the one memory of each state.
    arena: Array,
    seqs: SmallVec<[Range<usize>; 4]>,
    states: SmallVec<[Range<usize>; 8]>,
    /// Per operand: the value that is computed before, or the arena; bytes from its start; stride.
    places: SmallVec<[(Option<usize>, usize, isize); 16]>,
    /// Several threads share a step.
    shared: bool,
}

/// Bytes between the starts of two memories of an arena are a multiple of this.
const APART: usize = 64;

impl Standing {
    /// Where the row of a sequence is to be.
    pub fn row(&mut self, seq: usize) -> &[Cell<u8>] {
        &cells(&mut self.arena)[self.seqs[seq].clone()]
    }
    /// The memory of a state.
    pub fn state(&self, state: usize) -> &[u8] {
        &bytes(&self.arena)[self.states[state].clone()]
    }
}

/// What the operands of a kernel lie in, but for the states.
struct Sources<'a> {
    scan: &'a Scan,
    ins: &'a [Array],
    /// What all steps read, where it is computed.
    computed: &'a [Array],
    feed: &'a Feed<'a>,
    /// Looked up where they lie on a device.
    there: bool,
}

/// An array that a kernel reads, from where the first step of a segment reads it, and the bytes of an element.
type Base<'a> = (Operand<'a>, usize);

/// The same, but for states: per sequence, and per value that all steps read.
struct Bases<'a> {
    seqs: SmallVec<[Base<'a>; 4]>,
    before: SmallVec<[Base<'a>; 4]>,
}

/// lanes × steps × instructions of a call of the kernel, between two looks at whether the caller wants to stop: where several threads
/// share it, and where one does it alone.
const PORTION: [usize; 2] = [1 << 20, 1 << 22];
/// Bytes that the rows of a block of steps may take where a kernel walks over the lanes in several columns.
const BLOCK_BYTES: usize = 1 << 20;
/// The same where all steps together take more than caches keep ([`CACHED_BYTES`]): so few rows at a time that the processor sees them
/// coming.
const STREAM_BYTES: usize = 1 << 16;
const CACHED_BYTES: usize = 1 << 24;

/// What a kernel tells besides what it makes: whether the loop has stopped, whether it failed (a bool each for all lanes, or one), and
/// what decides after each step whether it stops.
#[derive(Clone, Copy)]
struct Told<'a> {
    stopped: &'a [Cell<u8>],
    failed: &'a [Cell<u8>],
    votes: &'a [Cell<u8>],
}

/// True where one of some bools is.
pub(super) fn is_any(bools: &[Cell<u8>]) -> bool {
    bools.iter().any(|b| b.get() != 0)
}

/// lanes × instructions that may run before it is counted which lanes want to stop, and votes that are kept, but for those of very many
/// lanes: counting takes about as long as a tenth of the first.
const UNCOUNTED: usize = 1 << 15;
const VOTES: usize = 1 << 18;

impl Ready {
    pub(super) fn new(scan: &Scan, plan: LoopKernel, engine: Engine) -> Ready {
        let one = (plan.lanes == 1).then_some((&plan.kernel, &plan.places[..]));
        let vectorized = one.and_then(|(kernel, places)| Vectorized::of(kernel, places, engine.here()));
        let stages = one.filter(|_| vectorized.is_none() && plan.votes.is_none());
        let distributed = stages.and_then(|(kernel, places)| Distributed::of(kernel, places, engine.here()));
        Ready {
            tier: Tiered::new(plan.kernel.clone(), engine).timed(),
            vectorized,
            distributed,
            before: Before::new(scan, &plan.before),
            plan,
        }
    }

    /// Runs at most n steps, in memory that is laid out for `room` of them and grows; how many ran.
    pub(super) fn steps(
        &self,
        scan: &Scan,
        cx: &mut EvalCx,
        ins: &mut [Array],
        computed: &[Array],
        flow: &mut Flow,
        held: &mut [Held],
        [n, mut room]: [usize; 2],
        failed: &[Cell<u8>],
    ) -> Result<usize> {
        match (self.vectorized(n), self.distributed(n)) {
            (Some(vectorized), _) => vectorized.expect(n),
            (None, Some(distributed)) => distributed.expect(n),
            (None, None) => self.tier.expect(self.plan.lanes, n),
        }
        let home = self.home();
        let (mut done, mut stopped) = (0, false);
        while done < n && !stopped && !is_any(failed) {
            let end = kept::laid_out(scan, &Cell::new(done), || make_room(held, &self.plan.windows, &mut room, done, n))?;
            let end = end.min(flow.advance(scan, cx, ins, done, n)?);
            let start = cx.profile.is_some().then(Instant::now);
            for id in scan.seqs.ids() {
                home.send(&mut ins[scan.seq_input(id)])?;
            }
            stopped = self.segment(cx, &Sources { scan, ins, computed, feed: &flow.feed, there: false }, held, &mut done, end, failed)?;
            if let (Some(start), Some(profile)) = (start, &mut cx.profile) {
                profile.op("kernel", start.elapsed());
            }
            flow.leave(cx, held, &self.plan.windows, [done, n])?;
        }
        Ok(done)
    }

    /// The kernel whose lanes are so many steps.
    fn vectorized(&self, steps: usize) -> Option<&Vectorized> {
        self.vectorized.as_ref().filter(|_| self.tier.device().is_none_or(OnDevice::is_refused))?.takes(steps)
    }

    /// The stages of so many steps.
    fn distributed(&self, steps: usize) -> Option<&Distributed> {
        self.distributed.as_ref().filter(|_| self.tier.device().is_none_or(OnDevice::is_refused))?.takes(steps)
    }

    /// Runs one step of a loop that is paused after each: of its inputs, what is computed of them, and where rows are.
    pub(super) fn one(
        &self,
        cx: &mut EvalCx,
        (scan, ins, computed, feed): (&Scan, &[Array], &[Array], &Feed),
        held: &mut [Held],
        mut done: usize,
    ) -> Result<bool> {
        let end = done + 1;
        self.segment(cx, &Sources { scan, ins, computed, feed, there: false }, held, &mut done, end, &[])
    }

    /// The same as one memory, with what the states hold now; `None` where a step finds them at other places than the one before, since rows that
    /// steps read are kept in buffers.
    pub(super) fn standing(&self, scan: &Scan, ins: &[Array], computed: &[Array], held: &mut [Held]) -> Option<Standing> {
        if held.iter().any(Held::moves) || self.plan.votes.is_some() {
            return None;
        }
        let mut end = 0;
        let mut next = |n: usize| {
            let start = end;
            end = (start + n).next_multiple_of(APART);
            start..start + n
        };
        let seqs: SmallVec<[Range<usize>; 4]> = scan.seqs.ids().map(|id| next(bytes(&ins[scan.seq_input(id)]).len())).collect();
        let states: SmallVec<[Range<usize>; 8]> = held.iter_mut().map(|held| next(held.only().len())).collect();
        let flags = next(APART).start;
        let mut arena = Array::zeros(DType::U64, &[end / size_of::<u64>()]);
        let memory = cells(&mut arena);
        for (held, at) in held.iter_mut().zip(&states) {
            let from = held.only();
            memory[at.clone()].iter().zip(from).for_each(|(to, from)| to.set(from.get()));
        }
        let (feed, flag) = (Feed::from(0), [Cell::new(0u8)]);
        let told = Told { stopped: &flag, failed: &flag, votes: &[] };
        let bases = self.bases(&Sources { scan, ins, computed, feed: &feed, there: false }, 0);
        let memory: SmallVec<[HeldCells; 8]> = held.iter_mut().map(|h| h.cells(false)).collect();
        let place = |&place: &Place| {
            let Operand { offset, stride, .. } = self.operand(&bases, place, &memory, told, 0);
            match place {
                Place::Before { value, .. } => (Some(value), offset, stride),
                Place::Seq { id, .. } => (None, seqs[id.0 as usize].start + offset, stride),
                Place::Row { id, .. } | Place::Window { id, .. } => (None, states[id.0 as usize].start + offset, stride),
                Place::Stopped | Place::Failed | Place::Votes => (None, flags, stride),
            }
        };
        let places = self.plan.places.iter().map(place).collect();
        Some(Standing { arena, seqs, states, places, shared: self.is_shared() })
    }
    /// Step `done` there.
    ///
    /// # Errors
    /// That of who wants to stop.
    pub(super) fn stand(&self, cx: &mut EvalCx, (ins, computed): (&[Array], &[Array]), standing: &mut Standing, done: usize) -> Result<()> {
        cx.check()?;
        let memory = Memory::Write(cells(&mut standing.arena));
        let before: SmallVec<[&Array; 4]> = self.before.values(ins, computed).collect();
        let mut operands: SmallVec<[Operand; 16]> = SmallVec::new();
        for &(value, offset, stride) in &standing.places {
            let memory = value.map_or(memory, |value| Memory::Read(bytes(before[value])));
            operands.push(Operand { memory, offset, stride });
        }
        let (lanes, at) = (self.plan.lanes, done as i64);
        let _ =
            if standing.shared { self.tier.run(&operands, lanes, 1, at) } else { self.tier.run_watched(cx, &operands, lanes, 1, at)? };
        Ok(())
    }

    /// Runs from step `done` up to step `end`; true where the loop has stopped. Where it is to be counted which lanes want to stop, in
    /// blocks of steps: what steps behind the last one have made is forgotten, and the block made again up to that.
    fn segment(
        &self,
        cx: &mut EvalCx,
        sources: &Sources,
        held: &mut [Held],
        done: &mut usize,
        end: usize,
        failed: &[Cell<u8>],
    ) -> Result<bool> {
        let Some(votes) = &self.plan.votes else {
            return self.portions(cx, sources, held, done, end, Told { stopped: &[Cell::new(0)], failed, votes: &[] });
        };
        let mut cast = Array::zeros(DType::Bool, &[0]);
        while *done < end && !is_any(failed) {
            let block = self.uncounted(*done, votes.voters).min(end - *done);
            if cast.len() < block * votes.voters {
                cast = Array::zeros(DType::Bool, &[block * votes.voters]);
            }
            // Who writes to what is held twice makes it its own first.
            let before: SmallVec<[Array; 8]> = held.iter().map(|h| h.window.clone()).collect();
            let mut ran = *done;
            self.portions(cx, sources, held, &mut ran, *done + block, Told { stopped: &[], failed, votes: cells(&mut cast) })?;
            let said = &bytes(&cast)[..(ran - *done) * votes.voters];
            let Some(last) = said.chunks_exact(votes.voters).position(|step| votes.stop(step)) else {
                *done = ran;
                continue;
            };
            let stop = *done + last + 1;
            if stop < ran {
                held.iter_mut().zip(before).for_each(|(h, window)| h.window = window);
                failed.iter().for_each(|f| f.set(0));
                self.portions(cx, sources, held, done, stop, Told { stopped: &[], failed, votes: cells(&mut cast) })?;
            }
            *done = stop;
            return Ok(true);
        }
        Ok(false)
    }

    /// Runs from step `done` up to step `end`, or to where the kernel stops itself (then true) or fails.
    #[inline]
    fn portions(&self, cx: &mut EvalCx, sources: &Sources, held: &mut [Held], done: &mut usize, end: usize, told: Told) -> Result<bool> {
        let first = *done;
        let limit = self.plan.windows.iter().filter_map(Window::limit).min().unwrap_or(usize::MAX);
        if let Some(device) = self.tier.device().filter(|device| !device.is_refused()) {
            let memory: SmallVec<[HeldCells; 8]> = held.iter_mut().map(|h| h.cells(true)).collect();
            let operands = self.operands(&Sources { there: true, ..*sources }, &memory, told, first);
            let ran = device.run(cx, self.tier.kernel(), &operands, self.plan.lanes, (end - first).min(limit), first as i64)?;
            if let Some(ran) = ran {
                *done += ran;
                return Ok(is_any(told.stopped));
            }
        }
        let memory: SmallVec<[HeldCells; 8]> = held.iter_mut().map(|h| h.cells(false)).collect();
        let operands = self.operands(sources, &memory, told, first);
        let shared = self.is_shared();
        let portion = self.portion(&operands, end - *done, shared).min(limit);
        let vectorized = self.vectorized(end - *done);
        let portion = if vectorized.is_some() { portion.min(LANES) } else { portion };
        let mut staged = self.distributed(end - *done).filter(|_| vectorized.is_none()).map(|stages| (stages, stages.room()));
        let portion = if staged.is_some() { portion.min(BLOCK) } else { portion };
        while *done < end && !is_any(told.stopped) && !is_any(told.failed) {
            if *done == 0 {
                cx.check()?
            } else {
                cx.check_clock()?
            }
            let steps = portion.min(end - *done);
            let later: SmallVec<[Operand; 16]> = operands.iter().filter(|_| *done > first).map(|o| o.after(*done - first)).collect();
            let now = if *done > first { &later } else { &operands };
            let (lanes, at) = (self.plan.lanes, *done as i64);
            if let Some(vectorized) = vectorized {
                *done += vectorized.run(now, steps);
                cx.reached(*done);
                continue;
            }
            if let Some((stages, room)) = &mut staged {
                *done += stages.run(now, steps, room);
                cx.reached(*done);
                continue;
            }
            *done += if shared { self.tier.run(now, lanes, steps, at) } else { self.tier.run_watched(cx, now, lanes, steps, at)? };
            cx.reached(*done);
        }
        Ok(is_any(told.stopped))
    }

    /// Steps that run after step `done` before votes are counted: few beside those that have run, or quick ones.
    fn uncounted(&self, done: usize, voters: usize) -> usize {
        let quick = self.most(UNCOUNTED).min(16);
        quick.max(done / 16).min(VOTES / voters).max(1)
    }

    /// Steps that have so many instructions.
    fn most(&self, portion: usize) -> usize {
        (portion / (self.plan.lanes * self.tier.size()).max(1)).max(1)
    }

    /// True where calls are worth several threads.
    pub(super) fn is_shared(&self) -> bool {
        team::splits(&self.plan.kernel, self.plan.lanes, self.most(PORTION[0]))
    }

    /// Steps per call of the kernel, of so many in all, which several threads share or not.
    pub(super) fn portion(&self, operands: &[Operand], steps: usize, shared: bool) -> usize {
        let most = self.most(PORTION[usize::from(!shared)]);
        let moving = operands.iter().filter(|o| o.stride != 0).map(|o| o.stride.unsigned_abs()).sum::<usize>();
        let (bytes, rows) = if moving.saturating_mul(steps) > CACHED_BYTES { (STREAM_BYTES, 4) } else { (BLOCK_BYTES, 16) };
        if self.plan.lanes <= 64 || moving == 0 { most } else { most.min((bytes / moving).max(rows)) }
    }

    /// Where its arrays lie while it runs.
    pub(super) fn home(&self) -> Home {
        self.tier.device().map_or(Home::HERE, OnDevice::home)
    }

    /// The operands as step `first` sees them.
    fn operands<'a>(&self, sources: &Sources<'a>, held: &[HeldCells<'a>], told: Told<'a>, first: usize) -> SmallVec<[Operand<'a>; 16]> {
        let bases = self.bases(sources, first);
        self.plan.places.iter().map(|p| self.operand(&bases, *p, held, told, first)).collect()
    }

    /// Where step `first` finds what it reads but for states.
    #[inline]
    fn bases<'a>(&self, &Sources { scan, ins, computed, feed, there }: &Sources<'a>, first: usize) -> Bases<'a> {
        let of = |x: &'a Array, offset, stride| (Operand { memory: Memory::of(x, there), offset, stride }, x.dtype().size());
        let seq = |id: SeqId| {
            let x = &ins[scan.seq_input(id)];
            let (rows, row) = (x.shape()[0], x.len() * x.dtype().size() / x.shape()[0]);
            let stride = if scan.seqs[id].reverse { -(row as isize) } else { row as isize };
            of(x, feed.row(scan, id, rows, first) * row, stride)
        };
        let before = self.before.values(ins, computed).map(|x| of(x, 0, 0)).collect();
        Bases { seqs: scan.seqs.ids().map(seq).collect(), before }
    }

    /// A place as step `first` sees it.
    #[inline]
    fn operand<'a>(&self, bases: &Bases<'a>, place: Place, held: &[HeldCells<'a>], told: Told<'a>, first: usize) -> Operand<'a> {
        let element = |&(base, size): &Base<'a>, at| Operand { offset: base.offset + at * size, ..base };
        match place {
            Place::Seq { id, at } => element(&bases.seqs[id.0 as usize], at),
            Place::Before { value, at } => element(&bases.before[value], at),
            Place::Stopped => Operand { memory: Memory::Write(told.stopped), offset: 0, stride: 0 },
            Place::Failed => Operand { memory: Memory::Write(told.failed), offset: 0, stride: 0 },
            Place::Votes => {
                let stride = self.plan.votes.map_or(0, |votes| votes.voters as isize);
                Operand { memory: Memory::Write(told.votes), offset: 0, stride }
            }
            Place::Row { id, offset, at } => {
                let window = &self.plan.windows[id.0 as usize];
                let row = window.row_bytes();
                let HeldCells { base, rows, .. } = held[id.0 as usize];
                Operand { memory: rows, offset: (first + offset - base) * row + at * window.dtype.size(), stride: row as isize }
            }
            Place::Window { id, row, at } => {
                let window = &self.plan.windows[id.0 as usize];
                let before = window.carried[..row].iter().filter(|&&c| c).count();
                let memory = held[id.0 as usize].window;
                Operand { memory, offset: before * window.row_bytes() + at * window.dtype.size(), stride: 0 }
            }
        }
    }
}
