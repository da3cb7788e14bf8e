//! The logarithm of the gamma function and its derivatives, for x > 0: asymptotic series from 8 on, below by the recurrence
//! `Γ(x + 1) = x·Γ(x)`. Constants: `coefficients.py`.

use super::poly::polynomial;
use crate::scalar::Lanes;

/// `log Γ(2 + y) / y` for |y| <= ½.
const NEAR: [f64; 18] = [
    0.42278433509846713,
    0.3224670334241133,
    -0.06735230105319577,
    0.02058080842776598,
    -0.007385551028925049,
    0.002890510331842078,
    -0.001192753901330323,
    0.0005096694950977963,
    -0.0002231549722761714,
    9.945794436046783e-05,
    -4.4923771729424604e-05,
    2.0503542869565402e-05,
    -9.456079686185299e-06,
    4.393525178538923e-06,
    -1.9748256085108365e-06,
    8.998913618841372e-07,
    -5.806115137833427e-07,
    2.9771730300189466e-07,
];

/// `(log Γ(x) − (x − ½)·(log x − 1) − (log 2π − 1)/2)·x` as a function of 1/x².
const STIRLING: [f64; 6] = [
    0.0833333333333333,
    -0.0027777777776099794,
    0.0007936506668554954,
    -0.0005952029361121932,
    0.0008373083474871731,
    -0.001653236989401643,
];

/// `(log x − 1/2x − ψ(x))·x²` as a function of 1/x².
const DIGAMMA: [f64; 7] = [
    0.08333333333333333,
    -0.00833333333328043,
    0.0039682539132875755,
    -0.004166645186275824,
    0.007571734356959201,
    -0.020700528065978708,
    0.06367563228720413,
];

/// `ψ(x) / (x − root)` as a function of x − 1½, for x from 1 to 2.
const DIGAMMA_NEAR: [f64; 21] = [
    0.9510558760318328,
    -0.4236274212814572,
    0.24054248424077793,
    -0.1484049230548745,
    0.09498872445447519,
    -0.061922133189604815,
    0.04076083383607608,
    -0.026975800065014256,
    0.01790725182446187,
    -0.011908145893384393,
    0.007926953843785473,
    -0.005280909397218271,
    0.003518922657429572,
    -0.002337513615412695,
    0.0015571035942705763,
    -0.0010778293734697586,
    0.000721720313344356,
    -0.0003544771427044525,
    0.00023026025070629807,
    -0.00037863227608132274,
    0.0002572606807127936,
];

/// The root of ψ in two parts.
const ROOT: [f64; 2] = [1.4616321449683622, 9.549995429965697e-17];

/// `(ψ′(x) − 1/x − 1/2x²)·x³` as a function of 1/x².
const TRIGAMMA: [f64; 7] = [
    0.16666666666666655,
    -0.03333333333252343,
    0.023809522966615915,
    -0.03333300324977744,
    0.07569557486049545,
    -0.24704066483626927,
    0.8596093983547042,
];

/// Where the series begin.
const FAR: f64 = 8.0;

/// True from a number above 0 on, so small that it makes no difference, up to where nothing overflows yet.
#[inline(always)]
fn inside<C: Lanes>(c: &C, x: C::V) -> C::B {
    c.and(c.le(c.num(1e-100), x), c.lt(x, c.num(1e100)))
}

/// `log Γ(x)`, and where that is meant.
#[inline(always)]
pub fn gammaln<C: Lanes>(c: &C, x: C::V) -> (C::V, C::B) {
    let value = c.choose(c.lt(x, c.num(FAR)), || gammaln_near(c, x), || gammaln_far(c, x));
    (value, inside(c, x))
}

