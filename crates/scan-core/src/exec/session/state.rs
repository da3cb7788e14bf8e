//! A session: the states of a function's loops between two steps.

use super::steps::{Steps, admits, misfit, rows_type};
use crate::backend::cpu::bytes;
use crate::base::{Diagnostic, Kind, Result};
use crate::exec::native::Paused;
use crate::ir::{EvalCx, StateId};
use crate::lower::stepwise::Made;
use crate::scan::step::few_rows;
use crate::types::shape::{count, tuple};
use crate::types::{Array, Dim, Extents, Row, RowMut, memory};
use std::sync::Arc;

/// A function that is given the rows of its sequences one by one. It keeps the states of the function's loops; nothing that it does is seen
/// outside, shared variables included. Sessions of one function share its compiled step.
///
/// ```
/// use scan_core::prelude::*;
///
/// let (u, h0) = (vector("u"), scalar("h0"));
/// let h = scan().over("u", &u).init("h", &h0).run(|s| 0.5 * s.get("h") + s.get("u")).rows("h");
/// let f = function(&[&u, &h0], &[&h]).compile()?;
/// let mut cx = EvalCx::new();
/// let mut session = f.session(&mut cx, &[None, Some(Array::scalar(0.0))])?;
/// assert_eq!(session.step(&mut cx, &[Array::scalar(1.0)])?, [Array::scalar(1.0)]);
/// assert_eq!(session.step(&mut cx, &[Array::scalar(1.0)])?, [Array::scalar(1.5)]);
/// assert_eq!(session.len(), 2);
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
pub struct Session {
    pub(super) steps: Arc<Steps>,
    /// What was computed before the first step: initial rows, captured values, limits, results that are fixed.
    pub(super) before: Arc<[Array]>,
    /// Per state that steps read, its last rows; where the loop is paused they are there.
    rows: Vec<Array>,
    /// The last row of each result that is not fixed; likewise.
    last: Vec<Option<Array>>,
    /// The loop between two steps, where it can be left so; the number of steps that it has made.
    pub(super) paused: Option<(Box<Paused>, usize)>,
    /// It cannot.
    by_calls: bool,
    /// Extents of the rows that steps are given, once there were such.
    pub(super) shapes: Vec<Option<Extents>>,
    limit: Option<usize>,
    done: usize,
    stopped: bool,
}

impl Session {
    /// A session that begins with these arguments, one per input of the function: those that are not sequences, rows of sequences that have come
    /// already, and values of shared variables.
    pub(crate) fn begin(steps: Arc<Steps>, cx: &mut EvalCx, given: &[Option<Array>], shared: Vec<Array>) -> Result<Session> {
        let (mut args, more) = steps.arguments(given, shared)?;
        args.iter_mut().for_each(Array::make_owned);
        let before: Arc<[Array]> = memory::given(|| "the session".into(), || steps.begin(cx, &mut args))?.into();
        let mut rows = vec![];
        for (k, state) in steps.plan.scan.states.iter().take(steps.plan.kept).enumerate() {
            let (init, have, need) = (&before[k], before[k].shape()[0], steps.plan.init_rows[k]);
            if have < need {
                let name = state.name.as_deref().unwrap_or("?");
                return Err(few_rows(name, have, need));
            }
            rows.push(init.rows(need - state.span(), need));
        }
        let limit = steps.limit(given, &before)?;
        let (last, shapes) = (vec![None; steps.plan.results.len()], vec![None; steps.plan.streams.len()]);
        let (paused, by_calls) = (None, false);
        let mut session = Session { steps, before, rows, last, paused, by_calls, shapes, limit, done: 0, stopped: false };
        session.catch_up(cx, &more)?;
        Ok(session)
    }

    /// Makes the steps of rows that have come already.
    fn catch_up(&mut self, cx: &mut EvalCx, more: &[Option<Array>]) -> Result<()> {
        let n = more.iter().flatten().map(|x| x.shape()[0]).max().unwrap_or(0);
        if n == 0 {
            return Ok(());
        }
        let rows = more.iter().flatten().cloned().collect::<Vec<_>>();
        if rows.len() < more.len() || rows.iter().any(|x| x.shape()[0] != n) {
            let streams = self.steps.plan.streams.iter().map(|s| format!("`{}`", self.steps.inputs[s.0].describe()));
            let names = streams.collect::<Vec<_>>().join(", ");
            return Err(misfit(format!("rows of {names} that came already are those of equally many steps")));
        }
        self.run(cx, n, &rows).map(drop)
    }

