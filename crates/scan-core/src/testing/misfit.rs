//! Calls whose arguments do not fit: extents, indices, numbers of steps, values. Every engine reports what the evaluator reports, at the
//! same line and step, or gives the same bits; and what the optimiser made of a graph reports the same codes as the graph.

use super::build::{Leaves, scanned};
use super::check::{Fault, same_bits};
use super::gen_loop::generate;
use super::program;
use super::random::Random;
use crate::base::{Diagnostic, Id, Result, Span, small};
use crate::exec::{Engine, Function, FunctionSpec, Program};
use crate::expr::Var;
use crate::expr::gradient::{GradOptions, grad_with};
use crate::ir::{EvalCx, Graph, Keep, Node, Op, Scan, StateId, Value};
use crate::rewrite::Options;
use crate::types::{Array, DType, Dim, Type};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// What calls with arguments that do not fit came to.
#[derive(Default)]
pub struct MisfitReport {
    /// Programs.
    pub programs: usize,
    /// Calls, of each form of a program: its values, its values and gradients.
    pub calls: usize,
    /// Calls by what the evaluator reports; those that it answers, by `answered`.
    pub outcomes: BTreeMap<String, usize>,
    /// Seeds with what was different.
    pub faults: Vec<(u64, String)>,
}

/// Calls per form of a program.
const CALLS: usize = 6;

/// Runs the programs of `count` seeds from `first` on, on every core.
pub fn run(first: u64, count: u64) -> MisfitReport {
    let next = AtomicU64::new(first);
    let report = Mutex::new(MisfitReport::default());
    let work = || {
        while let Some(seed) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&seed| seed < first + count) {
            let result = catch_unwind(AssertUnwindSafe(|| check(seed)));
            let result = result.unwrap_or_else(|panic| (vec![], Err(Fault { stage: "panic", text: text_of(&*panic) })));
            let mut report = report.lock().unwrap_or_else(|e| e.into_inner());
            report.add(seed, result);
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|s| (0..threads).for_each(|_| drop(std::thread::Builder::new().stack_size(64 << 20).spawn_scoped(s, work))));
    report.into_inner().unwrap_or_else(|e| e.into_inner())
}

/// What the evaluator reports per call, and the first difference.
pub fn check(seed: u64) -> (Vec<String>, std::result::Result<(), Fault>) {
    let (program, mut outcomes) = (generate(seed), vec![]);
    let done = forms(&program).map_err(|e| Fault { stage: "build", text: format!("{}: {}", e.code, e.title) }).and_then(|forms| {
        let mut random = Random::new(seed ^ 0x6d69_7366_6974);
        forms.iter().try_for_each(|case| one(case, &mut random, &mut outcomes))
    });
    (outcomes, done)
}

/// A function, its graph, each node of which has a line of its own, and arguments that fit.
struct Case {
    graph: Arc<Graph>,
    given: Vec<Array>,
    door: Function,
}

/// A program's values, and its values and gradients.
fn forms(program: &program::Program) -> Result<Vec<Case>> {
    let leaves = Leaves::new(program);
    let looped = scanned(program, &leaves)?;
    let float = |v: &&Var| v.ty().dtype == DType::F64;
    let wrt: Vec<Var> = leaves.inputs.iter().chain(&leaves.shared).filter(float).cloned().collect();
    let cost = looped.iter().filter(float).map(|v| v.mul(v).sum()).reduce(|sum, x| sum + x);
    let mut forms = vec![looped.clone()];
    if let Some(cost) = cost.filter(|_| !wrt.is_empty()) {
        let slopes = grad_with(Some(&cost), &wrt, &GradOptions::default())?;
        forms.push(looped.into_iter().chain(slopes.into_iter().flatten()).collect());
    }
    let inputs = &leaves.inputs;
    let form = |outputs| {
        let spec = FunctionSpec {
            inputs: inputs.clone(),
            outputs,
            engine: Some(Engine::Eval),
            passes: Options::none(),
            ..FunctionSpec::default()
        };
        let door = Function::new(spec)?;
        let given = program.inputs.iter().map(|i| i.value.to_array()).chain(door.shared().iter().map(|s| s.get())).collect();
        Ok(Case { graph: Arc::new(lined(door.graph(), &mut 0, &mut FxHashMap::default())?), given, door })
    };
    forms.into_iter().map(form).collect()
}

