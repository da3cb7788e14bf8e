//! The step of a function, compiled once for all of its sessions; what it takes.

use crate::base::{Diagnostic, Id, Kind, Result};
use crate::eval::Walk;
use crate::exec::native::{Engine, NativeLoop, plan, planner};
use crate::expr::Var;
use crate::ir::op::NativeOp;
use crate::ir::{EvalCx, Graph, Op, Outs};
use crate::lower::stepwise::{Limited, Stepwise};
use crate::scan::step;
use crate::types::shape::tuple;
use crate::types::{Array, DType, Dim, Type};
use std::sync::Arc;

/// The step of a function, compiled once for all of its sessions.
///
/// ```
/// use scan_core::prelude::*;
///
/// let (u, h0) = (vector("u"), scalar("h0"));
/// let h = scan().over("u", &u).init("h", &h0).run(|s| 0.5 * s.get("h") + s.get("u")).rows("h");
/// let f = function(&[&u, &h0], &[&h]).compile()?;
/// assert_eq!(f.steps()?.states(), ["h"]);
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
pub struct Steps {
    pub(super) plan: Stepwise,
    before: Walk<Arc<Graph>>,
    /// The loop; `None` where the evaluator runs it.
    pub(super) native: Option<NativeLoop>,
    pub(super) inputs: Vec<Var>,
    pub(super) n_outputs: usize,
    /// Per parameter, whether a session needs its value when it begins.
    needed: Vec<bool>,
}

impl Steps {
    /// The step of a graph whose first parameters are the inputs of a function and whose first results are its outputs.
    ///
    /// # Errors
    /// `E0531` where a result needs all rows; an internal error where the graph is not consistent.
    pub(crate) fn new(graph: &Graph, inputs: &[Var], n_outputs: usize, engine: Engine) -> Result<Steps> {
        let plan_of = Stepwise::new(graph, inputs.len())?;
        let engine = engine.here();
        let types = output_types(&plan_of)?;
        let native = || NativeLoop::alone(plan_of.scan.clone(), types, planner(engine));
        let native = (engine != Engine::Eval).then(native);
        let uses = plan_of.before.uses();
        let needed = plan_of.before.params().iter().map(|p| uses[p.idx()] > 0).collect();
        let before = if engine == Engine::Eval { plan_of.before.clone() } else { plan(&plan_of.before, engine)? };
        let (before, inputs) = (Walk::new(Arc::new(before)), inputs.to_vec());
        Ok(Steps { plan: plan_of, before, native, inputs, n_outputs, needed })
    }

    /// Positions of the inputs that are given row by row, in the order in which a step takes them, and how many of their rows come before the
    /// first step.
    pub fn streams(&self) -> &[(usize, usize)] {
        &self.plan.streams
    }
    /// Positions of the other inputs that a session needs when it begins.
    pub fn fixed(&self) -> impl Iterator<Item = usize> {
        (0..self.inputs.len()).filter(|&p| self.needed[p] && !self.plan.streams.iter().any(|s| s.0 == p))
    }
    /// The names of the states that are kept from one step to the next.
    pub fn states(&self) -> Vec<String> {
        let mut names: Vec<String> = vec![];
        for (k, state) in self.plan.scan.states.iter().take(self.plan.kept).enumerate() {
            let name = state.name.as_deref().map_or_else(|| format!("state_{k}"), str::to_string);
            let taken = |name: &String| names.contains(name);
            let free = if taken(&name) { (1..).map(|i| format!("{name}_{i}")).find(|n| !taken(n)) } else { None };
            names.push(free.unwrap_or(name));
        }
        names
    }
    /// What the step is, as text.
    pub fn text(&self) -> String {
        whole(&self.plan).map_or_else(|e| e.title, |g| g.to_text("step"))
    }

