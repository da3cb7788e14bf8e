//! NumPy arrays to and from host arrays.

use numpy::{IxDyn, PyArray1, PyArrayDyn, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;
use scan_core::dispatch;
use scan_core::prelude::{Array, DType, Element, Type, legacy_state};

/// From this many bytes on, a result's buffer is handed to NumPy instead of being copied.
const HAND_OVER: usize = 1 << 16;

/// The elements of an array of exactly this dtype that lies in memory as C orders it; `None` for any other object.
pub fn exact(object: &Bound<'_, PyAny>, dtype: DType) -> Option<Array> {
    dispatch!(dtype, T => exact_as::<T>(object))
}

/// True for an array of this type that [`exact`] reads.
pub fn is_exact(object: &Bound<'_, PyAny>, ty: &Type) -> bool {
    dispatch!(ty.dtype, T => object.cast::<PyArrayDyn<T>>().is_ok_and(|a| a.is_c_contiguous() && ty.admits(ty.dtype, a.shape())))
}

fn exact_as<T: Element + numpy::Element>(object: &Bound<'_, PyAny>) -> Option<Array> {
    let array = object.cast::<PyArrayDyn<T>>().ok()?;
    if !array.is_c_contiguous() {
        return None;
    }
    let borrowed = array.try_readonly().ok()?;
    Some(Array::new(array.shape(), borrowed.as_slice().ok()?.to_vec()))
}

/// An array of any layout, copied; its dtype is kept.
///
/// # Errors
/// Where the object is no array, or its dtype is none of ours.
pub fn from_numpy(object: &Bound<'_, PyAny>) -> PyResult<Array> {
    let py = object.py();
    let array = object.cast::<PyUntypedArray>().map_err(|_| no_array(object))?;
    let name: String = array.dtype().getattr("name")?.extract()?;
    let dtype = DType::parse(&name).ok_or_else(|| no_array(object))?;
    if let Some(array) = exact(object, dtype) {
        return Ok(array);
    }
    let options = PyDict::new(py);
    options.set_item("dtype", dtype.name())?;
    options.set_item("order", "C")?;
    let plain = numpy_array(py)?.call((object,), Some(&options))?;
    exact(&plain, dtype).ok_or_else(|| no_array(object))
}

fn no_array(object: &Bound<'_, PyAny>) -> PyErr {
    let what = object.cast::<PyUntypedArray>().map_or_else(|_| object.get_type().to_string(), |a| format!("an array of {}", a.dtype()));
    pyo3::exceptions::PyTypeError::new_err(format!("expected an array of bool, integers, float32 or float64, got {what}"))
}

fn numpy_array(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static CELL: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    CELL.import(py, "numpy", "array")
}

/// A new NumPy array with these elements.
pub fn to_numpy(py: Python<'_>, array: Array) -> PyResult<Bound<'_, PyAny>> {
    dispatch!(array.dtype(), T => to_numpy_as::<T>(py, array))
}

fn to_numpy_as<T: Element + numpy::Element>(py: Python<'_>, array: Array) -> PyResult<Bound<'_, PyAny>> {
    if array.rank() > 0 && array.len() * size_of::<T>() >= HAND_OVER {
        let shape = array.shape().to_vec();
        return Ok(PyArray1::from_vec(py, array.into_vec::<T>()).reshape(IxDyn(&shape))?.into_any());
    }
    let out = PyArrayDyn::<T>::zeros(py, IxDyn(array.shape()), false);
    if !array.is_empty() {
        out.readwrite().as_slice_mut()?.copy_from_slice(array.as_slice::<T>());
    }
    Ok(out.into_any())
}

/// The state of NumPy's `RandomState(seed)` as a uint32 vector of 628: key, position, cached normal.
#[pyfunction]
pub fn mt_state(py: Python<'_>, seed: u32) -> PyResult<Bound<'_, PyAny>> {
    to_numpy(py, legacy_state(seed))
}
