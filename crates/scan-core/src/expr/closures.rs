//! Loops written as closures: `scan().steps(&n).init("x", &x0).run(|s| r * s.get("x"))`. What is wrong with the loop or its step is kept,
//! as of operators, and told by whatever ends an expression of it.

use super::operators::Operand;
use super::sugar::here;
use super::{LoopBuilder, LoopOptions, LoopResult, Var};
use crate::base::{Diagnostic, Kind, Result, Span};
use crate::types::DType;

/// A loop: what it reads, its states, how it runs. [`scan`] begins one, [`Loop::run`] gives it its step.
///
/// ```
/// use scan_core::prelude::*;
///
/// // x[t] = (x[t-2] + x[t-1]) · u[t]
/// let (u, x) = (constant(Array::vector(&[1.0, 2.0, 1.0])), constant(Array::vector(&[1.0, 1.0])));
/// let out = scan().over("u", &u).init_taps("x", &x, &[-2, -1]).run(|s| (s.tap("x", -2) + s.tap("x", -1)) * s.get("u"));
/// assert_eq!(out.rows("x").eval()?, Array::vector(&[2.0, 6.0, 8.0]));
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
pub struct Loop {
    options: LoopOptions,
    parts: Vec<Part>,
    passed: Vec<Var>,
}

/// A sequence or a state.
struct Part {
    name: String,
    x: Var,
    taps: Vec<i64>,
    is_state: bool,
    /// A number of Rust, whose dtype nobody chose.
    weak: bool,
}

/// A loop without parts. Errors show this line.
///
/// ```
/// use scan_core::prelude::*;
///
/// let x = scan().steps(10).init("x", 1.0).run(|s| s.get("x") * 2.0).last("x");
/// assert_eq!(x.eval()?, Array::scalar(1024.0));
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
#[track_caller]
pub fn scan() -> Loop {
    Loop { options: LoopOptions { span: here(), ..LoopOptions::default() }, parts: vec![], passed: vec![] }
}

impl Loop {
    /// Its name in prints and errors.
    pub fn named(mut self, name: &str) -> Loop {
        self.options.name = Some(name.into());
        self
    }
    /// The number of steps, an integer scalar. Without it the shortest sequence tells, or [`Step::until`] alone.
    pub fn steps(mut self, n: impl Operand) -> Loop {
        self.options.n_steps = Some(n.beside(DType::I64, self.options.span));
        self
    }
    /// A sequence, of which step t sees row t.
    pub fn over(self, name: &str, x: &Var) -> Loop {
        self.over_taps(name, x, &[0])
    }
    /// A sequence, of which step t sees the rows t + k for each tap k: there are steps for what has all of them.
    pub fn over_taps(self, name: &str, x: &Var, taps: &[i64]) -> Loop {
        self.with(Part { name: name.into(), x: x.clone(), taps: taps.into(), is_state: false, weak: false })
    }
    /// A state and its value before the first step. A number takes the dtype that the step gives.
    pub fn init(self, name: &str, x: impl Operand) -> Loop {
        let (weak, x) = (x.dtype().is_none(), x.beside(DType::Bool, self.options.span));
        self.with(Part { name: name.into(), x, taps: vec![-1], is_state: true, weak })
    }
    /// A state that looks back further: `rows` has its rows before the first step, the oldest first; a tap −k is the row k steps back.
    pub fn init_taps(self, name: &str, rows: &Var, taps: &[i64]) -> Loop {
        self.with(Part { name: name.into(), x: rows.clone(), taps: taps.into(), is_state: true, weak: false })
    }
    fn with(mut self, part: Part) -> Loop {
        self.parts.push(part);
        self
    }
    /// Sequences are read from the end.
    pub fn go_backwards(mut self) -> Loop {
        self.options.go_backwards = true;
        self
    }
    /// The gradient covers the last so many steps.
    pub fn truncate(mut self, steps: usize) -> Loop {
        self.options.truncate = Some(steps);
        self
    }
    /// Shared variables that the step uses must have been passed ([`Loop::pass`]), else `E0113`.
    pub fn strict(mut self) -> Loop {
        self.options.strict = true;
        self
    }
    /// Declares a value that the step uses ([`Loop::strict`]).
    pub fn pass(mut self, x: &Var) -> Loop {
        self.passed.push(x.clone());
        self
    }

