//! Ops on slices: what a loop evaluates at every step without making arrays. Each computes what `eval` of its op computes.

use super::dft;
use super::log_matmul::{self, Size};
use super::matmul::{self, Product};
use super::reduce;
use super::softmax::{self, Exponents, Of, Scratch};
use super::support::{Lanes, drop_axes};
use super::triangle::cholesky;
use crate::base::Result;
use crate::ir::op::*;
use crate::scalar::product::{Stack, is_small};
use crate::types::shape::Extents;

/// An op for operands of certain extents, all of one float dtype.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direct {
    /// `log_matmul`
    LogMatMul(Size),
    /// `log_matmul_powers`, of rows of so many elements.
    LogMatMulPowers(usize),
    /// `log_matmul_sums`
    LogMatMulSums(Size),
    /// `log_matmul_quotients`, of rows of so many elements.
    LogMatMulQuotients(usize),
    /// `log_matmul_left`
    LogMatMulLeft(Size),
    /// `log_matmul_right`
    LogMatMulRight(Size, bool),
    /// logsumexp and its kin.
    Lanes(Of, Lanes),
    /// A sum or product, a maximum or minimum.
    Reduce(ReduceKind, Lanes),
    /// Systems of linear equations: how many, extent and number of right sides; elements from one system's matrix and sides to the next's.
    Solve(MatrixKind, [usize; 3], [usize; 2]),
    /// `cholesky`
    Cholesky(usize),
    /// `dft` of so many numbers, or its inverse.
    Dft(usize, bool),
    /// `matmul` of stacks of small matrices: extents, and elements from one matrix of each side to the next.
    Products([usize; 3], [usize; 2]),
}

impl Direct {
    /// The op, where it works on slices: given the shapes of its inputs and output, of f64 where `wide`, else of f32.
    pub fn new(op: &Op, ins: &[&[usize]], out: &[usize], wide: bool) -> Option<Direct> {
        let direct = match (op, ins) {
            (Op::LogMatMul(_), [a, w, ..]) if wide => Direct::LogMatMul(Size::of(a, w)?),
            (Op::LogMatMulPowers(_), [a]) if wide => Direct::LogMatMulPowers(*a.last()?),
            (Op::LogMatMulSums(_), [powers, power]) if wide => Direct::LogMatMulSums(Size::of(powers, power)?),
            (Op::LogMatMulQuotients(_), [ct, ..]) if wide => Direct::LogMatMulQuotients(*ct.last()?),
            (Op::LogMatMulLeft(_), [_, _, _, a, w, _]) if wide => Direct::LogMatMulLeft(Size::of(a, w)?),
            (Op::LogMatMulRight(op), [_, _, _, a, w, _]) if wide => Direct::LogMatMulRight(Size::of(a, w)?, op.reverse),
            (Op::LogSumExp(op), [x]) => Direct::Lanes(Of::LogSumExp, Lanes::side_by_side(x, &op.axes)?),
            (Op::Softmax(op), [x]) => Direct::Lanes(Of::Softmax, Lanes::along(x, op.axis)),
            (Op::LogSoftmax(op), [x]) => Direct::Lanes(Of::LogSoftmax, Lanes::along(x, op.axis)),
            (Op::Reduce(op), [x]) => Direct::reduce(op.kind, x, &op.axes)?,
            (Op::SumTo(_), [x, like]) => {
                let new = x.len().checked_sub(like.len())?;
                let axes: Vec<usize> = (0..x.len()).filter(|&i| i < new || like[i - new] == 1 && x[i] != 1).collect();
                let kept: Extents = drop_axes(x, &axes, None).filter(|&n| n != 1).collect();
                let same = kept.iter().eq(like.iter().filter(|&&n| n != 1));
                // Where nothing is added up, elements stay what they are: a sum of −0 is 0.
                let adds = x.iter().product::<usize>() != like.iter().product::<usize>();
                Direct::reduce(ReduceKind::Sum, x, &axes).filter(|_| same && adds)?
            }
            (Op::MatMul(_), [a, b]) => Direct::products(a, b, out)?,
            (Op::Solve(op), [a, b]) if wide => Direct::systems(op.kind, a, b, out)?,
            (Op::Dft(op), [[.., n, 2]]) if wide => Direct::Dft(*n, op.inverse),
            (Op::Cholesky(_), [a]) if wide && a.len() == 2 => Direct::Cholesky(a[0]),
            _ => return None,
        };
        let count = |shape: &[usize]| shape.iter().product::<usize>();
        let (wanted, elements): (Vec<usize>, usize) = match direct {
            Direct::LogMatMul(size) => (vec![size.given(), size.weights(), size.results(), ins[1][1]], size.results()),
            Direct::LogMatMulSums(size) => (vec![size.given(), size.weights()], size.results()),
            Direct::LogMatMulQuotients(n) => (vec![count(ins[0]), count(ins[0]), n], count(ins[0])),
            Direct::LogMatMulLeft(size) => (Direct::of_cotangent(size), size.given()),
            Direct::LogMatMulRight(size, _) => (Direct::of_cotangent(size), size.weights()),
            Direct::Lanes(Of::LogSumExp, lanes) | Direct::Reduce(_, lanes) => (vec![], lanes.count()),
            Direct::Lanes(..) | Direct::LogMatMulPowers(_) | Direct::Dft(..) => (vec![], count(ins[0])),
            Direct::Products(..) | Direct::Solve(..) => (vec![], count(out)),
            Direct::Cholesky(n) => (vec![n * n], n * n),
        };
        let given = ins.iter().zip(&wanted).all(|(shape, n)| count(shape) == *n);
        (given && elements == count(out)).then_some(direct)
    }

