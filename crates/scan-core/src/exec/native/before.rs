//! What all steps of a loop read: inputs of the loop, or what is computed of them before it begins.

use crate::base::Result;
use crate::eval::Walk;
use crate::ir::{Def, EvalCx, Graph, Scan};
use crate::types::Array;
use std::sync::Arc;

/// The values that all steps read.
pub enum Before {
    /// Inputs of the loop, by position.
    Given(Vec<usize>),
    /// Something is computed of them.
    Computed(Walk<Arc<Graph>>),
}

impl Before {
    /// The results of a graph with the parameters of the body, of which it uses the captured ones alone.
    pub fn new(scan: &Scan, graph: &Graph) -> Before {
        let input = |p: usize| scan.captured.ids().find(|&id| scan.captured_param(id) == p).map(|id| scan.captured_input(id));
        let at = |d: Def| if let Def::Param(p) = d { input(p) } else { None };
        let given: Option<Vec<usize>> = graph.results().iter().map(|&v| at(graph.def(v))).collect();
        given.map_or_else(|| Before::Computed(Walk::new(Arc::new(graph.clone()))), Before::Given)
    }

    /// Computes what is to be computed.
    ///
    /// # Errors
    /// What the ops report.
    pub fn run(&self, scan: &Scan, cx: &mut EvalCx, ins: &[Array]) -> Result<Vec<Array>> {
        let Before::Computed(walk) = self else { return Ok(vec![]) };
        let mut args = vec![Array::scalar(0i64); walk.graph().params().len()];
        for id in scan.captured.ids() {
            args[scan.captured_param(id)] = ins[scan.captured_input(id)].clone();
        }
        walk.run(cx, &mut walk.slots(), &mut args)
    }

    /// The values, of which those that are computed are at hand.
    pub fn values<'a>(&self, ins: &'a [Array], computed: &'a [Array]) -> impl Iterator<Item = &'a Array> {
        let given = if let Before::Given(inputs) = self { &inputs[..] } else { &[] };
        given.iter().map(|&at| &ins[at]).chain(computed)
    }
}
