//! Elements in a caller's memory, with their dtype: of a row of a session's step, or of a whole array.

use super::lent::Loan;
use super::{Array, DType, memory};

macro_rules! rows {
    ($($name:ident $t:ty),+) => {
        /// Elements in row-major order: of a row of a sequence, or of an argument.
        ///
        /// ```
        /// use scan_core::prelude::*;
        ///
        /// let x = [1.0, 2.0];
        /// assert_eq!(StepRow::from(&x[..]).kind(), (DType::F64, 2));
        /// ```
        #[derive(Clone, Copy, Debug)]
        pub enum Row<'a> {
            $(#[doc = concat!("Of `", stringify!($t), "`.")] $name(&'a [$t])),+
        }
        /// Memory for the elements of a row of a result, or of a result.
        ///
        /// ```
        /// use scan_core::prelude::*;
        ///
        /// let (u, h0) = (vector("u"), scalar("h0"));
        /// let h = scan().over("u", &u).init("h", &h0).run(|s| 0.5 * s.get("h") + s.get("u")).rows("h");
        /// let f = function(&[&u, &h0], &[&h]).compile()?;
        /// let mut cx = EvalCx::new();
        /// let mut session = f.session(&mut cx, &[None, Some(Array::scalar(0.0))])?;
        /// let mut row = [0.0];
        /// session.step_into(&mut cx, &[(&[3.0][..]).into()], &mut [StepRowMut::from(&mut row[..])])?;
        /// assert_eq!(row, [3.0]);
        /// # Ok::<(), Box<Diagnostic>>(())
        /// ```
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
        impl<'a> Row<'a> {
            /// Type and number of elements.
            pub fn kind(&self) -> (DType, usize) {
                match self { $(Row::$name(row) => (DType::$name, row.len())),+ }
            }
            /// An array of such a shape, with a copy of them.
            pub fn array(&self, shape: &[usize]) -> Array {
                match self { $(Row::$name(row) => Array::new(shape, memory::copied(row))),+ }
            }
            /// An array of such a shape that reads them where they lie. A single one is copied.
            pub(super) fn lent(&self, loan: &Loan<'a>, shape: &[usize]) -> Array {
                match self { $(Row::$name(row) => if row.len() == 1 { self.array(shape) } else { loan.array(shape, row) }),+ }
            }
        }
        impl<'a> RowMut<'a> {
            /// Type and number of elements.
            pub fn kind(&self) -> (DType, usize) {
                match self { $(RowMut::$name(row) => (DType::$name, row.len())),+ }
            }
            /// Takes over the elements of an array of this type and length.
            pub(super) fn copy_array(&mut self, from: &Array) {
                match self { $(RowMut::$name(row) => row.copy_from_slice(from.as_slice::<$t>())),+ }
            }
            /// The same memory, for a while.
            pub(super) fn reborrow(&mut self) -> RowMut<'_> {
                match self { $(RowMut::$name(row) => RowMut::$name(row)),+ }
            }
            /// The first n elements, which are then no longer here.
            pub(crate) fn take(&mut self, n: usize) -> RowMut<'a> {
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
