//! Eigenvalues of symmetric matrices and singular values of any, of one row-major matrix in f64.

use super::matmul::product_in;
use super::reflect::{Part, Qr, reflect, reflection};
use super::triangle::transposed;
use crate::base::Result;
use crate::ir::EvalCx;
use crate::scalar::product::{Matrix, Mode};
use crate::types::memory;

/// Eigenvalues in ascending order, and the eigenvectors as columns, of a symmetric matrix of n rows of which the lower half is read. All are
/// NaN where an element is not finite.
///
/// Reflections make the matrix tridiagonal, and rotations diagonal: the implicit QL method (Bowdler, Martin, Reinsch, Wilkinson, "The QR and
/// QL algorithms for symmetric matrices", 1968).
///
/// # Errors
/// An interruption.
pub fn symmetric(cx: &mut EvalCx, n: usize, a: &[f64]) -> Result<(Vec<f64>, Vec<f64>)> {
    let mut a: Vec<f64> = memory::collect((0..n * n).map(|at| a[(at / n).max(at % n) * n + (at / n).min(at % n)]));
    let none = || (memory::filled(f64::NAN, n), memory::filled(f64::NAN, n * n));
    let Some(scale) = largest(&a) else { return Ok(none()) };
    a.iter_mut().for_each(|x| *x /= scale);
    let (mut diagonal, mut beside, mut vectors) = tridiagonal(cx, n, a)?;
    if !rotate_away(cx, &mut diagonal, &mut beside, &mut vectors)? {
        return Ok(none());
    }
    let mut order: Vec<usize> = memory::collect(0..n);
    order.sort_by(|&i, &j| diagonal[i].total_cmp(&diagonal[j]));
    let values = memory::collect(order.iter().map(|&i| diagonal[i] * scale));
    let rows: Vec<f64> = memory::collect(order.iter().flat_map(|&i| &vectors[i * n..(i + 1) * n]).copied());
    Ok((values, transposed(&rows, n)))
}

/// The largest magnitude, 1 where all are 0; `None` where an element is not finite.
fn largest(a: &[f64]) -> Option<f64> {
    let scale = a.iter().try_fold(0.0f64, |m, x| x.is_finite().then(|| m.max(x.abs())))?;
    Some(if scale == 0.0 { 1.0 } else { scale })
}

/// The diagonal and what is beside it of `qᵀ·a·q`, and qᵀ.
fn tridiagonal(cx: &mut EvalCx, n: usize, mut a: Vec<f64>) -> Result<(Vec<f64>, Vec<f64>, Vec<f64>)> {
    let mut reflections = vec![];
    for k in 0..n.saturating_sub(2) {
        cx.worked(4 * (n - k) * (n - k))?;
        let (v, tau) = reflection(memory::collect((k + 1..n).map(|i| a[i * n + k])));
        if tau != 0.0 {
            reflect_both_sides(&v, tau, &mut a, n, k);
        }
        reflections.push((v, tau));
    }
    let mut q: Vec<f64> = memory::collect((0..n * n).map(|at| f64::from(at / n == at % n)));
    for (k, (v, tau)) in reflections.iter().enumerate().rev() {
        cx.worked(4 * (n - k) * (n - k))?;
        reflect(v, *tau, &mut q, Part { width: n, first: k + 1, from: k + 1 }, n);
    }
    let diagonal = memory::collect((0..n).map(|i| a[i * n + i]));
    let beside = memory::collect((0..n).map(|i| if i + 1 < n { a[(i + 1) * n + i] } else { 0.0 }));
    Ok((diagonal, beside, transposed(&q, n)))
}

/// Reflects the rows and the columns behind k: `a − v·wᵀ − w·vᵀ` with `p = τ·a·v` and `w = p − τ/2·(pᵀ·v)·v`.
fn reflect_both_sides(v: &[f64], tau: f64, a: &mut [f64], n: usize, k: usize) {
    let mut w: Vec<f64> = memory::zeros(v.len());
    for (i, &x) in v.iter().enumerate() {
        let row = &a[(k + 1 + i) * n + k + 1..(k + 2 + i) * n];
        w.iter_mut().zip(row).for_each(|(sum, a)| *sum += tau * x * a);
    }
    let half: f64 = 0.5 * tau * w.iter().zip(v).map(|(p, v)| p * v).sum::<f64>();
    w.iter_mut().zip(v).for_each(|(w, v)| *w -= half * v);
    for i in 0..v.len() {
        let row = &mut a[(k + 1 + i) * n + k + 1..(k + 2 + i) * n];
        row.iter_mut().zip(v.iter().zip(&w)).for_each(|(a, (vj, wj))| *a -= v[i] * wj + w[i] * vj);
    }
    // The column that is now a multiple of a unit vector: `x − τ·v·(vᵀ·x)`.
    let column: Vec<f64> = memory::collect((k + 1..n).map(|i| a[i * n + k]));
    let along: f64 = tau * column.iter().zip(v).map(|(x, v)| x * v).sum::<f64>();
    a[(k + 1) * n + k] = column[0] - along;
}

