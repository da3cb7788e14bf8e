//! Factorisation by Householder's reflections of one row-major matrix in f64, in blocks of columns: reflections of a block are applied to the
//! rest together, as products (Schreiber, Van Loan, "A storage-efficient WY representation for products of Householder transformations", 1989).

use super::matmul::product_in;
use crate::base::Result;
use crate::ir::EvalCx;
use crate::scalar::product::{Matrix, Mode};
use crate::types::memory;

/// Columns of a block.
const BLOCK: usize = 32;

/// Reflections of some columns together: `I − v·t·vᵀ`, of the rows from one on.
struct Block {
    first: usize,
    columns: usize,
    /// A row for each row of the matrix from the first on.
    v: Vec<f64>,
    /// Upper triangular.
    t: Vec<f64>,
}

/// `a = q·r` of m rows and n columns: q has `min(m, n)` orthonormal columns, r as many rows and nothing below the diagonal. The signs are
/// LAPACK's.
pub struct Qr {
    rows: usize,
    columns: usize,
    /// r, and what is left of the rest.
    a: Vec<f64>,
    blocks: Vec<Block>,
}

impl Qr {
    /// Factorises.
    ///
    /// # Errors
    /// An interruption.
    pub fn new(cx: &mut EvalCx, [rows, columns]: [usize; 2], a: &[f64]) -> Result<Qr> {
        let mut f = Qr { rows, columns, a: memory::copied(a), blocks: vec![] };
        for first in (0..rows.min(columns)).step_by(BLOCK) {
            let block = f.reflect_block(cx, first)?;
            let rest = Part { width: columns, first, from: first + block.columns };
            block.apply(cx, true, &mut f.a, rest)?;
            f.blocks.push(block);
        }
        Ok(f)
    }
    /// r.
    pub fn r(&self) -> Vec<f64> {
        let k = self.rows.min(self.columns);
        memory::collect((0..k * self.columns).map(|at| if at % self.columns < at / self.columns { 0.0 } else { self.a[at] }))
    }
    /// q.
    ///
    /// # Errors
    /// An interruption.
    pub fn q(&self, cx: &mut EvalCx) -> Result<Vec<f64>> {
        let k = self.rows.min(self.columns);
        let mut q = memory::collect((0..self.rows * k).map(|at| f64::from(at / k == at % k)));
        for block in self.blocks.iter().rev() {
            block.apply(cx, false, &mut q, Part { width: k, first: block.first, from: block.first })?;
        }
        Ok(q)
    }
    /// Makes zeros below the diagonal of the columns of a block.
    fn reflect_block(&mut self, cx: &mut EvalCx, first: usize) -> Result<Block> {
        let columns = BLOCK.min(self.columns - first).min(self.rows - first);
        let (height, end) = (self.rows - first, first + columns);
        let mut block = Block { first, columns, v: memory::zeros(height * columns), t: memory::zeros(columns * columns) };
        for j in 0..columns {
            cx.worked(height * columns)?;
            let (v, tau) = reflection(memory::collect((first + j..self.rows).map(|i| self.a[i * self.columns + first + j])));
            reflect(&v, tau, &mut self.a, Part { width: self.columns, first: first + j, from: first + j }, end);
            block.push(j, &v, tau);
        }
        Ok(block)
    }
}

/// The elements of a matrix of so many columns from a row and a column on.
#[derive(Clone, Copy)]
pub struct Part {
    /// Columns of the whole matrix.
    pub width: usize,
    /// The first row.
    pub first: usize,
    /// The first column.
    pub from: usize,
}

/// Numbers below it have differences that are not normal: a power of two, by which quotients are exact.
const TINY: f64 = f64::MIN_POSITIVE / f64::EPSILON;

/// The vector v, with 1 in front, and τ of the reflection `I − τ·v·vᵀ` that takes x to a multiple of the first unit vector; τ is 0 where x
/// is one already.
pub fn reflection(mut x: Vec<f64>) -> (Vec<f64>, f64) {
    let scale = x[1..].iter().fold(0.0f64, |m, e| m.max(e.abs()));
    let head = std::mem::replace(&mut x[0], 1.0);
    if scale == 0.0 {
        return (x, 0.0);
    }
    let scale = scale.max(head.abs());
    if scale < TINY {
        // v and τ are those of any multiple of x, and differences of numbers that are not normal have few bits.
        x[0] = head;
        return reflection(x.into_iter().map(|e| e / TINY).collect());
    }
    let squares: f64 = x[1..].iter().map(|e| (e / scale) * (e / scale)).sum();
    let norm = scale * ((head / scale) * (head / scale) + squares).sqrt();
    let beta = if head < 0.0 { norm } else { -norm };
    x[1..].iter_mut().for_each(|e| *e /= head - beta);
    (x, (beta - head) / beta)
}

/// Takes `τ·v·(vᵀ·a)` from the columns of a part of a, up to a column.
pub fn reflect(v: &[f64], tau: f64, a: &mut [f64], part: Part, end: usize) {
    let Part { width, first, from } = part;
    let mut sums: Vec<f64> = memory::zeros(end.saturating_sub(from));
    for (v, row) in v.iter().zip(a[first * width..].chunks_exact(width)) {
        sums.iter_mut().zip(&row[from..end]).for_each(|(sum, x)| *sum += v * x);
    }
    for (v, row) in v.iter().zip(a[first * width..].chunks_exact_mut(width)) {
        let factor = tau * v;
        row[from..end].iter_mut().zip(&sums).for_each(|(x, sum)| *x -= factor * sum);
    }
}

impl Block {
    /// Adds reflection j: column j of t is `−τ·t·(vᵀ·v_j)`, and τ on the diagonal.
    fn push(&mut self, j: usize, v: &[f64], tau: f64) {
        let n = self.columns;
        let mut dots: Vec<f64> = memory::zeros(j);
        for (i, &x) in v.iter().enumerate() {
            let row = &mut self.v[(j + i) * n..(j + i + 1) * n];
            dots.iter_mut().zip(&*row).for_each(|(dot, y)| *dot += x * y);
            row[j] = x;
        }
        for i in 0..j {
            let sum: f64 = (i..j).map(|l| self.t[i * n + l] * dots[l]).sum();
            self.t[i * n + j] = -tau * sum;
        }
        self.t[j * n + j] = tau;
    }
    /// Reflects a part of a, whose first row is that of the block; in the order of the reflections, or against it.
    fn apply(&self, cx: &mut EvalCx, forward: bool, a: &mut [f64], part: Part) -> Result<()> {
        let (height, n, wide) = (self.v.len() / self.columns.max(1), self.columns, part.width - part.from);
        if wide == 0 {
            return Ok(());
        }
        let v = Matrix::rows(&self.v[..], n);
        let t = Matrix::rows(&self.t[..], n);
        let t = if forward { t.transposed() } else { t };
        let (mut sums, mut turned): (Vec<f64>, Vec<f64>) = (memory::zeros(n * wide), memory::zeros(n * wide));
        let given = Matrix::rows(&*a, part.width).from(part.first, part.from);
        product_in(cx, [n, height, wide], v.transposed(), given, Matrix::rows(&mut sums[..], wide), Mode::Set)?;
        product_in(cx, [n, n, wide], t, Matrix::rows(&sums[..], wide), Matrix::rows(&mut turned[..], wide), Mode::Set)?;
        let to = Matrix::rows(a, part.width).from(part.first, part.from);
        product_in(cx, [height, n, wide], v, Matrix::rows(&turned[..], wide), to, Mode::Sub)
    }
}
