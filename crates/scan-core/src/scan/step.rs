//! The loop, one step after the other: reads see the buffer before the step's writes.

use crate::base::{Diagnostic, Result};
use crate::eval::Walk;
use crate::ir::op::Outs;
use crate::ir::{EvalCx, Keep, Scan, State, StateId, Value};
use crate::scan::kept;
use crate::types::shape::{count, tuple};
use crate::types::{Array, Extents, Sym, Type};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::cell::Cell;

/// Runs a loop.
///
/// # Errors
/// `E0111` negative n_steps, `E0109` a sequence too short, `E0104` too few initial rows, `E0102` a state whose shape
/// changes; whatever the body reports, with the step.
pub fn run(scan: &Scan, cx: &mut EvalCx, ins: &[Array]) -> Result<Outs<Array>> {
    let n = count_steps(scan, ins)?;
    let mut buffers: Vec<Buffer> = scan.states.ids().map(|id| Buffer::new(scan, id, ins, n)).collect::<Result<_>>()?;
    let shapes = Shapes::new(scan, ins);
    kept::foresee(scan, n, |id| scan.states[id].row.dtype.size() * count(&buffers[id.0 as usize].extents(&scan.states[id], &shapes)))?;
    let at = Cell::new(0);
    let steps = timed(scan, n, cx, |cx| kept::laid_out(scan, &at, || steps(scan, cx, ins, &mut buffers, n, &at)).and_then(|ran| ran))?;
    if steps == 0 {
        learn_shapes(scan, cx, ins, &mut buffers);
    }
    let rows = scan.states.enumerate().map(|(id, state)| buffers[id.0 as usize].finish(state, steps, &shapes));
    Ok(rows.chain([Array::scalar(steps as i64)]).collect())
}

/// Runs a loop of at most n steps; the profile is told how long that took, and how many ran.
///
/// # Errors
/// Those of the run.
pub fn timed<E>(
    scan: &Scan,
    n: usize,
    cx: &mut EvalCx,
    run: impl FnOnce(&mut EvalCx) -> std::result::Result<usize, E>,
) -> std::result::Result<usize, E> {
    timed_as(|| (std::ptr::from_ref(scan).addr(), scan.name.as_deref()), n, cx, run)
}

/// The same of a loop of which a key and the name are asked for where there is a profile: what has one key is one loop of it.
///
/// # Errors
/// Those of the run.
pub fn timed_as<'a, E>(
    named: impl FnOnce() -> (usize, Option<&'a str>),
    n: usize,
    cx: &mut EvalCx,
    run: impl FnOnce(&mut EvalCx) -> std::result::Result<usize, E>,
) -> std::result::Result<usize, E> {
    let start = cx.profile.as_mut().map(|p| {
        let (key, name) = named();
        p.enter(key, name)
    });
    let ran = cx.in_loop(n, run);
    if let (Some(start), Some(profile)) = (start, &mut cx.profile) {
        profile.leave(start, *ran.as_ref().unwrap_or(&0));
    }
    ran
}

/// Runs at most n steps; how many ran.
fn steps(scan: &Scan, cx: &mut EvalCx, ins: &[Array], buffers: &mut [Buffer], n: usize, at: &Cell<usize>) -> Result<usize> {
    let walk = Walk::new(&scan.body);
    let mut slots = walk.slots();
    let mut args: Vec<Array> = vec![];
    let mut steps = 0;
    while steps < n {
        cx.check()?;
        arguments(scan, ins, buffers, steps, &mut args);
        let mut outs = walk.run(cx, &mut slots, &mut args).map_err(|e| in_step(e, scan.name.as_deref(), steps))?;
        let stop = scan.until && outs.pop().and_then(|c| c.item_f64()).is_some_and(|c| c != 0.0);
        let mut outs = outs.into_iter();
        for (id, state) in scan.states.enumerate() {
            for (&w, row) in state.writes.iter().zip(outs.by_ref()) {
                buffers[id.0 as usize].write(scan, id, steps, w, row)?;
            }
        }
        steps += 1;
        at.set(steps);
        cx.reached(steps);
        if steps == 1 && n > 1 {
            kept::foresee(scan, n, |id| buffers[id.0 as usize].row_bytes())?;
        }
        if stop {
            break;
        }
    }
    Ok(steps)
}

