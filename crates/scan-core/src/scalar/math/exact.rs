//! The elementary functions to about 100 bits, for tests: pairs of f64 whose sum is meant, with a power of two.

use std::f64::consts::{FRAC_PI_2, LN_2, LN_10};
use std::ops::{Add, Mul, Neg, Sub};

/// `(high + low)·2^power`
#[derive(Clone, Copy, Debug)]
pub struct Exact {
    pair: Pair,
    power: i32,
}

/// `high + low`, the second at most half a last place of the first.
#[derive(Clone, Copy, Debug)]
pub struct Pair(f64, f64);

fn two_sum(a: f64, b: f64) -> Pair {
    let s = a + b;
    let back = s - a;
    Pair(s, (a - (s - back)) + (b - back))
}

impl Add for Pair {
    type Output = Pair;
    fn add(self, o: Pair) -> Pair {
        let (s, t) = (two_sum(self.0, o.0), two_sum(self.1, o.1));
        let s = two_sum(s.0, s.1 + t.0);
        two_sum(s.0, s.1 + t.1)
    }
}

impl Neg for Pair {
    type Output = Pair;
    fn neg(self) -> Pair {
        Pair(-self.0, -self.1)
    }
}

impl Sub for Pair {
    type Output = Pair;
    fn sub(self, o: Pair) -> Pair {
        self + -o
    }
}

impl Mul for Pair {
    type Output = Pair;
    fn mul(self, o: Pair) -> Pair {
        let p = self.0 * o.0;
        let rest = self.0.mul_add(o.0, -p) + (self.0 * o.1 + self.1 * o.0);
        two_sum(p, rest)
    }
}

impl Pair {
    fn of(x: f64) -> Pair {
        Pair(x, 0.0)
    }
    fn times(self, x: f64) -> Pair {
        self * Pair::of(x)
    }
    fn over(self, o: Pair) -> Pair {
        let q = self.0 / o.0;
        let rest = self - o.times(q);
        let q2 = rest.0 / o.0;
        two_sum(q, q2) + Pair::of((rest - o.times(q2)).0 / o.0)
    }
    /// Times 2ⁿ, without overflow on the way.
    fn scaled(self, n: i32) -> Pair {
        Pair(scaled(self.0, n), scaled(self.1, n))
    }
}

/// `x·2ⁿ`
fn scaled(x: f64, n: i32) -> f64 {
    let part = |n: i32| f64::from_bits(((1023 + n) as u64) << 52);
    let (third, rest) = (n / 3, n - 2 * (n / 3));
    x * part(third) * part(third) * part(rest)
}

const LN2: [f64; 3] = [LN_2, 2.3190468138462996e-17, 5.707708438416212e-34];
const LN10: Pair = Pair(LN_10, -2.1707562233822494e-16);
const HALF_PI: [f64; 3] = [FRAC_PI_2, 6.123233995736766e-17, -1.4973849048591833e-33];

/// `(eʳ − 1, n)` with `x = n·log 2 + r`.
fn reduced_expm1(x: Pair) -> (Pair, i32) {
    let n = (x.0 / LN2[0]).round();
    let r = LN2.iter().fold(x, |r, &part| r - Pair::of(part).times(n));
    let r = r.times(1.0 / 256.0);
    let mut s = Pair::of(0.0);
    for k in (1..=11).rev() {
        s = (s + Pair::of(1.0)) * r.over(Pair::of(k as f64));
    }
    for _ in 0..8 {
        s = s + s + s * s;
    }
    (s, n as i32)
}

fn exp_of(x: Pair) -> Exact {
    let (s, power) = reduced_expm1(x);
    Exact { pair: Pair::of(1.0) + s, power }
}

fn expm1_of(x: Pair) -> Exact {
    let (s, n) = reduced_expm1(x);
    match n {
        0 => Exact { pair: s, power: 0 },
        120.. => Exact { pair: Pair::of(1.0) + s, power: n },
        _ => Exact { pair: s + Pair::of(1.0) - Pair::of(scaled(1.0, (-n).min(1000))), power: n },
    }
}

/// `log(1 + x)`, from the machine's by one Newton step.
fn log1p_of(x: Pair) -> Pair {
    let y = x.0.ln_1p();
    let e = expm1_of(Pair::of(-y));
    let e = e.pair.scaled(e.power);
    let t = x + e + x * e;
    Pair::of(y) + t - (t * t).times(0.5) + (t * t * t).times(1.0 / 3.0)
}

