//! Sums and products whose lanes are elements that become one: eight partial ones of each of the law's blocks, carried by walks that take
//! several blocks, places and sums at once, then the law's tree.

use super::blocks::BLOCKS;
use super::copies::{Copies, Kerneled};
use super::fusions::Fold;
use super::nodes::Lowering;
use super::pass::{Axes, Of, Plan};
use super::passes::{BLOCK, Loops, unit};
use super::value::Layout;
use super::{Lowered, refuse};
use crate::ir::Graph;
use crate::ir::op::ReduceKind;
use crate::kernel::{Fill, Lane, Reg};
use crate::types::DType;

/// Partial sums of a block.
const ROW: usize = 8;
/// Rows of partial sums that a walk carries: additions to one row wait for each other, and all rows should find room in registers.
const CARRIED: usize = 8;
/// Rows of partial sums that belong to one sum.
const BESIDE: usize = 4;
/// Partial sums that one kernel loads at most.
const LOADED: usize = 128;

/// A sum, or product, with its partial ones: a row for each block of each place of the result.
struct Partial {
    kind: ReduceKind,
    dtype: DType,
    rows: Of,
}

/// What is walked over, and the axis whose elements are summed.
struct Part {
    axes: Axes,
    lanes: usize,
}

impl Part {
    /// So many blocks of an axis from one on, the rows of a place's blocks lying side by side.
    fn new(axes: &Axes, lanes: usize, first: usize, [count, size]: [usize; 2]) -> Part {
        let blocks = axes.extents[lanes].div_ceil(BLOCK) as isize;
        let mut wide = axes.clone();
        let out = wide.operands.len() - 1;
        wide.operands[out].1.iter_mut().for_each(|stride| *stride *= blocks);
        let mut part = match count {
            1 => Part { axes: wide.slice(lanes, first * BLOCK, size), lanes },
            _ => Part { axes: wide.blocks(lanes, first * BLOCK, [count, size], 1), lanes: lanes + 1 },
        };
        part.axes.operands[out].0 += first as isize;
        part
    }
    /// The places that a walk takes at once, so many of an axis from one on: the axis that they are along then, if they are not one.
    fn beside(&self, axis: usize, from: usize, [groups, copies]: [usize; 2]) -> (Part, usize) {
        let out = self.axes.operands.len() - 1;
        let apart = self.axes.operands[out].1[axis].unsigned_abs();
        match groups {
            1 => (Part { axes: self.axes.slice(axis, from, copies), lanes: self.lanes }, axis),
            _ => {
                let lanes = self.lanes + usize::from(self.lanes > axis);
                (Part { axes: self.axes.blocks(axis, from, [groups, copies], copies * apart), lanes }, axis + 1)
            }
        }
    }
}

/// How many of n places a walk takes at once: few walks, that carry as much as they may.
fn copies(n: usize, sums: usize) -> usize {
    let most = (CARRIED / sums).clamp(1, BESIDE);
    (most.div_ceil(2)..=most).rev().find(|c| n.is_multiple_of(*c)).unwrap_or(most)
}

