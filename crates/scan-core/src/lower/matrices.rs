//! Products and linear algebra of small matrices, as the law computes them (`ops/matmul.rs`, `ops/factor.rs`, `ops/linalg.rs`): in f64, with
//! pivots chosen by selections. Where there is no result the kernel says so, and the law reports it.

use super::nodes::Lowering;
use super::{Lowered, refuse};
use crate::ir::op::*;
use crate::ir::{Node, Value};
use crate::kernel::{Bin, Cmp, HostFn, Reg};
use crate::scalar::ElemOp;
use crate::types::DType;
use crate::types::shape::{Extents, broadcast_positions, count};

/// Larger matrices are factorised by the evaluator: where pivots are chosen by selections, the work grows with the cube, and twice.
const PIVOTED: usize = 4;
/// More elements of cubes are a batch whose systems are solved side by side, by a call.
const BATCHED: usize = 216;
/// As [`PIVOTED`] where no pivots are chosen.
const FACTORED: usize = 8;

/// Systems of more right sides are solved by the evaluator, which takes them side by side: a row that is known stands in so many products.
const SUBSTITUTED: usize = 32;

/// A row-major matrix.
#[derive(Clone)]
struct Matrix {
    columns: usize,
    all: Vec<Reg>,
}

impl Matrix {
    fn at(&self, i: usize, j: usize) -> Reg {
        self.all[i * self.columns + j]
    }
    fn set(&mut self, i: usize, j: usize, x: Reg) {
        self.all[i * self.columns + j] = x;
    }
    fn transposed(&self) -> Matrix {
        let rows = self.all.len() / self.columns.max(1);
        Matrix { columns: rows, all: (0..self.columns).flat_map(|j| (0..rows).map(move |i| self.at(i, j))).collect() }
    }
}

/// `P·a = L·U`, beside it the right sides with their rows in the same order.
struct Factors {
    lu: Matrix,
    right: Matrix,
    /// Determinant of the permutation.
    sign: Reg,
    /// True where the diagonal of U holds no zero.
    regular: Reg,
}

/// Up to as many multiplications a kernel computes a product, element by element. Larger ones are quicker as calls: a row by a matrix of
/// 16 × 16 takes a third of the time, of 32 × 32 an eighth.
const MULTIPLICATIONS: usize = 128;

