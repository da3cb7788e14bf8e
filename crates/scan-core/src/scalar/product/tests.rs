//! The law, for every route.

use super::*;
use crate::scalar::{Host, Lanes};

trait Number: Float + PartialEq {
    fn number(i: usize) -> Self;
    fn bits(self) -> u64;
    fn fma(x: Self, y: Self, z: Self) -> Self;
    fn plus(self, y: Self) -> Self;
    fn less(self, y: Self) -> Self;
}

macro_rules! number {
    ($t:ty) => {
        impl Number for $t {
            fn number(i: usize) -> $t {
                ((i * 7919 % 1009) as $t / 300.0 - 1.5) * 1.1
            }
            fn bits(self) -> u64 {
                self.to_bits().into()
            }
            fn fma(x: $t, y: $t, z: $t) -> $t {
                Host::<$t>::CX.fma(x, y, z)
            }
            fn plus(self, y: $t) -> $t {
                self + y
            }
            fn less(self, y: $t) -> $t {
                self - y
            }
        }
    };
}

number!(f32);
number!(f64);

fn numbers<T: Number>(n: usize, seed: usize) -> Vec<T> {
    (0..n).map(|i| T::number(i + 1000 * seed)).collect()
}

/// What the law says of an element, given the factors of its terms and what it was.
fn law<T: Number>(terms: &[(T, T)], old: T, mode: Mode) -> T {
    let block = |terms: &[(T, T)]| terms.iter().fold(T::default(), |sum, &(x, y)| T::fma(x, y, sum));
    let mut blocks = terms.chunks(DEPTH).map(block);
    match mode {
        Mode::Set => blocks.next().map_or(T::default(), |first| blocks.fold(first, T::plus)),
        Mode::Add => blocks.fold(old, T::plus),
        Mode::Sub => blocks.fold(old, T::less),
    }
}

fn bits<T: Number>(x: &[T]) -> Vec<u64> {
    x.iter().map(|x| x.bits()).collect()
}

/// Columns of c are fewer than its rows are long, to see that nothing beside them is written.
fn check<T: Number>([m, k, n]: [usize; 3]) {
    let (a, b) = (numbers::<T>(m * k, 1), numbers::<T>(k * n, 2));
    let turned = |x: &[T], [rows, columns]: [usize; 2]| -> Vec<T> {
        (0..columns).flat_map(|j| (0..rows).map(move |i| (i, j))).map(|(i, j)| x[i * columns + j]).collect()
    };
    let back = |x: &[T], columns: usize| -> Vec<T> { x.chunks(columns.max(1)).rev().flatten().copied().collect() };
    let (turned_a, turned_b) = (turned(&a, [m, k]), turned(&b, [k, n]));
    let (back_a, back_b) = (back(&turned_a, m), back(&b, n));
    let lefts = [Matrix::rows(&a[..], k), Matrix::rows(&turned_a[..], m).transposed(), Matrix::back(&back_a[..], [k, m]).transposed()];
    let rights = [Matrix::rows(&b[..], n), Matrix::rows(&turned_b[..], k).transposed(), Matrix::back(&back_b[..], [k, n])];
    let old = numbers::<T>(m * (n + 2), 3);
    for mode in [Mode::Set, Mode::Add, Mode::Sub] {
        let mut want = old.clone();
        for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let terms: Vec<(T, T)> = (0..k).map(|p| (a[i * k + p], b[p * n + j])).collect();
            let to = &mut want[i * (n + 2) + j + 1];
            *to = law(&terms, *to, mode);
        }
        for (l, left) in lefts.iter().enumerate() {
            for (r, right) in rights.iter().enumerate() {
                let mut c = old.clone();
                T::product([m, k, n], *left, *right, Matrix::rows(&mut c[..], n + 2).from(0, 1), mode);
                assert!(bits(&c) == bits(&want), "{m}×{k}×{n}, factors {l} and {r}, {mode:?}");
            }
        }
    }
}

