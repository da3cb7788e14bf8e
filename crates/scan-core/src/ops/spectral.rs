//! Orthogonal factorisations and what is made of them. Gradients: `qr` after Walter, Lehmann, "Algorithmic differentiation of linear algebra
//! functions with application in optimum experimental design" (2012); `eigh` and `svd` after Giles, "Collected matrix derivative results for
//! forward and reverse mode algorithmic differentiation" (2008), and Townsend, "Differentiating the singular value decomposition" (2016);
//! `pinv` after Golub, Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems whose variables separate" (1973).

use super::args::{expect_count, fit, one};
use super::eigen::{Singular, product, singular, symmetric, turned};
use super::linalg::{each, phi_symmetric, same_type, square};
use super::reflect::Qr as Reflections;
use super::support::agree;
use crate::bail;
use crate::base::Result;
use crate::ir::op::*;
use crate::ir::{Graph, Value};
use crate::types::shape::{Extents, tuple};
use crate::types::{Array, DType, Dim, Type, memory};

/// The batch of matrices, their rows and columns.
///
/// # Errors
/// `E0222` below two axes.
fn matrices<'a>(op: &str, ins: &'a [Arg]) -> Result<(DType, &'a [Dim], &'a Dim, &'a Dim)> {
    expect_count(op, 1, false, ins)?;
    match &ins[0].ty.dims[..] {
        [batch @ .., m, n] => Ok((ins[0].ty.dtype.to_float(), batch, m, n)),
        _ => bail!(Type, "E0222", "`{op}` takes matrices, got {}", ins[0].ty),
    }
}

fn of_batch(dtype: DType, batch: &[Dim], tail: &[&Dim]) -> Type {
    Type::new(dtype, batch.iter().chain(tail.iter().copied()).cloned())
}

/// Rows and columns at run time.
fn extents(a: &Array) -> [usize; 2] {
    let rank = a.rank();
    [a.shape()[rank - 2], a.shape()[rank - 1]]
}

/// Results for each matrix of a batch as one array, in the dtype of its input.
fn gathered(a: &Array, tail: &[usize], parts: &[Vec<f64>]) -> Array {
    let shape: Extents = a.shape()[..a.rank() - 2].iter().chain(tail).copied().collect();
    Array::new(&shape, memory::joined(parts)).cast(a.dtype().to_float())
}

/// `x − p·(q·x)`.
fn without(g: &mut Graph, x: Value, p: Value, q: Value) -> Value {
    let inner = g.matmul(q, x);
    let along = g.matmul(p, inner);
    g.sub(x, along)
}

fn plus(g: &mut Graph, a: Option<Value>, b: Option<Value>) -> Option<Value> {
    match (a, b) {
        (Some(x), Some(y)) => Some(g.add(x, y)),
        (x, y) => x.or(y),
    }
}

/// `1/x`, 0 where x is 0.
fn inverse_or_zero(g: &mut Graph, x: Value) -> Value {
    let dtype = g.ty(x).dtype;
    let (zero, one) = (g.number(dtype, 0.0), g.number(dtype, 1.0));
    let none = g.eq(x, zero);
    let safe = g.select(none, one, x);
    let inverse = g.div(one, safe);
    g.select(none, zero, inverse)
}

/// The matrices `1 / (x_j − x_i)` of vectors x, 0 where two are equal.
fn gaps(g: &mut Graph, x: Value) -> Value {
    let rank = g.ty(x).rank();
    let (rows, columns) = (g.expand(x, &[rank - 1]), g.expand(x, &[rank]));
    let difference = g.sub(rows, columns);
    inverse_or_zero(g, difference)
}

/// The diagonal matrices of vectors, as what a matrix of the shape of `like` has on its diagonal.
fn on_diagonal(g: &mut Graph, x: Value) -> Value {
    let rank = g.ty(x).rank();
    let dtype = g.ty(x).dtype;
    let n = g.dim(x, rank - 1);
    let zero = g.int(0);
    let eye = g.emit(Eye { dtype }, &[n, n, zero]);
    let rows = g.expand(x, &[rank - 1]);
    g.mul(eye, rows)
}

