//! Special functions of one real variable that neither `std` nor `libm` has.

use std::f64::consts::PI;

/// The inverse hyperbolic cosine; NaN below 1, where `libm` has numbers.
pub fn acosh(x: f64) -> f64 {
    if x < 1.0 { f64::NAN } else { libm::acosh(x) }
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