/// The graph with another line for each node, and another name for each state of a loop.
fn lined(graph: &Graph, line: &mut u32, loops: &mut FxHashMap<*const Scan, Arc<Scan>>) -> Result<Graph> {
    let mut out = Graph::new();
    let mut image: FxHashMap<Value, Value> = FxHashMap::default();
    for &p in graph.params() {
        image.insert(p, out.param(graph.ty(p).clone(), graph.name(p).map(|n| &**n)));
    }
    for (id, node) in graph.nodes().enumerate() {
        let op = match &node.op {
            Op::Scan(scan) => Op::Scan(match loops.get(&Arc::as_ptr(scan)) {
                Some(known) => known.clone(),
                None => {
                    let mut new = scan.with_body(lined(&scan.body, line, loops)?);
                    new.states.iter_mut().enumerate().for_each(|(k, state)| state.name = Some(format!("s{k}of{line}").into()));
                    let new = Arc::new(new);
                    loops.insert(Arc::as_ptr(scan), new.clone());
                    new
                }
            }),
            op => op.clone(),
        };
        *line += 1;
        out.set_span(Span::new("program", *line, "step"));
        let ins: Vec<Value> = node.ins.iter().map(|v| image[v]).collect();
        let made = out.copy(graph, id, &op, &ins)?;
        image.extend(node.outs.iter().copied().zip(made));
    }
    out.set_results(graph.results().iter().map(|v| image[v]).collect::<Vec<_>>());
    Ok(out)
}

/// A graph on all engines, as it is written and optimised. The first one is the law: the evaluator on the graph as it is written.
fn programs(graph: &Arc<Graph>) -> Result<Vec<(String, Program)>> {
    let engines = [("eval", Engine::Eval), ("vm", Engine::Vm), ("jit", Engine::Jit)];
    let passes = [("as written", Options::none()), ("optimised", Options::full())];
    let all = passes.iter().flat_map(|(how, passes)| engines.map(|(name, engine)| (format!("{name}, {how}"), passes, engine)));
    all.map(|(name, passes, engine)| Ok((name, Program::new(graph.clone(), passes, engine)?))).collect()
}

fn one(case: &Case, random: &mut Random, outcomes: &mut Vec<String>) -> std::result::Result<(), Fault> {
    let Case { graph, given, door } = case;
    let programs = programs(graph).map_err(|e| Fault { stage: "compile", text: format!("{}: {}", e.code, e.title) })?;
    let types: Vec<Type> = graph.params().iter().map(|&p| graph.ty(p).clone()).collect();
    let mut needed = Needed::default();
    lines(graph, graph.results(), &mut needed);
    at_the_door(door, &given[..door.inputs().len()], random)?;
    for _ in 0..CALLS {
        let mut args = given.to_vec();
        for _ in 0..1 + random.below(2) {
            misfit(random, &types, &mut args);
        }
        let laws = [call(&programs[0].1, &args)?, call(&programs[3].1, &args)?];
        outcomes.push(laws[0].as_ref().map_or_else(|e| e.code.to_string(), |_| "answered".to_string()));
        let idle = laws[0].as_ref().is_err_and(|e| needed.lacks(e));
        for (k, (name, program)) in programs.iter().enumerate() {
            let whole = call(program, &args)?;
            let parts = small::blocks_of_two(|| small::parts_of(2, || call(program, &args))).0?;
            let law = &laws[usize::from(k >= 3)];
            for (how, got) in [("", &whole), (" in parts", &parts)] {
                // What no result needs may be left out, and its error with it.
                let left_out = idle && got.is_ok();
                let told = if left_out && law.is_err() { laws.iter().all(|law| law.is_err() || alike(got, law)) } else { same(got, law) };
                if !told || !left_out && !alike(got, &laws[0]) {
                    let law = if same(got, law) { &laws[0] } else { law };
                    let text = format!("{name}{how}\nargs {args:?}\ngot  {got:?}\nwant {law:?}");
                    let graphs =
                        format!("{}\n{}\n{}", graph.to_text("f"), program.optimised().to_text("f"), program.plan().to_text("plan"));
                    return Err(Fault { stage: "misfit", text: format!("{text}\n{graphs}") });
                }
            }
        }
    }
    Ok(())
}

