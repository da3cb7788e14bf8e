//! Loops over slices, written once and compiled for the vectors of this processor: AVX-512, AVX2 or whatever there always is. The
//! order of every sum is fixed, and `x·y + z` is rounded as [`fused`] says, so that the bits do not depend on the width of vectors.

use super::host::Plain;
use super::lanes::fused;
use super::leaves::{cholesky_leaf_of, substitute_leaf_of};
use super::philox::{self, Key};
use super::product::Stack;
use super::systems::small_systems_of;
use super::{Lanes, math};
use crate::types::Element;
use std::ops::{Add, AddAssign, DivAssign, Sub};
#[cfg(target_arch = "x86_64")]
use std::sync::OnceLock;

/// The vectors that loops are compiled for.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    /// 64 bytes.
    Avx512,
    /// 32 bytes.
    Avx2,
    /// Those that every processor has.
    Plain,
}

/// The vectors in use; `RSCAN_ISA` may ask for less than there is.
#[cfg(target_arch = "x86_64")]
pub(super) fn width() -> Width {
    static WIDTH: OnceLock<Width> = OnceLock::new();
    *WIDTH.get_or_init(|| match std::env::var("RSCAN_ISA").as_deref() {
        Ok("portable") => Width::Plain,
        Ok("avx2") if machine() == Width::Avx512 => Width::Avx2,
        _ => machine(),
    })
}

#[cfg(target_arch = "x86_64")]
fn machine() -> Width {
    macro_rules! has {
        ($($feature:tt)+) => { $(std::is_x86_feature_detected!($feature))&&+ };
    }
    match has!("avx2" "fma") {
        true if has!("avx512f" "avx512vl" "avx512dq" "avx512bw") => Width::Avx512,
        true => Width::Avx2,
        false => Width::Plain,
    }
}

/// Lanes that lie side by side are worked on so many at a time.
pub const BESIDE: usize = 64;

macro_rules! slices {
    ($t:ident: $($(#[$doc:meta])* $vis:vis fn $name:ident($($x:ident: $ty:ty),*) $(-> $out:ty)? = $body:ident;)+) => {$(
        $(#[$doc])*
        $vis fn $name($($x: $ty),*) $(-> $out)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
                fn widest($($x: $ty),*) $(-> $out)? { $body(&Plain::<$t, true>::CX, $($x),*) }
                #[target_feature(enable = "avx2,fma")]
                fn wide($($x: $ty),*) $(-> $out)? { $body(&Plain::<$t, true>::CX, $($x),*) }
                match width() {
                    // SAFETY: `width` has asked the processor for these features.
                    Width::Avx512 => return unsafe { widest($($x),*) },
                    // SAFETY: as above.
                    Width::Avx2 => return unsafe { wide($($x),*) },
                    Width::Plain => {}
                }
            }
            match fused() {
                true => $body(&Plain::<$t, true>::CX, $($x),*),
                false => $body(&Plain::<$t, false>::CX, $($x),*),
            }
        }
    )+};
}

/// Slices of a dtype of floats.
pub trait Slices: Element + PartialOrd + Add<Output = Self> + Sub<Output = Self> + AddAssign + DivAssign {
    /// −∞
    const LEAST: Self;
    /// The largest element that is a number; −∞ where there is none.
    fn largest(x: &[Self]) -> Self;
    /// `out = exp(x − less)`
    fn exp_of_differences(x: &[Self], less: Self, out: &mut [Self]);
    /// Of at most [`BESIDE`] lanes whose elements lie side by side, row by row: `tops`, the largest of each; `out = exp(x − tops)`; and
    /// the sums of those, for rows of at most 256 as [`sum`](Slices::sum) takes them.
    fn powers_beside(x: &[Self], tops: &mut [Self], out: &mut [Self], sums: &mut [Self]);
    /// The sum of at most 256 elements: of eight parts, each of every eighth element, as a tree.
    fn sum(x: &[Self]) -> Self;
    /// `x = x / divisor`
    fn quotients_by(x: &mut [Self], divisor: Self);
    /// `x = x / divisors`, row by row.
    fn quotients_beside(x: &mut [Self], divisors: &[Self]);
    /// `x = (x − less) − and`, row by row.
    fn differences_beside(x: &mut [Self], less: &[Self], and: &[Self]);
    /// `x = log(x)`
    fn logs(x: &mut [Self]);
}

