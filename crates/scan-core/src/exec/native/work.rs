//! What the parts of a list do in a step, counted; and what this machine does at most.

use super::mixed::Mixed;
use super::piece::{Part, Piece};
use super::tier::{Engine, Tiered};
use crate::backend::cpu::{Operand, bytes, cells};
use crate::base::clock::Instant;
use crate::kernel::{Bin, Inst, Kernel, Lane, Mem, MemId, Op, Reg, Store, Work};
use crate::plan::list::{Count, Place, Run};
use crate::types::{Array, DType};
use std::sync::OnceLock;

impl Mixed {
    /// What a step does; `None` where nobody knows how many steps a loop in it takes.
    pub fn work(&self) -> Option<Work> {
        Some(all(&self.pieces)? + self.plan.writes.iter().map(|w| Work::moved(w.2.bytes())).sum())
    }
}

fn all(pieces: &[Piece]) -> Option<Work> {
    pieces.iter().map(one).sum::<Option<Work>>()
}

fn one(piece: &Piece) -> Option<Work> {
    let size = || piece.outs[0].dtype.size();
    let whole = |places: &[Place]| places.iter().map(Place::bytes).sum::<usize>();
    let elements = |runs: &[Run]| runs.iter().map(|run| run.n).sum::<usize>();
    Some(match &piece.part {
        Part::Nest(_, nest) => nest.work()?,
        Part::Either(versions) => versions.larger().1.work()?,
        Part::Move(runs, _) => Work::moved(elements(runs) * size()),
        Part::Add(runs) => Work::moved(elements(runs) * size()) + arithmetic(elements(runs), size()),
        Part::Turn(turned) => Work::moved(turned.iter().map(|t| t.extents[0] * t.extents[1]).sum::<usize>() * size()),
        Part::MatMul([m, k, n]) => {
            arithmetic(2 * m * k * n, size()) + Work { bytes: ((m * k + k * n + m * n) * size()) as u64, ..Work::default() }
        }
        Part::Read(_) | Part::Slice(_) | Part::ByArrays(_, None) | Part::ByIntegers(_, None) => Work::moved(whole(&piece.outs)),
        Part::Write(..) | Part::ByArrays(..) | Part::ByIntegers(..) => Work::moved(piece.ins[0].bytes()),
        Part::Direct(..) | Part::Call(_) => Work { calls: 1, bytes: (whole(&piece.ins) + whole(&piece.outs)) as u64, ..Work::default() },
        Part::Guard(_) | Part::Within(_) => Work::default(),
        Part::Loop(inner) => inner.nest.nest.kernel.work(inner.nest.nest.lanes)?.times(known(&inner.count, inner.stopped.as_ref())?),
        Part::For(inner) => {
            let rows = inner.writes.iter().map(|[from, _]| Work::moved(from.bytes())).sum();
            (all(&inner.items)? + rows).times(known(&inner.count, inner.stop.as_ref())?)
        }
    })
}

fn arithmetic(operations: usize, size: usize) -> Work {
    Work { operations: operations as u64, width: (operations * size) as u64, ..Work::default() }
}

/// How many steps a loop takes that may stop early.
fn known(count: &Count, stop: Option<&Place>) -> Option<usize> {
    if let (Count::Known(n), None) = (count, stop) { Some(*n) } else { None }
}

/// What one core of this machine does at most, in each second, as kernels that were run once have shown.
///
/// ```
/// use scan_core::prelude::*;
///
/// let Peak { width, bytes } = peak();
/// assert!(width > 0.0 && bytes > 0.0);
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Peak {
    /// Bytes of elements that arithmetic gives, as [`Work::width`] counts them: of multiply-adds of elements that lie in registers.
    pub width: f64,
    /// Bytes that are read and written, of arrays that lie in the innermost cache.
    pub bytes: f64,
}

/// Lanes of the kernels that tell it: three such arrays of f64 fill half of an innermost cache of 32 KiB.
const LANES: usize = 640;

/// The best of so many runs counts, each of so many steps.
const TRIES: [usize; 2] = [16, 100];

/// Chains of multiply-adds that do not wait for each other, and how many make a chain: as many as keep two units busy that take four cycles.
const CHAINS: [u32; 2] = [8, 8];

/// What this machine does at most: measured in a few milliseconds by the first who asks.
///
/// ```
/// use scan_core::prelude::*;
///
/// assert_eq!(peak(), peak());
/// ```
pub fn peak() -> Peak {
    static PEAK: OnceLock<Peak> = OnceLock::new();
    *PEAK.get_or_init(|| {
        let (busy, moving) = (chains(), sums());
        let per_second = |kernel: Kernel, of: fn(&Work) -> u64| {
            let work = kernel.work(LANES).map_or(0, |work| of(&work.times(TRIES[1])));
            work as f64 / seconds(kernel)
        };
        Peak { width: per_second(busy, |w| w.width), bytes: per_second(moving, |w| w.bytes) }
    })
}

/// The least time of a run.
fn seconds(kernel: Kernel) -> f64 {
    let tier = Tiered::new(kernel, Engine::Jit);
    tier.expect(LANES, TRIES[1]);
    let row = || Array::zeros(DType::F64, &[LANES]);
    let (a, b, mut out) = (row(), row(), row());
    let mut least = f64::INFINITY;
    for _ in 0..TRIES[0] {
        let operands = [Operand::reading(bytes(&a)), Operand::reading(bytes(&b)), Operand::writing(cells(&mut out))];
        let begun = Instant::now();
        tier.run_alone(&operands, LANES, TRIES[1], 0);
        least = least.min(begun.elapsed().as_secs_f64());
    }
    least
}

/// Two arrays that are read, one that is written, and what makes it of them.
fn kernel(ops: impl IntoIterator<Item = Op>) -> Kernel {
    let mut kernel = Kernel::default();
    for _ in 0..3 {
        kernel.mems.push(Mem::new(DType::F64, Lane::Unit));
    }
    let mut last = Reg(0);
    for op in [Op::Load(MemId(0)), Op::Load(MemId(1))].into_iter().chain(ops) {
        last = kernel.body.push(Inst { op, dtype: DType::F64 });
    }
    kernel.stores.push(Store { mem: MemId(2), value: last, at: None });
    kernel
}

/// Chains of multiply-adds, and their sum.
fn chains() -> Kernel {
    let [beside, long] = CHAINS;
    let first = 2 + beside * (long - 1);
    let chained = (0..beside * long).map(|at| Op::Fma(Reg(if at < beside { 0 } else { 2 + at - beside }), Reg(1), Reg(0)));
    let sums = (1..beside).map(|k| Op::Bin(Bin::Add, Reg(if k == 1 { first } else { first + beside + k - 2 }), Reg(first + k)));
    kernel(chained.chain(sums))
}

fn sums() -> Kernel {
    kernel([Op::Bin(Bin::Add, Reg(0), Reg(1))])
}
