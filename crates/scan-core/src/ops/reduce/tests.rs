use super::*;
use crate::ops::testing::*;
use ReduceKind::*;

fn reduce(kind: ReduceKind, axes: &[usize], keepdims: bool) -> Reduce {
    Reduce { kind, axes: axes.to_vec(), keepdims }
}

fn matrix() -> Array {
    Array::new(&[2, 3], vec![1.0, -2.0, 3.0, 4.0, 5.0, -6.0])
}

#[test]
fn values_are_numpys() {
    let x = matrix();
    assert_eq!(apply(reduce(Sum, &[1], false), &[x.clone()]), Array::vector(&[2.0, 3.0]));
    assert_eq!(apply(reduce(Prod, &[0], false), &[x.clone()]), Array::vector(&[4.0, -10.0, -18.0]));
    assert_eq!(apply(reduce(Max, &[0], true), &[x.clone()]), Array::new(&[1, 3], vec![4.0, 5.0, 3.0]));
    assert_eq!(apply(reduce(Min, &[0, 1], false), &[x.clone()]), Array::scalar(-6.0));
    assert_eq!(apply(reduce(Sum, &[], false), &[x.clone()]), x);
    let t = Array::new(&[2, 3, 4], (0..24).map(f64::from).collect());
    assert_eq!(apply(reduce(Sum, &[0, 2], false), &[t.clone()]), Array::vector(&[60.0, 92.0, 124.0]));
    assert_eq!(apply(reduce(Sum, &[0, 2], true), &[t]).shape(), [1, 3, 1]);
}

#[test]
fn small_ints_and_bools_widen() {
    assert_eq!(apply(reduce(Sum, &[0], false), &[Array::vector(&[200u8, 100])]), Array::scalar(300u64));
    assert_eq!(apply(reduce(Prod, &[0], false), &[Array::vector(&[100i8, 100])]), Array::scalar(10000i64));
    assert_eq!(apply(reduce(Sum, &[0], false), &[Array::vector(&[true, true])]), Array::scalar(2i64));
    assert_eq!(apply(reduce(Sum, &[0], false), &[Array::vector(&[i64::MAX, 1])]), Array::scalar(i64::MIN));
    assert_eq!(apply(reduce(Max, &[0], false), &[Array::vector(&[3u8, 250])]), Array::scalar(250u8));
    assert_eq!(apply(reduce(Max, &[0], false), &[Array::vector(&[false, true])]), Array::scalar(true));
    assert_eq!(apply(reduce(Any, &[0], false), &[Array::vector(&[0.0, f64::NAN])]), Array::scalar(true));
    assert_eq!(apply(reduce(All, &[0], false), &[Array::vector(&[1i32, 0])]), Array::scalar(false));
}

#[test]
fn empty_axes() {
    let x = Array::zeros(DType::F32, &[0, 3]);
    assert_eq!(apply(reduce(Sum, &[0], false), &[x.clone()]), Array::zeros(DType::F32, &[3]));
    assert_eq!(apply(reduce(Prod, &[0], true), &[x.clone()]), Array::full(DType::F32, &[1, 3], 1.0));
    assert_eq!(apply(reduce(All, &[0, 1], false), &[x.clone()]), Array::scalar(true));
    assert_eq!(apply(reduce(Max, &[1], false), &[x.clone()]).shape(), [0]);
    let argmax = |axis| ArgReduce { kind: Extreme::Max, axis };
    for e in [build_error(reduce(Max, &[0], false), &[x.clone()]), run_error(argmax(0), &[x.clone()]), build_error(argmax(0), &[x.clone()])]
    {
        assert_eq!(e.code, "E0203", "{}", e.title);
    }
    assert_eq!(run_error(reduce(Min, &[0], false), &[x]).title, "min over axes [0] of (0, 3): there are no elements");
}

#[test]
fn nan_wins_and_ties_go_to_the_first() {
    let x = Array::new(&[3, 3], vec![1.0, f64::NAN, 3.0, 7.0, 2.0, 7.0, -1.0, 5.0, -1.0]);
    let found = |kind, axis| apply(ArgReduce { kind, axis }, &[x.clone()]).to_i64_vec();
    assert_eq!(found(Extreme::Max, 1), [1, 0, 1]);
    assert_eq!(found(Extreme::Min, 1), [1, 1, 0]);
    assert_eq!(found(Extreme::Min, 0), [2, 0, 2]);
    assert!(apply(reduce(Max, &[1], false), &[x.clone()]).to_f64_vec()[0].is_nan());
    assert!(apply(reduce(Min, &[1], false), &[x]).to_f64_vec()[0].is_nan());
}

/// Elements of both zeros, NaNs of two signs, and others.
fn mixture(n: usize) -> Vec<f64> {
    let number = |i: usize| match i * 7919 % 23 {
        0 | 5 => -0.0,
        1 | 6 => 0.0,
        2 if i.is_multiple_of(31) => f64::NAN,
        3 if i.is_multiple_of(37) => -f64::NAN,
        k => -(k as f64 * 0.37).sin().abs(),
    };
    (0..n).map(number).collect()
}