/// Rotates what is beside the diagonal away; rows of `vectors` turn along. False where that does not end.
fn rotate_away(cx: &mut EvalCx, d: &mut [f64], e: &mut [f64], vectors: &mut [f64]) -> Result<bool> {
    let n = d.len();
    for l in 0..n {
        for turn in 0.. {
            let m = (l..n - 1).find(|&m| e[m].abs() <= f64::EPSILON * (d[m].abs() + d[m + 1].abs()) + TINY).unwrap_or(n - 1);
            if m == l {
                break;
            }
            if turn == 60 {
                return Ok(false);
            }
            cx.worked(6 * n * (m - l))?;
            sweep(d, e, vectors, l, m);
        }
    }
    Ok(true)
}

/// One implicit step on the rows l to m.
fn sweep(d: &mut [f64], e: &mut [f64], vectors: &mut [f64], l: usize, m: usize) {
    let n = d.len();
    let g = (d[l + 1] - d[l]) / (2.0 * e[l]);
    let mut g = d[m] - d[l] + e[l] / (g + (g * g + 1.0).sqrt().copysign(g));
    let (mut s, mut c, mut p) = (1.0, 1.0, 0.0);
    for i in (l..m).rev() {
        let (f, b) = (s * e[i], c * e[i]);
        // Squares that are not normal have few bits.
        let r = if f.abs().max(g.abs()) < TINY { libm::hypot(f, g) } else { (f * f + g * g).sqrt() };
        e[i + 1] = r;
        if r == 0.0 {
            d[i + 1] -= p;
            e[m] = 0.0;
            return;
        }
        (s, c) = (f / r, g / r);
        g = d[i + 1] - p;
        let turned = (d[i] - g) * s + 2.0 * c * b;
        p = s * turned;
        d[i + 1] = g + p;
        g = c * turned - b;
        let (lower, upper) = vectors[i * n..(i + 2) * n].split_at_mut(n);
        rotate(upper, lower, c, s);
    }
    d[l] -= p;
    e[l] = g;
    e[m] = 0.0;
}

/// `(c·x + s·y, c·y − s·x)` in place of x and y.
fn rotate(x: &mut [f64], y: &mut [f64], c: f64, s: f64) {
    for (x, y) in x.iter_mut().zip(y) {
        (*x, *y) = (c * *x + s * *y, c * *y - s * *x);
    }
}

/// `a = u·diag(s)·w`: the columns of u (m × k) and the rows of w (k × n) are orthonormal, k the smaller extent; s descends.
pub struct Singular {
    /// k columns.
    pub u: Vec<f64>,
    /// The singular values.
    pub s: Vec<f64>,
    /// k rows.
    pub w: Vec<f64>,
}

/// The singular value decomposition; all NaN where an element is not finite.
///
/// Rotations make the rows of r, of `a = q·r`, orthogonal (Hestenes, "Inversion of matrices by biorthogonalization and related results", 1958;
/// Drmač, Veselić, "New fast and accurate Jacobi SVD algorithm", 2008).
///
/// # Errors
/// An interruption.
pub fn singular(cx: &mut EvalCx, [m, n]: [usize; 2], a: &[f64]) -> Result<Singular> {
    if m < n {
        let Singular { u, s, w } = singular(cx, [n, m], &turned(a, [m, n]))?;
        return Ok(Singular { u: turned(&w, [m, m]), s, w: turned(&u, [n, m]) });
    }
    let Some(scale) = largest(a) else {
        let nan = |n: usize| memory::filled(f64::NAN, n);
        return Ok(Singular { u: nan(m * n), s: nan(n), w: nan(n * n) });
    };
    let scaled: Vec<f64> = memory::collect(a.iter().map(|x| x / scale));
    let f = Qr::new(cx, [m, n], &scaled)?;
    let mut rows = f.r();
    let mut turns: Vec<f64> = memory::collect((0..n * n).map(|at| f64::from(at / n == at % n)));
    let norms = orthogonalise(cx, n, &mut rows, &mut turns)?;
    let mut order: Vec<usize> = memory::collect(0..n);
    order.sort_by(|&i, &j| norms[j].total_cmp(&norms[i]));
    order.iter().for_each(|&i| rows[i * n..(i + 1) * n].iter_mut().for_each(|x| *x /= norms[i]));
    let w: Vec<f64> = memory::collect(order.iter().flat_map(|&i| &rows[i * n..(i + 1) * n]).copied());
    let turns: Vec<f64> = memory::collect(order.iter().flat_map(|&i| &turns[i * n..(i + 1) * n]).copied());
    let q = f.q(cx)?;
    let u = product(cx, [m, n, n], &q, &turned(&turns, [n, n]))?;
    let rank = order.iter().filter(|&&i| norms[i] > TINY).count();
    let s = memory::collect(order.iter().map(|&i| if norms[i] > TINY { norms[i] * scale } else { 0.0 }));
    Ok(Singular { u, s, w: completed(cx, n, w, rank)? })
}

