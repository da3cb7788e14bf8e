//! A function: inputs, outputs, updates of shared variables.

use crate::bail;
use crate::base::{Diagnostic, Id, Kind, Result};
use crate::exec::explain::{self, LoopInfo};
use crate::exec::native::Engine;
use crate::exec::place::{self, Placed};
use crate::exec::program::Program;
use crate::exec::session::{Session, Steps};
use crate::expr::Var;
use crate::expr::extract::{Extract, substitute};
use crate::ir::print::print_plan;
use crate::ir::{EvalCx, Graph, Value};
use crate::lower::stepwise::Stepwise;
use crate::rewrite::{Options, Report};
use crate::types::device::Crossed;
use crate::types::shape::tuple;
use crate::types::watch::Watch;
use crate::types::{Array, Shared, memory};
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard, OnceLock, RwLock};

/// What a function is made of.
///
/// ```
/// use scan_core::prelude::*;
///
/// let (x, w) = (scalar("x"), Var::new_shared(Array::scalar(1.0), "w"));
/// let spec = FunctionSpec { inputs: vec![x.clone()], updates: vec![(w.clone(), &w * &x)], ..FunctionSpec::default() };
/// Function::new(spec)?.run(&[Array::scalar(3.0)])?;
/// assert_eq!(w.eval()?, Array::scalar(3.0));
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
#[derive(Clone, Default)]
pub struct FunctionSpec {
    /// Its name in prints.
    pub name: Option<String>,
    /// What the caller gives; any expressions.
    pub inputs: Vec<Var>,
    /// What the caller gets.
    pub outputs: Vec<Var>,
    /// Shared leaves with their values after the call, computed from the values before it.
    pub updates: Vec<(Var, Var)>,
    /// Replaced expressions.
    pub givens: Vec<(Var, Var)>,
    /// What it runs on; `None`: as the environment says.
    pub engine: Option<Engine>,
    /// The passes that optimise it.
    pub passes: Options,
    /// Results stay on the device that it runs on, if it runs on one.
    pub stays: bool,
}

/// A callable function. Calls may come from many threads at once; those that update a variable follow each other.
///
/// ```
/// use scan_core::prelude::*;
///
/// let x = vector("x");
/// let f = function(&[&x], &[&x.sum(), &(&x * 2.0)]).compile()?;
/// let out = f.call(&mut EvalCx::new(), &[Array::vector(&[1.0, 2.0])])?;
/// assert_eq!(out, [Array::scalar(3.0), Array::vector(&[2.0, 4.0])]);
/// assert_eq!(f.run(&[Array::scalar(1.0)]).unwrap_err().code, "E0504");
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
pub struct Function {
    program: Program,
    inputs: Vec<Var>,
    /// Pairs of inputs and axes of which types tell that they are equally long.
    equal: Vec<[(usize, usize); 2]>,
    shared: Vec<Shared>,
    /// What stands for them in expressions.
    leaves: Vec<Var>,
    updated: Vec<Shared>,
    /// What stands for these.
    updated_leaves: Vec<Var>,
    n_outputs: usize,
    passes: Options,
    stays: bool,
    /// Bytes that crossed in the last call, to devices and back.
    crossed: [AtomicU64; 2],
    /// Its step, made where it is first asked for.
    steps: OnceLock<Result<Arc<Steps>>>,
}

/// Held for reading while a call takes its snapshot of shared values, for writing while one commits.
static COMMIT: RwLock<()> = RwLock::new(());