    /// The step that it shares with other sessions.
    pub fn steps(&self) -> &Arc<Steps> {
        &self.steps
    }
    /// How many steps were made.
    pub fn len(&self) -> usize {
        self.done
    }
    /// True before the first step.
    pub fn is_empty(&self) -> bool {
        self.done == 0
    }
    /// True where there are no more steps: the loop has met its condition, or has made all of its steps.
    pub fn stopped(&self) -> bool {
        self.stopped || self.left() == Some(0)
    }
    /// True where the loop has met its condition.
    pub(crate) fn met(&self) -> bool {
        self.stopped
    }
    fn left(&self) -> Option<usize> {
        self.limit.map(|n| n.saturating_sub(self.done))
    }
    /// True where steps make rows of an output; others are the same at every step.
    pub fn rows_of(&self, output: usize) -> bool {
        matches!(self.steps.plan.results[output], Made::Row(_))
    }
    /// The states, by the names of [`Steps::states`]: the row of the last step, or the rows of the last steps where a step reads several.
    pub fn states(&self) -> Vec<Array> {
        self.rows().iter().map(|rows| if rows.shape()[0] == 1 { rows.row(0) } else { rows.clone() }).collect()
    }
    /// Per state that steps read, its last rows.
    pub(crate) fn rows(&self) -> Vec<Array> {
        self.paused.as_ref().map_or_else(|| self.rows.clone(), |(paused, _)| (0..self.rows.len()).map(|k| paused.kept(k)).collect())
    }
    /// The last row of each result that is not fixed.
    pub(crate) fn last(&self) -> Vec<Option<Array>> {
        let made = |made: &Made, paused: &Paused| if let Made::Row(state) = *made { Some(paused.made_row(state)) } else { None };
        match &self.paused {
            Some((paused, n)) if *n > 0 => self.steps.plan.results.iter().map(|m| made(m, paused)).collect(),
            _ => self.last.clone(),
        }
    }
    /// True for what can be the last row of a result.
    pub(crate) fn admits(&self, result: usize, row: &Array) -> bool {
        let state = |state: usize| &self.steps.plan.scan.states[StateId(state as u32)];
        matches!(self.steps.plan.results[result], Made::Row(k) if state(k).row.admits(row.dtype(), row.shape()))
    }
    /// Goes to where a session was.
    pub(crate) fn set(&mut self, rows: Vec<Array>, last: Vec<Option<Array>>, done: usize, stopped: bool) {
        (self.rows, self.last, self.done, self.stopped, self.paused) = (rows, last, done, stopped, None);
    }

    /// One step: given a row of each sequence, in the order of [`Steps::streams`], the row that it makes of each output.
    ///
    /// # Errors
    /// `E0532` where a row does not fit, `E0533` where there are no more steps; what the ops report. The session is then as it was.
    pub fn step(&mut self, cx: &mut EvalCx, rows: &[Array]) -> Result<Vec<Array>> {
        let known = self.shapes.len() == rows.len() && self.paused.is_some();
        let fits = |(x, seq): (&Array, usize)| {
            let (p, _) = self.steps.plan.streams[seq];
            x.dtype() == self.steps.inputs[p].ty().dtype && self.shapes[seq].as_deref() == Some(x.shape())
        };
        if !known || !rows.iter().zip(0..).all(fits) {
            let xs: Vec<Array> = rows.iter().map(|x| x.reshaped(&[&[1], x.shape()].concat())).collect();
            self.fits(1, &xs)?;
            if !self.pause(cx, xs.clone())? {
                return self.step_by_call(cx, &xs);
            }
        }
        if let Some((paused, _)) = &mut self.paused {
            rows.iter().enumerate().for_each(|(seq, x)| paused.put_row(seq, bytes(x)));
        }
        self.step_on(cx)?;
        for (shape, x) in self.shapes.iter_mut().zip(rows) {
            shape.get_or_insert_with(|| Extents::from_slice(x.shape()));
        }
        let (plan, n) = (&self.steps.plan, self.steps.n_outputs);
        let out = |made: &Made| match (*made, &self.paused) {
            (Made::Row(state), Some((paused, _))) => paused.made_row(state),
            (Made::Row(state) | Made::Before(state), _) => self.before[state].clone(),
        };
        Ok(plan.results[..n].iter().map(out).collect())
    }