impl OpDef for Qr {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        let (dtype, batch, m, n) = matrices("qr", ins)?;
        if let (Some(rows), Some(columns)) = (m.value(), n.value())
            && rows < columns
        {
            bail!(Linalg, "E0605", "`qr` takes matrices with as many rows as columns or more, got {}", ins[0].ty);
        }
        Ok([of_batch(dtype, batch, &[m, n]), of_batch(dtype, batch, &[n, n])].into_iter().collect())
    }
    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let a = &ins[0];
        let [m, n] = extents(a);
        if m < n {
            bail!(Linalg, "E0605", "`qr` takes matrices with as many rows as columns or more, got shape {}", tuple(a.shape()));
        }
        let found = each(a, m * n, |_, _, a| {
            let f = Reflections::new(cx, [m, n], a)?;
            Ok((f.q(cx)?, f.r()))
        })?;
        let (q, r): (Vec<_>, Vec<_>) = found.into_iter().unzip();
        Ok([gathered(a, &[m, n], &q), gathered(a, &[n, n], &r)].into_iter().collect())
    }
    /// `ā = (q̄ + q·s)·r⁻ᵀ`, s symmetric with the lower triangle of `r·r̄ᵀ − q̄ᵀ·q`.
    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let (q, r) = (site.outs[0], site.outs[1]);
        let of_r = cts[1].map(|ct| {
            let upper = g.emit(Tri { lower: false, k: 0 }, &[ct]);
            let turned = g.transpose_last(upper);
            g.matmul(r, turned)
        });
        let of_q = cts[0].map(|ct| {
            let turned = g.transpose_last(ct);
            let product = g.matmul(turned, q);
            g.neg(product)
        });
        let Some(m) = plus(g, of_r, of_q) else { return Ok(vec![None]) };
        let (lower, strict) = (g.emit(Tri { lower: true, k: 0 }, &[m]), g.emit(Tri { lower: true, k: -1 }, &[m]));
        let mirrored = g.transpose_last(strict);
        let s = g.add(lower, mirrored);
        let qs = g.matmul(q, s);
        let Some(total) = plus(g, cts[0], Some(qs)) else { return Ok(vec![None]) };
        let turned = g.transpose_last(total);
        let solved = g.emit(Solve { kind: MatrixKind::Upper }, &[r, turned]);
        let back = g.transpose_last(solved);
        Ok(vec![fit(g, back, site.ins[0])])
    }
    /// A matrix that is wide.
    fn can_fail(&self) -> bool {
        true
    }
    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        b.as_is(self.clone(), ins)
    }
}

impl OpDef for Eigh {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        let vectors = same_type("eigh", ins)?.remove(0);
        let values = Type::new(vectors.dtype, vectors.dims[..vectors.rank() - 1].iter().cloned());
        Ok([values, vectors].into_iter().collect())
    }
    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let (a, n) = (&ins[0], square("eigh", &ins[0])?);
        let (values, vectors): (Vec<_>, Vec<_>) = each(a, n * n, |_, _, a| symmetric(cx, n, a))?.into_iter().unzip();
        Ok([gathered(a, &[n], &values), gathered(a, &[n, n], &vectors)].into_iter().collect())
    }
    /// `v·(diag(w̄) + f ∘ (vᵀ·v̄))·vᵀ`, f with `1 / (w_j − w_i)`; of equal eigenvalues nothing, whose vectors are arbitrary.
    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let (w, v) = (site.outs[0], site.outs[1]);
        let turned = g.transpose_last(v);
        let of_values = cts[0].map(|ct| on_diagonal(g, ct));
        let of_vectors = cts[1].map(|ct| {
            let (inner, f) = (g.matmul(turned, ct), gaps(g, w));
            g.mul(f, inner)
        });
        let Some(inner) = plus(g, of_values, of_vectors) else { return Ok(vec![None]) };
        let left = g.matmul(v, inner);
        let all = g.matmul(left, turned);
        let lower = phi_symmetric(g, all);
        Ok(vec![fit(g, lower, site.ins[0])])
    }
    /// A matrix that is not square.
    fn can_fail(&self) -> bool {
        true
    }
    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        b.as_is(self.clone(), ins)
    }
}

/// The smaller extent.
fn smaller(m: &Dim, n: &Dim) -> Dim {
    match (m.value(), n.value()) {
        (Some(rows), Some(columns)) => Dim::known(rows.min(columns)),
        _ => agree(m, n).filter(|_| m == n).unwrap_or_else(Dim::fresh),
    }
}

