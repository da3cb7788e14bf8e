//! Drops what a loop computes for nobody, and inputs that its step does not read.
//!
//! ```text
//! before  scan n { seq x; seq y; state h; state unused; const c = 2.0; const d; const e = d
//!                  next h = h * c + d + e;   next unused = f(x, y) }        of which only h is read
//! after   scan n { state h; const d;   next h = h * 2.0 + d + d }
//! ```
//!
//! - A state goes where nothing reads its rows and no state that stays, nor the stopping condition, depends on them. One whose
//!   step prints, draws from the outside or asserts stays. An error of a computation that nobody asked for goes with it.
//! - A sequence goes where the step does not read it *and* it provably has a row for every step: else a call must find
//!   out that it is too short. Equal sequences, and equal captured values, become one.
//! - A slice that cuts rows off a sequence where no step reads them is left away, where the loop provably has a row for every step:
//!   at the end, or, where the sequence is read in reverse, at the front.
//! - A sequence of the numbers a, a + 1, … is the number of the step, plus a; as many as lie between two numbers are as many as their difference.
//! - Small constants move into the body, where they may be folded.
//! - What is broadcast like the rows of a loop is broadcast to as many as there are steps.
//! - The number of steps that ran is the number asked for, where nothing stops the loop and that cannot be negative.

use crate::base::{Id, Result};
use crate::ir::op::BroadcastTo;
use crate::ir::{Def, Graph, Keep, Node, Op, Scan, StateId, Value};
use crate::ops::index::{Item, Pattern};
use crate::rewrite::Cx;
use crate::rewrite::loops::Parts;
use crate::rewrite::loops::facts::{effect, integer, never_negative, used};
use crate::rewrite::loops::parts::title;
use crate::rewrite::loops::rows::Prover;
use crate::rewrite::rebuild::{Rebuild, copy_with};
use crate::scalar::ElemOp;
use crate::scan::reached::{computed, told_before};
use crate::types::{DType, Dim, Sym};
use std::fmt::Write;

const NAME: &str = "scan_dce";

/// Constants of at most so many elements move into the body.
const SMALL: usize = 16;

/// The graph with smaller loops.
///
/// # Errors
/// Internal ones.
pub fn run(cx: &mut Cx, graph: &Graph) -> Result<Option<Graph>> {
    let (used, computed) = (used(graph), computed(graph));
    let mut prover = Prover::new(graph);
    copy_with(graph, |rebuild, _, node| {
        let Some(scan) = node.op.as_scan() else { return as_many_rows(graph, rebuild, &computed, node) };
        let mut parts = Parts::open(scan, &node.ins);
        let mut what = shrink(graph, &mut prover, scan, node, &used, &mut parts);
        note(&mut what, whole_sequences(graph, &mut prover, &mut parts), "slice");
        note(&mut what, numbers(graph, &mut prover, &mut parts), "sequence of numbers");
        let counted =
            used[node.outs[scan.steps_output()].idx()] && told_before(node, scan, &computed) && never_negative(graph, parts.n_steps);
        note(&mut what, usize::from(counted), "number of steps");
        if what.is_empty() {
            return Ok(false);
        }
        cx.done(NAME, title(scan), what);
        let range = range(graph, &parts);
        parts.fill(|v| rebuild.image(v))?;
        if let Some((start, stop)) = range {
            parts.n_steps = difference(rebuild, start, stop)?;
        }
        let n_steps = parts.n_steps;
        parts.put(rebuild, node)?;
        if counted {
            rebuild.set(node.outs[scan.steps_output()], n_steps);
        }
        Ok(true)
    })
}

