//! Every row: values against high-precision references, gradients against differences, integers
//! against wide arithmetic.

use super::reference::{REFERENCE, SWEPT};
use super::{ElemOp, ROWS, Row, Rule};
use crate::ir::Op;
use crate::ops::testing::{apply, check_vjp, check_vjp2};
use crate::types::{Array, DType};

/// Distance of two numbers in units in the last place of the second, in f64.
fn ulps(got: f64, expected: f64) -> f64 {
    if got == expected || (got.is_nan() && expected.is_nan()) {
        return 0.0;
    }
    let size = expected.abs().max(f64::MIN_POSITIVE);
    (got - expected).abs() / (size.next_up() - size)
}

/// As [`ulps`], where the result was rounded to f32; the half ulp of that rounding is part of the distance.
fn ulps_f32(got: f64, expected: f64) -> f64 {
    let size = (expected.abs() as f32).max(f32::MIN_POSITIVE);
    if got == expected { 0.0 } else { (got - expected).abs() / (size.next_up() - size) as f64 }
}

fn takes_floats(row: &Row) -> bool {
    matches!(row.rule, Rule::Same | Rule::Float | Rule::Bool | Rule::Where)
}

fn gives_floats(row: &Row) -> bool {
    matches!(row.rule, Rule::Same | Rule::Float | Rule::Where)
}

/// The value of a row on scalars of a dtype, as f64.
fn value(row: &Row, dtype: DType, x: &[f64]) -> f64 {
    let ins: Vec<Array> = x.iter().map(|&x| Array::full(dtype, &[], x)).collect();
    apply(Op::Elem(row.op), &ins).item_f64().expect("one element")
}

#[test]
fn the_catalogue_is_consistent() {
    for (i, row) in ROWS.iter().enumerate() {
        assert_eq!((row.op as usize, ElemOp::ALL[i], ElemOp::parse(row.name)), (i, row.op, Some(row.op)), "{}", row.name);
        assert!(row.tests.iter().all(|p| p.len() == row.op.arity()), "{}", row.name);
        assert!(row.op.doc().lines().next().is_some_and(|l| l.len() > 4), "{}", row.name);
        assert!(!row.domain.is_empty() && !row.rule.doc().is_empty());
    }
    assert_eq!(ElemOp::parse("r#where"), None);
    assert_eq!((ElemOp::Mod.name(), ElemOp::Where.name()), ("mod", "where"));
}

#[test]
fn values_agree_with_references() {
    for row in ROWS {
        for &point in row.tests {
            let found = REFERENCE.iter().find(|r| r.0 == row.name && r.1 == point);
            let expected = found.unwrap_or_else(|| panic!("no reference for {}{point:?}: run reference.py", row.name)).2;
            if !takes_floats(row) {
                assert_eq!(value(row, DType::I64, point), expected, "{}{point:?}", row.name);
                continue;
            }
            let wide = value(row, DType::F64, point);
            assert!(ulps(wide, expected) <= row.ulp, "{}{point:?} = {wide:e}, expected {expected:e}", row.name);
            assert_eq!(row.op.value(point).to_bits(), wide.to_bits(), "{}{point:?}", row.name);
            assert!(point.iter().all(|&x| x as f32 as f64 == x), "{}{point:?} is not exact in f32", row.name);
            let narrow = value(row, DType::F32, point);
            assert!(ulps_f32(narrow, expected) <= row.ulp.max(0.5), "{}{point:?} = {narrow:e} in f32, expected {expected:e}", row.name);
        }
    }
}

#[test]
fn values_agree_over_their_ranges() {
    let mut misses = vec![];
    for &(name, x, expected) in SWEPT {
        let row = ElemOp::parse(name).expect("a row").row();
        let got = row.op.value(&[x]);
        // Near its zeros a function that sums larger terms has an absolute error only.
        let scale = if expected.abs() < 1.0 && name.contains("gamma") { expected.abs() } else { 1.0 };
        if ulps(got, expected) * scale > row.ulp {
            misses.push(format!("{name}({x}) = {got:e}, expected {expected:e}: {} ulp", ulps(got, expected)));
        }
    }
    assert!(misses.is_empty(), "{misses:#?}");
}

#[test]
fn gradients_agree_with_differences() {
    for row in ROWS.iter().filter(|r| gives_floats(r) && !r.op.lacks_derivative()) {
        for &point in row.tests {
            println!("{}{point:?}", row.name);
            // Two elements, so that the cotangents are arrays; one point at a time, so that differences are exact enough.
            let ins: Vec<Array> = point.iter().map(|&x| Array::vector(&[x, x])).collect();
            check_vjp(|g, v| g.emit(Op::Elem(row.op), v), &ins);
            if row.op != ElemOp::Trigamma {
                check_vjp2(|g, v| g.emit(Op::Elem(row.op), v), &ins);
            }
        }
    }
}

#[test]
fn cotangents_on_numbers_agree_with_differences() {
    for row in ROWS.iter().filter(|r| gives_floats(r) && !r.op.lacks_derivative()) {
        for &point in row.tests {
            for i in 0..row.arity() {
                let h = 1e-6 * point[i].abs().max(1.0);
                let at =
                    |by: f64| row.op.value(&point.iter().enumerate().map(|(k, &x)| if k == i { x + by } else { x }).collect::<Vec<_>>());
                let expected = 3.0 * (at(h) - at(-h)) / (2.0 * h);
                let got = row.op.cotangent(i, point, at(0.0), 3.0).unwrap_or(0.0);
                assert!(
                    (got - expected).abs() <= 1e-6 * expected.abs().max(1.0),
                    "{}{point:?} by input {i}: {got}, differences {expected}",
                    row.name
                );
            }
        }
    }
}

