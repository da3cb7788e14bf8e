//! Linear algebra. Gradients: Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
//! differentiation" (2008); Murray, "Differentiation of the Cholesky decomposition" (2016).

use super::args::{expect_count, fit, one};
use super::batch::products;
use super::factor::Lu;
use super::region::spread;
use super::support::agree;
use super::triangle::{Sides, Triangle, backward, cholesky, forward};
use crate::bail;
use crate::base::{Diagnostic, Kind, Result};
use crate::ir::op::*;
use crate::ir::{Graph, Value};
use crate::scalar::product::Stack;
use crate::scalar::slices;
use crate::scalar::systems::SMALL;
use crate::types::shape::{Extents, broadcast_dims, broadcast_shapes, tuple};
use crate::types::{Array, DType, Dim, Type, memory};

/// dtype and extent of square matrices.
///
/// # Errors
/// `E0222` below two axes, `E0603` where the last two extents differ.
fn square_type(op: &str, a: &Type) -> Result<Dim> {
    let [.., n, m] = &a.dims[..] else { bail!(Type, "E0222", "`{op}` takes square matrices, got {a}") };
    match agree(n, m) {
        Some(dim) => Ok(dim),
        None => bail!(Linalg, "E0603", "`{op}` takes square matrices, got {a}"),
    }
}

/// Extent of square matrices at run time.
///
/// # Errors
/// `E0603` where the last two extents differ.
pub(super) fn square(op: &str, a: &Array) -> Result<usize> {
    match a.shape() {
        [.., n, m] if n == m => Ok(*n),
        shape => bail!(Linalg, "E0603", "`{op}` takes square matrices, got shape {}", tuple(shape)),
    }
}

/// `the matrix`, or which one of a batch.
fn which(batch: usize, idx: usize) -> String {
    if batch == 1 { "the matrix".into() } else { format!("matrix {idx} of the batch") }
}

/// The error of a matrix without an inverse.
fn singular(op: &str, batch: usize, idx: usize) -> Box<Diagnostic> {
    Diagnostic::new(Kind::Linalg, "E0601", format!("`{op}`: {} is singular", which(batch, idx)))
}

/// That of a matrix whose inverse may have been asked for by a gradient.
pub(super) fn singular_maybe_of_slogdet(op: &str, batch: usize, idx: usize) -> Box<Diagnostic> {
    singular(op, batch, idx)
        .note("it may be the gradient of `slogdet` that asks for this inverse: `det` has a gradient of singular matrices, too")
        .help("a small multiple of the identity makes it regular: a + 1e-6 * eye(n)")
}

/// The error of a matrix `a` without a Cholesky factor. NaN comes from elsewhere, so it is what the message speaks of.
fn not_positive(op: &str, batch: usize, idx: usize, a: &[f64]) -> Box<Diagnostic> {
    let (matrix, of_nan) = (which(batch, idx), a.iter().any(|x| x.is_nan()));
    let what = if of_nan { "holds NaN" } else { "is not positive definite" };
    let made = Diagnostic::new(Kind::Linalg, "E0602", format!("`{op}`: {matrix} {what}"));
    if of_nan { made.help("look for what made it NaN: the matrix is what this was given") } else { made }
}

/// Applies a function to each matrix of `n · m` elements, in f64; the results follow each other.
pub(super) fn each<T>(x: &Array, size: usize, mut f: impl FnMut(usize, usize, &[f64]) -> Result<T>) -> Result<Vec<T>> {
    let (values, batch) = (x.to_f64_vec(), batch_of(x));
    (0..batch).map(|i| f(batch, i, &values[i * size..(i + 1) * size])).collect()
}

/// Number of matrices.
fn batch_of(x: &Array) -> usize {
    x.shape()[..x.rank() - 2].iter().product()
}

/// The lower triangle with its diagonal halved: `Φ` of Murray.
fn phi(g: &mut Graph, m: Value) -> Value {
    let with = g.emit(Tri { lower: true, k: 0 }, &[m]);
    let without = g.emit(Tri { lower: true, k: -1 }, &[m]);
    let (sum, half) = (g.add(with, without), g.number(g.ty(m).dtype, 0.5));
    g.mul(sum, half)
}

/// The cotangent of the lower part of a matrix that stands for a symmetric one, from that of all elements.
pub(super) fn phi_symmetric(g: &mut Graph, m: Value) -> Value {
    let transposed = g.transpose_last(m);
    let sum = g.add(m, transposed);
    phi(g, sum)
}

/// The common float dtype of matrix and right side.
fn solve_dtype(a: DType, b: DType) -> DType {
    a.to_float().promote(b.to_float())
}

