//! Formulas of rows that take more than a line, and the elementary functions, written over [`Lanes`] without branches.

mod erf;
#[cfg(test)]
mod exact;
mod exp;
mod gamma;
mod hyperbolic;
mod inverse;
mod log;
mod normal;
mod poly;
mod power;
#[cfg(test)]
mod tests;
mod trig;

pub use erf::{erf, erfc};
pub use exp::{exp, exp2, expm1, sigmoid, tanh};
pub use gamma::{digamma, gammaln, trigamma};
pub use hyperbolic::{cosh, hypot, sinh};
pub use inverse::{acos, asin, atan, atan2};
pub use log::{log, log1p, log2, log10};
pub use normal::{erfinv, ndtri};
pub use power::pow;
pub use trig::{cos, sin};

use super::Lanes;

/// −1, 0 or 1; NaN stays NaN.
pub fn sign<C: Lanes>(c: &C, x: C::V) -> C::V {
    let zero = c.num(0.0);
    let other = c.select(c.lt(x, zero), c.num(-1.0), c.select(c.eq(x, zero), zero, x));
    c.select(c.lt(zero, x), c.num(1.0), other)
}

/// The lesser; NaN wins.
pub fn minimum<C: Lanes>(c: &C, x: C::V, y: C::V) -> C::V {
    c.select(c.le(x, y), x, c.select(c.ne(x, x), x, y))
}

/// The greater; NaN wins.
pub fn maximum<C: Lanes>(c: &C, x: C::V, y: C::V) -> C::V {
    c.select(c.le(y, x), x, c.select(c.ne(x, x), x, y))
}

/// The remainder with the sign of x, exact, and where that is meant: where a sum of a product is rounded once, and the quotient is less than 2⁵².
///
/// The quotient rounded is the exact one without its fraction, or 1 more: with either the rest is a number that floats hold, and so is the
/// first one's, which the second misses by |y|.
#[inline(always)]
pub fn fmod<C: Lanes>(c: &C, x: C::V, y: C::V) -> (C::V, C::B) {
    let (size, by, zero) = (c.abs(x), c.abs(y), c.num(0.0));
    let ratio = c.div(size, by);
    let whole = c.trunc(ratio);
    let rest = c.fma(c.neg(whole), by, size);
    let rest = c.select(c.lt(rest, zero), c.add(rest, by), rest);
    // A product of 0 and infinity is no number.
    let rest = c.select(c.eq(whole, zero), size, rest);
    let most = c.num(if c.fuses() { 4503599627370496.0 } else { -1.0 });
    (c.copysign(rest, x), c.lt(ratio, most))
}

/// True where the exact remainder `m = fmod(x, y)` has the wrong sign for Python.
fn remainder_turns<C: Lanes>(c: &C, m: C::V, y: C::V) -> C::B {
    let zero = c.num(0.0);
    c.and(c.ne(m, zero), c.xor(c.lt(m, zero), c.lt(y, zero)))
}

/// Remainder with the sign of y, as Python's `%`.
pub fn floor_mod<C: Lanes>(c: &C, x: C::V, y: C::V) -> C::V {
    let m = c.fmod(x, y);
    let zero = c.copysign(c.num(0.0), y);
    let turned = c.select(remainder_turns(c, m, y), c.add(m, y), m);
    c.select(c.eq(m, c.num(0.0)), zero, turned)
}

/// `⌊x / y⌋` consistent with [`floor_mod`]: the quotient is taken of what the remainder leaves.
pub fn floor_div<C: Lanes>(c: &C, x: C::V, y: C::V) -> C::V {
    let m = c.fmod(x, y);
    let q = c.div(c.sub(x, m), y);
    let q = c.select(remainder_turns(c, m, y), c.sub(q, c.num(1.0)), q);
    let low = c.floor(q);
    let low = c.select(c.lt(c.num(0.5), c.sub(q, low)), c.add(low, c.num(1.0)), low);
    let ratio = c.div(x, y);
    let signed = c.select(c.eq(q, c.num(0.0)), c.copysign(c.num(0.0), ratio), low);
    c.select(c.eq(y, c.num(0.0)), ratio, signed)
}

/// `log(1 + e^−|x|)`
#[inline(always)]
pub fn log1p_exp<C: Lanes>(c: &C, x: C::V) -> C::V {
    log::log1p_of_unit(c, exp::exp_of_low(c, c.neg(c.abs(x))))
}

/// `log(1 + eˣ) = max(x, 0) + log1p(e^−|x|)`
pub fn softplus<C: Lanes>(c: &C, x: C::V) -> C::V {
    c.add(maximum(c, x, c.num(0.0)), c.log1p_exp(x))
}

/// `log(eˣ + eʸ) = max(x, y) + log1p(e^−|x − y|)`; equal infinities give themselves.
pub fn logaddexp<C: Lanes>(c: &C, x: C::V, y: C::V) -> C::V {
    let gap = c.select(c.eq(x, y), c.num(0.0), c.abs(c.sub(x, y)));
    c.add(maximum(c, x, y), c.log1p_exp(gap))
}

/// `x · log y`, 0 where x = 0 and y is not NaN.
pub fn xlogy<C: Lanes>(c: &C, x: C::V, y: C::V) -> C::V {
    let product = c.mul(x, c.log(y));
    c.select(c.and(c.eq(x, c.num(0.0)), c.eq(y, y)), c.num(0.0), product)
}
