use super::*;
use crate::ops::testing::*;
use crate::types::DType;

fn range(shape: &[usize]) -> Array {
    Array::new(shape, (0..count(shape)).map(|i| i as f64).collect())
}

fn product(a: &Array, b: &Array) -> Array {
    apply(MatMul {}, &[a.clone(), b.clone()])
}

#[test]
fn values_are_numpys() {
    let a = range(&[2, 3]);
    assert_eq!(product(&a, &range(&[3, 4])), Array::new(&[2, 4], vec![20.0, 23.0, 26.0, 29.0, 56.0, 68.0, 80.0, 92.0]));
    assert_eq!(product(&a, &Array::vector(&[1.0, 2.0, 3.0])), Array::vector(&[8.0, 26.0]));
    assert_eq!(product(&Array::vector(&[1.0, 2.0]), &a), Array::vector(&[6.0, 9.0, 12.0]));
    assert_eq!(product(&Array::vector(&[1.0, 2.0]), &Array::vector(&[3.0, 4.0])), Array::scalar(11.0));
}

#[test]
fn batches_broadcast() {
    let c = product(&range(&[2, 1, 2, 3]), &range(&[3, 3, 2]));
    let expected = [
        10.0, 13.0, 28.0, 40.0, 28.0, 31.0, 100.0, 112.0, 46.0, 49.0, 172.0, 184.0, 46.0, 67.0, 64.0, 94.0, 172.0, 193.0, 244.0, 274.0,
        298.0, 319.0, 424.0, 454.0,
    ];
    assert_eq!(c, Array::new(&[2, 3, 2, 2], expected.to_vec()));
    let rows = product(&range(&[3]), &range(&[3, 3, 2]));
    assert_eq!(rows, Array::new(&[3, 2], vec![10.0, 13.0, 28.0, 31.0, 46.0, 49.0]));
    let stack = product(&range(&[2, 2, 3]), &range(&[3, 1]));
    assert_eq!(stack, Array::new(&[2, 2, 1], vec![5.0, 14.0, 23.0, 32.0]));
}

#[test]
fn ints_wrap_bools_are_logical_and_dtypes_promote() {
    let (a, b) = (Array::new(&[1, 2], vec![100i8, 3]), Array::new(&[2, 1], vec![2i8, 5]));
    assert_eq!(product(&a, &b), Array::new(&[1, 1], vec![-41i8]));
    assert_eq!(product(&a, &Array::vector(&[2i64, 5])), Array::vector(&[215i64]));
    assert_eq!(product(&a, &Array::vector(&[2f32, 0.5])), Array::vector(&[201.5f32]));
    let (t, f) = (true, false);
    assert_eq!(product(&Array::new(&[2, 2], vec![t, f, t, t]), &Array::vector(&[f, t])), Array::vector(&[f, t]));
}

#[test]
fn empty_extents_give_zeros() {
    assert_eq!(product(&Array::zeros(DType::F32, &[2, 0]), &Array::zeros(DType::F32, &[0, 3])), Array::zeros(DType::F32, &[2, 3]));
    assert_eq!(product(&Array::zeros(DType::F64, &[0]), &Array::zeros(DType::F64, &[0])), Array::scalar(0.0));
    assert_eq!(product(&Array::zeros(DType::F64, &[0, 2, 3]), &range(&[3, 4])).shape(), [0, 2, 4]);
    assert_eq!(product(&Array::zeros(DType::F64, &[0, 2, 3]), &range(&[1, 3, 4])).shape(), [0, 2, 4]);
}

#[test]
fn large_products_agree_with_loops() {
    let (a, b) = (sample(&[33, 40], 1), sample(&[40, 37], 2));
    let mut c = vec![0.0; 33 * 37];
    multiply_by_loops([33, 40, 37], a.as_slice(), b.as_slice(), &mut c);
    assert_close(&product(&a, &b).to_f64_vec(), &c, 1e-13, "f64");
    let single = product(&a.cast(DType::F32), &b.cast(DType::F32));
    assert_close(&single.to_f64_vec(), &c, 1e-5, "f32");
}

fn bits(x: &Array) -> Vec<u64> {
    x.to_f64_vec().into_iter().map(f64::to_bits).collect()
}