#[test]
fn every_element_is_a_sum_of_chains() {
    for m in [0, 1, 2, 3, 4, 7, 8, 9, 13] {
        for k in [0, 1, 2, 5, 40] {
            for n in [0, 1, 2, 5, 8, 16, 17, 33, 100] {
                check::<f64>([m, k, n]);
                check::<f32>([m, k, n]);
            }
        }
    }
}

#[test]
fn long_chains_are_blocks_and_many_columns_are_parts() {
    for extents in [[1, 600, 300], [3, 256, 20], [5, 257, 3], [2, 513, 1], [9, 300, 530], [20, 10, 1100]] {
        check::<f64>(extents);
        check::<f32>(extents);
    }
}

/// So many rows, and rows so far apart, that the right factor is copied.
#[test]
fn copies_of_the_right_factor_do_not_show() {
    check::<f64>([MANY + 3, 300, FAR / 8 + 5]);
    check::<f32>([MANY + 3, 17, FAR / 4 + 5]);
}

#[test]
fn row_i_is_the_product_of_row_i() {
    fn rows<T: Number>([m, k, n]: [usize; 3]) {
        let (a, b) = (numbers::<T>(m * k, 1), numbers::<T>(k * n, 2));
        let mut all = vec![T::default(); m * n];
        T::product([m, k, n], Matrix::rows(&a, k), Matrix::rows(&b, n), Matrix::rows(&mut all, n), Mode::Set);
        for i in 0..m {
            let mut one = vec![T::default(); n];
            T::product([1, k, n], Matrix::rows(&a[i * k..], k), Matrix::rows(&b, n), Matrix::rows(&mut one, n), Mode::Set);
            assert_eq!(bits(&one), bits(&all[i * n..(i + 1) * n]), "row {i} of {m}×{k}×{n}");
        }
    }
    for extents in [[300, 700, 530], [1030, 300, 520], [33, 520, 4], [12, 3, 2]] {
        rows::<f64>(extents);
        rows::<f32>(extents);
    }
}

/// What is not a number stays in its row and column, and in those alone.
#[test]
fn infinities_and_nans_go_where_they_belong() {
    let (m, k, n) = (9, 5, 19);
    let (mut a, mut b) = (numbers::<f64>(m * k, 1), numbers::<f64>(k * n, 2));
    (a[2 * k + 1], b[3 * n + 18]) = (f64::NAN, f64::INFINITY);
    a[4 * k + 3] = 0.0;
    let mut c = vec![0.0; m * n];
    f64::product([m, k, n], Matrix::rows(&a, k), Matrix::rows(&b, n), Matrix::rows(&mut c, n), Mode::Set);
    for (at, x) in c.iter().enumerate() {
        let (i, j) = (at / n, at % n);
        assert_eq!(x.is_nan(), i == 2 || i == 4 && j == 18, "{i} {j}");
        assert_eq!(x.is_infinite(), ![2, 4].contains(&i) && j == 18, "{i} {j}");
    }
}

#[test]
fn extents_that_reach_beyond_the_slices_are_refused() {
    let product = |extents: [usize; 3], row: usize| {
        let (a, b, mut c) = (vec![0f32; 12], vec![0f32; 12], vec![0f32; 9]);
        std::panic::catch_unwind(move || {
            f32::product(extents, Matrix::rows(&a, 4), Matrix::rows(&b, 3), Matrix::rows(&mut c, row), Mode::Set);
        })
    };
    assert!(product([3, 4, 3], 3).is_ok());
    for (extents, row) in [([4, 4, 3], 3), ([3, 5, 3], 3), ([3, 4, 4], 3), ([3, 4, 3], 4), ([3, 4, 3], 2), ([usize::MAX, 4, 3], 3)] {
        assert!(product(extents, row).is_err(), "{extents:?} {row}");
    }
}
