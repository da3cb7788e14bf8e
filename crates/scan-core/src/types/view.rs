//! Arguments and results in memory of the caller's.

use super::lent::Loan;
use super::shape::{Extents, count, tuple};
use super::{Array, DType, Element, Row, RowMut};
use crate::bail;
use crate::base::Result;
use crate::dispatch;

/// Arguments of fewer bytes are copied.
const COPIED: usize = 1024;

/// An argument where it lies: dtype, extents, and elements in row-major order.
///
/// A number is a scalar, a slice a vector; [`View::new`] is anything else. With the feature `ndarray` its views are arguments where they are in
/// row-major order, with the feature `bytemuck` bytes and types of your own.
///
/// ```
/// use scan_core::prelude::*;
///
/// # fn main() -> Result<()> {
/// let elements = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
/// let matrix = View::new(&[2, 3], &elements)?;
/// assert_eq!((matrix.dtype(), matrix.shape()), (DType::F64, &[2, 3][..]));
/// assert_eq!(View::from(&elements[..]).shape(), [6]);
/// assert_eq!(View::from(&1u8).shape(), [0usize; 0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct View<'a> {
    shape: Extents,
    elements: Row<'a>,
}

/// Memory for a result: dtype, extents, and room for the elements in row-major order. It is made as a [`View`] is, of what may be written.
///
/// ```
/// use scan_core::prelude::*;
///
/// # fn main() -> Result<()> {
/// let mut elements = [0f32; 6];
/// assert_eq!(ViewMut::new(&[3, 2], &mut elements)?.shape(), [3, 2]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ViewMut<'a> {
    shape: Extents,
    elements: RowMut<'a>,
}

/// # Errors
/// `E0515` where a shape has not as many elements.
fn check(shape: &[usize], n: usize, dtype: DType) -> Result<()> {
    if count(shape) != n {
        bail!(Type, "E0515", "shape {} has {} elements, and there are {n} of {dtype}", tuple(shape), count(shape));
    }
    Ok(())
}

impl<'a> View<'a> {
    /// Elements under a shape.
    ///
    /// # Errors
    /// `E0515` where there are not as many as the shape says.
    pub fn new<T: Element>(shape: &[usize], elements: &'a [T]) -> Result<View<'a>> {
        check(shape, elements.len(), T::DTYPE)?;
        Ok(View { shape: Extents::from_slice(shape), elements: T::row(elements) })
    }
    /// Element type.
    pub fn dtype(&self) -> DType {
        self.elements.kind().0
    }
    /// Extents.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }
    /// The elements.
    pub fn elements(&self) -> Row<'a> {
        self.elements
    }
    /// An array with a copy of the elements.
    pub fn copied(&self) -> Array {
        self.elements.array(&self.shape)
    }
    /// An array that reads the elements where they lie, or has a copy of few: plans keep integers that extents hang on.
    pub(crate) fn lent(&self, loan: &Loan<'a>) -> Array {
        let bytes = count(&self.shape) * self.dtype().size();
        if bytes < COPIED { self.copied() } else { self.elements.lent(loan, &self.shape) }
    }
}

impl<'a> ViewMut<'a> {
    /// Memory for elements under a shape.
    ///
    /// # Errors
    /// `E0515` where there are not as many as the shape says.
    pub fn new<T: Element>(shape: &[usize], elements: &'a mut [T]) -> Result<ViewMut<'a>> {
        check(shape, elements.len(), T::DTYPE)?;
        Ok(ViewMut { shape: Extents::from_slice(shape), elements: T::row_mut(elements) })
    }
    /// Element type.
    pub fn dtype(&self) -> DType {
        self.elements.kind().0
    }
    /// Extents.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }
    /// Memory for the elements.
    pub fn elements_mut(&mut self) -> RowMut<'_> {
        self.elements.reborrow()
    }
    /// Takes over the elements of an array of this dtype and shape.
    pub(crate) fn copy_from(&mut self, array: &Array) {
        self.elements.copy_array(array);
    }
}

impl<'a, T: Element> From<&'a [T]> for View<'a> {
    fn from(elements: &'a [T]) -> View<'a> {
        View { shape: Extents::from_slice(&[elements.len()]), elements: T::row(elements) }
    }
}

impl<'a, T: Element> From<&'a T> for View<'a> {
    fn from(element: &'a T) -> View<'a> {
        View { shape: Extents::new(), elements: T::row(std::slice::from_ref(element)) }
    }
}

impl<'a> From<&'a Array> for View<'a> {
    fn from(array: &'a Array) -> View<'a> {
        View { shape: Extents::from_slice(array.shape()), elements: dispatch!(array.dtype(), T => T::row(array.as_slice::<T>())) }
    }
}

impl<'a, T: Element> From<&'a mut [T]> for ViewMut<'a> {
    fn from(elements: &'a mut [T]) -> ViewMut<'a> {
        ViewMut { shape: Extents::from_slice(&[elements.len()]), elements: T::row_mut(elements) }
    }
}

impl<'a, T: Element> From<&'a mut T> for ViewMut<'a> {
    fn from(element: &'a mut T) -> ViewMut<'a> {
        ViewMut { shape: Extents::new(), elements: T::row_mut(std::slice::from_mut(element)) }
    }
}