/// How many steps a loop runs at most.
///
/// # Errors
/// `E0111` negative n_steps, `E0109` a sequence too short.
pub fn count_steps(scan: &Scan, ins: &[Array]) -> Result<usize> {
    let n = ins[Scan::N_STEPS].item_i64().unwrap_or(0);
    let Ok(n) = usize::try_from(n) else {
        let text = format!("n_steps is {n}: a loop cannot run a negative number of steps");
        return Err(Diagnostic::new(crate::base::Kind::Scan, "E0111", text).help("rs.maximum(n, 0) runs no step where n is negative"));
    };
    for (id, seq) in scan.seqs.enumerate() {
        let len = ins[scan.seq_input(id)].shape()[0];
        if len < n {
            let name = seq.name.as_deref().unwrap_or("?");
            return Err(Diagnostic::new(
                crate::base::Kind::Scan,
                "E0109",
                format!("sequence `{name}` is shorter than the loop: it has rows for {len} of {n} steps"),
            )
            .help(format!(
                "ask for at most {len} (n_steps, or the longest of lengths), or leave both out: then the shortest sequence decides"
            )));
        }
    }
    Ok(n)
}

fn arguments(scan: &Scan, ins: &[Array], buffers: &[Buffer], step: usize, args: &mut Vec<Array>) {
    args.push(Array::scalar(step as i64));
    for (id, seq) in scan.seqs.enumerate() {
        let x = &ins[scan.seq_input(id)];
        args.push(x.row(if seq.reverse { x.shape()[0] - 1 - step } else { step }));
    }
    for (state, buffer) in scan.states.iter().zip(buffers) {
        args.extend(state.reads.iter().map(|r| buffer.read(step + r)));
    }
    args.extend(scan.captured.ids().map(|id| ins[scan.captured_input(id)].clone()));
}

/// Extents of rows that no step made and no type tells: those of a step on the initial rows, and on zeros where there are none, if one can
/// run unnoticed.
fn learn_shapes(scan: &Scan, cx: &mut EvalCx, ins: &[Array], buffers: &mut [Buffer]) {
    let told = |b: &Buffer| b.shape.is_some() || b.row.dims.iter().all(|d| d.value().is_some());
    if buffers.iter().all(told) || scan.body.whole().impure {
        return;
    }
    let mut args = vec![Array::scalar(0i64)];
    args.extend(scan.seqs.ids().map(|id| &ins[scan.seq_input(id)]).map(|x| Array::zeros(x.dtype(), &x.shape()[1..])));
    for (state, buffer) in scan.states.iter().zip(buffers.iter()) {
        args.extend(state.reads.iter().map(|&row| buffer.read(row)));
    }
    args.extend(scan.captured.ids().map(|id| ins[scan.captured_input(id)].clone()));
    let walk = Walk::new(&scan.body);
    let Ok(outs) = walk.run(cx, &mut walk.slots(), &mut args) else { return };
    for (id, buffer) in scan.states.ids().zip(buffers) {
        let row = scan.write_results(id).next().map(|at| SmallVec::from_slice(outs[at].shape()));
        buffer.shape = buffer.shape.take().or(row);
    }
}

/// Adds the loop and the step to an error from the body.
pub fn in_step(e: Box<Diagnostic>, name: Option<&str>, step: usize) -> Box<Diagnostic> {
    if matches!(e.kind, crate::base::Kind::Interrupted | crate::base::Kind::Callback) {
        return e;
    }
    let of = match name {
        Some(name) => format!(" of loop `{name}`"),
        None if e.notes.iter().any(|note| note.starts_with("in step ")) => " of the loop around it".to_string(),
        None => String::new(),
    };
    e.note(format!("in step {step}{of} (steps count from 0)"))
}

