//! The kernels of a fusion whose axes have been chosen.

use super::copies::{Copies, Given, Kerneled};
use super::fusions::Fold;
use super::nodes::Lowering;
use super::pass::{By, Of, Pass, Plan};
use super::value::Layout;
use super::{Lowered, refuse};
use crate::ir::Graph;
use crate::ir::op::ReduceKind;
use crate::kernel::nest::extreme_unit;
use crate::kernel::{Fill, Kernel, Lane, MemId, Nest, Reg, Strides};
use crate::types::DType;
use smallvec::SmallVec;

/// A reduction of so many elements is written out in the kernel.
const UNROLLED: usize = 16;
/// Where its lanes are places of the result: partial results that leave the registers cost more than instructions.
const WIDE_UNROLLED: usize = 64;
/// And so many nodes of such a kernel.
const NODES: usize = 256;
/// So many sums are carried in eight partial ones each by one walk: they should find room in registers.
const SUMS: usize = 2;
/// Elements of eight partial sums: longer ones are halved by the law.
pub(super) const BLOCK: usize = 256;
/// Rows of partial results of a reduced axis.
const ROW: usize = 32;
/// From so many elements on, looking for the first extreme is worth as many: they take as long as those of an eighth to be brought together.
const LONG: usize = 1024;

/// How a pass walks: its lanes, steps, and the axes around, outermost first.
pub(super) struct Loops {
    pub lanes: usize,
    pub steps: usize,
    pub first: i64,
    pub outer: Vec<usize>,
}

