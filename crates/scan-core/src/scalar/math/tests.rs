//! The elementary functions against references: f32 against f64, f64 against pairs of f64. The slow tests are run by
//! `make accept-ulp`, whose table stands in docs/accuracy.md.

use super::exact;
use crate::scalar::{ElemOp, Host, Outcome};
use std::sync::atomic::{AtomicU32, Ordering};

/// A function, where it is sampled in f64, and an f64 value for the sweep over f32.
struct Case {
    op: ElemOp,
    range: (f64, f64),
    wide: fn(f64) -> f64,
}

const CASES: &[Case] = &[
    Case { op: ElemOp::Exp, range: (-745.0, 709.7), wide: f64::exp },
    Case { op: ElemOp::Exp2, range: (-1074.0, 1023.9), wide: f64::exp2 },
    Case { op: ElemOp::Expm1, range: (-40.0, 709.7), wide: f64::exp_m1 },
    Case { op: ElemOp::Log, range: (0.0, 4.0), wide: f64::ln },
    Case { op: ElemOp::Log2, range: (0.0, 4.0), wide: f64::log2 },
    Case { op: ElemOp::Log10, range: (0.0, 4.0), wide: f64::log10 },
    Case { op: ElemOp::Log1p, range: (-1.0, 4.0), wide: f64::ln_1p },
    Case { op: ElemOp::Tanh, range: (-23.0, 23.0), wide: f64::tanh },
    Case {
        op: ElemOp::Sigmoid,
        range: (-745.0, 40.0),
        wide: |x| if x < 0.0 { x.exp() / (1.0 + x.exp()) } else { 1.0 / (1.0 + (-x).exp()) },
    },
    Case { op: ElemOp::Softplus, range: (-745.0, 40.0), wide: |x| x.max(0.0) + (-x.abs()).exp().ln_1p() },
    Case { op: ElemOp::Sin, range: (-1e6, 1e6), wide: f64::sin },
    Case { op: ElemOp::Cos, range: (-1e6, 1e6), wide: f64::cos },
];

impl Case {
    fn name(&self) -> &'static str {
        self.op.name()
    }
    fn f64(&self, x: f64) -> f64 {
        match self.op.record(&Host::<f64>::CX, &[x]) {
            Some(Outcome::Number(y)) => y,
            _ => panic!("{} gives no number", self.name()),
        }
    }
    fn f32(&self, x: f32) -> f32 {
        match self.op.record(&Host::<f32>::CX, &[x]) {
            Some(Outcome::Number(y)) => y,
            _ => panic!("{} gives no number", self.name()),
        }
    }
    /// True where the true value is a finite number that is not 0.
    fn is_inside(&self, x: f64) -> bool {
        let y = (self.wide)(x);
        x.is_finite() && y.is_finite() && y != 0.0 && x.abs() <= 1e300
    }
}

/// How far an f32 is from a wider number, in its units in the last place.
fn ulps_f32(got: f32, expected: f64) -> f64 {
    let rounded = expected as f32;
    if rounded.is_nan() || rounded.is_infinite() || got.is_nan() || got.is_infinite() || expected == 0.0 {
        return if got.to_bits() == rounded.to_bits() || (got.is_nan() && rounded.is_nan()) { 0.0 } else { f64::INFINITY };
    }
    let size = rounded.abs().max(f32::MIN_POSITIVE).min(f32::MAX.next_down());
    (got as f64 - expected).abs() / (size.next_up() - size) as f64
}

/// The greatest error over every `stride`-th f32, with its place.
fn sweep_f32(case: &Case, stride: usize) -> (f64, f32) {
    let parts = std::thread::available_parallelism().map_or(1, |n| n.get()) as u64 * 16;
    let next = AtomicU32::new(0);
    let part = |k: u64| {
        let (low, high) = (k << 32, (k + 1) << 32);
        ((low / parts)..(high / parts)).step_by(stride).fold((0.0, 0.0), |worst: (f64, f32), bits| {
            let x = f32::from_bits(bits as u32);
            let ulps = ulps_f32(case.f32(x), (case.wide)(x as f64));
            if ulps > worst.0 { (ulps, x) } else { worst }
        })
    };
    let work = || {
        let taken = std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed) as u64).filter(|&k| k < parts));
        taken.map(part).fold((0.0, 0.0), |a, b| if b.0 > a.0 { b } else { a })
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..parts / 16).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|t| t.join().expect("a sweep ends")).fold((0.0, 0.0), |a, b| if b.0 > a.0 { b } else { a })
    })
}

