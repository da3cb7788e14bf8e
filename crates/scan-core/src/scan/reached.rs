//! Which values of a graph lead to its results.

use crate::base::Id;
use crate::ir::{Graph, Op};

/// True per value that the results lead to, going from a node to those of its inputs (by position) that `follows` admits.
pub fn reached(g: &Graph, follows: impl Fn(&Op, usize) -> bool) -> Vec<bool> {
    let mut live = vec![false; g.n_values()];
    let mut stack = g.results().to_vec();
    while let Some(v) = stack.pop() {
        if std::mem::replace(&mut live[v.idx()], true) {
            continue;
        }
        if let Some(node) = g.node_of(v) {
            stack.extend(node.ins.iter().enumerate().filter(|(k, _)| follows(&node.op, *k)).map(|(_, v)| *v));
        }
    }
    live
}

/// True per value that every evaluation computes: not only a branch of `ifelse` that may not be taken.
pub fn eager(g: &Graph) -> Vec<bool> {
    reached(g, |op, input| input == 0 || !matches!(op, Op::IfElse(_)))
}
