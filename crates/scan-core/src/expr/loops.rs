//! Building a loop from a user's step: placeholders first, then what the step made of them.

use super::Var;
use super::capture::capture;
use super::check;
use super::extract::{Extract, fold, substitute};
use crate::bail;
use crate::base::{IdxVec, Result, Span};
use crate::ir::op::*;
use crate::ir::scan::NonSeq;
use crate::ir::{Keep, Offsets, Op, Scan, Seq, State, Tag, Value};
use crate::scalar::ElemOp;
use crate::scan::taps::{sequence_cuts, slice_name, state_offsets};
use crate::types::{Array, DType, Type};
use std::sync::Arc;

/// How a loop runs.
///
/// ```
/// use scan_core::prelude::*;
///
/// let options = LoopOptions { n_steps: Some(Var::int(-1)), ..LoopOptions::default() };
/// assert_eq!(LoopBuilder::new(options).err().unwrap().code, "E0111");
/// ```
#[derive(Clone, Default)]
pub struct LoopOptions {
    /// Its name in prints and errors.
    pub name: Option<String>,
    /// Number of steps (integer scalar); without it the shortest sequence tells, or the condition of `until` alone.
    pub n_steps: Option<Var>,
    /// Sequences are read from the end.
    pub go_backwards: bool,
    /// The gradient covers the last so many steps.
    pub truncate: Option<usize>,
    /// Captured shared variables must have been passed as non_sequences.
    pub strict: bool,
    /// Where the loop was called.
    pub span: Span,
}

/// A loop under construction. With a constant `n_steps` of 1 there is no loop: the step sees the real slices.
///
/// ```
/// use scan_core::prelude::*;
///
/// let mut step = LoopBuilder::new(LoopOptions { n_steps: Some(Var::int(4)), ..LoopOptions::default() })?;
/// let x = step.state(&Var::number(1.0), &[-1], Some("x"))?.remove(0);
/// let out = step.finish(&[(Some(0), x * 2.0)], &[], None)?;
/// assert_eq!(out.outputs[0].eval()?, Array::vector(&[2.0, 4.0, 8.0, 16.0]));
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
pub struct LoopBuilder {
    options: LoopOptions,
    n_steps: Option<Var>,
    unrolled: bool,
    step: Var,
    seqs: Vec<SeqSlot>,
    states: Vec<StateSlot>,
    passed: Vec<Var>,
    /// Values that the loop takes as they are when it begins.
    fixed: Vec<Var>,
    /// Without a loop: what the step sees, and the slices behind it.
    held: Vec<(Var, Var)>,
}

struct SeqSlot {
    rows: Var,
    leaf: Var,
    name: Arc<str>,
}

pub(super) struct StateSlot {
    pub init: Var,
    pub leaves: Vec<Var>,
    pub reads: Offsets,
    pub span: usize,
    pub name: Arc<str>,
    pub weak: bool,
}

/// What a loop gives.
///
/// ```
/// use scan_core::prelude::*;
///
/// let mut step = LoopBuilder::new(LoopOptions { n_steps: Some(Var::int(4)), ..LoopOptions::default() })?;
/// let x = step.state(&Var::number(1.0), &[-1], Some("x"))?.remove(0);
/// let out = step.finish(&[(Some(0), x * 2.0)], &[], None)?;
/// assert_eq!(out.steps.eval()?, Array::scalar(4i64));
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
pub struct LoopResult {
    /// One per output of the step, the rows of all steps stacked (initial rows are not among them).
    pub outputs: Vec<Var>,
    /// Leaves of the shared variables updated in the loop, with their values after it.
    pub updates: Vec<(Var, Var)>,
    /// Number of steps that ran (i64 scalar).
    pub steps: Var,
}

/// More steps than any loop runs; few enough that offsets can be added.
const UNLIMITED: i64 = 1 << 62;

impl LoopBuilder {
    /// Starts a loop.
    ///
    /// # Errors
    /// `E0111` for a constant negative n_steps, `E0117` for one that is not an integer scalar.
    pub fn new(options: LoopOptions) -> Result<LoopBuilder> {
        Var::all_ok(&options.n_steps)?;
        let step = Var::input(Type::scalar(DType::I64), Some("t"), options.span);
        let n_steps = options.n_steps.as_ref().map(|n| check::n_steps(n, options.span)).transpose()?;
        let constant = n_steps.as_ref().and_then(fold).and_then(|a| a.item_i64());
        if let Some(n) = constant.filter(|n| *n < 0) {
            return Err(check::negative_steps(n, options.span));
        }
        let unrolled = constant == Some(1);
        Ok(LoopBuilder { options, n_steps, unrolled, step, seqs: vec![], states: vec![], passed: vec![], fixed: vec![], held: vec![] })
    }