/// Random inputs: over the range of the function, near 0, near 1, and any bits.
fn inputs(case: &Case, count: usize) -> impl Iterator<Item = f64> {
    let (low, high) = case.range;
    let mut state = 88172645463325252u64;
    (0..count).map(move |i| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let unit = (state >> 11) as f64 / (1u64 << 53) as f64;
        let sign = if state & 1 == 0 { 1.0 } else { -1.0 };
        match i % 4 {
            0 => f64::from_bits(state),
            1 => low + (high - low) * unit,
            2 => sign * (unit * 60.0 - 57.0).exp2(),
            _ => 1.0 + sign * (unit * 50.0 - 50.0).exp2(),
        }
    })
}

/// The greatest error at random f64, with its place.
fn sample_f64(case: &Case, count: usize) -> (f64, f64) {
    let (low, high) = case.range;
    let inside = inputs(case, count).filter(|&x| case.is_inside(x) && (low >= 0.0 || x >= low) && (high <= 4.0 || x <= high));
    inside.fold((0.0, 0.0), |worst, x| {
        let ulps = exact::value(case.name(), x).expect("written").ulps(case.f64(x));
        if ulps > worst.0 || ulps.is_nan() { (ulps, x) } else { worst }
    })
}

/// What the row promises; without `fma` the last sum of some functions is rounded once more.
fn bound(case: &Case) -> f64 {
    case.op.row().ulp + if crate::scalar::lanes::fused() { 0.0 } else { 0.25 }
}

#[test]
fn errors_are_within_their_bounds() {
    for case in CASES {
        let (f32s, f64s) = (sweep_f32(case, 20011), sample_f64(case, 20_000));
        println!("{}: {f32s:?} {f64s:?}", case.name());
        assert!(f32s.0 <= bound(case), "{} in f32: {f32s:?}", case.name());
        assert!(f64s.0 <= bound(case), "{} in f64: {f64s:?}", case.name());
    }
}

#[test]
#[ignore = "slow: make accept-ulp"]
fn errors_over_all_f32_and_many_f64_are_within_their_bounds() {
    let wanted = std::env::var("RSCAN_ULP_OF").unwrap_or_default();
    println!("| function | bound | f32, all values | at | f64, 1 million values | at |\n|---|---|---|---|---|---|");
    for case in CASES.iter().filter(|c| wanted.is_empty() || wanted.split(',').any(|name| name == c.name())) {
        let (narrow, wide) = (sweep_f32(case, 1), sample_f64(case, 1_000_000));
        println!("| `{}` | {:.1} | {:.3} | {:e} | {:.3} | {:e} |", case.name(), case.op.row().ulp, narrow.0, narrow.1, wide.0, wide.1);
        assert!(narrow.0 <= bound(case) && wide.0 <= bound(case), "{}", case.name());
    }
}

