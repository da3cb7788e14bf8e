//! A loop whose step is a list, on a device: its states, temporaries and what all steps read lie there; parts that have no launch run on the
//! host, between which what they read and write crosses.

use super::apart::touched;
use super::halt::Halt;
use super::laid::{Laid, Operands};
use super::memories::Memories;
use super::piece::{Part as Kind, Piece};
use super::tasks::{self, Spot, Task};
use super::whole::Whole;
use crate::backend::cpu::truth_at;
use crate::backend::gpu::{DeviceRef, Launch};
use crate::base::{Diagnostic, Result};
use crate::ir::EvalCx;
use crate::kernel::Nest;
use crate::plan::StepList;
use crate::plan::list::{At, Place, STEP};
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// So many steps are worth a launch of their own kind.
const MANY: usize = 2;

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
        let laid = Laid::out(laid, (self.device, self.bytes, self.scratch), plan, memories, [first, end - first])?;
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
        if !laid.end(plan, memories, [first, *done])? {
            return Err(Halt::Refused);
        }
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
