//! `eˣ`, `2ˣ`, `eˣ − 1`.
//!
//! `x = n·log 2 + r` with |r| <= log 2 / 2, so that `eˣ = 2ⁿ·(1 + r + r²·q(r))`. n is rounded by adding a large number, in whose low
//! bits it then stands as an integer. The factor 2ⁿ is applied in two halves: results that overflow or lose bits below the
//! smallest normal number come out right, rounded once. Constants: `coefficients.py`.

use super::poly::{horner, pick, polynomial};
use crate::scalar::Lanes;
use std::f64::consts::{LN_2, LOG2_E};

/// `(eʳ − 1 − r) / r²`
const EXP: [f64; 10] = [
    0.5000000000000013,
    0.16666666666666693,
    0.04166666666651501,
    0.008333333333310034,
    0.0013888888947094834,
    0.00019841269911685083,
    2.4801489880810818e-05,
    2.755722111587916e-06,
    2.7631296978138e-07,
    2.5116402835733866e-08,
];
const EXP_F32: [f64; 5] = [0.5, 0.166665181517601, 0.04166620597243309, 0.008368882350623608, 0.0013950474094599485];

/// The same, exact near 0.
const EXPM1: [f64; 11] = [
    0.5,
    0.16666666666666677,
    0.0416666666666667,
    0.008333333333321624,
    0.001388888888886686,
    0.00019841269886132886,
    2.4801587360510657e-05,
    2.755724421072334e-06,
    2.755724279999717e-07,
    2.5109033904863153e-08,
    2.0924430534608116e-09,
];
const EXPM1_F32: [f64; 6] =
    [0.5, 0.1666666716337204, 0.04166635498404503, 0.008333276025950909, 0.001394103397615254, 0.00019912690913770348];

/// `(2ʳ − 1) / r`
const EXP2: [f64; 11] = [
    LN_2,
    0.24022650695910133,
    0.05550410866482174,
    0.009618129107593331,
    0.0013333558146379084,
    0.00015403530458080249,
    1.5252733867490164e-05,
    1.3215434816593538e-06,
    1.0178046483708337e-07,
    7.073860234695636e-09,
    4.4573837638133936e-10,
];
const EXP2_F32: [f64; 6] =
    [0.6931471824645996, 0.24022650718688965, 0.055503275245428085, 0.009618008509278297, 0.0013400311581790447, 0.00015475097461603582];

/// log 2 in two parts.
pub(super) const LN2: [f64; 2] = [0.6931471803691238, 1.9082149292705877e-10];
pub(super) const LN2_F32: [f64; 2] = [0.693145751953125, 1.428606765330187e-06];

/// The biases of the exponent, f64 and f32.
const BIAS: [f64; 2] = [1023.0, 127.0];

/// An integer n, and what is left of the argument.
struct Reduced<V> {
    /// `n + bias` in its low bits.
    shifted: V,
    n: V,
    /// What is left, but for n times the small part of log 2.
    high: V,
    r: V,
}

/// `x = n·log 2 + r`
#[inline(always)]
fn reduce<C: Lanes>(c: &C, x: C::V, bias: [f64; 2]) -> Reduced<C::V> {
    let large = magic(c, bias);
    rest(c, x, c.fma(x, c.num(LOG2_E), large), large)
}

/// What `n = shifted − large` leaves of x.
#[inline(always)]
fn rest<C: Lanes>(c: &C, x: C::V, shifted: C::V, large: C::V) -> Reduced<C::V> {
    let n = c.sub(shifted, large);
    let high = c.fma(n, pick(c, -LN2[0], -LN2_F32[0]), x);
    let r = c.fma(n, pick(c, -LN2[1], -LN2_F32[1]), high);
    Reduced { shifted, n, high, r }
}

/// A number so large that its last place is 1, plus a bias.
#[inline(always)]
pub(super) fn magic<C: Lanes>(c: &C, [wide, narrow]: [f64; 2]) -> C::V {
    pick(c, 6755399441055744.0 + wide, 12582912.0 + narrow)
}

/// Bits of the fraction of a number.
#[inline(always)]
pub(super) fn fraction<C: Lanes>(c: &C) -> u32 {
    if c.wide() { 52 } else { 23 }
}

/// The bias that [`scale`] asks for: twice that of the exponent.
const HALVES: [f64; 2] = [2.0 * BIAS[0], 2.0 * BIAS[1]];

