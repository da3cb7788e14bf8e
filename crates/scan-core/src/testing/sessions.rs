//! Sessions of random programs: the rows that steps make are those of the whole call, to the bit.

use super::build::{Leaves, scanned};
use super::check::same_bits;
use super::gen_loop::generate;
use super::program::Program;
use super::random::Random;
use crate::exec::{Engine, Function, FunctionSpec, Session};
use crate::expr::Var;
use crate::ir::EvalCx;
use crate::types::Array;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a run found.
#[derive(Default, Debug)]
pub struct Report {
    /// Outputs of programs that went step by step.
    pub compared: usize,
    /// Of these, how many had rows, on loops that could stop, or with states.
    pub rows: usize,
    /// How many had states.
    pub with_states: usize,
    /// Why others have no step, and how many.
    pub refused: BTreeMap<String, usize>,
    /// Disagreements.
    pub faults: Vec<String>,
}

/// So many steps of loops that have no end are made at most.
const STEPS: usize = 12;

/// Compares the outputs of the programs of `count` seeds from `first` on, each alone.
pub fn run(first: u64, count: u64) -> Report {
    let mut report = Report::default();
    for seed in first..first + count {
        let program = generate(seed);
        let leaves = Leaves::new(&program);
        let Ok(outputs) = scanned(&program, &leaves) else { continue };
        for (k, output) in outputs.iter().enumerate() {
            for engine in [Engine::Eval, Engine::Vm, Engine::Jit] {
                let result = catch_unwind(AssertUnwindSafe(|| one(&program, &leaves, output, engine, seed, &mut report)));
                if let Err(fault) = result.unwrap_or_else(|_| Err(format!("panic\n{}", step_of(&leaves, output)))) {
                    report.faults.push(format!("seed {seed}, output {k}, {engine:?}: {fault}"));
                }
            }
        }
    }
    report
}

/// The step of an output, as text.
fn step_of(leaves: &Leaves, output: &Var) -> String {
    let spec = FunctionSpec { inputs: leaves.inputs.clone(), outputs: vec![output.clone()], ..FunctionSpec::default() };
    let made = Function::new(spec).and_then(|f| Ok([f.optimised().to_text("f"), f.steps()?.text()].join("\n")));
    made.unwrap_or_else(|e| e.title)
}

fn one(program: &Program, leaves: &Leaves, output: &Var, engine: Engine, seed: u64, report: &mut Report) -> Result<(), String> {
    let (inputs, outputs) = (leaves.inputs.clone(), vec![output.clone()]);
    let f = Function::new(FunctionSpec { inputs, outputs, engine: Some(engine), ..FunctionSpec::default() }).map_err(|e| e.title)?;
    let args: Vec<Array> = program.inputs.iter().map(|i| i.value.to_array()).collect();
    let cx = &mut EvalCx::new();
    let (whole, steps) = match (f.call(cx, &args), f.steps()) {
        (Ok(whole), Ok(steps)) => (whole, steps.clone()),
        (_, Err(e)) if e.code == "E0531" => {
            *report.refused.entry(e.title.split('`').step_by(2).collect()).or_default() += 1;
            return Ok(());
        }
        (_, Err(e)) => return Err(format!("{}: {}\n{}", e.code, e.title, f.optimised().to_text("f"))),
        (Err(_), _) => return Ok(()),
    };
    let mut given: Vec<Option<Array>> = args.iter().cloned().map(Some).collect();
    let mut n = if steps.streams().is_empty() { STEPS } else { usize::MAX };
    for &(p, before) in steps.streams() {
        let Some(rows) = args[p].shape()[0].checked_sub(before) else { return Ok(()) };
        n = n.min(rows);
        given[p] = (before > 0).then(|| args[p].rows(0, before));
    }
    let told = |e: Box<crate::base::Diagnostic>| {
        format!("{}: {} {:?}\n{}\n{}", e.code, e.title, e.notes, f.optimised().to_text("f"), steps.text())
    };
    let session = match f.session(cx, &given) {
        Err(e) if e.title.contains("of one number of steps") => return Ok(()),
        session => session.map_err(told)?,
    };
    let streams: Vec<(Array, usize)> = steps.streams().iter().map(|&(p, before)| (args[p].clone(), before)).collect();
    let mut walk = Walk { session, given: f.session(cx, &given).map_err(told)?, streams, random: Random::new(seed) };
    let rows = walk.all(cx, n).map_err(told)?;
    let made = walk.session.len();
    report.compared += 1;
    report.with_states += usize::from(!walk.session.states().is_empty());
    let Some(last) = rows.last() else { return Ok(()) };
    // A loop that has stopped may have left rows, which count for what is made of the sequences alone.
    let whole = if walk.session.stopped() && !streams_end(&walk) {
        let mut seen = args.clone();
        steps.streams().iter().for_each(|&(p, before)| seen[p] = args[p].rows(0, before + made));
        // Where the function takes fewer rows at all.
        f.call(cx, &seen).unwrap_or(whole)
    } else {
        whole
    };
    let (want, got) = if whole[0].rank() == last.rank() {
        (whole[0].clone(), last.clone())
    } else if whole[0].shape()[0] == made {
        report.rows += 1;
        (whole[0].clone(), Array::stack(&rows, last.dtype(), last.shape()))
    } else {
        return Ok(());
    };
    // The last value of another number of steps is another one.
    let ends = walk.session.stopped() || streams_end(&walk);
    if ends && !same_bits(&got, &want) {
        let texts = [f.graph().to_text("f"), f.optimised().to_text("f"), steps.text()].join("\n");
        return Err(format!("got {got:?}\nwant {want:?}\n{texts}"));
    }
    Ok(())
}

/// True where all rows of all sequences were given.
fn streams_end(walk: &Walk) -> bool {
    !walk.streams.is_empty() && walk.streams.iter().all(|(x, before)| x.shape()[0] - before == walk.session.len())
}

/// A session on its way over the rows of its sequences.
struct Walk {
    session: Session,
    /// As it was before the first step.
    given: Session,
    streams: Vec<(Array, usize)>,
    random: Random,
}

impl Walk {
    /// The rows of up to n steps: of single ones, and of several at once; in between the session is left for a copy, or for one that was
    /// brought there by its bytes.
    fn all(&mut self, cx: &mut EvalCx, n: usize) -> crate::base::Result<Vec<Array>> {
        let mut rows = vec![];
        while self.session.len() < n && !self.session.stopped() {
            let at = self.session.len();
            match self.random.below(4) {
                0 => {
                    let more = self.random.below(4).min(n - at);
                    let xs: Vec<Array> = self.streams.iter().map(|(x, before)| x.rows(before + at, before + at + more)).collect();
                    let out = self.session.run(cx, more, &xs)?.remove(0);
                    let ran = self.session.len() - at;
                    // What is the same for all steps has no rows.
                    let by_rows = out.rank() > 0 && ran > 0 && self.session.rows_of(0);
                    rows.extend((0..ran).map(|i| if by_rows { out.row(i) } else { out.clone() }));
                }
                1 => {
                    let bytes = self.session.snapshot()?;
                    self.session = self.given.clone();
                    self.session.restore(&bytes)?;
                }
                _ => {
                    let xs: Vec<Array> = self.streams.iter().map(|(x, before)| x.row(before + at)).collect();
                    rows.push(self.session.step(cx, &xs)?.remove(0));
                }
            }
        }
        Ok(rows)
    }
}
