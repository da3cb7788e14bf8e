//! The determinant and its derivatives, of singular matrices, too. With complete pivoting `a = Pᵀ·l·d·m·Qᵀ`, l and m triangular with unit
//! diagonals; cofactors of a product are the product of the cofactors, so all derivatives are those of the determinant of a diagonal matrix:
//! products of pivots, without a division by one.

use super::args::{expect_count, fit, one};
use super::factor::{CompleteLu, Lu};
use super::linalg::{each, same_type, square};
use super::triangle::{Sides, Triangle, backward, forward, transposed};
use crate::bail;
use crate::base::Result;
use crate::ir::op::*;
use crate::ir::{Graph, Value};
use crate::scalar::ElemOp;
use crate::types::{Array, Type, memory};

impl OpDef for Det {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        let ty = &same_type("det", ins)?[0];
        Ok(one(Type::new(ty.dtype, ty.dims[..ty.rank() - 2].iter().cloned())))
    }
    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let (a, n) = (&ins[0], square("det", &ins[0])?);
        let found = each(a, n * n, |_, _, a| Ok(det(&Lu::new(cx, n, a)?)))?;
        Ok(one(Array::new(&a.shape()[..a.rank() - 2], found).cast(a.dtype().to_float())))
    }
    /// The cofactors.
    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let Some(ct) = cts[0] else { return Ok(vec![None]) };
        let cofactors = g.emit(Cofactor {}, &[site.ins[0]]);
        let ct = of_matrices(g, ct);
        let product = g.mul(ct, cofactors);
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

impl OpDef for Cofactor {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        same_type("cofactor", ins)
    }
    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let (a, n) = (&ins[0], square("cofactor", &ins[0])?);
        let found = each(a, n * n, |_, _, a| cofactors(cx, n, a))?;
        Ok(one(Array::new(a.shape(), memory::joined(&found)).cast(a.dtype().to_float())))
    }
    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let Some(ct) = cts[0] else { return Ok(vec![None]) };
        let slope = g.emit(CofactorSlope {}, &[site.ins[0], ct]);
        Ok(vec![fit(g, slope, site.ins[0])])
    }
    fn can_fail(&self) -> bool {
        true
    }
    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        b.as_is(self.clone(), ins)
    }
}

impl OpDef for CofactorSlope {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        expect_count("cofactor_slope", 2, false, ins)?;
        let [a, w] = [same_type("cofactor_slope", &ins[..1])?.remove(0), same_type("cofactor_slope", &ins[1..])?.remove(0)];
        if a.rank() != w.rank() || a.dims.iter().zip(&w.dims).any(|(m, n)| m.conflicts(n)) {
            bail!(Shape, "E0201", "`cofactor_slope` takes two inputs of one shape, got {a} and {w}");
        }
        Ok(one(a))
    }
    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let (a, w, n) = (&ins[0], &ins[1], square("cofactor_slope", &ins[0])?);
        if a.shape() != w.shape() {
            bail!(Shape, "E0201", "`cofactor_slope` takes two inputs of one shape, got {} and {}", a.ty(), w.ty());
        }
        let weights = w.to_f64_vec();
        let found = each(a, n * n, |_, i, a| cofactor_slope(cx, n, a, &weights[i * n * n..(i + 1) * n * n]))?;
        Ok(one(Array::new(a.shape(), memory::joined(&found)).cast(a.dtype().to_float())))
    }
    /// The second derivative of a determinant is symmetric: the slope by w is the same op. That by a, with cofactors c, is the derivative of
    /// `Σ ct · (⟨w, c⟩·c − c·wᵀ·c) / det a`.
    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let Some(ct) = cts[0] else { return Ok(vec![None; 2]) };
        let (a, w) = (site.ins[0], site.ins[1]);
        let by_w = g.emit(CofactorSlope {}, &[a, ct]);
        let by_a = third(g, a, w, ct);
        Ok(vec![fit(g, by_a, a), fit(g, by_w, w)])
    }
    fn can_fail(&self) -> bool {
        true
    }
    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        b.all_rows(self.clone(), ins)
    }
}

/// A value per matrix, to be multiplied with matrices.
fn of_matrices(g: &mut Graph, v: Value) -> Value {
    let rank = g.ty(v).rank();
    g.expand(v, &[rank, rank + 1])
}

