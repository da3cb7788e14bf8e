//! Writes out loops of few steps.
//!
//! ```text
//! before  scan 2 { seq x; state h init=h0;  next h = f(h, x) }       all rows of h
//! after   a = f(h0[0], x[0]); b = f(a, x[1]);   join(h0, a, b)
//! ```
//!
//! The number of steps is a constant from 1 to 4, and several steps together are no more than some hundred operations, those of loops
//! in the step included: loops of few steps that stand in each other would double what stands in them at every level. Nothing stops the
//! loop between, sequences and initial rows are provably long enough, and every row provably has the type of its state. What prints,
//! draws from the outside or asserts stays a loop.

use crate::base::Result;
use crate::ir::op::Index;
use crate::ir::{Graph, Keep, Node, Scan, StateId, Value};
use crate::rewrite::Cx;
use crate::rewrite::loops::facts::integer;
use crate::rewrite::loops::parts::title;
use crate::rewrite::loops::rows::Prover;
use crate::rewrite::rebuild::{Rebuild, copy_with};
use crate::types::Dim;
use rustc_hash::FxHashMap;

const NAME: &str = "scan_unroll";

/// Loops of so many steps are written out.
const FEW: i64 = 4;
/// Loops of several steps become at most so many nodes, those in loops of the step included.
const NODES: usize = 300;

/// The graph without loops of few steps.
///
/// # Errors
/// Internal ones.
pub fn run(cx: &mut Cx, graph: &Graph) -> Result<Option<Graph>> {
    let mut prover = Prover::new(graph);
    copy_with(graph, |rebuild, _, node| {
        let Some(scan) = node.op.as_scan() else { return Ok(false) };
        let Some(n) = integer(graph, node.ins[Scan::N_STEPS]).filter(|n| (1..=FEW).contains(n)) else { return Ok(false) };
        if let Some(why) = stays(graph, &mut prover, node, scan, n as usize) {
            cx.left(NAME, title(scan), why);
            return Ok(false);
        }
        cx.done(NAME, title(scan), format!("{n} steps written out"));
        write_out(rebuild, node, scan, n as usize)
    })
}

/// Why a loop of so many steps stays a loop.
fn stays(g: &Graph, prover: &mut Prover, node: &Node, scan: &Scan, n: usize) -> Option<&'static str> {
    if scan.until && n > 1 {
        return Some("a condition may stop it between");
    }
    if scan.body.whole().effects {
        return Some("a step can be noticed");
    }
    if n > 1 && n.saturating_mul(scan.body.whole().nodes) > NODES {
        return Some("its steps are long");
    }
    (!certain(g, prover, node, scan)).then_some("rows may be missing, or change their shape")
}

/// True where the steps cannot fail for want of rows, or because rows change their shape.
fn certain(g: &Graph, prover: &mut Prover, node: &Node, scan: &Scan) -> bool {
    let long = scan.seqs.ids().all(|id| prover.covers(node.ins[scan.seq_input(id)], node.ins[Scan::N_STEPS], 0));
    long && scan.states.enumerate().all(|(id, state)| {
        let exact = scan.init_input(id).is_none_or(|at| g.ty(node.ins[at]).dims[0] == Dim::known(state.span()));
        let newest = state.writes.iter().max() == Some(&state.span()) && (state.init || state.span() == 0);
        let same = |&v: &Value| *scan.body.ty(v) == state.row;
        let given = scan.init_input(id).is_none_or(|at| g.ty(node.ins[at]).row() == state.row);
        exact && newest && given && scan.write_values(id).iter().all(same)
    })
}

/// One row of a buffer: a row of the initial ones, or what a step wrote.
#[derive(Clone, Copy)]
enum Row {
    Init(usize),
    Written(Value),
}

fn write_out(rebuild: &mut Rebuild, node: &Node, scan: &Scan, n: usize) -> Result<bool> {
    let ins = rebuild.images(&node.ins)?;
    let init = |id: StateId| scan.init_input(id).map(|at| ins[at]);
    let mut buffers: Vec<Vec<Option<Row>>> =
        scan.states.iter().map(|s| (0..n + s.span()).map(|at| (at < s.span()).then_some(Row::Init(at))).collect()).collect();
    for step in 0..n {
        let mut map: FxHashMap<Value, Value> = FxHashMap::default();
        let params = scan.body.params();
        map.insert(params[Scan::STEP], rebuild.new.int(step as i64));
        for (id, seq) in scan.seqs.enumerate() {
            let at = if seq.reverse { -1 - step as i64 } else { step as i64 };
            map.insert(params[scan.seq_param(id)], row_of(&mut rebuild.new, ins[scan.seq_input(id)], at));
        }
        for (id, state) in scan.states.enumerate() {
            for (p, r) in scan.read_params(id).zip(&state.reads) {
                let Some(row) = buffers[id.0 as usize][step + r] else { return Ok(false) };
                map.insert(params[p], value_of(&mut rebuild.new, init(id), row));
            }
        }
        for id in scan.captured.ids() {
            map.insert(params[scan.captured_param(id)], ins[scan.captured_input(id)]);
        }
        let results = rebuild.new.inline(&scan.body, &map, scan.body.results())?;
        for (id, state) in scan.states.enumerate() {
            for (at, w) in scan.write_results(id).zip(&state.writes) {
                buffers[id.0 as usize][step + w] = Some(Row::Written(results[at]));
            }
        }
    }
    for (id, state) in scan.states.enumerate() {
        let buffer = &buffers[id.0 as usize];
        let keep = if let Keep::Last(k) = state.keep { k.min(n) } else { buffer.len() };
        let rows: Vec<Row> = buffer[buffer.len() - keep..].iter().flatten().copied().collect();
        let image = stacked(&mut rebuild.new, init(id), &rows, state.span());
        rebuild.set(node.outs[scan.state_output(id)], image);
    }
    let steps = rebuild.new.int(n as i64);
    rebuild.set(node.outs[scan.steps_output()], steps);
    Ok(true)
}

fn row_of(g: &mut Graph, x: Value, at: i64) -> Value {
    let at = g.int(at);
    g.emit(Index { pattern: "i".into() }, &[x, at])
}

fn value_of(g: &mut Graph, init: Option<Value>, row: Row) -> Value {
    match (row, init) {
        (Row::Init(at), Some(init)) => row_of(g, init, at as i64),
        (Row::Init(at), None) => unreachable!("row {at} of nothing"),
        (Row::Written(v), _) => v,
    }
}

/// Rows one below the other; initial rows that nobody wrote over as a whole.
fn stacked(g: &mut Graph, init: Option<Value>, rows: &[Row], span: usize) -> Value {
    let untouched = rows.len() >= span && rows.iter().take(span).enumerate().all(|(k, r)| matches!(r, Row::Init(at) if *at == k));
    let (mut parts, rest) = match init.filter(|_| untouched && span > 0) {
        Some(init) => (vec![init], &rows[span..]),
        None => (vec![], rows),
    };
    for &row in rest {
        let value = value_of(g, init, row);
        parts.push(g.expand(value, &[0]));
    }
    g.join_rows(&parts)
}
