//! The gradient of a loop is a loop. With R the reads and W the writes of a state, its cotangent buffer is a state that reads
//! and writes R ∪ W while the window moves backwards: the old value at W is consumed by the step and zeroed, the step's
//! cotangents are added at R. What the step saw is read again from the rows that the loop returned, so the step is recomputed;
//! where the gradient uses what the step wrote, that is read again, too, and so is what the step decided (`decided.rs`).
//!
//! ```text
//! before  scan n { seq x; state h reads R writes W; const c;  next h = f(x, h, c) }        with ct(h), a cotangent of every row
//! after   scan s { seq x', h' (what step i saw, i = s-1 … 0); const c, s
//!                  state ct  reads, writes R ∪ W flipped, init = flip(ct(h))
//!                  next ct = (old, zero at W) + df/dh · ct[W]       → ct(init) = first rows of flip(ct)
//!                  next dx = df/dx · ct[W]                           → ct(x) = flip(dx), zeros where no step was
//!                  next dc = dc + df/dc · ct[W]                      → ct(c) = last dc }
//! ```
//!
//! Where no step has a cotangent for another, the order is nobody's business: the steps then go forwards, beside those of the loop, and what
//! is added up over steps is added up in their order.
//!
//! A state whose rows change after they were read gets a tape: the forward loop is run with one more output that records
//! what each step saw. Decisions get one, too. States that the step never reads have cotangents that are only read: sequences.

use super::decided::decided;
use super::given::{init_cotangent, last_row, seq_cotangent};
use super::replay::silenced;
use super::stored::Stored;
use super::tape::Forward;
use crate::base::{Diagnostic, Id, IdxVec, Result};
use crate::grad::{self, Seeds};
use crate::ir::op::*;
use crate::ir::{AsWritten, Graph, Keep, NonSeq, NonSeqId, Offsets, Scan, Seq, SeqId, State, StateId, Tag, Value};
use crate::types::{DType, Type};
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;
use std::sync::Arc;

/// Adds the backward loop; the cotangents of the loop's inputs.
///
/// # Errors
/// What the gradient of the body reports.
pub fn vjp(scan: &Scan, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
    let step = StepVjp::new(scan, site, cts, g.as_written())?;
    let mut back = Backward::new(scan, g, site, &step, cts);
    back.cotangents(cts)?;
    back.forward_rows()?;
    back.run()
}

/// The body of the backward loop before it knows where its inputs come from: cotangents of the step's parameters.
pub(super) struct StepVjp<'a> {
    /// The step as it runs once more.
    pub(super) quiet: Cow<'a, Graph>,
    pub(super) graph: Graph,
    /// Image of each parameter of the forward body.
    pub(super) params: Vec<Value>,
    /// Cotangent of each written row, per state (only states that carry cotangents).
    written: FxHashMap<(StateId, usize), Value>,
    /// Cotangent of each parameter of the forward body.
    pub(super) given: Vec<Option<Value>>,
    /// What the step computes and the loop returns.
    pub(super) stored: Stored,
    /// From values of the graph to those of the quiet step that they are.
    pub(super) origin: FxHashMap<Value, Value>,
    /// What the step decided, where the loop returns it for the gradient.
    pub(super) decided: Vec<Value>,
}