impl Lowering<'_> {
    /// In the order of the law of products.
    pub(super) fn matmul(&mut self, node: &Node, shape: &Extents) -> Lowered<Vec<Reg>> {
        let (a, b) = (self.value(node.ins[0])?, self.value(node.ins[1])?);
        if !self.layout().by_element() {
            return refuse("a product of many elements");
        }
        let (a, b) = (a.shape(), b.shape());
        let (axes_a, axes_b) = (a.len().min(2), b.len().min(2));
        let (m, k) = (if axes_a == 2 { a[a.len() - 2] } else { 1 }, a[a.len() - 1]);
        let n = if axes_b == 2 { b[b.len() - 1] } else { 1 };
        let (batch_a, batch_b) = (&a[..a.len() - axes_a], &b[..b.len() - axes_b]);
        let batch = &shape[..batch_a.len().max(batch_b.len())];
        // Matrices on the left of one on the right are one product of all their rows.
        let rows = if batch_b.is_empty() { count(batch) * m } else { m };
        if rows * k * n > MULTIPLICATIONS {
            return refuse(format!("a product of {rows}×{k} and {k}×{n}"));
        }
        let dtype = self.graph().ty(node.outs[0]).dtype;
        let sides = [self.regs_of(node.ins[0], dtype)?, self.regs_of(node.ins[1], dtype)?];
        let (of_a, of_b) = (broadcast_positions(batch_a, batch), broadcast_positions(batch_b, batch));
        let mut out = vec![];
        for (at_a, at_b) in of_a.into_iter().zip(of_b) {
            let (a, b) = (&sides[0][at_a * m * k..][..m * k], &sides[1][at_b * k * n..][..k * n]);
            for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
                let terms: Vec<(Reg, Reg)> = (0..k).map(|p| (a[i * k + p], b[p * n + j])).collect();
                out.push(self.product(dtype, &terms, n == 1)?);
            }
        }
        Ok(out)
    }

    /// The scalars of a value as another dtype.
    pub(super) fn regs_of(&mut self, v: Value, dtype: DType) -> Lowered<Vec<Reg>> {
        let regs = self.regs(v)?;
        Ok(regs.into_iter().map(|r| self.builder.convert(r, dtype)).collect())
    }

    /// The matrices of a value, of this extent, in f64.
    fn matrices(&mut self, v: Value, most: usize) -> Lowered<(Vec<Matrix>, usize)> {
        self.elements_alone()?;
        let value = self.value(v)?;
        let [.., rows, n] = *value.shape() else { return refuse("it is no matrix") };
        if rows != n || n == 0 || n > most {
            return refuse(format!("a matrix of extents {rows} and {n}"));
        }
        let all = self.regs_of(v, DType::F64)?;
        Ok((all.chunks(n * n).map(|a| Matrix { columns: n, all: a.to_vec() }).collect(), n))
    }

    /// A row of the elementwise table on f64.
    fn wide(&mut self, op: ElemOp, ins: &[Reg]) -> Lowered<Reg> {
        self.elem(op, DType::F64, ins)
    }
    /// `x − y·z`
    fn less(&mut self, x: Reg, y: Reg, z: Reg) -> Lowered<Reg> {
        let product = self.wide(ElemOp::Mul, &[y, z])?;
        self.wide(ElemOp::Sub, &[x, product])
    }
    fn not_zero(&mut self, x: Reg) -> Reg {
        let zero = self.number(DType::F64, 0.0);
        self.builder.cmp(Cmp::Ne, x, zero)
    }
    /// Scalars in f64 as those of a result.
    fn narrowed(&mut self, v: Value, regs: impl IntoIterator<Item = Reg>) -> Vec<Reg> {
        let dtype = self.graph().ty(v).dtype;
        regs.into_iter().map(|r| self.builder.convert(r, dtype)).collect()
    }

    /// Factorises with partial pivoting.
    fn factored(&mut self, mut lu: Matrix, mut right: Matrix) -> Lowered<Factors> {
        let n = lu.columns;
        let mut sign = self.number(DType::F64, 1.0);
        let mut regular = self.builder.truth(true);
        for k in 0..n {
            let best = self.pivots(&lu, k)?;
            self.swapped(&mut lu, k, &best);
            self.swapped(&mut right, k, &best);
            for &(_, is_best) in &best {
                let turned = self.wide(ElemOp::Neg, &[sign])?;
                sign = self.builder.select(is_best, turned, sign);
            }
            let there = self.not_zero(lu.at(k, k));
            regular = self.builder.bin(Bin::And, regular, there);
            self.eliminate(&mut lu, k, there)?;
        }
        Ok(Factors { lu, right, sign, regular })
    }

    /// Per row below row k, whether it is the first with the largest element of column k.
    fn pivots(&mut self, lu: &Matrix, k: usize) -> Lowered<Vec<(usize, Reg)>> {
        let mut size = self.wide(ElemOp::Abs, &[lu.at(k, k)])?;
        let mut beats = vec![];
        for i in k + 1..lu.columns {
            let own = self.wide(ElemOp::Abs, &[lu.at(i, k)])?;
            let larger = self.builder.cmp(Cmp::Lt, size, own);
            size = self.builder.select(larger, own, size);
            beats.push((i, larger));
        }
        let mut beaten = self.builder.truth(false);
        for (_, larger) in beats.iter_mut().rev() {
            let (own, stands) = (*larger, self.elem(ElemOp::Not, DType::Bool, &[beaten])?);
            *larger = self.builder.bin(Bin::And, own, stands);
            beaten = self.builder.bin(Bin::Or, beaten, own);
        }
        Ok(beats)
    }

    /// Row k changes places with the row that is the best.
    fn swapped(&mut self, x: &mut Matrix, k: usize, best: &[(usize, Reg)]) {
        for j in 0..x.columns {
            let (old, mut new) = (x.at(k, j), x.at(k, j));
            for &(i, is_best) in best {
                new = self.builder.select(is_best, x.at(i, j), new);
                let other = self.builder.select(is_best, old, x.at(i, j));
                x.set(i, j, other);
            }
            x.set(k, j, new);
        }
    }

    /// Subtracts multiples of row k from those below, where there is a pivot.
    fn eliminate(&mut self, lu: &mut Matrix, k: usize, there: Reg) -> Lowered<()> {
        for i in k + 1..lu.columns {
            let factor = self.wide(ElemOp::Div, &[lu.at(i, k), lu.at(k, k)])?;
            let kept = self.builder.select(there, factor, lu.at(i, k));
            lu.set(i, k, kept);
            for j in k + 1..lu.columns {
                let rest = self.less(lu.at(i, j), factor, lu.at(k, j))?;
                let rest = self.builder.select(there, rest, lu.at(i, j));
                lu.set(i, j, rest);
            }
        }
        Ok(())
    }

    /// Overwrites b with the solution of a triangular system.
    fn substitute(&mut self, a: &Matrix, lower: bool, unit: bool, b: &mut Matrix) -> Lowered<()> {
        let n = a.columns;
        if n.saturating_sub(1) * b.columns > SUBSTITUTED {
            return refuse("a system of many right sides");
        }
        for i in (0..n).map(|i| if lower { i } else { n - 1 - i }) {
            let known = if lower { 0..i } else { i + 1..n };
            for c in 0..b.columns {
                let mut x = b.at(i, c);
                for j in known.clone() {
                    x = self.less(x, a.at(i, j), b.at(j, c))?;
                }
                if !unit {
                    x = self.wide(ElemOp::Div, &[x, a.at(i, i)])?;
                }
                b.set(i, c, x);
            }
        }
        Ok(())
    }

    /// The solution of a factorised system, which must be regular.
    fn solved(&mut self, f: &Factors) -> Lowered<Matrix> {
        self.require(f.regular)?;
        let mut x = f.right.clone();
        self.substitute(&f.lu, true, true, &mut x)?;
        self.substitute(&f.lu, false, false, &mut x)?;
        Ok(x)
    }

    /// The lower triangular l with `l·lᵀ = a`, which must be positive definite.
    fn root(&mut self, a: &Matrix) -> Lowered<Matrix> {
        let n = a.columns;
        let zero = self.number(DType::F64, 0.0);
        let mut l = Matrix { columns: n, all: vec![zero; n * n] };
        for (i, j) in (0..n).flat_map(|j| (j..n).map(move |i| (i, j))) {
            let mut rest = a.at(i, j);
            for k in 0..j {
                rest = self.less(rest, l.at(i, k), l.at(j, k))?;
            }
            let element = if i > j {
                self.wide(ElemOp::Div, &[rest, l.at(j, j)])?
            } else {
                let positive = self.builder.cmp(Cmp::Lt, zero, rest);
                self.require(positive)?;
                self.wide(ElemOp::Sqrt, &[rest])?
            };
            l.set(i, j, element);
        }
        Ok(l)
    }

    pub(super) fn cholesky(&mut self, node: &Node) -> Lowered<Vec<Reg>> {
        let (all, _) = self.matrices(node.ins[0], FACTORED)?;
        let roots = all.iter().map(|a| self.root(a)).collect::<Lowered<Vec<_>>>()?;
        Ok(self.narrowed(node.outs[0], roots.into_iter().flat_map(|l| l.all)))
    }

    pub(super) fn inverse(&mut self, node: &Node) -> Lowered<Vec<Reg>> {
        let (all, n) = self.matrices(node.ins[0], PIVOTED)?;
        let unit = [0.0, 1.0].map(|x| self.number(DType::F64, x));
        let eye = Matrix { columns: n, all: (0..n * n).map(|at| unit[usize::from(at / n == at % n)]).collect() };
        let mut out = vec![];
        for a in all {
            let f = self.factored(a, eye.clone())?;
            out.extend(self.solved(&f)?.all);
        }
        Ok(self.narrowed(node.outs[0], out))
    }

    /// Matrices and right sides of the systems of `solve`, which are a batch of both.
    fn systems(&mut self, node: &Node, most: usize) -> Lowered<Vec<(Matrix, Matrix)>> {
        let (all, n) = self.matrices(node.ins[0], most)?;
        let [a, b] = [self.value(node.ins[0])?, self.value(node.ins[1])?];
        let vector = b.shape().len() == 1;
        let columns = if vector { 1 } else { b.shape()[b.shape().len() - 1] };
        let out = self.shape(node.outs[0])?;
        let batch = &out[..out.len() - if vector { 1 } else { 2 }];
        let of_a = broadcast_positions(&a.shape()[..a.shape().len() - 2], batch);
        let of_b = broadcast_positions(if vector { &[] } else { &b.shape()[..b.shape().len() - 2] }, batch);
        let right = self.regs_of(node.ins[1], DType::F64)?;
        let side = |at: usize| Matrix { columns, all: right[at * n * columns..][..n * columns].to_vec() };
        Ok(of_a.into_iter().zip(of_b).map(|(a, b)| (all[a].clone(), side(b))).collect())
    }

    pub(super) fn solve(&mut self, kind: MatrixKind, node: &Node) -> Lowered<Vec<Reg>> {
        let most = if kind == MatrixKind::General { PIVOTED } else { FACTORED };
        let systems = self.systems(node, most)?;
        let cubes: usize = systems.iter().map(|(a, _)| a.columns.pow(3)).sum();
        if kind == MatrixKind::General && systems.len() > 1 && cubes > BATCHED {
            return refuse("many systems of equations");
        }
        let mut out = vec![];
        for (a, mut b) in systems {
            match kind {
                MatrixKind::General => {
                    let f = self.factored(a, b)?;
                    b = self.solved(&f)?;
                }
                MatrixKind::Lower | MatrixKind::Upper => {
                    for i in 0..a.columns {
                        let there = self.not_zero(a.at(i, i));
                        self.require(there)?;
                    }
                    self.substitute(&a, kind == MatrixKind::Lower, false, &mut b)?;
                }
                MatrixKind::Positive => {
                    let l = self.root(&a)?;
                    self.substitute(&l, true, false, &mut b)?;
                    self.substitute(&l.transposed(), false, false, &mut b)?;
                }
            }
            out.extend(b.all);
        }
        Ok(self.narrowed(node.outs[0], out))
    }

    /// Sign and logarithm of the determinant.
    fn sign_and_log(&mut self, f: &Factors) -> Lowered<(Reg, Reg)> {
        let [zero, least] = [0.0, f64::NEG_INFINITY].map(|x| self.number(DType::F64, x));
        let (mut sign, mut log) = (f.sign, zero);
        for i in 0..f.lu.columns {
            let u = f.lu.at(i, i);
            let (below, turned) = (self.builder.cmp(Cmp::Lt, u, zero), self.wide(ElemOp::Neg, &[sign])?);
            sign = self.builder.select(below, turned, sign);
            let size = self.wide(ElemOp::Abs, &[u])?;
            let size = self.builder.call(HostFn::Log, &[size]);
            log = self.wide(ElemOp::Add, &[log, size])?;
        }
        Ok((self.builder.select(f.regular, sign, zero), self.builder.select(f.regular, log, least)))
    }

    pub(super) fn slogdet(&mut self, node: &Node) -> Lowered<Vec<Vec<Reg>>> {
        let (all, n) = self.matrices(node.ins[0], PIVOTED)?;
        let (mut signs, mut logs) = (vec![], vec![]);
        for a in all {
            let f = self.factored(a, Matrix { columns: 0, all: vec![] })?;
            let (sign, log) = self.sign_and_log(&f)?;
            signs.push(sign);
            logs.push(log);
        }
        debug_assert!(n > 0);
        Ok(vec![self.narrowed(node.outs[0], signs), self.narrowed(node.outs[1], logs)])
    }

    pub(super) fn solve_slogdet(&mut self, node: &Node) -> Lowered<Vec<Vec<Reg>>> {
        let (mut solutions, mut signs, mut logs) = (vec![], vec![], vec![]);
        let systems = self.systems(node, PIVOTED)?;
        if systems.len() != count(&self.shape(node.outs[1])?) {
            return refuse("a batch of right sides that is larger than that of matrices");
        }
        for (a, b) in systems {
            let f = self.factored(a, b)?;
            solutions.extend(self.solved(&f)?.all);
            let (sign, log) = self.sign_and_log(&f)?;
            signs.push(sign);
            logs.push(log);
        }
        let [x, sign, log] = [0, 1, 2].map(|k| node.outs[k]);
        Ok(vec![self.narrowed(x, solutions), self.narrowed(sign, signs), self.narrowed(log, logs)])
    }

    /// The product of the pivots. The law scales them: where all that is multiplied is a normal number, or a pivot is zero and the others
    /// are finite, that changes no bit.
    pub(super) fn det(&mut self, node: &Node) -> Lowered<Vec<Reg>> {
        let (all, _) = self.matrices(node.ins[0], PIVOTED)?;
        let zero = self.number(DType::F64, 0.0);
        let mut out = vec![];
        for a in all {
            let f = self.factored(a, Matrix { columns: 0, all: vec![] })?;
            let mut product = f.sign;
            for i in 0..f.lu.columns {
                let u = f.lu.at(i, i);
                product = self.wide(ElemOp::Mul, &[product, u])?;
                for x in [u, product] {
                    let holds = self.is_plain(x, f.regular)?;
                    self.require(holds)?;
                }
            }
            out.push(self.wide(ElemOp::Add, &[product, zero])?);
        }
        Ok(self.narrowed(node.outs[0], out))
    }

    /// True for normal numbers and, of matrices without an inverse, for zero and small ones.
    fn is_plain(&mut self, x: Reg, regular: Reg) -> Lowered<Reg> {
        let (least, size) = (self.number(DType::F64, f64::MIN_POSITIVE), self.wide(ElemOp::Abs, &[x])?);
        let most = self.number(DType::F64, f64::MAX);
        let (above, below) = (self.builder.cmp(Cmp::Le, least, size), self.builder.cmp(Cmp::Le, size, most));
        let singular = self.elem(ElemOp::Not, DType::Bool, &[regular])?;
        let above = self.builder.bin(Bin::Or, above, singular);
        Ok(self.builder.bin(Bin::And, above, below))
    }
}