/// A vector right side is a matrix of one column.
impl OpDef for Solve {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        expect_count("solve", 2, false, ins)?;
        let (a, b) = (&ins[0].ty, &ins[1].ty);
        let n = square_type("solve", a)?;
        let rows = match &b.dims[..] {
            [] => bail!(Type, "E0222", "the right side of `solve` is a vector or a matrix, got {b}"),
            [rows] | [.., rows, _] => rows,
        };
        let Some(n) = agree(&n, rows) else {
            bail!(Linalg, "E0604", "`solve`: a right side {b} does not fit a matrix {a}");
        };
        let head = |ty: &Type| Type::new(ty.dtype, ty.dims.iter().take(ty.rank().saturating_sub(2)).cloned());
        let batch = broadcast_dims(&[&head(a), &head(b)])?;
        let columns = b.dims.last().filter(|_| b.rank() > 1).cloned();
        Ok(one(Type::new(solve_dtype(a.dtype, b.dtype), batch.into_iter().chain([n]).chain(columns))))
    }
    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let systems = Systems::of(ins)?;
        let mut x: Vec<f64> = memory::zeros(systems.b.len());
        let (batch, n, k, a) = (batch_of(&systems.a), systems.n, systems.columns, systems.a.to_f64_vec());
        let (matrices, sides) = (Stack { all: &a[..], step: n * n }, Stack { all: &systems.b[..], step: n * k });
        if let Some(i) = self.solve(cx, [batch, n, k], matrices, sides, &mut x)? {
            return Err(match self.kind {
                MatrixKind::Positive => not_positive("solve", batch, i, matrices.get(i, n * n)),
                _ => singular("solve", batch, i),
            });
        }
        Ok(one(systems.solution(x)))
    }
    /// With `b̄ = a⁻ᵀ·x̄`: `ā = −b̄·xᵀ`, of which a triangular or symmetric matrix takes the part that is read.
    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let Some(ct) = cts[0] else { return Ok(vec![None; 2]) };
        let (a, b, x) = (site.ins[0], site.ins[1], site.outs[0]);
        let column: Vec<usize> = if g.ty(b).rank() == 1 { vec![g.ty(x).rank()] } else { vec![] };
        let (ct, x) = (g.expand(ct, &column), g.expand(x, &column));
        let (flipped, kind) = match self.kind {
            MatrixKind::General => (g.transpose_last(a), MatrixKind::General),
            MatrixKind::Lower => (g.transpose_last(a), MatrixKind::Upper),
            MatrixKind::Upper => (g.transpose_last(a), MatrixKind::Lower),
            MatrixKind::Positive => (a, MatrixKind::Positive),
        };
        let back = g.emit(Solve { kind }, &[flipped, ct]);
        let transposed = g.transpose_last(x);
        let outer = g.matmul(back, transposed);
        let outer = g.neg(outer);
        let part = match self.kind {
            MatrixKind::General => outer,
            MatrixKind::Lower => g.emit(Tri { lower: true, k: 0 }, &[outer]),
            MatrixKind::Upper => g.emit(Tri { lower: false, k: 0 }, &[outer]),
            MatrixKind::Positive => phi_symmetric(g, outer),
        };
        let back = g.squeeze(back, &column);
        Ok(vec![fit(g, part, a), fit(g, back, b)])
    }
    fn can_fail(&self) -> bool {
        true
    }
    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        products::solve(self, b, ins)
    }
}

/// The systems of a batch: matrices and right sides, spread over it.
pub(super) struct Systems {
    /// Extent of a matrix.
    pub n: usize,
    /// Right sides of a system.
    pub columns: usize,
    /// What the batch's matrices and right sides broadcast to.
    pub batch: Extents,
    vector: bool,
    dtype: DType,
    a: Array,
    b: Vec<f64>,
}

