//! `xʸ = 2^(y·log₂ x)`, the logarithm in two parts: what it loses is multiplied by up to 1075.
//!
//! With `x = 2ᵉ·(1 + f)` and `s = f / (2 + f)`: `log₂(1 + f) = 2 / (3 log 2) · s·(3 + s² + R)`, `R = s⁴·Σₖ 3 s²ᵏ / (2k + 5)`. First parts have so few
//! bits that their products are exact (a form known from fdlibm). f32 takes the function of the machine, in f64.

use super::exp::{HALVES, at_least, at_most, exp_terms, magic, scale};
use super::log::{Split, split};
use super::poly::polynomial;
use crate::scalar::Lanes;

/// `3 / (2k + 5)`
const SERIES: [f64; 11] =
    [3.0 / 5.0, 3.0 / 7.0, 3.0 / 9.0, 3.0 / 11.0, 3.0 / 13.0, 3.0 / 15.0, 3.0 / 17.0, 3.0 / 19.0, 3.0 / 21.0, 3.0 / 23.0, 3.0 / 25.0];
/// `2 / (3 log 2)`, and in two parts.
const SLOPE: f64 = 0.9617966939259756;
const SLOPE_PARTS: [f64; 2] = [0.9617967009544373, -7.028461650952758e-09];
/// log 2, and in two parts.
const LN2: f64 = std::f64::consts::LN_2;
const LN2_PARTS: [f64; 2] = [0.6931471824645996, -1.904654299957768e-09];
/// Powers of exponents beyond this are those of infinity: no number but 1 is so near to it.
const MOST: f64 = 1.8446744073709552e19;

/// A number in two parts, the first of at most 21 bits.
struct Parts<V> {
    high: V,
    low: V,
}

/// The first bits of a number.
#[inline(always)]
fn first<C: Lanes>(c: &C, x: C::V) -> C::V {
    c.of_bits(c.int_and(c.bits(x), c.int(u64::MAX << 32)))
}

/// `log₂ x` of a positive number.
#[inline(always)]
fn log2_of<C: Lanes>(c: &C, x: C::V) -> Parts<C::V> {
    let (two, three) = (c.num(2.0), c.num(3.0));
    let Split { e, f } = split(c, x);
    let t = c.add(two, f);
    let v = c.div(c.num(1.0), t);
    let s = c.mul(f, v);
    // s in two parts, t too, of which the first ones are multiplied exactly.
    let s_high = first(c, s);
    let t_high = first(c, t);
    let t_low = c.sub(f, c.sub(t_high, two));
    let left = c.sub(c.sub(f, c.mul(s_high, t_high)), c.mul(s_high, t_low));
    let s_low = c.mul(v, left);
    let z = c.mul(s, s);
    let rest = c.mul(c.mul(z, z), polynomial(c, z, &SERIES, &SERIES));
    let rest = c.add(rest, c.mul(s_low, c.add(s_high, s)));
    // 3 + s² + R
    let square = c.mul(s_high, s_high);
    let sum = first(c, c.add(c.add(three, square), rest));
    let sum_low = c.sub(rest, c.sub(c.sub(sum, three), square));
    let (u, w) = (c.mul(s_high, sum), c.add(c.mul(s_low, sum), c.mul(sum_low, s)));
    let p = first(c, c.add(u, w));
    let p_low = c.sub(w, c.sub(p, u));
    let z = c.mul(p, c.num(SLOPE_PARTS[0]));
    let z_low = c.add(c.mul(p, c.num(SLOPE_PARTS[1])), c.mul(p_low, c.num(SLOPE)));
    let high = first(c, c.add(c.add(z, z_low), e));
    Parts { high, low: c.sub(z_low, c.sub(c.sub(high, e), z)) }
}

/// `2^(y·l)`
#[inline(always)]
fn exp2_of_product<C: Lanes>(c: &C, y: C::V, l: &Parts<C::V>) -> C::V {
    let y_high = first(c, y);
    let low = c.add(c.mul(c.sub(y, y_high), l.high), c.mul(y, l.low));
    let high = c.mul(y_high, l.high);
    let sum = c.add(high, low);
    // What overflows, or is nothing.
    let far = c.lt(c.num(1100.0), c.abs(sum));
    let held = at_least(c, at_most(c, sum, c.num(1100.0)), c.num(-1100.0));
    let (high, low) = (c.select(far, held, high), c.select(far, c.num(0.0), low));
    let large = magic(c, HALVES);
    let shifted = c.add(held, large);
    let left = c.sub(high, c.sub(shifted, large));
    let t = first(c, c.add(left, low));
    let t_low = c.sub(low, c.sub(t, left));
    let u = c.mul(t, c.num(LN2_PARTS[0]));
    let v = c.add(c.mul(t_low, c.num(LN2)), c.mul(t, c.num(LN2_PARTS[1])));
    let r = c.add(u, v);
    let r_low = c.sub(v, c.sub(r, u));
    // 1 + r + (r_low + r_low·r + r²·q(r))
    let one = c.num(1.0);
    let rest = c.fma(c.mul(r, r), exp_terms(c, r), c.fma(r_low, r, r_low));
    let sum = c.add(one, r);
    let lost = c.sub(r, c.sub(sum, one));
    scale(c, c.add(sum, c.add(lost, rest)), shifted)
}

