//! The same bits at one place and at many; values beside mpmath's.

use super::*;
use crate::scalar::ElemOp;
use crate::scalar::lanes::fused;

type One = fn(f64, f64) -> f64;

/// Name and arity, and the value at one place.
const FUNCTIONS: [(&str, usize, One); 16] = [
    ("pow", 2, pow::one),
    ("hypot", 2, hypot::one),
    ("atan2", 2, atan2::one),
    ("fmod", 2, fmod::one),
    ("asin", 1, |x, _| asin::one(x)),
    ("acos", 1, |x, _| acos::one(x)),
    ("atan", 1, |x, _| atan::one(x)),
    ("sinh", 1, |x, _| sinh::one(x)),
    ("cosh", 1, |x, _| cosh::one(x)),
    ("erf", 1, |x, _| erf::one(x)),
    ("erfc", 1, |x, _| erfc::one(x)),
    ("erfinv", 1, |x, _| erfinv::one(x)),
    ("ndtri", 1, |x, _| ndtri::one(x)),
    ("gammaln", 1, |x, _| gammaln::one(x)),
    ("digamma", 1, |x, _| digamma::one(x)),
    ("trigamma", 1, |x, _| trigamma::one(x)),
];

fn function(name: &str) -> (usize, One) {
    FUNCTIONS.iter().find(|f| f.0 == name).map(|f| (f.1, f.2)).expect("a function")
}

/// mpmath's values are rounded, which half a unit allows for.
#[test]
fn values_are_those_of_mpmath() {
    let mut seen = 0;
    for line in include_str!("values.txt").lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let numbers: Vec<f64> = words[1..].iter().map(|w| w.parse().expect("a number")).collect();
        let (arity, f) = function(words[0]);
        let (got, expected) = (f(numbers[0], numbers[1]), numbers[arity]);
        let op = ElemOp::parse(words[0]).expect("a row");
        let size = expected.abs().max(f64::MIN_POSITIVE).min(f64::MAX.next_down());
        let ulps = (got - expected).abs() / (size.next_up() - size);
        // A product that was rounded has its rest exactly on both kinds of processors, the last sum of some functions has not.
        let more = if fused() { 0.5 } else { 0.75 };
        assert!(ulps <= op.row().ulp + more, "{line}: {got:?}, {ulps:.2} ulps");
        // What docs/accuracy.md says.
        let most = match words[0] {
            "gammaln" => 4.0,
            "trigamma" => 5.0,
            "digamma" => 3.0,
            "erfinv" | "ndtri" => 6.0,
            _ => 1.0,
        };
        assert!(ulps <= most || !fused(), "{line}: {got:?}, {ulps} units from the nearest f64");
        seen += 1;
    }
    assert_eq!(seen, 15 * 200);
}

/// Any bits, and numbers of middling size.
fn random(state: &mut u64) -> f64 {
    let mut next = || {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *state
    };
    let bits = next();
    let unit = (next() >> 11) as f64 / (1u64 << 53) as f64;
    match bits % 8 {
        0 => f64::from_bits(next()),
        1 => [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1.0, -1.0, 5e-324][(bits >> 8) as usize % 8],
        2 => (unit * 60.0 - 30.0).round(),
        3 => unit * 2.0 - 1.0,
        4 => 1.0 + (unit - 0.5) * 1e-6,
        5 => -(unit * 40.0 - 20.0).exp2(),
        _ => (unit * 40.0 - 20.0).exp2(),
    }
}

/// A remainder is exact: there is one, which the machine's has, for any bits, and beside quotients that are whole.
#[test]
fn remainders_are_those_of_the_machine() {
    let mut state = 88172645463325252u64;
    for round in 0..200_000 {
        let (x, y) = (random(&mut state), random(&mut state));
        let whole = random(&mut state).round();
        let beside = [x, y * whole, (y * whole).next_up(), (y * whole).next_down(), y.next_down()][round % 5];
        let (got, expected) = (fmod::one(beside, y), beside % y);
        let same = got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan();
        assert!(same, "fmod({beside:?}, {y:?}): {got:?}, not {expected:?}");
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn many_lanes_have_the_bits_of_one() {
    use crate::kernel::HostFn;
    if !(fused() && is_x86_feature_detected!("avx2")) {
        return;
    }
    let mut state = 88172645463325252u64;
    let mut with_many = 0;
    for &f in HostFn::ALL {
        let Some(address) = f.many() else { continue };
        // SAFETY: the address is that of such a function, and the processor has been asked for what it needs.
        let many = unsafe { std::mem::transmute::<usize, Many>(address) };
        with_many += 1;
        for round in 0..3000 {
            let mut frame = [[0.0; LANES]; 3];
            frame[..2].iter_mut().flatten().for_each(|x| *x = random(&mut state));
            let lanes = if round % 2 == 0 { LANES } else { 4 };
            // SAFETY: as above.
            unsafe { many(&mut frame, lanes) };
            let [xs, ys, values] = frame;
            for ((x, y), got) in xs.into_iter().zip(ys).zip(values).take(lanes) {
                let expected = f.value(x, y);
                assert!(
                    got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan(),
                    "{f:?}({x:?}, {y:?}): {got:?}, not {expected:?}"
                );
            }
        }
    }
    assert_eq!(with_many, FUNCTIONS.len());
}
