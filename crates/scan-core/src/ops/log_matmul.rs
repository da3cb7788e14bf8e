//! The product of a vector and a matrix in log space, `yⱼ = log Σᵢ exp(aᵢ + wᵢⱼ)`, and its cotangents.
//!
//! What the formula says takes an exponential per element of w. With `m = max a`, `cⱼ = log Σᵢ exp wᵢⱼ` and `Pᵢⱼ = exp(wᵢⱼ − cⱼ)`, which a loop
//! computes once, it is
//!
//! ```text
//! pᵢ = exp(aᵢ − m)        sⱼ = Σᵢ pᵢ·Pᵢⱼ        yⱼ = (m + cⱼ) + log sⱼ
//! ```
//!
//! a product of a vector and a matrix. Each of the three is an op, so that a loop can keep p and s for its gradient. Both factors of every
//! term lie in [0, 1]. A factor below 2⁻¹⁰²² is rounded to a multiple of 2⁻¹⁰⁷⁴ or to 0, and so is a product: k terms lose no more than `k·2⁻¹⁰²¹` together. **Where `sⱼ >= 2⁻²⁵⁶` ([`LEAST`]) that is less than
//! `k·2⁻⁷⁶⁵` of the sum, whatever the ranges of a and w; elsewhere the column is computed by the formula.** So the sum itself tells whether
//! it can be trusted, and nothing need be known of a and w. NaN, +∞ among them, and columns of −∞ alone make a sum that is not in
//! the range, or a result that is not finite: they go to the formula, too.
//!
//! The error elsewhere, with ε = 2⁻⁵³: of the terms that matter (those above ε·sⱼ/k) `|aᵢ − m|` and `|wᵢⱼ − cⱼ|` are together at most
//! `|log sⱼ| + log(k/ε)`, so that rounding the exponents, the two exponentials, the product and the sum leaves sⱼ with a relative error
//! of at most `(|log sⱼ| + log k + 37 + 4 + k)·ε`. The logarithm makes that an absolute one; the two sums add `|m + cⱼ|·ε + |yⱼ|·ε`, and
//! `|m + cⱼ| <= |yⱼ| + |log sⱼ|`. All in all
//!
//! ```text
//! |error of yⱼ| <= (2·|yⱼ| + 3·|log sⱼ| + k + log k + 41)·ε,   |log sⱼ| <= 178
//! ```
//!
//! 7·10⁻¹⁴ + 2.2·10⁻¹⁶·|yⱼ| for 64 states. The formula's own bound has the same form, with the rounding of `aᵢ + wᵢⱼ` in the place of that of the exponents.
//!
//! The cotangents are sums of `ctⱼ·exp(aᵢ + wᵢⱼ − yⱼ) = pᵢ·Pᵢⱼ·qⱼ` with `qⱼ = ctⱼ / sⱼ`: products again, of q and P for a, of p and q, row by row, for
//! w. Where sⱼ is not in the range or the quotient lies beyond ±2⁵⁰⁰, `log_matmul_quotients` gives NaN, and the column goes to the formula. Weights above
//! 2⁻⁷⁶⁵ have a relative error of at most `(3·|log sⱼ| + k + log k + 45)·ε`, which, unlike the formula's, does not grow with |yⱼ|; smaller ones,
//! which are shares of ctⱼ, may come out as 0.

use super::matmul::{Outer as _, Product as _};
use super::softmax::log_sum_exp;
use crate::scalar::slices::{self, Slices};
use crate::scalar::{Host, Lanes as _};
use crate::types::memory;

/// Sums below this are computed by the formula.
const LEAST: f64 = f64::from_bits((1023 - 256) << 52);
/// Weighted cotangents beyond this are computed by the formula.
const MOST: f64 = f64::from_bits((1023 + 500) << 52);

/// Rows of a, and extents of w.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Size {
    m: usize,
    k: usize,
    n: usize,
}

impl Size {
    /// That of operands that need no broadcasting.
    pub fn of(a: &[usize], w: &[usize]) -> Option<Size> {
        let (m, k) = match *a {
            [k] => (1, k),
            [m, k] => (m, k),
            _ => return None,
        };
        let &[rows, n] = w else { return None };
        (rows == k).then_some(Size { m, k, n })
    }
    /// Number of results.
    pub fn results(self) -> usize {
        self.m * self.n
    }
    /// Number of elements of a.
    pub fn given(self) -> usize {
        self.m * self.k
    }
    /// Number of elements of w.
    pub fn weights(self) -> usize {
        self.k * self.n
    }
}

/// Row t of a matrix whose rows have n elements.
fn row(x: &[f64], t: usize, n: usize) -> &[f64] {
    &x[t * n..(t + 1) * n]
}

/// What the formula is given.
#[derive(Clone, Copy)]
struct Formula<'a> {
    size: Size,
    a: &'a [f64],
    w: &'a [f64],
}

