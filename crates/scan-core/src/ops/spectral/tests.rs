use super::*;
use crate::ops::testing::*;

/// Extents with one, few and many rows, tall and wide, beyond a block of columns.
const SHAPES: [[usize; 2]; 9] = [[1, 1], [3, 1], [1, 4], [4, 4], [7, 3], [3, 8], [40, 33], [33, 70], [90, 90]];

fn times(a: &Array, b: &Array) -> Array {
    apply(MatMul {}, &[a.clone(), b.clone()])
}
fn transpose(a: &Array) -> Array {
    let mut perm: Vec<usize> = (0..a.rank()).collect();
    perm.swap(a.rank() - 1, a.rank() - 2);
    apply(Transpose { perm }, std::slice::from_ref(a))
}
fn eye(n: usize) -> Vec<f64> {
    (0..n * n).map(|at| f64::from(at / n == at % n)).collect()
}
fn scaled(u: &Array, s: &Array) -> Array {
    apply(Op::Elem(crate::scalar::ElemOp::Mul), &[u.clone(), s.clone()])
}
#[track_caller]
fn is_orthonormal(columns: &Array) {
    let n = columns.shape()[1];
    assert_close(&times(&transpose(columns), columns).to_f64_vec(), &eye(n), 1e-13, "orthonormal");
}
fn of_rank(shape: [usize; 2], rank: usize) -> Array {
    times(&sample(&[shape[0], rank], 3), &sample(&[rank, shape[1]], 4))
}
fn svd(a: &Array) -> [Array; 3] {
    try_apply_all(Svd {}, std::slice::from_ref(a)).unwrap().try_into().unwrap()
}

#[test]
fn factors_multiply_to_the_matrix() {
    for [m, n] in SHAPES.into_iter().filter(|[m, n]| m >= n) {
        for a in [sample(&[m, n], 1), of_rank([m, n], n.div_ceil(2)), Array::zeros(DType::F64, &[m, n])] {
            let out = try_apply_all(Qr {}, std::slice::from_ref(&a)).unwrap();
            assert_close(&times(&out[0], &out[1]).to_f64_vec(), &a.to_f64_vec(), 1e-12, "q·r");
            is_orthonormal(&out[0]);
            let below = |at: &(usize, f64)| at.0 % n < at.0 / n;
            assert!(out[1].to_f64_vec().into_iter().enumerate().filter(below).all(|x| x.1 == 0.0));
        }
    }
}

/// Printed by `numpy.linalg.qr`, whose signs are LAPACK's.
#[test]
fn signs_are_lapacks() {
    let a = Array::new(&[3, 2], vec![1.0, 2.0, 3.0, 4.0, 5.0, 7.0]);
    let out = try_apply_all(Qr {}, &[a]).unwrap();
    let r = [-5.916079783099616, -8.282511696339462, 0.0, 0.6324555320336771];
    assert_close(&out[1].to_f64_vec(), &r, 1e-14, "r");
}

#[test]
fn eigenvectors_are_only_stretched() {
    for n in [1, 2, 3, 5, 20, 65] {
        let x = sample(&[n, n], 2);
        for a in [times(&x, &transpose(&x)), of_rank([n, n], 1), Array::new(&[n, n], eye(n)), Array::zeros(DType::F64, &[n, n])] {
            let lower = apply(Tri { lower: true, k: 0 }, std::slice::from_ref(&a));
            let out = try_apply_all(Eigh {}, &[lower]).unwrap();
            let upper = apply(Tri { lower: false, k: 1 }, &[transpose(&a)]);
            let symmetric = apply(Op::Elem(crate::scalar::ElemOp::Add), &[apply(Tri { lower: true, k: 0 }, &[a]), upper]);
            is_orthonormal(&out[1]);
            assert!(out[0].to_f64_vec().is_sorted());
            assert_close(&times(&symmetric, &out[1]).to_f64_vec(), &scaled(&out[1], &out[0]).to_f64_vec(), 1e-12, "a·v");
        }
    }
}