    /// Adds a sequence; returns its slices of one step, in the order of the taps (`k` is row t+k).
    ///
    /// # Errors
    /// `E0118` where it has no axis to scan over, `E0116` without taps.
    pub fn sequence(&mut self, x: &Var, taps: &[i64], name: Option<&str>) -> Result<Vec<Var>> {
        Var::all_ok([x])?;
        let name: Arc<str> = name.map(Into::into).unwrap_or_else(|| base_name(x, "x"));
        if x.ty().rank() == 0 {
            return Err(check::no_rows(&name, x, self.options.span));
        }
        self.passed.push(x.clone());
        let cuts = sequence_cuts(taps, &name).map_err(|e| e.at(self.options.span))?;
        let mut slices = vec![];
        for (cut, &tap) in cuts.iter().zip(taps) {
            let rows = self.rows(x, cut.skip, cut.drop)?;
            let leaf = if self.unrolled {
                let at = if self.options.go_backwards { -1 } else { 0 };
                self.hold(&rows, at)?
            } else {
                Var::input(rows.ty().row(), Some(&slice_name(&name, tap)), x.span())
            };
            slices.push(leaf.clone());
            self.seqs.push(SeqSlot { rows, leaf, name: name.clone() });
        }
        Ok(slices)
    }

    /// Adds a state with its initial rows (with the one tap −1: the row itself, without an axis of rows); returns what
    /// the step sees of it, in the order of the taps.
    ///
    /// # Errors
    /// `E0112` for a tap >= 0, `E0104` where rows are known to be missing, `E0116` for a tap listed twice.
    pub fn state(&mut self, initial: &Var, taps: &[i64], name: Option<&str>) -> Result<Vec<Var>> {
        Var::all_ok([initial])?;
        let name: Arc<str> = name.map(Into::into).unwrap_or_else(|| base_name(initial, "state"));
        let (span, offsets) = state_offsets(taps, &name).map_err(|e| e.at(self.options.span))?;
        let init = if taps == [-1] {
            self.apply(Expand { axes: vec![0] }, std::slice::from_ref(initial))?
        } else {
            check::initial_rows(initial, span, &name, self.options.span)?;
            let exact = initial.ty().dims[0].value() == Some(span);
            if exact { initial.clone() } else { self.apply(Index { pattern: ":e".into() }, &[initial.clone(), int(span as i64)])? }
        };
        let mut leaves = vec![];
        for (&offset, &tap) in offsets.iter().zip(taps) {
            leaves.push(if self.unrolled {
                self.hold(&init, offset as i64)?
            } else {
                Var::input(init.ty().row(), Some(&slice_name(&name, tap)), initial.span())
            });
        }
        self.states.push(StateSlot { init, leaves: leaves.clone(), reads: offsets.into_iter().collect(), span, name, weak: false });
        Ok(leaves)
    }

    /// Lets the initial rows of the last state take the dtype that the step gives: for Python scalars, whose dtype nobody chose.
    pub fn weak(&mut self) {
        if let Some(state) = self.states.last_mut() {
            state.weak = true;
        }
    }

    /// Declares a value as passed explicitly (`strict`).
    pub fn pass(&mut self, var: &Var) {
        self.passed.push(var.clone());
    }

    /// As [`LoopBuilder::pass`], for a value that the loop takes as it is when it begins, though the step may update what it was
    /// computed from. It is an input of the loop, also where the step does not use it, unless it is a constant or shared.
    pub fn pass_fixed(&mut self, var: &Var) {
        self.pass(var);
        self.fixed.push(var.clone());
    }

    /// The index of the step (i64 scalar), for use in the step.
    pub fn step_index(&self) -> Var {
        if self.unrolled { int(0) } else { self.step.clone() }
    }

