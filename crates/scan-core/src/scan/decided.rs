//! What a step decides: comparisons, signs, roundings, integers made of floats. The gradient computes a step again, and rounds otherwise
//! than the step did where it contracts other products, or multiplies all rows at once. Then `x == max(x)` may hold nowhere, and a
//! gradient that trusts it is zero. So the gradient takes the decisions that the loop took, at a byte each, unless computing them again
//! certainly gives the same.

use super::inner::deciding;
use super::reached::eager;
use super::steady::steady;
use super::vjp::StepVjp;
use crate::base::Id;
use crate::ir::{Graph, Node, Op, Scan, Value};
use crate::scalar::{ElemOp, Jumps};
use crate::types::Array;
use smallvec::SmallVec;

/// The outermost decisions that cotangents use, and what loops inside the step decide on.
pub(super) fn decided(step: &StepVjp, scan: &Scan) -> Vec<Value> {
    let g = &step.graph;
    let mut wanted = decisions(g);
    on_behalf_of_loops(step, &mut wanted);
    if !wanted.contains(&true) {
        return vec![];
    }
    let doubts = doubts(g, |v| step.stored.has(v));
    let fixed = steady(g, step.varying(scan));
    let there = there(step);
    let mut found = vec![];
    let mut seen = vec![false; g.n_values()];
    let mut open: Vec<Value> = step.given.iter().flatten().copied().collect();
    while let Some(v) = open.pop() {
        if std::mem::replace(&mut seen[v.idx()], true) || step.stored.has(v) {
            continue;
        }
        let Some(node) = g.node_of(v) else { continue };
        if wanted[v.idx()] && doubts[v.idx()].any() && fixed[v.idx()] && there[v.idx()] {
            found.push(v);
        } else {
            open.extend(read(node));
        }
    }
    found.sort_unstable();
    found
}

/// Marks what the step hands to loops of its own that decide on it.
fn on_behalf_of_loops(step: &StepVjp, wanted: &mut [bool]) {
    let g = &step.graph;
    let own = g.nodes().iter().filter(|n| step.origin.contains_key(&n.outs[0]));
    let loops: Vec<_> = own.filter_map(|n| if let Op::Scan(scan) = &n.op { Some((scan, &n.ins)) } else { None }).collect();
    if loops.is_empty() {
        return;
    }
    let computed = doubts(g, |_| false);
    for (scan, ins) in loops {
        deciding(g, scan, ins, |v| computed[v.idx()].any()).into_iter().for_each(|k| wanted[ins[k].idx()] = true);
    }
}

/// True for ops on floats whose results jump and do not change in between: their derivatives are zero.
pub(super) fn is_flat(op: &Op) -> bool {
    matches!(op, Op::Elem(f) if f.nature().jumps == Jumps::Flat)
}

/// True per value that jumps where its inputs hardly change.
pub(super) fn decisions(g: &Graph) -> Vec<bool> {
    let mut found = vec![false; g.n_values()];
    for node in g.nodes().iter() {
        node.outs.iter().for_each(|v| found[v.idx()] = decides(g, node));
    }
    let equal = |v: &Value| g.node_of(*v).is_some_and(|n| matches!(n.op, Op::Elem(ElemOp::Eq)));
    let mut only_guards = vec![true; g.n_values()];
    for node in g.nodes().iter() {
        node.ins.iter().filter(|v| equal(v) && !guards(g, node, **v)).for_each(|v| only_guards[v.idx()] = false);
    }
    let guards = |v: usize| only_guards[v] && equal(&Value::new(v));
    found.iter().enumerate().map(|(v, found)| *found && !guards(v)).collect()
}

fn decides(g: &Graph, node: &Node) -> bool {
    let dtype = g.ty(node.outs[0]).dtype;
    let infinite = |v: &Value| g.const_value(*v).and_then(Array::item_f64).is_some_and(f64::is_infinite);
    match &node.op {
        Op::Elem(f) if f.nature().jumps == Jumps::Steep => true,
        Op::Elem(f) if f.nature().of_infinity || node.ins.iter().any(infinite) => false,
        Op::Const(_) | Op::Scan(_) => false,
        op => is_flat(op) || !dtype.is_float() && node.outs.len() == 1,
    }
}

/// True where a node does no more with `equal`, an `x == y`, than put a zero, or −∞, in the place of `x − y`: so do slopes of logarithms of
/// sums.
fn guards(g: &Graph, node: &Node, equal: Value) -> bool {
    let elem = |v: Value, op: ElemOp| g.node_of(v).filter(|n| matches!(n.op, Op::Elem(found) if found == op)).map(|n| &n.ins);
    let number = |v: Value, x: f64| g.const_value(v).and_then(Array::item_f64) == Some(x);
    let plain = |v: Value| {
        let low = |ins: &SmallVec<[Value; 4]>| number(ins[1], f64::NEG_INFINITY) && number(ins[2], 0.0);
        number(v, 0.0) || elem(v, ElemOp::Where).is_some_and(low)
    };
    let difference = || elem(node.ins[2], ElemOp::Sub) == elem(equal, ElemOp::Eq);
    matches!(node.op, Op::Elem(ElemOp::Where)) && node.ins[0] == equal && plain(node.ins[1]) && difference()
}

