//! A loop for many rows is a loop whose step is that of all rows. States that differ from row to row have a leading axis, behind that of the
//! buffer ([`Batched::Stacked`]).
//!
//! ```text
//! rows    scan n { seq x;  state h;  const W;  next h = tanh(x + h @ W) }   for each row r: x[r], h[r]
//! batch   scan n { seq xᵀ; state h : [b, k];   next h = tanh(x + h @ W) }   one product a step
//! ```
//!
//! Rows that stop at steps of their own, by a condition or by a number of steps for each, share a loop until all are done. A row that is done
//! keeps its states, and what it returns ends where its loop ended ([`Batched::Ragged`]); its steps go on with what it was given at the first
//! (`guarded.rs`). Where cotangents cover the last steps only, and where rows of a state change after they were read, each row has its own loop.

mod guarded;

use guarded::{Moving, at_places, moving, places};

use crate::base::{Id, Result};
use crate::ir::op::*;
use crate::ir::{Graph, Held, Keep, NonSeq, Offsets, Op, Outs, Scan, State, StateId, Tag, Value};
use crate::ops::batch::graph;
use crate::ops::certain::never_negative;
use crate::scalar::ElemOp;
use crate::types::{DType, Dim, Type};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The loop for all rows.
///
/// # Errors
/// What type inference reports.
pub fn batch(scan: &Scan, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
    let ins = &turned(scan, b, ins)[..];
    let counted = ins[Scan::N_STEPS].varies();
    let mut rows: Vec<bool> = scan.states.ids().map(|id| scan.init_input(id).is_some_and(|at| counted || ins[at].varies())).collect();
    let mut guarded = false;
    while let Some(mut step) = Step::new(scan, b, ins, (&rows, guarded))? {
        let grown = step.grown(&rows);
        if grown != rows {
            rows = grown;
            continue;
        }
        let stops = counted || step.until.is_some_and(Batched::varies);
        if !stops && !guarded {
            return step.together(b, ins, &rows);
        }
        match own_rows(scan, &rows) {
            _ if scan.truncate.is_some() => break,
            None => break,
            Some(_) if !guarded => guarded = true,
            Some(wanted) if wanted != rows => rows = wanted,
            Some(_) => return Masked::new(&mut step, b, ins, &rows)?.run(b, &rows),
        }
    }
    let ins: Vec<Batched> = ins.iter().map(|x| b.settled(*x)).collect();
    b.apart |= counted || scan.until;
    b.row_by_row(Op::Scan(Arc::new(scan.clone())), &ins)
}

/// The inputs, of which captured values and the number of steps have rows in front.
fn turned(scan: &Scan, b: &mut Batching, ins: &[Batched]) -> Vec<Batched> {
    let looped = 1..scan.n_inputs() - scan.captured.len();
    ins.iter().enumerate().map(|(at, x)| if looped.contains(&at) { *x } else { b.settled(*x) }).collect()
}

/// Which states have a row each where rows stop on their own, so that each can keep its last one; none where a state that must cannot.
fn own_rows(scan: &Scan, rows: &[bool]) -> Option<Vec<bool>> {
    let own = |(state, &rows): (&State, &bool)| {
        let fits = state.keep == Keep::All || holds(state) && state.keep == Keep::Last(1);
        (state.stable() && state.writes[..] == [state.span()] && fits).then_some(rows || holds(state))
    };
    scan.states.iter().zip(rows).map(own).collect()
}

/// True where a step reads what the one before has written: a row that is done writes that again.
fn holds(state: &State) -> bool {
    state.span() > 0 && state.reads.contains(&(state.span() - 1))
}

/// The step of all rows.
struct Step<'a> {
    scan: &'a Scan,
    body: Graph,
    /// What the step writes.
    results: Vec<Batched>,
    until: Option<Batched>,
    /// A parameter of the body with a leading axis.
    leading: Value,
    /// The extent of that axis.
    extent: Dim,
}