impl OpDef for Svd {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        let (dtype, batch, m, n) = matrices("svd", ins)?;
        let k = &smaller(m, n);
        Ok([&[m, k][..], &[k], &[k, n]].into_iter().map(|tail| of_batch(dtype, batch, tail)).collect())
    }
    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let a = &ins[0];
        let [m, n] = extents(a);
        let k = m.min(n);
        let (mut u, mut s, mut w) = (vec![], vec![], vec![]);
        for part in each(a, m * n, |_, _, a| singular(cx, [m, n], a))? {
            u.push(part.u);
            s.push(part.s);
            w.push(part.w);
        }
        Ok([gathered(a, &[m, k], &u), gathered(a, &[k], &s), gathered(a, &[k, n], &w)].into_iter().collect())
    }
    /// With `f = 1 / (s_j² − s_i²)`, `p = f ∘ (uᵀ·ū − ūᵀ·u)` and `q = f ∘ (w·w̄ᵀ − w̄·wᵀ)`:
    /// `u·(p·s + s·q + s̄)·w + (ū − u·uᵀ·ū)·s⁻¹·w + u·s⁻¹·(w̄ − w̄·wᵀ·w)`.
    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let (u, s, w) = (site.outs[0], site.outs[1], site.outs[2]);
        let (ut, wt) = (g.transpose_last(u), g.transpose_last(w));
        let rank = g.ty(s).rank();
        let (columns, rows) = (g.expand(s, &[rank - 1]), g.expand(s, &[rank]));
        let squares = g.mul(s, s);
        let f = gaps(g, squares);
        let values = cts[1].map(|ct| on_diagonal(g, ct));
        let left = cts[0].map(|ct| {
            let (turn, inverse) = (turning(g, ut, ct, f), inverse_or_zero(g, columns));
            let (inner, outside) = (g.mul(turn, columns), without(g, ct, u, ut));
            let outside = g.mul(outside, inverse);
            (inner, g.matmul(outside, w))
        });
        let right = cts[2].map(|ct| {
            let ct = g.transpose_last(ct);
            let (turn, inverse) = (turning(g, w, ct, f), inverse_or_zero(g, rows));
            let (inner, outside) = (g.mul(rows, turn), without(g, ct, wt, w));
            let outside = g.transpose_last(outside);
            let outside = g.mul(inverse, outside);
            (inner, g.matmul(u, outside))
        });
        let both = plus(g, left.map(|x| x.0), right.map(|x| x.0));
        let inner = plus(g, values, both).map(|inner| {
            let product = g.matmul(u, inner);
            g.matmul(product, w)
        });
        let outside = plus(g, left.map(|x| x.1), right.map(|x| x.1));
        Ok(vec![plus(g, inner, outside).and_then(|total| fit(g, total, site.ins[0]))])
    }
    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        b.as_is(self.clone(), ins)
    }
}

/// `f ∘ (xᵀ·ct − ctᵀ·x)`, given xᵀ.
fn turning(g: &mut Graph, xt: Value, ct: Value, f: Value) -> Value {
    let product = g.matmul(xt, ct);
    let turned = g.transpose_last(product);
    let difference = g.sub(product, turned);
    g.mul(f, difference)
}

impl OpDef for Pinv {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        let (dtype, batch, m, n) = matrices("pinv", ins)?;
        Ok(one(of_batch(dtype, batch, &[n, m])))
    }
    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let a = &ins[0];
        let [m, n] = extents(a);
        let epsilon = if a.dtype().to_float() == DType::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON };
        let least = if self.rcond.0 < 0.0 { m.max(n) as f64 * epsilon } else { self.rcond.0 };
        let found = each(a, m * n, |_, _, a| {
            let f = singular(cx, [m, n], a)?;
            pseudo_inverse(cx, [m, n], f, least)
        })?;
        Ok(one(gathered(a, &[n, m], &found)))
    }
    /// With `b` the result: `−bᵀ·b̄·bᵀ + (1 − a·b)·b̄ᵀ·b·bᵀ + bᵀ·b·b̄ᵀ·(1 − b·a)`.
    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let Some(ct) = cts[0] else { return Ok(vec![None]) };
        let (a, b) = (site.ins[0], site.outs[0]);
        let a = g.cast(a, g.ty(b).dtype);
        let (bt, ctt) = (g.transpose_last(b), g.transpose_last(ct));
        let inner = g.matmul(bt, ct);
        let first = g.matmul(inner, bt);
        let outside = without(g, ctt, a, b);
        let second = g.matmul(outside, b);
        let second = g.matmul(second, bt);
        let third = g.matmul(b, ctt);
        let third = g.matmul(bt, third);
        let along = g.matmul(third, b);
        let along = g.matmul(along, a);
        let third = g.sub(third, along);
        let both = g.add(second, third);
        let total = g.sub(both, first);
        Ok(vec![fit(g, total, site.ins[0])])
    }
    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        b.as_is(self.clone(), ins)
    }
}

/// `wᵀ·s⁻¹·uᵀ`, without the singular values that are at most so much of the largest.
fn pseudo_inverse(cx: &mut EvalCx, [m, n]: [usize; 2], f: Singular, least: f64) -> Result<Vec<f64>> {
    let k = m.min(n);
    let least = least * f.s.first().copied().unwrap_or(0.0);
    let inverse = |s: f64| if s <= least { 0.0 } else { 1.0 / s };
    let (mut wt, ut) = (turned(&f.w, [k, n]), turned(&f.u, [m, k]));
    wt.chunks_exact_mut(k.max(1)).for_each(|row| row.iter_mut().zip(&f.s).for_each(|(x, &s)| *x *= inverse(s)));
    product(cx, [n, k, m], &wt, &ut)
}

#[cfg(test)]
mod tests;
