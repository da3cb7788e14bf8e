//! Keeps only those rows of a state that something reads.
//!
//! ```text
//! before  %0 = scan n { state h init=h0 reads=[0] writes=[1] keep=all … }
//!         %1 = %0.h[1:];   return %1[-1], %1[-3:]
//! after   %0 = scan n { state h init=h0 reads=[0] writes=[1] keep=last(3) … }
//!         return %0.h[-1], %0.h[-3:]
//! ```
//!
//! Every reader must take constant positions that count from the end, or want nothing but extents; a state that nothing reads
//! after the loop keeps one row. `keep=last(k)` gives `min(k, steps)` rows, as many as the view behind the initial rows has
//! where the steps are fewer than k: so positions out of range give the same error, also where no step runs, and a
//! stopping condition changes nothing. A reader that sees initial rows gets them joined in front of the last rows; where steps
//! write over initial rows, it must want the very last row only.
//!
//! All rows stay where a gradient reads them, where a reader counts from the front, and where more initial rows than the
//! span may be given.

use crate::base::{Id, Result};
use crate::ir::op::{BroadcastTo, DimOf, Flip, Index};
use crate::ir::{Graph, Keep, Node, NodeId, Op, Scan, StateId, Value};
use crate::rewrite::Cx;
use crate::rewrite::loops::facts::integer;
use crate::rewrite::loops::parts::title;
use crate::rewrite::loops::readers::{Reader, Users, View, Want};
use crate::rewrite::loops::rows::Prover;
use crate::rewrite::rebuild::{Rebuild, copy_with};
use crate::types::Dim;
use rustc_hash::FxHashMap;
use std::sync::Arc;

const NAME: &str = "scan_keep_last";

/// The graph with loops that keep fewer rows.
///
/// # Errors
/// Internal ones.
pub fn run(cx: &mut Cx, graph: &Graph) -> Result<Option<Graph>> {
    let plan = Plan::new(cx, graph);
    if plan.states.is_empty() {
        return Ok(None);
    }
    let mut sources: FxHashMap<(NodeId, StateId), Source> = FxHashMap::default();
    copy_with(graph, |rebuild, id, node| {
        if let Some((source, reader)) = plan.readers.get(&id) {
            let at = sources[source].rows(rebuild, reader.view);
            return read(rebuild, node, id, *reader, &sources[source], at).map(|()| true);
        }
        if plan.views.contains(&id) {
            return Ok(true);
        }
        let Some(scan) = node.op.as_scan().filter(|_| plan.states.keys().any(|s| s.0 == id)) else { return Ok(false) };
        let mut shorter = (**scan).clone();
        for state in scan.states.ids() {
            if let Some(&k) = plan.states.get(&(id, state)) {
                shorter.states[state].keep = Keep::Last(k);
            }
        }
        let ins = rebuild.images(&node.ins)?;
        let outs = rebuild.new.apply(Op::Scan(Arc::new(shorter)), &ins)?;
        for state in scan.states.ids() {
            let (old, new) = (node.outs[scan.state_output(state)], outs[scan.state_output(state)]);
            rebuild.set(old, new);
            let span = scan.states[state].span();
            let init = scan.init_input(state).map(|at| ins[at]);
            sources.insert((id, state), Source { last: new, init, span, steps: outs[scan.steps_output()] });
        }
        rebuild.set(node.outs[scan.steps_output()], outs[scan.steps_output()]);
        Ok(true)
    })
}

/// What changes.
#[derive(Default)]
struct Plan {
    /// States with the number of rows that they will keep.
    states: FxHashMap<(NodeId, StateId), usize>,
    /// Their readers.
    readers: FxHashMap<NodeId, ((NodeId, StateId), Reader)>,
    /// Nodes that only cut or flip rows for readers.
    views: Vec<NodeId>,
}

impl Plan {
    fn new(cx: &mut Cx, graph: &Graph) -> Plan {
        let users = Users::new(graph);
        let mut prover = Prover::new(graph);
        let mut plan = Plan::default();
        let live = graph.needed(graph.results());
        for (id, node) in graph.nodes().enumerate().filter(|(id, _)| live[id.idx()]) {
            let Some(scan) = node.op.as_scan() else { continue };
            for (state, slot) in scan.states.enumerate() {
                let name = slot.name.as_deref().unwrap_or("?");
                match rows_wanted(graph, &users, &mut prover, node, scan, state) {
                    Ok(Some((k, readers, views))) => {
                        cx.done(NAME, title(scan), format!("`{name}` keeps {k}"));
                        plan.states.insert((id, state), k);
                        plan.views.extend(views);
                        plan.readers.extend(readers.into_iter().map(|r| (r.node, ((id, state), r))));
                    }
                    Ok(None) => {}
                    Err(why) => cx.left(NAME, title(scan), format!("`{name}` keeps all rows: {why}")),
                }
            }
        }
        plan
    }
}

