//! The graph: nodes in topological order, values in SSA form, equal pure nodes made once.

use super::memo::Memo;
use super::op::{Arg, Op, Outs};
use super::whole::Whole;
use crate::base::{Diagnostic, Id, IdxVec, Result, Span};
use crate::types::{Array, Dim, Sym, Type};
use rustc_hash::{FxBuildHasher, FxHashMap};
use smallvec::SmallVec;
use std::hash::BuildHasher;
use std::sync::{Arc, OnceLock};

crate::id! {
    /// A node of a graph.
    NodeId,
    /// A value of a graph: a parameter or an output of a node.
    ///
    /// ```
    /// use scan_core::prelude::*;
    ///
    /// let mut g = Graph::new();
    /// let x: Value = g.param(Type::scalar(DType::F64), Some("x"));
    /// assert_eq!(g.name(x).map(|n| &**n), Some("x"));
    /// ```
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

/// What every value has. Passes walk over graphs again and again: what few values have (names, forms) lies elsewhere.
#[derive(Clone, Debug)]
struct Data {
    ty: Type,
    def: Origin,
}

/// A [`Def`] in eight bytes: parameters have no node.
#[derive(Clone, Copy, Debug)]
struct Origin {
    node: NodeId,
    at: u32,
}

impl Origin {
    const NONE: NodeId = NodeId(u32::MAX);
    fn param(at: usize) -> Origin {
        Origin { node: Origin::NONE, at: at as u32 }
    }
    fn node(self) -> Option<NodeId> {
        (self.node != Origin::NONE).then_some(self.node)
    }
}

/// Formulas of which a gradient is the derivative as they are written, not that of what the passes of these names make of them.
///
/// ```
/// use scan_core::prelude::*;
///
/// let options = GradOptions { as_written: AsWritten { formulas: true, products: false }, ..GradOptions::default() };
/// assert!(grad_with(Some(&Var::number(1.0)), &[], &options).is_ok());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AsWritten {
    /// Those that overflow or cancel: `stabilise`.
    pub formulas: bool,
    /// Sums of products: `contract`.
    pub products: bool,
}

