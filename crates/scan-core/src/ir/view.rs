//! Ops that only rearrange the elements of their first input, as maps from places of the result to places of the input. Code that reads
//! elements through such a map needs no copy of them.

use crate::types::Extents;
use smallvec::SmallVec;

/// Where along one axis of an array an element lies: at `start + step · i`, i the place along axis `axis` of something that is walked over; at
/// `start` where that is `None`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Coord {
    /// The axis that is walked along.
    pub axis: Option<usize>,
    /// The first place.
    pub start: isize,
    /// From one place to the next; negative backwards.
    pub step: isize,
}

impl Coord {
    /// The place along the same axis.
    pub fn along(axis: usize) -> Coord {
        Coord { axis: Some(axis), start: 0, step: 1 }
    }
    /// Always the same place.
    pub fn at(start: isize) -> Coord {
        Coord { axis: None, start, step: 0 }
    }
}

/// One coordinate per axis of an array.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct View(pub SmallVec<[Coord; 4]>);

impl View {
    /// Every place is itself.
    pub fn identity(rank: usize) -> View {
        View((0..rank).map(Coord::along).collect())
    }
    /// An array of shape `from` broadcast to shape `to`, by NumPy's rules.
    pub fn broadcast(from: &[usize], to: &[usize]) -> View {
        let new = to.len() - from.len();
        View(from.iter().enumerate().map(|(i, &n)| if n == 1 { Coord::at(0) } else { Coord::along(new + i) }).collect())
    }
    /// An array under a shape that differs in axes of extent 1 alone; `None` where others are merged or split.
    pub fn reshaped(from: &[usize], to: &[usize]) -> Option<View> {
        let long = |shape: &[usize]| (0..shape.len()).filter(|&i| shape[i] != 1).collect::<Extents>();
        let (own, new) = (long(from), long(to));
        if !own.iter().map(|&i| from[i]).eq(new.iter().map(|&i| to[i])) {
            return None;
        }
        let mut view = View(from.iter().map(|_| Coord::at(0)).collect());
        own.iter().zip(new).for_each(|(&i, j)| view.0[i] = Coord::along(j));
        Some(view)
    }
    /// This map after another one, which leads to the places that this one begins with.
    pub fn after(&self, outer: &View) -> View {
        let through = |c: &Coord| match c.axis {
            None => *c,
            Some(axis) => {
                let Coord { axis, start, step } = outer.0[axis];
                Coord { axis, start: c.start + c.step * start, step: c.step * step }
            }
        };
        View(self.0.iter().map(through).collect())
    }
    /// The row-major position in an array of this shape of the first place, and how far it is from one place to the next along each of so
    /// many axes.
    pub fn strides(&self, shape: &[usize], axes: usize) -> (isize, SmallVec<[isize; 4]>) {
        let (mut first, mut strides) = (0, SmallVec::from_elem(0, axes));
        for (coord, size) in self.0.iter().zip(crate::types::shape::strides(shape)) {
            first += coord.start * size as isize;
            if let Some(axis) = coord.axis {
                strides[axis] += coord.step * size as isize;
            }
        }
        (first, strides)
    }
}

/// What an op sees that is asked for its view.
pub struct Viewed<'a> {
    /// Extents of its first input.
    pub from: &'a [usize],
    /// Extents of its result.
    pub to: &'a [usize],
    /// The value of an input, where it is a known integer.
    pub integer: &'a dyn Fn(usize) -> Option<i64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_follow_each_other() {
        // x of 3 × 5, transposed, then every second row from the fourth on backwards.
        let turned = View([1, 0].map(Coord::along).into_iter().collect());
        let rows = View(SmallVec::from_slice(&[Coord { axis: Some(0), start: 3, step: -2 }, Coord::along(1)]));
        let both = turned.after(&rows);
        assert_eq!(both.strides(&[3, 5], 2), (3, SmallVec::from_slice(&[-2, 5])));
        assert_eq!(View::identity(2).after(&both), both);
    }

    #[test]
    fn ones_come_and_go() {
        assert_eq!(View::reshaped(&[2, 1, 3], &[2, 3, 1]).map(|v| v.strides(&[2, 1, 3], 3)), Some((0, SmallVec::from_slice(&[3, 1, 0]))));
        assert_eq!(View::reshaped(&[2, 3], &[6]), None);
        assert_eq!(View::broadcast(&[1, 3], &[4, 2, 3]).strides(&[1, 3], 3), (0, SmallVec::from_slice(&[0, 0, 1])));
    }
}