/// Another dtype, or another number of axes or arguments, is refused before anything runs.
fn at_the_door(door: &Function, given: &[Array], random: &mut Random) -> std::result::Result<(), Fault> {
    let mut args = given.to_vec();
    let k = random.below(args.len());
    match random.below(4) {
        0 => _ = args.pop(),
        1 => args[k] = resized(&args[k], &[args[k].shape(), &[2]].concat()),
        _ => args[k] = args[k].cast(if args[k].dtype() == DType::F64 { DType::I64 } else { DType::F64 }),
    }
    match door.call(&mut EvalCx::new(), &args) {
        Err(e) if e.code == "E0504" => Ok(()),
        other => Err(Fault { stage: "door", text: format!("{args:?}: {other:?}") }),
    }
}

type Outcome = Result<Vec<Array>>;

fn call(program: &Program, args: &[Array]) -> std::result::Result<Outcome, Fault> {
    let outcome = catch_unwind(AssertUnwindSafe(|| program.run(&mut EvalCx::new(), &|| args.to_vec())));
    let text = || format!("{args:?}\n{}", program.plan().to_text("plan"));
    let outcome = outcome.map_err(|panic| Fault { stage: "panic", text: format!("{} {}", text_of(&*panic), text()) })?;
    match outcome {
        Err(e) if e.code == "E9999" => Err(Fault { stage: "internal", text: format!("{} {}", e.title, text()) }),
        outcome => Ok(outcome),
    }
}

fn text_of(panic: &(dyn std::any::Any + Send)) -> String {
    panic.downcast_ref::<String>().cloned().or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string())).unwrap_or_default()
}

fn same(got: &Outcome, law: &Outcome) -> bool {
    match (got, law) {
        (Ok(got), Ok(law)) => got.len() == law.len() && got.iter().zip(law).all(|(a, b)| same_bits(a, b)),
        (Err(got), Err(law)) => (got.code, &got.labels, step_of(got)) == (law.code, &law.labels, step_of(law)),
        _ => false,
    }
}

/// The notes that name a step.
fn step_of(e: &Diagnostic) -> Vec<&String> {
    e.notes.iter().filter(|n| n.starts_with("in step")).collect()
}

/// What results certainly need by value.
#[derive(Default)]
struct Needed {
    /// Lines.
    lines: FxHashSet<Span>,
    /// By the line of a loop, the names of its states.
    states: FxHashMap<Span, FxHashSet<Arc<str>>>,
}

impl Needed {
    /// True for an error of what no result needs. The row of a state may be no node of the loop's body, nor are
    /// its first rows: their errors are at the loop's line.
    fn lacks(&self, e: &Diagnostic) -> bool {
        let Some(span) = e.labels.first().map(|l| l.span) else { return false };
        let names = self.states.get(&span).filter(|_| matches!(e.code, "E0102" | "E0104"));
        let state = |names: &FxHashSet<Arc<str>>| names.iter().any(|name| e.title.contains(&format!("`{name}` ")));
        !self.lines.contains(&span) || names.is_some_and(|names| !state(names))
    }
}