    /// Arguments as the graph of what is computed before takes them, and the rows of sequences that come after those that it takes.
    pub(super) fn arguments(&self, given: &[Option<Array>], shared: Vec<Array>) -> Result<(Vec<Array>, Vec<Option<Array>>)> {
        if given.len() != self.inputs.len() {
            return Err(misfit(format!("the function takes {} arguments, got {}", self.inputs.len(), given.len())));
        }
        let (mut args, mut more) = (vec![], vec![None; self.plan.streams.len()]);
        for (p, (input, value)) in self.inputs.iter().zip(given).enumerate() {
            let name = input.describe();
            let stream = self.plan.streams.iter().position(|s| s.0 == p);
            let arg = match (value, stream) {
                (Some(value), None) => {
                    admits(input, input.ty(), value)?;
                    value.clone()
                }
                (Some(value), Some(k)) => {
                    let n = self.plan.streams[k].1;
                    admits(input, &rows_type(input, value.shape().first().copied().unwrap_or(0)), value)?;
                    let have = value.shape()[0];
                    if have < n {
                        return Err(misfit(format!("a session begins with {n} rows of `{name}`, got {have}")).label(input.span(), ""));
                    }
                    more[k] = Some(value.rows(n, have));
                    value.rows(0, n)
                }
                (None, None) if self.needed[p] => {
                    return Err(misfit(format!("a session needs `{name}`")).label(input.span(), "the input is made here"));
                }
                (None, Some(k)) if self.plan.streams[k].1 > 0 => {
                    let n = self.plan.streams[k].1;
                    let e = misfit(format!("a session needs the first {n} rows of `{name}`: a step reads rows that came before"));
                    return Err(e.label(input.span(), "the input is made here"));
                }
                (None, Some(_)) if self.needed[p] => {
                    let extents = input.ty().dims.iter().skip(1).map(|d| d.value().unwrap_or(0));
                    Array::zeros(input.ty().dtype, &std::iter::once(0).chain(extents).collect::<Vec<_>>())
                }
                _ => Array::scalar(false),
            };
            args.push(arg);
        }
        args.extend(shared);
        Ok((args, more))
    }

    /// What is computed before the first step.
    pub(super) fn begin(&self, cx: &mut EvalCx, args: &mut Vec<Array>) -> Result<Vec<Array>> {
        self.before.run(cx, &mut self.before.slots(), args)
    }
    /// Runs n steps.
    pub(super) fn run(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Vec<Array>> {
        let outs = match &self.native {
            Some(native) => native.eval(cx, ins)?,
            None => step::run(&self.plan.scan, cx, ins)?,
        };
        Ok(outs.into_iter().collect())
    }
    /// The most steps, given the arguments and what is computed before.
    ///
    /// # Errors
    /// `E0532` where loops make different numbers of steps.
    pub(super) fn limit(&self, given: &[Option<Array>], before: &[Array]) -> Result<Option<usize>> {
        let steps = |a: &Array| a.item_i64().map(|n| usize::try_from(n).unwrap_or(0));
        let (mut own, mut rows): (Option<usize>, Option<usize>) = (None, None);
        for limit in &self.plan.limits {
            let found = match *limit {
                Limited::Param(p) => given.get(p).and_then(|a| steps(a.as_ref()?)),
                Limited::Extent(p, axis) => given.get(p).and_then(|a| a.as_ref()?.shape().get(axis).copied()),
                Limited::Steps(k) => steps(&before[k]),
                Limited::Rows(k) => {
                    rows = before[k].shape().first().copied().map(|n| rows.map_or(n, |m| m.min(n)));
                    None
                }
            };
            if let (Some(n), Some(m)) = (own, found.filter(|n| Some(*n) != own)) {
                return Err(misfit(format!("a session has loops of one number of steps, these have {n} and {m}")));
            }
            own = own.or(found);
        }
        Ok([own, rows].into_iter().flatten().min())
    }
}

/// The loop alone, as a function of its inputs.
fn whole(plan: &Stepwise) -> Result<Graph> {
    let (mut g, scan) = (Graph::new(), &plan.scan);
    let mut ins = vec![g.param(Type::scalar(DType::I64), Some("n"))];
    let types = scan.seqs.ids().map(|id| scan.body.ty(scan.body.params()[scan.seq_param(id)]));
    let inits = scan.states.iter().filter(|s| s.init).map(|s| &s.row);
    for row in types.chain(inits) {
        ins.push(g.param(row.rows(Dim::fresh()), None));
    }
    for id in scan.captured.ids() {
        let p = scan.body.params()[scan.captured_param(id)];
        ins.push(g.param(scan.body.ty(p).clone(), scan.body.name(p).map(|n| &**n)));
    }
    let outs = g.apply(Op::Scan(scan.clone()), &ins)?;
    g.set_results(outs.to_vec());
    Ok(g)
}

fn output_types(plan: &Stepwise) -> Result<Outs<Type>> {
    let g = whole(plan)?;
    Ok(g.results().iter().map(|&v| g.ty(v).clone()).collect())
}

/// The type of so many rows of an input.
pub(super) fn rows_type(input: &Var, n: usize) -> Type {
    input.ty().row().rows(Dim::known(n))
}

/// The error of what does not fit a session.
pub(super) fn misfit(text: String) -> Box<Diagnostic> {
    Diagnostic::new(Kind::Value, "E0532", text)
}

pub(super) fn admits(input: &Var, ty: &Type, value: &Array) -> Result<()> {
    if ty.admits(value.dtype(), value.shape()) {
        return Ok(());
    }
    let got = format!("{} of shape {}", value.dtype(), tuple(value.shape()));
    let e = Diagnostic::new(Kind::Type, "E0504", format!("input `{}` takes {ty}, got {got}", input.describe()));
    Err(e.label(input.span(), "the input is made here"))
}
