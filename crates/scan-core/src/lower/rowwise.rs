//! Nodes of which a row of the result depends on a row of some inputs.

use crate::base::Id;
use crate::ir::op::*;
use crate::ir::{Graph, Node, Value};
use crate::ops::rowwise::reads_rows;
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
        let cut = reads_rows(graph, node)?;
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
