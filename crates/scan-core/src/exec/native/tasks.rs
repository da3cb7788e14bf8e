//! The parts of a step that is a list, as launches on a device.

use super::apart::{meets, steady};
use super::piece::{Part, Piece};
use crate::backend::cpu::Refusal;
use crate::backend::gpu::{DeviceRef, Launch, Product, host, kernels, words};
use crate::base::Result;
use crate::ir::Op;
use crate::ir::op::OuterSum;
use crate::kernel::{MemId, Nest};
use crate::plan::StepList;
use crate::plan::list::{Place, Run};
use crate::types::DType;
use crate::types::shape::count;
use smallvec::{SmallVec, smallvec};

/// Where an operand of a launch lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spot {
    /// In an input of the part.
    In(usize),
    /// In a result.
    Out(usize),
    /// In memory between the launches of one part.
    Scratch,
}

/// A launch, and where its operands lie: so many words behind the begin of these.
pub struct Task {
    /// What is launched.
    pub launch: Launch,
    /// One per operand.
    pub operands: SmallVec<[(Spot, usize); 4]>,
}

/// The launches of a part, or why it runs on the host.
pub type Tasks = std::result::Result<Vec<Task>, Refusal>;

fn task(device: DeviceRef, nest: Nest, operands: SmallVec<[(Spot, usize); 4]>) -> Result<std::result::Result<Task, Refusal>> {
    Ok(Launch::of_nest(device, nest, false, 0)?.map(|launch| Task { launch, operands }))
}

/// All of them, unless one is refused.
fn all(tasks: impl IntoIterator<Item = Result<std::result::Result<Task, Refusal>>>) -> Result<Tasks> {
    let mut found = vec![];
    for task in tasks {
        match task? {
            Ok(task) => found.push(task),
            Err(refusal) => return Ok(Err(refusal)),
        }
    }
    Ok(Ok(found))
}

/// The launches of a part.
///
/// # Errors
/// `E0522`.
pub fn of(device: DeviceRef, piece: &Piece, plan: &StepList) -> Result<Tasks> {
    if let Part::Call(op) = &piece.part
        && let Some(perm) = op.permutes()
    {
        return transposed(device, perm, piece);
    }
    match &piece.part {
        // Nothing is computed of nothing.
        Part::Call(Op::Elem(_)) if piece.outs.iter().all(|out| count(&out.shape) == 0) => Ok(Ok(vec![])),
        Part::Nest(_, of) => nest(device, of, piece, plan),
        Part::Move(runs, _) => moved(device, runs, piece.outs[0].dtype),
        Part::Add(runs) if piece.outs[0].dtype != DType::Bool => added(device, runs, piece.outs[0].dtype),
        Part::MatMul(extents) => product(device, *extents, piece.outs[0].dtype),
        Part::Call(Op::MatMul(_)) => match stacked(piece) {
            Some(extents) => product(device, extents, piece.outs[0].dtype),
            None => Ok(Err(Refusal("a device has no kernel for `matmul` of such operands".into()))),
        },
        Part::Call(Op::OuterSum(op)) => outer_sum(device, op, piece),
        part => Ok(Err(Refusal(format!("a device has no kernel for `{}`", part.name())))),
    }
}

/// A kernel inside loops, and what is filled before.
///
/// # Errors
/// `E0522`.
fn nest(device: DeviceRef, nest: &Nest, item: &Piece, plan: &StepList) -> Result<Tasks> {
    let spots = spots(item);
    let fills = nest.fills.iter().map(|f| {
        let dtype = nest.kernel.mems[MemId(f.operand as u32)].dtype;
        task(device, kernels::fill(dtype, f.bits, f.count), smallvec![spots[f.operand]])
    });
    let mut tasks = match all(fills)? {
        Ok(tasks) => tasks,
        refused => return Ok(refused),
    };
    if nest.places() > 0 {
        let nest = Nest { fills: vec![], ..nest.clone() };
        let (together, ahead) = (meets(&nest, item, plan), steady(&nest, item, plan));
        match Launch::of_nest(device, nest, together, ahead)? {
            Ok(launch) => tasks.push(Task { launch, operands: spots }),
            Err(refusal) => return Ok(Err(refusal)),
        }
    }
    Ok(Ok(tasks))
}

fn spots(item: &Piece) -> SmallVec<[(Spot, usize); 4]> {
    let ins = (0..item.ins.len()).map(|k| (Spot::In(k), 0));
    ins.chain((0..item.outs.len()).map(|k| (Spot::Out(k), 0))).collect()
}

