//! A graph as it runs: optimised and planned; as it was written, where that decides.

use super::fit::Fit;
use super::native::{self, Engine};
use crate::backend::cpu::{Isa, team};
use crate::bail;
use crate::base::{Diagnostic, Result};
use crate::eval::{self, Walk};
use crate::ir::{EvalCx, Graph};
use crate::rewrite::{Options, Report, optimise};
use crate::types::Array;
use std::sync::{Arc, OnceLock};

/// A graph with what runs it.
///
/// Passes keep results, and the error that is reported first is a result, too. Extents that do not fit, and errors, therefore go to the graph
/// as it was written: it is run again where the optimised one failed, and runs in its place where extents are not certain to fit. So what
/// a call gives, or reports, does not depend on what passes moved or left out.
pub struct Program {
    graph: Arc<Graph>,
    optimised: Arc<Graph>,
    report: Report,
    walk: Walk<Arc<Graph>>,
    engine: Engine,
    fit: Fit,
    /// The graph as it was written, planned when it is first needed.
    as_written: OnceLock<Result<Walk<Arc<Graph>>>>,
    /// Evaluating once more would be noticed.
    has_effects: bool,
}

/// So many nodes and steps take the evaluator about a second.
const EVALUATED: u64 = 1 << 21;

impl Program {
    /// Optimises and plans.
    ///
    /// # Errors
    /// `E0511` where the environment asks for what the machine has not; an internal error where the graph is not consistent.
    pub fn new(graph: Arc<Graph>, passes: &Options, engine: Engine) -> Result<Program> {
        let (optimised, report) = optimise(graph.clone(), passes)?;
        let walk = Walk::new(plan(&optimised, engine)?);
        let (fit, has_effects) = (Fit::new(&graph), graph.whole().user_ops);
        Ok(Program { graph, optimised, report, walk, engine, fit, as_written: OnceLock::new(), has_effects })
    }

    /// The results for arguments, which are asked for again where the first run does not decide.
    ///
    /// # Errors
    /// What the ops report, at the user's line, in the order in which the graph was written.
    pub fn run(&self, cx: &mut EvalCx, args: &dyn Fn() -> Vec<Array>) -> Result<Vec<Array>> {
        let mut given = args();
        if !self.fit.holds(&self.graph, &given) {
            return self.run_as_written(cx, given);
        }
        match self.walk.run(cx, &mut self.walk.slots(), &mut given) {
            Err(e) if self.decides_again(&e) => self.run_as_written(cx, args()),
            done => done,
        }
    }

    /// By the evaluator, which takes node after node; where that would take long, by the engine: the same values, and the same error unless
    /// one step has several.
    #[cold]
    fn run_as_written(&self, cx: &mut EvalCx, mut args: Vec<Array>) -> Result<Vec<Array>> {
        if !self.has_effects
            && let Some(done) = cx.within(EVALUATED, |cx| eval::run(&self.graph, cx, &args))
        {
            return done;
        }
        let walk = self.as_written.get_or_init(|| plan(&self.graph, self.engine).map(Walk::new)).as_ref().map_err(Clone::clone)?;
        walk.run(cx, &mut walk.slots(), &mut args)
    }

    /// True for an error that passes may have brought forward or put off.
    fn decides_again(&self, e: &Diagnostic) -> bool {
        !self.has_effects && e.of_values()
    }

    /// The device that it runs on, where it is not the processor.
    pub fn device(&self) -> Option<&'static str> {
        if let Engine::Device(device) = self.engine { Some(device.0.name()) } else { None }
    }
    /// What it runs on.
    pub fn engine(&self) -> Engine {
        self.engine
    }
    /// What runs: the graph after the passes, with the same parameters and results.
    pub fn optimised(&self) -> &Graph {
        &self.optimised
    }
    /// What the passes did.
    pub fn report(&self) -> &Report {
        &self.report
    }
    /// The graph as it was written.
    pub fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }
    /// The plan of the optimised graph.
    pub fn plan(&self) -> &Graph {
        self.walk.graph()
    }
}

fn plan(graph: &Arc<Graph>, engine: Engine) -> Result<Arc<Graph>> {
    if engine == Engine::Eval {
        return Ok(graph.clone());
    }
    if let Err(text) = Isa::detect().and(team::size()) {
        bail!(Value, "E0511", "{text}");
    }
    native::plan(graph, engine).map(Arc::new)
}