impl Plan<'_> {
    /// Results of places.
    pub fn map(&mut self, lanes: Option<usize>) -> Lowered<()> {
        let steps = lanes.unwrap_or(self.axes.extents.len()).checked_sub(1);
        let outer = self.others(&[lanes, steps]);
        let out = self.axes.operands.len() - 1;
        let first = self.axes.operands[out].0;
        let copies = Copies::new(self.fusion, self.axes, lanes, None, 1)?;
        let mut k = copies.lower(self, steps, &outer, 1)?;
        let lane = if self.extent(lanes) > 1 { Lane::Unit } else { Lane::Uniform };
        for (i, value) in k.values.clone().into_iter().enumerate() {
            k.store((Of::Out(i), first, lane, self.stride(out, steps), self.along_axes(out, &outer)), value);
        }
        let loops = Loops { lanes: self.extent(lanes), steps: self.extent(steps), first: 0, outer: self.extents(&outer) };
        self.push(k, loops, vec![]);
        Ok(())
    }

    /// Reductions with these lanes.
    pub fn folded(&mut self, folds: &[Fold], lanes: Option<(By, usize)>) -> Lowered<()> {
        match (lanes, folds) {
            (Some((By::Reduced, lanes)), _) if self.axes.extents[lanes] > UNROLLED && folds.iter().all(|f| in_eights(*f)) => {
                self.sums(folds, lanes)
            }
            (Some((By::Reduced, lanes)), &[fold]) if self.axes.extents[lanes] > UNROLLED => self.across(fold, lanes),
            (Some((By::Reduced, lanes)), _) if self.axes.extents[lanes] > UNROLLED => refuse("several rows of partial results"),
            (Some((By::Reduced, _)) | None, _) => self.along(folds, None),
            (Some((By::Kept, lanes)), _) => self.along(folds, Some(lanes)),
        }
    }

    /// Reductions whose lanes are places of the results.
    fn along(&mut self, folds: &[Fold], lanes: Option<usize>) -> Lowered<()> {
        let reduced: Vec<usize> = (0..self.axes.extents.len()).filter(|&a| self.axes.reduced[a]).collect();
        let n: usize = reduced.iter().map(|&a| self.axes.extents[a]).product();
        let sums = folds.iter().filter(|fold| in_eights(**fold)).count();
        match reduced[..] {
            [] => self.unrolled(folds, lanes, None),
            [r] if n <= UNROLLED || lanes.is_some() && n <= WIDE_UNROLLED && n * self.fusion.graph.nodes().len() <= NODES => {
                self.unrolled(folds, lanes, Some(r))
            }
            [r] if sums == folds.len() && sums <= SUMS && n <= BLOCK => self.eights(folds, lanes, r),
            _ if sums > 0 => refuse("a sum of many elements in the law's order"),
            _ => self.chain(folds, lanes, reduced[reduced.len() - 1]),
        }
    }

    /// All elements of a place at once.
    fn unrolled(&mut self, folds: &[Fold], lanes: Option<usize>, reduced: Option<usize>) -> Lowered<()> {
        let out = self.axes.operands.len() - 1;
        let rest = self.others(&[lanes, reduced]);
        let (steps, outer) = (rest.last().copied(), &rest[..rest.len().saturating_sub(1)]);
        let copies = self.extent(reduced);
        let copies = Copies::new(self.fusion, self.axes, lanes, reduced, copies)?;
        let mut k = copies.lower(self, steps, outer, 1)?;
        let lane = if self.extent(lanes) > 1 { Lane::Unit } else { Lane::Uniform };
        for (i, &fold) in folds.iter().enumerate() {
            let values: Vec<Reg> = k.values.iter().copied().skip(i).step_by(folds.len()).collect();
            let value = match fold {
                Fold::By(kind, dtype) => k.reduced(kind, dtype, &values)?,
                Fold::First(largest, dtype) => k.lowering.extreme_at(largest, dtype, &values)?,
            };
            k.store((Of::Out(i), 0, lane, self.stride(out, steps), self.along_axes(out, outer)), value);
        }
        let loops = Loops { lanes: self.extent(lanes), steps: self.extent(steps), first: 0, outer: self.extents(outer) };
        self.push(k, loops, vec![]);
        Ok(())
    }

    /// One element after the other: for what does not depend on how sums are split.
    fn chain(&mut self, folds: &[Fold], lanes: Option<usize>, steps: usize) -> Lowered<()> {
        let out = self.axes.operands.len() - 1;
        let outer = self.others(&[lanes, Some(steps)]);
        let copies = Copies::new(self.fusion, self.axes, lanes, None, 1)?;
        let mut k = copies.lower(self, Some(steps), &outer, 1)?;
        let lane = if self.extent(lanes) > 1 { Lane::Unit } else { Lane::Uniform };
        let along = self.along_axes(out, &outer);
        let n = self.axes.kept();
        let mut fills = vec![];
        for (i, &fold) in folds.iter().enumerate() {
            let (x, along) = (k.values[i], along.clone());
            match fold {
                Fold::By(kind, dtype) => {
                    let (operand, carry, now) = k.carry((Of::Out(i), 0, lane, 0, along), dtype);
                    let next = k.step(kind, dtype, now, x)?;
                    k.lowering.builder.set_next(carry, next);
                    fills.push(Fill { operand, bits: unit(kind, dtype), count: n });
                }
                Fold::First(largest, dtype) => {
                    let best = self.temporary(dtype, n);
                    let value = k.carry((best, 0, lane, 0, along.clone()), dtype);
                    let index = k.carry((Of::Out(i), 0, lane, 0, along), DType::I64);
                    k.first(largest, dtype, x, (value.1, value.2), (index.1, index.2))?;
                    fills.push(Fill { operand: value.0, bits: extreme_unit(dtype, largest), count: n });
                    fills.push(Fill { operand: index.0, bits: 0, count: n });
                }
            }
        }
        let loops = Loops { lanes: self.extent(lanes), steps: self.axes.extents[steps], first: 0, outer: self.extents(&outer) };
        self.push(k, loops, fills);
        Ok(())
    }

    /// Eight partial sums of up to 256 elements, a step of a kernel adding one to each, then what is left over and the tree over them.
    fn eights(&mut self, folds: &[Fold], lanes: Option<usize>, reduced: usize) -> Lowered<()> {
        let out = self.axes.operands.len() - 1;
        let (n, count) = (self.axes.extents[reduced], self.axes.kept());
        let outer = self.others(&[lanes, Some(reduced)]);
        let lane = if self.extent(lanes) > 1 { Lane::Unit } else { Lane::Uniform };
        let sums: Vec<Sum> = folds.iter().map(|&fold| self.sum(fold, count)).collect::<Lowered<_>>()?;
        let copies = Copies::new(self.fusion, self.axes, lanes, Some(reduced), 8)?;
        let mut k = copies.lower(self, Some(reduced), &outer, 8)?;
        let mut fills = vec![];
        for (s, sum) in sums.iter().enumerate() {
            for i in 0..8 {
                let given = sum.part(i, lane, 0, self.along_axes(out, &outer));
                let (operand, carry, now) = k.carry(given, sum.dtype);
                let value = k.values[i * sums.len() + s];
                let next = k.step(sum.kind, sum.dtype, now, value)?;
                k.lowering.builder.set_next(carry, next);
                if i == 0 {
                    fills.push(Fill { operand, bits: unit(sum.kind, sum.dtype), count: 8 * count });
                }
            }
        }
        let loops = Loops { lanes: self.extent(lanes), steps: n / 8, first: 0, outer: self.extents(&outer) };
        self.push(k, loops, fills);
        self.rest(&sums, lanes, reduced)
    }
    fn sum(&mut self, fold: Fold, count: usize) -> Lowered<Sum> {
        let Fold::By(kind, dtype) = fold else { return refuse("a sum") };
        Ok(Sum { kind, dtype, partial: self.temporary(dtype, 8 * count), count })
    }

    /// The elements behind the last eight, and the tree over the partial sums.
    fn rest(&mut self, sums: &[Sum], lanes: Option<usize>, reduced: usize) -> Lowered<()> {
        let (out, n) = (self.axes.operands.len() - 1, self.axes.extents[reduced]);
        let rest = self.others(&[lanes, Some(reduced)]);
        let (steps, outer) = (rest.last().copied(), &rest[..rest.len().saturating_sub(1)]);
        let copies = Copies::behind(self.fusion, self.axes, lanes, (reduced, n / 8 * 8), n % 8)?;
        let mut k = copies.lower(self, steps, outer, 1)?;
        let lane = if self.extent(lanes) > 1 { Lane::Unit } else { Lane::Uniform };
        let mut made: SmallVec<[Reg; SUMS]> = SmallVec::new();
        for (s, sum) in sums.iter().enumerate() {
            let mut parts: SmallVec<[Reg; 8]> = SmallVec::new();
            for i in 0..8 {
                let now = k.load(sum.part(i, lane, self.stride(out, steps), self.along_axes(out, outer)), sum.dtype);
                parts.push(match k.values.get(i * sums.len() + s).copied() {
                    Some(x) => k.step(sum.kind, sum.dtype, now, x)?,
                    None => now,
                });
            }
            made.push(k.tree(sum.kind, sum.dtype, &parts)?);
        }
        for (s, value) in made.into_iter().enumerate() {
            k.store((Of::Out(s), 0, lane, self.stride(out, steps), self.along_axes(out, outer)), value);
        }
        let loops = Loops { lanes: self.extent(lanes), steps: self.extent(steps), first: 0, outer: self.extents(outer) };
        self.push(k, loops, vec![]);
        Ok(())
    }

    /// A reduction whose lanes are elements that become one, in any order: a row of partial results per place, then these.
    fn across(&mut self, fold: Fold, lanes: usize) -> Lowered<()> {
        let (n, count) = (self.axes.extents[lanes], self.axes.kept());
        let others = (0..self.axes.extents.len()).filter(|&a| self.axes.reduced[a] && a != lanes).count();
        let first = ordered(fold);
        if in_eights(fold) || others > 0 && first {
            return refuse("a sum of many elements in the law's order");
        }
        let row = if n < if first { LONG } else { 4 * ROW } { 8 } else { ROW };
        let (Fold::By(_, dtype) | Fold::First(_, dtype)) = fold;
        let partial = self.temporary(dtype, row * count);
        let index = first.then(|| self.temporary(DType::I64, row * count));
        self.rows(fold, (lanes, 0, row), n / row, (partial, index, row), row * count)?;
        if n % row > 0 {
            self.rows(fold, (lanes, n / row * row, n % row), 1, (partial, index, row), 0)?;
        }
        self.joined(fold, (partial, index), (row, count))
    }

    /// Elements `from ..` of the reduced axis into the partial results, so many of them at each step.
    fn rows(
        &mut self,
        fold: Fold,
        (lanes, from, width): (usize, usize, usize),
        steps: usize,
        (partial, index, row): (Of, Option<Of>, usize),
        filled: usize,
    ) -> Lowered<()> {
        let out = self.axes.operands.len() - 1;
        let outer = self.others(&[Some(lanes)]);
        let along: Vec<isize> = self.along_axes(out, &outer).iter().map(|s| s * row as isize).collect();
        let copies = Copies::cut(self.fusion, self.axes, (lanes, from), None)?;
        let mut k = copies.lower_by(self, |operand| self.stride(operand, Some(lanes)) * row as isize, &outer)?;
        let mut fills = vec![];
        match (fold, index) {
            (Fold::By(kind, dtype), None) => {
                let (operand, carry, now) = k.carry((partial, 0, Lane::Unit, 0, along), dtype);
                let next = k.step(kind, dtype, now, k.values[0])?;
                k.lowering.builder.set_next(carry, next);
                fills.push(Fill { operand, bits: unit(kind, dtype), count: filled });
            }
            (fold, index) => {
                let (Some(index), (largest, dtype)) = (index, sought(fold)) else { return refuse("an index") };
                let value = k.carry((partial, 0, Lane::Unit, 0, along.clone()), dtype);
                let at = k.carry((index, 0, Lane::Unit, 0, along), DType::I64);
                k.first(largest, dtype, k.values[0], (value.1, value.2), (at.1, at.2))?;
                fills.push(Fill { operand: value.0, bits: extreme_unit(dtype, largest), count: filled });
                fills.push(Fill { operand: at.0, bits: 0, count: filled });
            }
        }
        let loops = Loops { lanes: width, steps, first: (from / row) as i64, outer: self.extents(&outer) };
        self.push(k, loops, fills);
        Ok(())
    }

    /// The partial results of each place reduced to one.
    fn joined(&mut self, fold: Fold, (partial, index): (Of, Option<Of>), (row, count): (usize, usize)) -> Lowered<()> {
        let none = Graph::new();
        let mut k = Kerneled { lowering: Lowering::new(&none, Layout::Lanes(2)), given: vec![], values: vec![] };
        let at = |of: Of, i: usize| (of, i as isize, Lane::Uniform, row as isize, vec![]);
        let value = match (fold, index) {
            (Fold::By(kind, dtype), None) => {
                let parts: Vec<Reg> = (0..row).map(|i| k.load(at(partial, i), dtype)).collect();
                k.all(kind, dtype, &parts)?
            }
            (fold, Some(index)) => {
                let (largest, dtype) = sought(fold);
                let values: Vec<Reg> = (0..row).map(|i| k.load(at(partial, i), dtype)).collect();
                let steps: Vec<Reg> = (0..row).map(|i| k.load(at(index, i), DType::I64)).collect();
                let (value, at) = k.first_of(largest, dtype, &values, &steps)?;
                if matches!(fold, Fold::First(..)) { at } else { value }
            }
            _ => return refuse("an index"),
        };
        k.store((Of::Out(0), 0, Lane::Uniform, 1, vec![]), value);
        self.push(k, Loops { lanes: 1, steps: count, first: 0, outer: vec![] }, vec![]);
        Ok(())
    }

    pub fn push(&mut self, k: Kerneled, loops: Loops, fills: Vec<Fill>) {
        let kernel: Kernel = k.lowering.builder.finish();
        let size = |m: usize| kernel.mems[MemId(m as u32)].dtype.size() as isize;
        let strides = k.given.iter().enumerate();
        let strides = strides.map(|(m, g)| Strides { step: g.3 * size(m), outer: g.4.iter().map(|s| s * size(m)).collect() }).collect();
        let operands = k.given.iter().map(|g| (g.0, g.1 as usize)).collect();
        let Loops { lanes, steps, first, outer } = loops;
        let nest = Nest { kernel, lanes, steps, first, outer: outer.into(), strides, fills };
        self.passes.push(Pass { nest, operands });
    }
}

