//! What is chosen for a fusion before its kernels are made: the axes of the walk, what lanes are; and the kernels with what they run on.

use super::fusions::Fusion;
use crate::kernel::{Lane, Nest};
use crate::types::DType;
use crate::types::shape::{Extents, strides};

/// A kernel with what it reads and writes.
pub(super) struct Pass {
    /// The kernel and its axes.
    pub nest: Nest,
    /// Per operand: what it is, and the element with which it begins.
    pub operands: Vec<(Of, usize)>,
}

/// What an operand is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Of {
    /// What the fusion reads.
    Leaf(usize),
    /// One of its results.
    Out(usize),
    /// A temporary.
    Temporary(usize),
}

/// The axes of a walk with the strides of all operands, in elements.
#[derive(Clone)]
pub(super) struct Axes {
    /// Extents.
    pub extents: Vec<usize>,
    /// True for axes that are reduced.
    pub reduced: Vec<bool>,
    /// Per leaf, then of the result: the first element, and a stride per axis.
    pub operands: Vec<(isize, Vec<isize>)>,
}

impl Axes {
    /// The axes of a fusion, those beside each other that all operands walk as one merged.
    pub fn new(fusion: &Fusion, shapes: &[Extents], turned: &[Option<Vec<usize>>]) -> Axes {
        let rank = fusion.space.len();
        let reduces = |axis: usize| fusion.folds.as_ref().is_some_and(|folds| folds.axes.contains(&axis));
        let mut operands: Vec<(isize, Vec<isize>)> = vec![];
        for ((leaf, shape), turned) in fusion.leaves.iter().zip(shapes).zip(turned) {
            let (first, along) = match turned {
                None => leaf.view.strides(shape, rank),
                Some(perm) => {
                    let view = crate::ir::View(perm.iter().map(|&i| leaf.view.0[i]).collect());
                    view.strides(&perm.iter().map(|&i| shape[i]).collect::<Extents>(), rank)
                }
            };
            operands.push((first, along.into_vec()));
        }
        let kept: Extents = (0..rank).map(|i| if reduces(i) { 1 } else { fusion.whole[i] }).collect();
        let out: Vec<isize> = strides(&kept).iter().enumerate().map(|(i, &s)| if reduces(i) { 0 } else { s as isize }).collect();
        operands.push((out.iter().zip(&fusion.start).map(|(stride, &at)| stride * at as isize).sum(), out));
        let mut axes = Axes { extents: fusion.space.to_vec(), reduced: (0..rank).map(reduces).collect(), operands };
        axes.merge();
        axes
    }
    fn merge(&mut self) {
        for axis in (0..self.extents.len()).rev() {
            let next = axis + 1;
            let joins = next < self.extents.len() && self.reduced[axis] == self.reduced[next] && {
                let n = self.extents[next] as isize;
                self.operands.iter().all(|(_, s)| s[axis] == n * s[next])
            };
            if self.extents[axis] == 1 {
                self.remove(axis);
            } else if joins {
                self.extents[next] *= self.extents[axis];
                self.remove(axis);
            }
        }
    }
    fn remove(&mut self, axis: usize) {
        self.extents.remove(axis);
        self.reduced.remove(axis);
        self.operands.iter_mut().for_each(|(_, s)| {
            s.remove(axis);
        });
    }
    pub fn last(&self, reduced: bool) -> Option<usize> {
        (0..self.extents.len()).rev().find(|&a| self.reduced[a] == reduced)
    }
    /// The first leaf that does not lie element beside element along an axis, and is not among those that are read apart, a bit each.
    pub fn apart(&self, axis: usize, read_apart: u64) -> Option<usize> {
        let apart = |(k, (_, s)): (usize, &(isize, Vec<isize>))| !matches!(s[axis], 0 | 1) && read_apart >> k & 1 == 0;
        self.operands[..self.operands.len() - 1].iter().enumerate().position(apart)
    }
    /// True where all leaves lie element beside element along an axis, or are the same.
    pub fn even(&self, axis: usize) -> bool {
        self.operands[..self.operands.len() - 1].iter().all(|(_, s)| matches!(s[axis], 0 | 1))
    }
    /// True where the result lies element beside element along an axis, or is the same.
    pub fn beside(&self, axis: usize) -> bool {
        matches!(self.operands[self.operands.len() - 1].1[axis], 0 | 1)
    }
    /// How an operand depends on the lane, lanes being along an axis.
    pub fn lane(&self, operand: usize, axis: Option<usize>) -> Lane {
        match axis.map_or(0, |axis| self.operands[operand].1[axis]) {
            0 => Lane::Uniform,
            1 => Lane::Unit,
            n => Lane::Apart(n as i32),
        }
    }
    /// The number of places of the result.
    pub fn kept(&self) -> usize {
        (0..self.extents.len()).filter(|&a| !self.reduced[a]).map(|a| self.extents[a]).product()
    }
}

/// What lanes are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// Places of the result.
    Kept,
    /// Elements that are reduced to one.
    Reduced,
}

/// A schedule in the making.
pub(super) struct Plan<'a> {
    pub fusion: &'a Fusion,
    pub axes: &'a Axes,
    pub passes: Vec<Pass>,
    pub temporaries: Vec<(DType, usize)>,
}

impl<'a> Plan<'a> {
    /// Nothing planned yet.
    pub fn new(fusion: &'a Fusion, axes: &'a Axes) -> Plan<'a> {
        Plan { fusion, axes, passes: vec![], temporaries: vec![] }
    }
    pub fn stride(&self, operand: usize, axis: Option<usize>) -> isize {
        axis.map_or(0, |axis| self.axes.operands[operand].1[axis])
    }
    pub fn extent(&self, axis: Option<usize>) -> usize {
        axis.map_or(1, |axis| self.axes.extents[axis])
    }
    /// All axes but some, outermost first.
    pub fn others(&self, not: &[Option<usize>]) -> Vec<usize> {
        (0..self.axes.extents.len()).filter(|&a| !not.contains(&Some(a))).collect()
    }
    pub fn along_axes(&self, operand: usize, axes: &[usize]) -> Vec<isize> {
        axes.iter().map(|&a| self.axes.operands[operand].1[a]).collect()
    }
    pub fn temporary(&mut self, dtype: DType, n: usize) -> Of {
        self.temporaries.push((dtype, n));
        Of::Temporary(self.temporaries.len() - 1)
    }
    pub fn extents(&self, axes: &[usize]) -> Vec<usize> {
        axes.iter().map(|&a| self.axes.extents[a]).collect()
    }
}
