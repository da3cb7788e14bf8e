//! Runs loops whose step is a list of kernels, moves, products and calls.

use super::before::Before;
use super::foot::Flow;
use super::held::{Held, make_room};
use super::indexed::{Given, read, write};
use super::memories::{Memories, Steady};
use super::plan::native;
use super::tier::{Engine, Tiered};
use crate::backend::cpu::{
    INPUTS, NestRun, Operand, Stepwise, array_at, cells, clear, copy, gather, truth_at, with_inputs, with_slices, write_array,
};
use crate::base::{Diagnostic, Result, Span};
use crate::eval::blame;
use crate::ir::op::{Outs, Write};
use crate::ir::{EvalCx, Op, Scan, StateId};
use crate::kernel::Nest;
use crate::lower::Window;
use crate::lower::mixed::{At, Item, MixedLoop, Place, Run, Work};
use crate::ops::direct::Direct;
use crate::ops::matmul::Product;
use crate::ops::select::Selector;
use crate::scan::{kept, step};
use crate::types::shape::count;
use crate::types::{Array, DType, memory};
use smallvec::SmallVec;
use std::cell::Cell;
use std::time::Instant;

/// A loop whose step is a list, ready to run.
pub struct Mixed {
    plan: MixedLoop,
    parts: Vec<Part>,
    before: Before,
}

/// What runs an item.
enum Part {
    Map(Box<Tiered>, usize),
    Nest(Box<Tiered>, Box<Nest>),
    Move,
    MatMul([usize; 3]),
    Read(Selector),
    Write(Selector, Write),
    Direct(Direct, Op),
    Call(Op),
}

impl Part {
    /// Its kernel.
    fn tier(&self) -> Option<&Tiered> {
        if let Part::Map(tier, _) | Part::Nest(tier, _) = self { Some(tier) } else { None }
    }
    /// Adds the user's line to an error.
    fn blame(&self, e: Box<Diagnostic>, span: Span) -> Box<Diagnostic> {
        if let Part::Call(op) | Part::Direct(_, op) = self { blame(e, op, span) } else { e.at(span) }
    }
    /// As profiles show it.
    fn name(&self) -> &str {
        match self {
            Part::Map(..) | Part::Nest(..) => "kernel",
            Part::Move => "move",
            Part::MatMul(_) => "matmul",
            Part::Read(_) => "index",
            Part::Write(..) => "index_write",
            Part::Call(op) | Part::Direct(_, op) => op.name(),
        }
    }
}

impl Mixed {
    /// Prepares a plan.
    pub fn new(scan: &Scan, mut plan: MixedLoop, engine: Engine) -> Mixed {
        let mut parts = vec![];
        for item in &mut plan.items {
            parts.push(match std::mem::replace(&mut item.work, Work::MatMul([0; 3])) {
                Work::Map(kernel, lanes) => Part::Map(Box::new(Tiered::new(kernel, engine)), lanes),
                Work::Nest(nest) => Part::Nest(Box::new(Tiered::new(nest.kernel.clone(), engine)), nest),
                Work::Move(runs) => {
                    item.work = Work::Move(runs);
                    Part::Move
                }
                Work::MatMul(extents) => Part::MatMul(extents),
                Work::Read(selector) => Part::Read(selector),
                Work::Write(selector, mode) => Part::Write(selector, mode),
                Work::Direct(direct, op) => Part::Direct(direct, op),
                Work::Call(op, types) => Part::Call(native(&op, types.into(), engine)),
            });
        }
        let before = Before::new(scan, &plan.before);
        Mixed { plan, parts, before }
    }

