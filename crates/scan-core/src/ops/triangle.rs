//! Triangular systems and Cholesky's factor, by halves: what is known is taken from what is not by products, in which nearly all of the
//! work is.

use super::matmul::product_in;
use super::shape::turn;
use crate::base::Result;
use crate::ir::EvalCx;
use crate::scalar::product::{Matrix, Mode};
use crate::scalar::slices;
use crate::types::memory;
use std::ops::Range;

/// Rows that are not halved any more.
pub(super) use crate::scalar::leaves::LEAF;

/// A triangle of n rows: elements on the other side of the diagonal are not read.
#[derive(Clone, Copy)]
pub struct Triangle<'a> {
    matrix: Matrix<&'a [f64]>,
    n: usize,
    /// Its diagonal is one, whatever is there.
    unit: bool,
}

impl<'a> Triangle<'a> {
    /// In the rows of a square matrix.
    pub fn of(a: &'a [f64], n: usize) -> Triangle<'a> {
        Triangle { matrix: Matrix::rows(a, n), n, unit: false }
    }
    /// With ones on the diagonal.
    pub fn with_ones(self) -> Triangle<'a> {
        Triangle { unit: true, ..self }
    }
    /// Rows for columns.
    pub fn transposed(self) -> Triangle<'a> {
        Triangle { matrix: self.matrix.transposed(), ..self }
    }
}

/// Where right sides lie in rows of so many elements: columns from one on.
#[derive(Clone)]
pub struct Sides {
    /// Elements of a row.
    pub width: usize,
    /// The columns that are right sides.
    pub columns: Range<usize>,
}

impl Sides {
    /// All of rows of k elements.
    pub fn all(k: usize) -> Sides {
        Sides { width: k, columns: 0..k }
    }
    fn row<'a>(&self, b: &'a mut [f64], i: usize) -> &'a mut [f64] {
        &mut b[i * self.width + self.columns.start..i * self.width + self.columns.end]
    }
}

/// Overwrites right sides, a row of b for each row of the triangle, with the solution of a lower triangular system.
///
/// # Errors
/// An interruption.
pub fn forward(cx: &mut EvalCx, l: Triangle, b: &mut [f64], sides: &Sides) -> Result<()> {
    if !sides.columns.is_empty() { forward_rows(cx, l, b, sides, 0..l.n) } else { Ok(()) }
}

fn forward_rows(cx: &mut EvalCx, l: Triangle, b: &mut [f64], sides: &Sides, rows: Range<usize>) -> Result<()> {
    if rows.len() <= LEAF {
        return match sides.columns.len() {
            0..NARROW => rows.clone().try_for_each(|i| substitute(cx, l, b, sides, i, rows.start..i)),
            _ => substitute_leaf(cx, l, b, sides, rows, false),
        };
    }
    let mid = half(&rows);
    forward_rows(cx, l, b, sides, rows.start..mid)?;
    take(cx, l, b, sides, mid..rows.end, rows.start..mid)?;
    forward_rows(cx, l, b, sides, mid..rows.end)
}

/// As [`forward`], with an upper triangular system.
///
/// # Errors
/// An interruption.
pub fn backward(cx: &mut EvalCx, u: Triangle, b: &mut [f64], sides: &Sides) -> Result<()> {
    if !sides.columns.is_empty() { backward_rows(cx, u, b, sides, 0..u.n) } else { Ok(()) }
}

fn backward_rows(cx: &mut EvalCx, u: Triangle, b: &mut [f64], sides: &Sides, rows: Range<usize>) -> Result<()> {
    if rows.len() <= LEAF {
        return match sides.columns.len() {
            0..NARROW => rows.clone().rev().try_for_each(|i| substitute(cx, u, b, sides, i, i + 1..rows.end)),
            _ => substitute_leaf(cx, u, b, sides, rows, true),
        };
    }
    let mid = half(&rows);
    backward_rows(cx, u, b, sides, mid..rows.end)?;
    take(cx, u, b, sides, rows.start..mid, mid..rows.end)?;
    backward_rows(cx, u, b, sides, rows.start..mid)
}

/// The middle of more than [`LEAF`] rows, where a part has a multiple of so many.
pub(super) fn half(rows: &Range<usize>) -> usize {
    rows.start + rows.len().div_ceil(2).next_multiple_of(LEAF)
}

/// Takes from some rows of the right sides what others, which are solved, contribute to them.
fn take(cx: &mut EvalCx, t: Triangle, b: &mut [f64], sides: &Sides, from: Range<usize>, known: Range<usize>) -> Result<()> {
    let columns = sides.columns.clone();
    let middle = from.start.max(known.start) * sides.width;
    let (above, below) = b.split_at_mut(middle);
    let (known_rows, to, first) = if known.start < from.start { (&*above, below, known.start) } else { (&*below, above, 0) };
    let to_first = if known.start < from.start { 0 } else { from.start };
    let known_rows = Matrix::rows(known_rows, sides.width).from(first, columns.start);
    let to = Matrix::rows(to, sides.width).from(to_first, columns.start);
    let extents = [from.len(), known.len(), columns.len()];
    product_in(cx, extents, t.matrix.from(from.start, known.start), known_rows, to, Mode::Sub)
}