    /// Ends the loop. `outputs` in the user's order: each with the position of its state (order of [`LoopBuilder::state`]
    /// calls), or `None` for one that the step does not read back. `updates`: shared leaf and its value after the step.
    ///
    /// # Errors
    /// `E0101` rank, `E0102` shape, `E0103` dtype of a state changes; `E0108` until is no bool scalar; `E0110` nothing tells the
    /// number of steps; `E0113` strict; `E0115` update of something that is not shared.
    pub fn finish(mut self, outputs: &[(Option<usize>, Var)], updates: &[(Var, Var)], until: Option<&Var>) -> Result<LoopResult> {
        let parts = outputs.iter().map(|o| &o.1).chain(updates.iter().flat_map(|(leaf, value)| [leaf, value])).chain(until);
        Var::all_ok(parts.chain(&self.passed))?;
        let mut outputs = outputs.to_vec();
        let mut updates = updates.to_vec();
        let mut until = until.cloned();
        check::updates(&updates, self.options.span)?;
        if let Some(cond) = &until {
            check::until(cond, self.options.span)?;
        }
        self.widen(&mut outputs, &mut updates, &mut until)?;
        for (at, out) in &outputs {
            if let Some(at) = at {
                check::state(&self.states[*at], out, self.options.span)?;
            }
        }
        if self.unrolled {
            return self.straight(&outputs, updates);
        }
        let n_steps = self.steps(until.is_some())?;
        Assembly::new(&self, &outputs, &updates, until.as_ref())?.finish(&self, n_steps, &outputs, &updates)
    }

    /// No loop: one row per output. The slices are let go: outside, they are expressions like any other.
    fn straight(&self, outputs: &[(Option<usize>, Var)], updates: Vec<(Var, Var)>) -> Result<LoopResult> {
        if !self.seqs.iter().all(|s| s.rows.ty().dims[0].value() != Some(0)) {
            bail!(Scan, "E0109", "a sequence has no rows, but n_steps is 1");
        }
        let all: Vec<Var> = outputs.iter().map(|o| &o.1).chain(updates.iter().map(|u| &u.1)).cloned().collect();
        let mut free = substitute(&all, &self.held)?;
        let after = free.split_off(outputs.len());
        let outputs = free.iter().map(|v| self.apply(Expand { axes: vec![0] }, std::slice::from_ref(v))).collect::<Result<_>>()?;
        let updates = updates.into_iter().zip(after).map(|((leaf, _), value)| (leaf, value)).collect();
        Ok(LoopResult { outputs, updates, steps: int(1) })
    }

    /// Gives weak states the dtype that the step makes of them, until nothing changes.
    fn widen(&mut self, outputs: &mut [(Option<usize>, Var)], updates: &mut [(Var, Var)], until: &mut Option<Var>) -> Result<()> {
        for _ in 0..=2 * outputs.len() {
            let narrow = outputs.iter().find_map(|(at, out)| {
                let state = &self.states[(*at)?];
                let dtype = state.init.ty().dtype.promote(out.ty().dtype);
                (state.weak && dtype != state.init.ty().dtype).then_some((at.unwrap_or(0), dtype))
            });
            let Some((at, dtype)) = narrow else { return Ok(()) };
            let init = self.apply(Cast { dtype }, &[self.states[at].init.clone()])?;
            let fresh = |leaf: &Var| match self.unrolled {
                true => self.apply(Cast { dtype }, std::slice::from_ref(leaf)),
                false => Ok(Var::input(leaf.ty().with_dtype(dtype), leaf.name().as_deref(), leaf.span())),
            };
            let replace: Vec<(Var, Var)> = self.states[at].leaves.iter().map(|l| Ok((l.clone(), fresh(l)?))).collect::<Result<_>>()?;
            self.states[at].init = init;
            self.states[at].leaves = replace.iter().map(|r| r.1.clone()).collect();
            let all: Vec<Var> = outputs.iter().map(|o| &o.1).chain(updates.iter().map(|u| &u.1)).chain(until.iter()).cloned().collect();
            let mut new = substitute(&all, &replace)?.into_iter();
            outputs.iter_mut().for_each(|o| o.1 = new.next().unwrap_or_else(|| o.1.clone()));
            updates.iter_mut().for_each(|u| u.1 = new.next().unwrap_or_else(|| u.1.clone()));
            *until = new.next();
        }
        Ok(())
    }