    /// Stacks of matrices, and such by vectors, of which there are several on the right.
    fn products(a: &[usize], b: &[usize], out: &[usize]) -> Option<Direct> {
        let ([batch_a @ .., m, k], [batch_b @ .., l, n]) = (a, b) else { return None };
        let (batch, extents) = (out.get(..out.len().checked_sub(2)?)?, [*m, *k, *n]);
        let steps = matmul::steps([batch_a, batch_b], batch, [m * k, k * n])?;
        (k == l && !batch_b.is_empty() && is_small(extents)).then_some(Direct::Products(extents, steps))
    }

    /// Square matrices, and right sides for each of them: columns, or a vector.
    fn systems(kind: MatrixKind, a: &[usize], b: &[usize], out: &[usize]) -> Option<Direct> {
        let [batch_a @ .., m, n] = a else { return None };
        let (batch_b, rows, k) = match b {
            [rows] => (&[][..], *rows, 1),
            [batch @ .., rows, k] => (batch, *rows, *k),
            [] => return None,
        };
        let batch = out.get(..out.len().checked_sub(1 + usize::from(b.len() > 1))?)?;
        let steps = matmul::steps([batch_a, batch_b], batch, [n * n, n * k])?;
        let count = batch.iter().product::<usize>();
        let fits = m == n && rows == *n && out.iter().product::<usize>() == count * n * k;
        fits.then_some(Direct::Solve(kind, [count, *n, k], steps))
    }

    /// Elements of the operands of a cotangent.
    fn of_cotangent(size: Size) -> Vec<usize> {
        vec![size.results(), size.results(), size.given(), size.given(), size.weights(), size.weights()]
    }

    fn reduce(kind: ReduceKind, x: &[usize], axes: &[usize]) -> Option<Direct> {
        let lanes = Lanes::side_by_side(x, axes)?;
        let fits = match kind {
            ReduceKind::Sum | ReduceKind::Prod => true,
            ReduceKind::Max | ReduceKind::Min => lanes.n > 0,
            ReduceKind::Any | ReduceKind::All => false,
        };
        fits.then_some(Direct::Reduce(kind, lanes))
    }

    /// On f64; false where it fails, which `eval` tells the reason of.
    ///
    /// # Errors
    /// An interruption.
    pub fn run_f64(&self, cx: &mut EvalCx, ins: &[&[f64]], out: &mut [f64], scratch: &mut Scratch) -> Result<bool> {
        let six = || std::array::from_fn(|i| ins[i]);
        let mut written = |found: Option<Vec<f64>>| found.map(|found| out.copy_from_slice(&found)).is_some();
        match *self {
            Direct::Solve(kind, extents, [a, b]) => {
                let (a, b) = (Stack { all: ins[0], step: a }, Stack { all: ins[1], step: b });
                return Ok(Solve { kind }.solve(cx, extents, a, b, out)?.is_none());
            }
            Direct::Dft(n, inverse) => dft::transform(cx, inverse, n, ins[0], out)?,
            Direct::Cholesky(n) => return Ok(written(cholesky(cx, n, ins[0])?)),
            Direct::LogMatMul(size) => log_matmul::forward(size, [ins[0], ins[1], ins[2], ins[3]], out),
            Direct::LogMatMulPowers(k) => log_matmul::powers(k, ins[0], out),
            Direct::LogMatMulSums(size) => log_matmul::sums(size, ins[0], ins[1], out),
            Direct::LogMatMulQuotients(n) => log_matmul::quotients(n, [ins[0], ins[1], ins[2]], out),
            Direct::LogMatMulLeft(size) => log_matmul::left(size, six(), out),
            Direct::LogMatMulRight(size, reverse) => log_matmul::right(size, reverse, six(), out),
            _ => self.run_lanes(ins, out, scratch),
        }
        Ok(true)
    }

    /// On f32.
    pub fn run_f32(&self, ins: &[&[f32]], out: &mut [f32], scratch: &mut Scratch) {
        self.run_lanes(ins, out, scratch);
    }

    fn run_lanes<T: Exponents + Product>(&self, ins: &[&[T]], out: &mut [T], scratch: &mut Scratch) {
        match *self {
            Direct::Lanes(of, lanes) => softmax::compute(of, lanes, ins[0], out, scratch, &mut |_| Ok(())).unwrap_or(()),
            Direct::Reduce(kind, lanes) => reduce::compute(kind, lanes, ins[0], out, &mut |_| Ok(())).unwrap_or(()),
            Direct::Products(extents, [a, b]) => {
                T::multiply_many(extents, Stack { all: ins[0], step: a }, Stack { all: ins[1], step: b }, out);
            }
            _ => {}
        }
    }
}
