//! Polynomials and constants that f32 and f64 have of their own.

use crate::scalar::Lanes;

/// The constant of the width.
#[inline(always)]
pub(super) fn pick<C: Lanes>(c: &C, wide: f64, narrow: f64) -> C::V {
    c.num(if c.wide() { wide } else { narrow })
}

/// `Σ cₖ·xᵏ` with the coefficients of the width: in blocks that do not wait for each other, so that few operations depend on
/// one another.
#[inline(always)]
pub(super) fn polynomial<C: Lanes>(c: &C, x: C::V, wide: &[f64], narrow: &[f64]) -> C::V {
    let terms = if c.wide() { wide } else { narrow };
    let x2 = c.mul(x, x);
    if terms.len() <= 7 {
        return in_pairs(c, x, x2, terms);
    }
    let x4 = c.mul(x2, x2);
    let last = (terms.len() - 1) / 4 * 4;
    let mut sum = in_pairs(c, x, x2, &terms[last..]);
    for block in terms[..last].chunks_exact(4).rev() {
        sum = c.fma(x4, sum, in_pairs(c, x, x2, block));
    }
    sum
}

/// `Σ cₖ·xᵏ` of few terms, in the fewest operations.
#[inline(always)]
pub(super) fn horner<C: Lanes>(c: &C, x: C::V, wide: &[f64], narrow: &[f64]) -> C::V {
    let terms = if c.wide() { wide } else { narrow };
    terms[..terms.len() - 1].iter().rev().fold(c.num(terms[terms.len() - 1]), |sum, &term| c.fma(x, sum, c.num(term)))
}

/// `Σ cₖ·xᵏ`, two terms at a time.
#[inline(always)]
fn in_pairs<C: Lanes>(c: &C, x: C::V, x2: C::V, terms: &[f64]) -> C::V {
    let last = (terms.len() - 1) / 2 * 2;
    let mut sum = pair(c, x, &terms[last..]);
    for two in terms[..last].chunks_exact(2).rev() {
        sum = c.fma(x2, sum, pair(c, x, two));
    }
    sum
}

#[inline(always)]
fn pair<C: Lanes>(c: &C, x: C::V, terms: &[f64]) -> C::V {
    match *terms {
        [a, b] => c.fma(x, c.num(b), c.num(a)),
        _ => c.num(terms[0]),
    }
}

/// `x·y − p` of a product p that was rounded.
#[inline(always)]
pub(super) fn rest_of_product<C: Lanes>(c: &C, x: C::V, y: C::V, p: C::V) -> C::V {
    if c.fuses() {
        return c.fma(x, y, c.neg(p));
    }
    // Products of halves of the fractions are exact (Dekker 1971, "A floating-point technique for extending the available precision").
    let front = |v: C::V| c.of_bits(c.int_and(c.bits(v), c.int(u64::MAX << if c.wide() { 27 } else { 12 })));
    let (x_high, y_high) = (front(x), front(y));
    let (x_low, y_low) = (c.sub(x, x_high), c.sub(y, y_high));
    let crossed = c.add(c.add(c.sub(c.mul(x_high, y_high), p), c.mul(x_high, y_low)), c.mul(x_low, y_high));
    c.add(crossed, c.mul(x_low, y_low))
}