    /// How the states are kept.
    pub fn windows(&self) -> &[Window] {
        &self.plan.windows
    }
    /// Instructions of the kernels, and as many more for each part.
    pub fn instructions(&self) -> usize {
        self.parts.iter().map(|p| p.tier().map_or(10, |tier| 10 + tier.kernel().body.len())).sum()
    }
    /// Per state: a step writes over the row that it read.
    pub fn in_place(&self) -> &[bool] {
        &self.plan.in_place
    }
    /// The engines of the kernels, and the names of the ops that are called.
    pub fn describe(&self) -> (Vec<&'static str>, Vec<String>) {
        let engines = self.parts.iter().filter_map(|p| p.tier().map(|tier| tier.describe().0));
        let calls = self.parts.iter().filter_map(|p| if let Part::Call(op) = p { Some(op.name().to_string()) } else { None });
        (engines.collect(), calls.collect())
    }

    /// What a step copies without computing anything: rows that are written after the step's parts, and rows that are copied
    /// before a part of them is written. State or op, and bytes.
    pub fn copies(&self, scan: &Scan) -> Vec<(String, usize)> {
        let bytes = |place: &Place| count(&place.shape) * place.dtype.size();
        let name = |id: StateId| scan.states[id].name.as_deref().unwrap_or("?").to_string();
        let rows = self.plan.writes.iter().map(|(id, _, place)| (name(*id), bytes(place)));
        let pairs = self.plan.items.windows(2).zip(self.parts.windows(2));
        let before =
            pairs.filter(|(items, parts)| matches!(parts, [Part::Move, Part::Write(..)]) && items[0].outs[0].at == items[1].outs[0].at);
        let copied = before.map(|(items, _)| ("a row of which a part is written".to_string(), bytes(&items[0].outs[0])));
        rows.chain(copied).collect()
    }

    /// Runs at most n steps on the states' memory, which is laid out for `room` of them and grows; how many ran.
    ///
    /// # Errors
    /// What the ops report, with the step.
    pub fn run(
        &self,
        scan: &Scan,
        cx: &mut EvalCx,
        ins: &mut [Array],
        flow: &mut Flow,
        held: &mut [Held],
        [n, mut room]: [usize; 2],
    ) -> Result<usize> {
        let computed = self.before.run(scan, cx, ins).map_err(|e| step::in_step(e, scan, 0))?;
        let before: SmallVec<[Steady; 4]> = self.before.values(ins, &computed).map(|array| Steady::new(array.clone(), n)).collect();
        let mut arena = Array::zeros(DType::F64, &[self.plan.arena.div_ceil(8)]);
        self.parts.iter().for_each(|p| match p {
            Part::Map(tier, lanes) => tier.expect(*lanes, n),
            Part::Nest(tier, nest) => tier.expect(nest.lanes, (nest.steps * nest.places()).saturating_mul(n)),
            _ => {}
        });
        let (mut done, mut stopped) = (0, false);
        while done < n && !stopped {
            let end = kept::laid_out(scan, &Cell::new(done), || make_room(held, &self.plan.windows, &mut room, done, n))?;
            let end = end.min(flow.advance(scan, cx, ins, done, n)?);
            let memories = Memories::new(scan, &self.plan.windows, ins, &before, &flow.feed, cells(&mut arena), held);
            stopped = self.segment(cx, &memories, &mut done, end)?;
            drop(memories);
            flow.leave(cx, held, &self.plan.windows, [done, n])?;
        }
        Ok(done)
    }

