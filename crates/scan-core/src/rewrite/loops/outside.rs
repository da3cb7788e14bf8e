//! Which nodes of a step only feed outputs and can be evaluated for all steps at once, and their evaluation around the loop.

use super::Parts;
use super::cost::{computing, elements, heavy};
use super::facts::{infallible, some_step};
use crate::base::{Id, Result};
use crate::ir::op::{Flip, Index};
use crate::ir::{Batched, Batching, Def, Graph, Keep, Node, NodeId, Value};
use crate::ops::properties::Cost;
use crate::rewrite::Cx;
use crate::rewrite::loops::{SeqPart, StatePart};
use crate::scan::steady::steady;
use crate::types::Dim;
use rustc_hash::FxHashMap;

/// True for a state that the step only writes, and of which all rows are returned.
pub fn only_written(state: &StatePart) -> bool {
    let slot = &state.slot;
    slot.reads.is_empty() && slot.writes[..] == [0] && slot.keep == Keep::All && !slot.init
}

/// What can be evaluated for all steps at once.
pub struct Outputs {
    /// True per value that differs from step to step.
    varies: Vec<bool>,
    /// True per node that can go: nothing but outputs, and nodes that can go, read it.
    can: Vec<bool>,
    /// True per node that goes.
    pub goes: Vec<bool>,
    /// Why a costly node that only feeds outputs stays.
    pub why_not: Option<String>,
}

impl Outputs {
    /// Looks at the step of a loop in `graph`.
    pub fn new(cx: &Cx, graph: &Graph, parts: &Parts) -> Outputs {
        let may_fail = cx.speculate || some_step(graph, parts.n_steps);
        let body = &parts.body;
        let (varies, steady) = (varying(parts), steady(&parts.body, parts.varying()));
        let recurrent =
            parts.needed(parts.states.iter().filter(|s| !only_written(s)).flat_map(|s| s.results.iter().copied()).chain(parts.until));
        let live = parts.live();
        let mut users: Vec<Vec<NodeId>> = vec![vec![]; body.n_values()];
        for (id, node) in body.nodes().enumerate().filter(|(_, n)| n.outs.iter().any(|v| live[v.idx()])) {
            node.ins.iter().for_each(|v| users[v.idx()].push(id));
        }
        let none = vec![false; body.nodes().len()];
        let mut found = Outputs { varies, can: none.clone(), goes: none, why_not: None };
        for (id, node) in body.nodes().enumerate().rev().filter(|(_, n)| n.outs.iter().any(|v| live[v.idx()])) {
            let (out, rows) = (node.outs[0], node.ins.iter().map(|v| found.varies[v.idx()]).collect::<Vec<_>>());
            if !found.varies[out.idx()] || recurrent[out.idx()] {
                continue;
            }
            let ready = users[out.idx()].iter().all(|u| found.can[u.idx()]);
            let rule = has_rule(body, node, &rows);
            let fixed = || node.ins.iter().filter(|v| !found.varies[v.idx()]).all(|v| sure_outside(body, *v));
            let sure = may_fail || infallible(body, node) && fixed();
            let rows = node.ins.iter().chain(&node.outs).all(|v| steady[v.idx()]);
            found.can[id.idx()] = ready && rule && sure && rows && node.outs.len() == 1;
            if heavy(body, node) && !found.can[id.idx()] && rule {
                found.why_not = Some(found.reason(node, ready, sure));
            }
        }
        found.spread(body);
        found
    }

    /// True for a costly node that is quicker for all steps at once: a product of rows with what is the same at every step, not products or
    /// factors of each row by itself.
    fn gains(&self, body: &Graph, node: &Node) -> bool {
        let mut varies = node.ins.iter().map(|v| self.varies[v.idx()]);
        let by_itself = match node.op.properties().cost {
            Cost::Product => varies.all(|v| v),
            Cost::Factorises => varies.next() == Some(true),
            _ => false,
        };
        heavy(body, node) && !by_itself
    }

    /// True where it is quicker for all steps at once, and takes no more memory than what is read and the products that gain: what goes and
    /// gains costs more than what is costly and goes along.
    pub fn pays(&self, parts: &Parts) -> bool {
        let body = &parts.body;
        let going = || body.nodes().enumerate().filter(|(id, _)| self.goes[id.idx()]).map(|(_, n)| n);
        let (gain, rest): (Vec<&Node>, Vec<&Node>) = going().filter(|n| heavy(body, n)).partition(|n| self.gains(body, n));
        let cost = |nodes: &[&Node]| nodes.iter().map(|n| computing(body, n)).sum::<u64>();
        let largest = |values: &mut dyn Iterator<Item = Value>| values.map(|v| elements(body.ty(v))).max();
        let kept = largest(&mut parts.varying().chain(gain.iter().map(|n| n.outs[0])));
        let loops = gain.iter().any(|n| n.op.as_scan().is_some());
        loops || cost(&gain) > cost(&rest) && largest(&mut going().map(|n| n.outs[0])) <= kept
    }

    fn reason(&self, node: &Node, ready: bool, sure: bool) -> String {
        let name = node.op.name();
        match (ready, sure) {
            (true, false) => format!("`{name}` might fail where no step runs"),
            _ => format!("what reads `{name}` cannot be computed for all steps at once"),
        }
    }