/// `xʸ`: as C's `pow` where an argument is 0, infinite, NaN or negative.
#[inline(always)]
pub fn pow<C: Lanes>(c: &C, x: C::V, y: C::V) -> C::V {
    if !c.wide() {
        return c.machine_pow(x, y);
    }
    let (zero, one, infinite) = (c.num(0.0), c.num(1.0), c.num(f64::INFINITY));
    let size = c.abs(x);
    let held = at_least(c, at_most(c, y, c.num(MOST)), c.num(-MOST));
    let value = exp2_of_product(c, held, &log2_of(c, size));
    let falls = c.lt(y, zero);
    let value = c.select(c.eq(size, zero), c.select(falls, infinite, zero), value);
    let value = c.select(c.eq(size, infinite), c.select(falls, zero, infinite), value);
    let value = c.select(c.eq(size, one), one, value);
    // Of a negative number: a sign where y is odd, no number where it is no integer.
    let (half, whole) = (c.mul(y, c.num(0.5)), c.eq(c.floor(y), y));
    let odd = c.and(whole, c.ne(c.floor(half), half));
    let negative = c.signbit(x);
    let value = c.select(c.and(negative, odd), c.neg(value), value);
    let number = c.and(c.lt(zero, size), c.lt(size, infinite));
    let value = c.select(c.and(c.and(negative, c.not(whole)), number), c.num(f64::NAN), value);
    let known = c.and(c.eq(x, x), c.eq(y, y));
    let value = c.select(known, value, c.add(x, y));
    let sure = c.not(c.and(c.ne(y, zero), c.ne(x, one)));
    c.select(sure, one, value)
}

#[cfg(test)]
mod tests {
    use crate::scalar::Lanes;
    use crate::scalar::host::{Host, Plain};

    /// As the evaluator does, and with `fma` rounded once or twice.
    fn ways(x: f64, y: f64) -> [f64; 3] {
        [Host::<f64>::CX.pow(x, y), Plain::<f64, true>::CX.pow(x, y), Plain::<f64, false>::CX.pow(x, y)]
    }

    /// Units in the last place between two numbers; 0 for two that are no numbers.
    fn units(a: f64, b: f64) -> u64 {
        if a.is_nan() || b.is_nan() {
            return if a.is_nan() && b.is_nan() { 0 } else { u64::MAX };
        }
        let key = |x: f64| if x.is_sign_negative() { -(x.abs().to_bits() as i64) } else { x.to_bits() as i64 };
        key(a).abs_diff(key(b)) + u64::from(a.is_sign_negative() != b.is_sign_negative())
    }

    #[test]
    fn powers_of_special_numbers_are_those_of_c() {
        let sizes =
            [0.0, 5e-324, f64::MIN_POSITIVE, 0.5, 1.0f64.next_down(), 1.0, 1.0f64.next_up(), 1.5, 2.0, 3.0, 1e15, 9007199254740993.0];
        let sizes = sizes.iter().chain(&[1e19, 1e300, f64::MAX, f64::INFINITY, f64::NAN]);
        let all: Vec<f64> = sizes.flat_map(|&x| [x, -x]).collect();
        for (x, y) in all.iter().flat_map(|&x| all.iter().map(move |&y| (x, y))) {
            for got in ways(x, y) {
                assert!(units(got, x.powf(y)) <= 1, "{x:e} ** {y:e}: {got:e}, not {:e}", x.powf(y));
            }
        }
    }

    #[test]
    fn powers_of_small_integers_are_exact() {
        for (x, y) in (1..=40u64).flat_map(|x| (0..=60u32).map(move |y| (x, y))) {
            if let Some(exact) = x.checked_pow(y).filter(|p| *p < 1 << 53) {
                assert_eq!(ways(x as f64, f64::from(y)), [exact as f64; 3], "{x} ** {y}");
            }
        }
    }

    #[test]
    fn powers_are_within_a_unit_of_those_of_c() {
        let mut state = 88172645463325252u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let mut most = 0;
        for k in 0..300_000 {
            let unit = |bits: u64| (bits >> 11) as f64 / (1u64 << 53) as f64;
            let (a, b) = (next(), next());
            let x = match k % 4 {
                0 => f64::from_bits(a & !(1 << 63)),
                1 => 1.0 + (unit(a) - 0.5) * (-(unit(next()) * 50.0)).exp2(),
                _ => unit(a) * 8.0,
            };
            let largest = if x > 0.0 && x.is_finite() { 1080.0 / x.log2().abs() } else { 10.0 };
            let y = match k % 3 {
                0 => (unit(b) - 0.5) * 8.0,
                1 => (2.0 * unit(b) - 1.0) * largest,
                _ => (unit(b) * 20.0).floor() * 0.5,
            };
            for got in ways(x, y) {
                most = most.max(units(got, x.powf(y)));
                assert!(units(got, x.powf(y)) <= 1, "{x:e} ** {y:e}: {got:e}, not {:e}", x.powf(y));
            }
        }
        assert_eq!(most, 1, "both are rounded in some way of their own");
    }
}