macro_rules! slices_of {
    ($($t:ident)+) => {$(
        impl Slices for $t {
            const LEAST: $t = $t::NEG_INFINITY;
            slices! { $t:
                fn largest(x: &[$t]) -> $t = largest_of;
                fn exp_of_differences(x: &[$t], less: $t, out: &mut [$t]) = exp_of_differences_of;
                fn powers_beside(x: &[$t], tops: &mut [$t], out: &mut [$t], sums: &mut [$t]) = powers_beside_of;
                fn sum(x: &[$t]) -> $t = sum_of;
                fn quotients_by(x: &mut [$t], divisor: $t) = quotients_by_of;
                fn quotients_beside(x: &mut [$t], divisors: &[$t]) = quotients_beside_of;
                fn differences_beside(x: &mut [$t], less: &[$t], and: &[$t]) = differences_beside_of;
                fn logs(x: &mut [$t]) = logs_of;
            }
        }
    )+};
}

slices_of!(f32 f64);

slices! { f64:
    /// `out = (base + tops) + log(sums)`; true where all sums lie in `[least, 1/least]` and all results are finite.
    pub fn logs_of_sums(base: f64, tops: &[f64], sums: &[f64], least: f64, out: &mut [f64]) -> bool = logs_of_sums_of;
    /// `out = cts / sums` where sums lie in `[least, 1/least]`, tops are finite and quotients lie in `[−most, most]`, else NaN.
    pub fn quotients(cts: &[f64], sums: &[f64], tops: &[f64], least: f64, most: f64, out: &mut [f64]) = quotients_of;
    /// The blocks of a stream of random numbers from the n-th on.
    pub fn blocks(key: Key, n: u64, out: &mut [[u32; 4]]) = blocks_of;
    /// The block of each of several streams of random numbers.
    pub fn blocks_of_each(keys: &[Key], n: &[u64], out: &mut [[u32; 4]]) = blocks_of_each_of;
    /// True where an element is NaN.
    pub fn any_nan(x: &[f64]) -> bool = any_nan_of;
    /// Rows of a triangular factor of a positive definite matrix ([`leaves`](super::leaves)).
    pub fn cholesky_leaf(u: &mut [f64], width: usize, lo: usize, m: usize) -> bool = cholesky_leaf_of;
    /// Rows of the solution of a triangular system ([`leaves`](super::leaves)).
    pub fn substitute_leaf(t: &[f64], m: usize, which: (bool, bool), b: &mut [f64], sides: (usize, usize, usize)) = substitute_leaf_of;
    /// The solutions of systems of few unknowns ([`systems`](super::systems)).
    pub(crate) fn small_systems(extents: [usize; 3], a: Stack<f64>, b: Stack<f64>, x: &mut [f64]) -> Option<usize> = small_systems_of;
    /// `out = out · x`
    pub fn scale(x: &[f64], out: &mut [f64]) = scale_of;
}

#[inline(always)]
fn largest_of<T: Slices, C: Lanes<V = T>>(_: &C, x: &[T]) -> T {
    let mut part = [T::LEAST; 8];
    let greater = |m: T, x: T| if x > m { x } else { m };
    let (whole, rest) = x.as_chunks::<8>();
    for x in whole {
        (0..8).for_each(|l| part[l] = greater(part[l], x[l]));
    }
    rest.iter().chain(&part).fold(T::LEAST, |m, &x| greater(m, x))
}

#[inline(always)]
fn exp_of_differences_of<T: Slices, C: Lanes<V = T>>(c: &C, x: &[T], less: T, out: &mut [T]) {
    out.iter_mut().zip(x).for_each(|(out, &x)| *out = math::exp(c, x - less));
}

