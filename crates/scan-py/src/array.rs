//! NumPy arrays to and from host arrays.

use numpy::npyffi::{self, NPY_ARRAY_ALIGNED, NPY_ARRAY_C_CONTIGUOUS, NPY_ARRAY_WRITEABLE};
use numpy::{PY_ARRAY_API, PyArrayDescr, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::PyTypeInfo;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};
use scan_core::dispatch;
use scan_core::prelude::{Array, DType, Element, LARGE_MEMORY, legacy_state, memory};
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

/// From so many bytes on, a result's memory is handed to NumPy; smaller ones are copied into memory of NumPy's own.
const HAND_OVER: usize = 1 << 14;

/// From so many bytes on, an argument is read where it lies; smaller ones are copied, which is quicker than keeping their owner.
const LEND: usize = 1 << 10;

/// The elements of a NumPy array that lie aligned, one after the other, in the order of C.
pub struct Plain<'a> {
    /// The first of them.
    pub data: *mut c_void,
    /// Extents.
    pub shape: &'a [usize],
    /// True where they may be written.
    pub writeable: bool,
}

impl Plain<'_> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }
    /// Addresses of the first byte and of what follows the last.
    pub fn range(&self, dtype: DType) -> std::ops::Range<usize> {
        let start = self.data.addr();
        start..start + self.len() * dtype.size()
    }
    fn slice<T>(&self) -> &[T] {
        if self.len() == 0 {
            return &[];
        }
        // SAFETY: `plain` has seen an array of aligned elements of T's dtype that follow each other, and the array lives.
        unsafe { std::slice::from_raw_parts(self.data.cast(), self.len()) }
    }
}

/// NumPy's dtype of this name.
pub fn descr(py: Python<'_>, dtype: DType) -> Bound<'_, PyArrayDescr> {
    dispatch!(dtype, T => numpy::dtype::<T>(py))
}

/// From so many bytes on, memory is asked for in large pages.
const HUGE: usize = 4 << 20;

/// Asks the system for large pages at new memory: fewer of them are to be touched for the first time, and found again.
pub fn advise(address: usize, bytes: usize) {
    #[cfg(target_os = "linux")]
    if bytes >= HUGE {
        unsafe extern "C" {
            fn madvise(address: *mut c_void, bytes: usize, advice: c_int) -> c_int;
        }
        const MADV_HUGEPAGE: c_int = 14;
        let start = address.next_multiple_of(4096);
        // SAFETY: the advice changes no contents; where the address is none of ours, or not known to the system, it is refused.
        unsafe { madvise(std::ptr::without_provenance_mut(start), bytes - (start - address), MADV_HUGEPAGE) };
    }
}

/// True for an array of which some elements do not count. It is one of NumPy's, and its memory tells nothing of the mask.
pub fn is_masked(object: &Bound<'_, PyAny>) -> bool {
    static CELL: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let py = object.py();
    let class = || CELL.import(py, "numpy.ma", "MaskedArray").and_then(|class| object.is_instance(class));
    !object.get_type().is(PyUntypedArray::type_object(py)) && class().unwrap_or(false)
}

/// Where the elements of an array of exactly this dtype lie; `None` for any other object, order or alignment, and with a mask.
pub fn plain<'a>(object: &'a Bound<'_, PyAny>, descr: &Bound<'_, PyArrayDescr>) -> Option<Plain<'a>> {
    const NEEDED: c_int = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED;
    let array = object.cast::<PyUntypedArray>().ok()?;
    // SAFETY: an array; its fields stay as they are while the interpreter lock is held.
    let fields = unsafe { &*npyffi::_PyArray_GET_ITEM_DATA(array.as_array_ptr()) };
    if is_masked(object) || fields.flags & NEEDED != NEEDED || !(fields.descr == descr.as_dtype_ptr() || array.dtype().is_equiv_to(descr)) {
        return None;
    }
    Some(Plain { data: fields.data.cast(), shape: array.shape(), writeable: fields.flags & NPY_ARRAY_WRITEABLE != 0 })
}

/// A copy of the elements.
pub fn copied(plain: &Plain, dtype: DType) -> Array {
    if dtype == DType::Bool {
        // Whatever is not zero counts as true to NumPy; to Rust, a bool is 0 or 1.
        return Array::new(plain.shape, memory::collect(plain.slice::<u8>().iter().map(|&b| b != 0)));
    }
    dispatch!(dtype, T => copied_as::<T>(plain))
}

fn copied_as<T: Element>(plain: &Plain) -> Array {
    match plain.shape {
        [] => Array::scalar(plain.slice::<T>()[0]),
        shape => Array::new(shape, memory::copied(plain.slice::<T>())),
    }
}

