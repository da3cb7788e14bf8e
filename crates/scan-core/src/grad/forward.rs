//! Forward mode: walks the nodes forwards and carries tangents along. An op without a rule of its own is linearised by its
//! [`vjp`](crate::ir::op::OpDef::vjp), which is linear in the cotangents: the derivative of that by the cotangents is the tangent.

use super::reverse::{Seeds, better, connected, cotangents, dependent, walk};
use crate::base::Result;
use crate::ir::op::Assert;
use crate::ir::{Def, Graph, Node, NodeId, Site, Value};
use crate::rewrite::local::Beside;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;

/// The tangents of `wanted`, given those of some values, which add to what reaches these from elsewhere; `None` where a value is not
/// connected to any of them, zeros where only zeros reach it. Nothing flows through `constants`. Formulas are those of
/// [`vjp`](super::reverse::vjp).
///
/// # Errors
/// As [`vjp`](super::reverse::vjp).
pub fn jvp(g: &mut Graph, given: &[(Value, Value)], wanted: &[Value], constants: &[Value]) -> Result<Vec<Option<Value>>> {
    let nodes = 0..g.nodes().len();
    let stops: FxHashSet<Value> = constants.iter().copied().collect();
    let wrt: Vec<Value> = given.iter().map(|t| t.0).collect();
    let depends = dependent(g, &wrt, &stops, nodes.clone());
    let reached = connected(g, wanted, &stops, nodes.clone());
    let beside = better(g);
    let mut tangents = Tangents { of: FxHashMap::default(), beside, stops, reached };
    given.iter().for_each(|&(v, t)| tangents.add(g, v, t));
    for i in nodes {
        tangents.node(g, NodeId(i as u32))?;
    }
    Ok(wanted.iter().map(|v| tangents.of.get(v).copied().or_else(|| depends.contains(v).then(|| g.zeros_like(*v)))).collect())
}

struct Tangents {
    of: FxHashMap<Value, Value>,
    beside: Beside,
    stops: FxHashSet<Value>,
    /// Values that lead to what is wanted.
    reached: FxHashSet<Value>,
}

impl Tangents {
    fn add(&mut self, g: &mut Graph, v: Value, tangent: Value) {
        let sum = self.of.get(&v).map_or(tangent, |&other| g.add(other, tangent));
        self.of.insert(v, sum);
    }

    /// The tangent of a value as other nodes read it.
    fn read(&self, v: Value) -> Option<Value> {
        self.of.get(&v).copied().filter(|_| !self.stops.contains(&v))
    }

    /// Pushes the tangents of a node's inputs through it.
    fn node(&mut self, g: &mut Graph, id: NodeId) -> Result<()> {
        let node = g.nodes()[id].clone();
        let wanted: Vec<bool> = node.outs.iter().map(|v| self.reached.contains(v)).collect();
        let ins: Vec<Option<Value>> = node.ins.iter().map(|&v| self.read(v)).collect();
        if !wanted.contains(&true) || ins.iter().all(Option::is_none) {
            return Ok(());
        }
        let saved = g.set_span(node.span);
        let outs = match self.beside.instead.get(&node.outs[0]).copied() {
            Some(better) => vec![self.through(g, better, id)?],
            None => pushed(g, &node, &ins, &wanted)?,
        };
        node.outs.iter().zip(outs).for_each(|(&v, t)| t.into_iter().for_each(|t| self.add(g, v, t)));
        g.set_span(saved);
        Ok(())
    }

