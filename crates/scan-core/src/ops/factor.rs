//! Factorisations of one row-major matrix in f64.

use super::matmul::product_in;
use super::triangle::{LEAF, Sides, Triangle, backward, forward, half};
use crate::base::Result;
use crate::ir::EvalCx;
use crate::scalar::product::{Matrix, Mode};
use crate::types::memory;
use std::cmp::Ordering;
use std::ops::Range;

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
        let mut swaps: Vec<usize> = memory::zeros(n);
        factorise(cx, &mut f.lu, n, 0..n, &mut swaps)?;
        for (k, &best) in swaps.iter().enumerate().filter(|(k, best)| k != *best) {
            f.rows.swap(k, best);
            f.sign = -f.sign;
        }
        Ok(f)
    }

    /// The diagonal of U.
    pub fn diagonal(&self) -> impl Iterator<Item = f64> {
        (0..self.n).map(|k| self.lu[k * self.n + k])
    }

    /// Solves for the k columns of b; false where the matrix is singular.
    ///
    /// # Errors
    /// An interruption.
    pub fn solve(&self, cx: &mut EvalCx, b: &[f64], k: usize, x: &mut [f64]) -> Result<bool> {
        if self.diagonal().any(|u| u == 0.0) {
            return Ok(false);
        }
        for (&row, x) in self.rows.iter().zip(x.chunks_exact_mut(k.max(1))) {
            x.copy_from_slice(&b[row * k..(row + 1) * k]);
        }
        let triangle = Triangle::of(&self.lu, self.n);
        forward(cx, triangle.with_ones(), x, &Sides::all(k))?;
        backward(cx, triangle, x, &Sides::all(k))?;
        Ok(true)
    }
}

/// Factorises some columns of rows of so many elements, from the diagonal down, by halves: the left half, then what it leaves of the right
/// one, which is a product, and that. Notes by which row each was swapped; whole rows are swapped.
fn factorise(cx: &mut EvalCx, a: &mut [f64], width: usize, columns: Range<usize>, swaps: &mut [usize]) -> Result<()> {
    if columns.len() <= LEAF {
        for k in columns.clone() {
            swaps[k] = pivot(a, width, k);
            eliminate(a, width, k, columns.end);
        }
        return cx.worked((a.len() / width.max(1) - columns.start) * columns.len() * columns.len());
    }
    if columns.len() <= PANEL && width >= 2 * PANEL {
        return factorise_beside(cx, a, width, columns, swaps);
    }
    let (lo, mid) = (columns.start, half(&columns));
    let right = Sides { width, columns: mid..columns.end };
    factorise(cx, a, width, lo..mid, swaps)?;
    let diagonal: Vec<f64> = memory::collect((lo..mid).flat_map(|i| &a[i * width + lo..i * width + mid]).copied());
    let left: Vec<f64> = memory::collect(a[mid * width..].chunks_exact(width).flat_map(|row| &row[lo..mid]).copied());
    let (above, below) = a.split_at_mut(mid * width);
    let above = &mut above[lo * width..];
    forward(cx, Triangle::of(&diagonal, mid - lo).with_ones(), above, &right)?;
    let extents = [below.len() / width, mid - lo, columns.end - mid];
    let known = Matrix::rows(&*above, width).from(0, mid);
    product_in(cx, extents, Matrix::rows(&left, mid - lo), known, Matrix::rows(below, width).from(0, mid), Mode::Sub)?;
    factorise(cx, a, width, mid..columns.end, swaps)
}

/// Columns that are copied to lie side by side while they are factorised: far apart, their rows fall on the same places of the cache.
const PANEL: usize = 32;

fn factorise_beside(cx: &mut EvalCx, a: &mut [f64], width: usize, columns: Range<usize>, swaps: &mut [usize]) -> Result<()> {
    let (lo, n) = (columns.start, columns.len());
    let mut panel: Vec<f64> = memory::collect(a[lo * width..].chunks_exact(width).flat_map(|row| &row[columns.clone()]).copied());
    let swaps = &mut swaps[columns.clone()];
    factorise(cx, &mut panel, n, 0..n, swaps)?;
    for (k, best) in swaps.iter_mut().enumerate() {
        *best += lo;
        swap_rows(a, width, lo + k, *best);
    }
    let rows = a[lo * width..].chunks_exact_mut(width).zip(panel.chunks_exact(n));
    rows.for_each(|(row, panel)| row[columns.clone()].copy_from_slice(panel));
    Ok(())
}

/// Brings the largest element of column k, from the diagonal down, to the diagonal; the row where it was.
fn pivot(a: &mut [f64], width: usize, k: usize) -> usize {
    let size = |row: usize| a[row * width + k].abs();
    let best = (k + 1..a.len() / width).fold(k, |best, row| if size(row) > size(best) { row } else { best });
    swap_rows(a, width, k, best);
    best
}

fn swap_rows(a: &mut [f64], width: usize, i: usize, j: usize) {
    if i < j {
        let (above, below) = a.split_at_mut(j * width);
        above[i * width..(i + 1) * width].swap_with_slice(&mut below[..width]);
    }
}

/// Takes row k from the rows below, so that nothing is left of column k, up to a column; the factors stay in its place.
fn eliminate(a: &mut [f64], width: usize, k: usize, end: usize) {
    let (above, below) = a.split_at_mut((k + 1) * width);
    let row = &above[k * width + k..k * width + end];
    let (pivot, row) = (row[0], &row[1..]);
    if pivot == 0.0 {
        return;
    }
    for to in below.chunks_exact_mut(width) {
        let factor = to[k] / pivot;
        to[k] = factor;
        to[k + 1..end].iter_mut().zip(row).for_each(|(to, x)| *to -= factor * x);
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
            eliminate(&mut f.lu.lu, n, k, n);
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
        let row = pivot(&mut self.lu.lu, n, k);
        if row != k {
            self.lu.rows.swap(k, row);
            self.lu.sign = -self.lu.sign;
        }
    }

    /// d.
    pub fn diagonal(&self) -> impl Iterator<Item = f64> {
        self.lu.diagonal()
    }

    /// l.
    pub fn l(&self) -> Vec<f64> {
        let element = |i: usize, j: usize| match i.cmp(&j) {
            Ordering::Greater => self.lu.lu[i * self.n + j],
            other => f64::from(other == Ordering::Equal),
        };
        memory::collect((0..self.n * self.n).map(|at| element(at / self.n, at % self.n)))
    }

    /// m.
    pub fn m(&self) -> Vec<f64> {
        let element = |i: usize, j: usize| {
            let pivot = self.lu.lu[i * self.n + i];
            match i.cmp(&j) {
                Ordering::Less if pivot != 0.0 => self.lu.lu[i * self.n + j] / pivot,
                other => f64::from(other == Ordering::Equal),
            }
        };
        memory::collect((0..self.n * self.n).map(|at| element(at / self.n, at % self.n)))
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
