//! Hyperbolic sine and cosine, and `√(x² + y²)`.

use super::poly::rest_of_product;
use crate::scalar::Lanes;

/// Where neither function overflows.
#[inline(always)]
fn inside<C: Lanes>(c: &C, x: C::V) -> C::B {
    c.lt(c.abs(x), c.num(700.0))
}

/// Hyperbolic sine, and where that is meant: `½·(t + t/(t + 1))` with `t = eᵃ − 1`, `½·(2t − t²/(t + 1))` where a is small.
#[inline(always)]
pub fn sinh<C: Lanes>(c: &C, x: C::V) -> (C::V, C::B) {
    let a = c.abs(x);
    let t = c.expm1(a);
    let part = c.div(t, c.add(t, c.num(1.0)));
    let twice = c.select(c.lt(a, c.num(1.0)), c.sub(c.add(t, t), c.mul(t, part)), c.add(t, part));
    (c.copysign(c.mul(twice, c.num(0.5)), x), inside(c, x))
}

/// Hyperbolic cosine, and where that is meant.
#[inline(always)]
pub fn cosh<C: Lanes>(c: &C, x: C::V) -> (C::V, C::B) {
    let half = c.num(0.5);
    let power = c.exp(c.abs(x));
    (c.add(c.mul(power, half), c.div(half, power)), inside(c, x))
}

/// `√(x² + y²)`, and where that is meant: where squares are no trouble.
#[inline(always)]
pub fn hypot<C: Lanes>(c: &C, x: C::V, y: C::V) -> (C::V, C::B) {
    let (x, y) = (c.abs(x), c.abs(y));
    let swapped = c.lt(x, y);
    let (more, less) = (c.select(swapped, y, x), c.select(swapped, x, y));
    let (square, other) = (c.mul(more, more), c.mul(less, less));
    let sum = c.add(square, other);
    let lost = c.add(c.add(c.sub(square, sum), other), rest_of_product(c, more, more, square));
    let meant = c.and(c.le(c.num(1e-140), more), c.le(more, c.num(1e140)));
    // Comparisons with NaN are false, so a NaN in y is `less`; one in x is `more`, which is not meant.
    (c.sqrt(c.add(sum, lost)), c.and(meant, c.eq(less, less)))
}