    /// Runs from step `done` up to step `end`, in memory that does not move; true where the loop has stopped.
    fn segment(&self, cx: &mut EvalCx, memories: &Memories, done: &mut usize, end: usize) -> Result<bool> {
        let (first, steps) = (*done, end - *done);
        let at = |place: &Place| memories.place(place, first);
        let items = self.parts.iter().zip(&self.plan.items);
        let mut bound: SmallVec<[Bound; 4]> =
            items.map(|(part, item)| Bound::new(part, item, &at, &|p| memories.steady(p), steps)).collect();
        let writes: SmallVec<[[Operand; 2]; 4]> =
            self.plan.writes.iter().map(|(id, offset, p)| [at(p), memories.operand(&At::Row(*id, *offset), first)]).collect();
        let stop = self.plan.stop.as_ref().map(|stop| (at(stop), stop.dtype));
        let (mut stopped, mut scratch) = (false, vec![]);
        while *done < end && !stopped {
            cx.check()?;
            memories.count(*done);
            let k = *done - first;
            self.step(cx, &mut bound, k, &mut scratch).map_err(|e| step::in_step(e, memories.scan(), *done))?;
            for ([from, to], (_, _, place)) in writes.iter().zip(&self.plan.writes) {
                copy(&from.after(k), &to.after(k), count(&place.shape) * place.dtype.size());
            }
            stopped = stop.is_some_and(|(at, dtype)| truth_at(&at.after(k), dtype));
            *done += 1;
        }
        Ok(stopped)
    }

    /// The parts of one step, the k-th of a segment.
    fn step(&self, cx: &mut EvalCx, bound: &mut [Bound], k: usize, scratch: &mut Vec<f64>) -> Result<()> {
        for ((part, item), bound) in self.parts.iter().zip(&self.plan.items).zip(bound) {
            let start = cx.profile.is_some().then(Instant::now);
            match bound {
                Bound::Kernel(kernel) => kernel.step(),
                Bound::Nest(nest) => nest.step(),
                Bound::Direct(direct, dtype, ins, out) => match dtype {
                    DType::F32 => with_inputs(ins, out, k, |ins, out| direct.run_f32(ins, out, scratch)),
                    _ => with_inputs(ins, out, k, |ins, out| direct.run_f64(ins, out, scratch)),
                },
                Bound::Call(steady, operands) => {
                    memory::given(|| format!("`{}`", part.name()), || call(cx, part, item, (steady, operands), k))
                        .map_err(|e| part.blame(e, item.span))?;
                }
                Bound::Operands(operands) => memory::given(|| format!("`{}`", part.name()), || run_part(cx, part, item, operands, k))
                    .map_err(|e| part.blame(e, item.span))?,
            }
            if let (Some(start), Some(profile)) = (start, &mut cx.profile) {
                profile.op(part.name(), start.elapsed());
            }
        }
        Ok(())
    }
}

