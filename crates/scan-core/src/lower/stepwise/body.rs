//! One step of a whole function, written down.

use super::kinds::{Kind, Kinds, Rows, Why};
use crate::base::{Diagnostic, Id, Kind as Fault, Result};
use crate::ir::op::*;
use crate::ir::{Graph, Node, Scan, Tag, Value};
use crate::scalar::ElemOp;
use crate::types::{DType, Type};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A state of the loop that is made.
pub(super) struct Draft {
    /// Type of a row.
    pub row: Type,
    /// How many steps before, and what stands for that row in the step.
    pub reads: Vec<(usize, Value)>,
    /// The row that the step writes.
    pub write: Option<Value>,
    /// Its initial rows, the last ones of this value that is computed before.
    pub init: Option<Value>,
    /// How many rows that has.
    pub init_rows: usize,
    pub tag: Tag,
    pub name: Option<Arc<str>>,
}

/// What ends a session after some steps.
pub(super) enum Limit {
    /// So many steps: an integer.
    Steps(Value),
    /// As many steps as an array has rows.
    Rows(Value),
}

/// A step on its way.
pub(super) struct Builder<'a> {
    pub kinds: &'a Kinds<'a>,
    /// What is computed once, of the parameters of the function; those that are given by rows are the rows before the first step.
    pub before: Graph,
    /// Images there.
    fixed: FxHashMap<Value, Value>,
    /// The step, with parameters in any order.
    pub body: Graph,
    /// The number of the step.
    pub step: Value,
    /// What stands for the row of a parameter.
    pub seqs: Vec<(usize, Value)>,
    pub states: Vec<Draft>,
    /// What stands for a value that is computed before.
    pub captured: Vec<(Value, Value)>,
    pub until: Vec<Value>,
    pub limits: Vec<Limit>,
    /// Rows without their axis, and with it.
    rows: FxHashMap<Value, [Option<Value>; 2]>,
    /// Everything else.
    plain: FxHashMap<Value, Value>,
    /// States that hold rows of the steps before.
    delays: FxHashMap<Value, usize>,
}

/// What has no image: a fault of the builder.
fn lost(what: &str) -> Box<Diagnostic> {
    Diagnostic::internal(format!("a step without {what}"))
}

/// The error of a value that needs all rows.
pub(super) fn refused(why: &Why) -> Box<Diagnostic> {
    let e = Diagnostic::new(Fault::Unsupported, "E0531", format!("this function cannot go step by step: {}", why.text));
    e.label(why.span, "").help("a session needs results of which each step makes a row, or the last value: leave the others out")
}