#[test]
fn special_values_are_right() {
    let (inf, nan, tiny) = (f64::INFINITY, f64::NAN, 5e-324);
    let rows: &[(&str, f64, f64)] = &[
        ("exp", 0.0, 1.0),
        ("exp", -0.0, 1.0),
        ("exp", 709.8, inf),
        ("exp", -746.0, 0.0),
        ("exp", -745.1, tiny),
        ("exp", inf, inf),
        ("exp", -inf, 0.0),
        ("exp", nan, nan),
        ("exp", 1e300, inf),
        ("exp", -1e300, 0.0),
        ("exp2", -1074.0, tiny),
        ("exp2", 1024.0, inf),
        ("exp2", 10.0, 1024.0),
        ("exp2", -inf, 0.0),
        ("expm1", -0.0, -0.0),
        ("expm1", tiny, tiny),
        ("expm1", -inf, -1.0),
        ("expm1", -1e300, -1.0),
        ("expm1", inf, inf),
        ("expm1", nan, nan),
        ("log", 0.0, -inf),
        ("log", -0.0, -inf),
        ("log", 1.0, 0.0),
        ("log", -1.0, nan),
        ("log", -inf, nan),
        ("log", inf, inf),
        ("log", nan, nan),
        ("log", tiny, -744.4400719213812),
        ("log2", tiny, -1074.0),
        ("log2", 8.0, 3.0),
        ("log2", inf, inf),
        ("log2", 0.0, -inf),
        ("log10", 1000.0, 3.0),
        ("log10", 1e15, 15.0),
        ("log10", -2.0, nan),
        ("log1p", -0.0, -0.0),
        ("log1p", tiny, tiny),
        ("log1p", -1.0, -inf),
        ("log1p", -1.5, nan),
        ("log1p", inf, inf),
        ("log1p", nan, nan),
        ("tanh", -0.0, -0.0),
        ("tanh", tiny, tiny),
        ("tanh", -inf, -1.0),
        ("tanh", 1e300, 1.0),
        ("tanh", nan, nan),
        ("sigmoid", -inf, 0.0),
        ("sigmoid", inf, 1.0),
        ("sigmoid", -745.1, tiny),
        ("sigmoid", nan, nan),
        ("softplus", -inf, 0.0),
        ("softplus", inf, inf),
        ("softplus", nan, nan),
        ("sin", -0.0, -0.0),
        ("sin", inf, nan),
        ("sin", 1e22, -0.8522008497671888),
        ("sin", std::f64::consts::PI, 1.2246467991473532e-16),
        ("cos", 0.0, 1.0),
        ("cos", -inf, nan),
        ("cos", 1e22, 0.523214785395139),
        ("cos", nan, nan),
    ];
    for &(name, x, expected) in rows {
        let case = CASES.iter().find(|c| c.name() == name).expect("a case");
        let (got, nans) = (case.f64(x), expected.is_nan());
        assert!(got.to_bits() == expected.to_bits() || (nans && got.is_nan()), "{name}({x:e}) = {got:e}, expected {expected:e}");
    }
}

#[test]
fn powers_have_exact_logarithms() {
    let log10 = |x: f64| CASES[5].f64(x);
    let log2 = |x: f64| CASES[4].f64(x);
    assert!((0..=22).all(|k| log10(10f64.powi(k)) == k as f64));
    assert!((-1074..=1023).all(|k| log2((k as f64).exp2()) == k as f64));
    assert!((-1074..=1023).all(|k| CASES[1].f64(k as f64) == (k as f64).exp2()));
}

/// Near multiples of π/2 nearly all digits of the argument cancel. Values from mpmath.
#[test]
#[allow(clippy::approx_constant)]
fn sines_near_their_zeros_keep_all_digits() {
    let points: &[(f64, f64)] = &[
        (3.141592653589793, 1.2246467991473532e-16),
        (6.283185307179586, -2.4492935982947064e-16),
        (9.42477796076938, 3.6739403974420594e-16),
        (15.707963267948966, 6.123233995736766e-16),
        (34.55751918948773, -2.2056021997384123e-15),
        (69.11503837897546, 4.411204399476825e-15),
        (138.2300767579509, 8.82240879895365e-15),
        (1115.2653920243765, 7.544938447893555e-14),
        (2230.530784048753, -1.508987689578711e-13),
        (162794.1897163695, 9.677388749158829e-14),
        (326703.64482476335, 1.5730407089601893e-11),
        (654522.5550415511, -1.1209987419644908e-11),
        (491170.7326291694, 1.0),
        (900386.7377041419, -4.134429284025425e-11),
        (942477.7960769379, -4.367430107543917e-11),
        (999997.2159715135, -3.895427017286711e-11),
    ];
    for &(x, sine) in points {
        let got = ElemOp::Sin.value(&[x]);
        assert!((got - sine).abs() <= (sine.abs().next_up() - sine.abs()), "sin({x:e}) = {got:e}, expected {sine:e}");
    }
}