/// A function: parameters, nodes in topological order, results.
///
/// ```
/// use scan_core::prelude::*;
///
/// let mut g = Graph::new();
/// let x = g.param(Type::scalar(DType::F64), Some("x"));
/// let y = g.exp(x);
/// g.set_results([y]);
/// assert!(g.to_text("f").starts_with("fn f(x: f64)"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Graph {
    nodes: IdxVec<NodeId, Node>,
    values: IdxVec<Value, Data>,
    params: Vec<Value>,
    results: Vec<Value>,
    names: FxHashMap<Value, Arc<str>>,
    /// Integer scalars that are computed from extents, as forms.
    forms: FxHashMap<Value, Dim>,
    /// Pure nodes by the hash of op and inputs; made where it is first asked.
    memo: OnceLock<Memo>,
    /// Found where it is first asked, forgotten where nodes or results change.
    whole: OnceLock<Whole>,
    span: Span,
    as_written: AsWritten,
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
        g.memo = OnceLock::from(Memo::with_room(nodes));
        g
    }
    /// Adds a parameter.
    pub fn param(&mut self, ty: Type, name: Option<&str>) -> Value {
        let value = self.values.push(Data { ty, def: Origin::param(self.params.len()) });
        self.params.push(value);
        name.into_iter().for_each(|name| self.set_name(value, name));
        value
    }
    /// Adds a node, or finds the equal one; returns its outputs.
    ///
    /// # Errors
    /// What the op's type inference reports, at the current span.
    pub fn apply(&mut self, op: impl Into<Op>, ins: &[Value]) -> Result<Outs<Value>> {
        self.apply_op(op.into(), ins)
    }
    /// Apart from [`Graph::apply`], which is compiled once for each kind of op.
    fn apply_op(&mut self, op: Op, ins: &[Value]) -> Result<Outs<Value>> {
        let hash = match self.seek(&op, ins) {
            Ok(node) => return Ok(self.nodes[node].outs.clone()),
            Err(hash) => hash,
        };
        let args: SmallVec<[Arg; 3]> = ins.iter().map(|&v| self.arg(v)).collect();
        let def = op.def();
        let types = def.infer(&args).map_err(|e| e.at(self.span))?;
        let dim = def.dim(&args);
        Ok(self.push(op, ins, hash, types.into_iter().map(|ty| (ty, dim.clone()))))
    }
    /// The equal node, or the hash by which the memo is to know it; none for an op of which each evaluation counts.
    pub(super) fn seek(&self, op: &Op, ins: &[Value]) -> std::result::Result<NodeId, Option<u32>> {
        let hash = hash_of(op, ins).ok_or(None)?;
        let memo = self.memo.get_or_init(|| {
            let mut memo = Memo::with_room(self.nodes.len());
            for (id, node) in self.nodes.enumerate() {
                if let Some(hash) = hash_of(&node.op, &node.ins).filter(|hash| self.equal(&memo, *hash, &node.op, &node.ins).is_none()) {
                    memo.insert(hash, id);
                }
            }
            memo
        });
        self.equal(memo, hash, op, ins).ok_or(Some(hash))
    }
    fn equal(&self, memo: &Memo, hash: u32, op: &Op, ins: &[Value]) -> Option<NodeId> {
        memo.find(hash, |node| self.nodes[node].ins[..] == *ins && self.nodes[node].op == *op)
    }
    fn push(&mut self, op: Op, ins: &[Value], hash: Option<u32>, types: impl Iterator<Item = (Type, Option<Dim>)>) -> Outs<Value> {
        let node = NodeId(self.nodes.len() as u32);
        self.whole = OnceLock::new();
        let mut outs = Outs::new();
        for (at, (ty, form)) in types.enumerate() {
            let out = self.values.push(Data { ty, def: Origin { node, at: at as u32 } });
            form.into_iter().for_each(|form| drop(self.forms.insert(out, form)));
            outs.push(out);
        }
        self.nodes.push(Node { op, ins: SmallVec::from_slice(ins), outs: SmallVec::from_slice(&outs), span: self.span });
        if let (Some(hash), Some(memo)) = (hash, self.memo.get_mut()) {
            memo.insert(hash, node);
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
                self.names.insert(new, name.clone());
            }
        }
        outs
    }
    /// The node on inputs of which as much is known as there: types need no inference.
    fn repeat(&mut self, from: &Graph, node: &Node, ins: &[Value]) -> Outs<Value> {
        match self.seek(&node.op, ins) {
            Ok(found) => self.nodes[found].outs.clone(),
            Err(hash) => {
                let known = node.outs.iter().map(|&v| (from.values[v].ty.clone(), from.forms.get(&v).cloned()));
                self.push(node.op.clone(), ins, hash, known)
            }
        }
    }
    /// The graph without nodes that no result needs.
    pub fn pruned(mut self) -> Graph {
        let live = self.needed(&self.results);
        if live.iter().all(|l| *l) {
            return self;
        }
        let stays = |data: &Data| data.def.node().is_none_or(|n| live[n.idx()]);
        let (nodes, values) = (ranks(live.iter().copied()), ranks(self.values.iter().map(stays)));
        let moved = |v: &Value| (values[v.idx() + 1] > values[v.idx()]).then(|| Value(values[v.idx()]));
        let follow = |vs: &mut [Value]| vs.iter_mut().for_each(|v| *v = Value(values[v.idx()]));
        self.names = self.names.into_iter().filter_map(|(v, name)| Some((moved(&v)?, name))).collect();
        self.forms = self.forms.into_iter().filter_map(|(v, form)| Some((moved(&v)?, form))).collect();
        self.values.retain(stays);
        self.values.iter_mut().filter(|d| d.def.node().is_some()).for_each(|d| d.def.node = NodeId(nodes[d.def.node.idx()]));
        let mut alive = live.iter();
        self.nodes.retain(|_| alive.next().is_some_and(|l| *l));
        for node in self.nodes.iter_mut() {
            follow(&mut node.ins);
            follow(&mut node.outs);
        }
        follow(&mut self.params);
        follow(&mut self.results);
        (self.memo, self.whole) = (OnceLock::new(), OnceLock::new());
        self
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
        self.learn_rows(v, None, from, old, since);
        if let (Some(form), false) = (from.forms.get(&old), self.forms.contains_key(&v)) {
            self.forms.insert(v, form.clone());
        }
    }
    /// As [`Graph::learn`], of extents alone, for a value with one more axis at some place.
    pub fn learn_rows(&mut self, v: Value, more: Option<usize>, from: &Graph, old: Value, since: Sym) {
        let dims = self.values[v].ty.dims.iter_mut().enumerate().filter(|(axis, _)| more != Some(*axis)).map(|(_, d)| d);
        for (d, before) in dims.zip(&from.values[old].ty.dims) {
            let vague = d.parts().0.iter().any(|(s, _)| *s > since);
            if d.value().is_none() && (vague || before.value().is_some()) {
                *d = before.clone();
            }
        }
    }
    fn same_arg(&self, new: Value, from: &Graph, old: Value) -> bool {
        let same = self.values[new].ty == from.values[old].ty && self.forms.get(&new) == from.forms.get(&old);
        same && self.const_value(new).is_some() == from.const_value(old).is_some()
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
        self.apply(op, ins).unwrap_or_else(|e| panic!("{}", e.title))[0]
    }
    /// A constant.
    pub fn constant(&mut self, value: Array) -> Value {
        self.emit(value, &[])
    }
    /// Declares the results.
    pub fn set_results(&mut self, results: impl Into<Vec<Value>>) {
        self.results = results.into();
        self.whole = OnceLock::new();
    }
    /// The span that new nodes get; returns the one before.
    pub fn set_span(&mut self, span: Span) -> Span {
        std::mem::replace(&mut self.span, span)
    }
    /// Which formulas gradients differentiate as they are written.
    pub fn as_written(&self) -> AsWritten {
        self.as_written
    }
    /// Says which formulas gradients differentiate as they are written: none by default.
    pub fn set_as_written(&mut self, as_written: AsWritten) {
        self.as_written = as_written;
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
    /// What is known of it and of the loops in it.
    pub fn whole(&self) -> &Whole {
        self.whole.get_or_init(|| Whole::of(self))
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
        let Origin { at, .. } = self.values[v].def;
        self.values[v].def.node().map_or(Def::Param(at as usize), |node| Def::Out(node, at as usize))
    }
    /// The name of a value.
    pub fn name(&self, v: Value) -> Option<&Arc<str>> {
        self.names.get(&v)
    }
    /// Names a value.
    pub fn set_name(&mut self, v: Value, name: &str) {
        self.names.insert(v, name.into());
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
        Arg { ty: self.ty(v).clone(), value: self.const_value(v).cloned(), dim: self.forms.get(&v).cloned() }
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
                    self.names.insert(new, name);
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
        self.whole = OnceLock::new();
        &mut self.nodes[id]
    }
    pub(crate) fn set_ty(&mut self, v: Value, ty: Type) {
        self.values[v].ty = ty;
    }
}

