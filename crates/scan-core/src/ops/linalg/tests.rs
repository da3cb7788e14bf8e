use super::*;
use crate::ops::testing::*;

const KINDS: [MatrixKind; 4] = [MatrixKind::General, MatrixKind::Lower, MatrixKind::Upper, MatrixKind::Positive];

fn solve(kind: MatrixKind) -> Solve {
    Solve { kind }
}
/// Matrices with every property at once: a large diagonal.
fn regular(shape: &[usize], seed: usize) -> Array {
    let n = shape[shape.len() - 1];
    let mut a = sample(shape, seed);
    let diagonal = |at: usize| at / n % n == at % n;
    a.as_mut_slice::<f64>().iter_mut().enumerate().filter(|(at, _)| diagonal(*at)).for_each(|(_, x)| *x += 4.0);
    a
}
/// What `kind` reads of a.
fn read(kind: MatrixKind, a: &Array) -> Array {
    let tri = |lower, k| apply(Tri { lower, k }, std::slice::from_ref(a));
    match kind {
        MatrixKind::General => a.clone(),
        MatrixKind::Lower => tri(true, 0),
        MatrixKind::Upper => tri(false, 0),
        MatrixKind::Positive => {
            let below = tri(true, -1);
            let mut perm: Vec<usize> = (0..a.rank()).collect();
            perm.swap(a.rank() - 1, a.rank() - 2);
            let above = apply(Transpose { perm }, &[below]);
            apply(Op::Elem(crate::scalar::ElemOp::Add), &[tri(true, 0), above])
        }
    }
}

/// Printed by `numpy.linalg`.
#[test]
fn values_are_numpys() {
    let a = Array::new(&[3, 3], vec![1.0, 2.0, 3.0, 4.0, -5.0, 6.0, 7.0, 8.0, 10.0]);
    let x = apply(solve(MatrixKind::General), &[a.clone(), Array::vector(&[1.0, -2.0, 0.5])]);
    assert_close(&x.to_f64_vec(), NUMPY_SOLVE, 1e-13, "solve");
    assert_close(&apply(Inverse {}, std::slice::from_ref(&a)).to_f64_vec(), NUMPY_INVERSE, 1e-13, "inverse");
    let both = try_apply_all(SLogDet {}, &[a]).unwrap();
    assert_close(&[both[0].to_f64_vec(), both[1].to_f64_vec()].concat(), NUMPY_SLOGDET, 1e-13, "slogdet");
    let s = Array::new(&[3, 3], vec![4.0, 9.0, 9.0, 2.0, 5.0, 9.0, -1.0, 0.5, 6.0]);
    assert_close(&apply(Cholesky {}, &[s]).to_f64_vec(), NUMPY_CHOLESKY, 1e-13, "cholesky");
}

const NUMPY_SOLVE: &[f64] = &[-0.8644859813084113, 0.25233644859813087, 0.4532710280373831];
#[rustfmt::skip]
const NUMPY_INVERSE: &[f64] = &[-0.9158878504672896, 0.03738317757009344, 0.2523364485981308, 0.018691588785046776, -0.10280373831775699, 0.05607476635514017, 0.6261682242990654, 0.056074766355140186, -0.12149532710280374];
const NUMPY_SLOGDET: &[f64] = &[1.0, 4.672828834461906];
#[rustfmt::skip]
const NUMPY_CHOLESKY: &[f64] = &[2.0, 0.0, 0.0, 1.0, 2.0, 0.0, -0.5, 0.5, 2.345207879911715];

#[test]
fn solutions_solve() {
    for kind in KINDS {
        for (a, b) in [(&[3, 3][..], &[3][..]), (&[3, 3], &[3, 2]), (&[2, 3, 3], &[3]), (&[2, 1, 2, 2], &[3, 2, 4]), (&[1, 1], &[1])] {
            let (a, b) = (regular(a, 1), sample(b, 2));
            let x = apply(solve(kind), &[a.clone(), b.clone()]);
            let column = if b.rank() == 1 { x.reshaped(&[x.shape(), &[1]].concat()) } else { x.clone() };
            let product = apply(MatMul {}, &[read(kind, &a), column]);
            let like = Array::zeros(DType::F64, x.shape());
            let expected = spread(&b, like.shape()).unwrap().to_f64_vec();
            assert_close(&product.to_f64_vec(), &expected, 1e-12, &format!("{kind:?}"));
        }
    }
}