#[test]
fn parts_have_the_bits_of_the_whole() {
    for [m, k, n] in [[40, 600, 1100], [9, 256, 2048], [4100, 300, 5], [4100, 300, 1]] {
        let (a, b) = (sample(&[m, k], 1), sample(&[k, n], 2));
        let (mut whole, mut parts) = (Array::zeros(DType::F64, &[m, n]), Array::zeros(DType::F64, &[m, n]));
        f64::multiply([m, k, n], a.as_slice(), b.as_slice(), whole.as_mut_slice());
        f64::multiply_parts(&mut EvalCx::new(), [m, k, n], a.as_slice(), b.as_slice(), parts.as_mut_slice()).unwrap();
        assert_eq!(bits(&whole), bits(&parts), "{m} {k} {n}");
    }
    let (a, b) = (Array::new(&[3, 2], vec![1i64, 2, 3, 4, 5, 6]), Array::new(&[2, 2], vec![7i64, 8, 9, 10]));
    let mut c = [0; 6];
    i64::multiply_parts(&mut EvalCx::new(), [3, 2, 2], a.as_slice(), b.as_slice(), &mut c).unwrap();
    assert_eq!(c, [25, 28, 57, 64, 89, 100]);
}

/// The law of a product knows its inner extent and its columns, and nothing else.
#[test]
fn a_row_of_a_product_has_the_bits_of_its_own_product() {
    for dtype in [DType::F32, DType::F64] {
        for (k, n) in [(3, 1), (300, 1), (2, 2), (5, 3), (40, 37), (600, 20)] {
            let (a, b) = (sample(&[2, 17, k], 1).cast(dtype), sample(&[k, n], 2).cast(dtype));
            let all = bits(&product(&a, &b));
            assert_eq!(all, bits(&product(&a.reshaped(&[34, k]), &b)), "as one matrix");
            assert_eq!(all, bits(&product(&a, &b.reshaped(&[1, k, n]))), "as a batch");
            for i in 0..34 {
                let row = product(&a.reshaped(&[34, k]).rows(i, i + 1).reshaped(&[k]), &b);
                assert_eq!(bits(&row), all[i * n..(i + 1) * n], "row {i} of {k}×{n}");
            }
        }
    }
}

/// Sums of outer products are products by the same law.
#[test]
fn sums_of_outer_products_have_the_bits_of_the_product() {
    for [m, p, n] in [[4, 3, 5], [1, 700, 9], [9, 700, 2], [20, 300, 40]] {
        let (a, b) = (sample(&[p, m], 1), sample(&[p, n], 2));
        let mut sum = Array::zeros(DType::F64, &[m, n]);
        Outer::add_outer([m, p, n], a.as_slice(), b.as_slice(), [false, false], sum.as_mut_slice::<f64>());
        assert_eq!(bits(&sum), bits(&product(&apply(Transpose { perm: vec![1, 0] }, &[a]), &b)), "{m} {p} {n}");
    }
}

/// Rows in the order in which they are read.
fn in_order<T: Copy>(x: &[T], n: usize, back: bool) -> Vec<T> {
    if back { x.chunks(n.max(1)).rev().flatten().copied().collect() } else { x.to_vec() }
}

#[test]
fn outer_products_read_rows_either_way() {
    for [m, p, n] in
        [[3, 5, 2], [1, 1, 1], [33, 40, 37], [64, 1, 64], [16, 9, 70], [3, 0, 2], [0, 2, 3], [2, 3, 0], [7, 600, 1], [1, 600, 5]]
    {
        let (a, b) = (sample(&[p, m], 1), sample(&[p, n], 2));
        for back in [[false, false], [false, true], [true, false], [true, true]] {
            let (rows_a, rows_b) = (in_order(a.as_slice::<f64>(), m, back[0]), in_order(b.as_slice::<f64>(), n, back[1]));
            let mut want = vec![1.0; m * n];
            (0..p).for_each(|t| (0..m * n).for_each(|at| want[at] += rows_a[t * m + at / n] * rows_b[t * n + at % n]));
            let mut c = vec![1.0; m * n];
            Outer::add_outer([m, p, n], a.as_slice(), b.as_slice(), back, &mut c);
            assert_close(&c, &want, 1e-12, &format!("{m} {p} {n} {back:?}"));
            let (single_a, single_b) = (a.cast(DType::F32), b.cast(DType::F32));
            let mut c = vec![1f32; m * n];
            Outer::add_outer([m, p, n], single_a.as_slice(), single_b.as_slice(), back, &mut c);
            assert_close(&c.iter().map(|x| f64::from(*x)).collect::<Vec<_>>(), &want, 1e-3, &format!("{m} {p} {n} {back:?}, f32"));
        }
    }
}