impl Function {
    /// Compiles.
    ///
    /// # Errors
    /// `E0501` for an output that depends on an input not given; `E0502` for two updates of one variable; `E0503` for an
    /// update of another dtype or rank; `E0505` for an input given twice; `E0115` for an update of something not shared;
    /// `E0509` where the environment names a pass that does not exist; the first error of an expression that failed.
    pub fn new(spec: FunctionSpec) -> Result<Function> {
        let pairs = spec.updates.iter().chain(&spec.givens).flat_map(|(a, b)| [a, b]);
        Var::all_ok(spec.inputs.iter().chain(&spec.outputs).chain(pairs))?;
        let updated = updated(&spec.updates)?;
        let updated_leaves = spec.updates.iter().map(|u| u.0.clone()).collect();
        let values: Vec<Var> = spec.outputs.iter().chain(spec.updates.iter().map(|u| &u.1)).cloned().collect();
        let values = if spec.givens.is_empty() { values } else { substitute(&values, &spec.givens)? };
        let mut extract = Extract::new(false);
        for input in &spec.inputs {
            if extract.get(input).is_some() {
                bail!(Value, "E0505", "input `{}` is given twice", input.describe());
            }
            extract.bind(input);
        }
        let results: Vec<Value> = values.iter().map(|v| extract.value(v)).collect::<Result<_>>()?;
        let leaves: Vec<Var> = extract.leaves.iter().map(|(v, _)| v).filter(|v| v.as_shared().is_some()).cloned().collect();
        let shared = leaves.iter().filter_map(|v| v.as_shared().cloned()).collect();
        let mut graph = extract.graph;
        graph.set_results(results);
        let passes = spec.passes.clone().with_environment()?;
        let program = Program::new(Arc::new(graph), &passes, spec.engine.unwrap_or_else(Engine::from_env))?;
        let equal = equal_extents(&spec.inputs);
        let n_outputs = spec.outputs.len();
        let (passes, stays, inputs) = (spec.passes, spec.stays, spec.inputs);
        let (crossed, steps) = (Default::default(), OnceLock::new());
        Ok(Function { program, inputs, equal, shared, leaves, updated, updated_leaves, n_outputs, passes, stays, crossed, steps })
    }

    /// Runs. Shared variables are read at the start and all written at the end; an error writes none.
    ///
    /// # Errors
    /// `E0504` where an argument does not fit its input; `E0392` where there is no memory for a result; whatever the ops report.
    pub fn call(&self, cx: &mut EvalCx, args: &[Array]) -> Result<Vec<Array>> {
        self.call_if(cx, args, &|_| Ok(()))
    }

    /// As a call; `accept` sees the outputs before shared variables are written, and an error of its writes none.
    ///
    /// # Errors
    /// As a call; what `accept` returns.
    pub fn call_if(&self, cx: &mut EvalCx, args: &[Array], accept: &dyn Fn(&mut [Array]) -> Result<()>) -> Result<Vec<Array>> {
        self.check(args)?;
        let watch = cx.profile.is_some().then(Watch::start);
        let crossed = Crossed::start();
        let outs = memory::given(|| "the call".to_string(), || self.run_with(cx, args, accept))?;
        let crossed = crossed.since();
        self.crossed.iter().zip(crossed).for_each(|(all, n)| all.store(n, Ordering::Relaxed));
        if let (Some(watch), Some(profile)) = (watch, &mut cx.profile) {
            profile.peak = profile.peak.max(watch.peak());
            profile.crossed.iter_mut().zip(crossed).for_each(|(all, n)| *all += n);
        }
        Ok(outs)
    }

