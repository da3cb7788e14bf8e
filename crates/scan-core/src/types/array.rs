//! Host arrays: dtype, shape and a reference-counted row-major buffer. A clone is O(1); a write
//! copies only where the buffer is shared, or is somebody else's.

use super::buffer::Buffer;
use super::device::Resident;
use super::shape::{Extents, count};
use super::words::Words;
use super::zeroed::Zero;
use super::{Cast, DType, Row, RowMut, Type, memory};
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

macro_rules! elements {
    ($($variant:ident $t:ty),+ $(,)?) => {
        /// The buffer of an [`Array`], one variant per dtype.
        #[derive(Clone, Debug)]
        pub enum Data {
            $(#[doc = concat!("Elements of type `", stringify!($t), "`.")] $variant(Arc<Buffer<$t>>)),+
        }

        impl Data {
            /// The dtype of the elements.
            pub fn dtype(&self) -> DType {
                match self { $(Data::$variant(_) => DType::$variant),+ }
            }
            /// Number of elements.
            pub fn len(&self) -> usize {
                match self { $(Data::$variant(v) => v.len()),+ }
            }
            /// True without elements.
            pub fn is_empty(&self) -> bool { self.len() == 0 }
            /// True where nothing else sees the memory, and it is our own.
            pub fn is_ours_alone(&self) -> bool {
                match self { $(Data::$variant(v) => !v.is_foreign() && Arc::strong_count(v) == 1),+ }
            }
            /// True where the memory is somebody else's.
            pub fn is_foreign(&self) -> bool {
                match self { $(Data::$variant(v) => v.is_foreign()),+ }
            }
            /// True where the elements were made on a device.
            pub fn is_on_device(&self) -> bool {
                match self { $(Data::$variant(v) => v.is_on_device()),+ }
            }
            /// True where the host would have to fetch the elements from a device to read them.
            pub fn is_away(&self) -> bool {
                match self { $(Data::$variant(v) => v.is_away()),+ }
            }
            /// The elements on a device, where they are there.
            pub fn resident(&self) -> Option<&Resident> {
                match self { $(Data::$variant(v) => v.resident()),+ }
            }
            /// Notes where the elements were sent to.
            pub(super) fn note_sent(&self, to: Resident) -> &Resident {
                match self { $(Data::$variant(v) => v.note_sent(to)),+ }
            }
        }

        $(impl Element for $t {
            const DTYPE: DType = DType::$variant;
            #[inline]
            fn wrap(data: Buffer<$t>) -> Data { Data::$variant(Arc::new(data)) }
            fn row(elements: &[$t]) -> Row<'_> { Row::$variant(elements) }
            fn row_mut(elements: &mut [$t]) -> RowMut<'_> { RowMut::$variant(elements) }
            fn slice(data: &Data) -> &[$t] {
                match data {
                    Data::$variant(v) => v,
                    other => panic!("buffer holds {}, not {}", other.dtype(), Self::DTYPE),
                }
            }
            fn share(data: &Data) -> Arc<Buffer<$t>> {
                match data {
                    Data::$variant(v) => v.clone(),
                    other => panic!("buffer holds {}, not {}", other.dtype(), Self::DTYPE),
                }
            }
            fn take(data: Data) -> Vec<$t> {
                match data {
                    Data::$variant(v) => Arc::try_unwrap(v).map_or_else(|shared| memory::copied(&shared), Buffer::into_vec),
                    other => panic!("buffer holds {}, not {}", other.dtype(), Self::DTYPE),
                }
            }
            fn buffer_mut(data: &mut Data) -> &mut Buffer<$t> {
                match data {
                    Data::$variant(v) => Arc::make_mut(v),
                    other => panic!("buffer holds {}, not {}", other.dtype(), Self::DTYPE),
                }
            }
        })+
    };
}

/// Runs an expression with `$T` bound to the element type of a dtype:
/// `dispatch!(x.dtype(), T => Array::new::<T>(…))`.
#[macro_export]
macro_rules! dispatch {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            $crate::types::DType::Bool => {
                type $T = bool;
                $body
            }
            $crate::types::DType::I8 => {
                type $T = i8;
                $body
            }
            $crate::types::DType::I16 => {
                type $T = i16;
                $body
            }
            $crate::types::DType::I32 => {
                type $T = i32;
                $body
            }
            $crate::types::DType::I64 => {
                type $T = i64;
                $body
            }
            $crate::types::DType::U8 => {
                type $T = u8;
                $body
            }
            $crate::types::DType::U16 => {
                type $T = u16;
                $body
            }
            $crate::types::DType::U32 => {
                type $T = u32;
                $body
            }
            $crate::types::DType::U64 => {
                type $T = u64;
                $body
            }
            $crate::types::DType::F32 => {
                type $T = f32;
                $body
            }
            $crate::types::DType::F64 => {
                type $T = f64;
                $body
            }
        }
    };
}