#[test]
fn lanes_that_lie_side_by_side_have_the_bits_of_each_alone() {
    for n in [0, 1, 5, 8, 9, 256, 257, 700] {
        for m in [1, 2, 63, 64, 65, 130] {
            let x = mixture(2 * n * m);
            let lane = |o: usize, i: usize| (0..n).map(|k| x[(o * n + k) * m + i]).collect::<Vec<f64>>();
            let array = Array::new(&[2, n, m], x.clone());
            for kind in [Sum, Prod, Max, Min].into_iter().filter(|kind| n > 0 || matches!(kind, Sum | Prod)) {
                let found = apply(reduce(kind, &[1], false), std::slice::from_ref(&array)).to_f64_vec();
                for (at, found) in found.iter().enumerate() {
                    let alone = apply(reduce(kind, &[0], false), &[Array::vector(&lane(at / m, at % m))]).to_f64_vec()[0];
                    assert_eq!(found.to_bits(), alone.to_bits(), "{kind:?} of {n}, lane {at} of {m}");
                }
            }
        }
    }
}

#[test]
fn extremes_are_the_first_of_equal_ones() {
    for n in 1..300 {
        let x = &mixture(400)[n / 3..n / 3 + n];
        for (kind, of, beats) in
            [(Max, Extreme::Max, (|new, old| new > old) as fn(&f64, &f64) -> bool), (Min, Extreme::Min, |new, old| new < old)]
        {
            let better = |old: f64, new: f64| if beats(&new, &old) || (new.is_nan() && !old.is_nan()) { new } else { old };
            let first = x.iter().copied().reduce(better).unwrap();
            let array = Array::vector(x);
            let found = apply(reduce(kind, &[0], false), std::slice::from_ref(&array)).to_f64_vec()[0];
            assert_eq!(found.to_bits(), first.to_bits(), "{kind:?} of {n}");
            let at = apply(ArgReduce { kind: of, axis: 0 }, &[array]).to_i64_vec()[0] as usize;
            assert_eq!(x[at].to_bits(), first.to_bits(), "arg{kind:?} of {n}");
        }
    }
}

#[test]
fn long_sums_are_accurate() {
    let n = 1_000_003;
    let sum = apply(reduce(Sum, &[0], false), &[Array::full(DType::F32, &[n], 0.1)]).to_f64_vec()[0];
    let exact = n as f64 * 0.1f32 as f64;
    assert!((sum / exact - 1.0).abs() < 5e-7, "{sum} for {exact}");
}

#[test]
fn axes_that_do_not_exist_are_errors() {
    assert_eq!(build_error(reduce(Sum, &[2], false), &[matrix()]).code, "E0222");
    assert_eq!(build_error(reduce(Sum, &[1, 1], false), &[matrix()]).code, "E0222");
    assert_eq!(build_error(reduce(Sum, &[0], false), &[]).code, "E0222");
}

#[test]
fn gradients_match_differences() {
    for axes in [&[][..], &[0], &[1], &[0, 2], &[0, 1, 2]] {
        for (kind, keepdims) in [(Sum, false), (Prod, true), (Prod, false), (Max, false), (Min, true)] {
            check_vjp(|g, v| g.emit(reduce(kind, axes, keepdims), v), &[sample(&[2, 3, 2], 1)]);
        }
    }
    check_vjp(|g, v| g.sum(v[0], &[0], false), &[sample(&[0, 2], 1)]);
    check_vjp(|g, v| g.emit(reduce(Prod, &[0], false), v), &[sample(&[0, 2], 1)]);
    check_vjp(|g, v| g.emit(reduce(Prod, &[0], false), v), &[sample(&[1], 1)]);
}

#[test]
fn products_with_zeros_have_gradients_of_any_order() {
    let product = |axes: &'static [usize]| move |g: &mut Graph, v: &[Value]| g.emit(reduce(Prod, axes, false), v);
    for x in [vec![2.0, 0.0, 3.0, 0.0, 0.0, 5.0], vec![0.0, 1.5, -2.0, 4.0, 0.5, 3.0]] {
        let x = Array::new(&[2, 3], x);
        check_vjp(product(&[1]), &[x.clone()]);
        check_vjp(product(&[0, 1]), &[x.clone()]);
        check_vjp2(product(&[1]), &[x]);
    }
}

#[test]
fn second_order_of_sums_and_extremes() {
    for kind in [Sum, Max] {
        check_vjp2(|g, v| g.emit(reduce(kind, &[1], false), v), &[sample(&[2, 3], 3)]);
    }
    check_vjp2(
        |g, v| {
            let square = g.mul(v[0], v[0]);
            g.sum(square, &[0, 1], false)
        },
        &[sample(&[2, 3], 3)],
    );
}