/// Adds the lines of what results certainly need by value; true per value that they need. What is computed for its shape alone, or for a
/// branch that may not be taken, passes may leave out, with the errors that only its values tell.
fn lines(graph: &Graph, results: &[Value], needed: &mut Needed) -> Vec<bool> {
    let mut live = vec![false; graph.n_values()];
    results.iter().for_each(|v| live[v.idx()] = true);
    for (_, node) in graph.nodes().enumerate().rev() {
        let asked: Vec<bool> = node.outs.iter().map(|v| live[v.idx()]).collect();
        if !asked.contains(&true) {
            continue;
        }
        needed.lines.insert(node.span);
        match &node.op {
            Op::Scan(scan) => {
                let (inputs, names) = inputs_of(scan, most_steps(graph, node, scan), asked, needed);
                needed.states.entry(node.span).or_default().extend(names);
                inputs.into_iter().for_each(|k| live[node.ins[k].idx()] = true);
            }
            Op::IfElse(_) => live[node.ins[0].idx()] = true,
            op => {
                node.ins.iter().enumerate().filter(|(k, _)| !op.properties().shape_only.contains(k)).for_each(|(_, v)| live[v.idx()] = true)
            }
        }
    }
    live
}

/// As many steps as a loop runs, or more: what its rows say, and an extent that is known.
fn most_steps(graph: &Graph, node: &Node, scan: &Scan) -> i64 {
    let asked = graph.arg(node.ins[Scan::N_STEPS]).dim.and_then(|n| n.value());
    let whole = scan.states.enumerate().filter(|(_, s)| s.keep == Keep::All);
    let rows = whole.filter_map(|(id, s)| Some(graph.ty(node.outs[scan.state_output(id)]).dims[0].value()? - s.span()));
    rows.chain(asked).min().map_or(i64::MAX, |n| n as i64)
}

/// Inputs of a loop of at most so many steps whose values the states that are asked for need, and the names of these and of the states that
/// they need; adds the lines of its body. What a step writes for a step after the last one is not needed, nor what tells that one step is
/// the last.
fn inputs_of(scan: &Scan, n_steps: i64, mut asked: Vec<bool>, needed: &mut Needed) -> (Vec<usize>, Vec<Arc<str>>) {
    let body = &scan.body;
    loop {
        let stop = scan.until_result().filter(|_| n_steps > 1);
        let mut results: Vec<Value> = stop.map(|at| body.results()[at]).into_iter().collect();
        scan.states.ids().filter(|&id| asked[scan.state_output(id)]).for_each(|id| results.extend(scan.write_values(id)));
        let live = lines(body, &results, needed);
        let read = |p: usize| live[body.params()[p].idx()];
        let in_time = |id: StateId, row: usize| scan.states[id].writes.iter().any(|&w| w as i64 - (row as i64) < n_steps);
        let read_rows = |id: StateId| scan.read_params(id).zip(&scan.states[id].reads).filter(|&(p, _)| read(p)).map(|(_, &row)| row);
        let state = |id| asked[scan.state_output(id)] || read_rows(id).any(|row| in_time(id, row));
        let more: Vec<bool> = scan.states.ids().map(state).chain([asked[scan.steps_output()]]).collect();
        if more == asked {
            let seqs = scan.seqs.ids().filter(|&id| read(scan.seq_param(id))).map(|id| scan.seq_input(id));
            let captured = scan.captured.ids().filter(|&id| read(scan.captured_param(id))).map(|id| scan.captured_input(id));
            let inits = scan
                .states
                .ids()
                .filter(|&id| asked[scan.state_output(id)] || read_rows(id).next().is_some())
                .filter_map(|id| scan.init_input(id));
            let names = scan.states.enumerate().filter(|(id, _)| asked[scan.state_output(*id)]).filter_map(|(_, s)| s.name.clone());
            return ([Scan::N_STEPS].into_iter().chain(seqs).chain(captured).chain(inits).collect(), names.collect());
        }
        asked = more;
    }
}

