//! Products of rows with a vector, by eight sums side by side: written once over eight elements, which are registers of this processor.
//! Compilers put each element of an array of eight into a register of its own, and take three times as long.

use super::Lanes;
use super::host::Plain;
use super::lanes::fused;
#[cfg(target_arch = "x86_64")]
use super::slices::{Width, width};

/// Eight elements.
trait Eight<T>: Copy {
    /// How many rows' sums there is room for in registers.
    const ROWS: usize = 8;
    fn new(x: &[T; 8]) -> Self;
    /// `self · y + z`
    fn fma(self, y: Self, z: Self) -> Self;
    /// `x · y + self` in the first elements, as many as x and y have, at most eight.
    fn fma_first(self, x: &[T], y: &[T]) -> Self;
    /// The sum of each, as a tree: `((p+t) + (r+v)) + ((q+u) + (s+w))` of `p q r s t u v w`.
    fn sums(rows: [Self; 8]) -> [T; 8];
}

/// For the compiler to put where it likes; `fma` as a context says.
#[derive(Clone, Copy)]
struct Array<T, const FUSED: bool>([T; 8]);

impl<T: Copy, const FUSED: bool> Eight<T> for Array<T, FUSED>
where
    Plain<T, FUSED>: Lanes<V = T>,
{
    #[inline(always)]
    fn new(x: &[T; 8]) -> Self {
        Array(*x)
    }
    #[inline(always)]
    fn fma(self, y: Self, z: Self) -> Self {
        Array(std::array::from_fn(|l| Plain::<T, FUSED>::CX.fma(self.0[l], y.0[l], z.0[l])))
    }
    #[inline(always)]
    fn fma_first(mut self, x: &[T], y: &[T]) -> Self {
        self.0.iter_mut().zip(x.iter().zip(y)).for_each(|(z, (&x, &y))| *z = Plain::<T, FUSED>::CX.fma(x, y, *z));
        self
    }
    #[inline(always)]
    fn sums(rows: [Self; 8]) -> [T; 8] {
        let add = |x, y| Plain::<T, FUSED>::CX.add(x, y);
        rows.map(|Array([p, q, r, s, t, u, v, w])| add(add(add(p, t), add(r, v)), add(add(q, u), add(s, w))))
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Eight;
    use std::arch::x86_64::*;

    // SAFETY of all that follows: only functions compiled for these registers call it (see `rows!`); pointers are of slices, of which no
    // more is read or written than they have.

    impl Eight<f64> for __m512d {
        #[inline(always)]
        fn new(x: &[f64; 8]) -> Self {
            unsafe { _mm512_loadu_pd(x.as_ptr()) }
        }
        #[inline(always)]
        fn fma(self, y: Self, z: Self) -> Self {
            unsafe { _mm512_fmadd_pd(self, y, z) }
        }
        #[inline(always)]
        fn fma_first(self, x: &[f64], y: &[f64]) -> Self {
            let mask = (1u16 << x.len().min(y.len()).min(8)).wrapping_sub(1) as u8;
            unsafe {
                let (x, y) = (_mm512_maskz_loadu_pd(mask, x.as_ptr()), _mm512_maskz_loadu_pd(mask, y.as_ptr()));
                _mm512_mask3_fmadd_pd(x, y, self, mask)
            }
        }
        #[inline(always)]
        fn sums(rows: [Self; 8]) -> [f64; 8] {
            let mut sums = [0.0; 8];
            // Halves of two rows; then quarters of four; then elements of eight.
            unsafe {
                let halves = |x, y| _mm512_add_pd(_mm512_shuffle_f64x2::<0x44>(x, y), _mm512_shuffle_f64x2::<0xEE>(x, y));
                let quarters = |x, y| _mm512_add_pd(_mm512_shuffle_f64x2::<0x88>(x, y), _mm512_shuffle_f64x2::<0xDD>(x, y));
                let [a, b, c, d, e, f, g, h] = rows;
                let (even, odd) = (quarters(halves(a, c), halves(e, g)), quarters(halves(b, d), halves(f, h)));
                let all = _mm512_add_pd(_mm512_unpacklo_pd(even, odd), _mm512_unpackhi_pd(even, odd));
                _mm512_storeu_pd(sums.as_mut_ptr(), all);
            }
            sums
        }
    }

    /// −1 for the first `n` of eight.
    #[inline(always)]
    fn firsts<const WIDE: bool>(n: usize) -> [__m256i; 2] {
        let n = n.min(8) as i32;
        unsafe {
            match WIDE {
                true => {
                    let below = |at: i32| _mm256_cmpgt_epi64(_mm256_set1_epi64x((n - at).into()), _mm256_set_epi64x(3, 2, 1, 0));
                    [below(0), below(4)]
                }
                false => [_mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0)); 2],
            }
        }
    }

    impl Eight<f32> for __m256 {
        #[inline(always)]
        fn new(x: &[f32; 8]) -> Self {
            unsafe { _mm256_loadu_ps(x.as_ptr()) }
        }
        #[inline(always)]
        fn fma(self, y: Self, z: Self) -> Self {
            unsafe { _mm256_fmadd_ps(self, y, z) }
        }
        #[inline(always)]
        fn fma_first(self, x: &[f32], y: &[f32]) -> Self {
            let [mask, _] = firsts::<false>(x.len().min(y.len()));
            unsafe {
                let (x, y) = (_mm256_maskload_ps(x.as_ptr(), mask), _mm256_maskload_ps(y.as_ptr(), mask));
                _mm256_blendv_ps(self, _mm256_fmadd_ps(x, y, self), _mm256_castsi256_ps(mask))
            }
        }
        #[inline(always)]
        fn sums(rows: [Self; 8]) -> [f32; 8] {
            let mut sums = [0.0; 8];
            // Halves of two rows; then quarters of four; then elements of eight.
            unsafe {
                let halves = |x, y| _mm256_add_ps(_mm256_permute2f128_ps::<0x20>(x, y), _mm256_permute2f128_ps::<0x31>(x, y));
                let quarters = |x, y| _mm256_add_ps(_mm256_shuffle_ps::<0x44>(x, y), _mm256_shuffle_ps::<0xEE>(x, y));
                let [a, b, c, d, e, f, g, h] = rows;
                let (first, last) = (quarters(halves(a, e), halves(b, f)), quarters(halves(c, g), halves(d, h)));
                let all = _mm256_add_ps(_mm256_shuffle_ps::<0x88>(first, last), _mm256_shuffle_ps::<0xDD>(first, last));
                _mm256_storeu_ps(sums.as_mut_ptr(), all);
            }
            sums
        }
    }

    /// Two registers of four.
    #[derive(Clone, Copy)]
    pub(super) struct Halves(__m256d, __m256d);

    impl Eight<f64> for Halves {
        const ROWS: usize = 4;
        #[inline(always)]
        fn new(x: &[f64; 8]) -> Self {
            unsafe { Halves(_mm256_loadu_pd(x.as_ptr()), _mm256_loadu_pd(x[4..].as_ptr())) }
        }
        #[inline(always)]
        fn fma(self, y: Self, z: Self) -> Self {
            unsafe { Halves(_mm256_fmadd_pd(self.0, y.0, z.0), _mm256_fmadd_pd(self.1, y.1, z.1)) }
        }
        #[inline(always)]
        fn fma_first(self, x: &[f64], y: &[f64]) -> Self {
            let masks = firsts::<true>(x.len().min(y.len()));
            let half = |z, at: usize| unsafe {
                // Addresses past the end are made, but nothing of them is read.
                let (x, y) = (x.as_ptr().wrapping_add(at), y.as_ptr().wrapping_add(at));
                let mask = masks[at / 4];
                let (x, y) = (_mm256_maskload_pd(x, mask), _mm256_maskload_pd(y, mask));
                _mm256_blendv_pd(z, _mm256_fmadd_pd(x, y, z), _mm256_castsi256_pd(mask))
            };
            Halves(half(self.0, 0), half(self.1, 4))
        }
        #[inline(always)]
        fn sums(rows: [Self; 8]) -> [f64; 8] {
            let mut sums = [0.0; 8];
            // Halves of each row; then quarters of two; then elements of four.
            unsafe {
                let quarters = |x, y| _mm256_add_pd(_mm256_permute2f128_pd::<0x20>(x, y), _mm256_permute2f128_pd::<0x31>(x, y));
                let whole = |Halves(x, y)| _mm256_add_pd(x, y);
                // Not by `map`, which is a function for any processor: an instruction would be a call.
                let [a, b, c, d, e, f, g, h] = rows;
                let (a, b, c, d, e, f, g, h) = (whole(a), whole(b), whole(c), whole(d), whole(e), whole(f), whole(g), whole(h));
                for (at, (even, odd)) in [(0, (quarters(a, c), quarters(b, d))), (4, (quarters(e, g), quarters(f, h)))] {
                    let all = _mm256_add_pd(_mm256_unpacklo_pd(even, odd), _mm256_unpackhi_pd(even, odd));
                    _mm256_storeu_pd(sums[at..].as_mut_ptr(), all);
                }
            }
            sums
        }
    }
}

