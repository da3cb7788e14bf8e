//! Nodes that are quicker as one, with these nodes as its law for whatever does not fit.

use crate::base::Result;
use crate::eval::Walk;
use crate::ir::op::{NativeOp, NativeRef, Outs};
use crate::ir::{EvalCx, Graph, Node, Value};
use crate::types::{Array, Type};
use std::sync::Arc;

/// A way to compute what a few nodes compute, where their inputs are as they mostly are.
pub trait Quick: Send + Sync + 'static {
    /// The name of the op that profiles show.
    const NAME: &'static str;

    /// The result, with the bits of the nodes; nothing where these must be evaluated.
    fn quick(&self, ins: &[Array]) -> Option<Array>;
}

/// Where nodes can be replaced.
pub struct Found {
    /// By what.
    pub op: NativeRef,
    /// Its inputs.
    pub ins: Vec<Value>,
    /// Values that it makes superfluous.
    pub inner: Vec<Value>,
}

impl Found {
    /// A way to compute a node's result from some values before it. None where two of these are the same.
    ///
    /// # Errors
    /// An internal error where the graph is not consistent.
    pub fn new<T: Quick>(graph: &Graph, node: &Node, ins: Vec<Value>, inner: Vec<Value>, way: T) -> Result<Option<Found>> {
        let mut law = Graph::new();
        let mut image = rustc_hash::FxHashMap::default();
        for &v in &ins {
            image.entry(v).or_insert_with(|| law.param(graph.ty(v).clone(), None));
        }
        let results = law.inline(graph, &image, &node.outs)?;
        law.set_results(results);
        let differ = law.params().len() == ins.len();
        let op = NativeRef(Arc::new(Shortcut { law: Walk::new(Arc::new(law)), way }));
        Ok(differ.then_some(Found { op, ins, inner }))
    }
}

/// A way with its law.
struct Shortcut<T> {
    law: Walk<Arc<Graph>>,
    way: T,
}

impl<T: Quick> NativeOp for Shortcut<T> {
    fn name(&self) -> &str {
        T::NAME
    }
    fn types(&self) -> Outs<Type> {
        let law = self.law.graph();
        law.results().iter().map(|&v| law.ty(v).clone()).collect()
    }
    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        if let Some(out) = self.way.quick(ins) {
            return Ok(smallvec::smallvec![out]);
        }
        cx.as_one(|cx| self.law.run(cx, &mut self.law.slots(), &mut ins.to_vec())).map(Outs::from_vec)
    }
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

/// True where a node repeats a zero, +0.
pub fn of_zero(graph: &Graph, node: &Node) -> bool {
    graph.const_value(node.ins[0]).is_some_and(|a| a.len() == 1 && a.bits()[0] == 0)
}
