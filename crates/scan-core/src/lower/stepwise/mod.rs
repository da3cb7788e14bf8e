//! A function of sequences as one loop whose step takes a row of each and makes a row of each result.
//!
//! ```text
//! function   y = f(x · w);  h = scan { next h = tanh(h + y[t]) };  return exp(h[1:])
//! step       before: w          state h          y = f(x_t · w);  h' = tanh(h + y);  row exp(h')
//! ```
//!
//! What does not depend on rows is computed before. Loops, what is made of rows before them and of their rows after them all become parts of
//! one step. Rows that a step reads later than they came (taps) are states of it. What needs all rows has no step, and is refused.

mod body;
mod kinds;

use crate::base::{Id, Result};
use crate::ir::op::DimOf;
use crate::ir::scan::NonSeq;
use crate::ir::{Def, Graph, Keep, Node, NodeId, Op, Scan, Seq, State, Tag, Value};
use crate::scalar::ElemOp;
use crate::types::{Array, DType, Type};
use body::{Builder, Draft, Limit, refused};
use kinds::{Kind, Kinds};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// A function as a loop over the rows that it is given.
pub struct Stepwise {
    /// The loop. The first states are those that steps read, of which it returns the last rows; the others are its results, row by row.
    pub scan: Arc<Scan>,
    /// What is computed once: parameters are those of the function, where rows before the first step stand for what is given by rows.
    /// Results: the initial rows of the states that have such, captured values, limits, results that are fixed.
    pub before: Graph,
    /// The parameters that are given by rows, and how many rows are there before the first step.
    pub streams: Vec<(usize, usize)>,
    /// Number of states that steps read: they come first.
    pub kept: usize,
    /// Per state that steps read: of so many rows that are computed before the last ones are its initial rows.
    pub init_rows: Vec<usize>,
    /// How many steps there are at most.
    pub limits: Vec<Limited>,
    /// The results.
    pub results: Vec<Made>,
    /// The state of which the row says whether the step was the last one.
    pub stop: Option<usize>,
}

/// A result of a function that goes step by step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Made {
    /// It does not depend on rows: a result of what is computed before.
    Before(usize),
    /// The row of a state.
    Row(usize),
}

/// What ends a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limited {
    /// A parameter says how many steps; where it is not given there is no end.
    Param(usize),
    /// The extent of a parameter along an axis; where it is not given there is no end.
    Extent(usize, usize),
    /// A result of what is computed before says how many.
    Steps(usize),
    /// Such a result has a row for each.
    Rows(usize),
}

impl Stepwise {
    /// Whether a graph goes step by step.
    ///
    /// # Errors
    /// `E0531` where a result needs all rows.
    pub fn check(graph: &Graph, inputs: usize) -> Result<()> {
        by_rows(&Kinds::new(graph, inputs))
    }
    /// Of a graph, of whose parameters the first `inputs` may be given by rows.
    ///
    /// # Errors
    /// `E0531` where a result needs all rows.
    pub fn new(graph: &Graph, inputs: usize) -> Result<Stepwise> {
        let kinds = Kinds::new(graph, inputs);
        by_rows(&kinds)?;
        let mut builder = Builder::new(&kinds)?;
        let results = results(&mut builder)?;
        finished(builder, results)
    }
}

/// Refuses results that need all rows.
fn by_rows(kinds: &Kinds) -> Result<()> {
    let span = |v: Value| kinds.graph.node_of(v).map(|n| n.span).unwrap_or_default();
    let whole = |&v: &Value| match kinds.of(v) {
        Kind::Whole(why) => Some(refused(why)),
        Kind::Rows(rows) if rows.len < 0 => {
            Some(refused(&kinds::Why { span: span(v), text: "the first step does not make the first row of a result".into() }))
        }
        _ => None,
    };
    kinds.graph.results().iter().find_map(whole).map_or(Ok(()), Err)?;
    ends_together(kinds)
}

