//! Rows of memory for random kernels.

use super::super::interp::Operand;

/// Rows in one memory, of which row `t + r` (counted backwards where the stride is negative) is row r of step t.
pub(super) struct Rows {
    /// Which memory.
    pub memory: usize,
    /// Bytes before the first row.
    pub lead: usize,
    /// Bytes from a row to the next.
    pub bytes: usize,
    /// The number of the last row.
    pub last: usize,
    /// Bytes from a step to the next.
    pub stride: isize,
}

impl Rows {
    /// A row as an operand.
    pub fn operand(&self, row: usize) -> Operand {
        let place = if self.stride < 0 { self.last - row } else { row };
        Operand { memory: self.memory, offset: self.lead + place * self.bytes, stride: self.stride }
    }
    /// So many bytes behind it.
    pub fn behind(&self, row: usize, bytes: usize) -> Operand {
        let operand = self.operand(row);
        Operand { offset: operand.offset + bytes, ..operand }
    }
}
