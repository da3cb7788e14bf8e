//! What holds of a part and its operands.

use super::bounds::{Bounds, Checked, ensure};
use crate::base::Id;
use crate::ir::Op;
use crate::ir::verify::agree;
use crate::kernel::{self, Nest, Store};
use crate::ops::direct::Direct;
use crate::ops::select::Selector;
use crate::plan::list::{At, Count, InnerKernel, InnerList, Item, Place, Run, Slice, Work};
use crate::plan::print::{of_op, ty};
use crate::types::DType;
use crate::types::shape::{broadcast_shapes, count};

impl Bounds<'_> {
    /// `around`: the loop in whose step the part stands.
    pub(super) fn item(&self, item: &Item, around: Option<&InnerList>) -> Checked {
        let (ins, outs) = (&item.ins[..], &item.outs[..]);
        let loops = matches!(item.work, Work::Loop(_) | Work::For(_));
        outs.iter().filter(|_| !loops).try_for_each(|place| self.written(place))?;
        match &item.work {
            Work::Nest(nest) => {
                is_nest(nest)?;
                ensure(ins.len() + outs.len() == nest.kernel.mems.len(), || "a kernel with other operands".into())?;
                let apart = (0..ins.len() + outs.len()).all(|k| nest.writes(k) == (k >= ins.len()));
                ensure(apart, || "operands that are read come before those that are written".into())?;
                makes_each(nest)
            }
            Work::Move(runs) => moved(runs, ins, outs, false),
            Work::Add(runs) => moved(runs, ins, outs, true),
            Work::MatMul([m, k, n]) => {
                let ([a, b], [out]) = (ins, outs) else { return Err("a product has two operands and a result".into()) };
                let fits = [(a, m * k), (b, k * n), (out, m * n)].iter().all(|(p, n)| count(&p.shape) == *n && p.dtype == out.dtype);
                ensure(fits && out.dtype.is_float(), || "a product of other extents".into())
            }
            Work::Read(selector) => selected(selector, ins.first(), ins.get(1..), outs.first()),
            Work::Write(selector, _) => selected(selector, outs.first(), ins.get(1..), None),
            Work::Slice(slice) => sliced(slice, ins, outs),
            Work::Direct(direct, op) => is_direct(direct, op, ins, outs),
            Work::Call(op, types) => {
                let graph = of_op(op, ins).map_err(|e| e.title.clone())?;
                let found = graph.results().iter().map(|&v| graph.ty(v));
                let fits = graph.results().len() == outs.len() && found.zip(outs).all(|(found, place)| agree(found, &ty(place)));
                let said = types.len() == outs.len() && types.iter().zip(outs).all(|(said, place)| *said == ty(place));
                ensure(fits && said, || format!("`{}` gives other results", op.name()))
            }
            Work::Guard([least, most]) => match (ins, outs) {
                ([integer], []) => ensure(least <= most && is_integer(integer), || "a guard of no integer".into()),
                _ => Err("a guard has one operand".into()),
            },
            Work::Within { extent, .. } => match (ins, outs) {
                ([index], []) => ensure(*extent > 0 && index.dtype.is_int(), || "an axis of no places".into()),
                _ => Err("places of an axis are one operand".into()),
            },
            Work::Loop(inner) => self.inner(inner, ins, outs),
            Work::For(inner) => self.inner_list(inner, around),
        }
    }

    fn count(count: &Count) -> Checked {
        ensure(count.place().is_none_or(is_integer), || "a number of steps is an integer".into())
    }

    fn inner(&self, inner: &InnerKernel, ins: &[Place], outs: &[Place]) -> Checked {
        let InnerKernel { nest, operands, count: steps, stopped, votes, failed, ran, .. } = inner;
        is_nest(nest)?;
        Self::count(steps)?;
        ensure(nest.steps == steps.most() && nest.outer.is_empty(), || "a kernel of another number of steps".into())?;
        ensure(operands.len() == nest.kernel.mems.len(), || "a kernel with other operands".into())?;
        let told = [stopped, failed].into_iter().flatten().chain(votes.iter().map(|v| &v.0));
        let told: Vec<At> = told.map(|place| place.at).collect();
        for (k, place) in operands.iter().enumerate() {
            let near = |places: &[Place]| places.iter().any(|p| p.at == place.at && p.dtype == place.dtype);
            let named = told.contains(&place.at) || near(outs) || !nest.writes(k) && near(ins);
            ensure(named, || format!("{place} is no operand of the loop"))?;
        }
        for place in [stopped, failed].into_iter().flatten().chain(votes.iter().map(|v| &v.0)) {
            ensure(place.dtype == DType::Bool, || "what a loop tells is a bool".into())?;
            let kernel_writes = operands.iter().enumerate().any(|(k, p)| p.at == place.at && nest.writes(k));
            ensure(kernel_writes, || "what a loop tells is nothing that its kernel writes".into())?;
        }
        ensure(stopped.as_ref().is_none_or(|p| count(&p.shape) == 1), || "a loop stops or not".into())?;
        ensure(votes.as_ref().is_none_or(|(p, votes)| count(&p.shape) == votes.voters), || "votes of others".into())?;
        ensure(stopped.is_some() || failed.is_some() || nest.kernel.stop.is_none(), || "a kernel that stops tells so".into())?;
        self.ran(ran.as_ref())
    }

    fn ran(&self, ran: Option<&Place>) -> Checked {
        let Some(ran) = ran else { return Ok(()) };
        self.written(ran)?;
        self.flag(ran, DType::I64)
    }

    fn inner_list(&self, inner: &InnerList, around: Option<&InnerList>) -> Checked {
        ensure(inner.level == 1 + around.map_or(0, |a| a.level), || "a loop of another level".into())?;
        Self::count(&inner.count)?;
        let within = self.within_loop(inner);
        self.flag(&inner.step, DType::I64)?;
        self.written(&inner.step)?;
        inner.items.iter().enumerate().try_for_each(|(k, item)| {
            let named = item.outs.iter().any(|out| out.at == inner.step.at);
            ensure(!named, || "the number of the step is written".into())?;
            within.item(item, Some(inner)).map_err(|text| format!("part {k} of a loop: {text}"))
        })?;
        for [from, to] in &inner.writes {
            within.written(to)?;
            ensure(count(&from.shape) == count(&to.shape) && from.dtype == to.dtype, || format!("{to} is written from {from}"))?;
        }
        inner.stop.iter().try_for_each(|stop| within.flag(stop, DType::Bool))?;
        self.ran(inner.ran.as_ref())
    }
}

