//! Arrays that are put together of others along an axis, read by fusions where they lie: what is walked over is cut where one piece ends
//! and the next begins.

use super::scan::known_shape;
use crate::ir::{Coord, Graph, Node, Op, View};
use crate::types::shape::count;
use smallvec::SmallVec;

/// Pieces of fewer elements each are copied: the call of a kernel costs more.
const ELEMENTS: usize = 16;

/// How an array is put together.
pub(super) struct Pieces {
    /// Along which axis.
    pub axis: usize,
    /// Where each begins, and where the last one ends.
    starts: SmallVec<[usize; 4]>,
    rank: usize,
}

impl Pieces {
    /// Those of a node's result, its inputs; `None` where it is not put together, or of little.
    pub fn of(body: &Graph, node: &Node) -> Option<Pieces> {
        let Op::Join(join) = &node.op else { return None };
        let (shape, dtype) = (known_shape(body, node.outs[0]).ok()?, body.ty(node.outs[0]).dtype);
        let mut starts: SmallVec<[usize; 4]> = SmallVec::from_slice(&[0]);
        for &v in &node.ins {
            let end = starts[starts.len() - 1] + known_shape(body, v).ok()?[join.axis];
            starts.push(end);
        }
        let alike = node.ins.iter().all(|&v| body.ty(v).dtype == dtype);
        (alike && count(&shape) >= ELEMENTS * node.ins.len()).then_some(Pieces { axis: join.axis, starts, rank: shape.len() })
    }
    /// The piece that holds all places of a coordinate of which `extent` are walked; else the first place walked that lies in another piece
    /// than the first.
    pub fn holding(&self, coord: &Coord, extent: usize) -> Result<usize, usize> {
        let of = |walked: usize| {
            let place = coord.start + coord.step * walked as isize;
            self.starts[1..].iter().position(|&end| place < end as isize).unwrap_or(self.starts.len() - 2)
        };
        let first = of(0);
        match (1..extent).find(|&walked| of(walked) != first) {
            None => Ok(first),
            Some(other) => Err(other),
        }
    }
    /// Where the places of the whole lie in a piece.
    pub fn view(&self, piece: usize) -> View {
        let mut view = View::identity(self.rank);
        view.0[self.axis].start = -(self.starts[piece] as isize);
        view
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_cut_where_pieces_end() {
        let pieces = Pieces { axis: 0, starts: SmallVec::from_slice(&[0, 3, 3, 8]), rank: 1 };
        let along = |start, step| Coord { axis: Some(0), start, step };
        assert_eq!(pieces.holding(&along(0, 1), 3), Ok(0));
        assert_eq!(pieces.holding(&along(0, 1), 8), Err(3));
        assert_eq!(pieces.holding(&along(3, 1), 5), Ok(2));
        assert_eq!(pieces.holding(&along(7, -2), 4), Err(3));
        assert_eq!(pieces.holding(&Coord::at(4), 1), Ok(2));
        assert_eq!(pieces.view(2).0[0].start, -3);
    }
}
