//! Linear algebra of the reference, by the formulas of a textbook.

use super::nd::{Kind, Nd};

/// `numpy.matmul` for ranks 1 and 2.
pub fn matmul(a: &Nd, b: &Nd) -> Nd {
    let k = *a.shape.last().expect("a has an axis");
    let rows = &a.shape[..a.shape.len() - 1];
    let cols = if b.shape.len() == 1 { &[][..] } else { &b.shape[1..] };
    let shape: Vec<usize> = rows.iter().chain(cols).copied().collect();
    Nd::by(Kind::Float, &shape, |at| {
        let (i, j) = at.split_at(rows.len());
        let left = |l: usize| a.at(&[i, &[l]].concat());
        let right = |l: usize| b.at(&[&[l], j].concat());
        (0..k).map(|l| left(l) * right(l)).sum()
    })
}

/// x with a·x = b, by Gauss's elimination with the largest pivot.
pub fn solve(a: &Nd, b: &Nd) -> Nd {
    let n = a.shape[0];
    let m = if b.shape.len() == 1 { 1 } else { b.shape[1] };
    let mut rows: Vec<Vec<f64>> =
        (0..n).map(|i| (0..n).map(|j| a.at(&[i, j])).chain((0..m).map(|j| b.data[i * m + j])).collect()).collect();
    for k in 0..n {
        let pivot = (k..n).max_by(|&i, &j| rows[i][k].abs().total_cmp(&rows[j][k].abs())).unwrap_or(k);
        rows.swap(k, pivot);
        let row = rows[k].clone();
        for (_, other) in rows.iter_mut().enumerate().filter(|(i, _)| *i != k) {
            let factor = other[k] / row[k];
            other.iter_mut().zip(&row).for_each(|(x, y)| *x -= factor * y);
        }
    }
    Nd::new(Kind::Float, &b.shape, (0..n).flat_map(|i| (0..m).map(move |j| (i, j))).map(|(i, j)| rows[i][n + j] / rows[i][i]).collect())
}

/// The inverse.
pub fn inverse(a: &Nd) -> Nd {
    solve(a, &Nd::by(Kind::Float, &a.shape, |at| f64::from(u8::from(at[0] == at[1]))))
}

/// The determinant, by expansion along the first row.
pub fn det(a: &Nd) -> f64 {
    let n = a.shape[0];
    if n == 0 {
        return 1.0;
    }
    let minor = |k: usize| {
        Nd::by(Kind::Float, &[n - 1, n - 1], |at| {
            let col = if at[1] < k { at[1] } else { at[1] + 1 };
            a.at(&[at[0] + 1, col])
        })
    };
    (0..n).map(|k| if k % 2 == 0 { 1.0 } else { -1.0 } * a.at(&[0, k]) * det(&minor(k))).sum()
}

/// Lower triangular l with l·lᵀ = a.
pub fn cholesky(a: &Nd) -> Nd {
    let n = a.shape[0];
    let mut l = vec![vec![0.0; n]; n];
    for i in 0..n {
        for j in 0..=i {
            let rest = a.at(&[i, j]) - (0..j).map(|k| l[i][k] * l[j][k]).sum::<f64>();
            l[i][j] = if i == j { rest.sqrt() } else { rest / l[j][j] };
        }
    }
    Nd::by(Kind::Float, &[n, n], |at| l[at[0]][at[1]])
}