impl<'a> Builder<'a> {
    /// All nodes that a step, or what is computed before, is made of.
    ///
    /// # Errors
    /// What type inference reports.
    pub fn new(kinds: &'a Kinds<'a>) -> Result<Builder<'a>> {
        let graph = kinds.graph;
        let (mut before, mut body) = (Graph::new(), Graph::new());
        let step = body.param(Type::scalar(DType::I64), None);
        let params = graph.params().iter();
        let fixed = params.map(|&p| (p, before.param(graph.ty(p).clone(), graph.name(p).map(|n| &**n)))).collect();
        let mut b = Builder {
            kinds,
            before,
            fixed,
            body,
            step,
            seqs: vec![],
            states: vec![],
            captured: vec![],
            until: vec![],
            limits: vec![],
            rows: FxHashMap::default(),
            plain: FxHashMap::default(),
            delays: FxHashMap::default(),
        };
        b.streams();
        let live = graph.needed(graph.results());
        for (_, node) in graph.nodes().enumerate().filter(|(id, _)| live[id.idx()]) {
            b.body.set_span(node.span);
            b.before.set_span(node.span);
            b.node(node)?;
        }
        Ok(b)
    }

    fn streams(&mut self) {
        let graph = self.kinds.graph;
        let mut params: Vec<usize> = self.kinds.streams.keys().copied().collect();
        params.sort_unstable();
        for p in params {
            let v = graph.params()[p];
            let row = self.body.param(graph.ty(v).row(), graph.name(v).map(|n| &**n));
            self.rows.insert(v, [Some(row), None]);
            self.seqs.push((p, row));
        }
    }

    fn node(&mut self, node: &Node) -> Result<()> {
        if let Some(chosen) = self.kinds.chosen(node) {
            if let Some(&image) = self.fixed.get(&chosen) {
                self.fixed.insert(node.outs[0], image);
            }
            if let Some(&image) = self.plain.get(&chosen) {
                self.plain.insert(node.outs[0], image);
            }
            return Ok(());
        }
        match self.kinds.of(node.outs[0]) {
            Kind::Fixed => self.fixed_node(node),
            _ if matches!(node.op, Op::Scan(_)) => self.looped(node),
            Kind::Rows(rows) => self.rows_node(node, rows),
            Kind::Tail => {
                let last = node.ins[node.ins.len() - 1];
                let image = *self.plain.get(&last).ok_or_else(|| lost("a last row"))?;
                self.plain.insert(node.outs[0], image);
                Ok(())
            }
            Kind::Now | Kind::Steady => self.plain_node(node),
            Kind::Known(_) | Kind::Count(_) | Kind::Bounded(..) | Kind::Whole(_) => Ok(()),
        }
    }

    fn fixed_node(&mut self, node: &Node) -> Result<()> {
        let ins = node.ins.iter().map(|&v| self.fixed(v)).collect::<Result<Vec<_>>>()?;
        let outs = self.before.apply(node.op.clone(), &ins)?;
        self.fixed.extend(node.outs.iter().copied().zip(outs));
        Ok(())
    }
    /// A fixed value among those computed before.
    pub fn fixed(&self, v: Value) -> Result<Value> {
        self.fixed.get(&v).copied().ok_or_else(|| lost("a fixed value"))
    }

    /// What stands in the step for a value that is no row.
    pub fn plain(&mut self, v: Value) -> Result<Value> {
        if let Some(&image) = self.plain.get(&v) {
            return Ok(image);
        }
        let graph = self.kinds.graph;
        let image = match self.kinds.of(v) {
            Kind::Fixed => match graph.const_value(v) {
                Some(a) => self.body.constant(a.clone()),
                None => {
                    let from = self.fixed(v)?;
                    let image = self.body.param(graph.ty(v).clone(), graph.name(v).map(|n| &**n));
                    self.captured.push((image, from));
                    image
                }
            },
            Kind::Known(known) => self.body.constant(crate::types::Array::scalar(*known)),
            Kind::Count(c) => self.count(c + 1),
            Kind::Bounded(c, by) => {
                let mut least = self.count(c + 1);
                for &v in by {
                    let v = self.plain(v)?;
                    least = self.body.apply(Op::Elem(ElemOp::Minimum), &[least, v])?[0];
                }
                least
            }
            _ => return Err(lost("a value")),
        };
        self.plain.insert(v, image);
        Ok(image)
    }
    /// The number of the step, and so many more.
    fn count(&mut self, more: i64) -> Value {
        let more = self.body.int(more);
        self.body.add(self.step, more)
    }

    fn plain_node(&mut self, node: &Node) -> Result<()> {
        if let (Op::Index(index), Kind::Rows(_) | Kind::Tail) = (&node.op, self.kinds.of(node.ins[0])) {
            let row = self.last(node.ins[0])?;
            let rest = index.pattern.split_once(',').map(|(_, rest)| rest.to_string());
            let image = match rest {
                None => row,
                Some(pattern) => self.indexed(pattern, row, &node.ins[2..])?,
            };
            self.plain.insert(node.outs[0], image);
            return Ok(());
        }
        let mut ins = vec![];
        for &v in &node.ins {
            // An extent of a row, or of what ends with one.
            let by_rows = matches!(self.kinds.of(v), Kind::Rows(_) | Kind::Tail);
            ins.push(if by_rows { self.shaped(v)? } else { self.plain(v)? });
        }
        let outs = self.body.apply(node.op.clone(), &ins)?;
        self.plain.extend(node.outs.iter().copied().zip(outs));
        Ok(())
    }
    fn indexed(&mut self, pattern: String, x: Value, at: &[Value]) -> Result<Value> {
        let mut ins = vec![x];
        for &v in at {
            ins.push(self.plain(v)?);
        }
        Ok(self.body.apply(Index { pattern }, &ins)?[0])
    }
    /// The last row of an array.
    pub fn last(&mut self, v: Value) -> Result<Value> {
        match self.kinds.of(v) {
            Kind::Rows(rows) => self.row(v, rows.at - rows.len),
            _ => self.plain.get(&v).copied().ok_or_else(|| lost("a last row")),
        }
    }
    /// Something with the extents of an array but for the first.
    fn shaped(&mut self, v: Value) -> Result<Value> {
        match self.kinds.of(v) {
            Kind::Rows(_) => self.lead(v, 0),
            _ => self.last(v).map(|row| self.body.expand(row, &[0])),
        }
    }

    /// The row that the step so many before made of a value.
    pub fn row(&mut self, v: Value, before: i64) -> Result<Value> {
        let found = self.rows.get(&v).copied().ok_or_else(|| lost("a row"))?;
        let row = match found {
            [Some(row), _] => row,
            [None, Some(lead)] => self.body.squeeze(lead, &[0]),
            _ => return Err(lost("a row")),
        };
        self.rows.insert(v, [Some(row), found[1]]);
        match usize::try_from(before) {
            Ok(0) => Ok(row),
            Ok(before) => self.delayed(v, row, before),
            Err(_) => Err(lost("a row that is there")),
        }
    }
    /// The same with its axis.
    fn lead(&mut self, v: Value, before: i64) -> Result<Value> {
        if let (0, Some(&[_, Some(lead)])) = (before, self.rows.get(&v)) {
            return Ok(lead);
        }
        let row = self.row(v, before)?;
        let lead = self.body.expand(row, &[0]);
        if before == 0 {
            self.rows.insert(v, [Some(row), Some(lead)]);
        }
        Ok(lead)
    }
    /// What rows that are cut off in front, or at the end, are cut from: each step makes the same row of both.
    fn root(&self, v: Value) -> Value {
        let cut = |node: &&Node| matches!(&node.op, Op::Index(op) if !op.pattern.contains(',') && op.pattern != ":");
        self.kinds.graph.node_of(v).filter(cut).map_or(v, |node| self.root(node.ins[0]))
    }
    fn delayed(&mut self, v: Value, row: Value, before: usize) -> Result<Value> {
        let v = self.root(v);
        let state = match self.delays.get(&v) {
            Some(&state) => state,
            None => {
                let init = Some(self.first_rows(v)?);
                let init_rows = if let Kind::Rows(rows) = self.kinds.of(v) { rows.at as usize } else { 0 };
                let (ty, name) = (self.body.ty(row).clone(), self.kinds.graph.name(v).cloned());
                self.states.push(Draft { row: ty, reads: vec![], write: Some(row), init, init_rows, tag: Tag::Output, name });
                self.delays.insert(v, self.states.len() - 1);
                self.states.len() - 1
            }
        };
        if let Some(&(_, found)) = self.states[state].reads.iter().find(|r| r.0 == before) {
            return Ok(found);
        }
        let read = self.body.param(self.states[state].row.clone(), None);
        self.states[state].reads.push((before, read));
        Ok(read)
    }

    fn rows_node(&mut self, node: &Node, rows: &Rows) -> Result<()> {
        let out = node.outs[0];
        let (mut row, mut lead) = (None, None);
        match &node.op {
            Op::Index(index) if self.kinds.uses.rowwise(self.kinds.graph, node).is_none() => {
                let (first, rest) = index.pattern.split_once(',').map_or((&*index.pattern, None), |(first, rest)| (first, Some(rest)));
                let own = usize::from(first.starts_with('s')) + usize::from(first.contains('e'));
                let x = self.lead(node.ins[0], 0)?;
                match rest {
                    None => [row, lead] = self.rows[&node.ins[0]],
                    Some(rest) => lead = Some(self.indexed(format!(":,{rest}"), x, &node.ins[1 + own..])?),
                }
            }
            Op::Arange(_) => row = Some(self.count(rows.at)),
            Op::BroadcastTo(_) | Op::Reshape(_) | Op::BroadcastLike(_) | Op::Squeeze(_)
                if self.kinds.uses.rowwise(self.kinds.graph, node).is_none() =>
            {
                lead = Some(self.repeated(node)?);
            }
            _ => [row, lead] = self.rowwise(node, rows)?,
        }
        self.rows.insert(out, [row, lead]);
        Ok(())
    }
    /// An op that takes one row as it takes all.
    fn repeated(&mut self, node: &Node) -> Result<Value> {
        let mut ins = vec![];
        for &v in &node.ins {
            ins.push(match self.kinds.of(v) {
                Kind::Rows(_) => self.lead(v, 0)?,
                Kind::Count(_) => self.body.int(1),
                _ => self.plain(v)?,
            });
        }
        Ok(self.body.apply(node.op.clone(), &ins)?[0])
    }

    /// A row of a result that has a row for each row of some inputs.
    fn rowwise(&mut self, node: &Node, rows: &Rows) -> Result<[Option<Value>; 2]> {
        let graph = self.kinds.graph;
        let found = self.kinds.uses.rowwise(graph, node).ok_or_else(|| lost("an op by rows"))?;
        let plain_rows = matches!(found.op, Op::Elem(_) | Op::Cast(_) | Op::MatMul(_) | Op::StopGradient(_) | Op::GradClip(_));
        let rank = graph.ty(node.outs[0]).rank();
        let mut ins = vec![];
        for (&v, &cut) in found.ins.iter().zip(&found.cut) {
            let before = if let Kind::Rows(own) = self.kinds.of(v) { own.at - rows.at } else { 0 };
            ins.push(match (cut, plain_rows) {
                (true, true) => self.row(v, before)?,
                (true, false) => self.lead(v, before)?,
                (false, true) if graph.ty(v).rank() == rank && (rank > 2 || !matches!(found.op, Op::MatMul(_))) => {
                    let x = self.plain(v)?;
                    self.body.squeeze(x, &[0])
                }
                (false, _) => self.plain(v)?,
            });
        }
        let made = self.body.apply(found.op, &ins)?[0];
        Ok(if plain_rows { [Some(made), None] } else { [None, Some(made)] })
    }
}