#[test]
fn outer_products_of_blocks_have_the_bits_of_all_rows() {
    for [m, n] in [[1, 1], [5, 1], [1, 40], [3, 4], [20, 30]] {
        let p = 5 * OUTER / 2 + 3;
        let (a, b) = (sample(&[p, m], 1), sample(&[p, n], 2));
        let (a, b) = (a.as_slice::<f64>(), b.as_slice::<f64>());
        for back in [[false, false], [false, true], [true, false], [true, true]] {
            let (mut all, mut blocks) = (vec![0.0; m * n], vec![0.0; m * n]);
            Outer::add_outer([m, p, n], a, b, back, &mut all);
            for (lo, hi) in [(0, OUTER), (OUTER, 2 * OUTER), (2 * OUTER, p)] {
                let of = |x: &[f64], size: usize, back: bool| {
                    let (lo, hi) = if back { (p - hi, p - lo) } else { (lo, hi) };
                    x[lo * size..hi * size].to_vec()
                };
                Outer::add_outer([m, hi - lo, n], &of(a, m, back[0]), &of(b, n, back[1]), back, &mut blocks);
            }
            assert_eq!(all, blocks, "{m} {n} {back:?}");
        }
    }
}

#[test]
fn misfits_are_errors_with_both_shapes() {
    let (a, b) = (range(&[2, 3]), range(&[4, 2]));
    assert_eq!(run_error(MatMul {}, &[a.clone(), b.clone()]).title, "cannot multiply (2, 3) by (4, 2): 3 columns meet 4 rows");
    let e = build_error(MatMul {}, &[a.clone(), b.clone()]);
    assert_eq!((e.code, &e.title[..]), ("E0208", "cannot multiply float64[2, 3] by float64[4, 2]: 3 columns meet 4 rows"));
    assert_eq!(run_error(MatMul {}, &[range(&[1]), b]).code, "E0208");
    assert_eq!(run_error(MatMul {}, &[range(&[2, 1, 3]), range(&[3, 3, 1])]).code, "E0208");
    assert_eq!(build_error(MatMul {}, &[a, Array::scalar(1.0)]).code, "E0208");
}

const RANKS: [(&[usize], &[usize]); 10] = [
    (&[3], &[3]),
    (&[2, 3], &[3]),
    (&[3], &[3, 2]),
    (&[2, 3], &[3, 2]),
    (&[2, 2, 3], &[3, 2]),
    (&[3], &[2, 3, 2]),
    (&[2, 2, 3], &[3]),
    (&[2, 1, 2, 3], &[2, 3, 1]),
    (&[1, 2, 3], &[2, 3, 2]),
    (&[2, 2, 0], &[0, 2]),
];

#[test]
fn gradients_match_differences() {
    for (a, b) in RANKS {
        check_vjp(|g, v| g.matmul(v[0], v[1]), &[sample(a, 1), sample(b, 2)]);
    }
}

#[test]
fn second_order() {
    for (a, b) in RANKS {
        check_vjp2(|g, v| g.matmul(v[0], v[1]), &[sample(a, 1), sample(b, 2)]);
    }
}

#[test]
fn a_float_beside_ints_has_a_gradient() {
    check_vjp(|g, v| g.matmul(v[0], v[1]), &[sample(&[2, 3], 1), Array::vector(&[1i32, 2, 3])]);
    check_vjp(|g, v| g.matmul(v[0], v[1]), &[Array::new(&[1, 2], vec![1f32, 2.0]), sample(&[2, 2], 1)]);
}
