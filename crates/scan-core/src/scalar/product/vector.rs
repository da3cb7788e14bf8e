//! Registers that products are written over: those of this processor, and arrays for any other.

use super::super::Lanes;
use super::super::host::Plain;

/// A register of elements. What its functions take and give is only theirs to have where the processor has such registers: a function
/// that is compiled for them must call these.
pub(in crate::scalar) trait Vector: Copy {
    /// An element.
    type T: Copy;
    /// Elements of a register.
    const LEN: usize;
    /// How many there are.
    const REGISTERS: usize;
    /// 0 in all places.
    ///
    /// # Safety
    /// The processor has these registers.
    unsafe fn zero() -> Self;
    /// x in all places.
    ///
    /// # Safety
    /// The processor has these registers.
    unsafe fn splat(x: Self::T) -> Self;
    /// As many elements from an address on.
    ///
    /// # Safety
    /// The processor has these registers; the elements may be read.
    unsafe fn load(at: *const Self::T) -> Self;
    /// The first n; others are anything.
    ///
    /// # Safety
    /// The processor has these registers; n elements may be read, 1 at least.
    unsafe fn load_first(at: *const Self::T, n: usize) -> Self;
    /// Writes as many elements.
    ///
    /// # Safety
    /// The processor has these registers; the elements may be written.
    unsafe fn store(self, at: *mut Self::T);
    /// Writes the first n.
    ///
    /// # Safety
    /// The processor has these registers; n elements may be written, 1 at least.
    unsafe fn store_first(self, at: *mut Self::T, n: usize);
    /// `self · y + z`, rounded as [`fused`](super::super::lanes::fused) says.
    ///
    /// # Safety
    /// The processor has these registers.
    unsafe fn fma(self, y: Self, z: Self) -> Self;
    /// `self + y`
    ///
    /// # Safety
    /// The processor has these registers.
    unsafe fn add(self, y: Self) -> Self;
    /// `self − y`
    ///
    /// # Safety
    /// The processor has these registers.
    unsafe fn sub(self, y: Self) -> Self;
    /// `self · y`
    ///
    /// # Safety
    /// The processor has these registers.
    unsafe fn mul(self, y: Self) -> Self;
}

/// Four elements, for the compiler to put where it likes; `fma` as a context says.
#[derive(Clone, Copy)]
pub(in crate::scalar) struct Array<T, const FUSED: bool>(pub(in crate::scalar) [T; 4]);