/// The slope of `Σ k · cofactor_slope(a, w)` by a: zero where a has at most two rows, which may tell when it runs alone, else where a is
/// regular: with `s = (⟨w, c⟩·c − c·wᵀ·c) / d`, by c and by d, which lead on to a.
fn third(g: &mut Graph, a: Value, w: Value, k: Value) -> Value {
    let d = g.emit(Det {}, &[a]);
    let zero = g.number(g.ty(d).dtype, 0.0);
    let (rows, two) = (g.dim(a, g.ty(a).rank() - 1), g.int(2));
    let small = g.emit(Op::Elem(ElemOp::Le), &[rows, two]);
    let regular = g.emit(Op::Elem(ElemOp::Ne), &[d, zero]);
    let regular = g.emit(Op::Elem(ElemOp::Or), &[regular, small]);
    let message = "the third derivative of `det` is there for regular matrices alone, and a matrix is singular".to_string();
    let d = g.emit(Assert { message }, &[d, regular]);
    let (d, c) = (of_matrices(g, d), g.emit(Cofactor {}, &[a]));
    let (wc, kc, turned) = (inner(g, w, c), inner(g, k, c), g.transpose_last(c));
    let (left, right) = (three(g, k, turned, w), three(g, w, turned, k));
    let (first, second) = (g.mul(kc, w), g.mul(wc, k));
    let (plus, minus) = (g.add(first, second), g.add(left, right));
    let by_c = g.sub(plus, minus);
    let by_c = g.div(by_c, d);
    let through = g.emit(CofactorSlope {}, &[a, by_c]);
    let (product, last) = (g.mul(wc, kc), inner(g, left, c));
    let value = g.sub(product, last);
    let square = g.mul(d, d);
    let by_d = g.div(value, square);
    let direct = g.mul(by_d, c);
    let (slope, none) = (g.sub(through, direct), g.zeros_like(a));
    g.select(small, none, slope)
}

/// `Σ x · y` of each matrix.
fn inner(g: &mut Graph, x: Value, y: Value) -> Value {
    let (product, rank) = (g.mul(x, y), g.ty(x).rank());
    g.sum(product, &[rank - 2, rank - 1], true)
}

fn three(g: &mut Graph, x: Value, y: Value, z: Value) -> Value {
    let left = g.matmul(x, y);
    g.matmul(left, z)
}

/// A number that neither overflows nor underflows where others follow that bring it back: `m · 2ᵉ`.
#[derive(Clone, Copy)]
struct Scaled {
    m: f64,
    e: i64,
}

impl Scaled {
    const ONE: Scaled = Scaled { m: 1.0, e: 0 };

    fn of(x: f64) -> Scaled {
        Scaled { m: x, e: 0 }.normal()
    }
    /// The same with `1 ≤ |m| < 2`, where the number has such a form.
    fn normal(self) -> Scaled {
        if self.m == 0.0 || !self.m.is_finite() {
            return self;
        }
        let (m, by) = if self.m.is_normal() { (self.m, 0) } else { (self.m * 2f64.powi(64), -64) };
        let e = (m.to_bits() >> 52 & 0x7ff) as i64 - 1023;
        let unit = f64::from_bits(m.to_bits() & !(0x7ff << 52) | 1023 << 52);
        Scaled { m: unit, e: self.e + e + by }
    }
    fn times(self, other: Scaled) -> Scaled {
        Scaled { m: self.m * other.m, e: self.e + other.e }.normal()
    }
    fn over(self, other: Scaled) -> Scaled {
        Scaled { m: self.m / other.m, e: self.e - other.e }.normal()
    }
    fn value(self) -> f64 {
        let e = self.e.clamp(-2400, 2400) as i32;
        let (third, rest) = (e / 3, e - 2 * (e / 3));
        self.m * 2f64.powi(third) * 2f64.powi(third) * 2f64.powi(rest)
    }
}

/// The determinant of what was factorised; 0 without a sign.
fn det(lu: &Lu) -> f64 {
    lu.diagonal().map(Scaled::of).fold(Scaled::of(lu.sign), Scaled::times).value() + 0.0
}

/// Products of all but one or two of some numbers.
struct Others {
    all: Vec<Scaled>,
    /// The product of those that are not 0, and how many are.
    product: Scaled,
    zeros: usize,
}

impl Others {
    fn of(numbers: impl Iterator<Item = f64>) -> Others {
        let all: Vec<Scaled> = numbers.map(Scaled::of).collect();
        let product = all.iter().filter(|x| x.m != 0.0).fold(Scaled::ONE, |p, &x| p.times(x));
        Others { product, zeros: all.iter().filter(|x| x.m == 0.0).count(), all }
    }
    fn without(&self, left_out: &[usize]) -> f64 {
        let out = || left_out.iter().map(|&i| self.all[i]);
        if out().filter(|x| x.m == 0.0).count() < self.zeros {
            return 0.0;
        }
        out().filter(|x| x.m != 0.0).fold(self.product, Scaled::over).value()
    }
}