type Answer = std::result::Result<Option<Wanted>, String>;
type Wanted = (usize, Vec<Reader>, Vec<NodeId>);

/// How many of the last rows are enough, with the readers; `None` where all or fewer are kept already.
fn rows_wanted(g: &Graph, users: &Users, prover: &mut Prover, node: &Node, scan: &Scan, id: StateId) -> Answer {
    let state = &scan.states[id];
    let buffer = node.outs[scan.state_output(id)];
    if state.keep != Keep::All {
        return Ok(None);
    }
    let (readers, views) = users.readers(buffer)?;
    if state.writes.iter().max() != Some(&state.span()) {
        return Err("rows are read that no step writes".into());
    }
    let span = state.span();
    let exact = scan.init_input(id).is_none_or(|at| g.ty(node.ins[at]).dims[0] == Dim::known(span));
    let fits = exact || scan.init_input(id).is_some_and(|at| prover.at_most(node.ins[at], span)) || {
        let rows = prover.rows(buffer);
        scan.init_input(id).is_some_and(|at| prover.rows(node.ins[at]).form == rows.form)
    };
    if !fits {
        return Err("there may be more initial rows than its taps need".into());
    }
    let mut k = 1;
    for reader in &readers {
        let joined = reader.view.skip < span;
        match reader.want {
            _ if reader.view.skip > span || joined && !state.init => return Err("a reader counts from the first row".into()),
            Want::Sum => return Err("`reduce` reads all rows".into()),
            Want::Extent(0) | Want::Shape if joined && !exact => return Err("its length depends on the initial rows".into()),
            Want::Last(rows) => k = k.max(rows),
            Want::Extent(_) | Want::Shape => {}
        }
    }
    let rewritten = state.writes.iter().any(|w| *w < span);
    if k > 1 && rewritten && readers.iter().any(|r| r.view.skip < span) {
        return Err("steps write over initial rows".into());
    }
    if integer(g, node.ins[Scan::N_STEPS]).is_some_and(|n| n <= k as i64) && !readers.is_empty() {
        return Err("no more rows are made".into());
    }
    Ok(Some((k, readers, views)))
}

/// A shortened buffer in the copy.
struct Source {
    last: Value,
    init: Option<Value>,
    span: usize,
    steps: Value,
}

impl Source {
    /// A value with the last rows of a view, in its order.
    fn rows(&self, rebuild: &mut Rebuild, view: View) -> Value {
        let g = &mut rebuild.new;
        let rows = match self.init.filter(|_| view.skip < self.span) {
            None => self.last,
            Some(init) => {
                let zero = g.int(0);
                let skip = g.int(view.skip as i64);
                let span = g.int(self.span as i64);
                let front = if g.ty(init).dims[0] == Dim::known(self.span) { init } else { g.slice_rows(init, zero, span) };
                let front = if view.skip == 0 { front } else { g.emit(Index { pattern: "s:".into() }, &[front, skip]) };
                g.join_rows(&[front, self.last])
            }
        };
        if view.flipped { g.emit(Flip { axis: 0 }, &[rows]) } else { rows }
    }
    /// An extent of the view as it was.
    fn extent(&self, g: &mut Graph, view: View, axis: usize) -> Value {
        if axis > 0 {
            return match g.ty(self.last).dims[axis].value() {
                Some(n) => g.int(n as i64),
                None => g.emit(DimOf { axis }, &[self.last]),
            };
        }
        let more = g.int((self.span - view.skip) as i64);
        if view.skip == self.span { self.steps } else { g.add(self.steps, more) }
    }
}

/// A reader of the shortened buffer.
fn read(rebuild: &mut Rebuild, node: &Node, id: NodeId, reader: Reader, source: &Source, rows: Value) -> Result<()> {
    let new = match reader.want {
        Want::Last(_) | Want::Sum => {
            let mut ins = vec![rows];
            ins.extend(rebuild.images(&node.ins[1..])?);
            let old = rebuild.old;
            rebuild.new.copy(old, id, &node.op.clone(), &ins)?[0]
        }
        Want::Extent(axis) => source.extent(&mut rebuild.new, reader.view, axis),
        Want::Shape => {
            let rank = rebuild.old.ty(node.outs[0]).rank();
            let mut ins = vec![rebuild.image(node.ins[0])?];
            for axis in 0..rank {
                ins.push(source.extent(&mut rebuild.new, reader.view, axis));
            }
            rebuild.new.emit(BroadcastTo {}, &ins)
        }
    };
    rebuild.set(node.outs[0], new);
    Ok(())
}
