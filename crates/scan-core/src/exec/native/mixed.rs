//! Runs loops whose step is a list of kernels, moves, products and calls.

use super::held::{Held, Rows};
use super::indexed::{Given, read, write};
use super::plan::native;
use super::tier::{Engine, Tiered};
use crate::backend::cpu::{Memory, Operand, array_at, bytes, cells, clear, copy, with_slices, write_array};
use crate::base::{Diagnostic, Result, Span};
use crate::eval::{Walk, blame};
use crate::ir::op::{Outs, Write};
use crate::ir::{EvalCx, Graph, Op, Scan};
use crate::lower::Window;
use crate::lower::mixed::{At, Item, MixedLoop, Place, Run, Work};
use crate::ops::matmul::Product;
use crate::ops::select::Selector;
use crate::scan::step;
use crate::types::shape::count;
use crate::types::{Array, DType};
use smallvec::SmallVec;
use std::cell::Cell;
use std::sync::Arc;
use std::time::Instant;

/// A loop whose step is a list, ready to run.
pub struct Mixed {
    plan: MixedLoop,
    parts: Vec<Part>,
    before: Walk<Arc<Graph>>,
}

/// What runs an item.
enum Part {
    Map(Box<Tiered>, usize),
    Move,
    MatMul([usize; 3]),
    Read(Selector),
    Write(Selector, Write),
    Call(Op),
}

impl Part {
    /// Adds the user's line to an error.
    fn blame(&self, e: Box<Diagnostic>, span: Span) -> Box<Diagnostic> {
        if let Part::Call(op) = self { blame(e, op, span) } else { e.at(span) }
    }
    /// As profiles show it.
    fn name(&self) -> &str {
        match self {
            Part::Map(..) => "kernel",
            Part::Move => "move",
            Part::MatMul(_) => "matmul",
            Part::Read(_) => "index",
            Part::Write(..) => "index_write",
            Part::Call(op) => op.name(),
        }
    }
}

/// So many rows are kept behind a state of which only the last are returned, before they are moved to the front.
const SPARE: usize = 32;

/// The memory of one run.
struct Memories<'a> {
    ins: &'a [Array],
    before: &'a [Array],
    arena: &'a [Cell<u8>],
    rows: Vec<&'a [Cell<u8>]>,
    /// How each buffer is used.
    kinds: Vec<Rows>,
    /// Number of the row with which each buffer begins.
    base: Vec<usize>,
    step: usize,
}

impl Mixed {
    /// Prepares a plan.
    ///
    /// # Errors
    /// An internal error where a body is not consistent.
    pub fn new(mut plan: MixedLoop, engine: Engine) -> Result<Mixed> {
        let mut parts = vec![];
        for item in &mut plan.items {
            parts.push(match std::mem::replace(&mut item.work, Work::MatMul([0; 3])) {
                Work::Map(kernel, lanes) => Part::Map(Box::new(Tiered::new(kernel, engine)), lanes),
                Work::Move(runs) => {
                    item.work = Work::Move(runs);
                    Part::Move
                }
                Work::MatMul(extents) => Part::MatMul(extents),
                Work::Read(selector) => Part::Read(selector),
                Work::Write(selector, mode) => Part::Write(selector, mode),
                Work::Call(op, types) => Part::Call(native(&op, types.into(), engine)?),
            });
        }
        let before = Walk::new(Arc::new(plan.before.clone()));
        Ok(Mixed { plan, parts, before })
    }

    /// How the states are kept.
    pub fn windows(&self) -> &[Window] {
        &self.plan.windows
    }
    /// Per state: a step writes over the row that it read.
    pub fn in_place(&self) -> &[bool] {
        &self.plan.in_place
    }
    /// The engines of the kernels, and the names of the ops that are called.
    pub fn describe(&self) -> (Vec<&'static str>, Vec<String>) {
        let engines = self.parts.iter().filter_map(|p| if let Part::Map(tier, _) = p { Some(tier.describe().0) } else { None });
        let calls = self.parts.iter().filter_map(|p| if let Part::Call(op) = p { Some(op.name().to_string()) } else { None });
        (engines.collect(), calls.collect())
    }