/// Loops.
impl Builder<'_> {
    /// A step of a loop in the step of the function.
    fn looped(&mut self, node: &Node) -> Result<()> {
        let Op::Scan(scan) = &node.op else { return Ok(()) };
        if matches!(self.kinds.of(node.outs[0]), Kind::Whole(_)) {
            return Ok(());
        }
        let params = scan.body.params();
        let mut given: FxHashMap<Value, Value> = FxHashMap::default();
        given.insert(params[Scan::STEP], self.step);
        for id in scan.seqs.ids() {
            let row = self.seq_row(node.ins[scan.seq_input(id)], scan.seqs[id].reverse)?;
            given.insert(params[scan.seq_param(id)], row);
        }
        for id in scan.captured.ids() {
            let image = self.plain(node.ins[scan.captured_input(id)])?;
            given.insert(params[scan.captured_param(id)], image);
        }
        let first = self.states.len();
        for (id, state) in scan.states.enumerate() {
            let init = match scan.init_input(id) {
                Some(at) => {
                    let rows = self.fixed(node.ins[at])?;
                    Some(self.front(rows, state.span() as i64)?)
                }
                None => None,
            };
            let mut reads = vec![];
            for (&p, &offset) in scan.read_values(id).iter().zip(&state.reads) {
                let read = self.body.param(scan.body.ty(p).clone(), scan.body.name(p).map(|n| &**n));
                given.insert(p, read);
                reads.push((state.span() - offset, read));
            }
            let name = state.name.clone();
            let (row, init_rows, tag) = (state.row.clone(), state.span(), state.tag.clone());
            self.states.push(Draft { row, reads, write: None, init, init_rows, tag, name });
        }
        let results = self.body.inline(&scan.body, &given, scan.body.results())?;
        for id in scan.states.ids() {
            let (out, made) = (node.outs[scan.state_output(id)], results[scan.write_results(id).start]);
            self.states[first + id.idx()].write = Some(made);
            match self.kinds.of(out) {
                Kind::Tail => _ = self.plain.insert(out, made),
                _ => _ = self.rows.insert(out, [Some(made), None]),
            }
        }
        self.until.extend(scan.until_result().map(|at| results[at]));
        let n = node.ins[Scan::N_STEPS];
        match self.kinds.of(n) {
            Kind::Fixed => self.limits.push(Limit::Steps(n)),
            Kind::Bounded(_, by) => self.limits.extend(by.iter().map(|&v| Limit::Steps(v))),
            _ => {}
        }
        Ok(())
    }

    /// What a step of a loop reads of a sequence.
    fn seq_row(&mut self, v: Value, reverse: bool) -> Result<Value> {
        if let Kind::Rows(rows) = self.kinds.of(v) {
            return self.row(v, rows.at);
        }
        if let Some(stop) = self.kinds.counter(v).filter(|_| !reverse) {
            self.limits.push(Limit::Steps(stop));
            return Ok(self.step);
        }
        self.limits.push(Limit::Rows(v));
        let all = self.plain(v)?;
        let mut at = self.step;
        if reverse {
            let (n, one) = (self.body.dim(all, 0), self.body.int(1));
            let last = self.body.sub(n, one);
            at = self.body.sub(last, at);
        }
        Ok(self.body.row(all, at))
    }
}

