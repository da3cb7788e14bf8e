//! How a fusion is walked: which axis becomes lanes, which the steps of a kernel, which are around it, and what a reduction keeps meanwhile.
//!
//! Lanes are an axis along which every operand has its elements beside each other, or one for all; what has not is transposed before the loop
//! if it is the same in all steps, else its lanes are read apart from each other. A reduction has its lanes along an axis
//! that is kept, where there is such a one: then a step adds a row to a row of sums. Else the reduced axis itself is cut into rows
//! (`k mod 8` of the law's eight partial sums is the lane), and a last kernel reduces those.

use super::blocks::long;
use super::fusions::{Fold, Fusion};
use super::passes::{Plan, in_eights, ordered};
use crate::ir::NodeId;
use crate::kernel::{Lane, Nest};
use crate::types::DType;
use crate::types::shape::{Extents, strides};

/// Kernels that compute a fusion, one after the other.
pub(super) struct Schedule {
    /// The kernels.
    pub passes: Vec<Pass>,
    /// Memory that they need meanwhile: dtype and number of elements.
    pub temporaries: Vec<(DType, usize)>,
    /// Per leaf: the permutation under which it is read, where it is better transposed before the loop.
    pub turned: Vec<Option<Vec<usize>>>,
}

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

/// Why a fusion has no schedule.
pub(super) enum Failure {
    /// It has one, if this node's result has memory of its own.
    Without(NodeId),
    /// It may have one, if what it reduces lies in memory: the law goes along several axes as along one.
    Apart,
    /// It has one, if a part of what it computes lies in memory: it reads too many arrays.
    Wide,
    /// No kernel can compute it.
    Never,
}

impl From<super::Refusal> for Failure {
    fn from(_: super::Refusal) -> Failure {
        Failure::Never
    }
}