/// A value broadcast like the rows of a loop, without the loop: to as many as there are steps.
fn as_many_rows(graph: &Graph, rebuild: &mut Rebuild, computed: &[bool], node: &Node) -> Result<bool> {
    let Op::BroadcastLike(_) = node.op else { return Ok(false) };
    let Def::Out(at, k) = graph.def(node.ins[1]) else { return Ok(false) };
    let made = &graph.nodes()[at];
    let Some(scan) = made.op.as_scan().filter(|s| k < s.states.len() && told_before(made, s, computed)) else { return Ok(false) };
    let (state, n_steps) = (&scan.states[StateId::new(k)], made.ins[Scan::N_STEPS]);
    if state.init || state.writes[..] != [0] || state.keep != Keep::All || !never_negative(graph, n_steps) {
        return Ok(false);
    }
    let extent = |d: &Dim| match d.value() {
        Some(n) => Some((None, n)),
        None => made.ins.iter().find_map(|&v| Some((Some(v), graph.ty(v).dims.iter().position(|e| e == d)?))),
    };
    let Some(extents) = graph.ty(node.ins[1]).dims[1..].iter().map(extent).collect::<Option<Vec<_>>>() else { return Ok(false) };
    let since = Sym::fresh();
    let mut ins = vec![rebuild.image(node.ins[0])?, rebuild.image(n_steps)?];
    for (like, n) in extents {
        ins.push(match like {
            Some(v) => {
                let v = rebuild.image(v)?;
                rebuild.new.dim(v, n)
            }
            None => rebuild.new.int(n as i64),
        });
    }
    let all = rebuild.new.emit(BroadcastTo {}, &ins);
    rebuild.new.learn(all, rebuild.old, node.outs[0], since);
    rebuild.set(node.outs[0], all);
    Ok(true)
}

fn note(what: &mut String, n: usize, of: &str) {
    if n > 0 {
        let comma = if what.is_empty() { "" } else { ", " };
        let _ = write!(what, "{comma}{n} {of}{}", if n > 1 { "s" } else { "" });
    }
}

/// Lets the loop read sequences as they were before rows were cut off that no step sees; how many.
fn whole_sequences(g: &Graph, prover: &mut Prover, parts: &mut Parts) -> usize {
    let n_steps = parts.n_steps;
    let mut count = 0;
    for seq in &mut parts.seqs {
        while let Some(x) = uncut(g, prover, seq.rows, seq.slot.reverse).filter(|_| prover.covers(seq.rows, n_steps, 0)) {
            seq.rows = x;
            count += 1;
        }
    }
    count
}

/// Lets the step compute the rows of sequences that count on by a constant; how many.
fn numbers(g: &Graph, prover: &mut Prover, parts: &mut Parts) -> usize {
    let n_steps = parts.n_steps;
    let mut seqs = std::mem::take(&mut parts.seqs);
    let before = seqs.len();
    seqs.retain(|seq| {
        let Some((start, step)) = counted(g, seq.rows).filter(|_| !seq.slot.reverse && prover.covers(seq.rows, n_steps, 0)) else {
            return true;
        };
        match integer(g, start) {
            Some(start) => parts.alias_number(seq.param, start, step),
            None => parts.alias_number_from(seq.param, start, step),
        }
        false
    });
    parts.seqs = seqs;
    before - parts.seqs.len()
}

/// Where numbers begin that count on by a constant, and that.
fn counted(g: &Graph, v: Value) -> Option<(Value, i64)> {
    let node = g.node_of(v).filter(|n| matches!(n.op, Op::Arange(_)) && g.ty(v).dtype == DType::I64)?;
    Some((node.ins[0], integer(g, node.ins[2])?)).filter(|(start, _)| g.ty(*start).dtype == DType::I64)
}

/// Between which numbers those lie of which a loop that reads none of them takes as many steps.
fn range(g: &Graph, parts: &Parts) -> Option<(Value, Value)> {
    let count = g.node_of(parts.n_steps).filter(|n| matches!(n.op, Op::DimOf(_)))?;
    let (start, step) = counted(g, count.ins[0])?;
    let stop = g.node_of(count.ins[0])?.ins[1];
    // From a known number on the count is the end but for that number, which is told by the range itself.
    let apart = step == 1 && g.ty(stop).dtype == DType::I64 && integer(g, start).is_none();
    (apart && parts.seqs.iter().all(|seq| seq.rows != count.ins[0])).then_some((start, stop))
}

/// How many integers there are from one to another. A difference that is too large is negative, which no loop takes for a number of steps.
fn difference(rebuild: &mut Rebuild, start: Value, stop: Value) -> Result<Value> {
    let (start, stop) = (rebuild.image(start)?, rebuild.image(stop)?);
    let (some, n, none) = (rebuild.new.emit(Op::Elem(ElemOp::Lt), &[start, stop]), rebuild.new.sub(stop, start), rebuild.new.int(0));
    Ok(rebuild.new.emit(Op::Elem(ElemOp::Where), &[some, n, none]))
}

