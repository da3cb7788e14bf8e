//! Arrays that are put together of others along an axis, read by fusions where they lie: what is walked over is cut where one piece ends
//! and the next begins.

use super::extents::{DEEP, known, known_shape};
use crate::ir::op::{Index, IndexWrite, Write};
use crate::ir::{Coord, Graph, Node, Op, Value, View, Viewed};
use crate::ops::select::Selector;
use crate::types::shape::count;
use crate::types::{Array, DType, Extents};
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// Pieces of fewer elements each are copied: the call of a kernel costs more.
const ELEMENTS: usize = 16;

/// How an array is put together.
pub(super) enum Pieces {
    /// Of the inputs, along an axis: where each begins, and where the last one ends.
    Joined { axis: usize, starts: SmallVec<[usize; 4]>, rank: usize },
    /// Of the first input, and within a range of places along each axis of the second, or of the sum of both.
    Written { starts: Extents, ends: Extents, view: View, mode: Write },
}

/// What is read of what is put together.
pub(super) enum Piece {
    /// An input, by its number, where the places of the whole lie in it.
    Of(usize, View),
    /// The sum of the first two inputs, the second read by way of this.
    Sum(View),
}

impl Pieces {
    /// Those of a node's result; `None` where it is not put together, or of little.
    pub fn of(body: &Graph, node: &Node) -> Option<Pieces> {
        match &node.op {
            Op::Join(join) => Pieces::joined(body, node, join.axis),
            Op::IndexWrite(write) => Pieces::written(body, node, write),
            _ => None,
        }
    }
    fn joined(body: &Graph, node: &Node, axis: usize) -> Option<Pieces> {
        let (shape, dtype) = (known_shape(body, node.outs[0]).ok()?, body.ty(node.outs[0]).dtype);
        let mut starts: SmallVec<[usize; 4]> = SmallVec::from_slice(&[0]);
        for &v in &node.ins {
            let end = starts[starts.len() - 1] + known_shape(body, v).ok()?[axis];
            starts.push(end);
        }
        let alike = node.ins.iter().all(|&v| body.ty(v).dtype == dtype);
        (alike && count(&shape) >= ELEMENTS * node.ins.len()).then_some(Pieces::Joined { axis, starts, rank: shape.len() })
    }
    /// Those of a write of places side by side that are known and not few: few are better written over a copy.
    fn written(body: &Graph, node: &Node, write: &IndexWrite) -> Option<Pieces> {
        let (shape, given) = (known_shape(body, node.outs[0]).ok()?, known_shape(body, node.ins[1]).ok()?);
        let dtype = body.ty(node.outs[0]).dtype;
        let alike = node.ins[..2].iter().all(|&v| body.ty(v).dtype == dtype) && (write.mode == Write::Set || dtype != DType::Bool);
        let index = Op::Index(Index { pattern: write.pattern.clone() });
        let integer = |k: usize| known(body, *node.ins.get(k + 1)?, DEEP)?.item_i64();
        let idxs: Vec<i64> = (1..node.ins.len() - 1).map(integer).collect::<Option<_>>()?;
        let selected = Selector::of(&index)?.select(&shape, &|k| idxs[k], &|k| Array::scalar(idxs[k])).ok()?.shape();
        let from = index.def().view(&Viewed { from: &shape, to: &selected, integer: &integer })?;
        let mut place: SmallVec<[Coord; 4]> = selected.iter().map(|_| Coord::at(0)).collect();
        let (mut starts, mut ends) = (Extents::new(), Extents::new());
        for (axis, coord) in from.0.iter().enumerate() {
            let len = coord.axis.map_or(1, |a| selected[a]);
            if coord.step != 1 && len != 1 {
                return None;
            }
            if let Some(own) = coord.axis {
                place[own] = Coord { axis: Some(axis), start: -coord.start, step: 1 };
            }
            starts.push(usize::try_from(coord.start).ok()?);
            ends.push(starts[axis] + len);
        }
        let fits = given.len() <= selected.len() && given.iter().rev().zip(selected.iter().rev()).all(|(g, s)| g == s || *g == 1);
        let many = 2 * count(&selected) >= count(&shape) || uniform(body, node.ins[0]);
        if !alike || !fits || !many || count(&selected) == 0 || count(&shape) < 3 * ELEMENTS {
            return None;
        }
        let view = View::broadcast(&given, &selected).after(&View(place));
        Some(Pieces::Written { starts, ends, view, mode: write.mode })
    }
    /// How many inputs are read, with the places of the whole in each.
    pub fn views(&self) -> Vec<View> {
        match self {
            Pieces::Joined { starts, .. } => (0..starts.len() - 1).map(|k| self.shifted(k)).collect(),
            Pieces::Written { starts, view, .. } => vec![View::identity(starts.len()), view.clone()],
        }
    }
    /// True for what is put together of whole inputs.
    pub fn is_joined(&self) -> bool {
        matches!(self, Pieces::Joined { .. })
    }
    /// The piece that holds all places that are walked over, by way of a view; else the axis of the walk and the first place along it that
    /// lies in another piece than the first.
    pub fn holding(&self, at: &View, space: &[usize]) -> Result<Piece, (usize, usize)> {
        match self {
            Pieces::Joined { axis, starts, .. } => {
                let coord = &at.0[*axis];
                let piece = starts[1..].iter().position(|&end| coord.start < end as isize).unwrap_or(starts.len() - 2);
                let range = [starts[piece] as isize, starts[piece + 1] as isize];
                leaves(coord, space, range).map_or_else(|| Ok(Piece::Of(piece, self.shifted(piece))), Err)
            }
            Pieces::Written { starts, ends, view, mode } => {
                let mut cut = Ok(());
                for (coord, (&start, &end)) in at.0.iter().zip(starts.iter().zip(ends)) {
                    let (start, end) = (start as isize, end as isize);
                    let (inside, range) = match coord.start {
                        before if before < start => (false, [0, start]),
                        behind if behind >= end => (false, [end, isize::MAX / 4]),
                        _ => (true, [start, end]),
                    };
                    match leaves(coord, space, range) {
                        None if !inside => return Ok(Piece::Of(0, View::identity(starts.len()))),
                        None => {}
                        Some(at) => cut = cut.and(Err(at)),
                    }
                }
                cut.map(|()| match mode {
                    Write::Set => Piece::Of(1, view.clone()),
                    Write::Inc => Piece::Sum(view.clone()),
                })
            }
        }
    }
    /// The axes of a walk, and the places along them, at which its elements begin to be those of another piece.
    pub fn cuts(&self, at: &View, space: &[usize]) -> Vec<(usize, usize)> {
        let along = |coord: &Coord, ends: &[usize]| -> SmallVec<[(usize, usize); 4]> {
            let before = |end: isize| if coord.step > 0 { coord.start < end } else { coord.start >= end };
            let ends = ends.iter().map(|&end| end as isize).filter(|&end| before(end));
            ends.filter_map(|end| leaves(coord, space, [end, end])).collect()
        };
        match self {
            Pieces::Joined { axis, starts, .. } => along(&at.0[*axis], &starts[1..starts.len() - 1]).into_vec(),
            Pieces::Written { starts, ends, .. } => {
                let pairs = starts.iter().zip(ends);
                at.0.iter().zip(pairs).flat_map(|(coord, (&start, &end))| along(coord, &[start, end])).collect()
            }
        }
    }
    fn shifted(&self, piece: usize) -> View {
        let Pieces::Joined { axis, starts, rank } = self else { return View::default() };
        let mut view = View::identity(*rank);
        view.0[*axis].start = -(starts[piece] as isize);
        view
    }
}

