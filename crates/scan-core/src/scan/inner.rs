//! What a loop inside a step decides, of values that the step computed. A gradient runs that loop again, on values that may be computed
//! again, and rounded otherwise, while others are read as they were: then what was equal, a value and the maximum of its array, is not.
//! Such a loop is handed the values that the forward loop had. Where a decision rests on one value alone nothing is read beside it, and
//! the loop may run on that value as it is computed again.

use super::decided::{decisions, repeats};
use crate::base::Id;
use crate::ir::{Graph, Node, Op, Scan, Value};
use crate::scalar::ElemOp;
use rustc_hash::FxHashMap;

/// A set of values that inputs of a loop are moved from, by their numbers; all from 63 on are one.
type Roots = u64;

/// Positions of a loop's inputs on which, with something else that the step computed, a decision inside the loop rests.
pub(super) fn deciding(g: &Graph, node: &Node, computed: impl Fn(Value) -> bool) -> Vec<usize> {
    let Op::Scan(scan) = &node.op else { return vec![] };
    let ins = &node.ins;
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
            Some(node) if computed(v) && repeats(&node.op) => open.extend(node.ins.iter().copied()),
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
    use ElemOp::{Abs, Clip, Hypot, Maximum, Minimum, Relu};
    match op {
        Op::Elem(Abs | Clip | Hypot | Maximum | Minimum | Relu) => true,
        Op::Scan(scan) => decisions(&scan.body).contains(&true) || scan.body.nodes().iter().any(|n| bends(&n.op)),
        _ => false,
    }
}