fn ln2() -> Pair {
    Pair(LN2[0], LN2[1])
}

fn log_of(x: f64) -> Pair {
    if (0.5..=2.0).contains(&x) {
        return log1p_of(Pair::of(x - 1.0));
    }
    let scaling = if x < f64::MIN_POSITIVE { 54 } else { 0 };
    let x = scaled(x, scaling);
    let e = ((x.to_bits() >> 52) as i32) - 1023;
    ln2().times((e - scaling) as f64) + log1p_of(Pair::of(scaled(x, -e) - 1.0))
}

fn plain(pair: Pair) -> Exact {
    Exact { pair, power: 0 }
}

/// Sine, or with `turns` = 1 cosine.
fn sine(x: f64, turns: i64) -> Pair {
    let n = (x / HALF_PI[0]).round();
    let r = HALF_PI.iter().fold(Pair::of(x), |r, &part| r - Pair::of(part).times(n));
    let quadrant = (n as i64 + turns).rem_euclid(4);
    let (r2, odd) = (r * r, quadrant % 2 == 1);
    let mut s = Pair::of(0.0);
    for k in (1..=14).rev() {
        let k = 2.0 * k as f64 + if odd { -1.0 } else { 0.0 };
        s = (Pair::of(1.0) + s) * -r2.over(Pair::of(k * (k + 1.0)));
    }
    let value = if odd { Pair::of(1.0) + s } else { r + r * s };
    if quadrant >= 2 { -value } else { value }
}

/// The value of a row; `None` for rows that are not written here.
pub fn value(name: &str, x: f64) -> Option<Exact> {
    let one = Pair::of(1.0);
    let exp_of_size = || exp_of(Pair::of(-x.abs()));
    let small = || exp_of_size().pair.scaled(exp_of_size().power);
    if x.abs() < 1e-250 && matches!(name, "expm1" | "log1p" | "tanh" | "sin") {
        return Some(plain(Pair::of(x)));
    }
    Some(match name {
        "exp" => exp_of(Pair::of(x)),
        "exp2" => {
            let whole = x.round();
            let e = exp_of(ln2().times(x - whole));
            Exact { power: e.power + whole as i32, ..e }
        }
        "expm1" => expm1_of(Pair::of(x)),
        "log" => plain(log_of(x)),
        "log2" => plain(log_of(x).over(ln2())),
        "log10" => plain(log_of(x).over(LN10)),
        "log1p" if x.abs() < 0.5 => plain(log1p_of(Pair::of(x))),
        "log1p" => {
            let u = two_sum(1.0, x);
            plain(log_of(u.0) + log1p_of(Pair::of(u.1 / u.0)))
        }
        "tanh" if x.abs() > 40.0 => plain(Pair::of(x.signum())),
        "tanh" => {
            let t = expm1_of(Pair::of(2.0 * x));
            let t = t.pair.scaled(t.power);
            plain(t.over(t + Pair::of(2.0)))
        }
        "sigmoid" if x < -100.0 => exp_of_size(),
        "sigmoid" => plain((if x < 0.0 { small() } else { one }).over(one + small())),
        "log1p_exp" if x.abs() > 100.0 => exp_of_size(),
        "log1p_exp" => plain(log1p_of(small())),
        "softplus" if x < -100.0 => exp_of_size(),
        "softplus" => plain(Pair::of(x.max(0.0)) + log1p_of(small())),
        "sin" => plain(sine(x, 0)),
        "cos" => plain(sine(x, 1)),
        _ => return None,
    })
}

impl Exact {
    /// The nearest f64, but for a last rounding below the smallest normal number.
    pub fn rounded(self) -> f64 {
        scaled(self.pair.0, self.power)
    }
    /// How far a number is from it, in units in the last place of f64.
    pub fn ulps(self, got: f64) -> f64 {
        let expected = self.rounded();
        if !expected.is_finite() || !got.is_finite() {
            return if got == expected { 0.0 } else { f64::INFINITY };
        }
        let size = expected.abs().max(f64::MIN_POSITIVE).min(f64::MAX.next_down());
        let unit = scaled(size.next_up() - size, -self.power);
        ((scaled(got, -self.power) - self.pair.0) - self.pair.1).abs() / unit
    }
}
