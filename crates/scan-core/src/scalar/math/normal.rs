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
        3.3871328727963665,
        133.14166789178438,
        1971.5909503065513,
        13731.69376550946,
        45921.95393154987,
        67265.7709270087,
        33430.57558358813,
        2509.0809287301227,
    ],
    [
        1.0,
        42.31333070160091,
        687.1870074920579,
        5394.196021424751,
        21213.794301586597,
        39307.89580009271,
        28729.085735721943,
        5226.495278852854,
    ],
];
const SIDE: [[f64; 8]; 2] = [
    [
        1.4234371107496835,
        4.630337846156546,
        5.769497221460691,
        3.6478483247632045,
        1.2704582524523684,
        0.2417807251774506,
        0.022723844989269184,
        0.0007745450142783414,
    ],
    [
        1.0,
        2.053191626637759,
        1.6763848301838038,
        0.6897673349851,
        0.14810397642748008,
        0.015198666563616457,
        0.0005475938084995345,
        1.0507500716444169e-9,
    ],
];
const TAIL: [[f64; 8]; 2] = [
    [
        6.657904643501103,
        5.463784911164114,
        1.7848265399172913,
        0.29656057182850487,
        0.026532189526576124,
        0.0012426609473880784,
        2.7115555687434876e-5,
        2.0103343992922881e-7,
    ],
    [
        1.0,
        0.599832206555888,
        0.1369298809227358,
        0.014875361290850615,
        0.0007868691311456133,
        1.8463183175100548e-5,
        1.421511758316446e-7,
        2.0442631033899397e-15,
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