/// What a slice cuts rows off, at the end that a loop does not begin with.
fn uncut(g: &Graph, prover: &mut Prover, v: Value, reverse: bool) -> Option<Value> {
    let node = g.node_of(v)?;
    let Op::Index(op) = &node.op else { return None };
    let pattern = Pattern::parse(&op.pattern).ok()?;
    let [Item::Slice { start, end, step: 1 }] = pattern.items[..] else { return None };
    let from_front = !start || integer(g, node.ins[1]) == Some(0);
    let to_end = !end || prover.scalar(node.ins[1 + usize::from(start)]) == prover.rows(node.ins[0]).form;
    (if reverse { to_end } else { from_front }).then_some(node.ins[0])
}

/// Drops what can go; says what went.
fn shrink(graph: &Graph, prover: &mut Prover, scan: &Scan, node: &Node, used: &[bool], parts: &mut Parts) -> String {
    let mut what = String::new();
    let mut note = |n: usize, of: &str| note(&mut what, n, of);
    let asked: Vec<bool> = scan.states.ids().map(|id| used[node.outs[scan.state_output(id)].idx()]).collect();
    note(drop_states(parts, &asked), "state");
    note(move_constants(graph, parts), "constant");
    note(merge_equal(parts), "equal input");
    let live = parts.live();
    let before = parts.captured.len();
    parts.captured.retain(|c| live[c.param.idx()]);
    note(before - parts.captured.len(), "captured value");
    let before = parts.seqs.len();
    let n_steps = parts.n_steps;
    parts.seqs.retain(|s| live[s.param.idx()] || !prover.covers(s.rows, n_steps, 0));
    note(before - parts.seqs.len(), "sequence");
    what
}

/// Drops states that nobody needs; how many.
fn drop_states(parts: &mut Parts, asked: &[bool]) -> usize {
    let mut stays: Vec<bool> = parts.states.iter().zip(asked).map(|(s, asked)| *asked || noticed(parts, &s.results)).collect();
    loop {
        let kept = parts.states.iter().zip(&stays).filter(|(_, stays)| **stays).flat_map(|(s, _)| s.results.iter().copied());
        let live = parts.needed(kept.chain(parts.until));
        let more: Vec<bool> = parts.states.iter().zip(&stays).map(|(s, stays)| *stays || s.params.iter().any(|p| live[p.idx()])).collect();
        if more == stays {
            break;
        }
        stays = more;
    }
    let mut stays = stays.into_iter();
    let before = parts.states.len();
    parts.states.retain(|_| stays.next().unwrap_or(true));
    before - parts.states.len()
}

/// True where computing these values of the body can be noticed.
fn noticed(parts: &Parts, values: &[Value]) -> bool {
    let live = parts.needed(values.iter().copied());
    parts.body.nodes().iter().any(|n| effect(n) && n.outs.iter().any(|v| live[v.idx()]))
}

/// Moves small constants inside; how many.
fn move_constants(graph: &Graph, parts: &mut Parts) -> usize {
    let small: Vec<_> =
        parts.captured.iter().filter_map(|c| Some((c.param, graph.const_value(c.value).filter(|a| a.len() <= SMALL)?.clone()))).collect();
    parts.captured.retain(|c| !small.iter().any(|(p, _)| *p == c.param));
    let n = small.len();
    for (param, value) in small {
        parts.alias_constant(param, value);
    }
    n
}

/// Makes equal sequences and equal captured values one; how many fewer they are.
fn merge_equal(parts: &mut Parts) -> usize {
    let mut same: Vec<(Value, Value)> = vec![];
    let seqs = std::mem::take(&mut parts.seqs);
    for seq in seqs {
        match parts.seqs.iter().find(|s| s.rows == seq.rows && s.slot.reverse == seq.slot.reverse) {
            Some(first) => same.push((seq.param, first.param)),
            None => parts.seqs.push(seq),
        }
    }
    let captured = std::mem::take(&mut parts.captured);
    for value in captured {
        match parts.captured.iter().find(|c| c.value == value.value) {
            Some(first) => same.push((value.param, first.param)),
            None => parts.captured.push(value),
        }
    }
    same.iter().for_each(|&(old, new)| parts.alias(old, new));
    same.len()
}
