//! What a loop inside a step decides, of values that the step computed. A gradient runs that loop again, on values that may be computed
//! again, and rounded otherwise, while others are read as they were: then what was equal, a value and the maximum of its array, is not.
//! Such a loop is handed the values that the forward loop had. Where a decision rests on one value alone nothing is read beside it, and
//! the loop may run on that value as it is computed again.

use super::decided::decisions;
use crate::base::Id;
use crate::grad::{self, Seeds};
use crate::ir::op::ReduceKind;
use crate::ir::{Graph, Op, Scan, Value};
use crate::scalar::{ElemOp, Rule};
use crate::types::{DType, Type};
use rustc_hash::FxHashMap;
use std::sync::OnceLock;

/// A set of values that inputs of a loop are moved from, by their numbers; all from 63 on are one.
type Roots = u64;

/// Positions of a loop's inputs on which, with something else that the step computed, a decision inside the loop rests.
pub(super) fn deciding(g: &Graph, scan: &Scan, ins: &[Value], computed: impl Fn(Value) -> bool) -> Vec<usize> {
    let mut numbers = FxHashMap::default();
    let given: Vec<Roots> = ins.iter().map(|&v| roots(g, v, &computed, &mut numbers)).collect();
    if numbers.len() < 2 {
        return vec![];
    }
    let at_stake = |of: Roots| if of.count_ones() > 1 { of } else { 0 };
    let all = decided_of(scan, &given).into_iter().fold(0, |all, of| all | at_stake(of));
    (0..ins.len()).filter(|&k| given[k] & all != 0).collect()
}

/// What a value is moved from, of what was computed.
fn roots(g: &Graph, v: Value, computed: &impl Fn(Value) -> bool, numbers: &mut FxHashMap<Value, u32>) -> Roots {
    let mut all = 0;
    let mut open = vec![v];
    while let Some(v) = open.pop() {
        match g.node_of(v) {
            Some(node) if computed(v) && node.op.repeats() => open.extend(node.ins.iter().copied()),
            _ if computed(v) => {
                let next = numbers.len() as u32;
                all |= 1 << (*numbers.entry(v).or_insert(next)).min(63);
            }
            _ => {}
        }
    }
    all
}

/// For each decision of a loop: what it is made of, where inputs are made of `given`.
fn decided_of(scan: &Scan, given: &[Roots]) -> Vec<Roots> {
    let body = &scan.body;
    let mut of = vec![0; body.n_values()];
    let params = body.params();
    scan.seqs.ids().for_each(|id| of[params[scan.seq_param(id)].idx()] = given[scan.seq_input(id)]);
    scan.captured.ids().for_each(|id| of[params[scan.captured_param(id)].idx()] = given[scan.captured_input(id)]);
    let mut rows: Vec<Roots> = scan.states.ids().map(|id| scan.init_input(id).map_or(0, |at| given[at])).collect();
    loop {
        for id in scan.states.ids() {
            scan.read_values(id).iter().for_each(|p| of[p.idx()] = rows[id.idx()]);
        }
        for node in body.nodes().iter() {
            let all = node.ins.iter().fold(0, |all, v| all | of[v.idx()]);
            node.outs.iter().for_each(|v| of[v.idx()] = all);
        }
        let next = scan.states.ids().map(|id| scan.write_values(id).iter().fold(rows[id.idx()], |all, v| all | of[v.idx()]));
        let next: Vec<Roots> = next.collect();
        if next == rows {
            break;
        }
        rows = next;
    }
    let decisions = decisions(body);
    let all = body.nodes().iter().filter(|n| n.outs.iter().any(|v| decisions[v.idx()]) || bends(&n.op));
    all.map(|n| of[n.outs[0].idx()]).collect()
}

/// True for ops whose derivatives decide, and for loops with such ops or decisions.
fn bends(op: &Op) -> bool {
    match op {
        Op::Elem(op) => bending()[*op as usize],
        Op::Reduce(op) => matches!(op.kind, ReduceKind::Max | ReduceKind::Min),
        Op::Scan(scan) => decisions(&scan.body).contains(&true) || scan.body.nodes().iter().any(|n| bends(&n.op)),
        _ => false,
    }
}

/// Per elementwise function: whether its derivative decides.
fn bending() -> &'static [bool] {
    static FOUND: OnceLock<Vec<bool>> = OnceLock::new();
    FOUND.get_or_init(|| ElemOp::ALL.iter().map(|&op| derivative(op).is_some_and(|g| decisions(&g).contains(&true))).collect())
}

/// A function with its derivatives by all arguments, where it has any.
fn derivative(op: ElemOp) -> Option<Graph> {
    if !op.row().differentiable {
        return None;
    }
    let mut g = Graph::new();
    let dtype = |k: usize| if (op.row().rule, k) == (Rule::Where, 0) { DType::Bool } else { DType::F64 };
    let args: Vec<Value> = (0..op.arity()).map(|k| g.param(Type::scalar(dtype(k)), None)).collect();
    let out = g.apply(Op::Elem(op), &args).ok()?[0];
    let ct = g.param(g.ty(out).clone(), None);
    let floats: Vec<Value> = args.into_iter().filter(|&v| g.ty(v).dtype.is_float()).collect();
    let seeds = Seeds { outputs: vec![(out, ct)], ..Seeds::default() };
    grad::vjp(&mut g, &seeds, &floats).ok()?;
    Some(g)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_whose_derivatives_compare_are_known() {
        let found: Vec<&str> = ElemOp::ALL.iter().zip(bending()).filter(|(_, bends)| **bends).map(|(op, _)| op.name()).collect();
        let steps = ["mod", "fmod", "abs", "minimum", "maximum", "clip", "hypot", "atan2", "copysign", "relu"];
        let at_a_point = ["pow", "logaddexp", "xlogy"];
        assert!(found.len() == steps.len() + at_a_point.len() && steps.iter().chain(&at_a_point).all(|f| found.contains(f)), "{found:?}");
    }
}