/// The elements of the array `object`, read where they lie until the last user is gone. Small ones, and bools, are copied.
pub fn lent(object: &Bound<'_, PyAny>, plain: &Plain, dtype: DType) -> Array {
    if dtype == DType::Bool || plain.len() * dtype.size() < LEND {
        return copied(plain, dtype);
    }
    dispatch!(dtype, T => {
        let lent = Lent::<T> { data: plain.data.cast(), len: plain.len(), _owner: object.clone().unbind() };
        Array::foreign(plain.shape, lent)
    })
}

/// Elements of a NumPy array that lives as long as this.
struct Lent<T> {
    data: *const T,
    len: usize,
    _owner: Py<PyAny>,
}

// SAFETY: only read; the array is kept, and NumPy moves no memory of an array that somebody refers to. Who writes to it from
// another thread during a call gets numbers that are neither old nor new, as with NumPy's own functions; the length stays.
unsafe impl<T: Sync> Send for Lent<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Lent<T> {}

impl<T> AsRef<[T]> for Lent<T> {
    fn as_ref(&self) -> &[T] {
        // SAFETY: `plain` has seen so many aligned elements there, and the owner lives. Every bit pattern is one of T: no bools here.
        unsafe { std::slice::from_raw_parts(self.data, self.len) }
    }
}

/// An array of any layout, copied; its dtype is kept.
///
/// # Errors
/// Where the object is no array, or its dtype is none of ours.
pub fn from_numpy(object: &Bound<'_, PyAny>) -> PyResult<Array> {
    let dtype = dtype_of(object).ok_or_else(|| no_array(object))?;
    with_plain(object, dtype, |_, plain| copied(plain, dtype))
}

/// As [`from_numpy`], but read in place where that is worthwhile: for what lives no longer than a call.
///
/// # Errors
/// As there.
pub fn read_numpy(object: &Bound<'_, PyAny>) -> PyResult<Array> {
    let dtype = dtype_of(object).ok_or_else(|| no_array(object))?;
    with_plain(object, dtype, |object, plain| lent(object, plain, dtype))
}

fn dtype_of(object: &Bound<'_, PyAny>) -> Option<DType> {
    let descr = object.cast::<PyUntypedArray>().ok()?.dtype();
    Some(match (descr.kind(), descr.itemsize()) {
        (b'b', 1) => DType::Bool,
        (b'i', 1) => DType::I8,
        (b'i', 2) => DType::I16,
        (b'i', 4) => DType::I32,
        (b'i', 8) => DType::I64,
        (b'u', 1) => DType::U8,
        (b'u', 2) => DType::U16,
        (b'u', 4) => DType::U32,
        (b'u', 8) => DType::U64,
        (b'f', 4) => DType::F32,
        (b'f', 8) => DType::F64,
        _ => return None,
    })
}

/// Visits the array itself where it is plain, else a plain copy of it.
fn with_plain(object: &Bound<'_, PyAny>, dtype: DType, visit: impl Fn(&Bound<'_, PyAny>, &Plain) -> Array) -> PyResult<Array> {
    let py = object.py();
    let descr = descr(py, dtype);
    if let Some(plain) = plain(object, &descr) {
        return Ok(visit(object, &plain));
    }
    let options = PyDict::new(py);
    options.set_item("dtype", &descr)?;
    options.set_item("order", "C")?;
    let copy = numpy_array(py)?.call((object,), Some(&options))?;
    let plain = plain(&copy, &descr).ok_or_else(|| no_array(object))?;
    Ok(visit(&copy, &plain))
}

fn no_array(object: &Bound<'_, PyAny>) -> PyErr {
    let what = object.cast::<PyUntypedArray>().map_or_else(|_| object.get_type().to_string(), |a| format!("an array of {}", a.dtype()));
    pyo3::exceptions::PyTypeError::new_err(format!("expected an array of bool, integers, float32 or float64, got {what}"))
}

fn numpy_array(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static CELL: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    CELL.import(py, "numpy", "array")
}

/// Memory of a result that NumPy uses: the base of the array. It goes back to the pool with the last view of it.
#[pyclass(frozen, module = "rscan._native")]
struct Memory {
    _array: Array,
}

