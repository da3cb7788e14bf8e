//! Arrays in memory of a C program: described, looked at, copied and lent.

use crate::misuse;
use scan_core::dispatch;
use scan_core::prelude::*;
use std::ffi::{c_int, c_void};
use std::ops::Range;

/// `rscan_array`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CArray {
    dtype: c_int,
    rank: usize,
    shape: *const usize,
    data: *const c_void,
}

/// `rscan_buffer`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CBuffer {
    dtype: c_int,
    rank: usize,
    shape: *const usize,
    data: *mut c_void,
}

const DTYPES: [DType; 11] =
    [DType::Bool, DType::I8, DType::I16, DType::I32, DType::I64, DType::U8, DType::U16, DType::U32, DType::U64, DType::F32, DType::F64];
/// The largest number of axes.
const MAX_RANK: usize = 32;

/// What an array of the caller's says of itself, looked at.
struct Told<'a> {
    dtype: DType,
    shape: &'a [usize],
    /// Number of elements.
    n: usize,
}

/// # Safety
/// So many extents as the rank says lie at the shape.
unsafe fn told<'a>(from: &CArray) -> Result<Told<'a>> {
    let dtype = usize::try_from(from.dtype).ok().and_then(|i| DTYPES.get(i)).copied();
    let Some(dtype) = dtype else { return misuse("an array has a dtype that does not exist") };
    if from.rank > MAX_RANK || from.rank > 0 && from.shape.is_null() {
        return misuse("an array has too many axes, or no shape");
    }
    // SAFETY: so many extents lie there, by contract.
    let shape = if from.rank == 0 { &[] } else { unsafe { std::slice::from_raw_parts(from.shape, from.rank) } };
    let n = if shape.contains(&0) { Some(0) } else { shape.iter().try_fold(1usize, |n, &k| n.checked_mul(k)) };
    let n = n.filter(|n| n.checked_mul(dtype.size()).is_some_and(|bytes| bytes <= isize::MAX as usize));
    let Some(n) = n else { return misuse("an array has more elements than memory") };
    if n > 0 && (from.data.is_null() || !from.data.addr().is_multiple_of(dtype.size())) {
        return misuse("the elements of an array are NULL or not aligned");
    }
    Ok(Told { dtype, shape, n })
}

/// Elements of a dtype that is not bool.
///
/// # Safety
/// `n` aligned elements lie there and stay as they are for `'a`.
unsafe fn elements<'a, T>(data: *const c_void, n: usize) -> &'a [T] {
    // SAFETY: by contract; every pattern of bits is an element.
    if n == 0 { &[] } else { unsafe { std::slice::from_raw_parts(data.cast(), n) } }
}

/// Bools of bytes, which need not be 0 or 1.
///
/// # Safety
/// `n` bytes lie there.
unsafe fn bools(data: *const c_void, n: usize) -> Vec<bool> {
    // SAFETY: by contract.
    memory::collect(unsafe { elements::<u8>(data, n) }.iter().map(|&b| b != 0))
}

/// A copy of an array of the caller's.
///
/// # Safety
/// What the array points to is there, as its fields say.
pub unsafe fn array(from: &CArray) -> Result<Array> {
    // SAFETY: by contract, here and below; `told` has looked at dtype, number and alignment.
    let Told { dtype, shape, n } = unsafe { told(from)? };
    if dtype == DType::Bool {
        return Ok(Array::new(shape, unsafe { bools(from.data, n) }));
    }
    Ok(dispatch!(dtype, T => Array::new(shape, memory::copied(unsafe { elements::<T>(from.data, n) }))))
}

/// The arrays of a list.
///
/// # Safety
/// `n` of them lie there.
pub unsafe fn listed<'a, T>(first: *const T, n: usize) -> &'a [T] {
    // SAFETY: by contract.
    if n == 0 || first.is_null() { &[] } else { unsafe { std::slice::from_raw_parts(first, n) } }
}

/// Copies of arrays of the caller's.
///
/// # Safety
/// `n` arrays lie there, whose memory is as they say.
pub unsafe fn arrays(first: *const CArray, n: usize) -> Result<Vec<Array>> {
    // SAFETY: by contract.
    unsafe { listed(first, n) }.iter().map(|a| unsafe { array(a) }).collect()
}