fn is_integer(place: &Place) -> bool {
    place.dtype.is_int() && count(&place.shape) == 1
}

/// A nest is consistent in itself.
pub(super) fn is_nest(nest: &Nest) -> Checked {
    kernel::verify(&nest.kernel).map_err(|e| e.title.clone())?;
    ensure(nest.lanes > 0 && nest.steps > 0, || "a kernel without lanes or steps".into())?;
    ensure(!nest.kernel.is_single() || nest.lanes == 1 && nest.outer.is_empty(), || "a kernel of one lane has many".into())?;
    let varies = nest.kernel.mems.iter().any(|mem| mem.lane.varies());
    ensure(nest.lanes == 1 || varies, || "lanes that do the same".into())?;
    ensure(nest.strides.len() == nest.kernel.mems.len(), || "an operand of which nothing tells how it moves".into())?;
    for (k, (mem, by)) in nest.kernel.mems.iter().zip(&nest.strides).enumerate() {
        let carried = nest.kernel.carries.iter().any(|c| c.mem.0 as usize == k);
        let size = mem.dtype.size() as isize;
        ensure(by.outer.len() == nest.outer.len(), || format!("m{k} moves along other axes"))?;
        ensure(carried || mem.stride.is_none_or(|s| s as isize == by.step), || format!("m{k} moves by another distance"))?;
        ensure((carried || by.step % size == 0) && by.outer.iter().all(|s| s % size == 0), || format!("m{k} is misaligned"))?;
    }
    let filled = |operand: usize| operand < nest.strides.len() && nest.writes(operand);
    ensure(nest.fills.iter().all(|fill| filled(fill.operand)), || "what is filled is not written".into())
}

/// No two steps that hand nothing on write one place.
fn makes_each(nest: &Nest) -> Checked {
    let Nest { kernel, steps, strides, .. } = nest;
    let moves = |store: &Store| store.at.is_some() || strides[store.mem.idx()].step != 0;
    ensure(*steps == 1 || !kernel.carries.is_empty() || kernel.stores.iter().all(moves), || "steps that write one place".into())
}