    /// Runs the closure once, on placeholders, and makes the loop of what it returns: the next values of the states in the order of
    /// [`Loop::init`], as one expression, a tuple, an array or a vector; or `()` where [`Step::next`] said them.
    ///
    /// Errors are kept: those of [`LoopBuilder::finish`], `E0105` for a state without a next value, `E0130` for a name that the loop does
    /// not have.
    pub fn run<N: NextStates>(self, step: impl FnOnce(&mut Step) -> N) -> Scanned {
        let span = self.options.span;
        let made = self.made(|s| step(s).into_states());
        Scanned { made, span }
    }

    fn made(self, run: impl FnOnce(&mut Step) -> Option<Vec<Var>>) -> Result<Made> {
        let span = self.options.span;
        let mut builder = LoopBuilder::new(self.options)?;
        let mut slots: Vec<Slot> = vec![];
        for Part { name, x, taps, is_state, weak } in self.parts {
            if slots.iter().any(|s| s.name == name) {
                return Err(names(format!("the loop has two parts called `{name}`"), &slots, span));
            }
            let seen = if is_state { builder.state(&x, &taps, Some(&name))? } else { builder.sequence(&x, &taps, Some(&name))? };
            if weak {
                builder.weak();
            }
            slots.push(Slot { name, taps, seen, is_state, next: None });
        }
        self.passed.iter().for_each(|v| builder.pass(v));
        let index = builder.step_index();
        let mut step = Step { slots, index, outputs: vec![], until: None, updates: vec![], wrong: None, span };
        let states = run(&mut step);
        step.finish(states, builder)
    }
}

/// What a step sees and says. [`Loop::run`] hands it to the closure.
///
/// ```
/// use scan_core::prelude::*;
///
/// let u = constant(Array::vector(&[1.0, 2.0, 3.0, 4.0]));
/// let out = scan().over("u", &u).init("sum", 0.0).run(|s| {
///     let sum = s.get("sum") + s.get("u");
///     s.output("half", &sum / 2.0);
///     s.until(sum.gt(5.0));
///     sum
/// });
/// assert_eq!(out.rows("half").eval()?, Array::vector(&[0.5, 1.5, 3.0]));
/// assert_eq!(out.steps().eval()?, Array::scalar(3i64));
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
pub struct Step {
    slots: Vec<Slot>,
    index: Var,
    outputs: Vec<(String, Var)>,
    until: Option<Var>,
    updates: Vec<(Var, Var)>,
    wrong: Option<Box<Diagnostic>>,
    span: Span,
}

struct Slot {
    name: String,
    taps: Vec<i64>,
    seen: Vec<Var>,
    is_state: bool,
    next: Option<Var>,
}