macro_rules! rows {
    ($(#[$doc:meta])+ $name:ident of $t:ty, $widest:ident, $wide:ident) => {
        $(#[$doc])+
        pub fn $name(rows: &[$t], x: &[$t], out: &mut [$t]) {
            #[cfg(target_arch = "x86_64")]
            {
                use std::arch::x86_64::*;
                #[allow(unused_imports)]
                use x86::Halves;
                #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
                fn widest(rows: &[$t], x: &[$t], out: &mut [$t]) { row_products_of::<_, $widest>(&Plain::<$t, true>::CX, rows, x, out) }
                #[target_feature(enable = "avx2,fma")]
                fn wide(rows: &[$t], x: &[$t], out: &mut [$t]) { row_products_of::<_, $wide>(&Plain::<$t, true>::CX, rows, x, out) }
                match width() {
                    // SAFETY: `width` has asked the processor for these features.
                    Width::Avx512 => return unsafe { widest(rows, x, out) },
                    // SAFETY: as above.
                    Width::Avx2 => return unsafe { wide(rows, x, out) },
                    Width::Plain => {}
                }
            }
            match fused() {
                true => row_products_of::<_, Array<$t, true>>(&Plain::<$t, true>::CX, rows, x, out),
                false => row_products_of::<_, Array<$t, false>>(&Plain::<$t, false>::CX, rows, x, out),
            }
        }
    };
}

rows! {
    /// `outᵢ = Σₚ rowsᵢₚ · xₚ`: eight strided partial sums (`p mod 8`), then a tree over them.
    row_products of f64, __m512d, Halves
}
rows! {
    /// As [`row_products`].
    row_products_f32 of f32, __m256, __m256
}

#[inline(always)]
fn row_products_of<C: Lanes, E: Eight<C::V>>(c: &C, rows: &[C::V], x: &[C::V], out: &mut [C::V]) {
    if x.is_empty() {
        return out.fill(c.num(0.0));
    }
    // Some rows at a time: their sums do not wait for each other, and x is read once.
    let (rows, out) = if E::ROWS < 8 { (rows, out) } else { products_by::<C, E, 8>(c, rows, x, out) };
    let (rows, out) = products_by::<C, E, 4>(c, rows, x, out);
    products_by::<C, E, 1>(c, rows, x, out);
}

/// As many rows as make N at a time; those that are left, with their places.
#[inline(always)]
fn products_by<'r, 'o, C: Lanes, E: Eight<C::V>, const N: usize>(
    c: &C,
    rows: &'r [C::V],
    x: &[C::V],
    out: &'o mut [C::V],
) -> (&'r [C::V], &'o mut [C::V]) {
    let k = x.len();
    let (whole, rest) = out.as_chunks_mut::<N>();
    let (rows, others) = rows.split_at(whole.len() * N * k);
    for (out, rows) in whole.iter_mut().zip(rows.chunks_exact(N * k)) {
        let sums = products_of::<C, E, N>(c, std::array::from_fn(|r| &rows[r * k..(r + 1) * k]), x);
        out.copy_from_slice(&sums[..N]);
    }
    (others, rest)
}

/// Of N rows, at most eight.
#[inline(always)]
fn products_of<C: Lanes, E: Eight<C::V>, const N: usize>(c: &C, rows: [&[C::V]; N], x: &[C::V]) -> [C::V; 8] {
    // No closures on arrays here: compilers leave them functions of their own, for any processor.
    let (whole, last) = x.as_chunks::<8>();
    let mut heads = [&[][..]; N];
    let mut tails = [&[][..]; N];
    for ((row, head), tail) in rows.iter().zip(&mut heads).zip(&mut tails) {
        let (own, rest) = row.as_chunks::<8>();
        (*head, *tail) = (&own[..whole.len()], rest);
    }
    let mut parts = [E::new(&[c.num(0.0); 8]); 8];
    for (at, x) in whole.iter().enumerate() {
        let x = E::new(x);
        for (part, row) in parts.iter_mut().zip(&heads) {
            *part = E::new(&row[at]).fma(x, *part);
        }
    }
    if !last.is_empty() {
        for (part, tail) in parts.iter_mut().zip(&tails) {
            *part = part.fma_first(tail, last);
        }
    }
    E::sums(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    type On<'a, T> = &'a dyn Fn(&[T], &[T], &mut [T]);

    fn check<T: Copy + PartialEq + std::fmt::Debug>(number: impl Fn(usize) -> T, all: &[On<T>]) {
        for k in [0, 1, 7, 8, 9, 16, 33] {
            for m in [0, 1, 3, 4, 5, 9, 15] {
                let (rows, x): (Vec<T>, Vec<T>) = ((0..m * k).map(&number).collect(), (0..k).map(|i| number(i + 1000)).collect());
                let products = |on: &On<T>| {
                    let mut out = vec![number(5); m];
                    on(&rows, &x, &mut out);
                    out
                };
                let found: Vec<Vec<T>> = all.iter().map(products).collect();
                assert!(found.iter().all(|one| *one == found[0]), "{m} rows of {k}: {found:?}");
            }
        }
    }

    #[test]
    fn products_of_rows_have_the_same_bits_in_all_registers() {
        let number = |i: usize| ((i * 7919 % 1009) as f64 / 300.0 - 1.5) * 1.1;
        fn plain<T: Copy>(rows: &[T], x: &[T], out: &mut [T])
        where
            Plain<T, true>: Lanes<V = T>,
            Plain<T, false>: Lanes<V = T>,
        {
            match fused() {
                true => row_products_of::<_, Array<T, true>>(&Plain::<T, true>::CX, rows, x, out),
                false => row_products_of::<_, Array<T, false>>(&Plain::<T, false>::CX, rows, x, out),
            }
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma")]
        fn halves(rows: &[f64], x: &[f64], out: &mut [f64]) {
            row_products_of::<_, x86::Halves>(&Plain::<f64, true>::CX, rows, x, out);
        }
        let middle = |rows: &[f64], x: &[f64], out: &mut [f64]| {
            #[cfg(target_arch = "x86_64")]
            if width() != Width::Plain {
                // SAFETY: `width` has asked the processor for these features.
                return unsafe { halves(rows, x, out) };
            }
            plain(rows, x, out);
        };
        check(number, &[&row_products, &middle, &plain]);
        check(|i| number(i) as f32, &[&row_products_f32, &plain]);
    }
}
