//! Rules for single nodes, applied to a whole graph in one walk: inputs first, so that a rule sees what others have made of them,
//! and what it makes is simplified in turn.

use super::driver::{Cx, Present};
use super::drops::Drops;
use super::pipeline::{Pass, Run};
use super::rebuild::copy_with;
use super::rules::Rule;
use crate::base::{Id, Result, Span};
use crate::ir::{Def, Graph, Op, Value};
use crate::scalar::ElemOp;
use crate::types::{DType, Dim, Sym, Type};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// Rules by the number of the op that they apply to, under the names of their passes.
pub struct Index {
    named: Vec<Vec<(&'static str, &'static Rule)>>,
    any: Vec<(&'static str, &'static Rule)>,
}

impl Index {
    /// The rules of passes, in their order.
    pub fn new(passes: &[&Pass]) -> Index {
        let mut index = Index { named: vec![vec![]; Op::OTHERS + 1], any: vec![] };
        for pass in passes {
            let Run::Rules(rules) = pass.run else { continue };
            rules.iter().for_each(|rules| index.add(pass.name, rules));
        }
        index
    }
    /// Rules of one pass.
    pub fn of(pass: &'static str, rules: &[&'static [Rule]]) -> Index {
        let mut index = Index::new(&[]);
        rules.iter().for_each(|rules| index.add(pass, rules));
        index
    }
    fn add(&mut self, pass: &'static str, rules: &'static [Rule]) {
        for rule in rules {
            match rule.on {
                [] => self.any.push((pass, rule)),
                names => names.iter().for_each(|name| self.named[number(name)].push((pass, rule))),
            }
        }
    }
    /// True where a rule applies to some op of a graph.
    pub fn concerns(&self, present: &Present) -> bool {
        !self.any.is_empty() || self.named.iter().enumerate().any(|(op, rules)| !rules.is_empty() && present.has(op))
    }
}

/// The number of an op that a pass names.
pub fn number(name: &str) -> usize {
    Op::number_of(name).unwrap_or_else(|| unreachable!("a pass names the op `{name}`, which does not exist"))
}

/// What a value tells without being computed.
#[derive(Clone, Copy)]
struct Fact {
    /// A value of the same shape that is computed no later: where only the shape is wanted, it serves.
    shape_of: Value,
    /// Computing the value of the graph's parameters never fails and has no effect.
    safe: bool,
}

/// A walk, as rules see it.
pub struct Local<'a> {
    /// The new graph. Rules add nodes with [`Local::make`].
    pub g: &'a mut Graph,
    /// As in [`Cx`].
    pub speculate: bool,
    /// As in [`Cx`].
    alike: &'a [[Dim; 2]],
    index: &'a Index,
    facts: &'a mut Vec<Fact>,
    drops: Option<&'a mut Drops>,
    fired: &'a mut BTreeMap<(&'static str, &'static str), usize>,
    depth: usize,
}

/// Rules that make each other's inputs end here.
const DEPTH: usize = 12;

/// All rules on all nodes of a graph.
///
/// # Errors
/// What type inference reports where rules have found out more about types.
pub fn run(cx: &mut Cx, graph: &Graph, index: &Index) -> Result<Option<Graph>> {
    let mut drops = Drops::new(cx.whole.clone(), cx.scan);
    loop {
        let (mut facts, mut fired) = (vec![], BTreeMap::new());
        let made = copy_with(graph, |rebuild, _, node| {
            let (false, &[out]) = (node.op.number() == Op::OTHERS, &node.outs[..]) else { return Ok(false) };
            let (since, ins) = (Sym::fresh(), rebuild.images(&node.ins)?);
            let (g, speculate, alike) = (&mut rebuild.new, cx.speculate, &cx.alike[..]);
            let mut local = Local { g, speculate, alike, index, facts: &mut facts, drops: Some(&mut drops), fired: &mut fired, depth: 0 };
            let found = local.simplify(&node.op, &ins);
            let Some(value) = found.filter(|&v| fits(rebuild.new.ty(v), graph.ty(out))) else { return Ok(false) };
            rebuild.new.learn(value, graph, out, since);
            rebuild.set(out, value);
            Ok(true)
        })?;
        if made.as_ref().is_none_or(|made| !drops.lose(graph, made)) {
            fired.into_iter().for_each(|(rule, n)| *cx.report.fired.entry(rule).or_default() += n);
            return Ok(made);
        }
    }
}