/// A fusion of more parts has an array copied instead that is put together: of more than the first where they have fewer elements each than
/// the second, since a part takes as long to start as such a copy, and each is compiled.
const PARTS: usize = 32;
const FEW_PARTS: usize = 9;
const PART: usize = 512;

/// True where a walk over so much falls into too many parts.
pub(super) fn too_many(parts: usize, whole: &[usize]) -> bool {
    parts > PARTS || parts > FEW_PARTS && count(whole) < parts * PART
}

/// The places along the last axis of a walk that lie between two of its cuts, in order; none for a single place.
pub(super) fn segments(space: &[usize], cuts: &BTreeSet<(usize, usize)>) -> SmallVec<[usize; 4]> {
    let Some((axis, &n)) = space.iter().enumerate().next_back() else { return SmallVec::new() };
    let mut begin = 0;
    let ends = cuts.iter().filter(|cut| cut.0 == axis).map(|cut| cut.1).chain([n]);
    ends.map(|end| end - std::mem::replace(&mut begin, end)).collect()
}

/// The axis of the walk and the first place along it where a coordinate leaves the range that it begins in.
fn leaves(coord: &Coord, space: &[usize], [low, high]: [isize; 2]) -> Option<(usize, usize)> {
    let axis = coord.axis?;
    let walked = match coord.step {
        0 => return None,
        step if step > 0 => (high - coord.start + step - 1) / step,
        step => (coord.start - low) / -step + 1,
    };
    (walked < space[axis] as isize).then_some((axis, walked as usize))
}

/// True for one number, everywhere.
fn uniform(body: &Graph, v: Value) -> bool {
    let node = body.node_of(v).filter(|n| matches!(n.op, Op::BroadcastTo(_) | Op::BroadcastLike(_)));
    node.is_some_and(|n| known_shape(body, n.ins[0]).is_ok_and(|shape| count(&shape) == 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_cut_where_pieces_end() {
        let pieces = Pieces::Joined { axis: 0, starts: SmallVec::from_slice(&[0, 3, 3, 8]), rank: 1 };
        let holding = |start, step, n| {
            let at = View(SmallVec::from_slice(&[Coord { axis: Some(0), start, step }]));
            pieces.holding(&at, &[n]).map(|piece| if let Piece::Of(k, view) = piece { (k, view.0[0].start) } else { (9, 0) })
        };
        assert_eq!(holding(0, 1, 3), Ok((0, 0)));
        assert_eq!(holding(0, 1, 8), Err((0, 3)));
        assert_eq!(holding(3, 1, 5), Ok((2, -3)));
        assert_eq!(holding(7, -2, 4), Err((0, 3)));
    }

    #[test]
    fn what_lies_outside_along_one_axis_needs_no_cut_along_others() {
        let two = |a, b| Extents::from_slice(&[a, b]);
        let pieces = Pieces::Written { starts: two(1, 2), ends: two(4, 6), view: View::identity(2), mode: Write::Inc };
        let holding = |row: isize, space: [usize; 2]| {
            let mut at = View::identity(2);
            at.0[0].start = row;
            pieces.holding(&at, &space).map(|piece| matches!(piece, Piece::Sum(_)))
        };
        assert_eq!(holding(0, [1, 8]), Ok(false));
        assert_eq!(holding(1, [3, 8]), Err((1, 2)));
        assert_eq!(holding(0, [5, 8]), Err((0, 1)));
    }
}
