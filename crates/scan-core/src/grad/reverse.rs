//! Reverse mode: walks the nodes backwards and adds up cotangents.

use super::branches::leaving;
use crate::base::{Diagnostic, Kind, Result};
use crate::ir::needs::{At, Needs};
use crate::ir::{AsWritten, Def, Graph, Node, NodeId, Op, Site, Value};
use crate::rewrite::local::{Beside, Index};
use crate::rewrite::rules::{contract, log_space, log_terms, stabilise};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::LazyLock;

/// Where cotangents start and stop.
#[derive(Clone, Default)]
pub struct Seeds {
    /// Values with their cotangents; what flows into them from elsewhere is added.
    pub outputs: Vec<(Value, Value)>,
    /// Values whose cotangent is given: nothing else is added.
    pub known: Vec<(Value, Value)>,
    /// Values through which no gradient flows.
    pub constants: Vec<Value>,
}

/// Formulas that overflow or cancel, and so do their derivatives.
static STABLE: LazyLock<Index> = LazyLock::new(|| Index::of("stabilise", &[stabilise::RULES, log_space::RULES, log_terms::RULES]));
/// Sums of products that are products of matrices.
static CONTRACT: LazyLock<Index> = LazyLock::new(|| Index::of("contract", &[contract::RULES]));
/// Both.
static ALL: LazyLock<Index> =
    LazyLock::new(|| Index::of("gradient", &[stabilise::RULES, log_space::RULES, log_terms::RULES, contract::RULES]));

/// The cotangents of `wrt`; `None` where a value is not connected to any seed. A connected value through which only
/// zeros flow has zeros. What the passes `stabilise` and `contract` have a better formula for is differentiated in that form, unless the graph is to be
/// taken [as written](Graph::as_written): the derivative of `log(sigmoid(x))` at −1000 is that of `log_sigmoid(x)`, not `0 / 0`.
///
/// # Errors
/// `E0403` for an op without gradient; an internal error where a rule returns a cotangent of another type.
pub fn vjp(g: &mut Graph, seeds: &Seeds, wrt: &[Value]) -> Result<Vec<Option<Value>>> {
    let nodes = 0..g.nodes().len();
    let beside = better(g);
    walk(g, &beside, nodes, seeds, wrt)
}

/// The formulas by which a graph is differentiated instead of its own.
pub(super) fn better(g: &mut Graph) -> Beside {
    match g.as_written() {
        AsWritten { formulas: true, products: true } => Beside::default(),
        AsWritten { formulas: true, .. } => Beside::of(g, &CONTRACT),
        AsWritten { products: true, .. } => Beside::of(g, &STABLE),
        _ => Beside::of(g, &ALL),
    }
}

/// As [`vjp`], through these nodes alone.
///
/// # Errors
/// As [`vjp`].
pub(super) fn walk(g: &mut Graph, beside: &Beside, nodes: Range<usize>, seeds: &Seeds, wrt: &[Value]) -> Result<Vec<Option<Value>>> {
    let starts: Vec<Value> = seeds.outputs.iter().chain(&seeds.known).map(|s| s.0).collect();
    let stops: FxHashSet<Value> = seeds.constants.iter().copied().collect();
    let reached = connected(g, &starts, &stops, nodes.clone());
    let depends = dependent(g, wrt, &stops, nodes.clone());
    let branches = Needs::of(g, nodes.clone(), starts.iter().chain(wrt).copied());
    let (fixed, cts) = (seeds.known.iter().map(|s| s.0).collect(), seeds.known.iter().copied().collect());
    let mut sums = Sums { fixed, cts, depends, branches };
    for &(v, ct) in &seeds.outputs {
        sums.add(g, v, ct);
    }
    for i in nodes.rev() {
        let id = NodeId(i as u32);
        let node = g.nodes()[id].clone();
        let cts: Vec<Option<Value>> = node.outs.iter().map(|v| sums.cts.get(v).copied().filter(|_| !stops.contains(v))).collect();
        let live = node.ins.iter().any(|v| sums.depends.contains(v)) && node.outs.iter().any(|v| sums.depends.contains(v));
        if !live || cts.iter().all(Option::is_none) {
            continue;
        }
        let saved = g.set_span(node.span);
        let at = sums.branches.node(&node);
        // An output that is needed under more conditions than others.
        let all = node.outs.iter().zip(cts);
        let cts: Vec<Option<Value>> = all.map(|(&v, ct)| Some(leaving(g, &sums.branches.value(v), &at, (v, ct?)))).collect();
        match (beside.instead.get(&node.outs[0]), &cts[..]) {
            (Some(&better), &[Some(ct)]) => sums.through(g, beside, (better, ct), id)?,
            (_, &[Some(ct)]) if matches!(node.op, Op::IfElse(_)) => {
                (1..=2).for_each(|k| sums.add_to_live(g, &sums.branches.input(&node, k), node.ins[k], ct));
            }
            _ => {
                let wanted: SmallVec<[bool; 8]> = node.ins.iter().map(|v| sums.depends.contains(v)).collect();
                pulled(g, &node, &cts, &wanted)?.into_iter().for_each(|(v, ct)| sums.add_to_live(g, &at, v, ct));
            }
        }
        g.set_span(saved);
    }
    Ok(wrt.iter().map(|v| sums.result(g, *v, &reached)).collect())
}