/// Rows that are there before the first step.
impl Builder<'_> {
    /// Those of a value, computed before.
    fn first_rows(&mut self, v: Value) -> Result<Value> {
        let graph = self.kinds.graph;
        let Kind::Rows(rows) = self.kinds.of(v) else { return Err(lost("first rows")) };
        let Some(node) = graph.node_of(v) else { return self.fixed(v) };
        let rowwise = self.kinds.uses.rowwise(graph, node);
        match (&node.op, rowwise) {
            (Op::Scan(scan), _) => {
                let at = node.outs.iter().position(|&out| out == v).and_then(|k| scan.init_input(crate::ir::StateId(k as u32)));
                let init = self.fixed(node.ins[at.ok_or_else(|| lost("initial rows"))?])?;
                self.front(init, rows.at)
            }
            (Op::Index(index), None) if !index.pattern.contains(',') => {
                let from = if index.pattern.starts_with('s') { graph.const_value(node.ins[1]).and_then(|a| a.item_i64()) } else { None };
                let x = self.first_rows(node.ins[0])?;
                let (lo, hi) = (self.before.int(from.unwrap_or(0)), self.before.int(rows.at + from.unwrap_or(0)));
                Ok(self.before.slice_rows(x, lo, hi))
            }
            (_, Some(found)) => {
                let mut ins = vec![];
                for (&v, &cut) in found.ins.iter().zip(&found.cut) {
                    let first = if cut { self.first_rows(v)? } else { self.fixed(v)? };
                    ins.push(if cut { self.front(first, rows.at)? } else { first });
                }
                Ok(self.before.apply(found.op, &ins)?[0])
            }
            _ => {
                let text = format!("rows of `{}` are read that were made before the first step", node.op.name());
                Err(refused(&Why { span: node.span, text }))
            }
        }
    }
    fn front(&mut self, x: Value, rows: i64) -> Result<Value> {
        if self.before.ty(x).dims[0].value() == usize::try_from(rows).ok() {
            return Ok(x);
        }
        let (lo, hi) = (self.before.int(0), self.before.int(rows));
        Ok(self.before.slice_rows(x, lo, hi))
    }
}
