//! How a fusion is walked: which axis becomes lanes, which the steps of a kernel, which are around it, and what a reduction keeps meanwhile.
//!
//! Lanes are an axis along which every operand has its elements beside each other, or one for all; what has not is transposed before the loop
//! if it is the same in all steps, else its lanes are read apart from each other. A reduction has its lanes along an axis
//! that is kept, where there is such a one: then a step adds a row to a row of sums. Else the reduced axis itself is cut into rows
//! (`k mod 8` of the law's eight partial sums is the lane), and a last kernel reduces those.

use super::blocks::long;
use super::cost::computes_much;
use super::fusions::{Fold, Fusion};
use super::pass::{Axes, By, Pass, Plan};
use super::passes::{in_eights, ordered};
use crate::ir::NodeId;
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

/// Why a fusion has no schedule.
pub(super) enum Failure {
    /// It has one, if this node's result has memory of its own.
    Without(NodeId),
    /// It may have one, or a quicker one, if what it reduces lies in memory: the law goes along several axes as along one, and what is computed of
    /// each element has lanes then that places do not fill.
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
/// Rather than its lanes are read apart, a reduction has its lanes along its own axis if that has so many elements,
const ACROSS: usize = 32;
/// or so many, where the first of several extremes of bytes is looked for among what the lanes have found.
const ACROSS_BYTES: usize = 65;
/// Bytes from the first lane's element to the last one's, where they lie apart: machine code has them as distances.
const FAR: usize = 1 << 28;

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
        let reads = by == By::Kept && far <= FAR && leaf < 64;
        match axes.last(true).filter(|&a| by == By::Kept && axes.even(a)) {
            Some(a) if !reads || axes.extents[lanes] < WIDE || axes.extents[a] >= across(fusion, leaf) => {
                break (axes, Some((By::Reduced, a)));
            }
            _ if reads => read_apart |= 1 << leaf,
            _ => return Err(fusion.leaves[leaf].via.map_or(Failure::Never, Failure::Without)),
        }
    };
    let (axes, lanes) = axes;
    let parted = |k: &usize| fusion.leaves[*k].table.is_some() && lanes.is_some_and(|(_, lanes)| axes.operands[*k].1[lanes] != 0);
    if let Some(table) = (0..fusion.leaves.len()).find(parted) {
        return Err(fusion.leaves[table].via.map_or(Failure::Never, Failure::Without));
    }
    let by_rows = matches!(lanes, Some((By::Reduced, _)));
    let in_order = |fold: &Fold| in_eights(*fold) || by_rows && ordered(*fold);
    if fusion.folds.as_ref().is_some_and(|folds| folds.by.iter().any(in_order)) && axes.reduced.iter().filter(|&&r| r).count() > 1 {
        return Err(Failure::Apart);
    }
    let mut plan = Plan::new(fusion, &axes);
    match fusion.folds.as_ref().map(|folds| &folds.by[..]) {
        None => plan.map(lanes.map(|l| l.1))?,
        Some(folds) => match (folds, folds.iter().find_map(|fold| long(&axes, *fold))) {
            (_, Some(_)) if by_rows => plan.folded(folds, lanes)?,
            (&[fold], Some(axis)) => plan.in_blocks(fusion, fold, axis, lanes)?,
            (_, Some(_)) => return Err(Failure::Never),
            (_, None) => plan.folded(folds, lanes)?,
        },
    }
    let Plan { passes, temporaries, .. } = plan;
    let elements = axes.reduced.iter().zip(&axes.extents).filter(|(reduced, _)| **reduced).map(|(_, n)| n).product();
    if fusion.folds.is_some() && passes.iter().any(|pass| computes_much(&pass.nest, elements)) {
        return Err(Failure::Apart);
    }
    Ok(Schedule { passes, temporaries, turned })
}

/// From how many elements on a reduction of this leaf has its lanes along its own axis.
fn across(fusion: &Fusion, leaf: usize) -> usize {
    let in_order = fusion.folds.as_ref().is_some_and(|folds| folds.by.iter().any(|fold| ordered(*fold)));
    if in_order && fusion.element(leaf).size() == 1 { ACROSS_BYTES } else { ACROSS }
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
