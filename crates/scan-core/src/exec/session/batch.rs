//! Many sessions of one function that make a step at once.

use super::state::Session;
use super::steps::{admits, misfit, rows_type};
use crate::backend::cpu::{bytes, team};
use crate::base::clock::Instant;
use crate::base::{Diagnostic, Result};
use crate::dispatch;
use crate::ir::EvalCx;
use crate::lower::stepwise::Made;
use crate::types::shape::count;
use crate::types::{Array, DType, RowMut};
use smallvec::SmallVec;
use std::borrow::BorrowMut;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What many sessions made of a row each.
///
/// ```
/// use scan_core::prelude::*;
///
/// let (u, h0) = (vector("u"), scalar("h0"));
/// let h = scan().over("u", &u).init("h", &h0).run(|s| 0.5 * s.get("h") + s.get("u")).rows("h");
/// let f = function(&[&u, &h0], &[&h]).compile()?;
/// let mut cx = EvalCx::new();
/// let mut begin = |h: f64| f.session(&mut EvalCx::new(), &[None, Some(Array::scalar(h))]);
/// let mut both = [begin(0.0)?, begin(2.0)?];
/// let stepped = Session::step_all(&mut cx, &mut both, &[Array::vector(&[1.0, 1.0])])?;
/// assert_eq!((stepped.rows, stepped.failed.len()), (vec![Array::vector(&[1.0, 2.0])], 0));
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
pub struct Stepped {
    /// Per result an array with a row for each session, in their order; zeros for those that failed. Results that are the same at every step have
    /// a row for each session, too. Empty where all failed.
    pub rows: Vec<Array>,
    /// Positions of the sessions that made no step, with the reason, in order. These are as they were; all others have made their step.
    pub failed: Vec<(usize, Box<Diagnostic>)>,
}

/// So many sessions are what a thread takes at once.
const PART: usize = 32;
/// Work that is worth waking threads for.
const WORTH: Duration = Duration::from_micros(100);
/// Between two looks at whether the caller wants to stop.
const SLAB: Duration = Duration::from_millis(5);

/// Sessions that lie beside each other, and where their rows go.
struct Part<'a, S> {
    /// The position of the first one.
    first: usize,
    sessions: &'a mut [S],
    outs: SmallVec<[Rows<'a>; 4]>,
}

/// Rows of a result, each of so many elements.
struct Rows<'a> {
    memory: RowMut<'a>,
    size: usize,
}

impl<'a> Rows<'a> {
    /// Those of an array, without the first ones.
    fn after(first: usize, out: &'a mut Array, size: usize) -> Rows<'a> {
        let memory = dispatch!(out.dtype(), T => RowMut::from(&mut out.as_mut_slice::<T>()[first * size..]));
        Rows { memory, size }
    }
    /// The first n rows, which are then no longer here.
    fn take(&mut self, n: usize) -> Rows<'a> {
        Rows { memory: self.memory.take(n * self.size), size: self.size }
    }
    /// Type and number of elements of a row.
    fn kind(&self) -> (DType, usize) {
        (self.memory.kind().0, self.size)
    }
    /// Row j takes over the bytes of as many elements.
    fn put(&mut self, j: usize, from: &[u8]) {
        self.memory.put(j * from.len(), from);
    }
}