impl Step {
    /// The row of a sequence at this step (tap 0), or the value of a state before it (tap −1).
    #[track_caller]
    pub fn get(&self, name: &str) -> Var {
        self.read(name, None, here())
    }
    /// A row of a sequence or state by its tap.
    #[track_caller]
    pub fn tap(&self, name: &str, tap: i64) -> Var {
        self.read(name, Some(tap), here())
    }
    fn read(&self, name: &str, tap: Option<i64>, span: Span) -> Var {
        let Some(slot) = self.slots.iter().find(|s| s.name == name) else {
            return Var::failed(names(format!("the step reads `{name}`, which is no part of the loop"), &self.slots, span), span);
        };
        let tap = tap.unwrap_or(if slot.is_state { -1 } else { 0 });
        match slot.taps.iter().position(|t| *t == tap) {
            Some(at) => slot.seen[at].clone(),
            None => Var::failed(names(format!("`{name}` has the taps {:?}, not {tap}", slot.taps), &self.slots, span), span),
        }
    }
    /// The number of the step (int64 scalar), from 0.
    pub fn index(&self) -> Var {
        self.index.clone()
    }
    /// Says the next value of a state.
    #[track_caller]
    pub fn next(&mut self, name: &str, value: impl Operand) {
        let span = here();
        match self.slots.iter_mut().find(|s| s.is_state && s.name == name) {
            Some(slot) => slot.next = Some(value.beside(slot.seen.first().map_or(DType::F64, |v| v.ty().dtype), span)),
            None => self.fail(format!("the step gives `{name}`, which is no state of the loop"), span),
        }
    }
    /// Keeps a value of every step that the step does not read back.
    #[track_caller]
    pub fn output(&mut self, name: &str, value: impl Operand) {
        let span = here();
        if self.outputs.iter().any(|(other, _)| other == name) || self.slots.iter().any(|s| s.is_state && s.name == name) {
            return self.fail(format!("the step gives `{name}` twice"), span);
        }
        self.outputs.push((name.into(), value.beside(DType::F64, span)));
    }
    /// Ends the loop after the step in which a condition (a scalar) holds; of several any one.
    #[track_caller]
    pub fn until(&mut self, condition: Var) {
        self.until = Some(match self.until.take() {
            Some(before) => before | condition,
            None => condition,
        });
    }
    /// Gives a shared variable another value, which the next step sees. Functions write it where they take [`Scanned::updates`].
    #[track_caller]
    pub fn update(&mut self, shared: &Var, value: impl Operand) {
        self.updates.push((shared.clone(), value.beside(shared.ty().dtype, here())));
    }
    fn fail(&mut self, title: String, span: Span) {
        if self.wrong.is_none() {
            self.wrong = Some(names(title, &self.slots, span));
        }
    }

    fn finish(self, returned: Option<Vec<Var>>, builder: LoopBuilder) -> Result<Made> {
        if let Some(error) = self.wrong {
            return Err(error);
        }
        let mut states: Vec<Slot> = self.slots.into_iter().filter(|s| s.is_state).collect();
        if let Some(values) = returned {
            if values.len() != states.len() {
                let (got, all) = (values.len(), states.iter().map(|s| format!("`{}`", s.name)).collect::<Vec<_>>().join(", "));
                let title = format!("the step returned {got} values for the {} states of the loop: {all}", states.len());
                return Err(Diagnostic::new(Kind::Scan, "E0105", title).at(self.span));
            }
            states.iter_mut().zip(values).for_each(|(slot, value)| slot.next = Some(value));
        }
        let mut outputs = vec![];
        let mut names = vec![];
        for (at, Slot { name, next, .. }) in states.into_iter().enumerate() {
            let Some(next) = next else {
                let title = format!("the step gives no next value of the state `{name}`");
                return Err(Diagnostic::new(Kind::Scan, "E0105", title).at(self.span));
            };
            outputs.push((Some(at), next));
            names.push(name);
        }
        for (name, value) in self.outputs {
            outputs.push((None, value));
            names.push(name);
        }
        Ok(Made { result: builder.finish(&outputs, &self.updates, self.until.as_ref())?, names })
    }
}

/// A name that does not fit, with those that there are.
fn names(title: String, slots: &[Slot], span: Span) -> Box<Diagnostic> {
    let all: Vec<String> = slots.iter().map(|s| format!("`{}`", s.name)).collect();
    let note = if all.is_empty() { "the loop has no parts".to_string() } else { format!("the loop has {}", all.join(", ")) };
    Diagnostic::new(Kind::Scan, "E0130", title).at(span).note(note)
}