#[test]
fn singular_values_descend_and_vectors_are_orthonormal() {
    for [m, n] in SHAPES {
        let k = m.min(n);
        for a in [sample(&[m, n], 1), of_rank([m, n], k.div_ceil(2)), Array::zeros(DType::F64, &[m, n])] {
            let [u, s, w] = svd(&a);
            assert_close(&times(&scaled(&u, &s), &w).to_f64_vec(), &a.to_f64_vec(), 1e-12, "u·s·w");
            is_orthonormal(&u);
            is_orthonormal(&transpose(&w));
            let s = s.to_f64_vec();
            assert!(s.iter().rev().is_sorted() && s[k - 1] >= 0.0);
        }
    }
}

/// Elements of 1e-200 and 1e200 neither vanish nor overflow, singular values far below the largest are there.
#[test]
fn magnitudes() {
    for by in [1e-200, 1e200] {
        let a = Array::new(&[2, 2], vec![3.0 * by, 0.0, 4.0 * by, 5.0 * by]);
        let [_, s, _] = svd(&a);
        assert_close(&s.to_f64_vec().iter().map(|s| s / by).collect::<Vec<_>>(), &[45f64.sqrt(), 5f64.sqrt()], 1e-14, "s");
        let w = try_apply_all(Eigh {}, &[Array::new(&[2, 2], vec![by, 0.0, 2.0 * by, by])]).unwrap().swap_remove(0);
        assert_close(&w.to_f64_vec().iter().map(|w| w / by).collect::<Vec<_>>(), &[-1.0, 3.0], 1e-14, "w");
    }
    let [_, s, _] = svd(&Array::new(&[2, 2], vec![1.0, 1e-20, 0.0, 1e-30]));
    let s = s.to_f64_vec();
    assert!((s[1] / 1e-30 - 1.0).abs() < 1e-12);
}

#[test]
fn what_is_not_finite_is_nan() {
    for bad in [f64::NAN, f64::INFINITY] {
        let a = Array::new(&[2, 2], vec![1.0, bad, bad, 1.0]);
        for out in svd(&a).into_iter().chain(try_apply_all(Eigh {}, std::slice::from_ref(&a)).unwrap()) {
            assert!(out.to_f64_vec().iter().all(|x| x.is_nan()));
        }
    }
}

#[test]
fn pseudo_inverses_are_those_of_penrose() {
    for [m, n] in SHAPES {
        for a in [sample(&[m, n], 1), of_rank([m, n], m.min(n).div_ceil(2))] {
            let b = apply(Pinv { rcond: Bits(1e-10) }, std::slice::from_ref(&a));
            assert_eq!(b.shape(), [n, m]);
            let (ab, ba) = (times(&a, &b), times(&b, &a));
            assert_close(&times(&ab, &a).to_f64_vec(), &a.to_f64_vec(), 1e-11, "a·b·a");
            assert_close(&times(&ba, &b).to_f64_vec(), &b.to_f64_vec(), 1e-9, "b·a·b");
            assert_close(&transpose(&ab).to_f64_vec(), &ab.to_f64_vec(), 1e-10, "a·b");
            assert_close(&transpose(&ba).to_f64_vec(), &ba.to_f64_vec(), 1e-10, "b·a");
        }
    }
}