#[inline(always)]
fn powers_beside_of<T: Slices, C: Lanes<V = T>>(c: &C, x: &[T], tops: &mut [T], out: &mut [T], sums: &mut [T]) {
    let lanes = tops.len();
    tops.fill(T::LEAST);
    for row in x.chunks_exact(lanes) {
        tops.iter_mut().zip(row).for_each(|(m, &x)| *m = if x > *m { x } else { *m });
    }
    let mut parts = [[T::default(); BESIDE]; 8];
    for (k, (row, out)) in x.chunks_exact(lanes).zip(out.chunks_exact_mut(lanes)).enumerate() {
        out.iter_mut().zip(row.iter().zip(&*tops)).for_each(|(out, (&x, &top))| *out = math::exp(c, x - top));
        parts[k % 8].iter_mut().zip(&*out).for_each(|(part, &x)| *part += x);
    }
    for (l, sum) in sums.iter_mut().enumerate().take(BESIDE) {
        *sum = tree(parts.each_ref().map(|part| part[l]));
    }
}

/// The sum of eight parts.
#[inline(always)]
fn tree<T: Slices>([p, q, r, s, t, u, v, w]: [T; 8]) -> T {
    ((p + t) + (r + v)) + ((q + u) + (s + w))
}

#[inline(always)]
fn sum_of<T: Slices, C: Lanes<V = T>>(_: &C, x: &[T]) -> T {
    let mut parts = [T::default(); 8];
    let (eights, rest) = x.as_chunks::<8>();
    eights.iter().for_each(|x| parts.iter_mut().zip(x).for_each(|(part, &x)| *part += x));
    parts.iter_mut().zip(rest).for_each(|(part, &x)| *part += x);
    tree(parts)
}

#[inline(always)]
fn quotients_by_of<T: Slices, C: Lanes<V = T>>(_: &C, x: &mut [T], divisor: T) {
    x.iter_mut().for_each(|x| *x /= divisor);
}

#[inline(always)]
fn quotients_beside_of<T: Slices, C: Lanes<V = T>>(_: &C, x: &mut [T], divisors: &[T]) {
    x.chunks_exact_mut(divisors.len()).for_each(|x| x.iter_mut().zip(divisors).for_each(|(x, &y)| *x /= y));
}

#[inline(always)]
fn differences_beside_of<T: Slices, C: Lanes<V = T>>(_: &C, x: &mut [T], less: &[T], and: &[T]) {
    x.chunks_exact_mut(less.len()).for_each(|x| x.iter_mut().zip(less.iter().zip(and)).for_each(|(x, (&y, &z))| *x = (*x - y) - z));
}

#[inline(always)]
fn blocks_of<C: Lanes<V = f64>>(_: &C, key: Key, n: u64, out: &mut [[u32; 4]]) {
    philox::blocks_of(key, n, out);
}

#[inline(always)]
fn blocks_of_each_of<C: Lanes<V = f64>>(_: &C, keys: &[Key], n: &[u64], out: &mut [[u32; 4]]) {
    philox::blocks_of_each(keys, n, out);
}

#[inline(always)]
fn logs_of<T: Slices, C: Lanes<V = T>>(c: &C, x: &mut [T]) {
    x.iter_mut().for_each(|x| *x = math::log(c, *x));
}

#[inline(always)]
fn logs_of_sums_of<C: Lanes<V = f64>>(c: &C, base: f64, tops: &[f64], sums: &[f64], least: f64, out: &mut [f64]) -> bool {
    let most = 1.0 / least;
    let mut outside = 0u64;
    for (out, (&top, &sum)) in out.iter_mut().zip(tops.iter().zip(sums)) {
        *out = (base + top) + math::log(c, sum);
        outside += u64::from(!((sum >= least) & (sum <= most) & (out.abs() < f64::INFINITY)));
    }
    outside == 0
}

#[inline(always)]
fn quotients_of<C: Lanes<V = f64>>(_: &C, cts: &[f64], sums: &[f64], tops: &[f64], least: f64, bound: f64, out: &mut [f64]) {
    let most = 1.0 / least;
    for (out, ((&top, &sum), &ct)) in out.iter_mut().zip(tops.iter().zip(sums).zip(cts)) {
        let quotient = ct / sum;
        let inside = (sum >= least) & (sum <= most) & (top.abs() < f64::INFINITY) & (quotient.abs() <= bound);
        *out = if inside { quotient } else { f64::NAN };
    }
}

#[inline(always)]
fn any_nan_of<C: Lanes<V = f64>>(_: &C, x: &[f64]) -> bool {
    x.iter().map(|x| u64::from(x.is_nan())).sum::<u64>() > 0
}

