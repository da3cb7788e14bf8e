//! Faults in plans, made on purpose: what a planner that went wrong might make. Most are found by [`verify`](super::verify()) alone; the others
//! when the plan is interpreted.

use super::interp::run_list;
use super::list::{At, InnerKernel, Item, Place, Run, StepList, Work};
use super::testing::{Found, POISON, Sample};
use super::verify;
use crate::ir::EvalCx;
use crate::ir::op::Outs;
use crate::kernel::testing::random::Random;
use crate::kernel::{Bin, Kernel, Nest, Op};
use crate::types::{Array, DType};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How many faults were found, and by what.
#[derive(Clone, Default, Debug)]
pub struct Caught {
    /// All.
    pub faults: usize,
    /// By the verifier alone.
    pub verified: usize,
    /// When the plan was interpreted.
    pub interpreted: usize,
    /// What nothing found.
    pub survivors: Vec<String>,
}

/// Makes so many faults in plans that have run, and looks for them.
///
/// # Panics
/// Where none has run.
pub fn faults(found: &Found, seed: u64, count: usize) -> Caught {
    let mut random = Random(seed);
    // Programs run side by side: in whatever order their loops came.
    let mut samples: Vec<(String, &Sample)> = found.samples.iter().map(|sample| (sample.plan.to_string(), sample)).collect();
    samples.sort_by_cached_key(|(text, sample)| (text.clone(), format!("{:?}", sample.ins)));
    let mut caught = Caught::default();
    while caught.faults < count {
        let (text, sample) = &samples[random.below(samples.len())];
        let Some((what, plan)) = fault(&sample.plan, &mut random) else { continue };
        caught.faults += 1;
        if verify(&plan, &sample.scan).is_err() {
            caught.verified += 1;
        } else if samples.iter().any(|(other, sample)| other == text && differs(&plan, sample, &sample.ins, &sample.outs))
            || differs_elsewhere(&plan, sample, &mut random)
        {
            caught.interpreted += 1;
        } else {
            caught.survivors.push(format!("{what}\n{plan}"));
        }
    }
    caught
}

/// What a plan makes of inputs of a sample's loop, on memory that holds `poison` where nothing was written; `None` where it makes nothing.
fn made(plan: &StepList, sample: &Sample, ins: &[Array], poison: u8) -> Option<Outs<Array>> {
    let run = || run_list(plan, &sample.scan, &mut EvalCx::new(), ins, poison);
    catch_unwind(AssertUnwindSafe(run)).ok()?.ok()?
}

/// True where a plan makes something else than is right of such inputs, or of memory that holds something else where nothing was written.
fn differs(plan: &StepList, sample: &Sample, ins: &[Array], right: &[Array]) -> bool {
    let same = |outs: Outs<Array>| outs.iter().zip(right).all(|(a, b)| a.ty() == b.ty() && a.bits() == b.bits());
    POISON.iter().any(|&poison| !made(plan, sample, ins, poison).is_some_and(same))
}

/// So many inputs are drawn for a plan that makes the same of those that it was given.
const DRAWS: usize = 8;

/// True where a plan makes something else of inputs whose floats and bools are others: of those that it was given elements may have been equal that
/// it has no reason to take for each other. What the plan makes that it comes from is right.
fn differs_elsewhere(plan: &StepList, sample: &Sample, random: &mut Random) -> bool {
    (0..DRAWS).any(|_| {
        let ins: Vec<Array> = sample.ins.iter().map(|x| redrawn(x, random)).collect();
        made(&sample.plan, sample, &ins, POISON[0]).is_some_and(|right| differs(plan, sample, &ins, &right))
    })
}

/// Other floats and bools; integers, which name elements and count steps, stay.
fn redrawn(x: &Array, random: &mut Random) -> Array {
    if x.dtype().is_int() {
        return x.clone();
    }
    let drawn: Vec<f64> = (0..x.len()).map(|_| random.below(2001) as f64 / 500.0 - 2.0).collect();
    match x.dtype() {
        DType::Bool => Array::new(x.shape(), drawn.into_iter().map(|x| x > 0.0).collect::<Vec<bool>>()),
        dtype => Array::new(x.shape(), drawn).cast(dtype),
    }
}

