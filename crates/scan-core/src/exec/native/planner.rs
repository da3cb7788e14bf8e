//! What plans the graphs that stand in a plan: bodies of loops, groups of nodes, loops that steps call.

use super::tier::Engine;
use crate::base::Result;
use crate::ir::op::Outs;
use crate::ir::{Graph, Op};
use crate::types::Type;

/// Plans for an engine. Much of a plan plans what stands in it when that is first needed, and stands below `plan.rs`, which makes plans of
/// all this: so it is given how to plan.
#[derive(Clone, Copy)]
pub struct Planner {
    /// What it plans for.
    pub engine: Engine,
    /// The plan of a graph.
    pub(super) graph: fn(&Graph, Engine) -> Result<Graph>,
    /// The same without regions.
    pub(super) nodes: fn(&Graph, Engine) -> Result<Graph>,
    /// An op with these results as a plan has it.
    pub(super) op: fn(&Op, Outs<Type>, Engine) -> Op,
}

impl Planner {
    /// The plan of a graph.
    ///
    /// # Errors
    /// An internal error where the graph is not consistent.
    pub fn graph(self, graph: &Graph) -> Result<Graph> {
        (self.graph)(graph, self.engine)
    }
    /// The same without regions.
    ///
    /// # Errors
    /// As [`Planner::graph`].
    pub fn nodes(self, graph: &Graph) -> Result<Graph> {
        (self.nodes)(graph, self.engine)
    }
    /// An op with these results as a plan has it: loops are compiled.
    pub fn op(self, op: &Op, types: Outs<Type>) -> Op {
        (self.op)(op, types, self.engine)
    }
}
