//! Which values of a graph lead to its results.

use crate::base::Id;
use crate::ir::{Graph, Node, Op, Scan};

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

/// True per value whose elements every evaluation computes: it is asked for more than its shape.
pub fn computed(g: &Graph) -> Vec<bool> {
    reached(g, computes)
}

/// True where every evaluation of an op needs the elements of its input of this position: not its shape alone, nor in a branch.
pub fn computes(op: &Op, input: usize) -> bool {
    (input == 0 || !matches!(op, Op::IfElse(_))) && !op.properties().shape_only.contains(&input)
}

/// True where the number of steps that a loop ran is the one that it was asked for, if that is not negative: nothing stops it, and it runs
/// anyway for rows that are [`computed`], so that it says if it cannot run as many.
pub fn told_before(node: &Node, scan: &Scan, computed: &[bool]) -> bool {
    !scan.until && scan.states.ids().any(|id| computed[node.outs[scan.state_output(id)].idx()])
}