/// Elements moved.
///
/// # Errors
/// `E0522`.
fn moved(device: DeviceRef, runs: &[Run], dtype: DType) -> Result<Tasks> {
    let size = dtype.size() as isize;
    let w = words(dtype);
    all(blocks(runs).into_iter().map(|(run, high, down)| match run.input {
        None => task(device, kernels::fill(dtype, 0, run.n), smallvec![(Spot::Out(0), run.to * w)]),
        Some(i) => {
            let nest = kernels::rows(dtype, [high, run.n], [down * size, run.step * size]);
            task(device, nest, smallvec![(Spot::In(i), run.from * w), (Spot::Out(0), run.to * w)])
        }
    }))
}

/// Axes in another order.
///
/// # Errors
/// `E0522`.
fn transposed(device: DeviceRef, perm: &[usize], piece: &Piece) -> Result<Tasks> {
    let (from, dtype) = (&piece.ins[0].shape, piece.outs[0].dtype);
    let stride = |axis: &usize| (dtype.size() * count(&from[axis + 1..])) as isize;
    let apart: Vec<isize> = perm.iter().map(stride).collect();
    all([task(device, kernels::strided(dtype, &piece.outs[0].shape, &apart), smallvec![(Spot::In(0), 0), (Spot::Out(0), 0)])])
}

/// Elements added to those of the result, run after run.
///
/// # Errors
/// `E0522`.
fn added(device: DeviceRef, runs: &[Run], dtype: DType) -> Result<Tasks> {
    let (size, w) = (dtype.size() as isize, words(dtype));
    all(runs.iter().filter(|run| run.n > 0).filter_map(|run| {
        let nest = kernels::add(dtype, run.n, run.step * size);
        Some(task(device, nest, smallvec![(Spot::Out(0), run.to * w), (Spot::In(run.input?), run.from * w)]))
    }))
}

/// Runs of equal lengths that follow each other at equal distances, as one: the first, how many, and the elements from one to the next.
fn blocks(runs: &[Run]) -> Vec<(Run, usize, isize)> {
    let mut found: Vec<(Run, usize, isize)> = vec![];
    for run in runs {
        if let Some((first, high, down)) = found.last_mut() {
            let apart = run.from as isize - first.from as isize;
            let alike = run.input.is_some() && (run.input, run.n, run.step) == (first.input, first.n, first.step);
            let next = run.to == first.to + *high * first.n && (*high == 1 || apart == *down * *high as isize);
            if alike && next {
                *down = if *high == 1 { apart } else { *down };
                *high += 1;
                continue;
            }
        }
        found.push((*run, 1, 0));
    }
    found
}

/// The extents of matrices of floats on the left of one on the right: a product of all their rows.
fn stacked(piece: &Piece) -> Option<[usize; 3]> {
    let (a, b) = (&piece.ins[0].shape, &piece.ins[1].shape);
    let dtype = piece.outs[0].dtype;
    let fits = a.len() > 1 && b.len() == 2 && dtype.is_float() && piece.ins.iter().all(|p| p.dtype == dtype);
    fits.then(|| [count(&a[..a.len() - 1]), b[0], b[1]]).filter(|[_, k, _]| a[a.len() - 1] == *k)
}

/// A product of matrices: chain by chain, the blocks added up in order.
///
/// # Errors
/// `E0522`.
fn product(device: DeviceRef, [m, k, n]: [usize; 3], dtype: DType) -> Result<Tasks> {
    if n == 1 {
        return Ok(Err(Refusal("a product with a vector on the right is added up by eights, which no launch does".into())));
    }
    let (w, size, row) = (words(dtype), dtype.size() as isize, (k * dtype.size()) as isize);
    let operands = [(Spot::In(0), 0), (Spot::In(1), 0), (Spot::Out(0), 0)];
    let whole = Product { dtype, extents: [m, k, n], turned: false, adds: false };
    if let Some(task) = at_once(device, whole, [size, row], operands)? {
        return Ok(Ok(vec![task]));
    }
    let mut tasks = vec![task(device, kernels::fill(dtype, 0, m * n), smallvec![(Spot::Out(0), 0)])];
    for [p, depth] in kernels::blocks(k) {
        let to = (if p == 0 { Spot::Out(0) } else { Spot::Scratch }, 0);
        if p > 0 {
            tasks.push(task(device, kernels::fill(dtype, 0, m * n), smallvec![to]));
        }
        let operands = smallvec![(Spot::In(0), p * w), (Spot::In(1), p * n * w), to];
        tasks.push(task(device, kernels::chains(dtype, [m, depth, n], [size, row], n as isize * size), operands));
        if p > 0 {
            tasks.push(task(device, kernels::add(dtype, m * n, size), smallvec![(Spot::Out(0), 0), to]));
        }
    }
    all(tasks)
}

