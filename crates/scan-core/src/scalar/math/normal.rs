//! The quantile of the normal distribution, and what is made of it: rational functions on three ranges (Wichura 1988, "Algorithm AS 241: The
//! percentage points of the normal distribution"), within 3 units.

use super::poly::polynomial;
use crate::scalar::Lanes;
use std::f64::consts::FRAC_1_SQRT_2;

/// How far from one half the first range goes, and its square.
const NEAR: [f64; 2] = [0.425, 0.180625];
/// Where the third range begins: `exp(−5²)`.
const FAR: f64 = 1.3887943864964021e-11;
/// What is taken from `√(−log p)` in the second range and in the third.
const SIDE_FROM: f64 = 1.6;
const TAIL_FROM: f64 = 5.0;

/// Numerators and denominators.
const MIDDLE: [[f64; 8]; 2] = [
    [
        3.387132872796366608,
        133.14166789178437745,
        1971.5909503065514427,
        13731.693765509461125,
        45921.953931549871457,
        67265.770927008700853,
        33430.575583588128105,
        2509.0809287301226727,
    ],
    [
        1.0,
        42.313330701600911252,
        687.1870074920579083,
        5394.1960214247511077,
        21213.794301586595867,
        39307.89580009271061,
        28729.085735721942674,
        5226.495278852854561,
    ],
];
const SIDE: [[f64; 8]; 2] = [
    [
        1.42343711074968357734,
        4.6303378461565452959,
        5.7694972214606914055,
        3.64784832476320460504,
        1.27045825245236838258,
        0.24178072517745061177,
        0.0227238449892691845833,
        7.7454501427834140764e-4,
    ],
    [
        1.0,
        2.05319162663775882187,
        1.6763848301838038494,
        0.68976733498510000455,
        0.14810397642748007459,
        0.0151986665636164571966,
        5.475938084995344946e-4,
        1.05075007164441684324e-9,
    ],
];
const TAIL: [[f64; 8]; 2] = [
    [
        6.6579046435011037772,
        5.4637849111641143699,
        1.7848265399172913358,
        0.29656057182850489123,
        0.026532189526576123093,
        0.0012426609473880784386,
        2.71155556874348757815e-5,
        2.01033439929228813265e-7,
    ],
    [
        1.0,
        0.59983220655588793769,
        0.1369298809227358053,
        0.0148753612908506148525,
        7.868691311456132591e-4,
        1.8463183175100546818e-5,
        1.4215117583164458887e-7,
        2.04426310338993978564e-15,
    ],
];

/// The x of which the share p of all numbers is below, and where that is meant: 0 < p < 1.
#[inline(always)]
pub fn ndtri<C: Lanes>(c: &C, p: C::V) -> (C::V, C::B) {
    let (zero, half, one) = (c.num(0.0), c.num(0.5), c.num(1.0));
    let above = c.lt(half, p);
    let tail = c.select(above, c.sub(one, p), p);
    (quantile(c, c.sub(p, half), tail), c.and(c.lt(zero, p), c.lt(p, one)))
}

/// The w with `erf(w) = x`, and where that is meant: |x| < 1.
#[inline(always)]
pub fn erfinv<C: Lanes>(c: &C, x: C::V) -> (C::V, C::B) {
    let (half, one, size) = (c.num(0.5), c.num(1.0), c.abs(x));
    let found = quantile(c, c.mul(x, half), c.mul(c.sub(one, size), half));
    (c.mul(found, c.num(FRAC_1_SQRT_2)), c.lt(size, one))
}

/// The quantile of ½ + middle, of which there is so much on the shorter side.
#[inline(always)]
fn quantile<C: Lanes>(c: &C, middle: C::V, tail: C::V) -> C::V {
    let (near, far) = (c.le(c.abs(middle), c.num(NEAR[0])), c.lt(tail, c.num(FAR)));
    let mut found = central(c, middle);
    // No closures: one that is not written into the loop would be compiled without the processor's vectors.
    if !c.all(near) {
        found = c.select(near, found, c.copysign(beside(c, tail, SIDE_FROM, &SIDE), middle));
    }
    if c.any(far) {
        found = c.select(far, c.copysign(beside(c, tail, TAIL_FROM, &TAIL), middle), found);
    }
    found
}

#[inline(always)]
fn central<C: Lanes>(c: &C, middle: C::V) -> C::V {
    c.mul(middle, ratio(c, c.sub(c.num(NEAR[1]), c.mul(middle, middle)), &MIDDLE))
}

#[inline(always)]
fn beside<C: Lanes>(c: &C, tail: C::V, from: f64, terms: &[[f64; 8]; 2]) -> C::V {
    ratio(c, c.sub(c.sqrt(c.neg(c.log(tail))), c.num(from)), terms)
}

#[inline(always)]
fn ratio<C: Lanes>(c: &C, x: C::V, [above, below]: &[[f64; 8]; 2]) -> C::V {
    c.div(polynomial(c, x, above, &[]), polynomial(c, x, below, &[]))
}
