//! Logarithms.
//!
//! `x = 2ᵉ·(1 + f)` with 1 + f in [√½, √2), and with `s = f / (2 + f)`, `h = f² / 2`:
//! `log(1 + f) = 2·atanh(s) = f − (h − s·(h + R))`, `R = s²·P(s²)`, a form in which only small terms are rounded before the last sum
//! (known from fdlibm). Constants: `coefficients.py`.

use super::exp::{LN2, LN2_F32, fraction};
use super::poly::{pick, polynomial};
use crate::scalar::Lanes;

/// `(2·atanh(s) − 2s) / s³` as a function of s², for |s| <= 0.1716.
const LOG: [f64; 7] = [
    0.6666666666666735,
    0.3999999999941311,
    0.28571428742769706,
    0.22222198530809306,
    0.18183566684035027,
    0.15313986433517987,
    0.14796627592716943,
];
const LOG_F32: [f64; 3] = [0.6666677594184875, 0.3997752070426941, 0.2987231910228729];

/// The same for |s| <= 0.2.
const LOG_UNIT: [f64; 7] = [
    0.6666666666667272,
    0.3999999999615565,
    0.2857142939636702,
    0.22222138413787432,
    0.18186359659694815,
    0.15250116780548967,
    0.15368749398762288,
];
const LOG_UNIT_F32: [f64; 3] = [0.666669487953186, 0.3995780348777771, 0.3036104142665863];

/// `1 / log 2` and `1 / log 10` in two parts, the first of 21 bits (12 in f32).
const LOG2E: [f64; 2] = [1.4426946640014648, 3.768874985636099e-07];
const LOG2E_F32: [f64; 2] = [1.4423828125, 0.00031222839606925845];
const LOG10E: [f64; 2] = [0.4342944622039795, 1.9699272335463627e-08];
const LOG10E_F32: [f64; 2] = [0.4342041015625, 9.038033749675378e-05];
/// log₁₀ 2 in two parts.
const LOG10_2: [f64; 2] = [0.3010299955494702, 1.1451100898021838e-10];
const LOG10_2_F32: [f64; 2] = [0.301025390625, 4.605039066518657e-06];

/// `x = 2ᵉ·(1 + f)`
struct Split<V> {
    e: V,
    f: V,
}

/// The split of a positive number; of others nothing that means something.
#[inline(always)]
fn split<C: Lanes>(c: &C, x: C::V) -> Split<C::V> {
    let tiny = c.lt(x, pick(c, f64::MIN_POSITIVE, f32::MIN_POSITIVE as f64));
    let x = c.select(tiny, c.mul(x, pick(c, TWO_54, TWO_24)), x);
    // The bits of 1 less those of √½, and the latter.
    let (gap, root) = if c.wide() { (0x0009_5f61_9980_c433, 0x3fe6_a09e_667f_3bcd) } else { (0x004a_fb0d, 0x3f35_04f3) };
    let (mask, large) = if c.wide() { ((1 << 52) - 1, 0x4330 << 48) } else { ((1 << 23) - 1, 0x4b00 << 16) };
    let turned = c.int_add(c.bits(x), c.int(gap));
    // The exponent with its bias, put into the low bits of a large number.
    let exponent = c.of_bits(c.int_or(c.int_shr(turned, fraction(c)), c.int(large)));
    let bias = c.select(tiny, pick(c, TWO_52 + 1023.0 + 54.0, TWO_23 + 127.0 + 24.0), pick(c, TWO_52 + 1023.0, TWO_23 + 127.0));
    let m = c.of_bits(c.int_add(c.int_and(turned, c.int(mask)), c.int(root)));
    Split { e: c.sub(exponent, bias), f: c.sub(m, c.num(1.0)) }
}

const TWO_23: f64 = 8388608.0;
const TWO_24: f64 = 16777216.0;
const TWO_52: f64 = 4503599627370496.0;
const TWO_54: f64 = 18014398509481984.0;

/// What remains of `log(1 + f) = f − (h − rest)`.
struct Terms<V> {
    h: V,
    rest: V,
}

#[inline(always)]
fn terms<C: Lanes>(c: &C, f: C::V, wide: &[f64], narrow: &[f64]) -> Terms<C::V> {
    let s = c.div(f, c.add(c.num(2.0), f));
    let z = c.mul(s, s);
    let h = c.mul(c.mul(c.num(0.5), f), f);
    let sum = c.fma(z, polynomial(c, z, wide, narrow), h);
    Terms { h, rest: c.mul(s, sum) }
}