#[test]
fn nothing_batches_and_dtypes() {
    for shape in [&[0, 0][..], &[3, 0], &[0, 2, 2], &[2, 0, 0]] {
        let a = Array::zeros(DType::F64, shape);
        let (m, n) = (shape[shape.len() - 2], shape[shape.len() - 1]);
        assert_eq!(try_apply_all(Qr {}, std::slice::from_ref(&a)).unwrap()[1].shape()[shape.len() - 2..], [n, n]);
        assert_eq!(svd(&a)[1].shape()[shape.len() - 2..], [m.min(n)]);
        assert_eq!(apply(Pinv { rcond: Bits(-1.0) }, &[a]).shape()[shape.len() - 2..], [n, m]);
    }
    let both = sample(&[2, 4, 3], 1);
    let single = |i: usize| Array::new(&[4, 3], both.to_f64_vec()[i * 12..(i + 1) * 12].to_vec());
    let apart: Vec<f64> = (0..2).flat_map(|i| svd(&single(i))[0].to_f64_vec()).collect();
    assert_eq!(svd(&both)[0].to_f64_vec(), apart);
    for (dtype, out) in [(DType::F32, DType::F32), (DType::I32, DType::F64), (DType::Bool, DType::F64)] {
        assert!(svd(&Array::new(&[2, 2], vec![1.0, 0.0, 1.0, 1.0]).cast(dtype)).iter().all(|x| x.dtype() == out));
    }
}

#[test]
fn errors() {
    let (wide, vector) = (Array::zeros(DType::F64, &[2, 3]), Array::vector(&[1.0]));
    assert_eq!((build_error(Qr {}, &[wide.clone()]).code, run_error(Qr {}, &[wide.clone()]).code), ("E0605", "E0605"));
    assert_eq!((build_error(Eigh {}, &[wide.clone()]).code, run_error(Eigh {}, &[wide]).code), ("E0603", "E0603"));
    for op in [Op::from(Qr {}), Svd {}.into(), Pinv { rcond: Bits(0.0) }.into()] {
        assert_eq!(build_error(op, &[vector.clone()]).code, "E0222");
    }
}

/// A symmetric matrix with eigenvalues far from each other, in its lower half alone.
fn lower(n: usize) -> Array {
    let mut a = sample(&[n, n], 6);
    a.as_mut_slice::<f64>().iter_mut().enumerate().for_each(|(at, x)| match (at / n, at % n) {
        (i, j) if i < j => *x = 7.0,
        (i, j) if i == j => *x += 3.0 * i as f64,
        _ => {}
    });
    a
}

#[test]
fn gradients_of_every_output() {
    for shape in [&[1, 1][..], &[3, 3], &[4, 2], &[2, 3, 2]] {
        for k in 0..2 {
            check_vjp(|g, v| g.apply(Qr {}, v).unwrap()[k], &[sample(shape, 5)]);
            check_vjp2(|g, v| g.apply(Qr {}, v).unwrap()[k], &[sample(shape, 5)]);
        }
    }
    for n in [1, 2, 4] {
        for k in 0..2 {
            check_vjp(|g, v| g.apply(Eigh {}, v).unwrap()[k], &[lower(n)]);
            check_vjp2(|g, v| g.apply(Eigh {}, v).unwrap()[k], &[lower(n)]);
        }
    }
    for shape in [&[1, 1][..], &[3, 3], &[4, 2], &[2, 3], &[2, 2, 3]] {
        for k in 0..3 {
            check_vjp(|g, v| g.apply(Svd {}, v).unwrap()[k], &[sample(shape, 5)]);
            check_vjp2(|g, v| g.apply(Svd {}, v).unwrap()[k], &[sample(shape, 5)]);
        }
        check_vjp(|g, v| g.emit(Pinv { rcond: Bits(-1.0) }, v), &[sample(shape, 5)]);
        check_vjp2(|g, v| g.emit(Pinv { rcond: Bits(-1.0) }, v), &[sample(shape, 5)]);
    }
}

/// Where singular values or eigenvalues are equal, what does not depend on the choice of vectors has its gradient.
#[test]
fn equal_values() {
    let eye = Array::new(&[3, 3], eye(3));
    check_vjp(|g, v| g.emit(Pinv { rcond: Bits(-1.0) }, v), std::slice::from_ref(&eye));
    let sum = |g: &mut Graph, x: Value| g.sum(x, &[0], false);
    check_vjp(|g, v| g.apply(Eigh {}, v).map(|out| sum(g, out[0])).unwrap(), std::slice::from_ref(&eye));
    check_vjp(|g, v| g.apply(Svd {}, v).map(|out| sum(g, out[1])).unwrap(), &[eye]);
}