/// Runs lie within their operands, and no element of the result is moved to twice.
fn moved(runs: &[Run], ins: &[Place], outs: &[Place], adds: bool) -> Checked {
    let [out] = outs else { return Err("what is moved has one result".into()) };
    let mut spans: Vec<(usize, usize)> = vec![];
    for run in runs {
        ensure(run.to + run.n <= count(&out.shape), || format!("{run} lies behind the result"))?;
        spans.push((run.to, run.to + run.n));
        let Some(input) = run.input else {
            ensure(!adds, || "zeros are added".into())?;
            continue;
        };
        ensure(!adds || input == 0, || "what is added is the first input".into())?;
        let Some(from) = ins.get(input) else { return Err(format!("there is no input {input}")) };
        ensure(from.dtype == out.dtype, || format!("elements of {} become {}", from.dtype, out.dtype))?;
        ensure(reaches(run, 0, count(&from.shape)), || format!("{run} lies outside of its input"))?;
    }
    spans.sort_unstable();
    ensure(adds || spans.windows(2).all(|pair| pair[0].1 <= pair[1].0), || "an element is moved to twice".into())
}

/// True where a run from so many elements further on lies among so many.
fn reaches(run: &Run, on: usize, n: usize) -> bool {
    let (first, last) = ((run.from + on) as i128, (run.from + on) as i128 + run.step as i128 * (run.n as i128 - 1));
    run.n == 0 || first.min(last) >= 0 && first.max(last) < n as i128
}

/// Elements of an array that an index names; `y`: what is read, or written, where it has an element for each.
fn selected(selector: &Selector, x: Option<&Place>, idxs: Option<&[Place]>, y: Option<&Place>) -> Checked {
    let (Some(x), Some(idxs)) = (x, idxs) else { return Err("an index without an array".into()) };
    ensure(y.is_none_or(|y| y.dtype == x.dtype), || "an index of elements of another dtype".into())?;
    ensure(idxs.iter().all(|idx| idx.dtype.is_int()), || "an index is an integer".into())?;
    match selector {
        Selector::Basic(pattern) => {
            let one = idxs.iter().all(|idx| count(&idx.shape) == 1);
            let fits = pattern.inputs() == idxs.len() && pattern.items.len() <= x.shape.len() && one;
            ensure(fits, || "an index of other inputs".into())?;
            let Some(by) = selector.by_integers(&x.shape) else { return Ok(()) };
            let n = by.first.count * by.first.run;
            ensure(y.is_none_or(|y| count(&y.shape) == n), || format!("an index of {n} elements"))
        }
        Selector::Advanced(axes) => {
            let fits = axes.len() == idxs.len() && axes.iter().all(|&axis| axis < x.shape.len()) && axes.windows(2).all(|a| a[0] < a[1]);
            ensure(fits, || "an index along other axes".into())?;
            let shapes: Vec<&[usize]> = idxs.iter().map(|idx| &idx.shape[..]).collect();
            let named = count(&broadcast_shapes(&shapes).map_err(|e| e.title.clone())?);
            let rest: usize = x.shape.iter().enumerate().filter(|(axis, _)| !axes.contains(axis)).map(|(_, n)| n).product();
            ensure(y.is_none_or(|y| count(&y.shape) == named * rest), || format!("an index of {} elements", named * rest))
        }
    }
}

fn sliced(slice: &Slice, ins: &[Place], outs: &[Place]) -> Checked {
    moved(&slice.runs, ins.get(..1).unwrap_or(&[]), outs, false)?;
    let integers = slice.begins.iter().all(|b| b.input > 0 && ins.get(b.input).is_some_and(is_integer));
    ensure(integers, || "a slice begins at an integer".into())?;
    let Some(most) = slice.begins.iter().try_fold(0usize, |all, b| all.checked_add(b.last.checked_mul(b.apart)?)) else {
        return Err("a slice that begins beyond all memory".into());
    };
    ensure(slice.runs.iter().all(|run| reaches(run, most, count(&ins[0].shape))), || "a slice reaches beyond its array".into())
}

fn is_direct(direct: &Direct, op: &Op, ins: &[Place], outs: &[Place]) -> Checked {
    let [out] = outs else { return Err("an op on slices has one result".into()) };
    let shapes: Vec<&[usize]> = ins.iter().map(|p| &p.shape[..]).collect();
    let found = Direct::new(op, &shapes, &out.shape, out.dtype == DType::F64);
    let alike = out.dtype.is_float() && ins.iter().all(|p| p.dtype == out.dtype);
    ensure(alike && found.as_ref() == Some(direct), || format!("`{}` does not work on such slices", op.name()))?;
    let graph = of_op(op, ins).map_err(|e| e.title.clone())?;
    ensure(graph.results().iter().all(|&v| agree(graph.ty(v), &ty(out))), || format!("`{}` gives another result", op.name()))
}