/// `p·2ⁿ`
#[inline(always)]
fn scale<C: Lanes>(c: &C, p: C::V, shifted: C::V) -> C::V {
    let both = c.bits(shifted);
    let one = c.int_shr(both, 1);
    let other = c.int_sub(both, one);
    let power = |exponent| c.of_bits(c.int_shl(exponent, fraction(c)));
    c.mul(c.mul(p, power(one)), power(other))
}

/// 2ⁿ, the bias being that of the exponent.
#[inline(always)]
fn power_of_two<C: Lanes>(c: &C, shifted: C::V) -> C::V {
    c.of_bits(c.int_shl(c.bits(shifted), fraction(c)))
}

/// The lesser of x and a bound; NaN stays. In the form that processors have as one instruction.
#[inline(always)]
pub(super) fn at_most<C: Lanes>(c: &C, x: C::V, bound: C::V) -> C::V {
    c.select(c.lt(bound, x), bound, x)
}

/// The greater of x and a bound; NaN stays.
#[inline(always)]
fn at_least<C: Lanes>(c: &C, x: C::V, bound: C::V) -> C::V {
    c.select(c.lt(x, bound), bound, x)
}

/// `eˣ`
#[inline(always)]
pub fn exp<C: Lanes>(c: &C, x: C::V) -> C::V {
    exp_of_low(c, at_most(c, x, pick(c, 710.0, 89.0)))
}

/// `eˣ` for x <= 710 (89 in f32).
#[inline(always)]
pub(super) fn exp_of_low<C: Lanes>(c: &C, x: C::V) -> C::V {
    let Reduced { shifted, r, .. } = reduce(c, at_least(c, x, pick(c, -746.0, -104.0)), HALVES);
    let one = c.num(1.0);
    let slope = c.fma(r, polynomial(c, r, &EXP, &EXP_F32), one);
    scale(c, c.fma(r, slope, one), shifted)
}

/// `e^(x + low)` for a low far below x, where neither that nor 1 over it overflows.
#[inline(always)]
pub(super) fn exp_of_pair<C: Lanes>(c: &C, x: C::V, low: C::V) -> C::V {
    let Reduced { shifted, n, high, r } = reduce(c, x, BIAS);
    let lost = c.add(c.fma(n, pick(c, -LN2[1], -LN2_F32[1]), c.sub(high, r)), low);
    let near = c.add(r, lost);
    let lost = c.add(c.sub(r, near), lost);
    let rest = c.fma(c.mul(near, near), polynomial(c, near, &EXPM1, &EXPM1_F32), lost);
    let one = c.num(1.0);
    let sum = c.add(one, near);
    let rest = c.add(c.add(c.sub(one, sum), near), rest);
    c.mul(c.add(sum, rest), power_of_two(c, shifted))
}

/// `2ˣ`, exact for integers.
#[inline(always)]
pub fn exp2<C: Lanes>(c: &C, x: C::V) -> C::V {
    let x = at_least(c, at_most(c, x, pick(c, 1025.0, 129.0)), pick(c, -1076.0, -151.0));
    let large = magic(c, HALVES);
    let shifted = c.add(x, large);
    let r = c.sub(x, c.sub(shifted, large));
    let slope = c.fma(r, polynomial(c, r, &EXP2[1..], &EXP2_F32[1..]), pick(c, EXP2[0], EXP2_F32[0]));
    scale(c, c.fma(r, slope, c.num(1.0)), shifted)
}

/// `eʳ = (even + r·odd) / (even − r·odd)`, both functions of r². Their common factor keeps both sides of the quotient below 2 and well
/// above 1 for every r: rounding costs most just above a power of two.
const EVEN: [f64; 3] = [1.65, 0.1833293608169819, 0.0016365075458294142];
const EVEN_F32: [f64; 2] = [1.649999976158142, 0.16497640311717987];
const ODD: [f64; 3] = [0.825, 0.022914680408491084, 5.453040550495062e-05];
const ODD_F32: [f64; 2] = [0.824999988079071, 0.013738214038312435];

/// The power of two that [`sigmoid`] divides both sides of its quotient by, so that 2⁻ⁿ is finite for every n.
const SMALLER: [u64; 2] = [80, 32];