/// Refuses a loop that stops by its condition beside one that goes on: a session ends for all of them.
fn ends_together(kinds: &Kinds) -> Result<()> {
    let graph = kinds.graph;
    let live = graph.needed(graph.results());
    let stepping = |node: &Node| matches!(node.op, Op::Scan(_)) && !matches!(kinds.of(node.outs[0]), Kind::Fixed | Kind::Whole(_));
    let loops: Vec<NodeId> = graph.nodes().enumerate().filter(|(id, node)| live[id.idx()] && stepping(node)).map(|(id, _)| id).collect();
    let stops = |id: &NodeId| matches!(&graph.nodes()[*id].op, Op::Scan(scan) if scan.until);
    let Some(&first) = loops.iter().find(|id| stops(id)) else { return Ok(()) };
    // The loops that stop by their conditions which say how many steps one makes.
    let ended = |id: NodeId| {
        let (mut open, mut seen, mut found) = (vec![id], FxHashSet::default(), vec![]);
        while let Some(id) = open.pop() {
            if !seen.insert(id) {
                continue;
            }
            let node = &graph.nodes()[id];
            found.extend(Some(id).filter(|id| loops.contains(id) && stops(id)));
            let counting = |node: &Node| match &node.op {
                Op::Scan(scan) => node.ins[..=scan.seqs.len()].to_vec(),
                _ => node.ins.to_vec(),
            };
            open.extend(counting(node).iter().filter_map(|&v| if let Def::Out(id, _) = graph.def(v) { Some(id) } else { None }));
        }
        found.sort_unstable();
        found
    };
    let all = ended(first);
    let Some(other) = loops.iter().find(|&&id| ended(id) != all) else { return Ok(()) };
    let text = "a loop stops by its condition, and another one goes on".into();
    Err(refused(&kinds::Why { span: graph.nodes()[*other].span, text }))
}

/// A result, before states are numbered.
enum Draw {
    Before(Value),
    Row(Value),
}

fn results(b: &mut Builder) -> Result<Vec<Draw>> {
    let graph = b.kinds.graph;
    let mut made = vec![];
    for &v in graph.results() {
        made.push(match b.kinds.of(v) {
            Kind::Fixed => Draw::Before(b.fixed(v)?),
            Kind::Rows(_) => Draw::Row(b.last(v)?),
            Kind::Now | Kind::Steady | Kind::Known(_) | Kind::Count(_) | Kind::Bounded(..) => Draw::Row(b.plain(v)?),
            Kind::Tail | Kind::Whole(_) => {
                let span = graph.node_of(v).map(|n| n.span).unwrap_or_default();
                return Err(refused(&kinds::Why { span, text: "a result has several of the last rows".into() }));
            }
        });
    }
    Ok(made)
}

fn finished(mut b: Builder, draws: Vec<Draw>) -> Result<Stepwise> {
    let or = Op::Elem(ElemOp::Or);
    let until = b.until.split_off(0).into_iter().reduce(|x, y| b.body.emit(or.clone(), &[x, y]));
    let mut rows: Vec<Value> = vec![];
    for v in draws.iter().filter_map(|d| if let Draw::Row(v) = d { Some(*v) } else { None }).chain(until) {
        if !rows.contains(&v) {
            rows.push(v);
        }
    }
    read(&mut b, &rows, until);
    let kept = b.states.len();
    let init_rows = b.states.iter().map(|s| s.init_rows).collect();
    for &row in &rows {
        let ty = b.body.ty(row).clone();
        let draft = Draft { row: ty, reads: vec![], write: Some(row), init: None, init_rows: 0, tag: Tag::Output, name: None };
        b.states.push(draft);
    }
    let place = |v: Value| kept + rows.iter().position(|&r| r == v).unwrap_or(0);
    let mut before: Vec<Value> = b.states.iter().filter_map(|s| s.init).chain(b.captured.iter().map(|c| c.1)).collect();
    let limits = limits(&mut b, &mut before)?;
    let made = |draw: &Draw| match *draw {
        Draw::Before(v) => {
            before.push(v);
            Made::Before(before.len() - 1)
        }
        Draw::Row(v) => Made::Row(place(v)),
    };
    let results = draws.iter().map(made).collect();
    b.before.set_results(before);
    let streams = b.seqs.iter().map(|(p, _)| (*p, b.kinds.streams[p] as usize)).collect();
    let (scan, stop) = (Arc::new(scan(&b, kept, until)?), until.map(place));
    Ok(Stepwise { scan, before: b.before, streams, kept, init_rows, limits, results, stop })
}

