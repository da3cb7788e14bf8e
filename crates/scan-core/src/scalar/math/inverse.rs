//! Inverse trigonometric functions: `atan a = atan m + atan((a − m)/(1 + m·a))` for the nearest m of 0, ½, 1, 1½ and ∞, and
//! `asin a = π/2 − 2·asin √((1 − a)/2)` from ½ on (known from fdlibm). Constants: `coefficients.py`.

use super::poly::{polynomial, rest_of_product};
use crate::scalar::Lanes;

/// `(atan(t)/t − 1)/t²` as a function of t², for |t| <= 7/16.
const ATAN: [f64; 11] = [
    -0.3333333333333293,
    0.1999999999987615,
    -0.14285714272480304,
    0.11111110404624569,
    -0.09090887115473627,
    0.07691875961642886,
    -0.06661070995703575,
    0.05833557919209847,
    -0.04976834418959637,
    0.036530688856262566,
    -0.016285041911686504,
];

/// `(asin(t)/t − 1)/t²` as a function of t², for |t| <= ½.
const ASIN: [f64; 13] = [
    0.16666666666666763,
    0.0749999999997028,
    0.044642857175101275,
    0.0303819426845692,
    0.02237221563400385,
    0.017351600547327147,
    0.01398095622231583,
    0.011397816878891643,
    0.01078630993200439,
    0.003683834428545855,
    0.02176164947657543,
    -0.02107477568467881,
    0.032675373436633216,
];

/// `atan ½`, `atan 1`, `atan 1½` and `π/2` in two parts.
const HALF: [f64; 2] = [0.4636476090008061, 2.2698777452961687e-17];
const ONE: [f64; 2] = [std::f64::consts::FRAC_PI_4, 3.061616997868383e-17];
const THREE_HALVES: [f64; 2] = [0.982793723247329, 1.3903311031230998e-17];
const HALF_PI: [f64; 2] = [std::f64::consts::FRAC_PI_2, 6.123233995736766e-17];

/// `atan(t) − t` for |t| <= 7/16.
#[inline(always)]
fn rest_of_atan<C: Lanes>(c: &C, t: C::V) -> C::V {
    let z = c.mul(t, t);
    c.mul(t, c.mul(z, polynomial(c, z, &ATAN, &[])))
}

/// The first of some values whose condition holds, else the last.
#[inline(always)]
fn first<C: Lanes, const N: usize>(c: &C, conditions: &[C::B; N], values: &[C::V; N], last: C::V) -> C::V {
    let (mut found, mut k) = (last, N);
    while k > 0 {
        k -= 1;
        found = c.select(conditions[k], values[k], found);
    }
    found
}

/// Arctangent.
#[inline(always)]
pub fn atan<C: Lanes>(c: &C, x: C::V) -> C::V {
    let (a, one, zero, three_halves) = (c.abs(x), c.num(1.0), c.num(0.0), c.num(1.5));
    let up_to = [c.lt(a, c.num(0.4375)), c.lt(a, c.num(0.6875)), c.lt(a, c.num(1.1875)), c.lt(a, c.num(2.4375))];
    let above = first(c, &up_to, &[a, c.sub(c.add(a, a), one), c.sub(a, one), c.sub(a, three_halves)], c.num(-1.0));
    let under = first(c, &up_to, &[one, c.add(c.num(2.0), a), c.add(a, one), c.fma(three_halves, a, one)], a);
    let t = c.div(above, under);
    let high = first(c, &up_to, &[zero, c.num(HALF[0]), c.num(ONE[0]), c.num(THREE_HALVES[0])], c.num(HALF_PI[0]));
    let low = first(c, &up_to, &[zero, c.num(HALF[1]), c.num(ONE[1]), c.num(THREE_HALVES[1])], c.num(HALF_PI[1]));
    c.copysign(c.add(high, c.add(t, c.add(rest_of_atan(c, t), low))), x)
}

/// `−v` where that is so, else v.
#[inline(always)]
fn toward<C: Lanes>(c: &C, turned: C::B, v: C::V) -> C::V {
    c.select(turned, c.neg(v), v)
}