    /// One step in the caller's memory: elements of a row of each sequence, and room for those of the row of each output. After the first step
    /// it takes no memory where the loop is one kernel, or a list of kernels, moves and products.
    ///
    /// # Errors
    /// As of [`Session::step`].
    pub fn step_into(&mut self, cx: &mut EvalCx, rows: &[Row], outs: &mut [RowMut]) -> Result<()> {
        if !self.takes(rows.iter().map(Row::kind)) {
            return self.first_into(cx, rows, outs);
        }
        if !self.gives(outs.iter().map(RowMut::kind)) {
            return Err(misfit("memory for results does not fit these".into()));
        }
        self.step_through(cx, |seq| rows[seq].bytes(), |k, made| outs[k].copy_from(made))
    }
    /// The same where nothing is known of the rows yet, or the loop cannot be paused.
    fn first_into(&mut self, cx: &mut EvalCx, rows: &[Row], outs: &mut [RowMut]) -> Result<()> {
        let mut xs = vec![];
        for (row, (&(p, _), known)) in rows.iter().zip(self.steps.plan.streams.iter().zip(&self.shapes)) {
            let dims = &self.steps.inputs[p].ty().dims[1..];
            let (declared, n): (Vec<usize>, usize) = (dims.iter().filter_map(Dim::value).collect(), row.kind().1);
            let free = n.checked_div(declared.iter().product()).unwrap_or(0);
            let guess = dims.iter().map(|d| d.value().unwrap_or(free)).collect();
            let shape: Extents = known.clone().unwrap_or(guess);
            if count(&shape) != n || dims.len() > declared.len() + 1 && known.is_none() {
                return Err(misfit(format!("{n} elements are no row of `{}`", self.steps.inputs[p].describe())));
            }
            xs.push(row.array(&shape));
        }
        let made = self.step_checked(cx, &xs, |made| outs.iter().map(RowMut::kind).eq(made.iter().map(|a| (a.dtype(), a.len()))))?;
        outs.iter_mut().zip(&made).for_each(|(out, a)| out.copy_from(bytes(a)));
        Ok(())
    }

    /// Leaves the loop where it is for the next step, given rows as that one has them; false where that cannot be.
    fn pause(&mut self, cx: &mut EvalCx, mut xs: Vec<Array>) -> Result<bool> {
        if self.paused.is_some() || self.by_calls {
            return Ok(self.paused.is_some());
        }
        xs.iter_mut().for_each(Array::make_owned);
        let steps = self.steps.clone();
        let native = steps.native.as_ref().filter(|_| !self.stopped());
        let paused = native.map(|native| native.paused(cx, self.inputs(1, &xs), steps.plan.kept)).transpose()?.flatten();
        self.paused = paused.map(|paused| (Box::new(paused), 0));
        self.by_calls = self.paused.is_none();
        Ok(!self.by_calls)
    }
    /// The states as arrays.
    fn settle(&mut self) {
        (self.rows, self.last) = (self.rows(), self.last());
        self.paused = None;
    }
    /// A step of the loop that is paused, on the rows that lie there.
    pub(super) fn step_on(&mut self, cx: &mut EvalCx) -> Result<()> {
        if self.stopped() {
            return Err(self.ended());
        }
        let Some((paused, made)) = &mut self.paused else { return Ok(()) };
        if let Err(e) = paused.step(cx) {
            // The next rows may have other extents, where none were taken yet.
            self.settle();
            return Err(e);
        }
        *made += 1;
        self.done += 1;
        self.stopped = self.steps.plan.stop.is_some_and(|state| paused.made(state) == [1]);
        Ok(())
    }
    fn step_by_call(&mut self, cx: &mut EvalCx, xs: &[Array]) -> Result<Vec<Array>> {
        let ran = self.run(cx, 1, xs);
        self.by_calls &= ran.is_ok();
        let outs = ran?;
        let rowed = |(k, out): (usize, Array)| match self.steps.plan.results[k] {
            Made::Row(_) => out.reshaped(&out.shape()[1..]),
            Made::Before(_) => out,
        };
        Ok(outs.into_iter().enumerate().map(rowed).collect())
    }

