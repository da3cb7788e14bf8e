//! A graph copied node by node, some of them replaced. Serves nearly all passes.

use crate::base::{Diagnostic, Id, Result};
use crate::ir::{Graph, Node, NodeId, Op, Outs, Value};
use smallvec::SmallVec;
use std::cell::OnceCell;
use std::ops::{Deref, DerefMut};

/// A copy under construction.
pub struct Rebuild<'g> {
    /// The graph that is copied.
    pub old: &'g Graph,
    /// The copy: it has all parameters of the old graph, in their order.
    pub new: Graph,
    images: Vec<Option<Value>>,
}

impl<'g> Rebuild<'g> {
    /// Begins with the parameters.
    pub fn new(old: &'g Graph) -> Rebuild<'g> {
        let mut new = Graph::with_room(old.nodes().len(), old.n_values());
        let mut images = vec![None; old.n_values()];
        for &p in old.params() {
            images[p.idx()] = Some(new.param(old.ty(p).clone(), old.name(p).map(|n| &**n)));
        }
        Rebuild { old, new, images }
    }
    /// Copies what nodes of the old graph read, as far as it is not there yet.
    ///
    /// # Errors
    /// As [`Rebuild::copy`].
    pub fn inputs_of(&mut self, group: &[NodeId]) -> Result<()> {
        let old = self.old;
        let wanted: Vec<Value> = group.iter().flat_map(|id| old.nodes()[*id].ins.iter().copied()).collect();
        let live = old.needed(&wanted);
        for (id, node) in old.nodes().enumerate().filter(|(id, _)| live[id.idx()]) {
            if node.outs.iter().any(|&v| self.image(v).is_err()) {
                self.copy(id)?;
            }
        }
        Ok(())
    }
    /// What stands for a value of the old graph.
    ///
    /// # Errors
    /// An internal error where it was neither copied nor replaced.
    pub fn image(&self, old: Value) -> Result<Value> {
        self.images[old.idx()].ok_or_else(|| Diagnostic::internal(format!("value {old:?} has no image")))
    }
    /// What stands for several values.
    ///
    /// # Errors
    /// As [`Rebuild::image`].
    pub fn images(&self, old: &[Value]) -> Result<SmallVec<[Value; 4]>> {
        old.iter().map(|&v| self.image(v)).collect()
    }
    /// Lets a value of the new graph stand for one of the old; it inherits the name.
    pub fn set(&mut self, old: Value, new: Value) {
        if let (Some(name), None) = (self.old.name(old), self.new.name(new)) {
            self.new.set_name(new, name);
        }
        self.images[old.idx()] = Some(new);
    }
    /// Copies a node.
    ///
    /// # Errors
    /// What type inference reports where the images of its inputs have other types.
    pub fn copy(&mut self, id: NodeId) -> Result<Outs<Value>> {
        self.copy_as(id, &self.old.nodes()[id].op)
    }
    /// Copies a node with another op of the same inputs and outputs, e.g. a loop with another body.
    ///
    /// # Errors
    /// As [`Rebuild::copy`].
    pub fn copy_as(&mut self, id: NodeId, op: &Op) -> Result<Outs<Value>> {
        self.copy_of(id, op, &self.old.nodes()[id].ins)
    }
    /// Copies a node with another op and other inputs, which are values of the old graph.
    ///
    /// # Errors
    /// As [`Rebuild::copy`].
    pub fn copy_of(&mut self, id: NodeId, op: &Op, ins: &[Value]) -> Result<Outs<Value>> {
        let node = &self.old.nodes()[id];
        let ins = self.images(ins)?;
        let outs = self.new.copy(self.old, id, op, &ins)?;
        for (&old, &new) in node.outs.iter().zip(&outs) {
            self.images[old.idx()] = Some(new);
        }
        Ok(outs)
    }
    /// Declares the results and returns the copy.
    ///
    /// # Errors
    /// An internal error where a result has no image.
    pub fn finish(mut self) -> Result<Graph> {
        let results = self.images(self.old.results())?;
        self.new.set_results(results.to_vec());
        Ok(self.new)
    }
}

/// A copy that begins where something is first asked of it: a pass that finds nothing copies nothing.
pub struct Lazy<'g> {
    old: &'g Graph,
    live: Vec<bool>,
    at: NodeId,
    copy: OnceCell<Rebuild<'g>>,
}

impl<'g> Lazy<'g> {
    /// The copy of everything before the node at hand.
    fn begun(&self) -> Rebuild<'g> {
        let mut rebuild = Rebuild::new(self.old);
        for (id, _) in self.old.nodes().enumerate().take(self.at.idx()).filter(|(id, _)| self.live[id.idx()]) {
            // What cannot be copied has no image, which is an error where it is asked for.
            drop(rebuild.copy(id));
        }
        rebuild.new.set_span(self.old.nodes()[self.at].span);
        rebuild
    }
}

impl<'g> Deref for Lazy<'g> {
    type Target = Rebuild<'g>;
    fn deref(&self) -> &Rebuild<'g> {
        self.copy.get_or_init(|| self.begun())
    }
}

impl<'g> DerefMut for Lazy<'g> {
    fn deref_mut(&mut self) -> &mut Rebuild<'g> {
        if self.copy.get().is_none() {
            self.copy = OnceCell::from(self.begun());
        }
        self.copy.get_mut().unwrap_or_else(|| unreachable!("it was just made"))
    }
}

/// The graph with some nodes replaced: `visit` sees each live node in order and returns true where it has set what stands for
/// all outputs of the node; the others are copied. New nodes get the line of the node that is visited. `None` where nothing was
/// replaced.
///
/// # Errors
/// What `visit` and type inference report.
pub fn copy_with(graph: &Graph, mut visit: impl FnMut(&mut Lazy, NodeId, &Node) -> Result<bool>) -> Result<Option<Graph>> {
    let live = graph.needed(graph.results());
    let mut lazy = Lazy { old: graph, live, at: NodeId::new(0), copy: OnceCell::new() };
    let mut changed = false;
    for (id, node) in graph.nodes().enumerate() {
        if !lazy.live[id.idx()] {
            continue;
        }
        lazy.at = id;
        let outer = lazy.copy.get_mut().map(|c| c.new.set_span(node.span)).unwrap_or_default();
        let replaced = visit(&mut lazy, id, node)?;
        changed |= replaced;
        if let Some(copy) = lazy.copy.get_mut() {
            if !replaced {
                copy.copy(id)?;
            }
            copy.new.set_span(outer);
        }
    }
    match lazy.copy.into_inner().filter(|_| changed) {
        Some(copy) => copy.finish().map(Some),
        None => Ok(None),
    }
}
