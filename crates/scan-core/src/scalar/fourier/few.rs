//! Registers of complex numbers: real parts in one, imaginary ones in another.

use super::{Group, Pair, Turns};
use crate::scalar::product::vector::{Array, Vector};

/// A register of real parts and one of imaginary ones.
#[derive(Clone, Copy)]
pub(super) struct Few<V>(pub V, pub V);

// SAFETY of all that follows: the caller is compiled for these registers, and addresses are its duty.
impl<V: Turned> Few<V> {
    #[inline(always)]
    pub unsafe fn plus(self, b: Few<V>) -> Few<V> {
        unsafe { Few(self.0.add(b.0), self.1.add(b.1)) }
    }
    #[inline(always)]
    pub unsafe fn minus(self, b: Few<V>) -> Few<V> {
        unsafe { Few(self.0.sub(b.0), self.1.sub(b.1)) }
    }
    /// Products; the first group is left as it is.
    #[inline(always)]
    pub unsafe fn times(self, turns: Few<V>, of: Group) -> Few<V> {
        if of == Group::First {
            return self;
        }
        unsafe {
            let made = Few(self.0.mul(turns.0).sub(self.1.mul(turns.1)), self.0.mul(turns.1).add(self.1.mul(turns.0)));
            if of == Group::FirstOfSome { Few(made.0.with_first(self.0), made.1.with_first(self.1)) } else { made }
        }
    }
    /// One number in all places.
    #[inline(always)]
    pub unsafe fn of([re, im]: Pair) -> Few<V> {
        unsafe { Few(V::splat(re), V::splat(im)) }
    }
    /// The n numbers from the q-th on; a whole register where `FULL`.
    #[inline(always)]
    pub unsafe fn at<const FULL: bool>((re, im): (*const f64, *const f64), q: usize, n: usize) -> Few<V> {
        unsafe {
            if FULL { Few(V::load(re.add(q)), V::load(im.add(q))) } else { Few(V::load_first(re.add(q), n), V::load_first(im.add(q), n)) }
        }
    }
    #[inline(always)]
    pub unsafe fn some(from: (*const f64, *const f64), q: usize, n: usize) -> Few<V> {
        unsafe { if n == V::LEN { Few::at::<true>(from, q, n) } else { Few::at::<false>(from, q, n) } }
    }
    /// Writes n numbers from the q-th on; a whole register where `FULL`.
    #[inline(always)]
    pub unsafe fn put<const FULL: bool>(self, (re, im): (*mut f64, *mut f64), q: usize, n: usize) {
        unsafe {
            if FULL {
                self.0.store(re.add(q));
                self.1.store(im.add(q));
            } else {
                self.0.store_first(re.add(q), n);
                self.1.store_first(im.add(q), n);
            }
        }
    }
    #[inline(always)]
    pub unsafe fn put_some(self, to: (*mut f64, *mut f64), q: usize, n: usize) {
        unsafe { if n == V::LEN { self.put::<true>(to, q, n) } else { self.put::<false>(to, q, n) } }
    }
    /// Four numbers, all but the first one turned by three that follow each other.
    #[inline(always)]
    pub unsafe fn turned_by<B: Turns<V>, const FULL: bool>([a, b, c, d]: [Few<V>; 4], by: &B, which: usize, of: Group) -> [Few<V>; 4] {
        unsafe { [a, b.times(by.by::<FULL>(which), of), c.times(by.by::<FULL>(which + 1), of), d.times(by.by::<FULL>(which + 2), of)] }
    }
    /// Writes n rows of four numbers.
    #[inline(always)]
    pub unsafe fn put_rows([a, b, c, d]: [Few<V>; 4], (re, im): (*mut f64, *mut f64), extents: [usize; 2]) {
        unsafe {
            V::put_turned([a.0, b.0, c.0, d.0], re, extents);
            V::put_turned([a.1, b.1, c.1, d.1], im, extents);
        }
    }
    /// Transforms of four numbers.
    #[inline(always)]
    pub unsafe fn four([a, b, c, d]: [Few<V>; 4]) -> [Few<V>; 4] {
        unsafe {
            let (even, odd, left, right) = (a.plus(c), b.plus(d), a.minus(c), b.minus(d).turned());
            [even.plus(odd), left.plus(right), even.minus(odd), left.minus(right)]
        }
    }
    /// Times −i.
    #[inline(always)]
    pub unsafe fn turned(self) -> Few<V> {
        unsafe { Few(self.1, V::splat(-0.0).sub(self.0)) }
    }
}