    /// The number of steps at most: what was asked for, or the length of the shortest sequence. A loop that ends by a condition needs none.
    fn steps(&self, ends: bool) -> Result<Var> {
        if let Some(n) = &self.n_steps {
            return Ok(n.clone());
        }
        let mut lengths: Vec<&Var> = vec![];
        for seq in &self.seqs {
            if !lengths.iter().any(|r| r.ty().dims[0] == seq.rows.ty().dims[0]) {
                lengths.push(&seq.rows);
            }
        }
        let mut n: Option<Var> = None;
        for rows in lengths {
            let len = self.apply(DimOf { axis: 0 }, std::slice::from_ref(rows))?;
            n = Some(match n {
                Some(n) => self.apply(Op::Elem(ElemOp::Minimum), &[n, len])?,
                None => len,
            });
        }
        match n {
            None if ends => Ok(int(UNLIMITED)),
            n => n.ok_or_else(|| check::no_steps(self.options.span)),
        }
    }

    fn rows(&self, x: &Var, skip: usize, drop: usize) -> Result<Var> {
        let bound = |n: usize, sign: i64| int(sign * n as i64);
        match (skip, drop) {
            (0, 0) => Ok(x.clone()),
            (s, 0) => self.apply(Index { pattern: "s:".into() }, &[x.clone(), bound(s, 1)]),
            (0, e) => self.apply(Index { pattern: ":e".into() }, &[x.clone(), bound(e, -1)]),
            (s, e) => self.apply(Index { pattern: "s:e".into() }, &[x.clone(), bound(s, 1), bound(e, -1)]),
        }
    }

    /// A real slice as one value, so that loops inside the step do not compute it again with updated shared variables.
    fn hold(&mut self, rows: &Var, at: i64) -> Result<Var> {
        let row = self.apply(Index { pattern: "i".into() }, &[rows.clone(), int(at)])?;
        let held = self.apply(Hold {}, std::slice::from_ref(&row))?;
        self.held.push((held.clone(), row));
        Ok(held)
    }

    fn apply(&self, op: impl Into<Op>, ins: &[Var]) -> Result<Var> {
        Var::apply1(op, ins, self.options.span)
    }
}

fn int(n: i64) -> Var {
    Var::constant(Array::scalar(n), Span::NONE)
}

fn base_name(x: &Var, otherwise: &str) -> Arc<str> {
    x.name().unwrap_or_else(|| otherwise.into())
}

/// The body and its captured values.
struct Assembly {
    extract: Extract,
    captured: Vec<Var>,
    results: Vec<Value>,
    until: bool,
}

impl Assembly {
    fn new(builder: &LoopBuilder, outputs: &[(Option<usize>, Var)], updates: &[(Var, Var)], until: Option<&Var>) -> Result<Assembly> {
        let mut extract = Extract::new(false);
        extract.bind(&builder.step);
        for seq in &builder.seqs {
            extract.bind(&seq.leaf);
        }
        for (at, _) in outputs {
            if let Some(at) = at {
                for leaf in &builder.states[*at].leaves {
                    extract.bind(leaf);
                }
            }
        }
        for (leaf, _) in updates {
            extract.bind(leaf);
        }
        let all: Vec<Var> = outputs.iter().map(|o| &o.1).chain(updates.iter().map(|u| &u.1)).chain(until).cloned().collect();
        let captured = capture(&mut extract, &all, &builder.step, &builder.fixed);
        check::strict(builder.options.strict, &captured, &builder.passed, builder.options.span)?;
        let results = all.iter().map(|v| extract.value(v)).collect::<Result<_>>()?;
        Ok(Assembly { extract, captured, results, until: until.is_some() })
    }