/// Rows no longer than this, of a matrix whose largest element is 1, are nothing; the squares of longer ones are normal numbers.
const TINY: f64 = 1e-150;

/// Rotates pairs of rows until all are orthogonal, and rows of `turns` along; their lengths.
fn orthogonalise(cx: &mut EvalCx, n: usize, rows: &mut [f64], turns: &mut [f64]) -> Result<Vec<f64>> {
    let enough = f64::EPSILON * (4.0 + (n as f64).sqrt());
    for _ in 0..SWEEPS {
        let mut squares: Vec<f64> = memory::collect((0..n).map(|i| dot(&rows[i * n..(i + 1) * n], &rows[i * n..(i + 1) * n])));
        let mut rotated = false;
        for i in 0..n {
            for j in i + 1..n {
                let (above, below) = rows.split_at_mut(j * n);
                let (x, y) = (&mut above[i * n..(i + 1) * n], &mut below[..n]);
                cx.worked(n)?;
                let cosine = dot(x, y);
                let lengths = squares[i].sqrt() * squares[j].sqrt();
                if cosine.abs() <= enough * lengths || squares[i].min(squares[j]) < TINY * TINY {
                    continue;
                }
                rotated = true;
                cx.worked(4 * n)?;
                let zeta = (squares[j] - squares[i]) / (2.0 * cosine);
                let t = 1.0f64.copysign(zeta) / (zeta.abs() + (zeta * zeta + 1.0).sqrt());
                let c = 1.0 / (t * t + 1.0).sqrt();
                rotate(x, y, c, -c * t);
                let (above, below) = turns.split_at_mut(j * n);
                rotate(&mut above[i * n..(i + 1) * n], &mut below[..n], c, -c * t);
                (squares[i], squares[j]) = ((squares[i] - t * cosine).max(0.0), squares[j] + t * cosine);
            }
        }
        if !rotated {
            break;
        }
    }
    Ok(memory::collect(rows.chunks_exact(n.max(1)).map(|row| dot(row, row).sqrt())))
}

/// Jacobi's method converges quadratically: it takes six to ten sweeps.
const SWEEPS: usize = 40;

/// `Σ x·y` in eight partial sums.
fn dot(x: &[f64], y: &[f64]) -> f64 {
    let (mut sums, whole) = ([0.0; 8], x.len() / 8 * 8);
    for (x, y) in x[..whole].chunks_exact(8).zip(y.chunks_exact(8)) {
        (0..8).for_each(|i| sums[i] += x[i] * y[i]);
    }
    sums.iter().sum::<f64>() + x[whole..].iter().zip(&y[whole..]).map(|(x, y)| x * y).sum::<f64>()
}

/// Orthonormal rows, of which those behind the rank are found anew.
fn completed(cx: &mut EvalCx, n: usize, mut rows: Vec<f64>, rank: usize) -> Result<Vec<f64>> {
    if rank < n {
        rows[rank * n..].fill(0.0);
        let q = turned(&Qr::new(cx, [n, n], &turned(&rows, [n, n]))?.q(cx)?, [n, n]);
        rows[rank * n..].copy_from_slice(&q[rank * n..]);
    }
    Ok(rows)
}

/// The transpose of a matrix of m rows.
pub fn turned(a: &[f64], [m, n]: [usize; 2]) -> Vec<f64> {
    memory::collect((0..m * n).map(|at| a[at % m * n + at / m]))
}

/// A product of matrices.
///
/// # Errors
/// An interruption.
pub fn product(cx: &mut EvalCx, [m, k, n]: [usize; 3], a: &[f64], b: &[f64]) -> Result<Vec<f64>> {
    let mut out: Vec<f64> = memory::zeros(m * n);
    product_in(cx, [m, k, n], Matrix::rows(a, k), Matrix::rows(b, n), Matrix::rows(&mut out[..], n), Mode::Set)?;
    Ok(out)
}