impl<'a> StepVjp<'a> {
    fn new(scan: &'a Scan, site: &Site, cts: &[Option<Value>], as_written: AsWritten) -> Result<StepVjp<'a>> {
        let mut graph = Graph::new();
        graph.set_as_written(as_written);
        let quiet = silenced(&scan.body)?;
        let body = &*quiet;
        let params: Vec<Value> = body.params().iter().map(|&p| graph.param(body.ty(p).clone(), body.name(p).map(|n| &**n))).collect();
        let image: FxHashMap<Value, Value> = body.params().iter().copied().zip(params.iter().copied()).collect();
        let live = body.needed(body.results());
        let made = body.nodes().enumerate().filter(|(id, _)| live[id.idx()]).flat_map(|(_, n)| n.outs.iter().copied());
        let seen: Vec<Value> = body.results().iter().copied().chain(made).collect();
        let mut results = graph.inline(body, &image, &seen)?;
        let origin = results.iter().copied().zip(seen).chain(params.iter().copied().zip(body.params().iter().copied())).collect();
        results.truncate(body.results().len());
        let mut written = FxHashMap::default();
        let mut seeds = Seeds::default();
        for (id, state) in scan.states.enumerate() {
            if !carries(state, cts[scan.state_output(id)]) {
                continue;
            }
            for (k, at) in scan.write_results(id).enumerate() {
                let ct = graph.param(graph.ty(results[at]).clone(), None);
                written.insert((id, k), ct);
                seeds.outputs.push((results[at], ct));
            }
        }
        let idle: FxHashSet<usize> = scan
            .seqs
            .ids()
            .map(|id| (scan.seq_param(id), scan.seq_input(id)))
            .chain(scan.captured.ids().map(|id| (scan.captured_param(id), scan.captured_input(id))))
            .filter(|&(_, input)| !site.wants(input))
            .map(|(param, _)| param)
            .collect();
        let asked = params.iter().enumerate().filter(|(at, p)| graph.ty(**p).dtype.is_float() && !idle.contains(at));
        let wrt: Vec<Value> = asked.map(|(_, &p)| p).collect();
        let found = grad::vjp(&mut graph, &seeds, &wrt)?;
        let found: FxHashMap<Value, Option<Value>> = wrt.into_iter().zip(found).collect();
        let given = params.iter().map(|p| found.get(p).copied().flatten()).collect();
        let stored = Stored::new(scan, &graph, &results);
        let mut step = StepVjp { quiet, graph, params, written, given, stored, origin, decided: vec![] };
        step.decided = decided(&step, scan);
        Ok(step)
    }
}

/// True where cotangents can flow through a state: it is a float, and either the step reads it or its rows have a cotangent.
fn carries(state: &State, ct: Option<Value>) -> bool {
    state.row.dtype.is_float() && (ct.is_some() || !state.reads.is_empty())
}

/// The backward loop under construction.
struct Backward<'a> {
    scan: &'a Scan,
    g: &'a mut Graph,
    site: &'a Site<'a>,
    step: &'a StepVjp<'a>,
    /// Number of steps that ran, and how many of them the gradient covers.
    steps: Value,
    covered: Value,
    /// The steps go forwards.
    forwards: bool,
    body: Graph,
    /// From values of the step's vjp to values of the body.
    image: FxHashMap<Value, Value>,
    seqs: Vec<(Value, Value, bool)>,
    states: Vec<(State, Option<Value>)>,
    state_params: Vec<Vec<Value>>,
    captured: Vec<(Value, Value)>,
    /// Where the cotangent states are among `states`.
    buffers: FxHashMap<StateId, usize>,
    /// Full cotangents of the buffers, for rows behind the window.
    full: FxHashMap<StateId, Value>,
}

impl<'a> Backward<'a> {
    fn new(scan: &'a Scan, g: &'a mut Graph, site: &'a Site<'a>, step: &'a StepVjp<'a>, cts: &[Option<Value>]) -> Self {
        let steps = site.outs[scan.steps_output()];
        let covered = match scan.truncate {
            Some(k) => {
                let k = g.int(k as i64);
                g.minimum(steps, k)
            }
            None => steps,
        };
        Backward {
            scan,
            g,
            site,
            step,
            steps,
            covered,
            forwards: step.is_of_rows_alone(scan, cts),
            body: Graph::new(),
            image: FxHashMap::default(),
            seqs: vec![],
            states: vec![],
            state_params: vec![],
            captured: vec![],
            buffers: FxHashMap::default(),
            full: FxHashMap::default(),
        }
    }

