//! Elements of operands: read one by one, or as slices that live as long as nothing else runs.

use super::code::Operand;
use crate::types::{Array, DType, Element};

/// The elements of an operand as an array.
pub fn array_at(from: &Operand, dtype: DType, shape: &[usize]) -> Array {
    let n = crate::types::shape::count(shape);
    // SAFETY: the slice is copied before anything else runs.
    crate::dispatch!(dtype, T => Array::new(shape, crate::types::memory::copied(unsafe { from.slice::<T>(n) })))
}

/// Evaluates an expression with `T` as the type of an integer dtype; panics for others.
macro_rules! of_integers {
    ($dtype:expr, $T:ident => $body:expr) => {
        of_integers!(@match $dtype, $T => $body, I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64)
    };
    (@match $dtype:expr, $T:ident => $body:expr, $($name:ident $t:ty),+) => {
        match $dtype {
            $(DType::$name => {
                type $T = $t;
                $body
            })+
            other => panic!("{other} is no index"),
        }
    };
}

fn wide<T: TryInto<i64>>(x: T) -> i64 {
    x.try_into().unwrap_or(i64::MAX)
}

/// The integer at an operand; u64 beyond i64 saturate.
///
/// # Panics
/// Where the operand reaches beyond its memory, or floats lie there.
#[inline]
pub fn integer_at(from: &Operand, dtype: DType) -> i64 {
    // SAFETY: the slice dies here.
    if dtype == DType::I64 { unsafe { from.slice::<i64>(1)[0] } } else { other_integer_at(from, dtype) }
}

fn other_integer_at(from: &Operand, dtype: DType) -> i64 {
    // SAFETY: the slice dies here.
    of_integers!(dtype, T => wide(unsafe { from.slice::<T>(1) }[0]))
}

/// Calls `visit` with the number and the value of each of n integers at an operand; u64 beyond i64 saturate.
///
/// # Panics
/// As [`integer_at`].
pub fn each_integer(from: &Operand, dtype: DType, n: usize, mut visit: impl FnMut(usize, i64)) {
    // SAFETY: the slice dies here; nothing is written meanwhile.
    of_integers!(dtype, T => unsafe { from.slice::<T>(n) }.iter().enumerate().for_each(|(i, &x)| visit(i, wide(x))));
}

/// Calls `visit` with each element of `with` and the integer that belongs to it; u64 beyond i64 saturate.
///
/// # Panics
/// As [`integer_at`].
pub fn zip_integers<T>(from: &Operand, dtype: DType, with: &mut [T], mut visit: impl FnMut(&mut T, i64)) {
    let n = with.len();
    // SAFETY: the slice dies here; nothing is written meanwhile.
    of_integers!(dtype, I => with.iter_mut().zip(unsafe { from.slice::<I>(n) }).for_each(|(w, &x)| visit(w, wide(x))));
}

/// The bits of the element at an operand, zero-extended.
///
/// # Panics
/// Where the operand reaches beyond its memory.
pub fn bits_at(from: &Operand, dtype: DType) -> u64 {
    // SAFETY: the slices die here; elements of a size have as many bits as whole numbers of it, and these lie alike.
    unsafe {
        match dtype.size() {
            1 => u64::from(from.slice::<u8>(1)[0]),
            2 => u64::from(from.slice::<u16>(1)[0]),
            4 => u64::from(from.slice::<u32>(1)[0]),
            _ => from.slice::<u64>(1)[0],
        }
    }
}

/// True where the element at an operand is not zero.
///
/// # Panics
/// Where the operand reaches beyond its memory.
#[inline]
pub fn truth_at(from: &Operand, dtype: DType) -> bool {
    // SAFETY: the slice dies here.
    if dtype == DType::Bool { unsafe { from.slice::<u8>(1)[0] != 0 } } else { other_truth_at(from, dtype) }
}

fn other_truth_at(from: &Operand, dtype: DType) -> bool {
    // SAFETY: the slice dies here.
    crate::dispatch!(dtype, T => unsafe { from.slice::<T>(1) }[0] != T::default())
}

/// Writes the elements of an array.
pub fn write_array(to: &Operand, array: &Array) {
    // SAFETY: the array's buffer is its own; the slice dies here.
    crate::dispatch!(array.dtype(), T => unsafe { to.slice_mut::<T>(array.len()) }.copy_from_slice(array.as_slice::<T>()));
}

/// Runs `f(a, b, c)` on three operands of these numbers of elements, c for writing and apart from the others.
///
/// # Panics
/// Where c overlaps a or b, or an operand reaches beyond its memory.
#[inline]
pub fn with_slices<T: Element, R>(operands: [&Operand; 3], n: [usize; 3], f: impl FnOnce(&[T], &[T], &mut [T]) -> R) -> R {
    let [a, b, c] = operands;
    let size = size_of::<T>();
    assert!(!c.overlaps(n[2] * size, a, n[0] * size) && !c.overlaps(n[2] * size, b, n[1] * size), "a result over its operand");
    // SAFETY: the written slice is apart from the read ones, as asserted, and all die before anything else runs.
    unsafe { f(a.slice(n[0]), b.slice(n[1]), c.slice_mut(n[2])) }
}

/// As many inputs [`with_inputs`] takes.
pub const INPUTS: usize = 6;

/// Runs `f(ins, out)` on operands of these numbers of elements, out for writing and apart from the others.
///
/// # Panics
/// Where out overlaps another operand, or one reaches beyond its memory, or there are more than [`INPUTS`].
pub fn with_inputs<'a, T: Element, R>(
    ins: impl Iterator<Item = (Operand<'a>, usize)>,
    (to, n): (Operand<'a>, usize),
    f: impl FnOnce(&[&[T]], &mut [T]) -> R,
) -> R {
    let (size, mut slices, mut given): (usize, [&[T]; INPUTS], usize) = (size_of::<T>(), [&[]; INPUTS], 0);
    for (x, len) in ins {
        assert!(!to.overlaps(n * size, &x, len * size), "a result over its operand");
        // SAFETY: the slice is only read, apart from the written one, as asserted, and dies before anything else runs.
        slices[given] = unsafe { x.slice(len) };
        given += 1;
    }
    // SAFETY: the written slice is apart from the read ones, as asserted, and dies before anything else runs.
    f(&slices[..given], unsafe { to.slice_mut(n) })
}
