//! What computing a node costs, about, in picoseconds on one core, and which loops are more than one kernel. Extents that are not
//! known count as [`NOMINAL`]. Passes that move work into memory or out of it share this judgement.

use crate::ir::op::Op;
use crate::ir::{Graph, Node, Value};
use crate::scalar::ElemOp;
use crate::types::{DType, Type};

/// What an extent that is not known counts as.
const NOMINAL: usize = 64;
/// Loops of rows of so few elements are one kernel, whatever their products: `lower/scan.rs` writes these out.
const WRITTEN_OUT: usize = 1500;

/// Number of elements.
pub fn elements(ty: &Type) -> u64 {
    ty.dims.iter().map(|d| d.value().unwrap_or(NOMINAL) as u64).product()
}

/// Keeping a value at every step and reading it again.
pub fn keeping(ty: &Type) -> u64 {
    elements(ty) * ty.dtype.size() as u64 * 100
}

/// Computing a node.
pub fn computing(g: &Graph, node: &Node) -> u64 {
    let out = g.ty(node.outs[0]);
    let wide = |dtype: DType| if dtype == DType::F32 { 1 } else { 2 };
    match &node.op {
        Op::Elem(op) => elements(out) * if simple(*op) { 50 } else { 600 * wide(out.dtype) },
        Op::LogMatMulPowers(_) => elements(out) * 600 * wide(out.dtype),
        Op::MatMul(_) | Op::LogMatMulSums(_) => 100_000 + elements(out) * last(g.ty(node.ins[0]), 1) * 50 * wide(out.dtype),
        Op::LogSumExp(_) | Op::Softmax(_) | Op::LogSoftmax(_) => elements(g.ty(node.ins[0])) * 800 * wide(out.dtype),
        op if factorises(op) => {
            let n = last(g.ty(node.ins[0]), 1);
            500_000 + n * n * n * 300
        }
        Op::Const(_) | Op::Scan(_) | Op::DimOf(_) | Op::Expand(_) | Op::Squeeze(_) | Op::StopGradient(_) | Op::Hold(_) => 0,
        Op::BroadcastLike(_)
        | Op::BroadcastTo(_)
        | Op::ReshapeLike(_)
        | Op::Reshape(_)
        | Op::GradClip(_)
        | Op::GradTo(_)
        | Op::SumTo(_) => 0,
        Op::RandomNormal(_) | Op::RandomUniform(_) | Op::LegacyDraw(_) => elements(out) * 4000,
        Op::Index(_) | Op::Gather(_) => elements(out) * 300,
        _ => node.ins.iter().map(|&v| elements(g.ty(v))).max().unwrap_or(0).max(elements(out)) * 300,
    }
}

/// An extent, counted from the last.
fn last(ty: &Type, back: usize) -> u64 {
    let dim = ty.rank().checked_sub(back).and_then(|at| ty.dims[at].value());
    dim.unwrap_or(NOMINAL) as u64
}

/// One or two instructions an element.
fn simple(op: ElemOp) -> bool {
    use ElemOp::*;
    matches!(
        op,
        Add | Sub
            | Mul
            | Fma
            | Neg
            | Abs
            | Sign
            | Square
            | Minimum
            | Maximum
            | Clip
            | CopySign
            | Relu
            | Where
            | Eq
            | Ne
            | Lt
            | Le
            | Gt
            | Ge
    ) || matches!(op, IsNan | IsInf | IsFinite | SignBit | And | Or | Xor | Not | BitAnd | BitOr | BitXor | Invert | ShiftLeft | ShiftRight)
        || matches!(op, Floor | Ceil | Trunc | Round | Div | Sqrt | Reciprocal | Deg2Rad | Rad2Deg)
}

fn factorises(op: &Op) -> bool {
    let system = matches!(op, Op::Solve(_) | Op::Inverse(_) | Op::Cholesky(_) | Op::SLogDet(_) | Op::SolveSLogDet(_));
    system || matches!(op, Op::Det(_) | Op::Cofactor(_) | Op::CofactorSlope(_))
}

/// True for what is a call of its own in a step, unless it is small: products, factorisations, sums of exponentials, loops.
pub fn heavy(g: &Graph, node: &Node) -> bool {
    let small = |v: &Value| g.ty(*v).dims.iter().all(|d| d.value().is_some()) && elements(g.ty(*v)) <= 64;
    match &node.op {
        Op::MatMul(_) => !node.ins.iter().chain(&node.outs).all(small),
        Op::LogSumExp(_) | Op::Softmax(_) | Op::LogSoftmax(_) => !node.ins.iter().all(small),
        Op::Scan(_) => true,
        op => factorises(op),
    }
}

/// True where a loop of this step is certainly more than one kernel: what a step computes goes through memory anyway.
pub fn several_kernels(body: &Graph) -> bool {
    let live = body.needed(body.results());
    let nodes = || body.nodes().iter().zip(&live).filter(|(_, live)| **live).map(|(n, _)| n);
    let certain = |n: &Node| n.outs.iter().all(|v| body.ty(*v).dims.iter().all(|d| d.value().is_some()));
    let total: u64 = nodes().flat_map(|n| &n.outs).map(|v| elements(body.ty(*v))).sum();
    let written_out = nodes().all(certain) && total <= WRITTEN_OUT as u64;
    let in_log_space = |n: &Node| matches!(n.op, Op::LogMatMulSums(_) | Op::LogMatMulLeft(_));
    nodes().any(|n| in_log_space(n) || heavy(body, n) && !written_out)
}