/// `y·NEAR(y) ± log p`, y being x less an integer, and p what the recurrence makes of that.
#[inline(always)]
fn gammaln_near<C: Lanes>(c: &C, x: C::V) -> C::V {
    let one = c.num(1.0);
    let (mut moved, mut product) = (x, one);
    for _ in 0..6 {
        let beyond = c.le(c.num(2.5), moved);
        let less = c.sub(moved, one);
        product = c.select(beyond, c.mul(product, less), product);
        moved = c.select(beyond, less, moved);
    }
    let (tiny, small) = (c.lt(x, c.num(0.5)), c.lt(x, c.num(1.5)));
    let y = c.select(tiny, x, c.select(small, c.sub(x, one), c.sub(moved, c.num(2.0))));
    let product = c.select(tiny, c.fma(x, x, x), c.select(small, x, product));
    let log = c.log(product);
    c.fma(y, polynomial(c, y, &NEAR, &[]), c.select(small, c.neg(log), log))
}

#[inline(always)]
fn gammaln_far<C: Lanes>(c: &C, x: C::V) -> C::V {
    let inverse = c.div(c.num(1.0), x);
    let series = c.mul(inverse, polynomial(c, c.mul(inverse, inverse), &STIRLING, &[]));
    let log = c.sub(c.log(x), c.num(1.0));
    c.fma(c.sub(x, c.num(0.5)), log, c.add(c.num(0.4189385332046727), series))
}

/// `ψ(x)`, and where that is meant.
#[inline(always)]
pub fn digamma<C: Lanes>(c: &C, x: C::V) -> (C::V, C::B) {
    let value = c.choose(c.lt(x, c.num(FAR)), || digamma_near(c, x), || digamma_far(c, x));
    (value, inside(c, x))
}

/// `ψ(1 + y) + Σ 1/(x − k)`, with 1 + y from 1 to 2, or `ψ(1 + x) − 1/x`: the sum as one quotient.
#[inline(always)]
fn digamma_near<C: Lanes>(c: &C, x: C::V) -> C::V {
    let (zero, one) = (c.num(0.0), c.num(1.0));
    let (mut moved, mut above, mut under) = (x, zero, one);
    for _ in 0..6 {
        let beyond = c.lt(c.num(2.0), moved);
        let less = c.sub(moved, one);
        above = c.select(beyond, c.fma(above, less, under), above);
        under = c.select(beyond, c.mul(under, less), under);
        moved = c.select(beyond, less, moved);
    }
    let tiny = c.lt(x, one);
    let moved = c.select(tiny, c.add(x, one), moved);
    let sum = c.div(c.select(tiny, c.num(-1.0), above), c.select(tiny, x, under));
    let from_root = c.sub(c.sub(moved, c.num(ROOT[0])), c.num(ROOT[1]));
    c.fma(from_root, polynomial(c, c.sub(moved, c.num(1.5)), &DIGAMMA_NEAR, &[]), sum)
}

#[inline(always)]
fn digamma_far<C: Lanes>(c: &C, x: C::V) -> C::V {
    let inverse = c.div(c.num(1.0), x);
    let square = c.mul(inverse, inverse);
    let series = c.fma(inverse, c.num(0.5), c.mul(square, polynomial(c, square, &DIGAMMA, &[])));
    c.sub(c.log(x), series)
}

/// `ψ′(x)`, and where that is meant.
#[inline(always)]
pub fn trigamma<C: Lanes>(c: &C, x: C::V) -> (C::V, C::B) {
    let (near, one, zero) = (c.lt(x, c.num(FAR)), c.num(1.0), c.num(0.0));
    // `Σ 1/(x + k)²` for k below 8 as one quotient.
    let held = c.select(near, x, one);
    let (mut above, mut under) = (one, c.mul(held, held));
    for k in 1..8 {
        let next = c.add(held, c.num(f64::from(k)));
        let next = c.mul(next, next);
        above = c.fma(above, next, under);
        under = c.mul(under, next);
    }
    let sum = c.select(near, c.div(above, under), zero);
    let far = c.select(near, c.add(x, c.num(FAR)), x);
    let inverse = c.div(one, far);
    let square = c.mul(inverse, inverse);
    let series = c.fma(square, c.num(0.5), c.mul(c.mul(square, inverse), polynomial(c, square, &TRIGAMMA, &[])));
    (c.add(sum, c.add(inverse, series)), inside(c, x))
}
