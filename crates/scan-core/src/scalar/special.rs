//! Special functions of one real variable that neither `std` nor `libm` has.

use std::f64::consts::PI;

/// Inverse of erf on [−1, 1]; ±∞ at ±1, NaN outside. A polynomial (Giles 2010, "Approximating the
/// erfinv function") mended by Halley steps on erf, or on erfc where |x| > 1/2.
pub fn erfinv(x: f64) -> f64 {
    let a = x.abs();
    if a.is_nan() || a > 1.0 {
        return f64::NAN;
    }
    if a == 1.0 || a < 1e-150 {
        return if a == 1.0 { f64::INFINITY.copysign(x) } else { x * (PI.sqrt() / 2.0) };
    }
    let (mut w, steps) = if 1.0 - a < END { (far_erfinv(1.0 - a), 4) } else { (giles(a), 2) };
    for _ in 0..steps {
        let miss = if a > 0.5 { (1.0 - a) - libm::erfc(w) } else { libm::erf(w) - a };
        let step = miss / (2.0 / PI.sqrt() * (-w * w).exp());
        w -= step / (1.0 + w * step);
    }
    w.copysign(x)
}

/// How near to 1 Giles's polynomial ends.
const END: f64 = 1e-9;

/// erfinv(1 - t) for small t, to two digits: `e^(-w²) = √π·w·t` with w = √(-log t) on its right side.
fn far_erfinv(t: f64) -> f64 {
    let log = -t.ln();
    (log - (PI * log).ln() / 2.0).sqrt()
}

/// The inverse hyperbolic cosine; NaN below 1, where `libm` has numbers.
pub fn acosh(x: f64) -> f64 {
    if x < 1.0 { f64::NAN } else { libm::acosh(x) }
}

/// erfinv to single precision, 0 <= x < 1.
fn giles(x: f64) -> f64 {
    const CENTRE: [f64; 9] = [
        2.81022636e-08,
        3.43273939e-07,
        -3.5233877e-06,
        -4.39150654e-06,
        0.00021858087,
        -0.00125372503,
        -0.00417768164,
        0.246640727,
        1.50140941,
    ];
    const TAIL: [f64; 9] = [
        -0.000200214257,
        0.000100950558,
        0.00134934322,
        -0.00367342844,
        0.00573950773,
        -0.0076224613,
        0.00943887047,
        1.00167406,
        2.83297682,
    ];
    let w = -(1.0 - x).ln() - x.ln_1p();
    let (t, p) = if w < 5.0 { (w - 2.5, CENTRE) } else { (w.sqrt() - 3.0, TAIL) };
    p.iter().skip(1).fold(p[0], |sum, k| sum * t + k) * x
}

/// Where the asymptotic series of the polygamma functions are used.
const FAR: f64 = 10.0;

/// `ψ(x)`: reflection below 0, recurrence up to 10, then the series of Abramowitz & Stegun 6.3.18.
/// ∓∞ at ±0, NaN at the negative integers.
pub fn digamma(x: f64) -> f64 {
    if x == 0.0 {
        return -(1.0 / x);
    }
    if x < 0.0 {
        let (sine, cosine) = sin_cos_pi(x);
        return if sine == 0.0 { f64::NAN } else { digamma(1.0 - x) - PI * cosine / sine };
    }
    if x == f64::INFINITY {
        return x;
    }
    let (mut x, mut below) = (x, 0.0);
    while x < FAR {
        below += 1.0 / x;
        x += 1.0;
    }
    const SERIES: [f64; 8] =
        [-1.0 / 12.0, 1.0 / 120.0, -1.0 / 252.0, 1.0 / 240.0, -1.0 / 132.0, 691.0 / 32760.0, -1.0 / 12.0, 3617.0 / 8160.0];
    x.ln() - 0.5 / x + even_series(&SERIES, x) - below
}

/// `ψ′(x)`: reflection below 0, recurrence up to 10, then Abramowitz & Stegun 6.4.12. ∞ at the poles.
pub fn trigamma(x: f64) -> f64 {
    if x <= 0.0 {
        let (sine, _) = sin_cos_pi(x);
        return if sine == 0.0 { f64::INFINITY } else { (PI / sine) * (PI / sine) - trigamma(1.0 - x) };
    }
    if x == f64::INFINITY {
        return 0.0;
    }
    let (mut x, mut below) = (x, 0.0);
    while x < FAR {
        below += 1.0 / (x * x);
        x += 1.0;
    }
    const SERIES: [f64; 8] = [1.0 / 6.0, -1.0 / 30.0, 1.0 / 42.0, -1.0 / 30.0, 5.0 / 66.0, -691.0 / 2730.0, 7.0 / 6.0, -3617.0 / 510.0];
    below + 1.0 / x + 0.5 / (x * x) + even_series(&SERIES, x) / x
}

/// `ψ″(x)`: reflection below 0, recurrence up to 10, then Abramowitz & Stegun 6.4.13. NaN at the poles.
pub fn tetragamma(x: f64) -> f64 {
    if x <= 0.0 {
        let (sine, cosine) = sin_cos_pi(x);
        return if sine == 0.0 { f64::NAN } else { tetragamma(1.0 - x) - 2.0 * PI.powi(3) * cosine / sine.powi(3) };
    }
    if x == f64::INFINITY {
        return -0.0;
    }
    let (mut x, mut below) = (x, 0.0);
    while x < FAR {
        below += 2.0 / (x * x * x);
        x += 1.0;
    }
    const SERIES: [f64; 8] = [-0.5, 1.0 / 6.0, -1.0 / 6.0, 0.3, -5.0 / 6.0, 691.0 / 210.0, -35.0 / 2.0, 3617.0 / 30.0];
    (even_series(&SERIES, x) - 1.0 - 1.0 / x) / (x * x) - below
}

/// Sine and cosine of πx up to a common sign, each exact to the last digits near its zeros.
fn sin_cos_pi(x: f64) -> (f64, f64) {
    let turn = x - x.round();
    if turn.abs() <= 0.25 {
        return (PI * turn).sin_cos();
    }
    let (cosine, sine) = (PI * (0.5 - turn.abs())).sin_cos();
    (sine.copysign(turn), cosine)
}

/// `Σ s[k] / x^(2k+2)`
fn even_series(s: &[f64], x: f64) -> f64 {
    let r = 1.0 / (x * x);
    s.iter().rev().fold(0.0, |sum, k| (sum + k) * r)
}
