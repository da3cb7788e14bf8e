//! Products of rows with a vector, by eight sums side by side: written once over eight elements, which are registers of this processor.
//! Compilers put each element of an array of eight into a register of its own, and take three times as long.

use super::Lanes;
use super::host::Plain;
use super::lanes::fused;
use super::slices::{Width, width};

/// Eight elements.
trait Eight<T>: Copy {
    fn new(x: &[T; 8]) -> Self;
    /// `self · y + z`
    fn fma(self, y: Self, z: Self) -> Self;
    fn array(self) -> [T; 8];
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
    fn array(self) -> [T; 8] {
        self.0
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Eight;
    use std::arch::x86_64::*;

    macro_rules! eight {
        ($register:ty, $t:ty, $load:ident, $fma:ident, $store:ident) => {
            impl Eight<$t> for $register {
                #[inline(always)]
                fn new(x: &[$t; 8]) -> Self {
                    // SAFETY: x has eight elements. Only functions compiled for these registers call this: see `rows!`.
                    unsafe { $load(x.as_ptr()) }
                }
                #[inline(always)]
                fn fma(self, y: Self, z: Self) -> Self {
                    // SAFETY: as above.
                    unsafe { $fma(self, y, z) }
                }
                #[inline(always)]
                fn array(self) -> [$t; 8] {
                    let mut x = [0.0; 8];
                    // SAFETY: as above.
                    unsafe { $store(x.as_mut_ptr(), self) };
                    x
                }
            }
        };
    }
    eight!(__m512d, f64, _mm512_loadu_pd, _mm512_fmadd_pd, _mm512_storeu_pd);
    eight!(__m256, f32, _mm256_loadu_ps, _mm256_fmadd_ps, _mm256_storeu_ps);

    /// Two registers of four.
    #[derive(Clone, Copy)]
    pub(super) struct Halves(__m256d, __m256d);

    impl Eight<f64> for Halves {
        #[inline(always)]
        fn new(x: &[f64; 8]) -> Self {
            // SAFETY: as in `eight!`.
            unsafe { Halves(_mm256_loadu_pd(x.as_ptr()), _mm256_loadu_pd(x[4..].as_ptr())) }
        }
        #[inline(always)]
        fn fma(self, y: Self, z: Self) -> Self {
            // SAFETY: as in `eight!`.
            unsafe { Halves(_mm256_fmadd_pd(self.0, y.0, z.0), _mm256_fmadd_pd(self.1, y.1, z.1)) }
        }
        #[inline(always)]
        fn array(self) -> [f64; 8] {
            let mut x = [0.0; 8];
            // SAFETY: as in `eight!`.
            unsafe {
                _mm256_storeu_pd(x.as_mut_ptr(), self.0);
                _mm256_storeu_pd(x[4..].as_mut_ptr(), self.1);
            }
            x
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
    // Four rows at a time: their sums do not wait for each other, and x is read once.
    let k = x.len();
    let (fours, rest) = out.as_chunks_mut::<4>();
    let (rows, others) = rows.split_at(fours.len() * 4 * k);
    for (out, rows) in fours.iter_mut().zip(rows.chunks_exact(4 * k)) {
        *out = products_of::<C, E, 4>(c, std::array::from_fn(|r| &rows[r * k..(r + 1) * k]), x);
    }
    for (out, row) in rest.iter_mut().zip(others.chunks_exact(k)) {
        [*out] = products_of::<C, E, 1>(c, [row], x);
    }
}

#[inline(always)]
fn products_of<C: Lanes, E: Eight<C::V>, const N: usize>(c: &C, rows: [&[C::V]; N], x: &[C::V]) -> [C::V; N] {
    let (whole, last) = x.as_chunks::<8>();
    let rows = rows.map(|row| {
        let (row, rest) = row.as_chunks::<8>();
        (&row[..whole.len()], rest)
    });
    let mut parts = [E::new(&[c.num(0.0); 8]); N];
    for (at, x) in whole.iter().enumerate() {
        let x = E::new(x);
        for (part, (row, _)) in parts.iter_mut().zip(&rows) {
            *part = E::new(&row[at]).fma(x, *part);
        }
    }
    std::array::from_fn(|r| sum_of(c, parts[r].array(), rows[r].1, last))
}

/// Eight partial sums with what is left of a row, as one.
#[inline(always)]
fn sum_of<C: Lanes>(c: &C, mut part: [C::V; 8], tail: &[C::V], x: &[C::V]) -> C::V {
    for (part, (&r, &x)) in part.iter_mut().zip(tail.iter().zip(x)) {
        *part = c.fma(r, x, *part);
    }
    let [p, q, r, s, t, u, v, w] = part;
    c.add(c.add(c.add(p, t), c.add(r, v)), c.add(c.add(q, u), c.add(s, w)))
}

#[cfg(test)]
mod tests {
    use super::*;

    type On<'a, T> = &'a dyn Fn(&[T], &[T], &mut [T]);

    fn check<T: Copy + PartialEq + std::fmt::Debug>(number: impl Fn(usize) -> T, all: &[On<T>]) {
        for k in [0, 1, 7, 8, 9, 16, 33] {
            for m in [0, 1, 3, 4, 5, 9] {
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