/// The angle of the point (x, y), first argument y, and where that is meant: where neither is 0 and quotients are no trouble.
#[inline(always)]
pub fn atan2<C: Lanes>(c: &C, y: C::V, x: C::V) -> (C::V, C::B) {
    let (across, up, zero) = (c.abs(x), c.abs(y), c.num(0.0));
    let steep = c.lt(across, up);
    let (less, more) = (c.select(steep, across, up), c.select(steep, up, across));
    let up_to = [c.lt(less, c.mul(more, c.num(0.4375))), c.lt(less, c.mul(more, c.num(0.6875)))];
    let above = first(c, &up_to, &[less, c.sub(c.add(less, less), more)], c.sub(less, more));
    let under = first(c, &up_to, &[more, c.fma(more, c.num(2.0), less)], c.add(less, more));
    let t = c.div(above, under);
    // What the quotient has lost, where nothing larger is added to it.
    let product = c.mul(t, under);
    let lost = c.div(c.sub(c.sub(above, product), rest_of_product(c, t, under, product)), under);
    let small = c.add(rest_of_atan(c, t), c.select(up_to[0], lost, zero));
    // The angle is π/2, π or 0, more or less the one that is near and what is left.
    let left = c.lt(x, zero);
    let turned = c.xor(steep, left);
    let high = toward(c, turned, first(c, &up_to, &[zero, c.num(HALF[0])], c.num(ONE[0])));
    let low = toward(c, turned, first(c, &up_to, &[zero, c.num(HALF[1])], c.num(ONE[1])));
    let base = c.select(steep, c.num(HALF_PI[0]), c.select(left, c.num(2.0 * HALF_PI[0]), zero));
    let base_low = c.select(steep, c.num(HALF_PI[1]), c.select(left, c.num(2.0 * HALF_PI[1]), zero));
    let sum = c.add(base, high);
    let back = c.sub(sum, base);
    let rest = c.add(c.sub(base, c.sub(sum, back)), c.sub(high, back));
    let low = c.add(rest, c.add(base_low, low));
    let angle = c.add(sum, c.add(toward(c, turned, t), c.add(toward(c, turned, small), low)));
    let meant = c.and(c.le(c.num(1e-140), less), c.le(more, c.num(1e140)));
    (c.copysign(angle, y), meant)
}

/// `asin(t) − t` as a part of t, for |t| <= ½ and z = t².
#[inline(always)]
fn rest_of_asin<C: Lanes>(c: &C, z: C::V) -> C::V {
    c.mul(z, polynomial(c, z, &ASIN, &[]))
}

/// `√z` in two parts, the first of 21 bits.
#[inline(always)]
fn root<C: Lanes>(c: &C, z: C::V) -> (C::V, C::V, C::V) {
    let s = c.sqrt(z);
    let front = c.of_bits(c.int_and(c.bits(s), c.int(u64::MAX << 32)));
    let rest = c.div(c.sub(z, c.mul(front, front)), c.add(s, front));
    (s, front, c.select(c.eq(s, c.num(0.0)), s, rest))
}

/// Arcsine.
#[inline(always)]
pub fn asin<C: Lanes>(c: &C, x: C::V) -> C::V {
    c.choose(c.lt(c.abs(x), c.num(0.5)), || c.fma(x, rest_of_asin(c, c.mul(x, x)), x), || asin_far(c, x))
}

#[inline(always)]
fn asin_far<C: Lanes>(c: &C, x: C::V) -> C::V {
    let z = c.mul(c.sub(c.num(1.0), c.abs(x)), c.num(0.5));
    let (s, front, rest) = root(c, z);
    let series = c.mul(s, rest_of_asin(c, z));
    let small = c.sub(c.add(series, series), c.sub(c.num(HALF_PI[1]), c.add(rest, rest)));
    let quarter = c.num(ONE[0]);
    c.copysign(c.sub(quarter, c.sub(small, c.sub(quarter, c.add(front, front)))), x)
}

/// Arccosine.
#[inline(always)]
pub fn acos<C: Lanes>(c: &C, x: C::V) -> C::V {
    c.choose(c.lt(c.abs(x), c.num(0.5)), || acos_near(c, x), || acos_far(c, x))
}

#[inline(always)]
fn acos_near<C: Lanes>(c: &C, x: C::V) -> C::V {
    let small = c.sub(c.num(HALF_PI[1]), c.mul(x, rest_of_asin(c, c.mul(x, x))));
    c.sub(c.num(HALF_PI[0]), c.sub(x, small))
}

#[inline(always)]
fn acos_far<C: Lanes>(c: &C, x: C::V) -> C::V {
    let z = c.mul(c.sub(c.num(1.0), c.abs(x)), c.num(0.5));
    let (s, front, rest) = root(c, z);
    let series = c.mul(s, rest_of_asin(c, z));
    let right = c.add(front, c.add(series, rest));
    let left = c.sub(c.num(HALF_PI[0]), c.add(s, c.sub(series, c.num(HALF_PI[1]))));
    let angle = c.select(c.lt(x, c.num(0.0)), left, right);
    c.add(angle, angle)
}