impl Session {
    /// One step of many sessions of one function: given, per sequence, an array with a row for each of them, the rows that they make. Each session
    /// makes the bits that it would make alone. Sessions are divided among threads where that pays.
    ///
    /// A session that cannot make its step (a row that does not fit it, no more steps, what an op reports) is left as it was and named in
    /// [`Stepped::failed`]; the others go on. Where the caller wants to stop, those that were not stepped yet fail with that.
    ///
    /// # Errors
    /// `E0532` where the sessions are of several functions, or the arrays do not have a row for each of them: then nothing was done.
    pub fn step_all<S: BorrowMut<Session> + Send>(cx: &mut EvalCx, sessions: &mut [S], rows: &[Array]) -> Result<Stepped> {
        fits(sessions, rows)?;
        let (n, mut failed) = (sessions.len(), vec![]);
        // The first one that makes its step tells what rows look like.
        let mut first = None;
        for (i, session) in sessions.iter_mut().enumerate() {
            let own: Vec<Array> = rows.iter().map(|x| x.row(i)).collect();
            match session.borrow_mut().step(cx, &own) {
                Ok(made) => {
                    first = Some((i, made));
                    break;
                }
                Err(e) => failed.push((i, e)),
            }
        }
        let Some((i, made)) = first else { return Ok(Stepped { rows: vec![], failed }) };
        let mut outs: Vec<Array> = made.iter().map(|row| Array::zeros(row.dtype(), &[&[n], row.shape()].concat())).collect();
        outs.iter_mut().zip(&made).for_each(|(out, row)| out.set_row(i, row));
        let parts = parts(&mut sessions[i + 1..], &mut outs, i + 1, made.iter().map(Array::len));
        failed.extend(all(cx, parts, rows));
        failed.sort_by_key(|f| f.0);
        Ok(Stepped { rows: outs, failed })
    }

    /// A step on row `i` of arrays of rows; what it makes is row `j` of the results.
    fn step_at(&mut self, cx: &mut EvalCx, rows: &[Array], i: usize, outs: &mut [Rows], j: usize) -> Result<()> {
        let row = |seq: usize| {
            let x = &rows[seq];
            let n = bytes(x).len() / x.shape()[0];
            &bytes(x)[i * n..(i + 1) * n]
        };
        let kind = |x: &Array| (x.dtype(), count(&x.shape()[1..]));
        if self.takes(rows.iter().map(kind)) && self.gives(outs.iter().map(Rows::kind)) {
            return self.step_through(cx, row, |k, made| outs[k].put(j, made));
        }
        let own: Vec<Array> = rows.iter().map(|x| x.row(i)).collect();
        self.step_checked(cx, &own, |made| outs.iter().map(Rows::kind).eq(made.iter().map(|a| (a.dtype(), a.len()))))?
            .iter()
            .zip(outs)
            .for_each(|(made, out)| out.put(j, bytes(made)));
        Ok(())
    }
}

/// Checks what is the same for all sessions.
fn fits<S: BorrowMut<Session>>(sessions: &[S], rows: &[Array]) -> Result<()> {
    let Some(first) = sessions.first() else { return Err(misfit("there are no sessions to step".into())) };
    let (steps, n) = (&first.borrow().steps, sessions.len());
    if let Some(i) = sessions.iter().position(|s| !Arc::ptr_eq(&s.borrow().steps, steps)) {
        return Err(misfit(format!("sessions 0 and {i} are of different functions")));
    }
    if rows.len() != steps.plan.streams.len() {
        return Err(misfit(format!("a step takes {} rows, got {}", steps.plan.streams.len(), rows.len())));
    }
    for (x, &(p, _)) in rows.iter().zip(&steps.plan.streams) {
        let input = &steps.inputs[p];
        if x.rank() == 0 || x.shape()[0] != n {
            let have = x.shape().first().unwrap_or(&0);
            return Err(misfit(format!("`{}` has rows for {have} sessions, not {n}", input.describe())));
        }
        admits(input, &rows_type(input, n), x)?;
    }
    Ok(())
}

/// Sessions from position `first` on in parts, each with its rows of the results, which have so many elements.
fn parts<'a, S>(sessions: &'a mut [S], outs: &'a mut [Array], first: usize, sizes: impl Iterator<Item = usize>) -> Vec<Part<'a, S>> {
    let mut rest: SmallVec<[Rows; 4]> = outs.iter_mut().zip(sizes).map(|(out, size)| Rows::after(first, out, size)).collect();
    let part = |(k, sessions): (usize, &'a mut [S])| {
        let outs = rest.iter_mut().map(|out| out.take(sessions.len())).collect();
        Part { first: first + k * PART, sessions, outs }
    };
    sessions.chunks_mut(PART).enumerate().map(part).collect()
}

