//! Rows in a caller's memory, as bytes.

use crate::backend::cpu::{Operand, bytes_of, cells_of, copy};
use crate::types::{Row, RowMut};

macro_rules! each {
    ($of:ident, $row:expr, $x:ident => $body:expr) => {
        match $row {
            $of::Bool($x) => $body,
            $of::I8($x) => $body,
            $of::I16($x) => $body,
            $of::I32($x) => $body,
            $of::I64($x) => $body,
            $of::U8($x) => $body,
            $of::U16($x) => $body,
            $of::U32($x) => $body,
            $of::U64($x) => $body,
            $of::F32($x) => $body,
            $of::F64($x) => $body,
        }
    };
}

impl Row<'_> {
    /// The elements as bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        each!(Row, self, row => bytes_of(row))
    }
}

impl RowMut<'_> {
    /// Takes over the bytes of as many elements of this type.
    pub(super) fn copy_from(&mut self, from: &[u8]) {
        self.put(0, from);
    }
    /// Takes over the bytes of elements of this type, from byte `at` on.
    pub(super) fn put(&mut self, at: usize, from: &[u8]) {
        let to = each!(RowMut, self, row => cells_of(row));
        copy(&Operand::reading(from), &Operand::writing(&to[at..]), from.len());
    }
}