/// A plan with one fault, in words; `None` where what was chosen has no place for it.
fn fault(plan: &StepList, random: &mut Random) -> Option<(String, StepList)> {
    let mut plan = plan.clone();
    let what = match random.below(10) {
        0..=3 => place(&mut plan, random)?,
        4 => order(&mut plan, random)?,
        5 => layout(&mut plan, random)?,
        6 => states(&mut plan, random)?,
        _ => part(&mut plan, random)?,
    };
    Some((what, plan))
}

/// Another place for an operand.
fn place(plan: &mut StepList, random: &mut Random) -> Option<String> {
    let mut places = 0;
    plan.places(&mut |_| places += 1);
    if places == 0 {
        return None;
    }
    let (wanted, how, slots) = (random.below(places), random.below(5), plan.temporaries.len());
    let other = 1 + random.below(slots.max(2) - 1);
    let (mut at, mut what) = (0, None);
    plan.places(&mut |place| {
        if at == wanted {
            let (before, empty) = (place.to_string(), place.bytes() == 0);
            changed(place, how, other);
            what = (!empty && before != place.to_string()).then(|| format!("{before} became {place}"));
        }
        at += 1;
    });
    what
}

fn changed(place: &mut Place, how: usize, other: usize) {
    match how {
        0 => place.first += 1,
        1 => place.first = place.first.saturating_sub(1),
        2 => place.at = At::Slot(other),
        3 => place.dtype = if place.dtype == DType::F64 { DType::I64 } else { DType::F64 },
        _ => place.along[0] += 1,
    }
}

/// Parts in another order, or one that is missing.
fn order(plan: &mut StepList, random: &mut Random) -> Option<String> {
    let n = plan.items.len();
    if n < 2 {
        return None;
    }
    let k = random.below(n - 1);
    let reads = |item: &Item| item.ins.iter().any(|place| plan.items[k].outs.iter().any(|out| out.at == place.at));
    // What no part reads may come at any time.
    let (read, next) = (plan.items[k + 1..].iter().any(reads), reads(&plan.items[k + 1]));
    match random.below(3) {
        0 if read => {
            plan.items.remove(k);
            Some(format!("part {k} is missing"))
        }
        1 if read => {
            let part = plan.items.remove(k);
            plan.items.push(part);
            Some(format!("part {k} came last"))
        }
        2 if next => {
            plan.items.swap(k, k + 1);
            Some(format!("part {k} and the one behind it changed places"))
        }
        _ => None,
    }
}

/// Two temporaries in one place, or one that is too small.
fn layout(plan: &mut StepList, random: &mut Random) -> Option<String> {
    let n = plan.temporaries.len();
    if n < 3 {
        return None;
    }
    let (a, b) = (1 + random.below(n - 1), random.below(n));
    let before = plan.temporaries[a];
    match random.below(2) {
        // Those that are not wanted at the same time may share a place: not the number of the step.
        0 => plan.temporaries[a].at = if b == 0 { 0 } else { plan.temporaries[1 + (a % (n - 1))].at },
        _ => plan.temporaries[a].bytes /= 2,
    }
    (plan.temporaries[a] != before).then(|| format!("t{a} lies elsewhere"))
}

/// Another window, or other rows that are written.
fn states(plan: &mut StepList, random: &mut Random) -> Option<String> {
    if random.one_in(2) && !plan.writes.is_empty() {
        let k = random.below(plan.writes.len());
        match random.below(3) {
            0 => drop(plan.writes.remove(k)),
            1 => plan.writes[k].1 += 1,
            _ => plan.writes.push(plan.writes[k].clone()),
        }
        return Some(format!("row {k} of those that are written"));
    }
    let n = plan.windows.len();
    let k = if n > 0 { random.below(n) } else { return None };
    let window = &mut plan.windows[k];
    match random.below(4) {
        0 => window.span += 1,
        1 => window.first_write += 1,
        2 => window.shape.insert(0, 2),
        _ => plan.in_place[k] = !plan.in_place[k],
    }
    Some(format!("state{k} is kept in another way"))
}

/// Another part.
fn part(plan: &mut StepList, random: &mut Random) -> Option<String> {
    let n = plan.items.len();
    let k = if n > 0 { random.below(n) } else { return None };
    in_item(&mut plan.items[k], random).map(|what| format!("part {k}: {what}"))
}