/// Values that equal some of a graph's, as rules compute them. They are added to the graph; its nodes stay as they are.
#[derive(Default)]
pub struct Beside {
    /// What a rule made of a value.
    pub instead: FxHashMap<Value, Value>,
    /// The value of the graph that an added one equals.
    pub equals: FxHashMap<Value, Value>,
}

impl Beside {
    /// What rules make of the nodes of a graph. A rule sees what rules have made of a node's inputs, through elementwise functions,
    /// reductions and changes of shape.
    pub fn of(g: &mut Graph, index: &Index) -> Beside {
        let (mut beside, mut images) = (Beside::default(), FxHashMap::default());
        let (mut facts, mut fired, before) = (vec![], BTreeMap::new(), g.n_values());
        for id in g.nodes().ids() {
            let node = &g.nodes()[id];
            let moved = node.ins.iter().any(|v| images.contains_key(v));
            let (&[out], true) = (&node.outs[..], moved || !index.named[node.op.number()].is_empty()) else { continue };
            let (op, span) = (node.op.clone(), node.span);
            let ins: SmallVec<[Value; 4]> = node.ins.iter().map(|v| images.get(v).copied().unwrap_or(*v)).collect();
            let outer = g.set_span(span);
            let mut local = Local { g, speculate: false, alike: &[], index, facts: &mut facts, drops: None, fired: &mut fired, depth: 0 };
            let found = local.simplify(&op, &ins).filter(|&v| fits(g.ty(v), g.ty(out)));
            if let Some(v) = found {
                beside.instead.insert(out, v);
            }
            let image = found.or_else(|| if moved && transparent(&op) { Some(g.apply(op, &ins).ok()?[0]) } else { None });
            g.set_span(outer);
            let Some(image) = image else { continue };
            images.insert(out, image);
            if image.idx() >= before {
                beside.equals.entry(image).or_insert(out);
            }
        }
        beside
    }
}

fn transparent(op: &Op) -> bool {
    matches!(op, Op::Elem(_) | Op::Reduce(_) | Op::StopGradient(_)) || op.moves()
}

fn fits(new: &Type, old: &Type) -> bool {
    let fits = new.dtype == old.dtype && new.rank() == old.rank() && !new.dims.iter().zip(&old.dims).any(|(a, b)| a.conflicts(b));
    debug_assert!(fits, "a rule made {new} of {old}");
    fits
}