/// What a node reads the elements of.
fn read(node: &Node) -> impl Iterator<Item = Value> {
    let of_shape = node.op.properties().shape_only;
    node.ins.iter().enumerate().filter(|(k, _)| !of_shape.contains(k)).map(|(_, v)| *v)
}

/// Why computing a value again may give another.
#[derive(Clone, Copy, Default)]
struct Doubt {
    /// Floats are added on the way to it.
    sums: bool,
    /// Floats are multiplied.
    products: bool,
    /// Ops that may be computed in another way.
    others: bool,
}

impl Doubt {
    /// A product and a sum may become one operation, which rounds once.
    fn any(self) -> bool {
        self.others || self.sums && self.products
    }
    fn or(self, other: Doubt) -> Doubt {
        Doubt { sums: self.sums || other.sums, products: self.products || other.products, others: self.others || other.others }
    }
}

/// Per value; none for what is read again.
fn doubts(g: &Graph, read_again: impl Fn(Value) -> bool) -> Vec<Doubt> {
    let mut doubts = vec![Doubt::default(); g.n_values()];
    for node in g.nodes().iter() {
        let float = node.outs.iter().any(|v| g.ty(*v).dtype.is_float());
        let own = match &node.op {
            _ if !float => Doubt::default(),
            Op::Elem(ElemOp::Add | ElemOp::Sub) => Doubt { sums: true, ..Doubt::default() },
            op if op.repeats() => Doubt::default(),
            Op::Elem(_) => Doubt { products: true, ..Doubt::default() },
            _ => Doubt { others: true, ..Doubt::default() },
        };
        let all = read(node).fold(own, |all, v| all.or(doubts[v.idx()]));
        node.outs.iter().filter(|v| !read_again(**v)).for_each(|v| doubts[v.idx()] = all);
    }
    doubts
}

/// True per value that is the step's own and that every step computes, or that is made of such alone: not of cotangents.
fn there(step: &StepVjp) -> Vec<bool> {
    let g = &step.graph;
    let eager = eager(&step.quiet);
    let mut there = vec![false; g.n_values()];
    step.params.iter().for_each(|p| there[p.idx()] = true);
    for node in g.nodes().iter() {
        let made = node.ins.iter().all(|v| there[v.idx()]);
        for v in &node.outs {
            there[v.idx()] = step.origin.get(v).map_or(made, |of| eager[of.idx()]) || matches!(node.op, Op::Const(_));
        }
    }
    there
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::EvalCx;
    use crate::types::{DType, Type};

    /// Whether a function of floats changes by much somewhere where an input changes by hardly anything, poles aside.
    fn jumps(op: ElemOp) -> bool {
        const AT: [f64; 12] = [-2.5, -2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0];
        let n = AT.len().pow(op.arity() as u32);
        let value = |moved: usize, by: f64| {
            let input = |k: usize| {
                let numbers = (0..n).map(|i| AT[i / AT.len().pow(k as u32) % AT.len()] + if k == moved { by } else { 0.0 });
                Array::vector(&numbers.collect::<Vec<f64>>()).cast(if op == ElemOp::Where && k == 0 { DType::Bool } else { DType::F64 })
            };
            let mut ins: Vec<Array> = (0..op.arity()).map(input).collect();
            Op::Elem(op).evaluate(&mut EvalCx::new(), &mut ins).map_or(vec![], |outs| outs[0].to_f64_vec())
        };
        let far = |(a, b): (&f64, &f64)| a.abs() < 1e3 && b.abs() < 1e3 && (a - b).abs() > 0.1;
        (0..op.arity()).any(|k| value(k, -1e-9).iter().zip(&value(k, 1e-9)).any(far))
    }

    #[test]
    fn every_function_that_jumps_is_a_decision() {
        let mut found = 0;
        for &op in ElemOp::ALL {
            let mut g = Graph::new();
            let ins: Vec<Value> = (0..op.arity()).map(|_| g.param(Type::new(DType::F64, []), None)).collect();
            let Ok(outs) = g.apply(Op::Elem(op), &ins) else { continue };
            let y = outs[0];
            if !g.ty(y).dtype.is_float() {
                assert!(decisions(&g)[y.idx()] || op.nature().of_infinity || op == ElemOp::Eq, "{}", op.name());
                continue;
            }
            let jumps = jumps(op);
            found += usize::from(jumps);
            assert_eq!(decisions(&g)[y.idx()], jumps, "{} jumps: {jumps}", op.name());
            assert_eq!(op.nature().jumps != Jumps::No, jumps, "{}", op.name());
        }
        assert_eq!(found, 10);
    }
}