/// What integer rows compute, in wide arithmetic; the caller wraps.
fn wide(op: ElemOp, x: i128, y: i128, bits: u32) -> Option<i128> {
    let exact_power = |n: i128| (0..n).fold(1i128, |p, _| p.wrapping_mul(x));
    Some(match op {
        ElemOp::Add => x + y,
        ElemOp::Sub => x - y,
        ElemOp::Mul => x.wrapping_mul(y),
        ElemOp::FloorDiv if y == 0 => 0,
        ElemOp::FloorDiv => x.div_euclid(y) - if y < 0 && x.rem_euclid(y) != 0 { 1 } else { 0 },
        ElemOp::Mod | ElemOp::Fmod if y == 0 => 0,
        ElemOp::Mod => ((x % y) + y) % y,
        ElemOp::Fmod => x % y,
        ElemOp::Pow if y < 0 => [0, 1, if y % 2 == 0 { 1 } else { -1 }][if x == 1 {
            1
        } else if x == -1 {
            2
        } else {
            0
        }],
        ElemOp::Pow if y < 300 => exact_power(y),
        ElemOp::Minimum => x.min(y),
        ElemOp::Maximum => x.max(y),
        ElemOp::ShiftLeft => {
            if (0..bits as i128).contains(&y) {
                x << y
            } else {
                0
            }
        }
        ElemOp::ShiftRight => {
            if (0..bits as i128).contains(&y) {
                x >> y
            } else {
                -((x < 0) as i128)
            }
        }
        ElemOp::BitAnd => x & y,
        ElemOp::BitOr => x | y,
        ElemOp::BitXor => x ^ y,
        ElemOp::Eq => (x == y) as i128,
        ElemOp::Ne => (x != y) as i128,
        ElemOp::Lt => (x < y) as i128,
        ElemOp::Le => (x <= y) as i128,
        ElemOp::Gt => (x > y) as i128,
        ElemOp::Ge => (x >= y) as i128,
        _ => return None,
    })
}

/// As [`wide`], for one operand.
fn wide1(op: ElemOp, x: i128) -> Option<i128> {
    Some(match op {
        ElemOp::Neg => -x,
        ElemOp::Abs => x.abs(),
        ElemOp::Sign => x.signum(),
        ElemOp::Square => x.wrapping_mul(x),
        ElemOp::Invert => !x,
        ElemOp::Floor | ElemOp::Ceil | ElemOp::Trunc | ElemOp::Round => x,
        ElemOp::Relu => x.max(0),
        ElemOp::SignBit => (x < 0) as i128,
        ElemOp::IsNan | ElemOp::IsInf => 0,
        ElemOp::IsFinite => 1,
        _ => return None,
    })
}

macro_rules! int_test {
    ($($name:ident $t:ident),+) => {$(
        #[test]
        fn $name() {
            let mut xs: Vec<$t> = vec![$t::MIN, $t::MIN + 1, $t::MAX, $t::MAX - 1, 0, 1, 2, 3, 7, 8, 31, 63, 64, 100, (0 as $t).wrapping_sub(1), (0 as $t).wrapping_sub(2), (0 as $t).wrapping_sub(7)];
            if $t::BITS == 8 {
                xs = ($t::MIN..=$t::MAX).collect();
            }
            let (a, b): (Vec<$t>, Vec<$t>) = xs.iter().flat_map(|&x| xs.iter().map(move |&y| (x, y))).unzip();
            let (left, right) = (Array::vector(&a), Array::vector(&b));
            for row in ROWS.iter().filter(|r| r.arity() == 2) {
                let out = apply(Op::Elem(row.op), &[left.clone(), right.clone()]);
                for (k, got) in wide_elements(&out).into_iter().enumerate() {
                    let Some(expected) = wide(row.op, a[k] as i128, b[k] as i128, $t::BITS) else { continue };
                    let expected = if out.dtype() == DType::Bool { expected } else { expected as $t as i128 };
                    assert_eq!(got, expected, "{}({}, {})", row.name, a[k], b[k]);
                }
            }
            for row in ROWS.iter().filter(|r| r.arity() == 1) {
                let out = apply(Op::Elem(row.op), &[Array::vector(&xs)]);
                for (&x, got) in xs.iter().zip(wide_elements(&out)) {
                    let Some(expected) = wide1(row.op, x as i128) else { continue };
                    let expected = if out.dtype() == DType::Bool { expected } else { expected as $t as i128 };
                    assert_eq!(got, expected, "{}({x})", row.name);
                }
            }
            let clipped = apply(Op::Elem(ElemOp::Clip), &[Array::vector(&xs), Array::scalar(2 as $t), Array::scalar(8 as $t)]);
            assert!(clipped.as_slice::<$t>().iter().all(|x| (2..=8).contains(x)));
        }
    )+};
}

int_test!(i8_rows i8, i16_rows i16, i32_rows i32, i64_rows i64, u8_rows u8, u16_rows u16, u32_rows u32, u64_rows u64);

fn wide_elements(x: &Array) -> Vec<i128> {
    if x.dtype() == DType::U64 {
        x.as_slice::<u64>().iter().map(|&x| x as i128).collect()
    } else {
        x.to_i64_vec().into_iter().map(i128::from).collect()
    }
}