#[cfg(feature = "ndarray")]
mod of_ndarray {
    use super::{Element, View, ViewMut};
    use crate::base::{Diagnostic, Kind, Result};
    use ndarray::{ArrayView, ArrayViewMut, Dimension};

    fn not_in_order() -> Box<Diagnostic> {
        let e = Diagnostic::new(Kind::Type, "E0515", "a view of ndarray lies in another order than rows after rows, or with gaps");
        e.help("`array.as_standard_layout()` is a copy in that order, and the array itself where it has it")
    }

    impl<'a, T: Element, D: Dimension> TryFrom<ArrayView<'a, T, D>> for View<'a> {
        type Error = Box<Diagnostic>;
        /// # Errors
        /// `E0515` where the elements do not lie one after the other in row-major order: nothing is copied unasked.
        fn try_from(view: ArrayView<'a, T, D>) -> Result<View<'a>> {
            let shape = view.shape().to_vec();
            View::new(&shape, view.to_slice().ok_or_else(not_in_order)?)
        }
    }

    impl<'a, T: Element, D: Dimension> TryFrom<ArrayViewMut<'a, T, D>> for ViewMut<'a> {
        type Error = Box<Diagnostic>;
        /// # Errors
        /// As of a [`View`].
        fn try_from(view: ArrayViewMut<'a, T, D>) -> Result<ViewMut<'a>> {
            let shape = view.shape().to_vec();
            ViewMut::new(&shape, view.into_slice().ok_or_else(not_in_order)?)
        }
    }
}

#[cfg(feature = "bytemuck")]
mod of_bytes {
    use super::{DType, Element, View, ViewMut};
    use crate::base::{Diagnostic, Kind, Result};
    use crate::dispatch;
    use bytemuck::checked::{self, CheckedCastError};
    use bytemuck::{CheckedBitPattern, NoUninit, Pod};

    fn unfit(error: CheckedCastError, dtype: DType) -> Box<Diagnostic> {
        Diagnostic::new(Kind::Type, "E0515", format!("these bytes are no elements of {dtype}: {error}"))
            .help("they begin at a multiple of the dtype's size, have whole elements, and a bool is 0 or 1")
    }

    impl<'a> View<'a> {
        /// Bytes as elements of a dtype, in the order of this machine.
        ///
        /// # Errors
        /// `E0515` where they are not aligned, are no whole elements, are not as many as the shape says, or no bools.
        pub fn from_bytes(dtype: DType, shape: &[usize], bytes: &'a [u8]) -> Result<View<'a>> {
            dispatch!(dtype, T => View::new::<T>(shape, checked::try_cast_slice(bytes).map_err(|e| unfit(e, dtype))?))
        }
        /// Values of a type of your own as elements of `T`: `View::from_pods::<f64, _>(&[n], &celsius)`.
        ///
        /// ```
        /// # #[cfg(feature = "bytemuck")] {
        /// use scan_core::prelude::*;
        ///
        /// // A type of your own implements `bytemuck::Pod`; here, an array.
        /// let points: [[f32; 2]; 3] = [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]];
        /// let view = View::from_pods::<f32, _>(&[3, 2], &points).unwrap();
        /// assert_eq!((view.dtype(), view.shape()), (DType::F32, &[3, 2][..]));
        /// # }
        /// ```
        ///
        /// # Errors
        /// As [`View::from_bytes`].
        pub fn from_pods<T: Element + CheckedBitPattern, P: NoUninit>(shape: &[usize], pods: &'a [P]) -> Result<View<'a>> {
            View::new::<T>(shape, checked::try_cast_slice(pods).map_err(|e| unfit(e, T::DTYPE))?)
        }
        /// The elements as bytes.
        pub fn bytes(&self) -> &'a [u8] {
            use crate::types::Row;
            match self.elements {
                Row::Bool(x) => bytemuck::cast_slice(x),
                Row::I8(x) => bytemuck::cast_slice(x),
                Row::I16(x) => bytemuck::cast_slice(x),
                Row::I32(x) => bytemuck::cast_slice(x),
                Row::I64(x) => bytemuck::cast_slice(x),
                Row::U8(x) => bytemuck::cast_slice(x),
                Row::U16(x) => bytemuck::cast_slice(x),
                Row::U32(x) => bytemuck::cast_slice(x),
                Row::U64(x) => bytemuck::cast_slice(x),
                Row::F32(x) => bytemuck::cast_slice(x),
                Row::F64(x) => bytemuck::cast_slice(x),
            }
        }
    }

    impl<'a> ViewMut<'a> {
        /// Bytes as memory for elements of a dtype.
        ///
        /// # Errors
        /// As [`View::from_bytes`].
        pub fn from_bytes(dtype: DType, shape: &[usize], bytes: &'a mut [u8]) -> Result<ViewMut<'a>> {
            dispatch!(dtype, T => ViewMut::new::<T>(shape, checked::try_cast_slice_mut(bytes).map_err(|e| unfit(e, dtype))?))
        }
        /// Values of a type of your own as memory for elements of `T`.
        ///
        /// # Errors
        /// As [`View::from_bytes`].
        pub fn from_pods<T: Element + Pod, P: Pod>(shape: &[usize], pods: &'a mut [P]) -> Result<ViewMut<'a>> {
            ViewMut::new::<T>(shape, checked::try_cast_slice_mut(pods).map_err(|e| unfit(e, T::DTYPE))?)
        }
    }
}