fn in_item(item: &mut Item, random: &mut Random) -> Option<String> {
    match &mut item.work {
        Work::Nest(nest) => in_nest(nest, random),
        Work::Move(runs) | Work::Add(runs) => in_runs(runs, random),
        Work::Slice(slice) => in_runs(&mut slice.runs, random),
        Work::MatMul(extents) => {
            extents[random.below(3)] += 1;
            Some("another extent".into())
        }
        Work::Loop(inner) => in_loop(inner, random),
        Work::For(inner) => {
            let n = inner.items.len();
            let k = if n > 0 { random.below(n) } else { return None };
            in_item(&mut inner.items[k], random)
        }
        Work::Read(_) | Work::Write(..) | Work::Direct(..) | Work::Call(..) | Work::Guard(_) | Work::Within { .. } => {
            if random.one_in(2) && !item.ins.is_empty() {
                let k = random.below(item.ins.len());
                item.ins[k].shape.insert(0, 2);
                return Some(format!("another shape of operand {k}"));
            }
            if item.ins.len() < 2 {
                return None;
            }
            item.ins.swap(0, 1);
            (item.ins[0] != item.ins[1]).then(|| "operands that changed places".into())
        }
    }
}

fn in_runs(runs: &mut Vec<Run>, random: &mut Random) -> Option<String> {
    let n = runs.len();
    let k = if n > 0 { random.below(n) } else { return None };
    match random.below(5) {
        0 => runs[k].from += 1,
        1 => runs[k].to += 1,
        2 => runs[k].n = runs[k].n.saturating_sub(1),
        3 => runs[k].n += 1,
        _ => drop(runs.remove(k)),
    }
    Some(format!("run {k}"))
}

fn in_loop(inner: &mut InnerKernel, random: &mut Random) -> Option<String> {
    match random.below(4) {
        0 if inner.operands.len() > 1 => {
            let k = random.below(inner.operands.len() - 1);
            inner.operands.swap(k, k + 1);
            (inner.operands[k] != inner.operands[k + 1]).then(|| format!("operands {k} and {} changed places", k + 1))
        }
        1 => {
            inner.nest.steps += 1;
            Some("a step more".into())
        }
        _ => in_nest(&mut inner.nest, random),
    }
}

fn in_nest(nest: &mut Nest, random: &mut Random) -> Option<String> {
    let operand = random.below(nest.strides.len().max(1));
    let size = nest.kernel.mems.iter().nth(operand).map_or(8, |mem| mem.dtype.size()) as isize;
    let how = random.below(8);
    match how {
        0 => nest.lanes += 1,
        1 if nest.lanes > 1 => nest.lanes -= 1,
        2 => nest.steps += 1,
        3 if !nest.outer.is_empty() => {
            let axis = random.below(nest.outer.len());
            nest.outer[axis] += 1;
        }
        4 if nest.steps > 1 => nest.strides[operand].step += size,
        5 if !nest.fills.is_empty() => drop(nest.fills.remove(0)),
        6 if !nest.kernel.stores.is_empty() => {
            let k = random.below(nest.kernel.stores.len());
            nest.kernel.stores.remove(k);
        }
        _ => return in_kernel(&mut nest.kernel, random),
    }
    let names = ["a lane more", "a lane less", "a step more", "another extent", "another stride", "a fill that is missing"];
    Some(names.get(how).unwrap_or(&"a store that is missing").to_string())
}

/// Another instruction.
fn in_kernel(kernel: &mut Kernel, random: &mut Random) -> Option<String> {
    let ids: Vec<_> = kernel.body.ids().collect();
    let r = if ids.is_empty() { return None } else { ids[random.below(ids.len())] };
    let inst = &mut kernel.body[r];
    inst.op = match &inst.op {
        Op::Bin(Bin::Add, a, b) => Op::Bin(Bin::Sub, *a, *b),
        Op::Bin(Bin::Mul, a, b) => Op::Bin(Bin::Add, *a, *b),
        Op::Bin(Bin::Sub, a, b) if a != b => Op::Bin(Bin::Sub, *b, *a),
        Op::Load(mem) if mem.0 > 0 => Op::Load(crate::kernel::MemId(mem.0 - 1)),
        _ => return None,
    };
    Some(format!("r{} is another instruction", r.0))
}