impl Plan<'_> {
    /// Sums and products along one axis.
    ///
    /// # Errors
    /// Where they are too many, or of too many elements.
    pub fn sums(&mut self, folds: &[Fold], lanes: usize) -> Lowered<()> {
        let (n, kept) = (self.axes.extents[lanes], self.axes.kept());
        let blocks = n.div_ceil(BLOCK);
        if self.axes.reduced.iter().filter(|&&r| r).count() > 1 || folds.len() > CARRIED || blocks * folds.len() > BLOCKS {
            return refuse("a sum of many elements in the law's order");
        }
        let partial = |&fold: &Fold| {
            let Fold::By(kind, dtype) = fold else { return refuse("a sum") };
            Ok(Partial { kind, dtype, rows: self.temporary(dtype, kept * blocks * ROW) })
        };
        let partials: Vec<Partial> = folds.iter().map(partial).collect::<Lowered<_>>()?;
        let mut filled = kept * blocks * ROW;
        for (first, [count, size]) in [(0, [n / BLOCK, BLOCK]), (n / BLOCK, [1, n % BLOCK])] {
            if count * size == 0 {
                continue;
            }
            let part = Part::new(self.axes, lanes, first, [count, size]);
            for (from, width, steps) in [(0, ROW, size / ROW), (size / ROW * ROW, size % ROW, 1)] {
                if width * steps > 0 {
                    self.walked(&part, &partials, (from, width, steps), std::mem::take(&mut filled))?;
                }
            }
        }
        self.total(&partials, kept, n)
    }

    /// Elements `from ..` of each block into its partial sums, so many of them at each step, several blocks or places at once.
    fn walked(&mut self, part: &Part, partials: &[Partial], elements: (usize, usize, usize), mut filled: usize) -> Lowered<()> {
        let axes = &part.axes;
        let Some(axis) = (0..axes.extents.len()).rev().find(|&a| !axes.reduced[a] && axes.extents[a] > 1) else {
            return self.rows_of(part, None, partials, elements, filled);
        };
        let n = axes.extents[axis];
        let copies = copies(n, partials.len());
        for (from, groups, copies) in [(0, n / copies, copies), (n / copies * copies, 1, n % copies)] {
            if groups * copies > 0 {
                let (beside, along) = part.beside(axis, from, [groups, copies]);
                self.rows_of(&beside, Some(along), partials, elements, std::mem::take(&mut filled))?;
            }
        }
        Ok(())
    }

    fn rows_of(
        &mut self,
        part: &Part,
        copied: Option<usize>,
        partials: &[Partial],
        (from, width, steps): (usize, usize, usize),
        filled: usize,
    ) -> Lowered<()> {
        let plan = Plan::new(self.fusion, &part.axes);
        let (out, row) = (part.axes.operands.len() - 1, ROW as isize);
        let outer = plan.others(&[Some(part.lanes), copied]);
        let along: Vec<isize> = plan.along_axes(out, &outer).iter().map(|stride| stride * row).collect();
        let copies = Copies::cut(self.fusion, &part.axes, (part.lanes, from), copied)?;
        let mut k = copies.lower_by(&plan, |operand| plan.stride(operand, Some(part.lanes)) * row, &outer)?;
        let mut fills = vec![];
        for (i, value) in k.values.clone().into_iter().enumerate() {
            let (copy, &Partial { kind, dtype, rows }) = (i / partials.len(), &partials[i % partials.len()]);
            let first = part.axes.operands[out].0 + copy as isize * plan.stride(out, copied);
            let (operand, carry, now) = k.carry((rows, first * row, Lane::Unit, 0, along.clone()), dtype);
            let next = k.step(kind, dtype, now, value)?;
            k.lowering.builder.set_next(carry, next);
            if copy == 0 && filled > 0 {
                fills.push(Fill { operand, bits: unit(kind, dtype), count: filled });
            }
        }
        let loops = Loops { lanes: width, steps, first: (from / ROW) as i64, outer: plan.extents(&outer) };
        self.push(k, loops, fills);
        Ok(())
    }

    /// The sums of n elements each from the partial ones.
    fn total(&mut self, partials: &[Partial], kept: usize, n: usize) -> Lowered<()> {
        let blocks = n.div_ceil(BLOCK);
        if ROW * blocks * partials.len() <= LOADED {
            let results = (0..partials.len()).map(Of::Out).collect::<Vec<_>>();
            return self.each(kept, partials, &results, |k, partial, _| {
                let trees = (0..blocks).map(|b| k.block(partial, b * ROW, blocks)).collect::<Lowered<Vec<_>>>()?;
                k.halves(partial.kind, partial.dtype, &trees, [0, n])
            });
        }
        let sums: Vec<Of> = partials.iter().map(|partial| self.temporary(partial.dtype, kept * blocks)).collect();
        self.each(kept * blocks, partials, &sums, |k, partial, _| k.block(partial, 0, 1))?;
        let results = (0..partials.len()).map(Of::Out).collect::<Vec<_>>();
        self.each(kept, partials, &results, |k, partial, i| {
            let of_block = |b: usize| k.load((sums[i], b as isize, Lane::Uniform, blocks as isize, vec![]), partial.dtype);
            let all: Vec<Reg> = (0..blocks).map(of_block).collect();
            k.halves(partial.kind, partial.dtype, &all, [0, n])
        })
    }

    /// A walk of so many steps with a result of each sum, one after the other.
    fn each(
        &mut self,
        steps: usize,
        partials: &[Partial],
        results: &[Of],
        mut value: impl FnMut(&mut Kerneled, &Partial, usize) -> Lowered<Reg>,
    ) -> Lowered<()> {
        let none = Graph::new();
        let mut k = Kerneled { lowering: Lowering::new(&none, Layout::Lanes(2)), given: vec![], values: vec![] };
        let made = partials.iter().enumerate().map(|(i, partial)| value(&mut k, partial, i)).collect::<Lowered<Vec<Reg>>>()?;
        for (&result, value) in results.iter().zip(made) {
            k.store((result, 0, Lane::Uniform, 1, vec![]), value);
        }
        self.push(k, Loops { lanes: 1, steps, first: 0, outer: vec![] }, vec![]);
        Ok(())
    }
}

impl Kerneled<'_> {
    /// The sum of a block, whose partial sums begin with this one at the first step, and so many rows behind at the next.
    fn block(&mut self, partial: &Partial, first: usize, rows: usize) -> Lowered<Reg> {
        let at = |i: usize| (partial.rows, (first + i) as isize, Lane::Uniform, (rows * ROW) as isize, vec![]);
        let parts: [Reg; ROW] = std::array::from_fn(|i| self.load(at(i), partial.dtype));
        self.tree(partial.kind, partial.dtype, &parts)
    }
}