    /// What goes: costly nodes, and what is made of them.
    fn spread(&mut self, body: &Graph) {
        let mut moved = vec![false; body.n_values()];
        for (id, node) in body.nodes().enumerate().filter(|(id, _)| self.can[id.idx()]) {
            if self.gains(body, node) || node.ins.iter().any(|v| moved[v.idx()]) {
                self.goes[id.idx()] = true;
                node.outs.iter().for_each(|v| moved[v.idx()] = true);
            }
        }
    }

    /// True where nothing differs from step to step but rows of sequences and what can go.
    pub fn everything(&self, parts: &Parts) -> bool {
        let live = parts.live();
        let nodes = parts.body.nodes().enumerate().filter(|(_, n)| n.outs.iter().any(|v| live[v.idx()] && self.varies[v.idx()]));
        let results = parts.results();
        !live[parts.step.idx()] && nodes.into_iter().all(|(id, _)| self.can[id.idx()]) && results.iter().all(|v| self.varies[v.idx()])
    }

    /// Lets everything go that can.
    pub fn all(&mut self) {
        self.goes = self.can.clone();
    }

    /// Values that stay in the step and that what goes reads.
    pub fn frontier(&self, body: &Graph) -> Vec<Value> {
        let made = |v: &Value| matches!(body.def(*v), Def::Out(id, _) if self.goes[id.idx()]);
        let nodes = body.nodes().enumerate().filter(|(id, _)| self.goes[id.idx()]);
        let mut found: Vec<Value> = nodes.flat_map(|(_, n)| n.ins.iter().copied()).filter(|v| self.varies[v.idx()] && !made(v)).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Evaluates what goes, in the graph around, given the rows of the frontier and the captured values there.
    ///
    /// # Errors
    /// What type inference reports.
    pub fn evaluate(
        &self,
        g: &mut Graph,
        body: &Graph,
        rows: &FxHashMap<Value, Value>,
        captured: &FxHashMap<Value, Value>,
    ) -> Result<FxHashMap<Value, Value>> {
        let mut made: FxHashMap<Value, Batched> = rows.iter().map(|(v, all)| (*v, Batched::Rows(*all))).collect();
        let Some(&leading) = rows.values().next() else { return Ok(FxHashMap::default()) };
        for (_, node) in body.nodes().enumerate().filter(|(id, _)| self.goes[id.idx()]) {
            let outer = g.set_span(node.span);
            let mut ins = vec![];
            for &v in &node.ins {
                ins.push(match made.get(&v) {
                    Some(&all) => all,
                    None => Batched::Fixed(g.inline(body, captured, &[v])?[0]),
                });
            }
            let all = node.op.batch(&mut Batching::new(g, leading), &ins)?[0];
            g.set_span(outer);
            made.insert(node.outs[0], all);
        }
        let mut b = Batching::new(g, leading);
        made.into_iter().map(|(v, all)| Ok((v, b.rows(all)?))).collect()
    }
}

/// True where an op has something better for all steps at once than a loop over them, given which inputs differ from step to step.
fn has_rule(body: &Graph, node: &Node, rows: &[bool]) -> bool {
    if !rows.iter().any(|r| *r) {
        return false;
    }
    let (mut g, n) = (Graph::new(), Dim::fresh());
    let mut ins = vec![];
    for (&v, rows) in node.ins.iter().zip(rows) {
        ins.push(match (rows, body.const_value(v)) {
            (true, _) => Batched::Rows(g.param(body.ty(v).rows(n.clone()), None)),
            (false, Some(value)) => Batched::Fixed(g.constant(value.clone())),
            (false, None) => Batched::Fixed(g.param(body.ty(v).clone(), None)),
        });
    }
    let leading = ins.iter().find(|x| x.varies()).map_or(ins[0], |x| *x).value();
    let mut b = Batching::new(&mut g, leading);
    let outs = node.op.batch(&mut b, &ins);
    outs.is_ok_and(|outs| !b.looped && outs.iter().all(|out| matches!(out, Batched::Rows(_) | Batched::Fixed(_))))
}

/// True per value that differs from step to step.
fn varying(parts: &Parts) -> Vec<bool> {
    let mut varies = vec![false; parts.body.n_values()];
    parts.varying().for_each(|p| varies[p.idx()] = true);
    for node in parts.body.nodes().iter() {
        let here = node.ins.iter().any(|v| varies[v.idx()]);
        node.outs.iter().for_each(|v| varies[v.idx()] = here);
    }
    varies
}

/// True where a value that is the same at every step can be computed before the loop without failing.
fn sure_outside(body: &Graph, v: Value) -> bool {
    body.node_of(v).is_none_or(|n| infallible(body, n) && n.ins.iter().all(|v| sure_outside(body, *v)))
}

/// The rows of a sequence that the loop sees, in the order of its steps.
pub fn rows_of(g: &mut Graph, seq: &SeqPart, n: Value, exact: bool) -> Value {
    let rows = match (exact, seq.slot.reverse) {
        (true, _) => seq.rows,
        (false, false) => g.emit(Index { pattern: ":e".into() }, &[seq.rows, n]),
        (false, true) => {
            let len = g.dim(seq.rows, 0);
            let start = g.sub(len, n);
            g.emit(Index { pattern: "s:".into() }, &[seq.rows, start])
        }
    };
    if seq.slot.reverse { g.emit(Flip { axis: 0 }, &[rows]) } else { rows }
}
