//! Operands of parts that loops run again and again: where they lie at each step of these.

use super::code::Operand;
use crate::kernel::LEVELS;

/// Which step each of these loops is at, outermost first; 0 where there is none.
pub type Steps = [usize; LEVELS];

/// How far what moves by these strides has moved at these steps.
#[inline]
pub(super) fn moved(strides: &[isize; LEVELS], steps: &Steps) -> isize {
    strides.iter().zip(steps).map(|(&stride, &k)| stride * k as isize).sum()
}

/// An operand at the first steps, and how it goes on.
#[derive(Clone, Copy)]
pub struct Spot<'a> {
    first: Operand<'a>,
    /// Bytes from one step of each loop to the next.
    strides: [isize; LEVELS],
}

impl<'a> Spot<'a> {
    /// An operand that moves by its own stride with the outermost loop, and by these with the loops inside.
    #[inline]
    pub fn new(first: Operand<'a>, inner: [isize; LEVELS - 1]) -> Spot<'a> {
        Spot { first, strides: [first.stride, inner[0], inner[1]] }
    }
    /// Where it lies at these steps.
    #[inline]
    pub fn at(&self, steps: &Steps) -> Operand<'a> {
        Operand { offset: (self.first.offset as isize + moved(&self.strides, steps)) as usize, ..self.first }
    }
    /// True where it moves by these. One after the other: where they have just been written they cannot be read as a vector.
    #[inline]
    pub(super) fn moves_by(&self, strides: &[isize; LEVELS]) -> bool {
        let [a, b, c] = self.strides;
        a == strides[0] && b == strides[1] && c == strides[2]
    }
    /// At the first steps.
    #[inline]
    pub(super) fn first(&self) -> &Operand<'a> {
        &self.first
    }
    /// Bytes from one step of each loop to the next.
    pub(super) fn strides(&self) -> &[isize; LEVELS] {
        &self.strides
    }
}