impl<'a> Step<'a> {
    /// The step, given which states differ from row to row; where it is guarded, all does that changes with the steps. None where it cannot be
    /// evaluated for all rows at once.
    fn new(scan: &'a Scan, b: &mut Batching, ins: &[Batched], (rows, guarded): (&[bool], bool)) -> Result<Option<Step<'a>>> {
        let mut body = Graph::new();
        body.set_as_written(b.g.as_written());
        // The symbol of the rows around: what is written twice for the same rows is the same loop.
        let extent = b.g.ty(b.leading).dims[0].clone();
        let extent = if extent.value().is_some() || extent.parts().1 == 0 && extent.parts().0.len() == 1 { extent } else { Dim::fresh() };
        let mut given = FxHashMap::default();
        let mut vary = varying_params(scan, ins, rows);
        if guarded {
            vary[..scan.n_params() - scan.captured.len()].fill(true);
        }
        for (&p, vary) in scan.body.params().iter().zip(&vary) {
            let ty = scan.body.ty(p);
            let ty = if *vary { ty.rows(extent.clone()) } else { ty.clone() };
            let image = body.param(ty, scan.body.name(p).map(|n| &**n));
            given.insert(p, if *vary { Batched::Rows(image) } else { Batched::Fixed(image) });
        }
        let Some(at) = vary.iter().position(|v| *v) else { return Ok(None) };
        let leading = body.params()[at];
        let mut inner = Batching::new(&mut body, leading);
        let Some(images) = graph(&mut inner, &scan.body, &given, scan.body.results())? else { return Ok(None) };
        let results = scan.body.results().iter().filter_map(|v| images.get(*v));
        let mut results: Vec<Batched> = results.map(|x| inner.settled(x)).collect();
        if results.iter().any(|x| matches!(x, Batched::Ragged { .. })) {
            return Ok(None);
        }
        let until = if scan.until { results.pop() } else { None };
        Ok(Some(Step { scan, body, results, until, leading, extent }))
    }

    /// Which states differ from row to row by what the step writes.
    fn grown(&self, rows: &[bool]) -> Vec<bool> {
        let written = |id: StateId| self.scan.write_results(id).any(|at| self.results[at].varies());
        self.scan.states.ids().map(|id| rows[id.idx()] || written(id)).collect()
    }

    /// The rows that a state is written, with a leading axis where it has one.
    fn written(&mut self, id: StateId, rows: &[bool]) -> Result<Vec<Value>> {
        let mut found = vec![];
        for at in self.scan.write_results(id) {
            let x = self.results[at];
            found.push(if rows[id.idx()] { Batching::new(&mut self.body, self.leading).rows(x)? } else { x.value() });
        }
        Ok(found)
    }

    fn states(&self, rows: &[bool]) -> Vec<State> {
        let wide = |(id, state): (StateId, &State)| {
            let row = if rows[id.idx()] { state.row.rows(self.extent.clone()) } else { state.row.clone() };
            State { row, ..state.clone() }
        };
        self.scan.states.enumerate().map(wide).collect()
    }

    /// All rows run the same steps.
    fn together(mut self, b: &mut Batching, ins: &[Batched], rows: &[bool]) -> Result<Outs<Batched>> {
        let mut results = vec![];
        for id in self.scan.states.ids() {
            results.extend(self.written(id, rows)?);
        }
        results.extend(self.until.map(Batched::value));
        let states = self.states(rows);
        self.body.set_results(results);
        let mut new = self.scan.with_body(std::mem::take(&mut self.body));
        new.states = states.into_iter().collect();
        let ins = outer_inputs(self.scan, b, ins, rows)?;
        let outs = b.g.apply(Op::Scan(Arc::new(new)), &ins)?;
        let found = self.scan.states.ids().map(|id| match rows[id.idx()] {
            true => Batched::Stacked(outs[id.idx()]),
            false => Batched::Fixed(outs[id.idx()]),
        });
        let steps = Batched::Fixed(outs[self.scan.steps_output()]);
        Ok(found.chain([steps]).collect())
    }
}

/// True per parameter of the body that has a row each.
fn varying_params(scan: &Scan, ins: &[Batched], rows: &[bool]) -> Vec<bool> {
    let mut vary = vec![false; scan.body.params().len()];
    scan.seqs.ids().for_each(|id| vary[scan.seq_param(id)] = ins[scan.seq_input(id)].varies());
    scan.captured.ids().for_each(|id| vary[scan.captured_param(id)] = ins[scan.captured_input(id)].varies());
    for id in scan.states.ids() {
        scan.read_params(id).for_each(|p| vary[p] = rows[id.idx()]);
    }
    vary
}

/// The inputs of the loop of all rows.
fn outer_inputs(scan: &Scan, b: &mut Batching, ins: &[Batched], rows: &[bool]) -> Result<Vec<Value>> {
    let mut found: Vec<Value> = ins.iter().map(|x| x.value()).collect();
    for id in scan.seqs.ids() {
        let at = scan.seq_input(id);
        if ins[at].varies() {
            found[at] = b.stacked(ins[at])?;
        }
    }
    for id in scan.states.ids() {
        let Some(at) = scan.init_input(id).filter(|_| rows[id.idx()]) else { continue };
        found[at] = b.stacked(ins[at])?;
    }
    Ok(found)
}

/// The loop of rows that stop on their own: it also carries which rows go on, and how many steps each ran.
struct Masked {
    scan: Scan,
    ins: Vec<Value>,
    /// Each row has a number of steps of its own.
    counted: bool,
    /// Outputs whose last rows are carried, too.
    lasts: Vec<StateId>,
}

impl Masked {
    fn new(step: &mut Step, b: &mut Batching, ins: &[Batched], rows: &[bool]) -> Result<Masked> {
        let old = step.scan;
        let n_rows = (ins[Scan::N_STEPS]).varies().then(|| ins[Scan::N_STEPS].value());
        let mut outer = outer_inputs(old, b, ins, rows)?;
        let mut captured = outer.split_off(old.n_inputs() - old.captured.len());
        let (steps, goes) = first_steps(b, n_rows, outer[Scan::N_STEPS])?;
        outer[Scan::N_STEPS] = steps;
        let mut moving = moving(old, b, (ins, &outer), (&step.states(rows), rows));
        let places = n_rows.map(|_| places(b, goes)).transpose()?;
        moving.iter_mut().try_for_each(|moving| moving.settle(b, places))?;
        for (x, of) in captured.iter_mut().zip(&ins[old.n_inputs() - old.captured.len()..]) {
            if let Some(places) = places.filter(|_| of.varies()) {
                at_places(b, places, x)?;
            }
        }
        let ran = b.g.zeros_like(goes);
        let ran = b.g.cast(ran, DType::I64);
        outer.extend([goes, ran].map(|x| b.g.expand(x, &[0])));
        let lasts = if n_rows.is_none() { outputs(old, rows) } else { vec![] };
        for &id in &lasts {
            outer.push(zeros(b, &old.states[id].row)?);
        }
        outer.extend(captured);
        outer.extend(n_rows);
        outer.extend(moving.iter().filter_map(Moving::captured));
        let (body, states) = masked_body(step, rows, n_rows.is_some(), (&moving, &lasts))?;
        let mut scan = old.with_body(body);
        scan.states = states.into_iter().collect();
        scan.until = true;
        let more = n_rows.into_iter().chain(moving.iter().filter_map(Moving::captured)).map(|_| NonSeq { name: None });
        scan.captured = old.captured.iter().cloned().chain(more).collect();
        Ok(Masked { scan, ins: outer, counted: n_rows.is_some(), lasts })
    }

