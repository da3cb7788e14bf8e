//! The error functions: a polynomial near 0, and `erfc(a) = e^−a²·g(a) / (1 + 2a)` elsewhere, where g is nearly constant. Constants:
//! `coefficients.py`.

use super::exp::{at_most, exp_of_pair};
use super::poly::{polynomial, rest_of_product};
use crate::scalar::Lanes;

/// `erf(x)/x − 1` as a function of x², for |x| <= [`NEAR`].
const ERF: [f64; 11] = [
    0.12837916709551256,
    -0.3761263890318341,
    0.11283791670935664,
    -0.0268661706408436,
    0.005223977576962358,
    -0.000854832382192103,
    0.00012055200925936744,
    -1.4922141073139514e-05,
    1.640186293754111e-06,
    -1.5716005095896836e-07,
    1.0730916392113405e-08,
];

/// `e^a²·erfc(a)·(1 + 2a)` as a function of `(a − 4)/(a + 4)`, for a from [`NEAR`] to 28.
const ERFC: [f64; 20] = [
    1.2329951186255526,
    -0.1396211168405615,
    0.015379652102621457,
    0.06809705425455402,
    -0.1010390660364007,
    0.09373283500396783,
    -0.06633036581049952,
    0.037167515433463756,
    -0.01619773406557126,
    0.0050319710295758805,
    -0.000757773382118846,
    -0.00019926301510771852,
    0.00015062302590230898,
    -2.437581143782241e-05,
    -1.1229258244544568e-05,
    5.656458912384315e-06,
    3.1378484977113796e-07,
    -7.541168933283774e-07,
    4.5955595259533474e-08,
    6.000808631728652e-08,
];

/// From here on both functions are taken from erfc.
const NEAR: f64 = 0.84375;

/// `x·(erf(x)/x − 1)`
#[inline(always)]
fn near<C: Lanes>(c: &C, x: C::V) -> C::V {
    let z = c.mul(x, x);
    c.mul(x, polynomial(c, z, &ERF, &[]))
}

/// `erfc(a)` for a >= [`NEAR`]. What g, 1 + 2a and their quotient have lost is given back: each is near a power of two for some a.
#[inline(always)]
fn far<C: Lanes>(c: &C, a: C::V) -> C::V {
    let (one, twice, four) = (c.num(1.0), c.add(a, a), c.num(4.0));
    let q = c.div(c.sub(a, four), c.add(a, four));
    let (first, slope) = (c.num(ERFC[0]), c.mul(q, polynomial(c, q, &ERFC[1..], &[])));
    let g = c.add(first, slope);
    let g_lost = c.add(c.sub(first, g), slope);
    let under = c.add(twice, one);
    let under_lost = c.sub(one, c.sub(under, twice));
    let inverse = c.div(one, under);
    let quotient = c.mul(g, inverse);
    let product = c.mul(quotient, under);
    let left = c.sub(c.sub(g, product), rest_of_product(c, quotient, under, product));
    let lost = c.mul(c.add(left, c.sub(g_lost, c.mul(quotient, under_lost))), inverse);
    let square = c.mul(a, a);
    let power = exp_of_pair(c, c.neg(square), c.neg(rest_of_product(c, a, a, square)));
    c.fma(power, quotient, c.mul(power, lost))
}

/// Error function.
#[inline(always)]
pub fn erf<C: Lanes>(c: &C, x: C::V) -> C::V {
    c.choose(c.lt(c.abs(x), c.num(NEAR)), || c.add(x, near(c, x)), || erf_far(c, x))
}

/// Beyond 6 it is 1.
#[inline(always)]
fn erf_far<C: Lanes>(c: &C, x: C::V) -> C::V {
    c.copysign(c.sub(c.num(1.0), far(c, at_most(c, c.abs(x), c.num(6.0)))), x)
}

/// `1 − erf(x)`, and where that is meant: unless it is tiny.
#[inline(always)]
pub fn erfc<C: Lanes>(c: &C, x: C::V) -> (C::V, C::B) {
    let value = c.choose(c.lt(c.abs(x), c.num(NEAR)), || erfc_near(c, x), || erfc_far(c, x));
    (value, c.lt(x, c.num(26.0)))
}

#[inline(always)]
fn erfc_near<C: Lanes>(c: &C, x: C::V) -> C::V {
    let (half, rest) = (c.num(0.5), near(c, x));
    let upper = c.sub(half, c.add(c.sub(x, half), rest));
    c.select(c.lt(x, c.num(0.25)), c.sub(c.num(1.0), c.add(x, rest)), upper)
}

#[inline(always)]
fn erfc_far<C: Lanes>(c: &C, x: C::V) -> C::V {
    let tail = far(c, at_most(c, c.abs(x), c.num(26.0)));
    c.select(c.lt(x, c.num(0.0)), c.sub(c.num(2.0), tail), tail)
}