    fn run_with(&self, cx: &mut EvalCx, args: &[Array], accept: &dyn Fn(&mut [Array]) -> Result<()>) -> Result<Vec<Array>> {
        let _locks = self.lock_updates();
        let all = || {
            let mut all = Vec::with_capacity(args.len() + self.shared.len());
            all.extend_from_slice(args);
            let _snapshot = COMMIT.read().unwrap_or_else(|e| e.into_inner());
            all.extend(self.shared.iter().map(Shared::get));
            all
        };
        let mut values = self.program.run(cx, &all)?;
        // What could still fail is done before anything is written.
        let after = values.split_off(self.n_outputs);
        let after = self.updated.iter().zip(after).map(|(shared, value)| shared.fit(value)).collect::<Result<Vec<Array>>>()?;
        match self.program.engine() {
            Engine::Device(device) if self.stays => {
                for value in &mut values {
                    *value = value.moved(&device)?;
                }
            }
            _ => values.iter().for_each(Array::fetch),
        }
        accept(&mut values)?;
        self.write(after);
        Ok(values)
    }
    /// Holds back other calls that update the same variables.
    fn lock_updates(&self) -> Vec<MutexGuard<'_, ()>> {
        let mut order: Vec<&Shared> = self.updated.iter().collect();
        order.sort_by_key(|s| s.id());
        order.into_iter().map(Shared::lock_updates).collect()
    }
    /// Writes all that it updates, which nobody sees in part; nothing where there are no values.
    fn write(&self, values: Vec<Array>) {
        if !values.is_empty() {
            let _commit = COMMIT.write().unwrap_or_else(|e| e.into_inner());
            self.updated.iter().zip(values).for_each(|(s, value)| s.set(value));
        }
    }

    /// Its step, which sessions share.
    ///
    /// # Errors
    /// `E0531` where a result needs all rows.
    pub fn steps(&self) -> Result<&Arc<Steps>> {
        let made = self.steps.get_or_init(|| {
            // What goes step by step is told of the graph that the user wrote: it does not depend on passes.
            Stepwise::check(self.program.graph(), self.inputs.len())?;
            Steps::new(self.program.optimised(), &self.inputs, self.n_outputs, self.program.engine()).map(Arc::new)
        });
        made.as_ref().map_err(Clone::clone)
    }
    /// A session that begins with these arguments: per input its value, the rows before the first step of what is given by rows, or nothing
    /// where it is not needed. Shared variables are read now.
    ///
    /// # Errors
    /// `E0531` where a result needs all rows; `E0532` for an argument that is missing, or too much; `E0504` where one does not fit; what is
    /// wrong with the initial rows; what the ops report that are computed once.
    pub fn session(&self, cx: &mut EvalCx, given: &[Option<Array>]) -> Result<Session> {
        let steps = self.steps()?.clone();
        Session::begin(steps, cx, given, snapshot(self.shared.iter()))
    }
    /// Writes the shared variables that the function updates, all at once, as a call with the rows that a session was given would have left
    /// them.
    ///
    /// # Errors
    /// `E0532` for a session of another function.
    pub fn commit(&self, session: &Session) -> Result<()> {
        if !self.steps().is_ok_and(|own| Arc::ptr_eq(own, session.steps())) {
            bail!(Value, "E0532", "this is a session of another function");
        }
        let _locks = self.lock_updates();
        let values = self.updated.iter().zip(session.updates()).map(|(shared, value)| shared.fit(value)).collect::<Result<_>>()?;
        self.write(values);
        Ok(())
    }

    /// What runs: the graph after the passes, with the same parameters and results.
    pub fn optimised(&self) -> &Graph {
        self.program.optimised()
    }
    /// What the passes did.
    pub fn report(&self) -> &Report {
        self.program.report()
    }
    /// Its graph as the user wrote it: parameters are the inputs, then the shared variables; results the outputs, then the updates.
    pub fn graph(&self) -> &Arc<Graph> {
        self.program.graph()
    }
    /// What runs, as text: the optimised graph in which loops and groups of nodes stand for what was made of them for the types of the
    /// last calls, kernels in their text form and lists of parts with the memory that each reads and writes.
    ///
    /// ```
    /// use scan_core::prelude::*;
    ///
    /// let out = scan().named("halves").steps(3).init("h", 1.0).run(|s| s.get("h") * 0.5);
    /// let f = function(&[], &[&out.rows("h")]).engine(Engine::Vm).passes(PassOptions::none()).compile()?;
    /// f.run(&[])?;
    /// assert!(f.plan("f").contains(": f64 = mul r"));
    /// # Ok::<(), Box<Diagnostic>>(())
    /// ```
    pub fn plan(&self, name: &str) -> String {
        print_plan(self.program.plan(), name)
    }
    /// What became of its loops, outer ones first.
    pub fn loops(&self) -> Vec<LoopInfo> {
        explain::loops(self.program.plan())
    }
    /// The device that it runs on, where it is not the processor.
    pub fn device(&self) -> Option<&'static str> {
        self.program.device()
    }
    /// Bytes of arrays that went to devices in the last call that did not fail, and that came back.
    pub fn crossed(&self) -> [u64; 2] {
        self.crossed.each_ref().map(|n| n.load(Ordering::Relaxed))
    }
    /// Where the parts of its plan run but for its loops, which tell for themselves; none without a device.
    pub fn places(&self) -> Vec<Placed> {
        if self.device().is_some() { place::places(self.program.plan()) } else { vec![] }
    }
    /// What the caller gives.
    pub fn inputs(&self) -> &[Var] {
        &self.inputs
    }
    /// The shared variables that it reads.
    pub fn shared(&self) -> &[Shared] {
        &self.shared
    }
    /// The expression of each of them that the function was made of.
    pub fn shared_leaves(&self) -> &[Var] {
        &self.leaves
    }
    /// The shared variables that it updates, as expressions, in the order of its graph's last results.
    pub fn updated_leaves(&self) -> &[Var] {
        &self.updated_leaves
    }
    /// The passes that it was asked to be optimised with.
    pub fn passes(&self) -> &Options {
        &self.passes
    }
    /// How many outputs a call gives.
    pub fn n_outputs(&self) -> usize {
        self.n_outputs
    }
    /// True where a call neither waits for other calls nor runs code of users.
    pub fn stands_alone(&self) -> bool {
        self.updated.is_empty() && !self.graph().whole().user_ops
    }
    /// Positions of inputs on which nothing depends.
    pub fn unused_inputs(&self) -> Vec<usize> {
        let (uses, params) = (self.graph().uses(), self.graph().params());
        (0..self.inputs.len()).filter(|&i| uses[params[i].idx()] == 0).collect()
    }

    fn check(&self, args: &[Array]) -> Result<()> {
        if args.len() != self.inputs.len() {
            bail!(Type, "E0504", "the function takes {} arguments, got {}", self.inputs.len(), args.len());
        }
        for (input, arg) in self.inputs.iter().zip(args) {
            if !input.ty().admits(arg.dtype(), arg.shape()) {
                let got = format!("{} of shape {}", arg.dtype(), tuple(arg.shape()));
                return Err(Diagnostic::new(Kind::Type, "E0504", format!("input `{}` takes {}, got {got}", input.describe(), input.ty()))
                    .label(input.span(), "the input is made here"));
            }
        }
        for &[(i, a), (j, b)] in &self.equal {
            let (first, second, n, m) = (&self.inputs[i], &self.inputs[j], args[i].shape()[a], args[j].shape()[b]);
            if n != m {
                let (first_name, second_name) = (first.describe(), second.describe());
                let text = format!("axis {a} of `{first_name}` and axis {b} of `{second_name}` are one extent, got {n} and {m}");
                return Err(Diagnostic::new(Kind::Type, "E0504", text).label(second.span(), "the input is made here"));
            }
        }
        Ok(())
    }
}