/// For fewer right sides it does not pay to have the triangle's rows side by side.
const NARROW: usize = 4;

/// Rows of the solution from those alone, as [`substitute`] makes them.
fn substitute_leaf(cx: &mut EvalCx, t: Triangle, b: &mut [f64], sides: &Sides, rows: Range<usize>, upper: bool) -> Result<()> {
    let (m, first) = (rows.len(), rows.start);
    cx.worked(m * m * sides.columns.len())?;
    let mut square = [0.0; LEAF * LEAF];
    for i in 0..m {
        let known = if upper { i..m } else { 0..i + 1 };
        known.for_each(|j| square[i * LEAF + j] = t.matrix.at(first + i, first + j));
    }
    let b = &mut b[first * sides.width..rows.end * sides.width];
    slices::substitute_leaf(&square, m, (upper, t.unit), b, (sides.width, sides.columns.start, sides.columns.len()));
    Ok(())
}

/// Row i of the solution from rows beside it that are known: product by product, so that a right side's solution is the same whatever
/// stands beside it.
fn substitute(cx: &mut EvalCx, t: Triangle, b: &mut [f64], sides: &Sides, i: usize, known: Range<usize>) -> Result<()> {
    cx.worked((known.len() + 1) * sides.columns.len())?;
    let (row, rows) = beside(b, sides, i, &known);
    for (j, from) in known.zip(rows.chunks_exact(sides.width)) {
        let factor = t.matrix.at(i, j);
        row.iter_mut().zip(&from[sides.columns.clone()]).for_each(|(x, from)| *x -= factor * from);
    }
    if !t.unit {
        let pivot = t.matrix.at(i, i);
        sides.row(b, i).iter_mut().for_each(|x| *x /= pivot);
    }
    Ok(())
}

/// Row i of right sides, and whole rows right above or below it.
fn beside<'a>(b: &'a mut [f64], sides: &Sides, i: usize, known: &Range<usize>) -> (&'a mut [f64], &'a [f64]) {
    let width = sides.width;
    let (row, rows) = if known.start > i {
        let (above, below) = b.split_at_mut((i + 1) * width);
        (&mut above[i * width..], &below[..known.len() * width])
    } else {
        let (above, below) = b.split_at_mut(i * width);
        (&mut below[..width], &above[known.start * width..])
    };
    (&mut row[sides.columns.clone()], rows)
}

/// The lower triangular l with `l·lᵀ = a`, reading the lower part of a; `None` where a is not positive definite.
///
/// # Errors
/// An interruption.
pub fn cholesky(cx: &mut EvalCx, n: usize, a: &[f64]) -> Result<Option<Vec<f64>>> {
    // The upper triangle u with `uᵀ·u = a`: its rows are what products and systems read and write.
    let mut u = transposed(a, n);
    if !cholesky_rows(cx, &mut u, n, 0..n)? {
        return Ok(None);
    }
    let mut l = transposed(&u, n);
    (0..n).for_each(|i| l[i * n + i + 1..(i + 1) * n].fill(0.0));
    Ok(Some(l))
}

fn cholesky_rows(cx: &mut EvalCx, u: &mut [f64], n: usize, rows: Range<usize>) -> Result<bool> {
    if rows.len() <= LEAF {
        cx.worked(rows.len() * rows.len() * rows.len())?;
        return Ok(slices::cholesky_leaf(u, n, rows.start, rows.len()));
    }
    let mid = half(&rows);
    if !cholesky_rows(cx, u, n, rows.start..mid)? {
        return Ok(false);
    }
    let (lo, known) = (rows.start, mid - rows.start);
    let diagonal: Vec<f64> = memory::collect((lo..mid).flat_map(|i| &u[i * n + lo..i * n + mid]).copied());
    let (above, below) = u.split_at_mut(mid * n);
    let right = Sides { width: n, columns: mid..rows.end };
    forward(cx, Triangle::of(&diagonal, known).transposed(), &mut above[lo * n..], &right)?;
    // Only what is above the diagonal is needed of the rest: a strip of rows begins at its own diagonal.
    for i in (mid..rows.end).step_by(STRIP) {
        let strip = STRIP.min(rows.end - i);
        let factor = Matrix::rows(&*above, n).from(lo, i);
        let to = Matrix::rows(&mut *below, n).from(i - mid, i);
        product_in(cx, [strip, known, rows.end - i], factor.transposed(), factor, to, Mode::Sub)?;
    }
    cholesky_rows(cx, u, n, mid..rows.end)
}

/// Rows of the rest that are computed at once.
const STRIP: usize = 64;

/// The transpose of a square matrix.
pub(super) fn transposed(a: &[f64], n: usize) -> Vec<f64> {
    let mut out = memory::zeros(n * n);
    turn(a, 0, n as isize, [n, n], &mut out);
    out
}