/// A NumPy array of these elements. It is the caller's own: memory that anything else sees is copied.
pub fn to_numpy(py: Python<'_>, array: Array) -> PyResult<Bound<'_, PyAny>> {
    dispatch!(array.dtype(), T => to_numpy_as::<T>(py, array))
}

fn to_numpy_as<T: Element + numpy::Element>(py: Python<'_>, mut array: Array) -> PyResult<Bound<'_, PyAny>> {
    let bytes = array.len() * size_of::<T>();
    // What has to be copied anyway is copied into NumPy's memory, where ours would not come back. So are bools: NumPy's may hold
    // other bytes than 0 and 1.
    if bytes < HAND_OVER || T::DTYPE == DType::Bool || bytes < LARGE_MEMORY && !array.data().is_ours_alone() {
        let out = new_array::<T>(py, array.shape(), null_mut())?;
        // SAFETY: a new array of these extents.
        unsafe { fill(&out, array.as_slice::<T>()) };
        return Ok(out);
    }
    let shape = array.shape().to_vec();
    let data = array.as_mut_slice::<T>().as_mut_ptr();
    let memory = Bound::new(py, Memory { _array: array })?;
    let out = new_array::<T>(py, &shape, data.cast())?;
    // SAFETY: a new array, which takes over the reference to what owns its memory.
    let done = unsafe { PY_ARRAY_API.PyArray_SetBaseObject(py, out.as_ptr().cast(), memory.into_ptr()) };
    if done < 0 { Err(PyErr::fetch(py)) } else { Ok(out) }
}

/// The one element of an array without axes, as a number of NumPy's.
///
/// # Errors
/// Python's own.
pub fn to_number<'py>(py: Python<'py>, array: &Array) -> PyResult<Bound<'py, PyAny>> {
    dispatch!(array.dtype(), T => {
        let value = array.as_slice::<T>()[0];
        // SAFETY: NumPy copies one element of T's size, and takes no reference of the dtype's.
        unsafe { Bound::from_owned_ptr_or_err(py, PY_ARRAY_API.PyArray_Scalar(py, (&raw const value).cast_mut().cast(), descr(py, T::DTYPE).as_dtype_ptr(), null_mut())) }
    })
}

/// A new array with memory of its own, not yet filled, or at `data`, which the caller keeps alive.
fn new_array<'py, T: numpy::Element>(py: Python<'py>, shape: &[usize], data: *mut c_void) -> PyResult<Bound<'py, PyAny>> {
    let flags = if data.is_null() { 0 } else { NPY_ARRAY_WRITEABLE };
    let rank = c_int::try_from(shape.len())?;
    // SAFETY: extents are not negative and fit, as an array of them exists; NumPy only reads them. It takes over the reference to
    // the dtype, and the result is a new reference.
    unsafe {
        let class = npyffi::get_type_object(py, npyffi::NpyTypes::PyArray_Type);
        let dims = shape.as_ptr().cast_mut().cast();
        let descr = T::get_dtype(py).into_dtype_ptr();
        let out = PY_ARRAY_API.PyArray_NewFromDescr(py, class, descr, rank, dims, null_mut(), data, flags, null_mut());
        Bound::from_owned_ptr_or_err(py, out)
    }
}

/// Copies elements into an array.
///
/// # Safety
/// `to` is a plain writeable array of T's dtype with as many elements, and none of `from` lies in it.
unsafe fn fill<T: Copy>(to: &Bound<'_, PyAny>, from: &[T]) {
    // SAFETY: an array, by contract.
    let fields = unsafe { &*npyffi::_PyArray_GET_ITEM_DATA(to.as_ptr().cast()) };
    // SAFETY: by contract.
    unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), fields.data.cast::<T>(), from.len()) };
}

/// Copies an array into memory of the caller's, which [`plain`] has described: of its dtype and extents, writeable.
pub fn copy_into(to: &Plain, from: &Array) {
    assert!(to.writeable && to.shape == from.shape(), "an output's memory was checked");
    dispatch!(from.dtype(), T => {
        let from = from.as_slice::<T>();
        // SAFETY: so many aligned elements of this dtype lie there; `copy` allows what overlaps.
        unsafe { std::ptr::copy(from.as_ptr(), to.data.cast::<T>(), from.len()) };
    });
}

/// The value of a NumPy number of exactly this dtype, as its type has told.
pub fn from_scalar(number: &Bound<'_, PyAny>, dtype: DType) -> Array {
    if dtype == DType::Bool {
        return Array::scalar(scalar_as::<u8>(number) != 0);
    }
    dispatch!(dtype, T => Array::scalar(scalar_as::<T>(number)))
}

fn scalar_as<T: Default>(number: &Bound<'_, PyAny>) -> T {
    let mut value = T::default();
    // SAFETY: the caller has compared the type of the number: it holds one element of T's size.
    unsafe { PY_ARRAY_API.PyArray_ScalarAsCtype(number.py(), number.as_ptr(), (&raw mut value).cast()) };
    value
}

/// The state of NumPy's `RandomState(seed)` as a uint32 vector of 628: key, position, cached normal.
#[pyfunction]
pub fn mt_state(py: Python<'_>, seed: u32) -> PyResult<Bound<'_, PyAny>> {
    to_numpy(py, legacy_state(seed))
}