/// A Rust type that arrays can hold.
///
/// ```
/// use scan_core::prelude::*;
///
/// fn ones<T: Element + From<u8>>(n: usize) -> Array {
///     Array::new(&[n], (0..n).map(|_| T::from(1)).collect())
/// }
/// assert_eq!(ones::<f32>(2).dtype(), f32::DTYPE);
/// ```
pub trait Element: Zero + Words + Default + PartialEq + PartialOrd + Send + Sync + std::fmt::Debug + 'static {
    /// Its dtype.
    const DTYPE: DType;
    /// A buffer of such elements.
    fn wrap(data: Buffer<Self>) -> Data;
    /// Elements with their dtype.
    fn row(elements: &[Self]) -> Row<'_>;
    /// Memory for elements, with their dtype.
    fn row_mut(elements: &mut [Self]) -> RowMut<'_>;
    /// The elements; panics where the buffer has another dtype (a fault of rscan).
    fn slice(data: &Data) -> &[Self];
    /// The buffer; panics on another dtype (a fault of rscan).
    fn share(data: &Data) -> Arc<Buffer<Self>>;
    /// The buffer itself where nothing else holds it, else a copy; panics on another dtype (a fault of rscan).
    fn take(data: Data) -> Vec<Self>;
    /// The buffer for writing; copies a shared one first.
    fn buffer_mut(data: &mut Data) -> &mut Buffer<Self>;
}

elements!(Bool bool, I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64, F32 f32, F64 f64);

/// The element types that gradients flow through.
pub trait Float:
    Element
    + std::ops::Add<Output = Self>
    + std::ops::Mul<Output = Self>
    + std::ops::Sub<Output = Self>
    + std::ops::Div<Output = Self>
    + std::ops::Neg<Output = Self>
{
    /// Nearest value of an f64.
    fn of(x: f64) -> Self;
    /// Widened to f64.
    fn wide(self) -> f64;
}

impl Float for f32 {
    fn of(x: f64) -> f32 {
        x as f32
    }
    fn wide(self) -> f64 {
        self as f64
    }
}

impl Float for f64 {
    fn of(x: f64) -> f64 {
        x
    }
    fn wide(self) -> f64 {
        self
    }
}

/// As [`dispatch!`](crate::dispatch), for float dtypes only; panics on others (a fault of rscan).
#[macro_export]
macro_rules! dispatch_float {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            $crate::types::DType::F32 => {
                type $T = f32;
                $body
            }
            $crate::types::DType::F64 => {
                type $T = f64;
                $body
            }
            other => panic!("{other} is not a float dtype"),
        }
    };
}

/// Number of elements of an array to be made, which is refused where no memory holds it ([`memory`]).
pub(crate) fn elements(dtype: DType, shape: &[usize]) -> usize {
    let n = count(shape);
    if n > isize::MAX as usize / dtype.size() {
        memory::refuse_elements(shape, dtype.size());
    }
    n
}

/// So many bytes are copied rather than looked at where they are.
const WINDOW: usize = 2048;