impl Local<'_> {
    /// What the first rule that applies makes of a node.
    fn simplify(&mut self, op: &Op, ins: &[Value]) -> Option<Value> {
        let index = self.index;
        for (pass, rule) in index.named[op.number()].iter().chain(&index.any) {
            if let Some(value) = (rule.apply)(self, op, ins) {
                *self.fired.entry((pass, rule.doc)).or_default() += 1;
                return Some(value);
            }
        }
        None
    }
    /// A node, simplified; `None` where type inference refuses it.
    pub fn make(&mut self, op: impl Into<Op>, ins: &[Value]) -> Option<Value> {
        let op = op.into();
        if self.depth < DEPTH {
            self.depth += 1;
            let found = self.simplify(&op, ins);
            self.depth -= 1;
            if found.is_some() {
                return found;
            }
        }
        self.g.apply(op, ins).ok().map(|outs| outs[0])
    }
    /// An elementwise node, simplified.
    pub fn elem(&mut self, op: ElemOp, ins: &[Value]) -> Option<Value> {
        self.make(Op::Elem(op), ins)
    }
    /// Op and inputs of the node that makes a value.
    pub fn node(&self, v: Value) -> Option<(&Op, &[Value])> {
        self.g.node_of(v).map(|n| (&n.op, &n.ins[..]))
    }
    /// True for what is made in the line of the user's that this node stands for.
    pub fn in_this_line(&mut self, v: Value) -> bool {
        let line = self.g.set_span(Span::NONE);
        self.g.set_span(line);
        self.g.node_of(v).is_some_and(|n| n.span == line)
    }
    /// The input of the elementwise function of one input that makes a value.
    pub fn of(&self, v: Value, op: ElemOp) -> Option<Value> {
        match self.node(v)? {
            (Op::Elem(found), &[x]) if *found == op => Some(x),
            _ => None,
        }
    }
    /// The inputs of the elementwise function of two inputs that makes a value.
    pub fn of2(&self, v: Value, op: ElemOp) -> Option<[Value; 2]> {
        match self.node(v)? {
            (Op::Elem(found), &[x, y]) if *found == op => Some([x, y]),
            _ => None,
        }
    }
    /// The type of a value.
    pub fn ty(&self, v: Value) -> &Type {
        self.g.ty(v)
    }
    /// The dtype of a value.
    pub fn dtype(&self, v: Value) -> DType {
        self.g.ty(v).dtype
    }
    /// The number that all elements of a constant are, of a small constant or a scalar that is broadcast.
    pub fn splat(&self, v: Value) -> Option<f64> {
        match self.node(v)? {
            (op, ins) if op.broadcasts() => self.splat(ins[0]),
            (Op::Const(a), _) if a.len() == 1 => a.item_f64(),
            (Op::Const(a), _) if (1..=64).contains(&a.len()) => {
                let all = a.to_f64_vec();
                all.iter().all(|x| x.to_bits() == all[0].to_bits()).then_some(all[0])
            }
            _ => None,
        }
    }
    /// True where an elementwise function of `x` and `other` has shape and dtype of `x`.
    pub fn absorbs(&self, x: Value, other: Value) -> bool {
        let (a, b) = (self.ty(x), self.ty(other));
        a.dtype.promote(b.dtype) == a.dtype && self.absorbs_shape(x, other)
    }
    /// True where an elementwise function of `x` and `other` has the shape of `x`.
    pub fn absorbs_shape(&self, x: Value, other: Value) -> bool {
        let (a, b) = (self.ty(x), self.ty(other));
        b.rank() <= a.rank() && b.dims.iter().rev().zip(a.dims.iter().rev()).all(|(b, a)| b.is_one() || a == b)
    }
    /// True where extents are equal in every run, but for such that fail and are done again by the graph as it was written.
    pub fn alike(&self, a: &Dim, b: &Dim) -> bool {
        a == b || self.speculate && self.alike.iter().any(|[read, written]| (a, b) == (read, written) || (b, a) == (read, written))
    }
    /// True where two values have the same shape in every run.
    pub fn same_shape(&self, a: Value, b: Value) -> bool {
        self.ty(a).dims == self.ty(b).dims
    }
    /// A value of the shape of `v` that is computed no later.
    pub fn shape_of(&mut self, v: Value) -> Value {
        self.learn();
        self.facts[v.idx()].shape_of
    }
    /// True where computing a value, outside the loop and in its earlier steps, too, never fails and has no effect: a rule may drop it.
    pub fn safe(&mut self, v: Value) -> bool {
        self.learn();
        self.facts[v.idx()].safe && self.drops.as_mut().is_none_or(|drops| drops.allow(self.g, v))
    }
    fn learn(&mut self) {
        for at in self.facts.len()..self.g.n_values() {
            let fact = self.fact(Value(at as u32));
            self.facts.push(fact);
        }
    }
    fn fact(&self, v: Value) -> Fact {
        let Def::Out(id, _) = self.g.def(v) else { return Fact { shape_of: v, safe: true } };
        let node = &self.g.nodes()[id];
        let safe = node.ins.iter().all(|x| self.facts[x.idx()].safe) && !node.op.def().fallible(self.g, &node.ins);
        let lazy = matches!(node.op, Op::IfElse(_));
        let same = |x: &&Value| safe && !lazy && self.same_shape(v, **x);
        let shape_of = node.ins.iter().find(same).map_or(v, |x| self.facts[x.idx()].shape_of);
        Fact { shape_of, safe }
    }
}