/// From so many elements on a kept axis is worth being the lanes.
const WIDE: usize = 8;
/// Rather than its lanes are read apart, a reduction has its lanes along its own axis if that has so many elements.
const ACROSS: usize = 32;
/// Bytes from the first lane's element to the last one's, where they lie apart: machine code has them as distances.
const FAR: usize = 1 << 28;

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
    fn new(fusion: &Fusion, shapes: &[Extents], turned: &[Option<Vec<usize>>]) -> Axes {
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
    fn last(&self, reduced: bool) -> Option<usize> {
        (0..self.extents.len()).rev().find(|&a| self.reduced[a] == reduced)
    }
    /// The first leaf that does not lie element beside element along an axis, and is not among those that are read apart, a bit each.
    fn apart(&self, axis: usize, read_apart: u64) -> Option<usize> {
        let apart = |(k, (_, s)): (usize, &(isize, Vec<isize>))| !matches!(s[axis], 0 | 1) && read_apart >> k & 1 == 0;
        self.operands[..self.operands.len() - 1].iter().enumerate().position(apart)
    }
    /// True where all leaves lie element beside element along an axis, or are the same.
    fn even(&self, axis: usize) -> bool {
        self.operands[..self.operands.len() - 1].iter().all(|(_, s)| matches!(s[axis], 0 | 1))
    }
    /// True where the result lies element beside element along an axis, or is the same.
    fn beside(&self, axis: usize) -> bool {
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

/// Plans a fusion whose leaves have these shapes; `steady` holds per leaf whether it is the same in all steps, so that it may be transposed
/// before the loop.
///
/// # Errors
/// What stands in the way.
pub(super) fn schedule(fusion: &Fusion, shapes: &[Extents], steady: &[bool]) -> Result<Schedule, Failure> {
    let mut turned: Vec<Option<Vec<usize>>> = vec![None; fusion.leaves.len()];
    let mut read_apart = 0;
    let axes = loop {
        let axes = Axes::new(fusion, shapes, &turned);
        let Some((by, lanes)) = chosen(fusion, &axes, read_apart).filter(|(_, lanes)| axes.beside(*lanes)) else { break (axes, None) };
        let Some(leaf) = axes.apart(lanes, read_apart) else { break (axes, Some((by, lanes))) };
        if let Some(perm) = turn(fusion, &shapes[leaf], &axes, leaf, lanes).filter(|_| steady[leaf] && turned[leaf].is_none()) {
            turned[leaf] = Some(perm);
            continue;
        }
        let far = axes.operands[leaf].1[lanes].unsigned_abs().saturating_mul(8 * axes.extents[lanes]);
        let reads = by == By::Kept && far <= FAR && leaf < 64 && fusion.element(leaf).size() >= 4;
        match axes.last(true).filter(|&a| by == By::Kept && axes.even(a)) {
            Some(a) if !reads || axes.extents[lanes] < WIDE || axes.extents[a] >= ACROSS => break (axes, Some((By::Reduced, a))),
            _ if reads => read_apart |= 1 << leaf,
            _ => return Err(fusion.leaves[leaf].via.map_or(Failure::Never, Failure::Without)),
        }
    };
    let (axes, lanes) = axes;
    let parted = |k: &usize| fusion.leaves[*k].table.is_some() && lanes.is_some_and(|(_, lanes)| axes.operands[*k].1[lanes] != 0);
    if let Some(table) = (0..fusion.leaves.len()).find(parted) {
        return Err(fusion.leaves[table].via.map_or(Failure::Never, Failure::Without));
    }
    let across = matches!(lanes, Some((By::Reduced, _)));
    let in_order = |fold: &Fold| in_eights(*fold) || across && ordered(*fold);
    if fusion.folds.as_ref().is_some_and(|folds| folds.by.iter().any(in_order)) && axes.reduced.iter().filter(|&&r| r).count() > 1 {
        return Err(Failure::Apart);
    }
    let mut plan = Plan::new(fusion, &axes);
    match fusion.folds.as_ref().map(|folds| &folds.by[..]) {
        None => plan.map(lanes.map(|l| l.1))?,
        Some(folds) => match (folds, folds.iter().find_map(|fold| long(&axes, *fold))) {
            (_, Some(_)) if across => plan.folded(folds, lanes)?,
            (&[fold], Some(axis)) => plan.in_blocks(fusion, fold, axis, lanes)?,
            (_, Some(_)) => return Err(Failure::Never),
            (_, None) => plan.folded(folds, lanes)?,
        },
    }
    let Plan { passes, temporaries, .. } = plan;
    Ok(Schedule { passes, temporaries, turned })
}

/// What lanes are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// Places of the result.
    Kept,
    /// Elements that are reduced to one.
    Reduced,
}

/// The axis that had best be the lanes.
fn chosen(fusion: &Fusion, axes: &Axes, read_apart: u64) -> Option<(By, usize)> {
    let (kept, reduced) = (axes.last(false), axes.last(true));
    match (kept, reduced) {
        (Some(k), _) if fusion.folds.is_none() => Some((By::Kept, k)),
        (Some(k), Some(r)) if axes.extents[k] < WIDE && axes.apart(r, read_apart).is_none() && axes.extents[r] > axes.extents[k] => {
            Some((By::Reduced, r))
        }
        (Some(k), _) => Some((By::Kept, k)),
        (None, Some(r)) => Some((By::Reduced, r)),
        (None, None) => None,
    }
}

/// The permutation of a leaf that has its elements beside each other along an axis of the walk.
fn turn(fusion: &Fusion, shape: &[usize], axes: &Axes, leaf: usize, lanes: usize) -> Option<Vec<usize>> {
    let view = &fusion.leaves[leaf].view;
    let sizes = strides(shape);
    let wanted = axes.operands[leaf].1[lanes];
    let own = (0..shape.len()).find(|&i| shape[i] > 1 && view.0[i].axis.is_some() && view.0[i].step * sizes[i] as isize == wanted)?;
    (view.0[own].step == 1).then(|| (0..shape.len()).filter(|&i| i != own).chain([own]).collect())
}