/// Larger than what is done without halving, with columns that are copied to lie side by side, and more rows than one chain of a
/// product has.
#[test]
fn large_matrices_are_factorised_by_halves() {
    for n in [7, 8, 9, 17, 40, 71, 300] {
        let a = regular(&[n, n], 1);
        for columns in [1, 5] {
            let b = sample(&[n, columns], 2);
            for kind in KINDS {
                let a = if kind == MatrixKind::General { a.clone() } else { read(kind, &positive(n)) };
                let x = apply(solve(kind), &[a.clone(), b.clone()]);
                let back = apply(MatMul {}, &[a, x]);
                assert_close(&back.to_f64_vec(), &b.to_f64_vec(), 1e-9, &format!("{kind:?} of {n}"));
            }
        }
        let l = apply(Cholesky {}, &[positive(n)]);
        let upper = apply(Transpose { perm: vec![1, 0] }, std::slice::from_ref(&l));
        assert!(l.as_slice::<f64>().iter().enumerate().all(|(at, x)| at % n <= at / n || *x == 0.0));
        assert_close(&apply(MatMul {}, &[l, upper]).to_f64_vec(), &positive(n).to_f64_vec(), 1e-9, "l·lᵀ");
        let inverse = apply(Inverse {}, std::slice::from_ref(&a));
        let eye: Vec<f64> = (0..n * n).map(|at| f64::from(u8::from(at / n == at % n))).collect();
        assert_close(&apply(MatMul {}, &[a, inverse]).to_f64_vec(), &eye, 1e-9, "a·a⁻¹");
    }
}

/// Symmetric, with a large diagonal.
fn positive(n: usize) -> Array {
    let a = sample(&[n, n], 3);
    let (a, mut s) = (a.as_slice::<f64>(), vec![0.0; n * n]);
    (0..n * n).for_each(|at| s[at] = a[at] + a[at % n * n + at / n] + if at / n == at % n { 4.0 * n as f64 } else { 0.0 });
    Array::new(&[n, n], s)
}

/// A pivot that is missing is found wherever it is.
#[test]
fn large_matrices_may_be_singular() {
    let n = 90;
    let mut missing = positive(n);
    missing.as_mut_slice::<f64>()[85 * n + 85] = -1.0;
    assert_eq!(run_error(Cholesky {}, &[missing]).code, "E0602");
    let mut empty = sample(&[n, n], 2);
    (0..n).for_each(|i| empty.as_mut_slice::<f64>()[i * n + 70] = 0.0);
    let b = sample(&[n], 4);
    assert_eq!(run_error(solve(MatrixKind::General), &[empty.clone(), b]).code, "E0601");
    assert_eq!(try_apply_all(SLogDet {}, &[empty]).unwrap(), [Array::scalar(0.0), Array::scalar(f64::NEG_INFINITY)]);
}

#[test]
fn dtypes_and_empty_matrices() {
    let (a, b) = (Array::new(&[1, 1], vec![4i32]), Array::vector(&[2f32]));
    assert_eq!(apply(solve(MatrixKind::General), &[a.clone(), b.clone()]), Array::vector(&[0.5f64]));
    assert_eq!(apply(solve(MatrixKind::Positive), &[a.cast(DType::F32), b]), Array::vector(&[0.5f32]));
    assert_eq!(apply(Cholesky {}, &[a.cast(DType::U8)]), Array::new(&[1, 1], vec![2.0]));
    assert_eq!(apply(Inverse {}, &[a.cast(DType::F32)]), Array::new(&[1, 1], vec![0.25f32]));
    let none = Array::zeros(DType::F64, &[0, 0]);
    assert_eq!(apply(Inverse {}, std::slice::from_ref(&none)), none);
    assert_eq!(apply(Cholesky {}, std::slice::from_ref(&none)), none);
    assert_eq!(try_apply_all(SLogDet {}, std::slice::from_ref(&none)).unwrap(), [Array::scalar(1.0), Array::scalar(0.0)]);
    assert_eq!(apply(solve(MatrixKind::General), &[none, Array::zeros(DType::F64, &[0, 3])]).shape(), [0, 3]);
    let batch = Array::zeros(DType::F64, &[0, 2, 2]);
    assert_eq!(apply(solve(MatrixKind::Lower), &[batch.clone(), Array::vector(&[1.0, 2.0])]).shape(), [0, 2]);
    assert_eq!(try_apply_all(SLogDet {}, &[batch]).unwrap()[1].shape(), [0]);
}

