//! What parts do to memory: runs that are copied or added, matrices that are turned, products.

use crate::backend::cpu::{Operand, Spot, Steps, clear, copy, gather, turn, with_slices};
use crate::base::Result;
use crate::ir::EvalCx;
use crate::ir::op::Write;
use crate::ops::matmul::Product;
use crate::ops::select::{Number, Runs, write_run};
use crate::plan::list::Run;
use crate::types::{DType, memory};

/// A matrix that is moved so that its columns lie where rows lay: from which element of which input on, from which one of the result on, rows
/// and columns there, and how far its columns lie apart in the input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Turned {
    pub input: usize,
    pub from: usize,
    pub to: usize,
    pub extents: [usize; 2],
    pub step: usize,
}

impl Turned {
    /// Those whose rows are such runs.
    pub fn of(mut runs: &[Run]) -> Option<Vec<Turned>> {
        let mut found = vec![];
        while let Some(first) = runs.first() {
            let (input, step) = (first.input?, usize::try_from(first.step).ok()?);
            let next = |(r, run): &(usize, &Run)| {
                let alike = (run.input, run.n, run.step) == (first.input, first.n, first.step);
                alike && *r < step && run.from == first.from + r && run.to == first.to + r * first.n
            };
            let rows = runs.iter().enumerate().take_while(next).count();
            if rows < 2 || first.n < 2 {
                return None;
            }
            found.push(Turned { input, from: first.from, to: first.to, extents: [rows, first.n], step });
            runs = &runs[rows..];
        }
        Some(found).filter(|found| !found.is_empty())
    }
}

/// Copies runs to one place after the other.
#[inline(never)]
pub(super) fn read_runs(found: &Runs, from: &Operand, to: &Operand, size: usize) {
    match *found {
        Runs { run: 1, count, step, .. } if count > 0 => gather(from, to, count, (step * size) as isize, size),
        Runs { run, count, step, .. } => (0..count).for_each(|k| {
            let from = Operand { offset: from.offset + k * step * size, ..*from };
            copy(&from, &Operand { offset: to.offset + k * run * size, ..*to }, run * size);
        }),
    }
}

#[inline]
pub(super) fn multiplied(cx: &mut EvalCx, dtype: DType, spots: &[Spot], extents: [usize; 3], k: &Steps) -> Result<()> {
    let now = [spots[0].at(k), spots[1].at(k), spots[spots.len() - 1].at(k)];
    let operands = [&now[0], &now[1], &now[2]];
    let mut run = || if dtype == DType::F32 { multiply::<f32>(cx, operands, extents) } else { multiply::<f64>(cx, operands, extents) };
    // Large products take memory of their own.
    if extents.iter().product::<usize>() <= SMALL { run() } else { memory::given(|| "`matmul`".into(), run) }
}

/// Products of so few multiplications take no memory.
const SMALL: usize = 1 << 12;

fn multiply<T: Product>(cx: &mut EvalCx, operands: [&Operand; 3], [m, k, n]: [usize; 3]) -> Result<()> {
    with_slices::<T, _>(operands, [m * k, k * n, m * n], |a, b, c| T::multiply_in(cx, [m, k, n], a, b, c))
}

/// Adds elements, or one to all where the run does not go on.
pub(super) fn added<T: Number>(run: &Run, from: &Operand, to: &Operand) {
    let size = size_of::<T>();
    let from = Operand { offset: from.offset + run.from * size, ..*from };
    let to = Operand { offset: to.offset + run.to * size, ..*to };
    let n = if run.step == 0 { 1 } else { run.n };
    with_slices::<T, _>([&from, &from, &to], [n, n, run.n], |y, _, x| match run.step {
        0 => x.chunks_mut(1).for_each(|x| write_run(x, y, Write::Inc)),
        _ => write_run(x, y, Write::Inc),
    });
}

/// The last operand is the result.
#[inline]
pub(super) fn turned(matrix: &Turned, spots: &[Spot], k: &Steps, size: usize) {
    let (from, to) = (spots[matrix.input].at(k), spots[spots.len() - 1].at(k));
    let from = Operand { offset: from.offset + matrix.from * size, ..from };
    let to = Operand { offset: to.offset + matrix.to * size, ..to };
    turn(&from, &to, matrix.extents, matrix.step * size, size);
}

/// The last operand is the result.
#[inline]
pub(super) fn moved(run: &Run, spots: &[Spot], k: &Steps, size: usize) {
    let out = spots[spots.len() - 1].at(k);
    let to = Operand { offset: out.offset + run.to * size, ..out };
    match run.input {
        Some(i) => {
            let from = spots[i].at(k);
            let from = Operand { offset: from.offset + run.from * size, ..from };
            if run.step == 1 { copy(&from, &to, run.n * size) } else { gather(&from, &to, run.n, run.step * size as isize, size) }
        }
        None => clear(&to, run.n * size),
    }
}