/// The value y of a logarithm at x where its argument is positive, with those elsewhere: −∞ at 0, NaN below, ∞ at ∞.
#[inline(always)]
fn ends<C: Lanes>(c: &C, x: C::V, argument: C::V, y: C::V) -> C::V {
    let zero = c.num(0.0);
    let finite = c.select(c.lt(x, c.num(f64::INFINITY)), y, x);
    let outside = c.select(c.eq(argument, zero), c.num(f64::NEG_INFINITY), c.num(f64::NAN));
    c.select(c.lt(zero, argument), finite, outside)
}

/// Natural logarithm.
#[inline(always)]
pub fn log<C: Lanes>(c: &C, x: C::V) -> C::V {
    let Split { e, f } = split(c, x);
    ends(c, x, x, log_of_split(c, e, f, c.mul(e, pick(c, LN2[1], LN2_F32[1]))))
}

/// `log(2ᵉ·(1 + f)) + (correction − e·small part of log 2)`
#[inline(always)]
fn log_of_split<C: Lanes>(c: &C, e: C::V, f: C::V, correction: C::V) -> C::V {
    let Terms { h, rest } = terms(c, f, &LOG, &LOG_F32);
    let low = c.sub(c.add(rest, correction), h);
    c.fma(e, pick(c, LN2[0], LN2_F32[0]), c.add(f, low))
}

/// `log(1 + x)`: what `u = 1 + x` has lost is added, divided by u.
#[inline(always)]
pub fn log1p<C: Lanes>(c: &C, x: C::V) -> C::V {
    let one = c.num(1.0);
    let u = c.add(one, x);
    let back = c.sub(u, one);
    let lost = c.add(c.sub(one, c.sub(u, back)), c.sub(x, back));
    let Split { e, f } = split(c, u);
    let correction = c.fma(e, pick(c, LN2[1], LN2_F32[1]), c.div(lost, u));
    let y = ends(c, x, u, log_of_split(c, e, f, correction));
    c.select(c.lt(c.abs(x), pick(c, 1e-17, 1e-9)), x, y)
}

/// `log(1 + x)` for x in [0, 1].
#[inline(always)]
pub(super) fn log1p_of_unit<C: Lanes>(c: &C, x: C::V) -> C::V {
    let (zero, half) = (c.num(0.0), c.num(0.5));
    let far = c.lt(half, x);
    // Both choices are exact.
    let f = c.select(far, c.sub(c.mul(half, x), half), x);
    let [high, low] = [0, 1].map(|i| c.select(far, pick(c, LN2[i], LN2_F32[i]), zero));
    let Terms { h, rest } = terms(c, f, &LOG_UNIT, &LOG_UNIT_F32);
    c.add(high, c.add(f, c.sub(c.add(rest, low), h)))
}

/// Logarithm of base 2.
#[inline(always)]
pub fn log2<C: Lanes>(c: &C, x: C::V) -> C::V {
    let Split { e, f } = split(c, x);
    let (high, low) = products(c, f, [LOG2E, LOG2E_F32]);
    ends(c, x, x, sum(c, e, high, low))
}

/// Logarithm of base 10.
#[inline(always)]
pub fn log10<C: Lanes>(c: &C, x: C::V) -> C::V {
    let Split { e, f } = split(c, x);
    let (high, low) = products(c, f, [LOG10E, LOG10E_F32]);
    let low = c.fma(e, pick(c, LOG10_2[1], LOG10_2_F32[1]), low);
    ends(c, x, x, sum(c, c.mul(e, pick(c, LOG10_2[0], LOG10_2_F32[0])), high, low))
}

/// `log(1 + f)` times a factor, in two parts: the first has so few bits that its product is exact.
#[inline(always)]
fn products<C: Lanes>(c: &C, f: C::V, [wide, narrow]: [[f64; 2]; 2]) -> (C::V, C::V) {
    let Terms { h, rest } = terms(c, f, &LOG, &LOG_F32);
    let mask = if c.wide() { u64::MAX << 32 } else { u64::MAX << 12 };
    let high = c.of_bits(c.int_and(c.bits(c.sub(f, h)), c.int(mask)));
    let low = c.add(c.sub(c.sub(f, high), h), rest);
    let [large, small] = [0, 1].map(|i| pick(c, wide[i], narrow[i]));
    (c.mul(high, large), c.fma(c.add(low, high), small, c.mul(low, large)))
}

/// `x + (high + low)`, where x is 0 or larger than the rest.
#[inline(always)]
fn sum<C: Lanes>(c: &C, x: C::V, high: C::V, low: C::V) -> C::V {
    let all = c.add(x, high);
    c.add(all, c.add(low, c.add(c.sub(x, all), high)))
}