/// The cotangents that a node gives those of its inputs of which they are wanted; all where `wanted` is empty.
fn pulled(g: &mut Graph, node: &Node, cts: &[Option<Value>], wanted: &[bool]) -> Result<Vec<(Value, Value)>> {
    let given = cotangents(g, node, cts, wanted)?;
    Ok(node.ins.iter().zip(given).filter_map(|(&v, ct)| Some((v, ct?))).collect())
}

/// The cotangents of a node's inputs, given those of its outputs: of the inputs of which they are wanted, all where `wanted` is empty.
///
/// # Errors
/// As [`vjp`].
pub(super) fn cotangents(g: &mut Graph, node: &Node, cts: &[Option<Value>], wanted: &[bool]) -> Result<Vec<Option<Value>>> {
    let given = node.op.def().vjp(g, &Site { ins: &node.ins, outs: &node.outs, wanted }, cts).map_err(|e| e.at(node.span))?;
    node.ins.iter().zip(&given).try_for_each(|(&v, ct)| ct.map_or(Ok(()), |ct| check(g, node.op.name(), v, ct)))?;
    Ok(given)
}

struct Sums {
    fixed: FxHashSet<Value>,
    cts: FxHashMap<Value, Value>,
    /// Values that depend on what derivatives are asked by.
    depends: FxHashSet<Value>,
    branches: Needs,
}

impl Sums {
    /// Adds a cotangent that is needed under some conditions.
    fn add_to_live(&mut self, g: &mut Graph, from: &At, v: Value, ct: Value) {
        if self.depends.contains(&v) {
            let ct = leaving(g, from, &self.branches.value(v), (v, ct));
            self.add(g, v, ct);
        }
    }

    /// Pulls a cotangent through the value that stands beside that of a node, back to values from before the node.
    fn through(&mut self, g: &mut Graph, beside: &Beside, start: (Value, Value), node: NodeId) -> Result<()> {
        let mut open: BTreeMap<NodeId, Value> = BTreeMap::new();
        let mut given = vec![start];
        let from = self.branches.node(&g.nodes()[node]);
        loop {
            for (v, ct) in given {
                let known = beside.equals.get(&v).copied().unwrap_or(v);
                match (g.def(known), g.def(v)) {
                    (Def::Out(at, _), Def::Out(own, _)) if at >= node => {
                        let sum = open.get(&own).map_or(ct, |&other| g.add(other, ct));
                        open.insert(own, sum);
                    }
                    _ => self.add_to_live(g, &from, known, ct),
                }
            }
            let Some((id, ct)) = open.pop_last() else { return Ok(()) };
            let node = g.nodes()[id].clone();
            given = pulled(g, &node, &[Some(ct)], &[])?;
        }
    }

