//! What DLPack hands on of an array on a card: its structures as its header has them, in a capsule of Python's.
//!
//! Source: `dlpack.h` of version 1.1, and the description of `__dlpack__` in the standard of array APIs.

use pyo3::ffi::{PyCapsule_GetPointer, PyCapsule_IsValid, PyCapsule_New, PyObject};
use pyo3::prelude::*;
use scan_core::prelude::{Array, DType};
use std::ffi::{CStr, c_void};

/// `kDLCPU`
pub const HOST: i32 = 1;
/// `kDLCUDA`
pub const CUDA: i32 = 2;

/// `DLTensor`
#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device: [i32; 2],
    rank: i32,
    /// Code, bits, lanes.
    dtype: (u8, u8, u16),
    shape: *mut i64,
    strides: *mut i64,
    offset: u64,
}

/// Keeps the memory, the extents and the strides.
struct Owner {
    _array: Array,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

/// `DLManagedTensor`, which cannot say that its memory is not to be written.
#[repr(C)]
struct Managed {
    tensor: Tensor,
    owner: Box<Owner>,
    delete: unsafe extern "C" fn(*mut Managed),
}

/// `DLManagedTensorVersioned`
#[repr(C)]
struct Versioned {
    version: [u32; 2],
    owner: Box<Owner>,
    delete: unsafe extern "C" fn(*mut Versioned),
    flags: u64,
    tensor: Tensor,
}

/// The version that [`Versioned`] is of.
const VERSION: [u32; 2] = [1, 1];
/// `DLPACK_FLAG_BITMASK_READ_ONLY`
const READ_ONLY: u64 = 1;
/// `DLPACK_FLAG_BITMASK_IS_COPIED`
const COPIED: u64 = 2;

/// What a capsule holds as long as nobody took it.
trait Handed {
    /// The capsule's name until then.
    const FRESH: &'static CStr;
}

impl Handed for Managed {
    const FRESH: &'static CStr = c"dltensor";
}

impl Handed for Versioned {
    const FRESH: &'static CStr = c"dltensor_versioned";
}

/// # Safety
/// `handed` was boxed by [`capsule`], and nobody uses it any more.
unsafe extern "C" fn delete<T>(handed: *mut T) {
    // SAFETY: by contract.
    drop(unsafe { Box::from_raw(handed) });
}

/// Called where a capsule goes: what nobody took goes with it.
unsafe extern "C" fn forget<T: Handed>(capsule: *mut PyObject) {
    // SAFETY: a capsule that is made below; whoever takes what it holds renames it.
    unsafe {
        if PyCapsule_IsValid(capsule, T::FRESH.as_ptr()) == 1 {
            delete(PyCapsule_GetPointer(capsule, T::FRESH.as_ptr()).cast::<T>());
        }
    }
}

fn capsule<T: Handed>(py: Python<'_>, handed: T) -> PyResult<Bound<'_, PyAny>> {
    let handed = Box::into_raw(Box::new(handed));
    // SAFETY: a pointer that is not null, a name that lives for ever; the result is a new reference.
    unsafe {
        let made = PyCapsule_New(handed.cast(), T::FRESH.as_ptr(), Some(forget::<T>));
        if made.is_null() {
            delete(handed);
        }
        Bound::from_owned_ptr_or_err(py, made)
    }
}

/// The code of a dtype: `kDLInt`, `kDLUInt`, `kDLFloat`, `kDLBool`.
fn code(dtype: DType) -> u8 {
    match dtype {
        DType::Bool => 6,
        DType::F32 | DType::F64 => 2,
        _ if dtype.is_unsigned() => 1,
        _ => 0,
    }
}

/// An array at an address of a card, for whoever reads memory of that card. A `copy` is the taker's own; of what is not, only structures from
/// version 1 on can say that it is not to be written.
///
/// # Errors
/// Python's, where there is no memory.
pub fn handed_on(py: Python<'_>, array: Array, address: u64, card: i32, versioned: bool, copy: bool) -> PyResult<Bound<'_, PyAny>> {
    let shape: Vec<i64> = array.shape().iter().map(|&n| n as i64).collect();
    let mut strides = vec![1; shape.len()];
    (1..shape.len()).rev().for_each(|k| strides[k - 1] = strides[k] * shape[k]);
    let (dtype, rank) = (array.dtype(), i32::try_from(array.rank())?);
    let mut owner = Box::new(Owner { _array: array, shape, strides });
    let tensor = Tensor {
        data: address as *mut c_void,
        device: [CUDA, card],
        rank,
        dtype: (code(dtype), 8 * dtype.size() as u8, 1),
        shape: owner.shape.as_mut_ptr(),
        strides: owner.strides.as_mut_ptr(),
        offset: 0,
    };
    if versioned {
        let flags = if copy { COPIED } else { READ_ONLY };
        capsule(py, Versioned { version: VERSION, owner, delete: delete::<Versioned>, flags, tensor })
    } else {
        capsule(py, Managed { tensor, owner, delete: delete::<Managed> })
    }
}
