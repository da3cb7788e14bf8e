//! Long sums in the law's order: blocks of elements summed each to a temporary of its own, then the law's tree over these.

use super::copies::Kerneled;
use super::fusions::{Fold, Fusion};
use super::nodes::Lowering;
use super::pass::{Axes, By, Of, Plan};
use super::passes::{BLOCK, Loops, in_eights};
use super::value::Layout;
use super::{Lowered, refuse};
use crate::ir::Graph;
use crate::ir::op::ReduceKind;
use crate::kernel::{Lane, Reg};
use crate::ops::reduce::halved;
use crate::types::DType;

/// Blocks of the sums of one walk at most.
pub(super) const BLOCKS: usize = 256;

/// The axis that is reduced in blocks: the only one, of more elements than the law sums in one go.
pub(super) fn long(axes: &Axes, fold: Fold) -> Option<usize> {
    let mut reduced = (0..axes.extents.len()).filter(|&a| axes.reduced[a]);
    let axis = reduced.next().filter(|&a| in_eights(fold) && axes.extents[a] > BLOCK);
    axis.filter(|_| reduced.next().is_none())
}

impl Axes {
    /// So many elements of an axis from one on.
    pub fn slice(&self, axis: usize, from: usize, n: usize) -> Axes {
        let mut extents = self.extents.clone();
        extents[axis] = n;
        let operands = self.operands.iter().map(|(first, strides)| (first + from as isize * strides[axis], strides.clone())).collect();
        Axes { extents, reduced: self.reduced.clone(), operands }
    }
    /// The elements `from ..` along an axis cut into blocks of so many elements; the results of a block begin so many elements behind those
    /// of the one before. The axis of the blocks comes before their own.
    pub fn blocks(&self, axis: usize, from: usize, [blocks, n]: [usize; 2], apart: usize) -> Axes {
        let (mut extents, mut reduced) = (self.extents.clone(), self.reduced.clone());
        extents[axis] = n;
        extents.insert(axis, blocks);
        reduced.insert(axis, false);
        let last = self.operands.len() - 1;
        let cut = |(k, (first, strides)): (usize, &(isize, Vec<isize>))| {
            let (mut strides, stride) = (strides.clone(), strides[axis]);
            strides.insert(axis, if k == last { apart as isize } else { n as isize * stride });
            (first + from as isize * stride, strides)
        };
        Axes { extents, reduced, operands: self.operands.iter().enumerate().map(cut).collect() }
    }
}

impl Plan<'_> {
    /// A sum or product along an axis that is longer than a block.
    ///
    /// # Errors
    /// Where the blocks are too many, or one of them has no kernel.
    pub fn in_blocks(&mut self, fusion: &Fusion, fold: Fold, axis: usize, lanes: Option<(By, usize)>) -> Lowered<()> {
        let Fold::By(kind, dtype) = fold else { return refuse("a sum") };
        let (n, kept) = (self.axes.extents[axis], self.axes.kept());
        let (whole, rest) = (n / BLOCK, n % BLOCK);
        if n.div_ceil(BLOCK) > BLOCKS {
            return refuse("a sum of very many elements");
        }
        let sums = self.temporary(dtype, n.div_ceil(BLOCK) * kept);
        let lanes = lanes.map(|(by, a)| (by, if a >= axis { a + 1 } else { a }));
        for (from, extents) in [(0, [whole, BLOCK]), (whole, [1, rest])] {
            if extents[1] > 0 {
                let axes = self.axes.blocks(axis, from * BLOCK, extents, kept);
                let mut part = Plan::new(fusion, &axes);
                part.folded(&[fold], lanes)?;
                self.takes(part, sums, from * kept);
            }
        }
        self.summed(kind, dtype, (sums, kept), n)
    }

    /// The passes of a part, whose results are those of a temporary from an element on.
    fn takes(&mut self, part: Plan, to: Of, first: usize) {
        let before = self.temporaries.len();
        self.temporaries.extend(part.temporaries);
        for mut pass in part.passes {
            for (of, at) in &mut pass.operands {
                match *of {
                    Of::Out(_) => (*of, *at) = (to, *at + first),
                    Of::Temporary(k) => *of = Of::Temporary(before + k),
                    Of::Leaf(_) => {}
                }
            }
            self.passes.push(pass);
        }
    }

    /// The tree over the sums of the blocks of n elements.
    fn summed(&mut self, kind: ReduceKind, dtype: DType, (sums, kept): (Of, usize), n: usize) -> Lowered<()> {
        let none = Graph::new();
        let mut k = Kerneled { lowering: Lowering::new(&none, Layout::Lanes(2)), given: vec![], values: vec![] };
        let lane = if kept > 1 { Lane::Unit } else { Lane::Uniform };
        let parts: Vec<Reg> = (0..n.div_ceil(BLOCK)).map(|b| k.load((sums, (b * kept) as isize, lane, 0, vec![]), dtype)).collect();
        let value = k.halves(kind, dtype, &parts, [0, n])?;
        k.store((Of::Out(0), 0, lane, 0, vec![]), value);
        self.push(k, Loops { lanes: kept, steps: 1, first: 0, outer: vec![] }, vec![]);
        Ok(())
    }
}

impl Kerneled<'_> {
    /// Elements `lo .. hi` of a long sum from the sums of all blocks, halved as the law does.
    pub fn halves(&mut self, kind: ReduceKind, dtype: DType, blocks: &[Reg], [lo, hi]: [usize; 2]) -> Lowered<Reg> {
        if hi - lo <= BLOCK {
            return Ok(blocks[lo / BLOCK]);
        }
        let mid = halved(lo, hi);
        let (x, y) = (self.halves(kind, dtype, blocks, [lo, mid])?, self.halves(kind, dtype, blocks, [mid, hi])?);
        self.step(kind, dtype, x, y)
    }
}
