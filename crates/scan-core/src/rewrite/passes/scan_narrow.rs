//! Narrows the window of a state to what its steps hand to each other.
//!
//! ```text
//! before  scan n { state ct init=flip(x) reads=[0, 1] writes=[0, 1] keep=last(1);   next ct = (0, ct@1 + f(ct@0)) }
//! after   scan n { seq r = x[:-1] reverse; state ct init=flip(x[-1:]) reads=[0] writes=[1] keep=last(1)
//!                  next ct = r + f(ct@0) }
//! ```
//!
//! - A row that no step writes before it is read comes from the initial rows: it becomes a row of a sequence, where the initial
//!   rows provably reach that far, or is zero, where they provably end or are zero before. `x + 0` is then x, which changes the sign
//!   of a zero where x is −0.
//! - A row that no later step reads, and that is not among the rows kept, need not be written.
//! - Who else reads the first of these initial rows takes them from there: all initial rows need not be made then.
//!
//! This is what gradients of loops look like: initial rows are the cotangents of all rows, and mostly zero.

use crate::base::Result;
use crate::ir::op::{BroadcastLike, Index};
use crate::ir::{Graph, Keep, Node, Op, Seq, Value};
use crate::rewrite::Cx;
use crate::rewrite::loops::facts::integer;
use crate::rewrite::loops::parts::title;
use crate::rewrite::loops::rows::Prover;
use crate::rewrite::loops::tails::{Tails, flipped};
use crate::rewrite::loops::{Parts, SeqPart, StatePart};
use crate::rewrite::rebuild::{Rebuild, copy_with};
use crate::scalar::ElemOp;
use crate::types::{Array, Dim};
use rustc_hash::FxHashMap;

const NAME: &str = "scan_narrow";

/// The graph with narrower states.
///
/// # Errors
/// Internal ones.
pub fn run(cx: &mut Cx, graph: &Graph) -> Result<Option<Graph>> {
    let mut prover = Prover::new(graph);
    let mut cut: FxHashMap<(Value, usize), Value> = FxHashMap::default();
    copy_with(graph, |rebuild, _, node| {
        if let Some(&rows) = first_rows(graph, node).and_then(|of| cut.get(&of)) {
            rebuild.set(node.outs[0], rows);
            return Ok(true);
        }
        let Some(scan) = node.op.as_scan().filter(|s| !s.body.whole().effects) else { return Ok(false) };
        let mut parts = Parts::open(scan, &node.ins);
        let changes: Vec<Change> = (0..parts.states.len()).map(|at| narrow(graph, &mut prover, &mut parts, at)).collect();
        if changes.iter().all(|c| c.entering.is_none() && c.dropped == 0) {
            return Ok(false);
        }
        let inits: Vec<Option<Value>> = parts.states.iter().map(|s| s.init).collect();
        parts.fill(|v| rebuild.image(v))?;
        for (at, change) in changes.into_iter().enumerate() {
            let name = parts.states[at].slot.name.clone();
            let name = name.as_deref().unwrap_or("?").to_string();
            if change.dropped > 0 {
                cx.done(NAME, title(scan), format!("`{name}` writes {} rows fewer", change.dropped));
            }
            let (Some((param, row)), Some(init)) = (change.entering, inits[at]) else { continue };
            let what = if row == Enters::Zero { "zero" } else { "a sequence's" };
            cx.done(NAME, title(scan), format!("`{name}`: the row that enters is {what}"));
            let span = parts.states[at].slot.span();
            let rows = enter(graph, rebuild, &mut prover, &mut parts, Entering { at, init, param, row })?;
            cut.insert((init, span), rows);
        }
        parts.put(rebuild, node).map(|_| true)
    })
}

/// What enters the window.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Enters {
    Zero,
    Row,
}

/// What becomes of a state.
struct Change {
    /// The value that stands for the entering row, and what it is.
    entering: Option<(Value, Enters)>,
    /// Rows that are not written any more.
    dropped: usize,
}

/// Takes the entering row and dead writes out of the lists of a state.
fn narrow<'g>(g: &'g Graph, prover: &mut Prover<'g>, parts: &mut Parts, at: usize) -> Change {
    let entering = entering(g, prover, parts, at);
    let state = &mut parts.states[at];
    let span = state.slot.span();
    let mut found = None;
    if let Some(enters) = entering
        && let Some(k) = state.slot.reads.iter().position(|&r| r == span)
    {
        state.slot.reads.remove(k);
        found = Some((state.params.remove(k), enters));
    }
    Change { entering: found, dropped: drop_writes(state) }
}

