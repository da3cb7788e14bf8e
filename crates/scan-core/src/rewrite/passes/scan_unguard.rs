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

use crate::base::{Id, IdxVec, Result};
use crate::ir::op::BroadcastTo;
use crate::ir::{Graph, Node, Op, Scan, State, Value};
use crate::ops::certain::by_extents;
use crate::rewrite::Cx;
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
        while let Some(body) = unguarded(cx, found.as_ref().unwrap_or(scan))? {
            found = Some(scan.with_body(body));
        }
        let Some(found) = found else { return Ok(false) };
        cx.done(NAME, title(scan), "rows that have stopped need no guard");
        rebuild.copy_as(id, &Op::Scan(Arc::new(found)))?;
        Ok(true)
    })
}

/// The step without the guards of one batch.
fn unguarded(cx: &mut Cx, scan: &Scan) -> Result<Option<Graph>> {
    let which = |state: &State| state.row.dtype == DType::Bool && state.row.rank() > 0 && state.kind() == "sit_sot";
    for (id, _) in scan.states.enumerate().filter(|(_, state)| which(state)) {
        let guards = Guards::of(scan, scan.read_values(id)[0]);
        if guards.found.is_empty() || !guards.hidden() {
            continue;
        }
        if guards.may_fail() {
            cx.left(NAME, title(scan), "rows that have stopped could fail");
            continue;
        }
        return guards.dropped();
    }
    Ok(None)
}

/// What is known of the values of a step where a row does not go on.
#[derive(Clone, Copy, Default, PartialEq)]
struct Known {
    /// It is false.
    off: bool,
    /// It depends on a guard.
    guarded: bool,
    /// It differs from row to row by what a guard gives.
    varies: bool,
}

/// The guards of a step.
struct Guards<'a> {
    body: &'a Graph,
    /// Which rows go on.
    goes: Value,
    known: IdxVec<Value, Known>,
    found: Vec<Value>,
}

impl<'a> Guards<'a> {
    fn of(scan: &'a Scan, goes: Value) -> Guards<'a> {
        let body = &scan.body;
        let known = (0..body.n_values()).map(|_| Known::default()).collect();
        let mut all = Guards { body, goes, known, found: vec![] };
        all.known[goes].off = true;
        let captured = scan.n_params() - scan.captured.len();
        let at = |v: Value| body.params().iter().position(|&p| p == v);
        for node in body.nodes().iter() {
            let guard = matches!(node.op, Op::Elem(ElemOp::Where))
                && all.chooses(node)
                && at(node.ins[1]).is_some_and(|p| p < captured)
                && (at(node.ins[2]).is_some_and(|p| p >= captured) || body.const_value(node.ins[2]).is_some());
            let known = if guard { Known { guarded: true, varies: true, off: false } } else { all.learnt(node) };
            node.outs.iter().for_each(|&v| all.known[v] = known);
            all.found.extend(node.outs.iter().filter(|_| guard));
        }
        all
    }
    /// True for a choice by which rows go on.
    fn chooses(&self, node: &Node) -> bool {
        self.known[node.ins[0]].off && self.body.ty(node.ins[0]).rank() == self.body.ty(node.outs[0]).rank()
    }
    fn learnt(&self, node: &Node) -> Known {
        let of = |v: &Value| self.known[*v];
        let varies = node.ins.iter().any(|v| of(v).varies);
        let same_rank = |v: &&Value| self.body.ty(**v).rank() == self.body.ty(node.outs[0]).rank();
        match &node.op {
            Op::Expand(expand) => {
                let inner = expand.axes.iter().all(|&axis| axis > 0);
                Known { off: of(&node.ins[0]).off && inner, ..of(&node.ins[0]) }
            }
            Op::Elem(ElemOp::Where) if self.chooses(node) => Known { guarded: of(&node.ins[2]).guarded, varies, off: false },
            Op::Elem(ElemOp::And | ElemOp::BitAnd) if node.ins.iter().filter(same_rank).any(|v| of(v).off) => {
                Known { off: true, guarded: false, varies }
            }
            _ => Known { guarded: node.ins.iter().any(|v| of(v).guarded), varies, off: false },
        }
    }
    /// True where nothing that the step gives depends on the guards.
    fn hidden(&self) -> bool {
        self.body.results().iter().all(|&v| !self.known[v].guarded)
    }
    /// True where elements of rows that have stopped could decide whether an evaluation fails.
    fn may_fail(&self) -> bool {
        let live = self.body.needed(self.body.results());
        let nodes = self.body.nodes().enumerate().filter(|(id, _)| live[id.idx()]).map(|(_, node)| node);
        nodes.filter(|node| !self.found.contains(&node.outs[0])).any(|node| {
            let varies: Vec<bool> = node.ins.iter().map(|&v| self.known[v].varies).collect();
            varies.contains(&true) && !by_extents(self.body, node, &varies)
        })
    }
    /// The step without them.
    fn dropped(&self) -> Result<Option<Graph>> {
        copy_with(self.body, |rebuild, _, node| {
            if !self.found.contains(&node.outs[0]) {
                return Ok(false);
            }
            let (now, goes) = (rebuild.image(node.ins[1])?, rebuild.image(self.goes)?);
            let g = &mut rebuild.new;
            let value = if g.ty(now).rank() == self.body.ty(node.outs[0]).rank() {
                now
            } else {
                let extents: Vec<Value> = (0..g.ty(now).rank()).map(|axis| g.dim(now, axis)).collect();
                let ins: Vec<Value> = [now, g.dim(goes, 0)].into_iter().chain(extents).collect();
                g.emit(BroadcastTo {}, &ins)
            };
            rebuild.set(node.outs[0], value);
            Ok(true)
        })
    }
}
