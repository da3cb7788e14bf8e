//! Rows in a caller's memory.

use crate::backend::cpu::{Operand, bytes_of, cells_of, copy};
use crate::types::{Array, DType};

macro_rules! rows {
    ($($name:ident $t:ty),+) => {
        /// The elements of a row of a sequence, in row-major order.
        #[derive(Clone, Copy, Debug)]
        pub enum Row<'a> {
            $(#[doc = concat!("Of `", stringify!($t), "`.")] $name(&'a [$t])),+
        }
        /// Memory for the elements of a row of a result.
        #[derive(Debug)]
        pub enum RowMut<'a> {
            $(#[doc = concat!("Of `", stringify!($t), "`.")] $name(&'a mut [$t])),+
        }
        $(
            impl<'a> From<&'a [$t]> for Row<'a> {
                fn from(row: &'a [$t]) -> Row<'a> {
                    Row::$name(row)
                }
            }
            impl<'a> From<&'a mut [$t]> for RowMut<'a> {
                fn from(row: &'a mut [$t]) -> RowMut<'a> {
                    RowMut::$name(row)
                }
            }
        )+
        impl Row<'_> {
            /// Type and number of elements.
            pub(super) fn kind(&self) -> (DType, usize) {
                match self { $(Row::$name(row) => (DType::$name, row.len())),+ }
            }
            /// The elements as bytes.
            pub(super) fn bytes(&self) -> &[u8] {
                match self { $(Row::$name(row) => bytes_of(row)),+ }
            }
            /// An array of such a shape.
            pub(super) fn array(&self, shape: &[usize]) -> Array {
                match self { $(Row::$name(row) => Array::new(shape, row.to_vec())),+ }
            }
        }
        impl<'a> RowMut<'a> {
            /// Type and number of elements.
            pub(super) fn kind(&self) -> (DType, usize) {
                match self { $(RowMut::$name(row) => (DType::$name, row.len())),+ }
            }
            /// Takes over the bytes of as many elements of this type.
            pub(super) fn copy_from(&mut self, from: &[u8]) {
                self.put(0, from);
            }
            /// Takes over the bytes of elements of this type, from byte `at` on.
            pub(super) fn put(&mut self, at: usize, from: &[u8]) {
                let to = match self { $(RowMut::$name(row) => cells_of(row)),+ };
                copy(&Operand::reading(from), &Operand::writing(&to[at..]), from.len());
            }
            /// The first n elements, which are then no longer here.
            pub(super) fn take(&mut self, n: usize) -> RowMut<'a> {
                match self {
                    $(RowMut::$name(row) => {
                        let (front, rest) = std::mem::take(row).split_at_mut(n);
                        *row = rest;
                        RowMut::$name(front)
                    })+
                }
            }
        }
    };
}
rows!(Bool bool, I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64, F32 f32, F64 f64);