/// A part with its operands, for the steps of a segment.
enum Bound<'a> {
    /// A kernel.
    Kernel(Stepwise<'a>),
    /// A kernel inside loops.
    Nest(NestRun<'a>),
    /// An op on slices of such a dtype: its inputs and its result, at the first step, with their numbers of elements.
    Direct(&'a Direct, DType, SmallVec<[(Operand<'a>, usize); INPUTS]>, (Operand<'a>, usize)),
    /// An op that takes arrays: those of its inputs that are the same in all steps, and all operands at the first step.
    Call(SmallVec<[Option<Array>; 4]>, SmallVec<[Operand<'a>; 4]>),
    /// Inputs, then results, of the first step.
    Operands(SmallVec<[Operand<'a>; 4]>),
}

impl<'a> Bound<'a> {
    fn new(
        part: &'a Part,
        item: &Item,
        at: &dyn Fn(&Place) -> Operand<'a>,
        steady: &dyn Fn(&Place) -> Option<Array>,
        steps: usize,
    ) -> Bound<'a> {
        if let Part::Direct(direct, _) = part {
            let sized = |p: &Place| (at(p), count(&p.shape));
            return Bound::Direct(direct, item.outs[0].dtype, item.ins.iter().map(sized).collect(), sized(&item.outs[0]));
        }
        let operands: SmallVec<[Operand; 4]> = item.ins.iter().chain(&item.outs).map(at).collect();
        if let Part::Call(_) = part {
            return Bound::Call(item.ins.iter().map(steady).collect(), operands);
        }
        if let Part::Nest(tier, nest) = part {
            return Bound::Nest(tier.nest(nest, &operands, steps));
        }
        let kernel = if let Part::Map(tier, lanes) = part { tier.stepwise(&operands, *lanes, steps) } else { None };
        kernel.map_or(Bound::Operands(operands), Bound::Kernel)
    }
}

fn run_part<'a>(cx: &mut EvalCx, part: &Part, item: &Item, operands: &[Operand<'a>], k: usize) -> Result<()> {
    let now: SmallVec<[Operand; 4]> = operands.iter().map(|o| o.after(k)).collect();
    let (ins, outs) = now.split_at(item.ins.len());
    match (part, &item.work) {
        (Part::Map(tier, lanes), _) => {
            tier.run(&now, *lanes, 1, 0);
        }
        (Part::Move, Work::Move(runs)) => runs.iter().for_each(|run| moved(run, ins, &outs[0], item.outs[0].dtype.size())),
        (Part::MatMul(extents), _) => {
            let operands = [&ins[0], &ins[1], &outs[0]];
            if item.outs[0].dtype == DType::F32 {
                multiply::<f32>(cx, operands, *extents)?
            } else {
                multiply::<f64>(cx, operands, *extents)?
            }
        }
        (Part::Read(selector), _) => {
            let given = givens(ins, &item.ins);
            read(selector, given[0], &given[1..], Given { at: outs[0], place: &item.outs[0] })?;
        }
        (Part::Write(selector, mode), _) => {
            let given = givens(ins, &item.ins);
            write(selector, *mode, Given { at: outs[0], place: &item.outs[0] }, given[0], &given[1..])?;
        }
        (Part::Move | Part::Direct(..) | Part::Nest(..) | Part::Call(_), _) => {}
    }
    Ok(())
}

/// Evaluates an op at step `k`; what is the same in all steps is not copied.
fn call(cx: &mut EvalCx, part: &Part, item: &Item, (steady, operands): (&[Option<Array>], &[Operand]), k: usize) -> Result<()> {
    let Part::Call(op) = part else { return Ok(()) };
    let now: SmallVec<[Operand; 4]> = operands.iter().map(|o| o.after(k)).collect();
    let (ins, outs) = now.split_at(item.ins.len());
    let array = |((at, p), steady): ((&Operand, &Place), &Option<Array>)| steady.clone().unwrap_or_else(|| array_at(at, p.dtype, &p.shape));
    let mut arrays: Vec<Array> = ins.iter().zip(&item.ins).zip(steady).map(array).collect();
    let results: Outs<Array> = op.evaluate(cx, &mut arrays)?;
    for ((to, place), result) in outs.iter().zip(&item.outs).zip(&results) {
        if result.shape() != &place.shape[..] || result.dtype() != place.dtype {
            return Err(Diagnostic::internal(format!("`{}` gave {} for {:?}", op.name(), result.ty(), place.shape)));
        }
        write_array(to, result);
    }
    Ok(())
}

fn givens<'a>(operands: &[Operand<'a>], places: &'a [Place]) -> SmallVec<[Given<'a>; 4]> {
    operands.iter().zip(places).map(|(&at, place)| Given { at, place }).collect()
}

fn multiply<T: Product>(cx: &mut EvalCx, operands: [&Operand; 3], [m, k, n]: [usize; 3]) -> Result<()> {
    with_slices::<T, _>(operands, [m * k, k * n, m * n], |a, b, c| T::multiply_in(cx, [m, k, n], a, b, c))
}

fn moved(run: &Run, ins: &[Operand], out: &Operand, size: usize) {
    let to = Operand { offset: out.offset + run.to * size, ..*out };
    match run.input {
        Some(i) => {
            let from = Operand { offset: ins[i].offset + run.from * size, ..ins[i] };
            if run.step == 1 { copy(&from, &to, run.n * size) } else { gather(&from, &to, run.n, run.step * size as isize, size) }
        }
        None => clear(&to, run.n * size),
    }
}