    fn finish(self, builder: &LoopBuilder, n_steps: Var, outputs: &[(Option<usize>, Var)], updates: &[(Var, Var)]) -> Result<LoopResult> {
        let mut body = self.extract.graph;
        body.set_results(self.results);
        let states: Vec<(State, Option<Var>)> = outputs
            .iter()
            .map(|(at, out)| Ok(at.map_or_else(|| free_state(out), |at| tied_state(&builder.states[at]))))
            .chain(updates.iter().map(|(leaf, _)| shared_state(builder, leaf)))
            .collect::<Result<_>>()?;
        let seq = |s: &SeqSlot| Seq { reverse: builder.options.go_backwards, name: Some(s.name.clone()) };
        let mut ins = vec![n_steps];
        ins.extend(builder.seqs.iter().map(|s| s.rows.clone()));
        ins.extend(states.iter().filter_map(|s| s.1.clone()));
        ins.extend(self.captured.iter().cloned());
        let scan = Scan {
            name: builder.options.name.as_deref().map(Into::into),
            body,
            seqs: builder.seqs.iter().map(seq).collect(),
            captured: self.captured.iter().map(|v| NonSeq { name: v.name() }).collect(),
            states: states.iter().map(|s| s.0.clone()).collect::<IdxVec<_, _>>(),
            until: self.until,
            truncate: builder.options.truncate,
        };
        let buffers = Var::apply(Op::Scan(Arc::new(scan)), &ins, builder.options.span)?;
        let (rows, finals) = buffers.split_at(outputs.len());
        let outputs = rows.iter().zip(&states).map(|(b, s)| builder.rows(b, s.0.span(), 0)).collect::<Result<_>>()?;
        let mut after = vec![];
        for (((leaf, _), last), state) in updates.iter().zip(finals).zip(&states[rows.len()..]) {
            let init = state.1.clone().unwrap_or_else(|| last.clone());
            after.push((leaf.clone(), value_after(&init, last, builder.options.span)?));
        }
        Ok(LoopResult { outputs, updates: after, steps: buffers[buffers.len() - 1].clone() })
    }
}

/// The last row of a state that keeps one; the initial row where no step ran.
fn value_after(init: &Var, last: &Var, span: Span) -> Result<Var> {
    let all = Var::apply1(Join { axis: 0 }, &[init.clone(), last.clone()], span)?;
    Var::apply1(Index { pattern: "i".into() }, &[all, int(-1)], span)
}

/// Leaves of the shared variables that a loop updates, with their values after it: those of [`LoopResult::updates`], made anew of
/// any output of the loop. Nothing for what no loop makes.
///
/// ```
/// use scan_core::prelude::*;
///
/// let w = Var::new_shared(Array::scalar(1.0), "w");
/// let out = scan().steps(3).run(|s| {
///     s.update(&w, &w * 2.0);
///     s.output("w", &w * 1.0);
/// });
/// let steps = out.steps();
/// assert_eq!(updates_of(&steps)?[0].0, w);
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
///
/// # Errors
/// Never for well-formed expressions.
pub fn updates_of(var: &Var) -> Result<Vec<(Var, Var)>> {
    let Some((Op::Scan(scan), ins, _)) = var.owner() else { return Ok(vec![]) };
    let buffers = var.siblings();
    let mut after = vec![];
    for (id, _) in scan.states.enumerate().filter(|(_, state)| state.tag == Tag::Shared) {
        let Some(init) = scan.init_input(id).map(|i| &ins[i]) else { continue };
        if let Some((Op::Expand(_), [leaf], _)) = init.owner()
            && leaf.as_shared().is_some()
        {
            after.push((leaf.clone(), value_after(init, &buffers[scan.state_output(id)], var.span())?));
        }
    }
    Ok(after)
}

fn free_state(out: &Var) -> (State, Option<Var>) {
    let writes = Offsets::from_slice(&[0]);
    let state =
        State { row: out.ty().clone(), init: false, reads: Offsets::new(), writes, keep: Keep::All, tag: Tag::Output, name: out.name() };
    (state, None)
}

fn tied_state(slot: &StateSlot) -> (State, Option<Var>) {
    let state = State {
        row: slot.init.ty().row(),
        init: true,
        reads: slot.reads.clone(),
        writes: Offsets::from_slice(&[slot.span]),
        keep: Keep::All,
        tag: Tag::Output,
        name: Some(slot.name.clone()),
    };
    (state, Some(slot.init.clone()))
}

fn shared_state(builder: &LoopBuilder, leaf: &Var) -> Result<(State, Option<Var>)> {
    let init = builder.apply(Expand { axes: vec![0] }, std::slice::from_ref(leaf))?;
    let state = State {
        row: leaf.ty().clone(),
        init: true,
        reads: Offsets::from_slice(&[0]),
        writes: Offsets::from_slice(&[1]),
        keep: Keep::Last(1),
        tag: Tag::Shared,
        name: leaf.name(),
    };
    Ok((state, Some(init)))
}