#[inline(always)]
fn scale_of<C: Lanes<V = f64>>(_: &C, x: &[f64], out: &mut [f64]) {
    out.iter_mut().zip(x).for_each(|(out, &x)| *out *= x);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(n: usize, seed: u64) -> Vec<f64> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 11) as f64 / (1u64 << 53) as f64 * 8.0 - 4.0
        };
        (0..n).map(|_| next()).collect()
    }

    /// The tests of one dtype.
    macro_rules! of {
        ($t:ident $module:ident) => {
            mod $module {
                use super::*;
                use crate::scalar::Host;

                fn numbers_of(n: usize, seed: u64) -> Vec<$t> {
                    numbers(n, seed).into_iter().map(|x| x as $t).collect()
                }

                #[test]
                fn bits_do_not_depend_on_the_width_of_vectors() {
                    for n in [0, 1, 3, 8, 13, 64, 70] {
                        let x = numbers_of(n, 5);
                        let mut powers = vec![0.0; n];
                        $t::exp_of_differences(&x, 0.5, &mut powers);
                        assert_eq!(powers, x.iter().map(|x| Host::<$t>::CX.exp(x - 0.5)).collect::<Vec<_>>());
                        assert_eq!($t::largest(&x), x.iter().copied().fold($t::NEG_INFINITY, $t::max));
                    }
                }

                #[test]
                fn lanes_side_by_side_give_what_each_gives_alone() {
                    for (n, lanes) in [(1, 1), (3, 5), (8, 64), (21, 7)] {
                        let mut x = numbers_of(n * lanes, 9);
                        (x[0], x[n * lanes / 2]) = (-0.0, $t::NAN);
                        let lane = |x: &[$t], l: usize| (0..n).map(|k| x[k * lanes + l]).collect::<Vec<_>>();
                        let (mut tops, mut powers, mut sums) = (vec![0.0; lanes], x.clone(), vec![0.0; lanes]);
                        $t::powers_beside(&x, &mut tops, &mut powers, &mut sums);
                        let mut logs_of_tops: Vec<$t> = tops.iter().map(|t| t.abs()).collect();
                        $t::logs(&mut logs_of_tops);
                        for l in 0..lanes {
                            let (alone, mut out) = (lane(&x, l), vec![0.0; n]);
                            let top = $t::largest(&alone);
                            // Of two zeros the largest may be either: powers and their sum are the same.
                            assert_eq!(top, tops[l]);
                            $t::exp_of_differences(&alone, top, &mut out);
                            assert_eq!(format!("{:?}", lane(&powers, l)), format!("{out:?}"));
                            assert_eq!($t::sum(&out).to_bits(), sums[l].to_bits());
                            assert_eq!(Host::<$t>::CX.log(top.abs()), logs_of_tops[l]);
                        }
                    }
                }
            }
        };
    }

    of!(f32 narrow);
    of!(f64 wide);

    #[test]
    fn what_lies_outside_is_told() {
        let (inf, mut out) = (f64::INFINITY, [0.0; 1]);
        assert!(logs_of_sums(1.0, &[2.0], &[1.0], 1e-70, &mut out) && out == [3.0]);
        for (base, sum) in [(1.0, 0.0), (1.0, f64::NAN), (1.0, 1e-80), (inf, 1.0), (1.0, inf), (-inf, 1.0)] {
            assert!(!logs_of_sums(base, &[2.0], &[sum], 1e-70, &mut out), "{base} {sum}");
        }
        quotients(&[6.0], &[0.5], &[3.0], 1e-70, 1e9, &mut out);
        assert!(out == [12.0] && !any_nan(&out));
        for (ct, sum, top) in
            [(1.0, f64::NAN, 0.0), (0.0, 1e-71, 0.0), (0.0, 1.0, inf), (1e10, 1.0, 0.0), (f64::NAN, 1.0, 0.0), (inf, 1.0, 0.0)]
        {
            quotients(&[ct], &[sum], &[top], 1e-70, 1e9, &mut out);
            assert!(any_nan(&out), "{ct} {sum} {top}");
        }
        assert_eq!(f64::largest(&[f64::NAN, -inf]), -inf);
    }
}
