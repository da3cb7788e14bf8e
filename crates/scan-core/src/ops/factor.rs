//! Factorisations of one small row-major matrix in f64, plainly: the law that faster kernels are measured by.

use crate::base::Result;
use crate::ir::EvalCx;
use crate::types::memory;
use std::cmp::Ordering;

/// `P·a = L·U` with partial pivoting; L has a unit diagonal and shares the storage of U.
pub struct Lu {
    n: usize,
    lu: Vec<f64>,
    /// Row of a that became row i.
    rows: Vec<usize>,
    /// Determinant of the permutation.
    pub sign: f64,
}

impl Lu {
    /// Factorises. A column without a pivot leaves a zero on the diagonal of U.
    ///
    /// # Errors
    /// An interruption.
    pub fn new(cx: &mut EvalCx, n: usize, a: &[f64]) -> Result<Lu> {
        let mut f = Lu { n, lu: memory::copied(a), rows: memory::collect(0..n), sign: 1.0 };
        for k in 0..n {
            cx.worked((n - k) * (n - k))?;
            f.pivot(k);
            f.eliminate(k);
        }
        Ok(f)
    }

    /// Brings the largest element of a column to the diagonal.
    fn pivot(&mut self, k: usize) {
        let size = |row: usize| self.lu[row * self.n + k].abs();
        let best = (k + 1..self.n).fold(k, |best, row| if size(row) > size(best) { row } else { best });
        if best != k {
            (0..self.n).for_each(|j| self.lu.swap(k * self.n + j, best * self.n + j));
            self.rows.swap(k, best);
            self.sign = -self.sign;
        }
    }

    fn eliminate(&mut self, k: usize) {
        let n = self.n;
        let pivot = self.lu[k * n + k];
        if pivot == 0.0 {
            return;
        }
        for i in k + 1..n {
            let factor = self.lu[i * n + k] / pivot;
            self.lu[i * n + k] = factor;
            for j in k + 1..n {
                self.lu[i * n + j] -= factor * self.lu[k * n + j];
            }
        }
    }

    /// The diagonal of U.
    pub fn diagonal(&self) -> impl Iterator<Item = f64> {
        (0..self.n).map(|k| self.lu[k * self.n + k])
    }

    /// Solves for the k columns of b; `None` where the matrix is singular.
    ///
    /// # Errors
    /// An interruption.
    pub fn solve(&self, cx: &mut EvalCx, b: &[f64], k: usize) -> Result<Option<Vec<f64>>> {
        let n = self.n;
        if self.diagonal().any(|u| u == 0.0) {
            return Ok(None);
        }
        let mut x: Vec<f64> = memory::room(b.len());
        self.rows.iter().for_each(|&row| x.extend_from_slice(&b[row * k..(row + 1) * k]));
        forward(cx, n, k, |i, j| if i == j { 1.0 } else { self.lu[i * n + j] }, &mut x)?;
        backward(cx, n, k, |i, j| self.lu[i * n + j], &mut x)?;
        Ok(Some(x))
    }
}

/// `P·a·Q = l·d·m` with complete pivoting: l and m are triangular and have unit diagonals, and elements of at most 1. Where the pivots end,
/// nothing is left of the matrix.
pub struct CompleteLu {
    n: usize,
    lu: Lu,
    /// Column of a that became column j.
    columns: Vec<usize>,
}

impl CompleteLu {
    /// Factorises; `None` for a matrix with elements that are not finite.
    ///
    /// # Errors
    /// An interruption.
    pub fn new(cx: &mut EvalCx, n: usize, a: &[f64]) -> Result<Option<CompleteLu>> {
        if a.iter().any(|x| !x.is_finite()) {
            return Ok(None);
        }
        let lu = Lu { n, lu: memory::copied(a), rows: memory::collect(0..n), sign: 1.0 };
        let mut f = CompleteLu { n, lu, columns: memory::collect(0..n) };
        for k in 0..n {
            cx.worked(2 * (n - k) * (n - k))?;
            f.pivot(k);
            f.lu.eliminate(k);
        }
        Ok(Some(f))
    }

