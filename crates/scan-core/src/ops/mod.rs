//! What every op means: one file per op or family, one match arm per row of the op table.

mod args;
pub(crate) mod batch;
pub(crate) mod broadcast;
pub mod certain;
mod cofactor;
pub(crate) mod control;
mod create;
mod cumulate;
mod dft;
pub(crate) mod direct;
mod eigen;
mod elemwise;
mod extreme;
mod factor;
pub(crate) mod gather;
pub mod index;
mod join;
mod legacy;
mod linalg;
pub(crate) mod log_matmul;
pub(crate) mod mapped;
pub(crate) mod matmul;
mod order;
pub(crate) mod outer_sum;
mod parts;
pub mod properties;
mod random;
pub(crate) mod reduce;
mod reflect;
mod region;
pub mod rowwise;
mod scan_op;
mod search;
pub(crate) mod select;
mod shape;
mod slices;
pub(crate) mod softmax;
mod solve_slogdet;
mod sort;
mod spectral;
mod spelled;
pub(crate) mod support;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod triangle;
pub mod views;

use crate::ir::{Op, OpDef};

impl Op {
    /// What the op knows about itself.
    pub fn def(&self) -> &dyn OpDef {
        match self {
            Op::Elem(x) => x,
            Op::Const(x) => x.as_ref(),
            Op::Scan(x) => x.as_ref(),
            Op::Extern(x) => x,
            Op::Native(x) => x,
            Op::Cast(x) => x,
            Op::DimOf(x) => x,
            Op::StopGradient(x) => x,
            Op::Hold(x) => x,
            Op::GradClip(x) => x,
            Op::GradTo(x) => x,
            Op::Assert(x) => x,
            Op::Reduce(x) => x,
            Op::ArgReduce(x) => x,
            Op::ExtremeMask(x) => x,
            Op::LogSumExp(x) => x,
            Op::Softmax(x) => x,
            Op::LogSoftmax(x) => x,
            Op::CumSum(x) => x,
            Op::Dft(x) => x,
            Op::CumProd(x) => x,
            Op::Recurrence(x) => x,
            Op::Sort(x) => x,
            Op::ArgSort(x) => x,
            Op::ArgTopK(x) => x,
            Op::SearchSorted(x) => x,
            Op::CumExtreme(x) => x,
            Op::ArgCumExtreme(x) => x,
            Op::MatMul(x) => x,
            Op::OuterSum(x) => x,
            Op::LogMatMul(x) => x,
            Op::LogMatMulPowers(x) => x,
            Op::LogMatMulSums(x) => x,
            Op::LogMatMulQuotients(x) => x,
            Op::LogMatMulLeft(x) => x,
            Op::LogMatMulRight(x) => x,
            Op::Reshape(x) => x,
            Op::ReshapeLike(x) => x,
            Op::Transpose(x) => x,
            Op::Expand(x) => x,
            Op::Squeeze(x) => x,
            Op::BroadcastTo(x) => x,
            Op::BroadcastLike(x) => x,
            Op::SumTo(x) => x,
            Op::Join(x) => x,
            Op::Flip(x) => x,
            Op::Index(x) => x,
            Op::IndexWrite(x) => x,
            Op::Gather(x) => x,
            Op::GatherWrite(x) => x,
            Op::Nonzero(x) => x,
            Op::Arange(x) => x,
            Op::Eye(x) => x,
            Op::Diag(x) => x,
            Op::IfElse(x) => x,
            Op::Solve(x) => x,
            Op::Cholesky(x) => x,
            Op::Inverse(x) => x,
            Op::SLogDet(x) => x,
            Op::Det(x) => x,
            Op::Cofactor(x) => x,
            Op::CofactorSlope(x) => x,
            Op::SolveSLogDet(x) => x,
            Op::Qr(x) => x,
            Op::Eigh(x) => x,
            Op::Svd(x) => x,
            Op::Pinv(x) => x,
            Op::Tri(x) => x,
            Op::FoldIn(x) => x,
            Op::RandomUniform(x) => x,
            Op::RandomNormal(x) => x,
            Op::RandomIntegers(x) => x,
            Op::RandomPermutation(x) => x,
            Op::LegacyDraw(x) => x,
        }
    }
}
