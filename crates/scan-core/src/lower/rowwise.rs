//! Nodes of which a row of the result depends on a row of some inputs.

use crate::base::Id;
use crate::ir::op::*;
use crate::ir::{Graph, Node, Value};
use crate::types::Type;
use smallvec::{SmallVec, smallvec};

/// One node, or a few that are the product of rows and a matrix.
pub struct Rowwise {
    /// What it does.
    pub op: Op,
    /// Inputs.
    pub ins: SmallVec<[Value; 4]>,
    /// Inputs of which a row of the result reads one row.
    pub cut: SmallVec<[bool; 4]>,
    /// The result, and what is computed on the way to it.
    pub made: SmallVec<[Value; 3]>,
}

/// How often values are read, by results of the graph, too.
pub struct Uses(Vec<u32>);

impl Uses {
    /// Counts.
    pub fn new(graph: &Graph) -> Uses {
        Uses(graph.uses())
    }
    /// How often a value is read.
    pub fn count(&self, v: Value) -> usize {
        self.0[v.idx()] as usize
    }

    /// A node whose result has a row for each row of some inputs.
    pub fn rowwise(&self, graph: &Graph, node: &Node) -> Option<Rowwise> {
        if let Some(product) = self.product(graph, node) {
            return Some(product);
        }
        let ty = |k: usize| graph.ty(node.ins[k]);
        let rank = graph.ty(node.outs[0]).rank();
        if rank == 0 || node.ins.is_empty() {
            return None;
        }
        let first = |n: usize| -> SmallVec<[bool; 4]> { (0..n).map(|k| k == 0).collect() };
        let cut = match &node.op {
            Op::Elem(_) | Op::Cast(_) | Op::StopGradient(_) | Op::GradClip(_) => {
                (0..node.ins.len()).map(|k| ty(k).rank() == rank && !ty(k).dims[0].is_one()).collect()
            }
            Op::MatMul(_) => factors(ty(0), ty(1))?,
            Op::Index(op) if op.pattern == ":" || op.pattern.starts_with(":,") => first(node.ins.len()),
            Op::Reduce(Reduce { axes, .. }) | Op::LogSumExp(LogSumExp { axes, .. }) | Op::Expand(Expand { axes }) if !axes.contains(&0) => {
                first(1)
            }
            Op::ExtremeMask(op) if !op.axes.contains(&0) => first(1),
            Op::Softmax(Softmax { axis }) | Op::LogSoftmax(LogSoftmax { axis }) | Op::Flip(Flip { axis }) if *axis > 0 => first(1),
            Op::Transpose(op) if op.perm.first() == Some(&0) => first(1),
            _ => return None,
        };
        cut.contains(&true).then(|| Rowwise {
            op: node.op.clone(),
            ins: node.ins.iter().copied().collect(),
            cut,
            made: smallvec![node.outs[0]],
        })
    }

    /// `reshape(matmul(reshape(x), w))`, where that is x·w for rows that are vectors or matrices: the types tell that the last axis
    /// alone changes.
    fn product(&self, graph: &Graph, node: &Node) -> Option<Rowwise> {
        let once = |v: Value| graph.node_of(v).filter(|_| self.count(v) == 1);
        let mut made: SmallVec<[Value; 3]> = smallvec![node.outs[0]];
        let matmul = match &node.op {
            Op::MatMul(_) => node,
            Op::Reshape(_) => {
                made.push(node.ins[0]);
                once(node.ins[0]).filter(|n| matches!(n.op, Op::MatMul(_)))?
            }
            _ => return None,
        };
        let [flat, w] = matmul.ins[..] else { return None };
        made.push(flat);
        let x = once(flat).filter(|n| matches!(n.op, Op::Reshape(_)))?.ins[0];
        let (own, of, by) = (&graph.ty(node.outs[0]).dims, &graph.ty(x).dims, &graph.ty(w).dims);
        let last = own.len().checked_sub(1).filter(|&last| last > 0 && own.len() == of.len() && by.len() == 2)?;
        let fits = own[..last] == of[..last] && own[last] == by[1] && graph.ty(x).dtype == graph.ty(w).dtype;
        (fits && !of[0].is_one()).then(|| Rowwise { op: MatMul {}.into(), ins: smallvec![x, w], cut: smallvec![true, false], made })
    }
}

/// Which sides of a product have a row, or a matrix, per row of the result.
fn factors(a: &Type, b: &Type) -> Option<SmallVec<[bool; 4]>> {
    let many = |ty: &Type, rank: usize| ty.rank() == rank && !ty.dims[0].is_one();
    match a.rank().max(b.rank()) {
        0 | 1 => None,
        2 => (many(a, 2)).then(|| smallvec![true, false]),
        rank => Some(smallvec![many(a, rank), many(b, rank)]),
    }
}