// SAFETY of the functions below: every processor has arrays; addresses are the caller's duty.
impl<T: Copy, const FUSED: bool> Vector for Array<T, FUSED>
where
    Plain<T, FUSED>: Lanes<V = T>,
{
    type T = T;
    const LEN: usize = 4;
    const REGISTERS: usize = 16;
    #[inline(always)]
    unsafe fn zero() -> Self {
        Array([Plain::<T, FUSED>::CX.num(0.0); 4])
    }
    #[inline(always)]
    unsafe fn splat(x: T) -> Self {
        Array([x; 4])
    }
    #[inline(always)]
    unsafe fn load(at: *const T) -> Self {
        Array(unsafe { at.cast::<[T; 4]>().read_unaligned() })
    }
    #[inline(always)]
    unsafe fn load_first(at: *const T, n: usize) -> Self {
        Array(std::array::from_fn(|l| unsafe { at.add(l.min(n - 1)).read() }))
    }
    #[inline(always)]
    unsafe fn store(self, at: *mut T) {
        unsafe { at.cast::<[T; 4]>().write_unaligned(self.0) }
    }
    #[inline(always)]
    unsafe fn store_first(self, at: *mut T, n: usize) {
        (0..n).for_each(|l| unsafe { at.add(l).write(self.0[l]) });
    }
    #[inline(always)]
    unsafe fn fma(self, y: Self, z: Self) -> Self {
        Array(std::array::from_fn(|l| Plain::<T, FUSED>::CX.fma(self.0[l], y.0[l], z.0[l])))
    }
    #[inline(always)]
    unsafe fn add(self, y: Self) -> Self {
        Array(std::array::from_fn(|l| Plain::<T, FUSED>::CX.add(self.0[l], y.0[l])))
    }
    #[inline(always)]
    unsafe fn sub(self, y: Self) -> Self {
        Array(std::array::from_fn(|l| Plain::<T, FUSED>::CX.sub(self.0[l], y.0[l])))
    }
    #[inline(always)]
    unsafe fn mul(self, y: Self) -> Self {
        Array(std::array::from_fn(|l| Plain::<T, FUSED>::CX.mul(self.0[l], y.0[l])))
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Vector;
    use std::arch::x86_64::*;

    macro_rules! vector {
        ($V:ty: $t:ty, $len:literal, of $registers:literal, $splat:ident, $load:ident, $store:ident, $fma:ident, $add:ident, $sub:ident, $mul:ident,
         first |$at:ident, $n:ident| $load_first:expr, |$to:ident, $m:ident, $x:ident| $store_first:expr) => {
            // SAFETY of the functions: as the trait's.
            impl Vector for $V {
                type T = $t;
                const LEN: usize = $len;
                const REGISTERS: usize = $registers;
                #[inline(always)]
                unsafe fn zero() -> Self {
                    unsafe { $splat(0.0) }
                }
                #[inline(always)]
                unsafe fn splat(x: $t) -> Self {
                    unsafe { $splat(x) }
                }
                #[inline(always)]
                unsafe fn load(at: *const $t) -> Self {
                    unsafe { $load(at) }
                }
                #[inline(always)]
                unsafe fn load_first($at: *const $t, $n: usize) -> Self {
                    unsafe { $load_first }
                }
                #[inline(always)]
                unsafe fn store(self, at: *mut $t) {
                    unsafe { $store(at, self) }
                }
                #[inline(always)]
                unsafe fn store_first(self, $to: *mut $t, $m: usize) {
                    let $x = self;
                    unsafe { $store_first }
                }
                #[inline(always)]
                unsafe fn fma(self, y: Self, z: Self) -> Self {
                    unsafe { $fma(self, y, z) }
                }
                #[inline(always)]
                unsafe fn add(self, y: Self) -> Self {
                    unsafe { $add(self, y) }
                }
                #[inline(always)]
                unsafe fn sub(self, y: Self) -> Self {
                    unsafe { $sub(self, y) }
                }
                #[inline(always)]
                unsafe fn mul(self, y: Self) -> Self {
                    unsafe { $mul(self, y) }
                }
            }
        };
    }

    #[inline(always)]
    fn bits16(n: usize) -> __mmask16 {
        ((1u32 << n) - 1) as __mmask16
    }
    #[inline(always)]
    fn bits8(n: usize) -> __mmask8 {
        ((1u32 << n) - 1) as __mmask8
    }
    /// Sign bits in the first n of eight.
    #[inline(always)]
    unsafe fn signs8(n: usize) -> __m256i {
        unsafe { _mm256_cmpgt_epi32(_mm256_set1_epi32(n as i32), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)) }
    }
    /// Sign bits in the first n of four.
    #[inline(always)]
    unsafe fn signs4(n: usize) -> __m256i {
        unsafe { _mm256_cmpgt_epi64(_mm256_set1_epi64x(n as i64), _mm256_setr_epi64x(0, 1, 2, 3)) }
    }

    vector!(__m512: f32, 16, of 32, _mm512_set1_ps, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_fmadd_ps, _mm512_add_ps, _mm512_sub_ps, _mm512_mul_ps,
        first |at, n| _mm512_maskz_loadu_ps(bits16(n), at), |at, n, x| _mm512_mask_storeu_ps(at, bits16(n), x));
    vector!(__m512d: f64, 8, of 32, _mm512_set1_pd, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_fmadd_pd, _mm512_add_pd, _mm512_sub_pd, _mm512_mul_pd,
        first |at, n| _mm512_maskz_loadu_pd(bits8(n), at), |at, n, x| _mm512_mask_storeu_pd(at, bits8(n), x));
    vector!(__m256: f32, 8, of 16, _mm256_set1_ps, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_fmadd_ps, _mm256_add_ps, _mm256_sub_ps, _mm256_mul_ps,
        first |at, n| _mm256_maskload_ps(at, signs8(n)), |at, n, x| _mm256_maskstore_ps(at, signs8(n), x));
    vector!(__m256d: f64, 4, of 16, _mm256_set1_pd, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_fmadd_pd, _mm256_add_pd, _mm256_sub_pd, _mm256_mul_pd,
        first |at, n| _mm256_maskload_pd(at, signs4(n)), |at, n, x| _mm256_maskstore_pd(at, signs4(n), x));
}