#[test]
fn errors_say_what_is_wrong() {
    let zero = Array::zeros(DType::F64, &[2, 2]);
    let b = Array::vector(&[1.0, 2.0]);
    for kind in [MatrixKind::General, MatrixKind::Lower, MatrixKind::Upper] {
        let e = run_error(solve(kind), &[zero.clone(), b.clone()]);
        assert_eq!((e.code, e.title.as_str()), ("E0601", "`solve`: the matrix is singular"));
    }
    let e = run_error(solve(MatrixKind::Positive), &[zero.clone(), b.clone()]);
    assert_eq!((e.code, e.title.as_str()), ("E0602", "`solve`: the matrix is not positive definite"));
    let two = Array::new(&[2, 1, 1], vec![1.0, -1.0]);
    let e = run_error(Cholesky {}, &[two]);
    assert_eq!((e.code, e.title.as_str()), ("E0602", "`cholesky`: matrix 1 of the batch is not positive definite"));
    let nan = Array::new(&[1, 1], vec![f64::NAN]);
    let e = run_error(Cholesky {}, std::slice::from_ref(&nan));
    assert_eq!((e.code, e.title.as_str(), e.helps.len()), ("E0602", "`cholesky`: the matrix holds NaN", 1));
    let e = run_error(solve(MatrixKind::Positive), &[nan, Array::vector(&[1.0])]);
    assert_eq!((e.code, e.title.as_str()), ("E0602", "`solve`: the matrix holds NaN"));
    assert_eq!(run_error(Inverse {}, std::slice::from_ref(&zero)).code, "E0601");
    let flat = Array::zeros(DType::F64, &[2, 3]);
    for op in [Op::from(Inverse {}), Op::from(Cholesky {}), Op::from(SLogDet {})] {
        assert_eq!(run_error(op.clone(), std::slice::from_ref(&flat)).code, "E0603");
        assert_eq!(build_error(op.clone(), std::slice::from_ref(&flat)).code, "E0603");
        assert_eq!(build_error(op, std::slice::from_ref(&b)).code, "E0222");
    }
    let e = build_error(solve(MatrixKind::General), &[zero.clone(), Array::vector(&[1.0])]);
    assert_eq!((e.code, e.title.as_str()), ("E0604", "`solve`: a right side float64[1] does not fit a matrix float64[2, 2]"));
    assert_eq!(run_error(solve(MatrixKind::General), &[zero.clone(), Array::vector(&[1.0])]).code, "E0604");
    let both = try_apply_all(SLogDet {}, &[zero]).unwrap();
    assert_eq!(both, [Array::scalar(0.0), Array::scalar(f64::NEG_INFINITY)]);
}

#[test]
fn solve_has_gradients() {
    for kind in KINDS {
        for (a, b) in [(&[3, 3][..], &[3][..]), (&[2, 2], &[2, 2]), (&[2, 2, 2], &[2]), (&[2, 2, 2], &[1, 2, 1]), (&[2, 2], &[2, 2, 1])] {
            let build = |g: &mut Graph, v: &[Value]| {
                let x = g.emit(solve(kind), v);
                g.mul(x, x)
            };
            let ins = [regular(a, 1), sample(b, 2)];
            check_vjp(build, &ins);
            check_vjp2(build, &ins);
        }
    }
}

#[test]
fn functions_of_a_matrix_have_gradients() {
    for shape in [&[3, 3][..], &[2, 2, 2], &[0, 0]] {
        for op in [Op::from(Inverse {}), Op::from(Cholesky {})] {
            let build = |g: &mut Graph, v: &[Value]| {
                let y = g.emit(op.clone(), v);
                g.mul(y, y)
            };
            check_vjp(build, &[regular(shape, 3)]);
            check_vjp2(build, &[regular(shape, 3)]);
        }
        let build = |g: &mut Graph, v: &[Value]| {
            let y = g.apply(SLogDet {}, v).unwrap()[1];
            g.mul(y, y)
        };
        check_vjp(build, &[regular(shape, 4)]);
        check_vjp2(build, &[regular(shape, 4)]);
    }
}