    /// Rows `offset .. offset + steps` of a buffer, one for each step.
    fn backward_seq(&mut self, buffer: Value, offset: usize, image_of: Value) {
        let lo = self.g.int(offset as i64);
        let hi = self.g.add(self.steps, lo);
        let rows = self.g.slice_rows(buffer, lo, hi);
        self.seqs.push((rows, image_of, !self.forwards));
    }

    /// The cotangent of a state's whole buffer: what was asked for, zeros elsewhere. `all` is the buffer, where it is needed.
    fn buffer_cotangent(&mut self, id: StateId, ct: Option<Value>, all: Option<Value>) -> Result<Value> {
        match (ct, all, self.scan.states[id].keep) {
            (Some(ct), _, Keep::All) => Ok(ct),
            (None, Some(all), _) => Ok(self.g.zeros_like(all)),
            (Some(ct), Some(all), Keep::Last(_)) => {
                let (rows, have) = (self.g.dim(all, 0), self.g.dim(ct, 0));
                let before = self.g.sub(rows, have);
                let zeros = self.g.zero_rows_like(before, ct);
                Ok(self.g.join_rows(&[zeros, ct]))
            }
            _ => Err(Diagnostic::internal("a cotangent without buffer")),
        }
    }

    /// Cotangent states for what the step reads, sequences for what it only writes.
    fn cotangents(&mut self, cts: &[Option<Value>]) -> Result<()> {
        let forward = Forward::buffers(self.scan, &self.step.quiet, self.g, self.site, &self.reading(cts))?;
        for (id, state) in self.scan.states.enumerate() {
            let ct = cts[self.scan.state_output(id)];
            if !carries(state, ct) {
                continue;
            }
            let full = self.buffer_cotangent(id, ct, forward.get(&id).copied())?;
            if state.reads.is_empty() {
                for (k, &w) in state.writes.iter().enumerate() {
                    self.backward_seq(full, w, self.step.written[&(id, k)]);
                }
            } else {
                self.cotangent_state(id, full);
            }
        }
        Ok(())
    }

    /// States of which the whole buffer is needed to shape their cotangents.
    fn reading(&self, cts: &[Option<Value>]) -> Vec<StateId> {
        let needs = |id: &StateId| {
            let state = &self.scan.states[*id];
            let ct = cts[self.scan.state_output(*id)];
            carries(state, ct) && !(ct.is_some() && state.keep == Keep::All)
        };
        self.scan.states.ids().filter(needs).collect()
    }

    fn cotangent_state(&mut self, id: StateId, full: Value) {
        let state = &self.scan.states[id];
        let zero = self.g.int(0);
        let span = self.g.int(state.span() as i64);
        let end = self.g.add(self.steps, span);
        let window = self.g.slice_rows(full, zero, end);
        let init = self.g.emit(Flip { axis: 0 }, &[window]);
        let offsets: Offsets = flipped(state);
        let name = state.name.as_ref().map(|n| format!("d{n}").into());
        let ct = State {
            row: state.row.clone(),
            init: true,
            reads: offsets.clone(),
            writes: offsets,
            keep: Keep::All,
            tag: Tag::Cotangent,
            name,
        };
        self.buffers.insert(id, self.states.len());
        self.full.insert(id, full);
        self.states.push((ct, Some(init)));
    }

