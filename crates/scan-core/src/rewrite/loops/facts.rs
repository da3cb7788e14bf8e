//! What can be proved of a graph, so that computation may move.

use crate::base::Id;
use crate::ir::{Graph, Node, Value, Whole};
pub use crate::ops::certain::{integer, never_negative, not_negative};
pub use crate::scan::reached::eager;
use crate::scan::reached::reached;
use crate::types::Dim;

/// True where evaluating a node can be noticed: prints, draws from the outside, assertions.
pub fn effect(node: &Node) -> bool {
    Whole::of_op(&node.op, node.ins.len()).effects
}

/// True where no values of the node's inputs let its evaluation fail.
pub fn infallible(g: &Graph, node: &Node) -> bool {
    !node.op.def().fallible(g, &node.ins)
}

/// True where at least one step runs, whatever the inputs.
pub fn some_step(g: &Graph, n_steps: Value) -> bool {
    let form = integer(g, n_steps).map(|n| Dim::from_parts([], n)).or_else(|| g.arg(n_steps).dim);
    form.is_some_and(|d| not_negative(&d.add(&Dim::from_parts([], -1))))
}

/// True per value that a live node or a result reads.
pub fn used(g: &Graph) -> Vec<bool> {
    let live = g.needed(g.results());
    let mut used = vec![false; g.n_values()];
    g.results().iter().for_each(|v| used[v.idx()] = true);
    for (_, node) in g.nodes().enumerate().filter(|(id, _)| live[id.idx()]) {
        node.ins.iter().for_each(|v| used[v.idx()] = true);
    }
    used
}

/// True per value that the results need for its elements, not only for its shape.
pub fn for_values(g: &Graph) -> Vec<bool> {
    reached(g, |op, input| !op.properties().shape_only.contains(&input))
}