/// So many dead elements are worth dropping.
const MANY: usize = 4096;

/// The rows of one state that can still be read or returned.
struct Buffer {
    /// Rows `base ..`, in one array.
    rows: Option<Array>,
    /// Index of the first row held.
    base: usize,
    /// Extents of a row, once known.
    shape: Option<Extents>,
    /// Rows below `written − keep` and below the step are dropped.
    keep: Option<usize>,
    init: usize,
    row: Type,
}

impl Buffer {
    fn new(scan: &Scan, id: StateId, ins: &[Array], n: usize) -> Result<Buffer> {
        let state = &scan.states[id];
        let keep = if let Keep::Last(k) = state.keep { Some(k) } else { None };
        let mut buffer = Buffer { rows: None, base: 0, shape: None, keep, init: 0, row: state.row.clone() };
        if let Some(at) = scan.init_input(id) {
            let init = &ins[at];
            let have = init.shape()[0];
            let need = if n == 0 { 0 } else { state.span() };
            if have < need {
                let name = state.name.as_deref().unwrap_or("?");
                return Err(few_rows(name, have, need));
            }
            buffer.shape = Some(SmallVec::from_slice(&init.shape()[1..]));
            buffer.init = have;
            buffer.rows = Some(init.clone());
        } else if !state.reads.is_empty() {
            buffer.shape = Some(Shapes::new(scan, ins).of(&state.row));
        }
        Ok(buffer)
    }

    fn read(&self, row: usize) -> Array {
        match &self.rows {
            Some(rows) if row - self.base < rows.shape()[0] => rows.row(row - self.base),
            _ => Array::zeros(self.row.dtype, self.shape.as_deref().unwrap_or(&[])),
        }
    }

    fn write(&mut self, scan: &Scan, id: StateId, step: usize, offset: usize, row: Array) -> Result<()> {
        let shape = self.shape.get_or_insert_with(|| SmallVec::from_slice(row.shape()));
        if shape[..] != *row.shape() {
            return Err(changed_shape(scan, id, step, shape, row.shape()));
        }
        let dtype = self.row.dtype;
        let rows = self.rows.get_or_insert_with(|| Array::stack(&[], dtype, row.shape()));
        let at = step + offset - self.base;
        if rows.shape()[0] <= at {
            rows.resize_rows(at + 1);
        }
        rows.set_row(at, &row);
        self.forget(step);
        Ok(())
    }

    /// Drops rows that no step reads any more, in large portions so that it costs little.
    fn forget(&mut self, step: usize) {
        let (Some(keep), Some(rows)) = (self.keep, &self.rows) else { return };
        let held = rows.shape()[0];
        let dead = (step + 1).min((self.base + held).saturating_sub(keep)).saturating_sub(self.base);
        let portion = (MANY / rows.len().max(1)).clamp(1, 64);
        if dead >= portion && 2 * dead >= held {
            self.rows = Some(rows.rows(dead, held));
            self.base += dead;
        }
    }

    /// Extents of a row, as far as they are known.
    fn extents(&self, state: &State, shapes: &Shapes) -> Extents {
        self.shape.clone().unwrap_or_else(|| shapes.of(&state.row))
    }
    /// Bytes of a row; 0 where no row was made.
    fn row_bytes(&self) -> usize {
        self.shape.as_ref().map_or(0, |shape| count(shape).saturating_mul(self.row.dtype.size()))
    }