    /// Sequences for what each step saw, where the step's vjp uses it; captured values likewise.
    fn forward_rows(&mut self) -> Result<()> {
        let scan = self.scan;
        let used = self.step.used();
        let needs = |at: usize| used.contains(&self.step.params[at]);
        let seq_ids: Vec<SeqId> = scan.seqs.ids().filter(|&id| needs(scan.seq_param(id))).collect();
        let const_ids: Vec<NonSeqId> = scan.captured.ids().filter(|&id| needs(scan.captured_param(id))).collect();
        let state_ids: Vec<StateId> = scan.states.ids().filter(|&id| scan.read_params(id).any(needs)).collect();
        let step_used = needs(Scan::STEP);
        for id in seq_ids {
            self.forward_seq(id);
        }
        let rows = Forward::seen(scan, &self.step.quiet, self.g, self.site, &state_ids)?;
        for id in state_ids {
            for (k, at) in scan.read_params(id).enumerate() {
                let (buffer, offset) = rows[&(id, k)];
                self.backward_seq(buffer, offset, self.step.params[at]);
            }
        }
        for (v, id) in self.step.stored.among(&used) {
            self.backward_seq(self.site.outs[scan.state_output(id)], scan.states[id].writes[0], v);
        }
        let step = self.step;
        let rows = Forward::decided(scan, self.g, self.site, step)?;
        rows.into_iter().zip(&step.decided).for_each(|(rows, &v)| self.backward_seq(rows, 0, v));
        for id in const_ids {
            self.captured.push((self.site.ins[scan.captured_input(id)], self.step.params[scan.captured_param(id)]));
        }
        if step_used && !self.forwards {
            self.captured.push((self.steps, self.step.params[Scan::STEP]));
        }
        Ok(())
    }

    fn forward_seq(&mut self, id: SeqId) {
        let x = self.site.ins[self.scan.seq_input(id)];
        let image_of = self.step.params[self.scan.seq_param(id)];
        if self.forwards {
            // The rows that the loop reads, of which it may leave some.
            self.seqs.push((x, image_of, self.scan.seqs[id].reverse));
        } else if self.scan.seqs[id].reverse {
            let len = self.g.dim(x, 0);
            let lo = self.g.sub(len, self.steps);
            let rows = self.g.slice_rows(x, lo, len);
            self.seqs.push((rows, image_of, false));
        } else {
            self.backward_seq(x, 0, image_of);
        }
    }

    /// Parameters of the body, in the order of slots.
    fn params(&mut self) -> Value {
        let step = self.body.param(Type::scalar(DType::I64), Some("step"));
        for &(rows, of, _) in &self.seqs {
            let p = self.body.param(self.g.ty(rows).row(), None);
            self.image.insert(of, p);
        }
        for (state, _) in &self.states {
            let reads = state.reads.iter().map(|_| self.body.param(state.row.clone(), None)).collect();
            self.state_params.push(reads);
        }
        for &(v, of) in &self.captured {
            let p = self.body.param(self.g.ty(v).clone(), None);
            self.image.insert(of, p);
        }
        step
    }

    /// The accumulators of captured values and the rows of sequence cotangents, added behind the cotangent states.
    fn add_result_states(&mut self) -> (Vec<(SeqId, Value)>, Vec<(NonSeqId, Value)>) {
        let given = |at: usize| self.step.given[at];
        let seqs: Vec<(SeqId, Value)> = self.scan.seqs.ids().filter_map(|id| Some((id, given(self.scan.seq_param(id))?))).collect();
        let consts: Vec<(NonSeqId, Value)> =
            self.scan.captured.ids().filter_map(|id| Some((id, given(self.scan.captured_param(id))?))).collect();
        for &(id, _) in &seqs {
            let row = self.step.graph.ty(self.step.params[self.scan.seq_param(id)]).clone();
            self.states.push((plain_state(row, &[], &[0], Keep::All, self.scan.seqs[id].name.as_ref()), None));
        }
        for &(id, _) in &consts {
            let c = self.site.ins[self.scan.captured_input(id)];
            let zeros = self.g.zeros_like(c);
            let init = self.g.expand(zeros, &[0]);
            let row = self.g.ty(c).clone();
            self.states.push((plain_state(row, &[0], &[1], Keep::Last(1), self.scan.captured[id].name.as_ref()), Some(init)));
        }
        (seqs, consts)
    }