/// Registers whose elements become rows.
pub(super) trait Turned: Vector<T = f64> {
    /// These elements, but the first one of another register.
    ///
    /// # Safety
    /// The processor has these registers.
    unsafe fn with_first(self, other: Self) -> Self;
    /// Writes rows: row i is the i-th element of four registers. `extents` are how many elements rows are apart, and how many rows there are.
    ///
    /// # Safety
    /// The processor has these registers; four elements of each row may be written; there are no more rows than elements of a register.
    unsafe fn put_turned(rows: [Self; 4], to: *mut f64, extents: [usize; 2]);
}

// SAFETY of the functions: every processor has arrays; addresses are the caller's duty.
impl Turned for Array<f64, false> {
    #[inline(always)]
    unsafe fn with_first(mut self, other: Self) -> Self {
        self.0[0] = other.0[0];
        self
    }
    #[inline(always)]
    unsafe fn put_turned(rows: [Self; 4], to: *mut f64, [apart, n]: [usize; 2]) {
        for i in 0..n {
            unsafe { to.add(apart * i).cast::<[f64; 4]>().write_unaligned(rows.map(|row| row.0[i])) }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Turned;
    use std::arch::x86_64::*;

    // SAFETY of the functions: as the trait's.
    impl Turned for __m256d {
        #[inline(always)]
        unsafe fn with_first(self, other: Self) -> Self {
            unsafe { _mm256_blend_pd::<1>(self, other) }
        }
        #[inline(always)]
        unsafe fn put_turned([a, b, c, d]: [Self; 4], to: *mut f64, [apart, n]: [usize; 2]) {
            unsafe {
                let even = [_mm256_unpacklo_pd(a, b), _mm256_unpacklo_pd(c, d)];
                let odd = [_mm256_unpackhi_pd(a, b), _mm256_unpackhi_pd(c, d)];
                let rows = [
                    _mm256_permute2f128_pd::<0x20>(even[0], even[1]),
                    _mm256_permute2f128_pd::<0x20>(odd[0], odd[1]),
                    _mm256_permute2f128_pd::<0x31>(even[0], even[1]),
                    _mm256_permute2f128_pd::<0x31>(odd[0], odd[1]),
                ];
                for (i, row) in rows.iter().enumerate().take(n) {
                    _mm256_storeu_pd(to.add(apart * i), *row);
                }
            }
        }
    }

    // SAFETY of the functions: as the trait's.
    impl Turned for __m512d {
        #[inline(always)]
        unsafe fn with_first(self, other: Self) -> Self {
            unsafe { _mm512_mask_mov_pd(self, 1, other) }
        }
        #[inline(always)]
        unsafe fn put_turned([a, b, c, d]: [Self; 4], to: *mut f64, [apart, n]: [usize; 2]) {
            unsafe {
                // Two rows in each register: the first and the third, the second and the fourth, then of the last four.
                let (first, last) = (_mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11), _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15));
                let even = [_mm512_unpacklo_pd(a, b), _mm512_unpacklo_pd(c, d)];
                let odd = [_mm512_unpackhi_pd(a, b), _mm512_unpackhi_pd(c, d)];
                let pairs = [
                    _mm512_permutex2var_pd(even[0], first, even[1]),
                    _mm512_permutex2var_pd(odd[0], first, odd[1]),
                    _mm512_permutex2var_pd(even[0], last, even[1]),
                    _mm512_permutex2var_pd(odd[0], last, odd[1]),
                ];
                for i in 0..8 {
                    let pair = pairs[2 * (i / 4) + i % 2];
                    let row = if i / 2 % 2 == 0 { _mm512_castpd512_pd256(pair) } else { _mm512_extractf64x4_pd::<1>(pair) };
                    if i < n {
                        _mm256_storeu_pd(to.add(apart * i), row);
                    }
                }
            }
        }
    }
}