/// A product as one launch, where the device has a program for it: the bytes between the elements of a chain on the left, and between those where
/// chains begin.
///
/// # Errors
/// `E0522`.
fn at_once(device: DeviceRef, product: Product, left: [isize; 2], operands: [(Spot, usize); 3]) -> Result<Option<Task>> {
    let Product { dtype, extents, .. } = product;
    if extents.contains(&0) {
        return Ok(None);
    }
    let nest = kernels::chains(dtype, extents, left, (extents[2] * dtype.size()) as isize);
    Ok(Launch::of_product(device, nest, product)?.map(|launch| Task { launch, operands: operands.into_iter().collect() }))
}

/// A sum of outer products over rows: as of a product of the transpose of the one with the other, but that every block is added up.
///
/// # Errors
/// `E0522`.
fn outer_sum(device: DeviceRef, op: &OuterSum, piece: &Piece) -> Result<Tasks> {
    let (a, dtype) = (&piece.ins[0].shape, piece.outs[0].dtype);
    let (m, n) = (piece.outs[0].shape[0], piece.outs[0].shape[1]);
    let rows = count(&a[..a.len() - 1]);
    let (w, size) = (words(dtype), dtype.size() as isize);
    let (mut tasks, mut free) = (vec![], m * n * w);
    // Sides whose first axis counts from its end are turned first.
    let mut side = |k: usize, wide: usize, back: bool| {
        if !back || rows == 0 {
            return (Spot::In(k), 0);
        }
        let (each, turned) = (rows / a[0] * wide, (Spot::Scratch, free));
        let nest = kernels::rows(dtype, [a[0], each], [-(each as isize) * size, size]);
        tasks.push(task(device, nest, smallvec![(Spot::In(k), (a[0] - 1) * each * w), turned]));
        free += rows * wide * w;
        turned
    };
    let (left, right) = (side(0, m, op.back_a), side(1, n, op.back_b));
    let (block, all_of_it) = ((Spot::Scratch, 0), (Spot::Out(0), 0));
    let whole = Product { dtype, extents: [m, rows, n], turned: true, adds: true };
    if let Some(task) = at_once(device, whole, [m as isize * size, size], [left, right, all_of_it])? {
        let mut turned = all(tasks)?;
        if let Ok(tasks) = &mut turned {
            tasks.push(task);
        }
        return Ok(turned);
    }
    tasks.push(task(device, kernels::fill(dtype, 0, m * n), smallvec![all_of_it]));
    for [p, depth] in kernels::blocks(rows) {
        tasks.push(task(device, kernels::fill(dtype, 0, m * n), smallvec![block]));
        let operands = smallvec![(left.0, left.1 + p * m * w), (right.0, right.1 + p * n * w), block];
        tasks.push(task(device, kernels::chains(dtype, [m, depth, n], [m as isize * size, size], n as isize * size), operands));
        tasks.push(task(device, kernels::add(dtype, m * n, size), smallvec![all_of_it, block]));
    }
    all(tasks)
}

/// Words between the launches of a part.
pub fn scratch(piece: &Piece) -> usize {
    let elements = |place: &Place| count(&place.shape) * words(place.dtype);
    match &piece.part {
        Part::MatMul(_) | Part::Call(Op::MatMul(_)) => elements(&piece.outs[0]),
        Part::Call(Op::OuterSum(_)) => elements(&piece.outs[0]) + elements(&piece.ins[0]) + elements(&piece.ins[1]),
        _ => 0,
    }
}

/// The number of a step, counted up.
///
/// # Errors
/// `E0522`.
pub fn count_up(device: DeviceRef) -> Result<Tasks> {
    all([task(device, kernels::count(), smallvec![(Spot::Out(0), 0)])])
}

/// A value to the row of a state.
///
/// # Errors
/// `E0522`.
pub fn written(device: DeviceRef, place: &Place) -> Result<Tasks> {
    let run = Run { input: Some(0), from: 0, to: 0, n: count(&place.shape), step: 1 };
    moved(device, &[run], place.dtype)
}

/// True where a launch may find that it needs the host.
pub fn may_need_host(tasks: &[Task]) -> bool {
    tasks.iter().any(|t| host::taken(t.launch.kernel()).is_ok_and(|taken| !taken.is_empty()))
}