fn limits(b: &mut Builder, before: &mut Vec<Value>) -> Result<Vec<Limited>> {
    let mut limits = vec![];
    for limit in std::mem::take(&mut b.limits) {
        let (Limit::Steps(v) | Limit::Rows(v)) = limit;
        let graph = b.kinds.graph;
        let rows_of = |node: &Node| if let Op::DimOf(DimOf { axis: 0 }) = node.op { b.kinds.counter(node.ins[0]) } else { None };
        let v = graph.node_of(v).and_then(rows_of).unwrap_or(v);
        let place = |v: Value| graph.params().iter().position(|&p| p == v);
        let extent = || match graph.node_of(v)? {
            Node { op: Op::DimOf(DimOf { axis }), ins, .. } => Some((place(ins[0])?, *axis)),
            _ => None,
        };
        limits.push(match (limit, place(v), extent()) {
            (Limit::Steps(_), Some(p), _) => Limited::Param(p),
            (Limit::Steps(_), _, Some((p, axis))) => Limited::Extent(p, axis),
            (limit, ..) => {
                before.push(b.fixed(v)?);
                if matches!(limit, Limit::Steps(_)) { Limited::Steps(before.len() - 1) } else { Limited::Rows(before.len() - 1) }
            }
        });
    }
    Ok(limits)
}

/// Leaves the states, reads and captured values that results are made of; the number of the step is one of the states where it is read.
fn read(b: &mut Builder, rows: &[Value], until: Option<Value>) {
    let one = b.body.int(1);
    let next = b.body.add(b.step, one);
    let zero = b.before.constant(Array::vector(&[0i64]));
    b.states.push(Draft {
        row: Type::scalar(DType::I64),
        reads: vec![(1, b.step)],
        write: Some(next),
        init: Some(zero),
        init_rows: 1,
        tag: Tag::Output,
        name: Some("t".into()),
    });
    let mut live = vec![false; b.states.len()];
    loop {
        let written = b.states.iter().zip(&live).filter(|s| *s.1).filter_map(|s| s.0.write);
        let results: Vec<Value> = rows.iter().copied().chain(until).chain(written).collect();
        b.body.set_results(results);
        let uses = b.body.uses();
        let read = |s: &Draft| s.reads.iter().any(|r| uses[r.1.idx()] > 0);
        let now: Vec<bool> = b.states.iter().map(read).collect();
        if now == live {
            b.captured.retain(|c| uses[c.0.idx()] > 0);
            let mut live = live.into_iter();
            b.states.retain(|_| live.next() == Some(true));
            b.states.iter_mut().for_each(|s| s.reads.retain(|r| uses[r.1.idx()] > 0));
            return;
        }
        live = now;
    }
}

/// The loop, its parameters in their order.
fn scan(b: &Builder, kept: usize, until: Option<Value>) -> Result<Scan> {
    let mut body = Graph::new();
    let mut image: FxHashMap<Value, Value> = FxHashMap::default();
    body.param(Type::scalar(DType::I64), None);
    let (mut states, mut reads) = (vec![], vec![]);
    for (k, draft) in b.states.iter().enumerate() {
        let span = draft.reads.iter().map(|r| r.0).max().unwrap_or(0);
        let offsets = draft.reads.iter().map(|r| span - r.0).collect();
        reads.extend(draft.reads.iter().map(|r| r.1));
        let (row, name, tag) = (draft.row.clone(), draft.name.clone(), draft.tag.clone());
        let writes = std::iter::once(span).collect();
        let keep = if k < kept { Keep::Last(span) } else { Keep::All };
        states.push(State { row, init: span > 0, reads: offsets, writes, keep, tag, name });
    }
    for v in b.seqs.iter().map(|s| s.1).chain(reads).chain(b.captured.iter().map(|c| c.0)) {
        image.insert(v, body.param(b.body.ty(v).clone(), b.body.name(v).map(|n| &**n)));
    }
    let writes: Vec<Value> = b.states.iter().filter_map(|s| s.write).chain(until).collect();
    let results = body.inline(&b.body, &image, &writes)?;
    body.set_results(results);
    let seqs = b.seqs.iter().map(|s| Seq { reverse: false, name: b.body.name(s.1).cloned() }).collect();
    let captured = b.captured.iter().map(|c| NonSeq { name: b.body.name(c.0).cloned() }).collect();
    Ok(Scan { name: None, body, seqs, states: states.into_iter().collect(), captured, until: until.is_some(), truncate: None })
}
