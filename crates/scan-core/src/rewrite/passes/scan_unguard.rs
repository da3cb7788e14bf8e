//! Drops what guards the rows of a batch that have stopped, where they need none.
//!
//! ```text
//! before  scan { state h; state goes;  u = where(goes, h, h0);  next h = where(goes, f(u), h);  next goes = goes & g(u) }
//! after   scan { state h; state goes;                           next h = where(goes, f(h), h);  next goes = goes & g(h) }
//! ```
//!
//! A row that has stopped is given what it was given at its first step, so that nothing in it fails and no slope is infinite. Loops for gradients
//! have been written by now. So the guards of a loop can go where all that depends on them is chosen where the row goes on, and where its
//! evaluation does not fail because of elements.

use crate::base::Result;
use crate::ir::op::{BroadcastTo, Gather};
use crate::ir::{Graph, Node, Op, Scan, State, StateId, Value};
use crate::ops::rowwise::{counts, is_first};
use crate::rewrite::Cx;
use crate::rewrite::loops::apart::Apart;
use crate::rewrite::loops::parts::title;
use crate::rewrite::rebuild::copy_with;
use crate::scalar::ElemOp;
use crate::types::DType;
use std::sync::Arc;

const NAME: &str = "scan_unguard";

/// The graph with loops without needless guards.
///
/// # Errors
/// Internal ones.
pub fn run(cx: &mut Cx, graph: &Graph) -> Result<Option<Graph>> {
    copy_with(graph, |rebuild, id, node| {
        let Some(scan) = node.op.as_scan().filter(|scan| scan.until) else { return Ok(false) };
        let mut found: Option<Scan> = None;
        let mut ins = node.ins.to_vec();
        let masks = scan.states.enumerate().filter(|(_, state)| is_mask(state)).map(|(id, _)| id);
        for id in masks {
            let now = found.as_ref().unwrap_or(scan);
            let mask = Mask::of(now, id);
            let own = mask.own_rows(graph, &mut ins);
            if own {
                cx.done(NAME, title(scan), "rows that run no step are read as they are");
            }
            let body = mask.unguarded(cx)?.or_else(|| own.then(|| now.body.clone()));
            found = body.map(|body| now.with_body(body)).or(found);
        }
        let Some(found) = found else { return Ok(false) };
        rebuild.copy_of(id, &Op::Scan(Arc::new(found)), &ins)?;
        Ok(true)
    })
}

fn is_mask(state: &State) -> bool {
    state.row.dtype == DType::Bool && state.row.rank() > 0 && state.kind() == "sit_sot"
}

/// A state that tells which rows go on.
struct Mask<'a> {
    scan: &'a Scan,
    id: StateId,
    goes: Value,
    apart: Apart<'a>,
}

impl<'a> Mask<'a> {
    fn of(scan: &'a Scan, id: StateId) -> Mask<'a> {
        let goes = scan.read_values(id)[0];
        Mask { scan, id, goes, apart: Apart::new(&scan.body, goes) }
    }
    /// What chooses between something that changes with the steps and what it was at the first.
    fn guards(&self) -> Vec<Value> {
        let body = &self.scan.body;
        let captured = self.scan.n_params() - self.scan.captured.len();
        let at = |v: Value| body.params().iter().position(|&p| p == v);
        let by_mask = |v: Value| v == self.goes || body.node_of(v).is_some_and(|n| matches!(n.op, Op::Expand(_)) && n.ins[0] == self.goes);
        let guard = |node: &&Node| {
            if !self.apart.chooses(node) {
                return false;
            }
            let missing = body.ty(node.outs[0]).rank() - body.ty(node.ins[1]).rank();
            by_mask(node.ins[0])
                && (missing == 0 || missing == body.ty(self.goes).rank())
                && at(node.ins[1]).is_some_and(|p| p < captured)
                && (at(node.ins[2]).is_some_and(|p| p >= captured) || body.const_value(node.ins[2]).is_some())
        };
        body.nodes().iter().filter(guard).map(|node| node.outs[0]).collect()
    }
    /// The step without the guards that it does without.
    fn unguarded(&self, cx: &mut Cx) -> Result<Option<Graph>> {
        let guards = self.guards();
        let mut needless = guards.clone();
        if !self.apart.unseen(&needless) {
            needless.clear();
            for &guard in &guards {
                needless.push(guard);
                if !self.apart.unseen(&needless) {
                    needless.pop();
                }
            }
        }
        let (all, name) = (guards.len(), title(self.scan));
        if needless.len() < all {
            cx.left(NAME, name.clone(), format!("{} of {all} guards: rows that have stopped could fail, or count", all - needless.len()));
        }
        if !needless.is_empty() {
            cx.done(NAME, name, format!("{} of {all} guards of rows that have stopped", needless.len()));
        }
        if needless.is_empty() { Ok(None) } else { self.without(&needless) }
    }
    /// The step without some guards.
    fn without(&self, guards: &[Value]) -> Result<Option<Graph>> {
        let body = &self.scan.body;
        copy_with(body, |rebuild, _, node| {
            if !guards.contains(&node.outs[0]) {
                return Ok(false);
            }
            let (now, goes) = (rebuild.image(node.ins[1])?, rebuild.image(self.goes)?);
            let g = &mut rebuild.new;
            let value = if g.ty(now).rank() == body.ty(node.outs[0]).rank() {
                now
            } else {
                let mut ins = vec![now];
                for x in [goes, now] {
                    ins.extend((0..g.ty(x).rank()).map(|axis| g.dim(x, axis)).collect::<Vec<Value>>());
                }
                g.emit(BroadcastTo {}, &ins)
            };
            rebuild.set(node.outs[0], value);
            Ok(true)
        })
    }
    /// Captures each row itself where one that runs no step at all was given another row, and nothing depends on that. True where that changes
    /// anything.
    fn own_rows(&self, around: &Graph, ins: &mut [Value]) -> bool {
        let next = self.scan.write_values(self.id)[0];
        let begun = self.scan.init_input(self.id).and_then(|at| around.node_of(ins[at]));
        let Some((Op::Expand(_), &[first])) = begun.map(|node| (&node.op, &node.ins[..])) else { return false };
        if !self.apart.off(next) {
            return false;
        }
        let (from, params) = (ins.len() - self.scan.captured.len(), self.scan.body.params());
        let params = &params[params.len() - self.scan.captured.len()..];
        let mut own = vec![];
        for (&param, k) in params.iter().zip(from..) {
            let Some(x) = of_rows(around, ins[k], first) else { continue };
            own.push(param);
            if self.apart.unseen(&own) {
                ins[k] = x;
            } else {
                own.pop();
            }
        }
        !own.is_empty()
    }
}

/// What an array is of which each row for which a condition holds is its own, and each other one the same certain row.
fn of_rows(g: &Graph, v: Value, holds: Value) -> Option<Value> {
    let (Op::Gather(Gather { axes }), &[x, places]) = g.node_of(v).map(|node| (&node.op, &node.ins[..]))? else { return None };
    let (Op::Elem(ElemOp::Where), &[cond, numbers, other]) = g.node_of(places).map(|node| (&node.op, &node.ins[..]))? else { return None };
    let rows = &g.ty(x).dims[0];
    let found =
        cond == holds && axes[..] == [0] && g.ty(x) == g.ty(v) && counts(g, numbers).as_ref() == Some(rows) && g.ty(holds).rank() == 1;
    (found && is_first(g, other, (cond, numbers), rows)).then_some(x)
}