/// The cofactors of a matrix: `l⁻ᵀ·c·m⁻ᵀ`, c those of the diagonal.
fn cofactors(cx: &mut EvalCx, n: usize, a: &[f64]) -> Result<Vec<f64>> {
    let Some(f) = CompleteLu::new(cx, n, a)? else { return Ok(memory::filled(if n == 1 { 1.0 } else { f64::NAN }, n * n)) };
    let others = Others::of(f.diagonal());
    let mut x: Vec<f64> = memory::collect((0..n * n).map(|at| if at / n == at % n { others.without(&[at / n]) } else { 0.0 }));
    let (l, m) = (f.l(), f.m());
    backward(cx, Triangle::of(&m, n), &mut x, &Sides::all(n))?;
    let mut x = transposed(&x, n);
    backward(cx, Triangle::of(&l, n).transposed(), &mut x, &Sides::all(n))?;
    Ok(f.restored(&x))
}

/// The slope of `Σ w · cofactors(a)` by a. With `h = l⁻¹·w·m⁻¹`, and p the product of the pivots without two, that by the element k of the
/// diagonal is `Σᵢ hᵢᵢ·pᵢₖ` over the others, and that by another is `−hᵢⱼ·pᵢⱼ` at (j, i).
fn cofactor_slope(cx: &mut EvalCx, n: usize, a: &[f64], w: &[f64]) -> Result<Vec<f64>> {
    let Some(f) = CompleteLu::new(cx, n, a)? else { return Ok(memory::filled(if n == 1 { 0.0 } else { f64::NAN }, n * n)) };
    let mut h = f.permuted(w);
    let (l, m, all) = (f.l(), f.m(), Sides::all(n));
    forward(cx, Triangle::of(&l, n), &mut h, &all)?;
    let mut h = transposed(&h, n);
    forward(cx, Triangle::of(&m, n).transposed(), &mut h, &all)?;
    // Here h is transposed: element (j, i) of it is hᵢⱼ.
    let others = Others::of(f.diagonal());
    let element = |at: usize| {
        let (i, j) = (at / n, at % n);
        match i == j {
            true => (0..n).filter(|&k| k != i).map(|k| h[k * n + k] * others.without(&[k, i])).sum(),
            false => -h[at] * others.without(&[i, j]),
        }
    };
    let mut x: Vec<f64> = memory::collect((0..n * n).map(element));
    backward(cx, Triangle::of(&l, n).transposed(), &mut x, &all)?;
    let mut x = transposed(&x, n);
    backward(cx, Triangle::of(&m, n), &mut x, &all)?;
    Ok(f.restored(&transposed(&x, n)))
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use crate::types::DType;

    fn matrix(n: usize, values: &[f64]) -> Array {
        Array::new(&[n, n], values.to_vec())
    }
    /// Matrices of several ranks, all of whose minors are integers.
    fn integers(n: usize, rank: usize, seed: usize) -> Array {
        let number = |i: usize, j: usize| ((i * 7 + j * 13 + seed * 5 + i * j * seed) % 11) as f64 - 5.0;
        let product = |i: usize, j: usize| (0..rank).map(|k| number(i, k) * number(k + 17, j)).sum::<f64>();
        Array::new(&[n, n], (0..n * n).map(|at| product(at / n, at % n)).collect())
    }
    /// A minor by expansion.
    fn minor(a: &[f64], n: usize, rows: &[usize], columns: &[usize]) -> f64 {
        let Some((&row, rest)) = rows.split_first() else { return 1.0 };
        let term = |(k, &column): (usize, &usize)| {
            let others: Vec<usize> = columns.iter().copied().filter(|&c| c != column).collect();
            a[row * n + column] * minor(a, n, rest, &others) * if k % 2 == 0 { 1.0 } else { -1.0 }
        };
        columns.iter().enumerate().map(term).sum()
    }
    fn without(n: usize, out: usize) -> Vec<usize> {
        (0..n).filter(|&i| i != out).collect()
    }
    fn by_expansion(n: usize, a: &[f64]) -> Vec<f64> {
        let sign = |at: usize| if (at / n + at % n).is_multiple_of(2) { 1.0 } else { -1.0 };
        (0..n * n).map(|at| sign(at) * minor(a, n, &without(n, at / n), &without(n, at % n))).collect()
    }

    #[test]
    fn cofactors_are_those_of_the_expansion_at_every_rank() {
        for n in 0..6 {
            for rank in 0..=n {
                for seed in 0..4 {
                    let a = integers(n, rank, seed);
                    let x = a.to_f64_vec();
                    let all: Vec<usize> = (0..n).collect();
                    let size = x.iter().fold(1.0, |s: f64, x| s.max(x.abs())).powi(n as i32);
                    assert_close(&apply(Det {}, &[a.clone()]).to_f64_vec(), &[minor(&x, n, &all, &all)], 1e-14 * size, "det");
                    assert_close(&apply(Cofactor {}, &[a.clone()]).to_f64_vec(), &by_expansion(n, &x), 1e-14 * size, "cofactors");
                }
            }
        }
    }

    #[test]
    fn small_singular_matrices_have_exact_cofactors() {
        let exact = |n, a: &[f64], c: &[f64]| assert_eq!(apply(Cofactor {}, &[matrix(n, a)]).to_f64_vec(), c);
        exact(1, &[0.0], &[1.0]);
        exact(1, &[f64::INFINITY], &[1.0]);
        exact(2, &[1.0, 2.0, 2.0, 4.0], &[4.0, -2.0, -2.0, 1.0]);
        exact(2, &[0.0; 4], &[0.0; 4]);
        exact(3, &[0.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 3.0], &[6.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        exact(3, &[1.0; 9], &[0.0; 9]);
        assert!(apply(Cofactor {}, &[matrix(2, &[f64::NAN, 1.0, 2.0, 3.0])]).to_f64_vec()[0].is_nan());
        assert_eq!(apply(Det {}, &[Array::zeros(DType::F32, &[3, 0, 0])]), Array::full(DType::F32, &[3], 1.0));
        assert_eq!(apply(Det {}, &[matrix(2, &[3.0, 0.0, 0.0, 7.0])]), Array::scalar(21.0));
        assert_eq!(build_error(Det {}, &[Array::zeros(DType::F64, &[2, 3])]).code, "E0603");
        assert_eq!(build_error(CofactorSlope {}, &[Array::zeros(DType::F64, &[2, 2]), Array::zeros(DType::F64, &[3, 3])]).code, "E0201");
    }

    #[test]
    fn products_of_pivots_pass_beyond_the_range_of_floats_and_back() {
        let diagonal = |d: &[f64]| {
            matrix(
                d.len(),
                &(0..d.len() * d.len()).map(|at| if at / d.len() == at % d.len() { d[at / d.len()] } else { 0.0 }).collect::<Vec<_>>(),
            )
        };
        let a = diagonal(&[1e200, 1e200, 1e-200, 1e-250]);
        assert_close(&apply(Det {}, &[a.clone()]).to_f64_vec(), &[1e-50], 1e-64, "det");
        let c = apply(Cofactor {}, &[a]).to_f64_vec();
        assert_close(&[c[0] * 1e250, c[5] * 1e250, c[10], c[15] * 1e-200], &[1.0, 1.0, 1e150, 1.0], 1e-13, "cofactors");
        assert_eq!(apply(Det {}, &[diagonal(&[1e-200, 1e-200])]), Array::scalar(0.0));
        assert_eq!(apply(Det {}, &[diagonal(&[5e-324, 2f64.powi(600), 2f64.powi(474)])]), Array::scalar(1.0));
    }

    #[test]
    fn gradients_match_differences_at_every_rank() {
        let square = |g: &mut Graph, v: &[Value]| {
            let d = g.emit(Det {}, v);
            let (one, half) = (g.number(DType::F64, 1.0), g.number(DType::F64, 0.5));
            let (more, part) = (g.add(d, one), g.mul(d, half));
            g.mul(more, part)
        };
        for n in 0..4 {
            for rank in 0..=n {
                let scaled = apply(Op::Elem(ElemOp::Mul), &[integers(n, rank, 3), Array::scalar(0.15)]);
                check_vjp(square, &[scaled.clone()]);
                check_vjp2(square, &[scaled]);
            }
        }
        check_vjp(square, &[sample(&[2, 3, 3], 1)]);
        check_vjp2(square, &[sample(&[2, 3, 3], 1)]);
        check_vjp(|g, v| g.emit(CofactorSlope {}, v), &[sample(&[3, 3], 1), sample(&[3, 3], 2)]);
        check_vjp2(|g, v| g.emit(CofactorSlope {}, v), &[sample(&[3, 3], 1), sample(&[3, 3], 2)]);
        check_vjp(|g, v| g.emit(CofactorSlope {}, v), &[integers(2, 1, 1), sample(&[2, 2], 2)]);
    }

    #[test]
    fn third_derivatives_of_singular_matrices_say_what_is_missing() {
        let ins = [matrix(3, &[1.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0]), sample(&[3, 3], 2), sample(&[3, 3], 3)];
        let (mut g, v) = graph_of(&ins, true);
        let y = g.emit(CofactorSlope {}, &v[..2]);
        let by_a = vjp_of(&mut g, y, v[2], &v[..1]).unwrap()[0].unwrap();
        let e = eval_graph(&g, &ins, &[by_a]).unwrap_err();
        assert!(e.code == "E0301" && e.title.contains("third derivative of `det`"), "{}", e.title);
    }
}