impl Formula<'_> {
    /// `aᵢ + wᵢⱼ` in column j of row t.
    fn column(&self, t: usize, j: usize) -> Vec<f64> {
        let Size { k, n, .. } = self.size;
        memory::collect(row(self.a, t, k).iter().enumerate().map(|(i, a)| a + self.w[i * n + j]))
    }
    /// Result j of row t.
    fn result(&self, t: usize, j: usize) -> f64 {
        log_sum_exp(&self.column(t, j), &mut memory::zeros(self.size.k))
    }
    /// `ct · exp(aᵢ + wᵢⱼ − y)` for column j of row t, as the gradient of logsumexp has it.
    fn weighted(&self, t: usize, j: usize, ct: f64, mut each: impl FnMut(usize, f64)) {
        let column = self.column(t, j);
        let y = log_sum_exp(&column, &mut memory::zeros(self.size.k));
        if y == f64::NEG_INFINITY && ct.is_finite() {
            return;
        }
        for (i, x) in column.into_iter().enumerate() {
            let exponent = if x != y {
                x - y
            } else if y == f64::NEG_INFINITY {
                y
            } else {
                0.0
            };
            each(i, ct * Host::<f64>::CX.exp(exponent));
        }
    }
}

/// `log_matmul_powers`, of rows of k elements.
pub(crate) fn powers(k: usize, a: &[f64], out: &mut [f64]) {
    for (a, out) in a.chunks_exact(k.max(1)).zip(out.chunks_exact_mut(k.max(1))) {
        f64::exp_of_differences(a, f64::largest(a), out);
    }
}

/// `log_matmul_sums`
pub(crate) fn sums(size: Size, powers: &[f64], power: &[f64], out: &mut [f64]) {
    f64::multiply([size.m, size.k, size.n], powers, power, out);
}

/// `y = log_matmul(a, w, sums, top)`
pub(crate) fn forward(size: Size, [a, w, sums, top]: [&[f64]; 4], y: &mut [f64]) {
    let Size { m: rows, k, n } = size;
    for t in 0..rows {
        let (m, sums, y) = (f64::largest(row(a, t, k)), row(sums, t, n), &mut y[t * n..(t + 1) * n]);
        if !slices::logs_of_sums(m, top, sums, LEAST, y) {
            for (j, (y, sum)) in y.iter_mut().zip(sums).enumerate() {
                if !(LEAST..=1.0 / LEAST).contains(sum) || !y.is_finite() {
                    *y = Formula { size, a, w }.result(t, j);
                }
            }
        }
    }
}

/// `log_matmul_quotients`, of rows of n elements: NaN where the formula is to be taken.
pub(crate) fn quotients(n: usize, [cts, sums, top]: [&[f64]; 3], out: &mut [f64]) {
    for ((cts, sums), out) in cts.chunks_exact(n.max(1)).zip(sums.chunks_exact(n.max(1))).zip(out.chunks_exact_mut(n.max(1))) {
        slices::quotients(cts, sums, top, LEAST, MOST, out);
    }
}

/// 0 for what is left to the formula.
fn without_nan(x: &[f64]) -> Vec<f64> {
    memory::collect(x.iter().map(|&x| if x.is_nan() { 0.0 } else { x }))
}

/// `log_matmul_left`: the cotangent of a.
pub(crate) fn left(size: Size, [cts, quotients, powers, a, w, turned]: [&[f64]; 6], out: &mut [f64]) {
    let Size { m: rows, k, n } = size;
    if !slices::any_nan(quotients) {
        f64::multiply([rows, n, k], quotients, turned, out);
        return slices::scale(powers, out);
    }
    f64::multiply([rows, n, k], &without_nan(quotients), turned, out);
    slices::scale(&without_nan(powers), out);
    for at in (0..rows * n).filter(|&at| quotients[at].is_nan()) {
        let out = &mut out[at / n * k..(at / n + 1) * k];
        Formula { size, a, w }.weighted(at / n, at % n, cts[at], |i, x| out[i] += x);
    }
}

/// `log_matmul_right`: the cotangent of w, summed over the rows; those of `cts` and `quotients` are in the other order where `reverse`.
pub(crate) fn right(size: Size, reverse: bool, [cts, quotients, powers, a, w, power]: [&[f64]; 6], out: &mut [f64]) {
    let Size { m: rows, k, n } = size;
    out.fill(0.0);
    if !slices::any_nan(quotients) {
        f64::add_outer([k, rows, n], powers, quotients, [false, reverse], out);
        return slices::scale(power, out);
    }
    f64::add_outer([k, rows, n], &without_nan(powers), &without_nan(quotients), [false, reverse], out);
    slices::scale(power, out);
    for at in (0..rows * n).filter(|&at| quotients[at].is_nan()) {
        let (t, j) = (at / n, at % n);
        let row = if reverse { rows - 1 - t } else { t };
        Formula { size, a, w }.weighted(row, j, cts[at], |i, x| out[i * n + j] += x);
    }
}

mod defs;
#[cfg(test)]
mod tests;