/// `1 / (1 + e⁻ˣ) = upper / (upper + 2⁻ⁿ·lower)` with `x = n·log 2 + r` and `eʳ = upper / lower`: one division for the exponential and the
/// quotient. Lower is made from upper, `upper − 2·r·odd`, so that what upper has lost by rounding is nearly the same on both sides.
#[inline(always)]
pub fn sigmoid<C: Lanes>(c: &C, x: C::V) -> C::V {
    let held = at_least(c, at_most(c, x, pick(c, 40.0, 18.0)), pick(c, -746.0, -104.0));
    let large = magic(c, [BIAS[0] - SMALLER[0] as f64, BIAS[1] - SMALLER[1] as f64]);
    let shifted = c.fma(held, c.num(-LOG2_E), large);
    let minus_n = c.sub(shifted, large);
    let r = c.fma(minus_n, pick(c, LN2[1], LN2_F32[1]), c.fma(minus_n, pick(c, LN2[0], LN2_F32[0]), held));
    let (power, z) = (power_of_two(c, shifted), c.mul(r, r));
    let (even, odd) = (horner(c, z, &EVEN, &EVEN_F32), horner(c, z, &ODD, &ODD_F32));
    let upper = c.fma(r, odd, even);
    let lower = c.fma(c.neg(c.add(r, r)), odd, upper);
    let exponent = if c.wide() { SMALLER[0] } else { SMALLER[1] } << fraction(c);
    let smaller = c.of_bits(c.int_sub(c.bits(upper), c.int(exponent)));
    c.div(smaller, c.fma(power, lower, smaller))
}

/// `eʳ − 1` in two parts: r, and what the part of r that its rounding has lost and the rest of the series make.
struct Expm1<V> {
    shifted: V,
    r: V,
    rest: V,
}

#[inline(always)]
fn expm1_of_rest<C: Lanes>(c: &C, x: C::V, bias: [f64; 2]) -> Expm1<C::V> {
    let Reduced { shifted, n, high, r } = reduce(c, x, bias);
    let lost = c.fma(n, pick(c, -LN2[1], -LN2_F32[1]), c.sub(high, r));
    let rest = c.fma(c.mul(r, r), polynomial(c, r, &EXPM1, &EXPM1_F32), lost);
    Expm1 { shifted, r, rest }
}

/// `eˣ − 1 = 2·(2ⁿ⁻¹·(eʳ − 1) + (2ⁿ⁻¹ − ½))`; the half keeps the power finite up to the largest result.
#[inline(always)]
pub fn expm1<C: Lanes>(c: &C, x: C::V) -> C::V {
    let held = at_least(c, at_most(c, x, pick(c, 710.0, 89.0)), pick(c, -40.0, -20.0));
    let Expm1 { shifted, r, rest } = expm1_of_rest(c, held, BIAS.map(|b| b - 1.0));
    let power = power_of_two(c, shifted);
    let (less, most) = (c.sub(power, c.num(0.5)), c.mul(power, r));
    let sum = c.add(less, most);
    let lost = c.sub(most, c.sub(sum, less));
    let half = c.add(sum, c.fma(power, rest, lost));
    let small = c.lt(c.abs(x), pick(c, 1e-17, 1e-9));
    c.select(small, x, c.add(half, half))
}

/// `tanh |x| = (e^2|x| − 1) / (e^2|x| + 1)`, both sides computed from `eʳ − 1` without a difference of near numbers, and what the lower
/// side loses given back; from about ½ on the same as `1 − 2 / (e^2|x| + 1)`.
#[inline(always)]
pub fn tanh<C: Lanes>(c: &C, x: C::V) -> C::V {
    let size = at_most(c, c.abs(x), pick(c, 22.0, 10.0));
    let Expm1 { shifted, r, rest } = expm1_of_rest(c, c.add(size, size), BIAS);
    let s = c.add(r, rest);
    let (power, one) = (power_of_two(c, shifted), c.num(1.0));
    let base = c.add(power, one);
    let high = c.fma(power, s, base);
    let lost = c.fma(power, s, c.sub(base, high));
    let far = c.lt(c.num(0.55), size);
    let low = c.select(far, c.num(2.0), c.fma(power, s, c.sub(power, one)));
    let quotient = c.div(low, high);
    let near = c.fma(quotient, c.mul(lost, c.num(-0.45)), quotient);
    let sign = c.int_and(c.bits(x), c.int(if c.wide() { 1 << 63 } else { 1 << 31 }));
    c.of_bits(c.int_or(c.bits(c.select(far, c.sub(one, quotient), near)), sign))
}