/// A row-major host array.
///
/// ```
/// use scan_core::prelude::*;
///
/// let x = Array::new(&[2, 2], vec![1.0, 2.0, 3.0, 4.0]);
/// assert_eq!((x.dtype(), x.shape(), x.row(1)), (DType::F64, &[2, 2][..], Array::vector(&[3.0, 4.0])));
/// assert_eq!(Array::scalar(7i64).as_slice::<i64>(), [7]);
/// ```
#[derive(Debug)]
pub struct Array {
    pub(super) shape: Extents,
    pub(super) data: Data,
}

impl Clone for Array {
    fn clone(&self) -> Array {
        Array { shape: SmallVec::from_slice(&self.shape), data: self.data.clone() }
    }
}

impl Array {
    /// An array from its elements in row-major order. Panics where their number is not that of the shape.
    pub fn new<T: Element>(shape: &[usize], data: Vec<T>) -> Array {
        assert_eq!(count(shape), data.len(), "{} elements for shape {shape:?}", data.len());
        Array { shape: SmallVec::from_slice(shape), data: T::wrap(data.into()) }
    }
    /// A rank-0 array.
    pub fn scalar<T: Element>(x: T) -> Array {
        Array { shape: SmallVec::new(), data: T::wrap(Buffer::one(x)) }
    }
    /// An array in somebody else's memory, which is read where it is and never written. Panics where its length is not that of the shape.
    pub fn foreign<T: Element>(shape: &[usize], owner: impl AsRef<[T]> + Send + Sync + 'static) -> Array {
        let buffer = Buffer::foreign(Box::new(owner));
        assert_eq!(count(shape), buffer.len(), "{} elements for shape {shape:?}", buffer.len());
        Array { shape: SmallVec::from_slice(shape), data: T::wrap(buffer) }
    }
    /// An array of any values: zeros or, where large memory is used again, what it held before. Only for what is overwritten as a whole.
    pub fn dirty(dtype: DType, shape: &[usize]) -> Array {
        dispatch!(dtype, T => Array { shape: SmallVec::from_slice(shape), data: T::wrap(Buffer::dirty(elements(dtype, shape))) })
    }
    /// The same, in memory that begins as far from some addresses as can be, as [`Buffer::dirty_apart`] says.
    pub fn dirty_apart(dtype: DType, shape: &[usize], others: &[usize]) -> Array {
        dispatch!(dtype, T => Array { shape: SmallVec::from_slice(shape), data: T::wrap(Buffer::dirty_apart(elements(dtype, shape), others)) })
    }
    /// The same array in memory of our own, copied where it is somebody else's: for what outlives a call.
    pub fn owned(mut self) -> Array {
        self.make_owned();
        self
    }
    /// As [`Array::owned`], in place.
    pub fn make_owned(&mut self) {
        if self.data.is_foreign() {
            dispatch!(self.dtype(), T => { self.as_mut_slice::<T>(); });
        }
    }
    /// A rank-1 array.
    pub fn vector<T: Element>(x: &[T]) -> Array {
        Array::new(&[x.len()], memory::copied(x))
    }
    /// Zeros (`false` for bool).
    pub fn zeros(dtype: DType, shape: &[usize]) -> Array {
        dispatch!(dtype, T => Array { shape: SmallVec::from_slice(shape), data: T::wrap(Buffer::zeros(elements(dtype, shape))) })
    }
    /// An array with every element `x`, converted to the dtype as a cast does.
    pub fn full(dtype: DType, shape: &[usize], x: f64) -> Array {
        dispatch!(dtype, T => Array::new(shape, memory::filled(<f64 as Cast<T>>::cast(x), elements(dtype, shape))))
    }
    /// Element type.
    pub fn dtype(&self) -> DType {
        self.data.dtype()
    }
    /// Extents.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }
    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.data.len()
    }
    /// True without elements.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }
    /// The type with known extents.
    pub fn ty(&self) -> Type {
        Type::known(self.dtype(), &self.shape)
    }
    /// Elements in row-major order; panics on another dtype (a fault of rscan).
    pub fn as_slice<T: Element>(&self) -> &[T] {
        T::slice(&self.data)
    }
    /// Elements for writing; a shared buffer is copied first.
    pub fn as_mut_slice<T: Element>(&mut self) -> &mut [T] {
        T::buffer_mut(&mut self.data).as_mut_slice()
    }
    /// Elements in row-major order, without a copy where nothing else holds them; panics on another dtype (a fault of rscan).
    pub fn into_vec<T: Element>(self) -> Vec<T> {
        T::take(self.data)
    }
    /// The buffer.
    pub fn data(&self) -> &Data {
        &self.data
    }
    /// The same elements under another shape of equal count. O(1).
    pub fn reshaped(&self, shape: &[usize]) -> Array {
        assert_eq!(count(shape), self.len(), "reshape {:?} to {shape:?}", self.shape);
        Array { shape: SmallVec::from_slice(shape), data: self.data.clone() }
    }
    /// Row `i` along the first axis, copied.
    pub fn row(&self, i: usize) -> Array {
        let n = count(&self.shape[1..]);
        dispatch!(self.dtype(), T => Array::new(&self.shape[1..], memory::copied(&self.as_slice::<T>()[i * n..(i + 1) * n])))
    }
    /// Rows `lo..hi` along the first axis, as [`Array::part`] gives them.
    pub fn rows(&self, lo: usize, hi: usize) -> Array {
        let mut shape = self.shape.clone();
        shape[0] = hi - lo;
        self.part(lo * count(&self.shape[1..]), &shape)
    }
    /// Rows `lo..hi` along the first axis where they are: all of this array is kept as long as they are.
    pub fn rows_shared(&self, lo: usize, hi: usize) -> Array {
        let mut shape = self.shape.clone();
        shape[0] = hi - lo;
        self.shared(lo * count(&self.shape[1..]), shape)
    }
    /// Elements from the one at `first` on, under a shape, where they are.
    fn shared(&self, first: usize, shape: Extents) -> Array {
        let n = count(&shape);
        dispatch!(self.dtype(), T => Array { shape, data: T::wrap(Buffer::part(T::share(&self.data), first, n)) })
    }
    /// Elements that follow each other from the one at `first` on, under a shape. All of them, or many of them that are most, are
    /// where they were; others are copied.
    pub fn part(&self, first: usize, shape: &[usize]) -> Array {
        let n = count(shape);
        if n == self.len() {
            return self.reshaped(shape);
        }
        if self.data.is_away() {
            return self.shared(first, SmallVec::from_slice(shape));
        }
        if 2 * n >= self.len() && n * self.dtype().size() >= WINDOW {
            return self.shared(first, SmallVec::from_slice(shape));
        }
        dispatch!(self.dtype(), T => match n {
            1 => Array { shape: SmallVec::from_slice(shape), data: T::wrap(Buffer::one(self.as_slice::<T>()[first])) },
            _ => Array::new(shape, memory::copied(&self.as_slice::<T>()[first..first + n])),
        })
    }
    /// The same rows along the first axis, cut or filled with zeros to `n`.
    pub fn resize_rows(&mut self, n: usize) {
        let row = count(&self.shape[1..]);
        let all = elements(self.dtype(), &[n, row]);
        dispatch!(self.dtype(), T => T::buffer_mut(&mut self.data).resize(all)).unwrap_or_else(|e| memory::fail(e));
        self.shape[0] = n;
    }
    /// Overwrites rows along the first axis, from row `i` on, with rows of an array of such rows.
    pub fn copy_rows(&mut self, i: usize, from: &Array, rows: Range<usize>) {
        let n = count(&self.shape[1..]);
        let (to, from_rows) = (i * n..(i + rows.len()) * n, rows.start * n..rows.end * n);
        if self.copied_there(to.start, from, from_rows.clone()) {
            return;
        }
        dispatch!(self.dtype(), T => self.as_mut_slice::<T>()[to].copy_from_slice(&from.as_slice::<T>()[from_rows]));
    }
    /// Sets rows along the first axis to zero.
    pub fn clear_rows(&mut self, rows: Range<usize>) {
        let n = count(&self.shape[1..]);
        if !rows.is_empty() && !self.cleared_there(rows.start * n..rows.end * n) {
            dispatch!(self.dtype(), T => self.as_mut_slice::<T>()[rows.start * n..rows.end * n].fill(T::default()));
        }
    }
    /// Overwrites row `i` along the first axis.
    pub fn set_row(&mut self, i: usize, row: &Array) {
        let n = row.len();
        dispatch!(self.dtype(), T => self.as_mut_slice::<T>()[i * n..(i + 1) * n].copy_from_slice(row.as_slice::<T>()));
    }
    /// Arrays of one type stacked along a new first axis; `dtype` and `row_shape` serve where there are none.
    pub fn stack(rows: &[Array], dtype: DType, row_shape: &[usize]) -> Array {
        let row_shape: Extents = rows.first().map_or(SmallVec::from_slice(row_shape), |r| r.shape.clone());
        let shape: Extents = std::iter::once(rows.len()).chain(row_shape).collect();
        dispatch!(dtype, T => {
            let mut out: Vec<T> = memory::room(elements(dtype, &shape));
            rows.iter().for_each(|r| out.extend_from_slice(r.as_slice::<T>()));
            Array::new(&shape, out)
        })
    }
    /// Converted to another dtype by the rule of [`Cast`].
    pub fn cast(&self, to: DType) -> Array {
        if to == self.dtype() {
            return self.clone();
        }
        dispatch!(self.dtype(), A => dispatch!(to, B => {
            Array::new(&self.shape, memory::collect(self.as_slice::<A>().iter().map(|&x| <A as Cast<B>>::cast(x))))
        }))
    }
    /// The one element as i64 (floats truncate), where there is exactly one.
    pub fn item_i64(&self) -> Option<i64> {
        match &self.data {
            Data::I64(v) if v.len() == 1 => Some(v[0]),
            _ => (self.len() == 1).then(|| self.cast(DType::I64).as_slice::<i64>()[0]),
        }
    }
    /// The one element as f64, where there is exactly one.
    pub fn item_f64(&self) -> Option<f64> {
        (self.len() == 1).then(|| self.cast(DType::F64).as_slice::<f64>()[0])
    }
    /// Copies the elements to memory of the caller's.
    ///
    /// # Errors
    /// `E0515` where that has another dtype or length.
    pub fn copy_to<T: Element>(&self, to: &mut [T]) -> crate::base::Result<()> {
        if T::DTYPE != self.dtype() || to.len() != self.len() {
            crate::bail!(Type, "E0515", "{} does not fit memory for {} elements of {}", self.ty(), to.len(), T::DTYPE);
        }
        to.copy_from_slice(self.as_slice::<T>());
        Ok(())
    }
    /// Elements as f64.
    pub fn to_f64_vec(&self) -> Vec<f64> {
        self.cast(DType::F64).into_vec()
    }
    /// Elements as i64.
    pub fn to_i64_vec(&self) -> Vec<i64> {
        self.cast(DType::I64).into_vec()
    }
    /// Every element, as bits: NaN equals itself, 0 and -0 differ.
    pub fn bits(&self) -> Vec<u64> {
        match &self.data {
            Data::F32(v) => memory::collect(v.iter().map(|x| x.to_bits() as u64)),
            Data::F64(v) => memory::collect(v.iter().map(|x| x.to_bits())),
            Data::U64(v) => memory::copied(v),
            _ => memory::collect(self.to_i64_vec().into_iter().map(|x| x as u64)),
        }
    }
}

/// Equality of dtype, shape and bits.
impl PartialEq for Array {
    fn eq(&self, other: &Array) -> bool {
        self.dtype() == other.dtype() && self.shape == other.shape && self.bits() == other.bits()
    }
}

impl Eq for Array {}

impl Hash for Array {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.dtype(), &self.shape).hash(state);
        if self.len() <= 64 {
            self.bits().hash(state);
        }
    }
}
