//! Many products of small matrices, by the law of products: a call of the tile for each would take longer than its multiplications.

use super::super::host::Plain;
use super::super::lanes::{Lanes, fused};
#[cfg(target_arch = "x86_64")]
use super::super::slices::{Width, width};

/// Products of at most so many multiplications are small.
const SMALL: usize = 128;

/// Matrices of one extent, one behind the other, each `step` elements behind the one before: 0 where all are the same one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stack<'a, T> {
    /// Their elements.
    pub all: &'a [T],
    /// From one to the next.
    pub step: usize,
}

impl<'a, T> Stack<'a, T> {
    /// Those from one on.
    pub(crate) fn after(self, at: usize) -> Stack<'a, T> {
        Stack { all: &self.all[(at * self.step).min(self.all.len())..], ..self }
    }
    /// The elements of one.
    #[inline(always)]
    pub(crate) fn get(&self, at: usize, n: usize) -> &'a [T] {
        &self.all[at * self.step..][..n]
    }
}

/// True where `[m, k, n]` are the extents of a small product, with elements.
pub(crate) fn is_small([m, k, n]: [usize; 3]) -> bool {
    (1..=SMALL).contains(&m.saturating_mul(k).saturating_mul(n))
}

macro_rules! small {
    ($name:ident of $t:ty) => {
        /// `cᵢ = aᵢ·bᵢ` for [small](is_small) extents `[m, k, n]`.
        pub(crate) fn $name(extents: [usize; 3], a: Stack<$t>, b: Stack<$t>, c: &mut [$t]) {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma")]
                fn wide(extents: [usize; 3], a: Stack<$t>, b: Stack<$t>, c: &mut [$t]) {
                    all(&Plain::<$t, true>::CX, extents, a, b, c);
                }
                if width() != Width::Plain {
                    // SAFETY: `width` has asked the processor for these features.
                    return unsafe { wide(extents, a, b, c) };
                }
            }
            match fused() {
                true => all(&Plain::<$t, true>::CX, extents, a, b, c),
                false => all(&Plain::<$t, false>::CX, extents, a, b, c),
            }
        }
    };
}

small!(small_products of f64);
small!(small_products_f32 of f32);

/// Extents that are usual are known to the compiler.
#[inline(always)]
fn all<C: Lanes>(cx: &C, extents: [usize; 3], a: Stack<C::V>, b: Stack<C::V>, c: &mut [C::V]) {
    match extents {
        [2, 2, 1] => each(cx, [2, 2, 1], a, b, c),
        [3, 3, 1] => each(cx, [3, 3, 1], a, b, c),
        [4, 4, 1] => each(cx, [4, 4, 1], a, b, c),
        [2, 2, 2] => each(cx, [2, 2, 2], a, b, c),
        [3, 3, 3] => each(cx, [3, 3, 3], a, b, c),
        [4, 4, 4] => each(cx, [4, 4, 4], a, b, c),
        _ => each(cx, extents, a, b, c),
    }
}

#[inline(always)]
fn each<C: Lanes>(cx: &C, [m, k, n]: [usize; 3], a: Stack<C::V>, b: Stack<C::V>, c: &mut [C::V]) {
    for (at, c) in c.chunks_exact_mut(m * n).enumerate() {
        let (a, b) = (a.get(at, m * k), b.get(at, k * n));
        for i in 0..m {
            for j in 0..n {
                c[i * n + j] = if n == 1 { eighths(cx, &a[i * k..][..k], b) } else { chain(cx, &a[i * k..][..k], b, j, n) };
            }
        }
    }
}

/// Of a row and column j of rows of n.
#[inline(always)]
fn chain<C: Lanes>(cx: &C, row: &[C::V], b: &[C::V], j: usize, n: usize) -> C::V {
    let mut sum = cx.num(0.0);
    for (p, &x) in row.iter().enumerate() {
        sum = cx.fma(x, b[p * n + j], sum);
    }
    sum
}

/// Of a row and a vector: eight strided partial sums, then a tree over them, as [`eights`](super::super::eights) has them.
#[inline(always)]
fn eighths<C: Lanes>(cx: &C, row: &[C::V], x: &[C::V]) -> C::V {
    let mut part = [cx.num(0.0); 8];
    for (p, (&x, &y)) in row.iter().zip(x).enumerate() {
        part[p % 8] = cx.fma(x, y, part[p % 8]);
    }
    let [a, b, c, d, e, f, g, h] = part;
    let (even, odd) = (cx.add(cx.add(a, e), cx.add(c, g)), cx.add(cx.add(b, f), cx.add(d, h)));
    cx.add(even, odd)
}

#[cfg(test)]
mod tests {
    use super::super::super::eights;
    use super::super::{Float, Matrix, Mode};
    use super::*;

    fn number(i: usize) -> f64 {
        ((i * 7919 % 1009) as f64 / 300.0 - 1.5) * if i.is_multiple_of(13) { -0.0 } else { 1.1 }
    }

    #[test]
    fn bits_are_those_of_single_products() {
        for (m, k, n) in (1..6).flat_map(|m| (1..20).flat_map(move |k| (1..6).map(move |n| (m, k, n)))) {
            if !is_small([m, k, n]) {
                continue;
            }
            for (step_a, step_b) in [(m * k, k * n), (0, k * n), (m * k, 0)] {
                let a: Vec<f64> = (0..3 * m * k).map(number).collect();
                let b: Vec<f64> = (0..3 * k * n).map(|i| number(i + 77)).collect();
                let mut c = vec![1.0; 3 * m * n];
                small_products([m, k, n], Stack { all: &a, step: step_a }, Stack { all: &b, step: step_b }, &mut c);
                for (at, c) in c.chunks(m * n).enumerate() {
                    let (a, b) = (&a[at * step_a..][..m * k], &b[at * step_b..][..k * n]);
                    let mut want = vec![1.0; m * n];
                    match n {
                        1 => eights::row_products(a, b, &mut want),
                        _ => f64::product([m, k, n], Matrix::rows(a, k), Matrix::rows(b, n), Matrix::rows(&mut want, n), Mode::Set),
                    }
                    let bits = |x: &[f64]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                    assert_eq!(bits(c), bits(&want), "{m}×{k}·{k}×{n}");
                }
            }
        }
    }

    #[test]
    fn bits_of_f32_are_those_of_single_products() {
        let (a, b): (Vec<f32>, Vec<f32>) = ((0..120).map(|i| number(i) as f32).collect(), (0..120).map(|i| number(i + 5) as f32).collect());
        for [m, k, n] in [[2, 2, 2], [3, 3, 1], [2, 9, 3], [1, 20, 1], [4, 4, 4]] {
            let (mut c, mut want) = (vec![0.0f32; m * n], vec![0.0f32; m * n]);
            small_products_f32([m, k, n], Stack { all: &a, step: 0 }, Stack { all: &b, step: 0 }, &mut c);
            match n {
                1 => eights::row_products_f32(&a[..m * k], &b[..k], &mut want),
                _ => f32::product([m, k, n], Matrix::rows(&a, k), Matrix::rows(&b, n), Matrix::rows(&mut want, n), Mode::Set),
            }
            assert_eq!(c.iter().map(|x| x.to_bits()).collect::<Vec<_>>(), want.iter().map(|x| x.to_bits()).collect::<Vec<_>>());
        }
    }
}