    fn run(mut self) -> Result<Vec<Option<Value>>> {
        let (seq_cts, const_cts) = self.add_result_states();
        let step = self.params();
        let results = self.body_results(step, &seq_cts, &const_cts)?;
        self.body.set_results(results);
        let mut ins = vec![self.covered];
        ins.extend(self.seqs.iter().map(|s| s.0));
        ins.extend(self.states.iter().filter_map(|s| s.1));
        ins.extend(self.captured.iter().map(|c| c.0));
        let name = self.scan.name.as_ref().map(|n| Arc::from(format!("grad of {n}")));
        let seqs: IdxVec<SeqId, Seq> = self.seqs.iter().map(|&(_, _, reverse)| Seq { reverse, name: None }).collect();
        let back = Scan {
            name,
            body: std::mem::take(&mut self.body),
            seqs,
            states: self.states.iter().map(|s| s.0.clone()).collect(),
            captured: self.captured.iter().map(|_| NonSeq { name: None }).collect(),
            until: false,
            truncate: None,
        };
        let outs = self.g.apply(Op::Scan(Arc::new(back)), &ins)?;
        self.input_cotangents(&outs, &seq_cts, &const_cts)
    }

    /// How many steps are left behind this one.
    fn steps_left(&mut self, steps: Value, step: Value) -> Value {
        let one = self.body.int(1);
        let last = self.body.sub(steps, one);
        self.body.sub(last, step)
    }

    /// Values of the body's results: cotangent rows, sequence cotangents, accumulators.
    fn body_results(&mut self, step: Value, seq_cts: &[(SeqId, Value)], const_cts: &[(NonSeqId, Value)]) -> Result<Vec<Value>> {
        let scan = self.scan;
        let forward_step = self.step.params[Scan::STEP];
        if self.forwards {
            self.image.insert(forward_step, step);
        } else if let Some(&steps) = self.image.get(&forward_step) {
            let i = self.steps_left(steps, step);
            self.image.insert(forward_step, i);
        }
        for (&id, &at) in &self.buffers {
            for (k, w) in scan.states[id].writes.iter().enumerate() {
                let old = self.state_params[at][position(&scan.states[id], *w)];
                self.image.insert(self.step.written[&(id, k)], old);
            }
        }
        self.step.stored.follow(&self.step.graph, &self.step.used(), &mut self.body, &mut self.image)?;
        let wanted: Vec<Value> = self.step.given.iter().flatten().copied().collect();
        let found = self.body.inline(&self.step.graph, &self.image, &wanted)?;
        let cts: FxHashMap<Value, Value> = wanted.into_iter().zip(found).collect();
        let mut results = vec![];
        let mut order: Vec<(usize, StateId)> = self.buffers.iter().map(|(&id, &at)| (at, id)).collect();
        order.sort_unstable_by_key(|o| o.0);
        for (at, id) in order {
            let read_cts: Vec<Option<Value>> = scan.read_params(id).map(|p| self.step.given[p].map(|v| cts[&v])).collect();
            results.extend(window_rows(&mut self.body, &scan.states[id], &self.state_params[at], &read_cts));
        }
        results.extend(seq_cts.iter().map(|(_, v)| cts[v]));
        let first = self.states.len() - const_cts.len();
        for (k, (_, v)) in const_cts.iter().enumerate() {
            let old = self.state_params[first + k][0];
            let sum = self.body.add(old, cts[v]);
            results.push(sum);
        }
        Ok(results)
    }

