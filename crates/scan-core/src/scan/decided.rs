//! What a step decides: comparisons, signs, roundings, integers made of floats. The gradient computes a step again, and rounds otherwise
//! than the step did where it contracts other products, or multiplies all rows at once. Then `x == max(x)` may hold nowhere, and a
//! gradient that trusts it is zero. So the gradient takes the decisions that the loop took, at a byte each, unless computing them again
//! certainly gives the same.

use super::inner::deciding;
use super::reached::{eager, shape_only};
use super::steady::steady;
use super::vjp::StepVjp;
use crate::base::Id;
use crate::ir::{Graph, Node, Op, Scan, Value};
use crate::scalar::ElemOp;
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
    let doubts = doubts(g, |v| step.is_stored(v));
    let fixed = steady(g, step.varying(scan));
    let there = there(step);
    let mut found = vec![];
    let mut seen = vec![false; g.n_values()];
    let mut open: Vec<Value> = step.given.iter().flatten().copied().collect();
    while let Some(v) = open.pop() {
        if std::mem::replace(&mut seen[v.idx()], true) || step.is_stored(v) {
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
    use ElemOp::{Ceil, Floor, FloorDiv, Round, Sign, Trunc};
    matches!(op, Op::Elem(Sign | Floor | Ceil | Round | Trunc | FloorDiv))
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
    use ElemOp::{Atan2, CopySign, Fmod, IsFinite, IsInf, IsNan, Mod};
    let dtype = g.ty(node.outs[0]).dtype;
    let infinite = |v: &Value| g.const_value(*v).and_then(Array::item_f64).is_some_and(f64::is_infinite);
    match &node.op {
        Op::Elem(Mod | Fmod | CopySign | Atan2) => true,
        Op::Elem(IsNan | IsInf | IsFinite) | Op::Const(_) | Op::Scan(_) => false,
        Op::Elem(_) if node.ins.iter().any(infinite) => false,
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
    let of_shape = shape_only(&node.op);
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
            op if repeats(op) => Doubt::default(),
            Op::Elem(_) => Doubt { products: true, ..Doubt::default() },
            _ => Doubt { others: true, ..Doubt::default() },
        };
        let all = read(node).fold(own, |all, v| all.or(doubts[v.idx()]));
        node.outs.iter().filter(|v| !read_again(**v)).for_each(|v| doubts[v.idx()] = all);
    }
    doubts
}

/// True for ops on floats that move elements, choose among them, draw them, or change no more than a sign.
pub(super) fn repeats(op: &Op) -> bool {
    use ElemOp::{Abs, Ceil, Clip, CopySign, Floor, Maximum, Minimum, Neg, Relu, Round, Sign, Trunc, Where};
    matches!(
        op,
        Op::Elem(Abs | Ceil | Clip | CopySign | Floor | Maximum | Minimum | Neg | Relu | Round | Sign | Trunc | Where)
            | Op::Const(_)
            | Op::Cast(_)
            | Op::Index(_)
            | Op::Gather(_)
            | Op::Join(_)
            | Op::Flip(_)
            | Op::Transpose(_)
            | Op::Expand(_)
            | Op::Squeeze(_)
            | Op::Reshape(_)
            | Op::ReshapeLike(_)
            | Op::BroadcastTo(_)
            | Op::BroadcastLike(_)
            | Op::StopGradient(_)
            | Op::RandomUniform(_)
            | Op::RandomNormal(_)
    )
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