impl Systems {
    /// The systems of the inputs of `solve`.
    ///
    /// # Errors
    /// `E0603` for matrices that are not square, `E0604` for right sides that do not fit, `E0201` for batches that do not broadcast.
    pub(super) fn of(ins: &[Array]) -> Result<Systems> {
        let n = square("solve", &ins[0])?;
        let dtype = solve_dtype(ins[0].dtype(), ins[1].dtype());
        let vector = ins[1].rank() == 1;
        let columns = if vector { 1 } else { ins[1].shape()[ins[1].rank() - 1] };
        let rows = ins[1].shape()[ins[1].rank().saturating_sub(2)];
        if rows != n {
            let (b, a) = (tuple(ins[1].shape()), tuple(ins[0].shape()));
            bail!(Linalg, "E0604", "`solve`: a right side of shape {b} does not fit a matrix of shape {a}");
        }
        let b = if vector { ins[1].reshaped(&[n, 1]) } else { ins[1].clone() };
        let batch = broadcast_shapes(&[&ins[0].shape()[..ins[0].rank() - 2], &b.shape()[..b.rank() - 2]])?;
        let with = |tail: &[usize]| batch.iter().chain(tail).copied().collect::<Extents>();
        let (a, b) = (spread(&ins[0], &with(&[n, n]))?.into_owned(), spread(&b, &with(&[n, columns]))?.to_f64_vec());
        Ok(Systems { n, columns, batch, vector, dtype, a, b })
    }
    /// Applies a function to the matrix and the right sides of each system, which gets the number of systems and which one it is first.
    pub(super) fn each<T>(&self, mut f: impl FnMut(usize, usize, &[f64], &[f64]) -> Result<T>) -> Result<Vec<T>> {
        let size = self.n * self.columns;
        each(&self.a, self.n * self.n, |batch, i, a| f(batch, i, a, &self.b[i * size..(i + 1) * size]))
    }
    /// The solutions of all systems as one array.
    pub(super) fn solution(&self, solved: Vec<f64>) -> Array {
        let tail = if self.vector { &[self.n][..] } else { &[self.n, self.columns] };
        let shape: Extents = self.batch.iter().chain(tail).copied().collect();
        Array::new(&shape, solved).cast(self.dtype)
    }
}

impl Solve {
    /// Solves so many systems of n unknowns for k right sides each; the first whose matrix lacks the property that the algorithm needs, where
    /// there is one.
    pub(super) fn solve(
        &self,
        cx: &mut EvalCx,
        [count, n, k]: [usize; 3],
        a: Stack<f64>,
        b: Stack<f64>,
        x: &mut [f64],
    ) -> Result<Option<usize>> {
        if self.kind == MatrixKind::General && (1..=SMALL).contains(&n) {
            return solve_small(cx, [count, n, k], a, b, x);
        }
        for i in 0..count {
            if !self.solve_one(cx, [n, k], a.get(i, n * n), b.get(i, n * k), &mut x[i * n * k..(i + 1) * n * k])? {
                return Ok(Some(i));
            }
        }
        Ok(None)
    }

    fn solve_one(&self, cx: &mut EvalCx, [n, k]: [usize; 2], a: &[f64], b: &[f64], x: &mut [f64]) -> Result<bool> {
        let (triangle, sides) = (Triangle::of(a, n), Sides::all(k));
        x.copy_from_slice(b);
        match self.kind {
            MatrixKind::General => return Lu::new(cx, n, a)?.solve(cx, b, k, x),
            MatrixKind::Lower | MatrixKind::Upper if (0..n).any(|i| a[i * n + i] == 0.0) => return Ok(false),
            MatrixKind::Lower => forward(cx, triangle, x, &sides)?,
            MatrixKind::Upper => backward(cx, triangle, x, &sides)?,
            MatrixKind::Positive => {
                let Some(l) = cholesky(cx, n, a)? else { return Ok(false) };
                forward(cx, Triangle::of(&l, n), x, &sides)?;
                backward(cx, Triangle::of(&l, n).transposed(), x, &sides)?;
            }
        }
        Ok(true)
    }
}

/// Systems between two looks at the clock.
const BLOCK: usize = 1024;

/// [`small`](crate::scalar::systems) systems.
fn solve_small(cx: &mut EvalCx, [count, n, k]: [usize; 3], a: Stack<f64>, b: Stack<f64>, x: &mut [f64]) -> Result<Option<usize>> {
    for at in (0..count).step_by(BLOCK) {
        let here = BLOCK.min(count - at);
        cx.worked(here * n * n * (n + k))?;
        if let Some(i) = slices::small_systems([here, n, k], a.after(at), b.after(at), &mut x[at * n * k..(at + here) * n * k]) {
            return Ok(Some(at + i));
        }
    }
    Ok(None)
}

/// The type of an op from matrices to matrices of the same shape.
pub(super) fn same_type(op: &str, ins: &[Arg]) -> Result<Outs<Type>> {
    expect_count(op, 1, false, ins)?;
    let a = &ins[0].ty;
    let n = square_type(op, a)?;
    let batch = a.dims[..a.rank() - 2].iter().cloned();
    Ok(one(Type::new(a.dtype.to_float(), batch.chain([n.clone(), n]))))
}