/// Passes may round otherwise: the same types, or the same error.
fn alike(got: &Outcome, law: &Outcome) -> bool {
    match (got, law) {
        (Ok(got), Ok(law)) => got.iter().zip(law).all(|(a, b)| a.ty() == b.ty()),
        _ => same(got, law),
    }
}

/// Changes an argument so that it may not fit the others. It still fits its own type: the door refuses what does not.
fn misfit(random: &mut Random, types: &[Type], args: &mut [Array]) {
    let k = random.below(args.len());
    let rank = types[k].rank();
    match random.below(10) {
        0..=5 if rank > 0 => {
            let axis = random.below(rank);
            let other = random.pick(args).shape().to_vec();
            let n = args[k].shape()[axis];
            let n = [0, 1, n + 1, n.saturating_sub(1), 2 * n, other.first().copied().unwrap_or(2)][random.below(6)];
            let dim = types[k].dims[axis].clone();
            extend(types, args, k, axis, &dim, n);
        }
        6 if rank == 2 => {
            let shape = [args[k].shape()[1], args[k].shape()[0]];
            if types[k].dims.iter().zip(shape).all(|(d, n)| d.as_sym().is_some_and(|s| single(types, s)) || d.value() == Some(n)) {
                args[k] = resized(&args[k], &shape);
            }
        }
        _ => values(random, &mut args[k]),
    }
}

/// True where one extent alone has a symbol.
fn single(types: &[Type], sym: crate::types::Sym) -> bool {
    types.iter().flat_map(|t| &t.dims).filter(|d| d.as_sym() == Some(sym)).count() == 1
}

/// Another extent, there and wherever types tell that it is the same.
fn extend(types: &[Type], args: &mut [Array], k: usize, axis: usize, dim: &Dim, n: usize) {
    if dim.value().is_some() {
        return;
    }
    for (i, ty) in types.iter().enumerate() {
        for (j, other) in ty.dims.iter().enumerate() {
            if (i, j) == (k, axis) || other == dim {
                let mut shape = args[i].shape().to_vec();
                shape[j] = n;
                args[i] = resized(&args[i], &shape);
            }
        }
    }
}

/// The elements again and again, in another shape.
fn resized(x: &Array, shape: &[usize]) -> Array {
    let values = x.to_f64_vec();
    let n: usize = shape.iter().product();
    let values: Vec<f64> = (0..n).map(|i| if values.is_empty() { 0.5 } else { values[i % values.len()] }).collect();
    Array::vector(&values).cast(x.dtype()).reshaped(shape)
}

fn values(random: &mut Random, x: &mut Array) {
    let mut values = x.to_f64_vec();
    if values.is_empty() {
        return;
    }
    let at = random.below(values.len());
    values[at] = match x.dtype() {
        DType::F64 => *random.pick(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 1e300]),
        DType::Bool => 1.0 - values[at],
        _ => *random.pick(&[-1.0, -3.0, 0.0, 1.0, 4.0, 7.0, 1000.0, -1000.0]),
    };
    let shape = x.shape().to_vec();
    *x = Array::vector(&values).cast(x.dtype()).reshaped(&shape);
}

impl MisfitReport {
    fn add(&mut self, seed: u64, (outcomes, done): (Vec<String>, std::result::Result<(), Fault>)) {
        self.programs += 1;
        self.calls += outcomes.len();
        outcomes.into_iter().for_each(|outcome| *self.outcomes.entry(outcome).or_default() += 1);
        if let Err(fault) = done {
            self.faults.push((seed, format!("{}: {}", fault.stage, fault.text)));
        }
    }
}

impl Display for MisfitReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (seed, text) in &self.faults {
            writeln!(f, "\nseed {seed}: {text}")?;
        }
        for (outcome, n) in &self.outcomes {
            writeln!(f, "{outcome:<12} {n:>8}")?;
        }
        let answered = self.outcomes.get("answered").copied().unwrap_or_default();
        let bad = self.faults.len();
        write!(f, "{} programs, {} calls, {} of them errors: {bad} differences", self.programs, self.calls, self.calls - answered)
    }
}
