//! What computing a node costs, about, in picoseconds on one core, and which loops are more than one kernel. Extents that are not
//! known count as `NOMINAL`. Passes that move work into memory or out of it share this judgement.

use crate::ir::op::Op;
use crate::ir::{Graph, Node, Value};
use crate::ops::properties::Cost;
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
    let longest = || node.ins.iter().map(|&v| elements(g.ty(v))).max().unwrap_or(0).max(elements(out));
    match node.op.properties().cost {
        Cost::Free | Cost::Folds | Cost::Loop => 0,
        Cost::Simple => elements(out) * 50,
        Cost::Function => elements(out) * 600 * wide(out.dtype),
        Cost::Reads => elements(out) * 300,
        Cost::Walks => longest() * 300,
        Cost::Draws => elements(out) * 4000,
        Cost::Exponentials => elements(g.ty(node.ins[0])) * 800 * wide(out.dtype),
        Cost::Product => 100_000 + elements(out) * last(g.ty(node.ins[0]), 1) * 50 * wide(out.dtype),
        Cost::Factorises => {
            let n = last(g.ty(node.ins[0]), 1);
            500_000 + n * n * n * 300
        }
    }
}

/// An extent, counted from the last.
fn last(ty: &Type, back: usize) -> u64 {
    let dim = ty.rank().checked_sub(back).and_then(|at| ty.dims[at].value());
    dim.unwrap_or(NOMINAL) as u64
}

/// True for what is a call of its own in a step, unless it is small: products, factorisations, sums of exponentials, loops.
pub fn heavy(g: &Graph, node: &Node) -> bool {
    let small = |v: &Value| g.ty(*v).dims.iter().all(|d| d.value().is_some()) && elements(g.ty(*v)) <= 64;
    match node.op.properties().cost {
        Cost::Product => !node.ins.iter().chain(&node.outs).all(small),
        Cost::Exponentials => !node.ins.iter().all(small),
        cost => matches!(cost, Cost::Loop | Cost::Factorises),
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