    fn add(&mut self, g: &mut Graph, v: Value, ct: Value) {
        if self.fixed.contains(&v) {
            return;
        }
        let sum = match self.cts.get(&v) {
            Some(&old) => g.add(old, ct),
            None => ct,
        };
        self.cts.insert(v, sum);
    }

    fn result(&self, g: &mut Graph, v: Value, reached: &FxHashSet<Value>) -> Option<Value> {
        match self.cts.get(&v) {
            Some(&ct) => Some(ct),
            None if reached.contains(&v) => Some(g.zeros_like(v)),
            None => None,
        }
    }
}

fn check(g: &Graph, op: &str, v: Value, ct: Value) -> Result<()> {
    let (want, got) = (g.ty(v), g.ty(ct));
    if want.dtype != got.dtype || want.rank() != got.rank() {
        return Err(Diagnostic::new(Kind::Internal, "E9999", format!("the gradient of `{op}` gives {got} for an input of type {want}")));
    }
    Ok(())
}

/// Values from which a seed can be reached through connected inputs.
pub(super) fn connected(g: &Graph, starts: &[Value], stops: &FxHashSet<Value>, nodes: Range<usize>) -> FxHashSet<Value> {
    let mut reached: FxHashSet<Value> = starts.iter().copied().collect();
    for i in nodes.rev() {
        let node = &g.nodes()[NodeId(i as u32)];
        if node.outs.iter().any(|v| reached.contains(v) && !stops.contains(v)) {
            let def = node.op.def();
            reached.extend(node.ins.iter().enumerate().filter(|(k, _)| def.connected(*k)).map(|(_, v)| *v));
        }
    }
    reached
}

/// Values that depend on one of `wrt` through connected inputs.
pub(super) fn dependent(g: &Graph, wrt: &[Value], stops: &FxHashSet<Value>, nodes: Range<usize>) -> FxHashSet<Value> {
    let mut depends: FxHashSet<Value> = wrt.iter().copied().collect();
    for i in nodes {
        let node = &g.nodes()[NodeId(i as u32)];
        let def = node.op.def();
        if node.ins.iter().enumerate().any(|(k, v)| depends.contains(v) && !stops.contains(v) && def.connected(k)) {
            depends.extend(node.outs.iter().copied());
        }
    }
    depends
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Op;
    use crate::ops::testing::{eval_graph, graph_of};
    use crate::scalar::ElemOp;
    use crate::types::{Array, DType};

    /// The derivative of `log(1 − 1/(1 + e⁻ˣ)) + 2·sigmoid(x)` by x, and by the sigmoid, which another value of the graph equals.
    fn slopes(x: f64, as_written: bool) -> Vec<f64> {
        let ins = [Array::scalar(x)];
        let (mut g, v) = graph_of(&ins, true);
        g.set_as_written(AsWritten { formulas: as_written, ..AsWritten::default() });
        let one = g.number(DType::F64, 1.0);
        let (minus, s) = (g.neg(v[0]), g.emit(Op::Elem(ElemOp::Sigmoid), &v));
        let power = g.exp(minus);
        let sum = g.add(one, power);
        let quotient = g.div(one, sum);
        let rest = g.sub(one, quotient);
        let log = g.log(rest);
        let double = g.add(s, s);
        let y = g.add(log, double);
        let found = vjp(&mut g, &Seeds { outputs: vec![(y, one)], ..Seeds::default() }, &[v[0], s]).unwrap();
        let found: Vec<Value> = found.into_iter().flatten().collect();
        eval_graph(&g, &ins, &found).unwrap().iter().map(|a| a.to_f64_vec()[0]).collect()
    }

    #[test]
    fn formulas_that_overflow_are_differentiated_in_the_form_that_does_not() {
        assert!(slopes(1000.0, true)[0].is_nan());
        assert_eq!(slopes(1000.0, false), [-1.0, 2.0]);
        assert_eq!(slopes(-800.0, false), [0.0, 2.0]);
        for (x, y) in slopes(0.75, false).into_iter().zip(slopes(0.75, true)) {
            assert!((x - y).abs() < 1e-15, "{x} for {y}");
        }
    }
}