/// Arguments where they lie and memory for results, for the time of a call.
pub struct Lent<'a> {
    args: &'a [CArray],
    outs: &'a [CBuffer],
    /// Arguments that are bool, copied: their bytes need not be 0 or 1.
    given: Vec<Vec<bool>>,
    /// Memory in place of results that are bool: bytes of the caller's need not be bools before the call.
    made: Vec<Vec<bool>>,
}

impl<'a> Lent<'a> {
    /// # Safety
    /// What the arrays and buffers point to is there for `'a`, as their fields say, and nobody else writes there.
    pub unsafe fn new(args: &'a [CArray], outs: &'a [CBuffer]) -> Result<Lent<'a>> {
        let (mut given, mut made) = (vec![], vec![]);
        let mut taken: Vec<(bool, Range<usize>)> = vec![];
        for (writes, array) in args.iter().map(|a| (false, *a)).chain(outs.iter().map(|o| (true, o.as_array()))) {
            // SAFETY: by contract.
            let Told { dtype, n, .. } = unsafe { told(&array)? };
            let range = array.data.addr()..array.data.addr() + n * dtype.size();
            let meets = |r: &Range<usize>| n > 0 && r.start < range.end && range.start < r.end;
            if taken.iter().any(|(out, r)| (writes || *out) && meets(r)) {
                return misuse("memory for a result lies in that of an argument or of another result");
            }
            if n > 0 {
                taken.push((writes, range));
            }
            let bools = if dtype != DType::Bool {
                vec![]
            } else if writes {
                vec![false; n]
            } else {
                unsafe { bools(array.data, n) }
            };
            if writes { made.push(bools) } else { given.push(bools) }
        }
        Ok(Lent { args, outs, given, made })
    }
    /// Runs; what it makes of bools goes to the caller where it succeeds.
    pub fn run<R>(mut self, call: impl FnOnce(&[View], &mut [ViewMut]) -> Result<R>) -> Result<R> {
        let args = self.args.iter().zip(&self.given).map(|(a, bools)| {
            // SAFETY: `new` was promised that the memory is there, and has looked at what the array says of itself; here and below.
            let Told { dtype, shape, n } = unsafe { told(a)? };
            match dtype {
                DType::Bool => View::new(shape, &bools[..]),
                _ => dispatch!(dtype, T => View::new(shape, unsafe { elements::<T>(a.data, n) })),
            }
        });
        let args = args.collect::<Result<Vec<_>>>()?;
        let outs = self.outs.iter().zip(&mut self.made).map(|(o, bools)| {
            let Told { dtype, shape, n } = unsafe { told(&o.as_array())? };
            match dtype {
                DType::Bool => ViewMut::new(shape, &mut bools[..]),
                // SAFETY: nobody else has this memory: `new` has seen that it is apart from all other.
                _ => dispatch!(dtype, T => ViewMut::new(shape, unsafe { writeable::<T>(o.data, n) })),
            }
        });
        let done = call(&args, &mut outs.collect::<Result<Vec<_>>>()?)?;
        for (o, bools) in self.outs.iter().zip(&self.made) {
            // SAFETY: as many bytes as bools lie there, if there are any.
            unsafe { std::ptr::copy_nonoverlapping(bools.as_ptr().cast::<u8>(), o.data.cast(), bools.len()) };
        }
        Ok(done)
    }
}

/// # Safety
/// As of [`elements`], and nobody else reads or writes there.
unsafe fn writeable<'a, T>(data: *mut c_void, n: usize) -> &'a mut [T] {
    // SAFETY: by contract.
    if n == 0 { &mut [] } else { unsafe { std::slice::from_raw_parts_mut(data.cast(), n) } }
}

impl CBuffer {
    fn as_array(&self) -> CArray {
        CArray { dtype: self.dtype, rank: self.rank, shape: self.shape, data: self.data }
    }
}

/// What C sees of an array.
pub fn seen(array: &Array) -> CArray {
    let dtype = DTYPES.iter().position(|d| *d == array.dtype()).unwrap_or_default() as c_int;
    let data = dispatch!(array.dtype(), T => array.as_slice::<T>().as_ptr().cast());
    CArray { dtype, rank: array.rank(), shape: array.shape().as_ptr(), data }
}
