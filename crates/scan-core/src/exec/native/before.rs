//! What all steps of a loop read: inputs of the loop, or what is computed of them before it begins.

use super::home::Home;
use crate::base::Result;
use crate::eval::Walk;
use crate::ir::{Def, EvalCx, Graph, Scan};
use crate::types::Array;
use std::sync::{Arc, OnceLock};

/// Arrays of more elements are computed anew in each call.
const KEPT: usize = 1 << 16;

/// The values that all steps read.
pub enum Before {
    /// Inputs of the loop, by position.
    Given(Vec<usize>),
    /// Something is computed of them; what it gave, where it is the same in all calls.
    Computed(Walk<Arc<Graph>>, OnceLock<Vec<Array>>),
}

impl Before {
    /// The results of a graph with the parameters of the body, of which it uses the captured ones alone.
    pub fn new(scan: &Scan, graph: &Graph) -> Before {
        let input = |p: usize| scan.captured.ids().find(|&id| scan.captured_param(id) == p).map(|id| scan.captured_input(id));
        let at = |d: Def| if let Def::Param(p) = d { input(p) } else { None };
        let given: Option<Vec<usize>> = graph.results().iter().map(|&v| at(graph.def(v))).collect();
        given.map_or_else(|| Before::Computed(Walk::new(Arc::new(graph.clone())), OnceLock::new()), Before::Given)
    }

    /// What is to be computed, where something is.
    pub fn computed(&self) -> Option<&Graph> {
        if let Before::Computed(walk, _) = self { Some(walk.graph()) } else { None }
    }

    /// Computes what is to be computed.
    ///
    /// # Errors
    /// What the ops report.
    pub fn run(&self, scan: &Scan, cx: &mut EvalCx, ins: &[Array]) -> Result<Vec<Array>> {
        let Before::Computed(walk, same) = self else { return Ok(vec![]) };
        if let Some(same) = same.get() {
            return Ok(same.clone());
        }
        let mut args = vec![Array::scalar(0i64); walk.graph().params().len()];
        for id in scan.captured.ids() {
            args[scan.captured_param(id)] = ins[scan.captured_input(id)].clone();
        }
        let values = walk.run(cx, &mut walk.slots(), &mut args)?;
        // What was sent to a device once is there for the next call.
        let (uses, few) = (walk.graph().uses(), values.iter().all(|x| x.len() <= KEPT));
        if few && walk.graph().params().iter().all(|p| uses[p.0 as usize] == 0) {
            return Ok(same.get_or_init(|| values).clone());
        }
        Ok(values)
    }

    /// Sees to it that they have their elements on a device, if they are to be there: those that are computed, and those that are inputs.
    ///
    /// # Errors
    /// `E0392`, `E0523`.
    pub fn send(&self, home: Home, ins: &mut [Array], computed: &mut [Array]) -> Result<()> {
        let given = if let Before::Given(inputs) = self { &inputs[..] } else { &[] };
        given.iter().try_for_each(|&at| home.send(&mut ins[at]))?;
        computed.iter_mut().try_for_each(|x| home.send(x))
    }
    /// The values, of which those that are computed are at hand.
    pub fn values<'a>(&self, ins: &'a [Array], computed: &'a [Array]) -> impl Iterator<Item = &'a Array> {
        let given = if let Before::Given(inputs) = self { &inputs[..] } else { &[] };
        given.iter().map(|&at| &ins[at]).chain(computed)
    }
}