    /// Runs at most n steps on the states' memory, which is laid out for `room` of them and grows; how many ran.
    ///
    /// # Errors
    /// What the ops report, with the step.
    pub fn run(&self, scan: &Scan, cx: &mut EvalCx, ins: &[Array], held: &mut [Held], n: usize, mut room: usize) -> Result<usize> {
        let before = self.before(scan, cx, ins).map_err(|e| step::in_step(e, scan, 0))?;
        let mut arena = Array::zeros(DType::F64, &[self.plan.arena.div_ceil(8)]);
        self.parts.iter().for_each(|p| {
            if let Part::Map(tier, lanes) = p {
                tier.expect(*lanes, n);
            }
        });
        let (mut done, mut stopped) = (0, false);
        while done < n && !stopped {
            if done == room {
                room = n.min(2 * room);
                held.iter_mut().zip(&self.plan.windows).for_each(|(h, w)| h.grow(w, room));
            }
            let base: Vec<usize> = held.iter().map(|h| h.base).collect();
            let kinds: Vec<Rows> = held.iter().map(|h| h.kind).collect();
            let rows: Vec<&[Cell<u8>]> = held.iter_mut().map(|h| cells(&mut h.rows)).collect();
            let mut memories = Memories { ins, before: &before, arena: cells(&mut arena), rows, kinds, base, step: done };
            while done < room && !stopped {
                cx.check()?;
                memories.step = done;
                self.slide(&mut memories);
                stopped = self.step(scan, cx, &memories).map_err(|e| step::in_step(e, scan, done))?;
                done += 1;
            }
            let base = memories.base;
            held.iter_mut().zip(base).for_each(|(h, base)| h.base = base);
        }
        Ok(done)
    }

    /// One step; true where it stops the loop.
    fn step<'a>(&'a self, scan: &Scan, cx: &mut EvalCx, memories: &Memories<'a>) -> Result<bool> {
        let at = |at: &At| memories.operand(scan, &self.plan.windows, at);
        write_array(&memories.arena(0), &Array::scalar(memories.step as i64));
        for (part, item) in self.parts.iter().zip(&self.plan.items) {
            let start = cx.profile.is_some().then(Instant::now);
            self.part(scan, cx, part, item, memories).map_err(|e| part.blame(e, item.span))?;
            if let (Some(start), Some(profile)) = (start, &mut cx.profile) {
                profile.op(part.name(), start.elapsed());
            }
        }
        for (id, offset, place) in &self.plan.writes {
            copy(&at(&place.at), &at(&At::Row(*id, *offset)), count(&place.shape) * place.dtype.size());
        }
        let stop = self.plan.stop.as_ref().map(|stop| array_at(&at(&stop.at), stop.dtype, &[1]));
        Ok(stop.and_then(|s| s.item_f64()).is_some_and(|x| x != 0.0))
    }

    fn before(&self, scan: &Scan, cx: &mut EvalCx, ins: &[Array]) -> Result<Vec<Array>> {
        let mut args = vec![Array::scalar(0i64); self.plan.before.params().len()];
        for id in scan.captured.ids() {
            args[scan.captured_param(id)] = ins[scan.captured_input(id)].clone();
        }
        self.before.run(cx, &mut self.before.slots(), &mut args)
    }

    /// Moves the rows that are still needed to the front of full buffers.
    fn slide(&self, memories: &mut Memories) {
        for (k, window) in self.plan.windows.iter().enumerate() {
            let Rows::Sliding(capacity) = memories.kinds[k] else { continue };
            let row = window.row_bytes();
            if memories.step + window.span - memories.base[k] < capacity {
                continue;
            }
            let kept = capacity - SPARE;
            let first = memories.step + window.span - kept;
            let from = Operand { memory: Memory::Write(memories.rows[k]), offset: (first - memories.base[k]) * row, stride: 0 };
            let to = Operand { memory: Memory::Write(memories.rows[k]), offset: 0, stride: 0 };
            copy(&from, &to, kept * row);
            memories.base[k] = first;
        }
    }

    fn part<'a>(&self, scan: &Scan, cx: &mut EvalCx, part: &Part, item: &'a Item, memories: &Memories<'a>) -> Result<()> {
        let at = |p: &Place| memories.operand(scan, &self.plan.windows, &p.at);
        let given = |place: &'a Place| Given { at: at(place), place };
        match (part, &item.work) {
            (Part::Map(tier, lanes), _) => {
                let operands: SmallVec<[Operand; 12]> = item.ins.iter().chain(&item.outs).map(at).collect();
                tier.run(&operands, *lanes, 1, 0);
            }
            (Part::Move, Work::Move(runs)) => {
                let ins: SmallVec<[Operand; 4]> = item.ins.iter().map(at).collect();
                runs.iter().for_each(|run| moved(run, &ins, &at(&item.outs[0]), item.outs[0].dtype.size()));
            }
            (Part::MatMul(extents), _) => {
                let operands = [&at(&item.ins[0]), &at(&item.ins[1]), &at(&item.outs[0])];
                if item.outs[0].dtype == DType::F32 { multiply::<f32>(operands, *extents) } else { multiply::<f64>(operands, *extents) }
            }
            (Part::Read(selector), _) => {
                let ins: SmallVec<[Given; 4]> = item.ins.iter().map(given).collect();
                read(selector, ins[0], &ins[1..], given(&item.outs[0]))?;
            }
            (Part::Write(selector, mode), _) => {
                let ins: SmallVec<[Given; 4]> = item.ins.iter().map(given).collect();
                write(selector, *mode, given(&item.outs[0]), ins[0], &ins[1..])?;
            }
            (Part::Call(op), _) => {
                let mut ins: Vec<Array> = item.ins.iter().map(|p| array_at(&at(p), p.dtype, &p.shape)).collect();
                let outs: Outs<Array> = op.def().eval(cx, &mut ins)?;
                for (place, out) in item.outs.iter().zip(&outs) {
                    if out.shape() != &place.shape[..] || out.dtype() != place.dtype {
                        return Err(Diagnostic::internal(format!("`{}` gave {} for {:?}", op.name(), out.ty(), place.shape)));
                    }
                    write_array(&at(place), out);
                }
            }
            (Part::Move, _) => {}
        }
        Ok(())
    }
}