impl OpDef for Cholesky {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        same_type("cholesky", ins)
    }
    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let (a, n) = (&ins[0], square("cholesky", &ins[0])?);
        let l = each(a, n * n, |batch, i, a| cholesky(cx, n, a)?.ok_or_else(|| not_positive("cholesky", batch, i, a)))?;
        Ok(one(Array::new(a.shape(), memory::joined(&l)).cast(a.dtype().to_float())))
    }
    /// `ā = Φ(s + sᵀ)` with `s = l⁻ᵀ·Φ(lᵀ·l̄)·l⁻¹`.
    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let Some(ct) = cts[0] else { return Ok(vec![None]) };
        let upper = g.transpose_last(site.outs[0]);
        let ct = g.emit(Tri { lower: true, k: 0 }, &[ct]);
        let inner = g.matmul(upper, ct);
        let inner = phi(g, inner);
        let solve = Solve { kind: MatrixKind::Upper };
        let left = g.emit(solve.clone(), &[upper, inner]);
        let left = g.transpose_last(left);
        let s = g.emit(solve, &[upper, left]);
        let total = phi_symmetric(g, s);
        Ok(vec![fit(g, total, site.ins[0])])
    }
    fn can_fail(&self) -> bool {
        true
    }
    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        b.as_is(self.clone(), ins)
    }
}

impl OpDef for Inverse {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        same_type("inverse", ins)
    }
    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let (a, n) = (&ins[0], square("inverse", &ins[0])?);
        let eye: Vec<f64> = memory::collect((0..n * n).map(|at| (at / n == at % n) as u8 as f64));
        let (values, mut out) = (a.to_f64_vec(), memory::zeros(a.len()));
        let (matrices, sides) = (Stack { all: &values[..], step: n * n }, Stack { all: &eye[..], step: 0 });
        match (Solve { kind: MatrixKind::General }).solve(cx, [batch_of(a), n, n], matrices, sides, &mut out)? {
            Some(i) => Err(singular_maybe_of_slogdet("inverse", batch_of(a), i)),
            None => Ok(one(Array::new(a.shape(), out).cast(a.dtype().to_float()))),
        }
    }
    /// `ā = −yᵀ·ȳ·yᵀ` with y the inverse.
    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let Some(ct) = cts[0] else { return Ok(vec![None]) };
        let y = g.transpose_last(site.outs[0]);
        let left = g.matmul(y, ct);
        let both = g.matmul(left, y);
        let both = g.neg(both);
        Ok(vec![fit(g, both, site.ins[0])])
    }
    fn can_fail(&self) -> bool {
        true
    }
    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        b.as_is(self.clone(), ins)
    }
}

/// Sign 0 and logarithm −∞ for a singular matrix.
impl OpDef for SLogDet {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        let ty = &same_type("slogdet", ins)?[0];
        let out = Type::new(ty.dtype, ty.dims[..ty.rank() - 2].iter().cloned());
        Ok([out.clone(), out].into_iter().collect())
    }
    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let (a, n) = (&ins[0], square("slogdet", &ins[0])?);
        let both = each(a, n * n, |_, _, a| Ok(slogdet(&Lu::new(cx, n, a)?)))?;
        Ok(signs_and_logs(a, both).collect())
    }
    /// `ā = loḡ · a⁻ᵀ`; the sign is constant.
    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let Some(ct) = cts[1] else { return Ok(vec![None]) };
        let rank = g.ty(ct).rank();
        let ct = g.expand(ct, &[rank, rank + 1]);
        let inverse = g.emit(Inverse {}, &[site.ins[0]]);
        let inverse = g.transpose_last(inverse);
        let product = g.mul(ct, inverse);
        Ok(vec![fit(g, product, site.ins[0])])
    }
    /// A matrix that is not square.
    fn can_fail(&self) -> bool {
        true
    }
    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        b.as_is(self.clone(), ins)
    }
}

/// The determinants of matrices, given for each, as two arrays.
pub(super) fn signs_and_logs(a: &Array, both: Vec<(f64, f64)>) -> impl Iterator<Item = Array> {
    let (signs, logs): (Vec<f64>, Vec<f64>) = both.into_iter().unzip();
    [signs, logs].into_iter().map(|v| Array::new(&a.shape()[..a.rank() - 2], v).cast(a.dtype().to_float()))
}

/// Sign and logarithm of a determinant.
pub(super) fn slogdet(lu: &Lu) -> (f64, f64) {
    if lu.diagonal().any(|u| u == 0.0) {
        return (0.0, f64::NEG_INFINITY);
    }
    lu.diagonal().fold((lu.sign, 0.0), |(sign, log), u| (if u < 0.0 { -sign } else { sign }, log + u.abs().ln()))
}

#[cfg(test)]
mod tests;
