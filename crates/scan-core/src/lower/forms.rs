//! What every op is where the elements of arrays are scalars of a kernel: the one place that decides it.

use super::draws::Draw;
use super::dynamic_slice::dynamic_slice;
use super::nodes::Lowering;
use super::rooms::roomy;
use super::{Lowered, refuse};
use crate::ir::op::*;
use crate::ir::{Node, Op};
use crate::kernel::Reg;
use crate::types::DType;
use crate::types::shape::Extents;

/// Why products in log-space are not.
const LOG_PRODUCTS: &str = "it is computed for whole rows";

impl Lowering<'_> {
    /// The scalars of a node's results, the first of which has this shape.
    pub(super) fn form(&mut self, node: &Node, shape: &Extents) -> Lowered<Vec<Vec<Reg>>> {
        let one = |regs: Vec<Reg>| vec![regs];
        match &node.op {
            Op::Elem(op) => self.elementwise(*op, node, shape).map(one),
            Op::Cast(Cast { dtype }) => {
                let regs = self.regs(node.ins[0])?;
                Ok(one(regs.into_iter().map(|r| self.builder.convert(r, *dtype)).collect()))
            }
            Op::StopGradient(_) | Op::Hold(_) | Op::GradClip(_) | Op::GradTo(_) => self.regs(node.ins[0]).map(one),
            Op::Assert(_) => self.asserted(node).map(one),
            Op::IfElse(_) => self.choose(node).map(one),

            Op::Reduce(op) => self.reduction(op, node, shape).map(one),
            Op::SumTo(_) => self.sum_to(node, shape).map(one),
            Op::ArgReduce(op) => self.arg_extreme(op, node).map(one),
            Op::ExtremeMask(op) => self.extreme_mask(op, node).map(one),
            Op::LogSumExp(op) => self.log_sum_exp(op, node).map(one),
            Op::Softmax(op) => self.softmax(op.axis, false, node).map(one),
            Op::LogSoftmax(op) => self.softmax(op.axis, true, node).map(one),
            Op::CumSum(op) => self.cumulated(ReduceKind::Sum, op.axis, op.reverse, node).map(one),
            Op::CumProd(op) => self.cumulated(ReduceKind::Prod, op.axis, false, node).map(one),
            Op::CumExtreme(op) => self.cumulated_extreme(op.kind, op.axis, false, node).map(one),
            Op::ArgCumExtreme(op) => self.cumulated_extreme(op.kind, op.axis, true, node).map(one),
            Op::Recurrence(op) => self.recurrence(op, node).map(one),
            Op::Sort(op) => self.sorted(op.axis, false, node).map(one),
            Op::ArgSort(op) => self.sorted(op.axis, true, node).map(one),
            Op::ArgTopK(op) => self.topmost(op, node).map(one),
            Op::SearchSorted(op) => self.searched(op.right, node).map(one),

            Op::Reshape(_) | Op::ReshapeLike(_) | Op::Transpose(_) | Op::Expand(_) | Op::Squeeze(_) | Op::BroadcastTo(_) => {
                self.moved(node, shape).map(one)
            }
            Op::BroadcastLike(_) | Op::Join(_) | Op::Flip(_) | Op::Diag(_) | Op::Tri(_) => self.moved(node, shape).map(one),
            Op::Index(_) | Op::Gather(_) => self.picked(node, shape).map(one),
            Op::IndexWrite(IndexWrite { mode, .. }) | Op::GatherWrite(GatherWrite { mode, .. }) => {
                self.written(*mode, node, shape).map(one)
            }

            Op::MatMul(_) => self.matmul(node, shape).map(one),
            Op::Solve(op) => self.solve(op.kind, node).map(one),
            Op::Cholesky(_) => self.cholesky(node).map(one),
            Op::Inverse(_) => self.inverse(node).map(one),
            Op::SLogDet(_) => self.slogdet(node),
            Op::SolveSLogDet(_) => self.solve_slogdet(node),
            Op::Det(_) => self.det(node).map(one),

            Op::Cofactor(_) | Op::CofactorSlope(_) => refuse("it searches whole matrices for pivots"),
            Op::Qr(_) | Op::Eigh(_) | Op::Svd(_) | Op::Pinv(_) => refuse("how often it reflects and rotates depends on values"),
            Op::OuterSum(_) => refuse("it is a product of blocks of rows"),
            Op::Dft(_) => refuse("it takes all elements in several passes over memory"),
            Op::LogMatMul(_) | Op::LogMatMulPowers(_) | Op::LogMatMulSums(_) => refuse(LOG_PRODUCTS),
            Op::LogMatMulQuotients(_) | Op::LogMatMulLeft(_) | Op::LogMatMulRight(_) => refuse(LOG_PRODUCTS),
            Op::Nonzero(_) => refuse("how many elements it finds depends on values"),
            Op::FoldIn(_) => self.folded_in(node, shape).map(one),
            Op::RandomUniform(op) => self.drawn(Draw::Uniform(op.dtype), node, shape).map(one),
            Op::RandomNormal(op) => self.drawn(Draw::Normal(op.dtype), node, shape).map(one),
            Op::RandomIntegers(_) => self.drawn(Draw::Integers, node, shape).map(one),
            Op::RandomPermutation(_) | Op::LegacyDraw(_) => refuse("a draw of many numbers is one call for a whole array"),
            // Where their inputs are known, so are they.
            Op::DimOf(_) | Op::Const(_) | Op::Arange(_) | Op::Eye(_) => refuse("its elements depend on values"),
            Op::Scan(_) => self.looped(node),
            op @ Op::Native(_) if dynamic_slice(op).is_some() => self.picked(node, shape).map(one),
            op @ Op::Native(_) if roomy(op).is_some() => self.looped(node),
            Op::Extern(_) | Op::Native(_) => refuse("it is not made of operations that a kernel has"),
        }
    }

    /// What was asserted is handed on: the law says what is wrong.
    fn asserted(&mut self, node: &Node) -> Lowered<Vec<Reg>> {
        for &ok in &node.ins[1..] {
            for r in self.regs(ok)? {
                let holds = self.builder.convert(r, DType::Bool);
                self.require(holds)?;
            }
        }
        self.regs(node.ins[0])
    }
}