fn multiply<T: Product>(operands: [&Operand; 3], [m, k, n]: [usize; 3]) {
    clear(operands[2], m * n * size_of::<T>());
    with_slices::<T>(operands, [m * k, k * n, m * n], |a, b, c| T::multiply([m, k, n], a, b, c));
}

fn moved(run: &Run, ins: &[Operand], out: &Operand, size: usize) {
    let to = Operand { offset: out.offset + run.to * size, ..*out };
    match run.input {
        Some(i) => copy(&Operand { offset: ins[i].offset + run.from * size, ..ins[i] }, &to, run.n * size),
        None => clear(&to, run.n * size),
    }
}

impl<'a> Memories<'a> {
    fn arena(&self, offset: usize) -> Operand<'a> {
        Operand { memory: Memory::Write(self.arena), offset, stride: 0 }
    }
    fn operand(&self, scan: &Scan, windows: &[Window], at: &At) -> Operand<'a> {
        match *at {
            At::Arena(offset) => self.arena(offset),
            At::Slot(_) => unreachable!("laid out"),
            At::Seq(id) => {
                let x = &self.ins[scan.seq_input(id)];
                let rows = x.shape()[0];
                let row = if scan.seqs[id].reverse { rows - 1 - self.step } else { self.step };
                Operand { memory: Memory::Read(bytes(x)), offset: row * (bytes(x).len() / rows), stride: 0 }
            }
            At::Before(k) => Operand { memory: Memory::Read(bytes(&self.before[k])), offset: 0, stride: 0 },
            At::Row(id, offset) => {
                let k = id.0 as usize;
                let row = if self.kinds[k] == Rows::One { 0 } else { self.step + offset - self.base[k] };
                Operand { memory: Memory::Write(self.rows[k]), offset: row * windows[k].row_bytes(), stride: 0 }
            }
        }
    }
}

/// Rows that a buffer of which only the last rows are returned has room for.
pub fn capacity(window: &Window, last: usize) -> usize {
    window.span + last.max(1) + SPARE
}