/// What the closure of a loop may return: next values of all states, in the order of [`Loop::init`], or nothing.
///
/// ```
/// use scan_core::prelude::*;
///
/// // Fibonacci's numbers, as a pair.
/// let out = scan().steps(5).init("a", 0).init("b", 1).run(|s| (s.get("b"), s.get("a") + s.get("b")));
/// assert_eq!(out.rows("a").eval()?, Array::vector(&[1i64, 1, 2, 3, 5]));
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
pub trait NextStates {
    /// The values; `None` where the step said them by name.
    fn into_states(self) -> Option<Vec<Var>>;
}

impl NextStates for () {
    fn into_states(self) -> Option<Vec<Var>> {
        None
    }
}
impl NextStates for Var {
    fn into_states(self) -> Option<Vec<Var>> {
        Some(vec![self])
    }
}
impl NextStates for Vec<Var> {
    fn into_states(self) -> Option<Vec<Var>> {
        Some(self)
    }
}
impl<const N: usize> NextStates for [Var; N] {
    fn into_states(self) -> Option<Vec<Var>> {
        Some(self.into())
    }
}
impl NextStates for (Var, Var) {
    fn into_states(self) -> Option<Vec<Var>> {
        Some(vec![self.0, self.1])
    }
}
impl NextStates for (Var, Var, Var) {
    fn into_states(self) -> Option<Vec<Var>> {
        Some(vec![self.0, self.1, self.2])
    }
}

struct Made {
    result: LoopResult,
    names: Vec<String>,
}

/// A loop with its step: its results by name. Where something was wrong with it each of them is a failed expression.
///
/// ```
/// use scan_core::prelude::*;
///
/// let out = scan().steps(3).init("x", 1.0).run(|s| s.get("x") * 2.0).ok()?;
/// assert_eq!(out.rows("x").eval()?, Array::vector(&[2.0, 4.0, 8.0]));
/// assert_eq!(out.last("x").eval()?, Array::scalar(8.0));
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
pub struct Scanned {
    made: Result<Made>,
    span: Span,
}

impl Scanned {
    /// Itself, or what is wrong with the loop.
    ///
    /// # Errors
    /// That.
    pub fn ok(self) -> Result<Scanned> {
        match self.made {
            Ok(_) => Ok(self),
            Err(error) => Err(error),
        }
    }
    /// The values of a state or output after each step, stacked along a new first axis. Initial rows are not among them.
    #[track_caller]
    pub fn rows(&self, name: &str) -> Var {
        let span = here();
        self.of(|made| match made.names.iter().position(|n| n == name) {
            Some(at) => Ok(made.result.outputs[at].clone()),
            None => {
                let all: Vec<String> = made.names.iter().map(|n| format!("`{n}`")).collect();
                let error = Diagnostic::new(Kind::Scan, "E0130", format!("`{name}` is no result of the loop"));
                Err(error.at(span).note(format!("its results are {}", all.join(", "))))
            }
        })
    }
    /// The value of a state or output after the last step. A call in which no step runs fails (`E0202`).
    #[track_caller]
    pub fn last(&self, name: &str) -> Var {
        self.rows(name).row(-1)
    }
    /// How many steps ran (int64 scalar).
    pub fn steps(&self) -> Var {
        self.of(|made| Ok(made.result.steps.clone()))
    }
    /// The shared variables that the step updates, with their values after the loop: for [`crate::prelude::FunctionSpec::updates`].
    pub fn updates(&self) -> Vec<(Var, Var)> {
        match &self.made {
            Ok(made) => made.result.updates.clone(),
            Err(error) => vec![(Var::failed(error.clone(), self.span), Var::failed(error.clone(), self.span))],
        }
    }
    fn of(&self, found: impl FnOnce(&Made) -> Result<Var>) -> Var {
        let found = self.made.as_ref().map_err(Clone::clone).and_then(found);
        Var::deferred(found, self.span)
    }
}