    /// The tangent of the value that stands beside that of a node, from the tangents of values from before the node.
    fn through(&self, g: &mut Graph, better: Value, node: NodeId) -> Result<Option<Value>> {
        let known = |v: Value| self.beside.equals.get(&v).copied().unwrap_or(v);
        let open = |g: &Graph, v: Value| match (g.def(known(v)), g.def(v)) {
            (Def::Out(at, _), Def::Out(own, _)) if at >= node => Some(own),
            _ => None,
        };
        let (mut own, mut stack) = (BTreeSet::new(), vec![better]);
        while let Some(v) = stack.pop() {
            if let Some(id) = open(g, v).filter(|id| own.insert(*id)) {
                stack.extend(&g.nodes()[id].ins);
            }
        }
        let mut inner: FxHashMap<Value, Value> = FxHashMap::default();
        for id in own {
            let node = g.nodes()[id].clone();
            let read = |v: &Value| if open(g, *v).is_some() { inner.get(v).copied() } else { self.read(known(*v)) };
            let ins: Vec<Option<Value>> = node.ins.iter().map(read).collect();
            if ins.iter().any(Option::is_some) {
                let outs = pushed(g, &node, &ins, &vec![true; node.outs.len()])?;
                inner.extend(node.outs.iter().zip(outs).filter_map(|(&v, t)| Some((v, t?))));
            }
        }
        Ok(if open(g, better).is_some() { inner.get(&better).copied() } else { self.read(known(better)) })
    }
}

/// The tangents of those outputs of a node that are wanted.
fn pushed(g: &mut Graph, node: &Node, tangents: &[Option<Value>], wanted: &[bool]) -> Result<Vec<Option<Value>>> {
    let site = Site { ins: &node.ins, outs: &node.outs, wanted: &[] };
    match node.op.def().jvp(g, &site, tangents).map_err(|e| e.at(node.span))? {
        Some(found) => Ok(found),
        None => transposed(g, node, tangents, wanted),
    }
}

/// The derivative of the cotangents that a node gives its inputs, by those of its outputs, at zero.
fn transposed(g: &mut Graph, node: &Node, tangents: &[Option<Value>], wanted: &[bool]) -> Result<Vec<Option<Value>>> {
    let first = g.nodes().len();
    let mut zeros = FxHashMap::default();
    let mut unknown = |(&v, &wanted): (&Value, &bool)| {
        (wanted && g.ty(v).dtype.is_float()).then(|| {
            let zero = g.zeros_like(v);
            // A value of its own: the graph takes no other expression for it.
            let apart = g.emit(Assert { message: format!("a cotangent of {v:?}, {first}") }, &[zero]);
            zeros.insert(apart, zero);
            apart
        })
    };
    let cts: Vec<Option<Value>> = node.outs.iter().zip(wanted).map(&mut unknown).collect();
    let pulled = cotangents(g, node, &cts, &[])?;
    let linear: Vec<(Value, Value)> = pulled.into_iter().zip(tangents).filter_map(|(ct, t)| Some((ct?, (*t)?))).collect();
    let nodes = first..g.nodes().len();
    let seeds = Seeds { outputs: linear, ..Seeds::default() };
    let by: Vec<Value> = cts.iter().flatten().copied().collect();
    let found = walk(g, &Beside::default(), nodes, &seeds, &by)?;
    let values: Vec<Value> = found.iter().flatten().copied().collect();
    let mut settled = replaced(g, first, zeros, &values)?.into_iter();
    let mut found = found.into_iter().map(|t| t.and_then(|_| settled.next()));
    Ok(cts.iter().map(|ct| ct.and_then(|_| found.next().flatten())).collect())
}

/// Values with others in place of some, where all nodes between are at `first` or behind.
fn replaced(g: &mut Graph, first: usize, mut with: FxHashMap<Value, Value>, values: &[Value]) -> Result<Vec<Value>> {
    let (mut between, mut stack) = (BTreeSet::new(), values.to_vec());
    while let Some(v) = stack.pop() {
        if let Def::Out(id, _) = g.def(v)
            && id.0 as usize >= first
            && !with.contains_key(&v)
            && between.insert(id)
        {
            stack.extend(&g.nodes()[id].ins);
        }
    }
    for id in between {
        let node = g.nodes()[id].clone();
        if node.ins.iter().any(|v| with.contains_key(v)) {
            let ins: Vec<Value> = node.ins.iter().map(|v| with.get(v).copied().unwrap_or(*v)).collect();
            let outs = g.apply(node.op, &ins)?;
            with.extend(node.outs.iter().copied().zip(outs));
        }
    }
    Ok(values.iter().map(|v| with.get(v).copied().unwrap_or(*v)).collect())
}