    /// Brings the column of the largest element of the rest to the diagonal, and its row.
    fn pivot(&mut self, k: usize) {
        let n = self.n;
        let size = |at: usize| self.lu.lu[at].abs();
        let rest = (k..n).flat_map(|i| (k..n).map(move |j| i * n + j));
        let best = rest.fold(k * n + k, |best, at| if size(at) > size(best) { at } else { best }) % n;
        if best != k {
            (0..n).for_each(|i| self.lu.lu.swap(i * n + k, i * n + best));
            self.columns.swap(k, best);
            self.lu.sign = -self.lu.sign;
        }
        self.lu.pivot(k);
    }

    /// d.
    pub fn diagonal(&self) -> impl Iterator<Item = f64> {
        self.lu.diagonal()
    }

    /// An element of l.
    pub fn l(&self, i: usize, j: usize) -> f64 {
        match i.cmp(&j) {
            Ordering::Greater => self.lu.lu[i * self.n + j],
            other => f64::from(other == Ordering::Equal),
        }
    }

    /// An element of m.
    pub fn m(&self, i: usize, j: usize) -> f64 {
        let pivot = self.lu.lu[i * self.n + i];
        match i.cmp(&j) {
            Ordering::Less if pivot != 0.0 => self.lu.lu[i * self.n + j] / pivot,
            other => f64::from(other == Ordering::Equal),
        }
    }

    /// `P·x·Q`.
    pub fn permuted(&self, x: &[f64]) -> Vec<f64> {
        memory::collect(self.lu.rows.iter().flat_map(|&i| self.columns.iter().map(move |&j| x[i * self.n + j])))
    }

    /// `Pᵀ·x·Qᵀ` with the sign of the permutations.
    pub fn restored(&self, x: &[f64]) -> Vec<f64> {
        let mut out = memory::zeros(x.len());
        let places = self.lu.rows.iter().flat_map(|&i| self.columns.iter().map(move |&j| i * self.n + j));
        places.zip(x).for_each(|(at, &x)| out[at] = self.lu.sign * x);
        out
    }
}

/// Overwrites b with the solution of a lower triangular system.
///
/// # Errors
/// An interruption.
pub fn forward(cx: &mut EvalCx, n: usize, k: usize, at: impl Fn(usize, usize) -> f64, b: &mut [f64]) -> Result<()> {
    (0..n).try_for_each(|i| substitute(cx, i, 0..i, k, &at, b))
}

/// Overwrites b with the solution of an upper triangular system.
///
/// # Errors
/// An interruption.
pub fn backward(cx: &mut EvalCx, n: usize, k: usize, at: impl Fn(usize, usize) -> f64, b: &mut [f64]) -> Result<()> {
    (0..n).rev().try_for_each(|i| substitute(cx, i, i + 1..n, k, &at, b))
}

/// Row i of the solution from the rows `known`.
fn substitute(
    cx: &mut EvalCx,
    i: usize,
    known: std::ops::Range<usize>,
    k: usize,
    at: &impl Fn(usize, usize) -> f64,
    b: &mut [f64],
) -> Result<()> {
    cx.worked(known.len() * k)?;
    for j in known {
        let factor = at(i, j);
        (0..k).for_each(|c| b[i * k + c] -= factor * b[j * k + c]);
    }
    let pivot = at(i, i);
    b[i * k..(i + 1) * k].iter_mut().for_each(|x| *x /= pivot);
    Ok(())
}

/// The lower triangular l with `l·lᵀ = a`, reading the lower part of a; `None` where a is not positive definite.
///
/// # Errors
/// An interruption.
pub fn cholesky(cx: &mut EvalCx, n: usize, a: &[f64]) -> Result<Option<Vec<f64>>> {
    let mut l = memory::zeros(n * n);
    for j in 0..n {
        cx.worked((n - j) * j)?;
        for i in j..n {
            let rest = a[i * n + j] - (0..j).map(|k| l[i * n + k] * l[j * n + k]).sum::<f64>();
            if i > j {
                l[i * n + j] = rest / l[j * n + j];
            } else if rest > 0.0 {
                l[i * n + i] = rest.sqrt();
            } else {
                return Ok(None);
            }
        }
    }
    Ok(Some(l))
}