    fn input_cotangents(self, outs: &[Value], seq_cts: &[(SeqId, Value)], const_cts: &[(NonSeqId, Value)]) -> Result<Vec<Option<Value>>> {
        let Backward { scan, g, site, steps, covered, forwards, states, buffers, full, .. } = self;
        let mut given = vec![None; scan.n_inputs()];
        for (&id, &at) in &buffers {
            if let Some(input) = scan.init_input(id) {
                let rows = g.emit(Flip { axis: 0 }, &[outs[at]]);
                given[input] = Some(init_cotangent(g, &scan.states[id], rows, full[&id], site.ins[input], steps));
            }
        }
        let first = buffers.len();
        for (k, (id, _)) in seq_cts.iter().enumerate() {
            let x = site.ins[scan.seq_input(*id)];
            let turned = scan.seqs[*id].reverse == forwards;
            let rows = if turned { g.emit(Flip { axis: 0 }, &[outs[first + k]]) } else { outs[first + k] };
            given[scan.seq_input(*id)] = Some(seq_cotangent(g, scan.seqs[*id].reverse, rows, x, steps, covered));
        }
        let first = first + seq_cts.len();
        for (k, (id, _)) in const_cts.iter().enumerate() {
            let init = states[first + k].1.unwrap_or(outs[first + k]);
            given[scan.captured_input(*id)] = Some(last_row(g, init, outs[first + k]));
        }
        Ok(given)
    }
}

impl StepVjp<'_> {
    /// True where no step needs a cotangent of another, and all steps are covered.
    fn is_of_rows_alone(&self, scan: &Scan, cts: &[Option<Value>]) -> bool {
        let carried = scan.states.enumerate().any(|(id, s)| !s.reads.is_empty() && carries(s, cts[scan.state_output(id)]));
        !carried && scan.truncate.is_none()
    }
    /// What is not the same at every step.
    pub(super) fn varying(&self, scan: &Scan) -> impl Iterator<Item = Value> {
        let first = self.params.len() - scan.captured.len();
        self.params[..first].iter().copied().chain(self.written.values().copied())
    }
    /// Values of the step that some cotangent uses, not looking behind what is stored or decided.
    fn used(&self) -> FxHashSet<Value> {
        let mut used = FxHashSet::default();
        let mut stack: Vec<Value> = self.given.iter().flatten().copied().collect();
        while let Some(v) = stack.pop() {
            if !used.insert(v) || self.decided.contains(&v) {
                continue;
            }
            if self.stored.has(v) {
                stack.extend(self.stored.made_of(v));
            } else {
                stack.extend(self.graph.node_of(v).iter().flat_map(|n| n.ins.iter().copied()));
            }
        }
        used
    }
}

fn plain_state(row: Type, reads: &[usize], writes: &[usize], keep: Keep, name: Option<&Arc<str>>) -> State {
    let name = name.map(|n| format!("d{n}").into());
    let (reads, writes) = (Offsets::from_slice(reads), Offsets::from_slice(writes));
    State { row, init: !reads.is_empty(), reads, writes, keep, tag: Tag::Cotangent, name }
}

/// R ∪ W seen from the other end of the buffer, sorted.
fn flipped(state: &State) -> Offsets {
    let span = state.span();
    let mut offsets: Offsets = state.reads.iter().chain(&state.writes).map(|o| span - o).collect();
    offsets.sort_unstable();
    offsets.dedup();
    offsets
}

/// Where a forward offset stands in the cotangent state's list.
fn position(state: &State, offset: usize) -> usize {
    let want = state.span() - offset;
    flipped(state).iter().position(|&o| o == want).unwrap_or(0)
}

/// The new rows of a cotangent state: the old ones, zero where the step wrote, plus the step's cotangents where it read.
fn window_rows(body: &mut Graph, state: &State, old: &[Value], read_cts: &[Option<Value>]) -> Vec<Value> {
    let offsets = flipped(state);
    let row = |body: &mut Graph, flipped: usize, old: Value| {
        let offset = state.span() - flipped;
        let ct = state.reads.iter().position(|&r| r == offset).and_then(|k| read_cts[k]);
        match (state.writes.contains(&offset), ct) {
            (true, Some(ct)) => ct,
            (true, None) => body.zeros_like(old),
            (false, Some(ct)) => body.add(old, ct),
            (false, None) => old,
        }
    };
    offsets.iter().zip(old).map(|(&o, &old)| row(body, o, old)).collect()
}