/// Steps all parts; who failed, and why.
fn all<S: BorrowMut<Session> + Send>(cx: &mut EvalCx, parts: Vec<Part<S>>, rows: &[Array]) -> Vec<(usize, Box<Diagnostic>)> {
    let failed = Mutex::new(vec![]);
    let step = |part: Part<S>| {
        let mut outs = part.outs;
        let mut own = EvalCx::new();
        for (j, session) in part.sessions.iter_mut().enumerate() {
            let i = part.first + j;
            if let Err(e) = session.borrow_mut().step_at(&mut own, rows, i, &mut outs, j) {
                failed.lock().unwrap_or_else(PoisonError::into_inner).push((i, e));
            }
        }
    };
    let mut parts = parts.into_iter();
    let mut slab = 1;
    while parts.len() > 0 {
        if let Err(e) = cx.check_clock() {
            let left = parts.flat_map(|part| part.first..part.first + part.sessions.len());
            failed.lock().unwrap_or_else(PoisonError::into_inner).extend(left.map(|i| (i, e.clone())));
            break;
        }
        let (begun, now) = (Instant::now(), parts.by_ref().take(slab).collect::<Vec<_>>());
        let n = now.len();
        if slab == 1 {
            now.into_iter().for_each(step);
        } else {
            team::share(now, step);
        }
        // How long a part takes decides how many are one slab, and whether threads are woken for them.
        let each = begun.elapsed() / n as u32;
        let (most, worth) = (SLAB.as_nanos() / each.as_nanos().max(1), each * parts.len() as u32 >= WORTH);
        slab = if worth { (most as usize).max(2) } else { 1 };
    }
    failed.into_inner().unwrap_or_else(PoisonError::into_inner)
}

impl Session {
    /// True where the next step can take rows of these types and numbers of elements as they lie.
    pub(super) fn takes(&self, mut rows: impl ExactSizeIterator<Item = (DType, usize)>) -> bool {
        let Some((paused, _)) = &self.paused else { return false };
        rows.len() == self.shapes.len() && (0..).zip(rows.by_ref()).all(|(seq, kind)| kind == paused.row_kind(seq))
    }
    /// True where it makes rows of these types and numbers of elements.
    pub(super) fn gives(&self, mut outs: impl ExactSizeIterator<Item = (DType, usize)>) -> bool {
        let fits = |(kind, made): ((DType, usize), &Made)| match (*made, &self.paused) {
            (Made::Row(state), Some((paused, _))) => kind == paused.made_kind(state),
            (Made::Row(state) | Made::Before(state), _) => kind == (self.before[state].dtype(), self.before[state].len()),
        };
        outs.len() == self.steps.n_outputs && outs.by_ref().zip(&self.steps.plan.results).all(fits)
    }
    /// A step on rows that it can take, which lie anywhere; `out` gets the bytes of each result.
    pub(super) fn step_through<'a>(
        &mut self,
        cx: &mut EvalCx,
        row: impl Fn(usize) -> &'a [u8],
        mut out: impl FnMut(usize, &[u8]),
    ) -> Result<()> {
        if let Some((paused, _)) = &mut self.paused {
            (0..self.shapes.len()).for_each(|seq| paused.put_row(seq, row(seq)));
        }
        self.step_on(cx)?;
        for (k, made) in self.steps.plan.results[..self.steps.n_outputs].iter().enumerate() {
            match (*made, &self.paused) {
                (Made::Row(state), Some((paused, _))) => out(k, paused.made(state)),
                (Made::Row(state) | Made::Before(state), _) => out(k, bytes(&self.before[state])),
            }
        }
        Ok(())
    }
    /// A step whose results are to fit; it is not made where they do not.
    pub(super) fn step_checked(&mut self, cx: &mut EvalCx, rows: &[Array], fits: impl Fn(&[Array]) -> bool) -> Result<Vec<Array>> {
        let mut next = self.clone();
        let made = next.step(cx, rows)?;
        if !fits(&made) {
            return Err(misfit("memory for results does not fit these".into()));
        }
        *self = next;
        Ok(made)
    }
}
