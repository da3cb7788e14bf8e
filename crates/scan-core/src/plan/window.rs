//! How a loop keeps a state.
//!
//! Before step i the window of a state holds rows `i .. i + span` of its buffer; row `i + span` enters from memory, where the step
//! can see it. After the step the rows move on by one, and row `i + w` (w the least offset written) is final.

use crate::types::DType;
use crate::types::shape::{Extents, count};

/// How a loop keeps a state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Window {
    /// Extents of a row.
    pub shape: Extents,
    /// Type of its elements.
    pub dtype: DType,
    /// The largest offset.
    pub span: usize,
    /// The least offset written: rows before are final.
    pub first_write: usize,
    /// True where rows are written to a buffer.
    pub stored: bool,
    /// True where a step sees a row that it, or an earlier step, has not written: the buffer then holds the initial rows.
    pub entering: bool,
    /// True per offset below the span whose row is handed on.
    pub carried: Vec<bool>,
    /// Offsets whose rows, stored long before, are read where they are.
    pub far: Vec<usize>,
}

impl Window {
    /// Bytes of one row.
    pub fn row_bytes(&self) -> usize {
        count(&self.shape).saturating_mul(self.dtype.size())
    }
    /// A kernel that is run for more steps at a time would read rows that it has stored itself.
    pub fn limit(&self) -> Option<usize> {
        self.far.iter().map(|j| self.span - j).min()
    }
    /// Offsets of the rows that are handed on.
    pub fn carried_offsets(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.span).filter(|&j| self.carried[j])
    }
}