    /// Up to n steps: given n rows of each sequence, the rows that they make of each output; fewer where there are no more steps.
    ///
    /// # Errors
    /// As of a step.
    pub fn run(&mut self, cx: &mut EvalCx, n: usize, rows: &[Array]) -> Result<Vec<Array>> {
        self.fits(n, rows)?;
        self.settle();
        if n > 0 && self.stopped() {
            return Err(self.ended());
        }
        let steps = self.steps.clone();
        let n = n.min(self.left().unwrap_or(n));
        let mut ins = self.inputs(n, rows);
        let outs = memory::given(|| "the session".into(), || steps.run(cx, &mut ins))?;
        let ran = outs.last().and_then(Array::item_i64).and_then(|ran| usize::try_from(ran).ok()).unwrap_or(0);
        self.advance(&outs, ran);
        for (shape, x) in self.shapes.iter_mut().zip(rows) {
            shape.get_or_insert_with(|| Extents::from_slice(&x.shape()[1..]));
        }
        let out = |made: &Made| match *made {
            Made::Row(state) => outs[state].clone(),
            Made::Before(k) => self.before[k].clone(),
        };
        Ok(steps.plan.results[..steps.n_outputs].iter().map(out).collect())
    }

    /// Inputs of the loop for n steps.
    fn inputs(&self, n: usize, rows: &[Array]) -> Vec<Array> {
        let scan = &self.steps.plan.scan;
        let captured = self.before[self.steps.plan.kept..][..scan.captured.len()].iter().cloned();
        let given = std::iter::once(Array::scalar(n as i64)).chain(rows.iter().cloned());
        given.chain(self.rows.iter().cloned()).chain(captured).collect()
    }

    /// Takes over the states after some steps.
    fn advance(&mut self, outs: &[Array], ran: usize) {
        let steps = self.steps.clone();
        for (old, new) in self.rows.iter_mut().zip(outs) {
            let (span, fresh) = (old.shape()[0], new.shape()[0]);
            if fresh == span {
                *old = new.clone();
            } else if fresh > 0 {
                let mut rows = Array::zeros(old.dtype(), old.shape());
                rows.copy_rows(0, old, fresh..span);
                rows.copy_rows(span - fresh, new, 0..fresh);
                *old = rows;
            }
        }
        if ran == 0 {
            return;
        }
        for (last, made) in self.last.iter_mut().zip(&steps.plan.results) {
            if let Made::Row(state) = *made {
                *last = Some(outs[state].row(ran - 1));
            }
        }
        self.done += ran;
        self.stopped = steps.plan.stop.is_some_and(|state| outs[state].row(ran - 1).item_f64() != Some(0.0));
    }

    fn fits(&self, n: usize, rows: &[Array]) -> Result<()> {
        let streams = &self.steps.plan.streams;
        if rows.len() != streams.len() {
            return Err(misfit(format!("a step takes {} rows, got {}", streams.len(), rows.len())));
        }
        for ((x, &(p, _)), known) in rows.iter().zip(streams).zip(&self.shapes) {
            let input = &self.steps.inputs[p];
            if x.rank() == 0 || x.shape()[0] != n {
                return Err(misfit(format!("`{}` has rows for {} steps, not {n}", input.describe(), x.shape().first().unwrap_or(&0))));
            }
            admits(input, &rows_type(input, n), x)?;
            if let Some(known) = known.as_ref().filter(|known| known[..] != x.shape()[1..]) {
                let (old, new) = (tuple(known), tuple(&x.shape()[1..]));
                return Err(misfit(format!("a row of `{}` has shape {new}, those before had {old}", input.describe())));
            }
        }
        Ok(())
    }

    fn ended(&self) -> Box<Diagnostic> {
        let why = if self.stopped { "the loop has met its condition" } else { "the loop has made all of its steps" };
        let e = Diagnostic::new(Kind::Scan, "E0533", format!("the session has ended after step {}: {why}", self.done));
        e.help("`stopped` tells whether there are more; a session can be begun anew")
    }

    /// The values of the function's updates, as a call with the rows so far would leave them; none where no step was made.
    pub(crate) fn updates(&self) -> Vec<Array> {
        let n = self.steps.n_outputs;
        let last = self.last();
        let value = |(made, last): (&Made, &Option<Array>)| match *made {
            Made::Before(k) => Some(self.before[k].clone()),
            Made::Row(_) => last.clone(),
        };
        if self.done == 0 { vec![] } else { self.steps.plan.results[n..].iter().zip(&last[n..]).filter_map(value).collect() }
    }
}

impl Clone for Session {
    fn clone(&self) -> Session {
        Session {
            steps: self.steps.clone(),
            before: self.before.clone(),
            rows: self.rows(),
            last: self.last(),
            paused: None,
            by_calls: self.by_calls,
            shapes: self.shapes.clone(),
            limit: self.limit,
            done: self.done,
            stopped: self.stopped,
        }
    }
}