/// A sum, or product, in eight partial ones of each place.
struct Sum {
    kind: ReduceKind,
    dtype: DType,
    partial: Of,
    /// Places.
    count: usize,
}

impl Sum {
    /// A partial one as an operand.
    fn part(&self, i: usize, lane: Lane, step: isize, along: Vec<isize>) -> Given {
        (self.partial, (i * self.count) as isize, lane, step, along)
    }
}

/// Sums and products whose order the law fixes by eight partial ones.
pub(super) fn in_eights(fold: Fold) -> bool {
    matches!(fold, Fold::By(ReduceKind::Sum | ReduceKind::Prod, dtype) if dtype.is_float())
}

/// Where the first of equal elements counts: indices of extremes, and extremes of floats, since equal zeros and NaNs have different bits.
pub(super) fn ordered(fold: Fold) -> bool {
    match fold {
        Fold::First(..) => true,
        Fold::By(kind, dtype) => matches!(kind, ReduceKind::Max | ReduceKind::Min) && dtype.is_float(),
    }
}

/// Whether the largest is looked for, and the dtype of the elements.
fn sought(fold: Fold) -> (bool, DType) {
    match fold {
        Fold::First(largest, dtype) => (largest, dtype),
        Fold::By(kind, dtype) => (kind == ReduceKind::Max, dtype),
    }
}

/// The value with which a reduction begins.
pub(super) fn unit(kind: ReduceKind, dtype: DType) -> u64 {
    match kind {
        ReduceKind::Max | ReduceKind::Min => extreme_unit(dtype, kind == ReduceKind::Max),
        ReduceKind::Sum | ReduceKind::Any => 0,
        ReduceKind::All => 1,
        ReduceKind::Prod => match dtype {
            DType::F32 => u64::from(1f32.to_bits()),
            DType::F64 => 1f64.to_bits(),
            _ => 1,
        },
    }
}