/// None for an op of which each evaluation counts. The quick hash leaves some bits as they are; the memo takes the lowest.
fn hash_of(op: &Op, ins: &[Value]) -> Option<u32> {
    if matches!(op, Op::Extern(e) if !e.0.pure()) {
        return None;
    }
    let hash = FxBuildHasher.hash_one((op, ins));
    Some(((hash ^ (hash >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u32)
}

/// Per item, and after the last one: how many of those before it stay.
fn ranks(stay: impl Iterator<Item = bool>) -> Vec<u32> {
    let counted = stay.scan(0, |n, stays| {
        *n += u32::from(stays);
        Some(*n)
    });
    std::iter::once(0).chain(counted).collect()
}

fn lookup(map: &FxHashMap<Value, Value>, v: Value) -> Result<Value> {
    map.get(&v).copied().ok_or_else(|| Diagnostic::internal(format!("value {v:?} has no image")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Passes copy graphs of any length: what leaves the caches costs twice.
    #[test]
    fn nodes_and_values_are_small() {
        assert!(size_of::<Node>() <= 96, "a node takes {} bytes", size_of::<Node>());
        assert!(size_of::<Data>() <= 72, "a value takes {} bytes", size_of::<Data>());
    }

    #[test]
    fn pruned_graphs_keep_names_and_find_equal_nodes() {
        let mut g = Graph::new();
        let ty = Type::scalar(crate::types::DType::F64);
        let [x, y] = ["x", "y"].map(|name| g.param(ty.clone(), Some(name)));
        let dead = g.add(x, x);
        let kept = g.mul(y, y);
        g.set_name(dead, "dead");
        g.set_name(kept, "kept");
        g.set_results(vec![kept]);
        let mut g = g.pruned();
        let kept = g.results()[0];
        assert_eq!((g.nodes().len(), g.n_values(), g.name(kept).map(|n| &**n)), (1, 3, Some("kept")));
        assert_eq!(g.def(kept), Def::Out(NodeId(0), 0));
        let y = g.params()[1];
        assert_eq!((g.mul(y, y), g.name(y).map(|n| &**n)), (kept, Some("y")));
        crate::ir::verify::verify(&g).expect("it is whole");
    }
}