/// Drops writes of rows that nothing reads; how many.
fn drop_writes(state: &mut StatePart) -> usize {
    let Keep::Last(k) = state.slot.keep else { return 0 };
    let newest = state.slot.writes.iter().copied().max().unwrap_or(0);
    let before = state.slot.writes.len();
    for at in (0..before).rev() {
        let w = state.slot.writes[at];
        if w + k <= newest && state.slot.reads.iter().all(|&r| r >= w) {
            state.slot.writes.remove(at);
            state.results.remove(at);
        }
    }
    before - state.slot.writes.len()
}

/// What a step reads at the far end of the window, where no step can have written it.
fn entering<'g>(g: &'g Graph, prover: &mut Prover<'g>, parts: &Parts, at: usize) -> Option<Enters> {
    let state = &parts.states[at];
    let (slot, init) = (&state.slot, state.init?);
    let span = slot.span();
    let newest = slot.writes.iter().max() == Some(&span);
    if span == 0 || !newest || !slot.reads.contains(&span) || slot.reads.len() < 2 {
        return None;
    }
    let exact = prover.rows(init).form.sub(&prover.scalar(parts.n_steps)) == Dim::known(span);
    if slot.keep == Keep::All && !exact {
        return None;
    }
    if !prover.covers(init, parts.n_steps, span as i64) {
        return None;
    }
    let zero = Tails::new(g, prover).zero_behind(init, span);
    Some(if zero { Enters::Zero } else { Enters::Row })
}

/// A row that enters the window.
struct Entering {
    /// The state.
    at: usize,
    /// Its initial rows, in the old graph.
    init: Value,
    /// What stands for the row in the body.
    param: Value,
    /// What it is.
    row: Enters,
}

/// What a node cuts off: the first so many rows of a value.
fn first_rows(g: &Graph, node: &Node) -> Option<(Value, usize)> {
    let Op::Index(Index { pattern }) = &node.op else { return None };
    let end = match &pattern[..] {
        ":e" => node.ins[1],
        "s:e" if integer(g, node.ins[1]) == Some(0) => node.ins[2],
        _ => return None,
    };
    Some((node.ins[0], usize::try_from(integer(g, end)?).ok()?))
}

/// Puts what enters in the place of the row that was read, and cuts the initial rows, which it returns.
fn enter<'g>(g: &'g Graph, rebuild: &mut Rebuild, prover: &mut Prover<'g>, parts: &mut Parts, what: Entering) -> Result<Value> {
    let Entering { at, init, param, row } = what;
    let slot = &parts.states[at].slot;
    let (span, name) = (slot.span(), slot.name.clone());
    let front = Tails::new(g, prover).first(rebuild, init, span)?;
    parts.states[at].init = Some(front);
    if row == Enters::Zero {
        let like = parts.states[at].params[0];
        let zero = parts.body.constant(Array::full(parts.body.ty(param).dtype, &[], 0.0));
        absorb(parts, param);
        let zeros = if parts.body.ty(param).rank() == 0 { zero } else { parts.body.emit(BroadcastLike {}, &[zero, like]) };
        parts.alias(param, zeros);
        return Ok(front);
    }
    let (x, pattern, bound) = match flipped(g, init) {
        Some(x) => (x, ":e", -(span as i64)),
        None => (init, "s:", span as i64),
    };
    let (x, bound) = (rebuild.image(x)?, rebuild.new.int(bound));
    let rows = rebuild.new.emit(Index { pattern: pattern.into() }, &[x, bound]);
    parts.seqs.push(SeqPart { slot: Seq { reverse: pattern == ":e", name }, rows, param });
    Ok(front)
}

/// Sums with the zero row become what is added to it.
fn absorb(parts: &mut Parts, zero: Value) {
    let sums: Vec<(Value, Value)> = parts
        .body
        .nodes()
        .iter()
        .filter(|n| matches!(n.op, Op::Elem(ElemOp::Add)) && n.ins.contains(&zero))
        .map(|n| (n.outs[0], if n.ins[0] == zero { n.ins[1] } else { n.ins[0] }))
        .filter(|(sum, x)| *x != zero && parts.body.ty(*sum) == parts.body.ty(*x))
        .collect();
    sums.into_iter().for_each(|(sum, x)| parts.alias(sum, x));
}
