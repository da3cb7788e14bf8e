//! Sine and cosine.
//!
//! `|x| = n·π/2 + r + rest` with |r| <= π/4: π/2 is taken in four parts, of which the first three have so few bits that their products
//! with n are exact, and what the differences lose is carried along. That holds for |x| up to a limit; beyond it the function of
//! this machine is called. Its argument is 0 where its value is not used, so that a call costs little, and an engine may leave
//! it out where no lane needs it. Constants: `coefficients.py`.

use super::exp::magic;
use super::poly::{pick, polynomial};
use crate::scalar::Lanes;
use std::f64::consts::FRAC_2_PI;

/// `(sin(r) − r) / r³` as a function of r².
const SIN: [f64; 6] = [
    -0.16666666666666632,
    0.008333333333322424,
    -0.0001984126982981662,
    2.7557313695121834e-06,
    -2.5050758638022558e-08,
    1.5896827092693034e-10,
];
const SIN_F32: [f64; 4] = [-0.1666666716337204, 0.008333329111337662, -0.0001983933470910415, 2.7183114070794545e-06];

/// `(cos(r) − 1 + r²/2) / r⁴` as a function of r².
const COS: [f64; 6] = [
    0.0416666666666666,
    -0.0013888888888874138,
    2.4801587289491275e-05,
    -2.75573143550935e-07,
    2.0875723665500295e-09,
    -1.1359668937967924e-11,
];
const COS_F32: [f64; 3] = [0.04166664555668831, -0.001388736767694354, 2.4438446416752413e-05];

/// π/2 in parts of 33 bits (15 in f32), and the rest.
const HALF_PI: [f64; 4] = [1.5707963267341256, 6.077100506303966e-11, 2.0222662487111665e-21, 8.4784276603689e-32];
const HALF_PI_F32: [f64; 4] = [1.57073974609375, 5.657970905303955e-05, 9.920881893776823e-10, 5.390302953474238e-15];

/// Up to here n has at most 20 bits (8 in f32).
const LIMIT: [f64; 2] = [1e6, 400.0];

/// Sine.
#[inline(always)]
pub fn sin<C: Lanes>(c: &C, x: C::V) -> C::V {
    let (quadrant, value) = value(c, x, 0);
    let sign = c.int_and(c.bits(x), c.int(if c.wide() { 1 << 63 } else { 1 << 31 }));
    let near = c.of_bits(c.int_xor(c.bits(value), c.int_xor(sign, upper(c, quadrant))));
    let inside = c.le(c.abs(x), pick(c, LIMIT[0], LIMIT[1]));
    c.select(inside, near, c.machine_sin(c.select(inside, c.num(0.0), x)))
}

/// Cosine.
#[inline(always)]
pub fn cos<C: Lanes>(c: &C, x: C::V) -> C::V {
    let (quadrant, value) = value(c, x, 1);
    let near = c.of_bits(c.int_xor(c.bits(value), upper(c, quadrant)));
    let inside = c.le(c.abs(x), pick(c, LIMIT[0], LIMIT[1]));
    c.select(inside, near, c.machine_cos(c.select(inside, c.num(0.0), x)))
}

/// The quadrant of |x|, as many further as `turns` says, in the low two bits of an integer, and the size of the sine there.
#[inline(always)]
fn value<C: Lanes>(c: &C, x: C::V, turns: u64) -> (C::I, C::V) {
    let (n, r, rest) = reduce(c, c.abs(x));
    let quadrant = if turns == 0 { n } else { c.int_add(n, c.int(turns)) };
    let last = c.int_shl(quadrant, if c.wide() { 63 } else { 31 });
    let z = c.mul(r, r);
    let (one, half) = (c.num(1.0), c.mul(c.num(0.5), z));
    let most = c.sub(one, half);
    let sine = c.add(r, c.fma(c.mul(z, r), polynomial(c, z, &SIN, &SIN_F32), c.mul(rest, most)));
    let lost = c.sub(c.sub(c.sub(one, most), half), c.mul(r, rest));
    let cosine = c.add(most, c.fma(c.mul(z, z), polynomial(c, z, &COS, &COS_F32), lost));
    (quadrant, c.select(c.signbit(c.of_bits(last)), cosine, sine))
}

/// `(n, r, rest)`, the integer in its low bits.
#[inline(always)]
fn reduce<C: Lanes>(c: &C, x: C::V) -> (C::I, C::V, C::V) {
    let large = magic(c, [0.0, 0.0]);
    let shifted = c.fma(x, c.num(FRAC_2_PI), large);
    let n = c.sub(shifted, large);
    let part = |i: usize| pick(c, HALF_PI[i], HALF_PI_F32[i]);
    let first = c.sub(x, c.mul(n, part(0)));
    let (second, lost) = less(c, first, c.mul(n, part(1)));
    let (third, lost_too) = less(c, second, c.mul(n, part(2)));
    let low = c.sub(c.add(lost, lost_too), c.mul(n, part(3)));
    let r = c.add(third, low);
    (c.bits(shifted), r, c.add(c.sub(third, r), low))
}

/// `x − y`, and what that lost.
#[inline(always)]
fn less<C: Lanes>(c: &C, x: C::V, y: C::V) -> (C::V, C::V) {
    let difference = c.sub(x, y);
    (difference, c.sub(c.sub(x, difference), y))
}

/// The second lowest bit as a sign.
#[inline(always)]
fn upper<C: Lanes>(c: &C, quadrant: C::I) -> C::I {
    c.int_shl(c.int_shr(quadrant, 1), if c.wide() { 63 } else { 31 })
}
