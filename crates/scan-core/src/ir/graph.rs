//! The graph: nodes in topological order, values in SSA form, equal pure nodes made once.

use super::op::{Arg, Op, Outs};
use crate::base::{Diagnostic, Id, IdxVec, Result, Span};
use crate::types::{Array, Dim, Sym, Type};
use rustc_hash::{FxBuildHasher, FxHashMap};
use smallvec::SmallVec;
use std::hash::BuildHasher;
use std::sync::Arc;

crate::id! {
    /// A node of a graph.
    NodeId,
    /// A value of a graph: a parameter or an output of a node.
    Value,
}

/// Where a value comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Def {
    /// The parameter of this position.
    Param(usize),
    /// An output of a node.
    Out(NodeId, usize),
}

/// One application of an op.
#[derive(Clone, Debug)]
pub struct Node {
    /// The op.
    pub op: Op,
    /// Its inputs.
    pub ins: SmallVec<[Value; 4]>,
    /// Its outputs.
    pub outs: Outs<Value>,
    /// Where the user wrote it.
    pub span: Span,
}

#[derive(Clone, Debug)]
struct Data {
    ty: Type,
    def: Def,
    name: Option<Arc<str>>,
    dim: Option<Dim>,
}

/// A function: parameters, nodes in topological order, results.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    nodes: IdxVec<NodeId, Node>,
    values: IdxVec<Value, Data>,
    params: Vec<Value>,
    results: Vec<Value>,
    /// Pure nodes by the hash of op and inputs; where hashes are equal, at the next numbers.
    memo: FxHashMap<u64, NodeId>,
    span: Span,
}