/// The values of shared variables at one moment, between the commits of calls.
pub fn snapshot<'s>(shared: impl Iterator<Item = &'s Shared>) -> Vec<Array> {
    let _snapshot = COMMIT.read().unwrap_or_else(|e| e.into_inner());
    shared.map(Shared::get).collect()
}

/// Each extent of the inputs that has the symbol of an earlier one, with that one.
fn equal_extents(inputs: &[Var]) -> Vec<[(usize, usize); 2]> {
    let mut first = FxHashMap::default();
    let mut equal = vec![];
    for (i, input) in inputs.iter().enumerate() {
        for (axis, sym) in input.ty().dims.iter().enumerate().filter_map(|(axis, d)| Some((axis, d.as_sym()?))) {
            match first.entry(sym) {
                Entry::Vacant(free) => _ = free.insert((i, axis)),
                Entry::Occupied(before) => equal.push([*before.get(), (i, axis)]),
            }
        }
    }
    equal
}

fn updated(updates: &[(Var, Var)]) -> Result<Vec<Shared>> {
    let mut out: Vec<Shared> = vec![];
    for (leaf, value) in updates {
        let Some(shared) = leaf.as_shared() else {
            bail!(Value, "E0115", "`{}` is updated, but it is not a shared variable", leaf.describe());
        };
        if out.contains(shared) {
            bail!(Value, "E0502", "the shared variable `{}` is updated twice", leaf.describe());
        }
        let (old, new) = (leaf.ty(), value.ty());
        if old.dtype != new.dtype || old.rank() != new.rank() || old.dims.iter().zip(&new.dims).any(|(a, b)| a.conflicts(b)) {
            let text = format!("the update of `{}` has type {new}, the variable {old}", leaf.describe());
            let error = Diagnostic::new(Kind::Type, "E0503", text)
                .label(value.span(), "the new value is made here")
                .label(leaf.span(), "the variable is made here");
            let differs = old.dtype != new.dtype;
            return Err(if differs { error.help(format!("rs.cast(value, \"{}\") has the variable's dtype", old.dtype)) } else { error });
        }
        out.push(shared.clone());
    }
    Ok(out)
}
