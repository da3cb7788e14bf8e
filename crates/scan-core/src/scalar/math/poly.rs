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