impl Graph {
    /// An empty graph.
    pub fn new() -> Graph {
        Graph::default()
    }
    /// An empty graph with room for so many nodes and values.
    pub fn with_room(nodes: usize, values: usize) -> Graph {
        let mut g = Graph::default();
        g.nodes.reserve(nodes);
        g.values.reserve(values);
        g.memo.reserve(nodes);
        g
    }
    /// Adds a parameter.
    pub fn param(&mut self, ty: Type, name: Option<&str>) -> Value {
        let def = Def::Param(self.params.len());
        let value = self.values.push(Data { ty, def, name: name.map(Into::into), dim: None });
        self.params.push(value);
        value
    }
    /// Adds a node, or finds the equal one; returns its outputs.
    ///
    /// # Errors
    /// What the op's type inference reports, at the current span.
    pub fn apply(&mut self, op: impl Into<Op>, ins: &[Value]) -> Result<Outs<Value>> {
        let op = op.into();
        let place = match self.seek(&op, ins) {
            Ok(node) => return Ok(self.nodes[node].outs.clone()),
            Err(place) => place,
        };
        let args: SmallVec<[Arg; 3]> = ins.iter().map(|&v| self.arg(v)).collect();
        let def = op.def();
        let types = def.infer(&args).map_err(|e| e.at(self.span))?;
        let dim = def.dim(&args);
        Ok(self.push(op, ins, place, types.into_iter().map(|ty| (ty, dim.clone()))))
    }
    /// The equal node, or the place in the memo where it would stand; none for an op of which each evaluation counts.
    fn seek(&self, op: &Op, ins: &[Value]) -> std::result::Result<NodeId, Option<u64>> {
        if matches!(op, Op::Extern(e) if !e.0.pure()) {
            return Err(None);
        }
        let mut place = FxBuildHasher.hash_one((op, ins));
        while let Some(&node) = self.memo.get(&place) {
            let found = &self.nodes[node];
            if found.ins[..] == *ins && found.op == *op {
                return Ok(node);
            }
            place = place.wrapping_add(1);
        }
        Err(Some(place))
    }
    fn push(&mut self, op: Op, ins: &[Value], place: Option<u64>, types: impl Iterator<Item = (Type, Option<Dim>)>) -> Outs<Value> {
        let node = NodeId(self.nodes.len() as u32);
        let data = types.enumerate().map(|(i, (ty, dim))| Data { ty, def: Def::Out(node, i), name: None, dim });
        let outs: Outs<Value> = data.map(|data| self.values.push(data)).collect();
        self.nodes.push(Node { op, ins: SmallVec::from_slice(ins), outs: outs.clone(), span: self.span });
        if let Some(place) = place {
            self.memo.insert(place, node);
        }
        outs
    }
    /// Adds a node of another graph, as `op`, on values of this one that equal its inputs there. What is known there of the
    /// types of its outputs, and their names, is kept.
    ///
    /// # Errors
    /// What type inference reports where more is known of the inputs than before.
    pub fn copy(&mut self, from: &Graph, id: NodeId, op: &Op, ins: &[Value]) -> Result<Outs<Value>> {
        let node = &from.nodes[id];
        let outer = self.set_span(node.span.or(self.span));
        let outs = if std::ptr::eq(op, &node.op) && node.ins.iter().zip(ins).all(|(&old, &new)| self.same_arg(new, from, old)) {
            Ok(self.repeat(from, node, ins))
        } else {
            self.apply_again(from, node, op, ins)
        };
        self.span = outer;
        for (&old, &new) in node.outs.iter().zip(outs.as_ref().map_or(&[][..], |o| o)) {
            if let (Some(name), None) = (from.name(old), self.name(new)) {
                self.values[new].name = Some(name.clone());
            }
        }
        outs
    }
    /// The node on inputs of which as much is known as there: types need no inference.
    fn repeat(&mut self, from: &Graph, node: &Node, ins: &[Value]) -> Outs<Value> {
        match self.seek(&node.op, ins) {
            Ok(found) => self.nodes[found].outs.clone(),
            Err(place) => {
                let known = node.outs.iter().map(|&v| (from.values[v].ty.clone(), from.values[v].dim.clone()));
                self.push(node.op.clone(), ins, place, known)
            }
        }
    }
    /// The graph without nodes that no result needs.
    pub fn pruned(self) -> Graph {
        let live = self.needed(&self.results);
        if live.iter().all(|l| *l) {
            return self;
        }
        let mut new = Graph::with_room(live.iter().filter(|l| **l).count(), self.values.len());
        new.span = self.span;
        let mut data: Vec<Option<Data>> = self.values.into_iter().map(Some).collect();
        let mut image = vec![Value(u32::MAX); data.len()];
        let mut moved = |new: &mut Graph, old: Value, def: Def| {
            let v = data[old.idx()].take().map(|data| new.values.push(Data { def, ..data })).unwrap_or(image[old.idx()]);
            image[old.idx()] = v;
            v
        };
        for (i, p) in self.params.into_iter().enumerate() {
            let v = moved(&mut new, p, Def::Param(i));
            new.params.push(v);
        }
        for (mut node, _) in self.nodes.into_iter().zip(&live).filter(|(_, live)| **live) {
            let id = NodeId(new.nodes.len() as u32);
            node.ins.iter_mut().for_each(|v| *v = moved(&mut new, *v, Def::Param(0)));
            node.outs.iter_mut().enumerate().for_each(|(i, v)| *v = moved(&mut new, *v, Def::Out(id, i)));
            if let Err(Some(place)) = new.seek(&node.op, &node.ins) {
                new.memo.insert(place, id);
            }
            new.nodes.push(node);
        }
        new.results = self.results.into_iter().map(|v| moved(&mut new, v, Def::Param(0))).collect();
        new
    }
    fn apply_again(&mut self, from: &Graph, node: &Node, op: &Op, ins: &[Value]) -> Result<Outs<Value>> {
        let since = Sym::fresh();
        let outs = self.apply(op.clone(), ins)?;
        node.outs.iter().zip(&outs).for_each(|(&old, &new)| self.learn(new, from, old, since));
        Ok(outs)
    }
    /// Takes over what another graph knows of the type of an equal value: numbers, and forms where this graph has nothing but
    /// symbols made after `since`.
    pub fn learn(&mut self, v: Value, from: &Graph, old: Value, since: Sym) {
        let (new, old) = (&mut self.values[v], &from.values[old]);
        for (d, before) in new.ty.dims.iter_mut().zip(&old.ty.dims) {
            let vague = d.parts().0.iter().any(|(s, _)| *s > since);
            if d.value().is_none() && (vague || before.value().is_some()) {
                *d = before.clone();
            }
        }
        if new.dim.is_none() {
            new.dim = old.dim.clone();
        }
    }
    fn same_arg(&self, new: Value, from: &Graph, old: Value) -> bool {
        let (a, b) = (&self.values[new], &from.values[old]);
        a.ty == b.ty && a.dim == b.dim && self.const_value(new).is_some() == from.const_value(old).is_some()
    }
    /// The first output of a node, where there is such a node.
    pub fn find(&self, op: &Op, ins: &[Value]) -> Option<Value> {
        let node = self.seek(op, ins).ok()?;
        self.nodes[node].outs.first().copied()
    }
    /// Adds a node whose types are known to fit; returns its first output.
    ///
    /// # Panics
    /// Where they do not: a fault of the caller. For rules and passes; the door uses [`Graph::apply`].
    pub fn emit(&mut self, op: impl Into<Op>, ins: &[Value]) -> Value {
        match self.apply(op, ins) {
            Ok(outs) => outs[0],
            Err(e) => panic!("{}", e.title),
        }
    }
    /// A constant.
    pub fn constant(&mut self, value: Array) -> Value {
        self.emit(Op::Const(value), &[])
    }
    /// Declares the results.
    pub fn set_results(&mut self, results: impl Into<Vec<Value>>) {
        self.results = results.into();
    }
    /// The span that new nodes get; returns the one before.
    pub fn set_span(&mut self, span: Span) -> Span {
        std::mem::replace(&mut self.span, span)
    }
    /// Parameters in order.
    pub fn params(&self) -> &[Value] {
        &self.params
    }
    /// Results in order.
    pub fn results(&self) -> &[Value] {
        &self.results
    }
    /// Nodes in topological order.
    pub fn nodes(&self) -> &IdxVec<NodeId, Node> {
        &self.nodes
    }
    /// True where it, or a loop in it, contains an op of a user's.
    pub fn has_user_ops(&self) -> bool {
        self.nodes.iter().any(|n| match &n.op {
            Op::Extern(_) => true,
            Op::Scan(scan) => scan.body.has_user_ops(),
            _ => false,
        })
    }
    /// Number of values.
    pub fn n_values(&self) -> usize {
        self.values.len()
    }
    /// All values.
    pub fn value_ids(&self) -> impl DoubleEndedIterator<Item = Value> + ExactSizeIterator + use<> {
        self.values.ids()
    }
    /// The type of a value.
    pub fn ty(&self, v: Value) -> &Type {
        &self.values[v].ty
    }
    /// Where a value comes from.
    pub fn def(&self, v: Value) -> Def {
        self.values[v].def
    }
    /// The name of a value.
    pub fn name(&self, v: Value) -> Option<&Arc<str>> {
        self.values[v].name.as_ref()
    }
    /// Names a value.
    pub fn set_name(&mut self, v: Value, name: &str) {
        self.values[v].name = Some(name.into());
    }
    /// Replaces what is known of a value's extents; dtype and rank stay.
    ///
    /// # Errors
    /// An internal error where dtype or rank differ.
    pub fn refine(&mut self, v: Value, ty: Type) -> Result<()> {
        let old = &self.values[v].ty;
        if old.dtype != ty.dtype || old.rank() != ty.rank() {
            return Err(Diagnostic::internal(format!("refine {old} to {ty}")));
        }
        self.values[v].ty = ty;
        Ok(())
    }
    /// The value of a constant.
    pub fn const_value(&self, v: Value) -> Option<&Array> {
        match self.def(v) {
            Def::Out(n, _) => match &self.nodes[n].op {
                Op::Const(a) => Some(a),
                _ => None,
            },
            Def::Param(_) => None,
        }
    }
    /// The node that makes a value, if it is not a parameter.
    pub fn node_of(&self, v: Value) -> Option<&Node> {
        match self.def(v) {
            Def::Out(n, _) => Some(&self.nodes[n]),
            Def::Param(_) => None,
        }
    }
    /// A value as type inference sees it.
    pub fn arg(&self, v: Value) -> Arg {
        let data = &self.values[v];
        Arg { ty: data.ty.clone(), value: self.const_value(v).cloned(), dim: data.dim.clone() }
    }
    /// True per node that the values depend on.
    pub fn needed(&self, values: &[Value]) -> Vec<bool> {
        self.needed_except(values, &FxHashMap::default())
    }
    /// How often each value is used, by nodes that the results need and as a result.
    pub fn uses(&self) -> Vec<u32> {
        let live = self.needed(&self.results);
        let mut uses = vec![0; self.n_values()];
        let nodes = self.nodes.enumerate().filter(|(id, _)| live[id.idx()]);
        nodes.flat_map(|(_, n)| &n.ins).chain(&self.results).for_each(|v| uses[v.idx()] += 1);
        uses
    }
    /// Copies the nodes behind `values` of another graph into this one, with some of its values replaced by values of this
    /// one; returns their images. Parameters that are needed must be among the replaced.
    ///
    /// # Errors
    /// What type inference reports for the new types.
    pub fn inline(&mut self, from: &Graph, replace: &FxHashMap<Value, Value>, values: &[Value]) -> Result<Vec<Value>> {
        let mut map = replace.clone();
        let saved = self.span;
        let live = from.needed_except(values, replace);
        for (id, node) in from.nodes.enumerate() {
            if !live[id.0 as usize] {
                continue;
            }
            let ins: Vec<Value> = node.ins.iter().map(|v| lookup(&map, *v)).collect::<Result<_>>()?;
            self.span = node.span.or(saved);
            let outs = self.apply(node.op.clone(), &ins)?;
            for (&old, &new) in node.outs.iter().zip(&outs) {
                map.entry(old).or_insert(new);
                if let (Some(name), None) = (from.name(old), self.name(new)) {
                    let name = name.clone();
                    self.values[new].name = Some(name);
                }
            }
        }
        self.span = saved;
        values.iter().map(|v| lookup(&map, *v)).collect()
    }
    /// True per node that the values depend on, not looking behind the replaced ones.
    fn needed_except(&self, values: &[Value], replaced: &FxHashMap<Value, Value>) -> Vec<bool> {
        let mut live = vec![false; self.nodes.len()];
        let mark = |v: Value, live: &mut Vec<bool>| {
            if let (Def::Out(n, _), false) = (self.def(v), replaced.contains_key(&v)) {
                live[n.0 as usize] = true;
            }
        };
        values.iter().for_each(|&v| mark(v, &mut live));
        for i in (0..live.len()).rev() {
            if live[i] {
                self.nodes[NodeId(i as u32)].ins.iter().for_each(|&v| mark(v, &mut live));
            }
        }
        live
    }
}

/// Ways to break a graph, for tests of the verifier.
#[cfg(test)]
impl Graph {
    pub(crate) fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id]
    }
    pub(crate) fn set_ty(&mut self, v: Value, ty: Type) {
        self.values[v].ty = ty;
    }
}

fn lookup(map: &FxHashMap<Value, Value>, v: Value) -> Result<Value> {
    map.get(&v).copied().ok_or_else(|| Diagnostic::internal(format!("value {v:?} has no image")))
}
