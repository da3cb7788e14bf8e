//! What a graph is as a whole, the loops in it included. It is found once per graph, from what is known of each body: whoever walked
//! into the loops again at every level would take time that grows with the square of how deeply they nest, or worse.

use super::graph::Graph;
use super::op::Op;
use crate::base::Id;

/// What is known of a graph and of the loops in it, however deep.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Whole {
    /// How many loops stand in each other at most.
    pub depth: usize,
    /// Number of nodes, where each loop counts with those of its body.
    pub nodes: usize,
    /// True where there is an op of a user's.
    pub user_ops: bool,
    /// True where there is an op of a user's of which each evaluation counts, by its result or by what it does besides.
    pub impure: bool,
    /// True where there is an op of a user's that must not run again for a gradient.
    pub once: bool,
    /// True where computing the results can be noticed: prints, draws from the outside, assertions.
    pub effects: bool,
}

impl Whole {
    pub(super) fn of(graph: &Graph) -> Whole {
        let live = graph.needed(graph.results());
        let nodes = graph.nodes().enumerate();
        nodes.fold(Whole::default(), |all, (id, node)| all.and(Whole::of_op(&node.op, node.ins.len()), live[id.idx()]))
    }
    /// Of one op with so many inputs.
    pub fn of_op(op: &Op, inputs: usize) -> Whole {
        let one = Whole { nodes: 1, ..Whole::default() };
        match op {
            Op::Scan(scan) => {
                let body = scan.body.whole();
                Whole { depth: body.depth + 1, nodes: body.nodes.saturating_add(1), ..*body }
            }
            Op::Extern(e) => Whole { user_ops: true, impure: !e.0.pure(), once: e.0.once(), effects: !e.0.pure(), ..one },
            Op::Assert(_) => Whole { effects: inputs > 1, ..one },
            _ => one,
        }
    }
    /// Both; what is not needed for the results has no effects.
    fn and(self, other: Whole, needed: bool) -> Whole {
        Whole {
            depth: self.depth.max(other.depth),
            nodes: self.nodes.saturating_add(other.nodes),
            user_ops: self.user_ops || other.user_ops,
            impure: self.impure || other.impure,
            once: self.once || other.once,
            effects: self.effects || needed && other.effects,
        }
    }
}