    fn finish(&mut self, state: &State, steps: usize, shapes: &Shapes) -> Array {
        let shape = self.extents(state, shapes);
        let mut rows = self.rows.take().unwrap_or_else(|| Array::stack(&[], state.row.dtype, &shape));
        match self.keep {
            None => {
                let all = (steps + state.span()).max(self.init);
                if steps == 0 && state.init && self.init < state.span() {
                    return rows;
                }
                if rows.shape()[0] < all {
                    rows.resize_rows(all);
                }
                rows
            }
            Some(k) => {
                let end = (steps + state.span() - self.base).min(rows.shape()[0]);
                rows.rows(end - k.min(steps).min(end), end)
            }
        }
    }
}

fn changed_shape(scan: &Scan, id: StateId, step: usize, old: &[usize], new: &[usize]) -> Box<Diagnostic> {
    let state = &scan.states[id];
    let (kind, help) = if state.reads.is_empty() { ("output", ONE_SHAPE) } else { ("state", KEEPS) };
    let what = match state.name.as_deref() {
        Some(name) => format!("{kind} `{name}`"),
        None if help == ONE_SHAPE => "what the loop returns".to_string(),
        None => "a state".to_string(),
    };
    let value: Value = scan.write_values(id)[0];
    let span = scan.body.node_of(value).map(|n| n.span).unwrap_or_default();
    let error = Diagnostic::new(crate::base::Kind::ScanType, "E0102", format!("{what} changes shape at step {step}"))
        .label(span, format!("step {step} gives shape {}", tuple(new)))
        .note(format!("its rows before have shape {}", tuple(old)))
        .help(help);
    if help == KEEPS && old.iter().zip(new).any(|(a, b)| a < b) { grows(error) } else { error }
}

const KEEPS: &str = "a state keeps its shape from one step to the next: give the initial state the shape that the step returns";
const ONE_SHAPE: &str = "all rows that a loop returns have one shape: reduce or pad (rs.pad) what the step makes";

/// Tells what to do about a state that grows.
pub fn grows(error: Box<Diagnostic>) -> Box<Diagnostic> {
    GROWS.iter().fold(error, |error, help| error.help(*help))
}

const GROWS: [&str; 3] = [
    "what grows is a state of its largest extent, of which each step writes a part: `x.at[t].set(…)`",
    "t, the number of the step, is a sequence: over=rs.arange(n)",
    "after the k elements that it starts with: x.at[k + t]; those not written yet count in sums and means",
];

/// Extents of rows that no step has made: from the symbols of what is there.
struct Shapes(FxHashMap<Sym, i64>);

impl Shapes {
    fn new(scan: &Scan, ins: &[Array]) -> Shapes {
        let mut known = FxHashMap::default();
        let params = scan.body.params();
        let mut bind = |ty: &Type, shape: &[usize]| {
            for (dim, &n) in ty.dims.iter().zip(shape) {
                if let Some(sym) = dim.as_sym() {
                    known.insert(sym, n as i64);
                }
            }
        };
        for id in scan.seqs.ids() {
            bind(scan.body.ty(params[scan.seq_param(id)]), &ins[scan.seq_input(id)].shape()[1..]);
        }
        for id in scan.captured.ids() {
            bind(scan.body.ty(params[scan.captured_param(id)]), ins[scan.captured_input(id)].shape());
        }
        for (id, state) in scan.states.enumerate() {
            if let Some(at) = scan.init_input(id) {
                bind(&state.row, &ins[at].shape()[1..]);
            }
        }
        Shapes(known)
    }

    /// Unknown extents count as 0.
    fn of(&self, ty: &Type) -> Extents {
        ty.dims.iter().map(|d| d.eval(&|s| self.0.get(&s).copied()).and_then(|n| usize::try_from(n).ok()).unwrap_or(0)).collect()
    }
}

/// The error of initial rows that are fewer than the taps of a state need.
pub fn few_rows(name: &str, have: usize, need: usize) -> Box<Diagnostic> {
    let text = format!("the initial state of `{name}` has {have} rows, but its taps need {need}");
    let e = Diagnostic::new(crate::base::Kind::Scan, "E0104", text);
    e.note(format!("the oldest tap is -{need}; row 0 is the value {need} steps before the first"))
}