    fn run(self, b: &mut Batching, rows: &[bool]) -> Result<Outs<Batched>> {
        let outs = b.g.apply(Op::Scan(Arc::new(self.scan.clone())), &self.ins)?;
        let n = rows.len();
        let [one, minus] = [1, -1].map(|n| b.g.int(n));
        let ran = b.apply(Index { pattern: "i".into() }, &[outs[n + 1], minus])?;
        let mut found = Outs::new();
        for (id, state) in self.scan.states.enumerate().take(n) {
            let buffer = outs[id.idx()];
            let all = if rows[id.idx()] { b.moved(buffer, 1, 0) } else { b.rows(Batched::Fixed(buffer))? };
            let lengths = match state.keep {
                Keep::Last(_) => b.g.minimum(ran, one),
                Keep::All => {
                    let span = b.g.int(state.span() as i64);
                    let lengths = b.g.add(ran, span);
                    match self.scan.init_input(id) {
                        Some(at) => {
                            let given = b.g.dim(self.ins[at], 0);
                            b.g.maximum(lengths, given)
                        }
                        None => lengths,
                    }
                }
            };
            let begun = self.scan.init_input(id).is_some_and(|at| b.g.ty(self.ins[at]).dims[0].value() == Some(state.span()));
            let held = (rows[id.idx()] && holds(state) && begun).then_some(Held { buffer, together: !self.counted });
            // Of what nobody begins with there is a last row only where all run a step.
            let mut lasts = self.lasts.iter().zip(n + 2..);
            let written = lasts.find(|l| *l.0 == id).map(|(_, at)| b.g.emit(Index { pattern: "s:".into() }, &[outs[at], one]));
            let last = held.or(written.map(|buffer| Held { buffer, together: false }));
            found.push(Batched::Ragged { rows: all, lengths, last });
        }
        found.push(Batched::Rows(ran));
        Ok(found)
    }
}

/// How many steps run at most, and which rows run any: a number of steps for each row, or one for all. A negative one is kept: it is refused.
fn first_steps(b: &mut Batching, own: Option<Value>, all: Value) -> Result<(Value, Value)> {
    let zero = b.g.int(0);
    let Some(own) = own else {
        let any = b.apply(Op::Elem(ElemOp::Gt), &[all, zero])?;
        return Ok((all, b.rows(Batched::Fixed(any))?));
    };
    let first = b.g.expand(zero, &[0]);
    let with_zero = b.g.join_rows(&[first, own]);
    let extreme = |kind| Reduce { kind, axes: vec![0], keepdims: false };
    let most = b.apply(extreme(ReduceKind::Max), &[with_zero])?;
    let goes = b.apply(Op::Elem(ElemOp::Gt), &[own, zero])?;
    if never_negative(b.g, own) {
        return Ok((most, goes));
    }
    let least = b.apply(extreme(ReduceKind::Min), &[with_zero])?;
    let negative = b.g.lt(least, zero);
    Ok((b.g.select(negative, least, most), goes))
}

/// The step that leaves rows that are done as they are.
fn masked_body(step: &mut Step, rows: &[bool], counted: bool, (moving, lasts): (&[Moving], &[StateId])) -> Result<(Graph, Vec<State>)> {
    let old = step.scan;
    let lane = |dtype| Type::new(dtype, [step.extent.clone()]);
    let (own, states) = ([lane(DType::Bool), lane(DType::I64)], step.states(rows));
    let mut all = vec![];
    for id in old.states.ids() {
        all.extend(step.written(id, rows)?);
    }
    // The new parameters stand before the captured values: the body is written again around them.
    let from = std::mem::take(&mut step.body);
    let mut body = Graph::new();
    let (moved, captured) = from.params().split_at(moving.len());
    let name = |p: &Value| from.name(*p).map(|n| &**n);
    let given: Vec<Value> = moving.iter().zip(moved).map(|(moving, p)| moving.param(&mut body, name(p))).collect();
    let [goes, ran] = own.clone().map(|ty| body.param(ty, None));
    let more: Vec<Type> = lasts.iter().map(|id| old.states[*id].row.rows(step.extent.clone())).collect();
    let before: Vec<Value> = more.iter().map(|ty| body.param(ty.clone(), None)).collect();
    let mut image: FxHashMap<Value, Value> = captured.iter().map(|p| (*p, body.param(from.ty(*p).clone(), name(p)))).collect();
    let limit = counted.then(|| body.param(own[1].clone(), None));
    for ((moving, p), now) in moving.iter().zip(moved).zip(&given) {
        image.insert(*p, moving.guarded(&mut body, (goes, *now)));
    }
    let wanted: Vec<Value> = all.iter().copied().chain(step.until.map(Batched::value)).collect();
    let mut results = body.inline(&from, &image, &wanted)?;
    let until = if step.until.is_some() { results.pop() } else { None };
    let written = |results: &[Value], id: &StateId| results[old.write_results(*id).start];
    let last = lasts.iter().zip(before).map(|(id, before)| kept(&mut body, goes, written(&results, id), Some(before)));
    let last: Vec<Value> = last.collect();
    for id in old.states.ids().filter(|id| rows[id.idx()]) {
        let at = old.write_results(id).start;
        let held = old.states[id].reads.iter().position(|r| r + 1 == old.states[id].span());
        let held = held.map(|k| given[old.read_params(id).start + k]);
        results[at] = kept(&mut body, goes, results[at], held);
    }
    let (next, ran) = next_rows(&mut body, [goes, ran], until, limit)?;
    let any = body.emit(Reduce { kind: ReduceKind::Any, axes: vec![0], keepdims: false }, &[next]);
    let done = body.emit(Op::Elem(ElemOp::Not), &[any]);
    results.extend([next, ran]);
    results.extend(last);
    results.push(done);
    body.set_results(results);
    Ok((body, states.into_iter().chain(own.into_iter().chain(more).map(lanes)).collect()))
}

/// Outputs whose rows differ, of known extents, so that each can also carry its last one.
fn outputs(scan: &Scan, rows: &[bool]) -> Vec<StateId> {
    let known = |state: &State| state.span() == 0 && state.keep == Keep::All && state.row.dims.iter().all(|d| d.value().is_some());
    scan.states.ids().filter(|&id| rows[id.idx()] && known(&scan.states[id])).collect()
}

/// What such an output is before the first step: nobody sees it.
fn zeros(b: &mut Batching, row: &Type) -> Result<Value> {
    let dims: Vec<usize> = row.dims.iter().filter_map(Dim::value).collect();
    let mut ins = vec![b.g.number(row.dtype, 0.0), b.g.int(1), b.extent()];
    ins.extend(dims.into_iter().map(|n| b.g.int(n as i64)));
    b.apply(BroadcastTo {}, &ins)
}

/// The state of one value a row.
fn lanes(row: Type) -> State {
    let (reads, writes) = (Offsets::from_slice(&[0]), Offsets::from_slice(&[1]));
    State { row, init: true, reads, writes, keep: Keep::All, tag: Tag::Output, name: None }
}

/// What a state is written: where a row is done, what it held, or zeros that nobody sees.
fn kept(body: &mut Graph, goes: Value, new: Value, held: Option<Value>) -> Value {
    let held = held.unwrap_or_else(|| body.number(body.ty(new).dtype, 0.0));
    let axes: Vec<usize> = (1..body.ty(new).rank()).collect();
    let goes = body.expand(goes, &axes);
    body.select(goes, new, held)
}

/// Which rows go on, and how many steps each ran.
fn next_rows(body: &mut Graph, [goes, ran]: [Value; 2], until: Option<Value>, limit: Option<Value>) -> Result<(Value, Value)> {
    let one = body.cast(goes, DType::I64);
    let ran = body.add(ran, one);
    let mut next = goes;
    let mut and = |body: &mut Graph, other: Value| next = body.emit(Op::Elem(ElemOp::And), &[next, other]);
    if let Some(stop) = until {
        let on = body.emit(Op::Elem(ElemOp::Not), &[stop]);
        and(body, on);
    }
    if let Some(limit) = limit {
        let on = body.lt(ran, limit);
        and(body, on);
    }
    Ok((next, ran))
}

#[cfg(test)]
mod tests;
