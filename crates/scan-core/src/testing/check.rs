//! What must hold of every program: loops, unrolled loops and the reference agree, in values and in derivatives.

use super::build::{Leaves, scanned, unrolled, weights};
use super::mapped;
use super::nd::{Kind, Nd};
use super::optimised;
use super::program::Program;
use super::reference::{self, Outcome};
use super::report::count_engines;
use crate::base::Result;
use crate::base::small;
use crate::eval;
use crate::exec::{Engine, Function, FunctionSpec};
use crate::expr::Var;
use crate::expr::gradient::{GradOptions, jvp, vjp};
use crate::ir::EvalCx;
use crate::ir::parse::parse;
use crate::ir::verify::verify;
use crate::rewrite::Options;
use crate::types::{Array, DType};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A disagreement.
#[derive(Clone, Debug)]
pub struct Fault {
    /// Between what.
    pub stage: &'static str,
    /// The numbers.
    pub text: String,
}

/// What was compared.
#[derive(Clone, Default, Debug)]
pub struct Done {
    /// Passes that found something to do.
    pub fired: BTreeSet<&'static str>,
    /// With finite differences, too: nothing is truncated, and no comparison is near its turning point.
    pub differences: bool,
    /// Third derivatives with the unrolled form.
    pub third: bool,
    /// Only the bits of engines: roundings tell what the program decides.
    pub bits_only: bool,
}

type Outcomes<T> = std::result::Result<T, Fault>;

/// Closer to a turning point, differences say nothing.
const MARGIN: f64 = 1e-3;
const STEP: f64 = 1e-5;
const SAME: f64 = 1e-8;
const NEAR: f64 = 3e-6;
/// Rows of the programs have a few lanes: most have more than one part.
const LANES_OF_PART: usize = 2;
/// Loops that ran with rows computed ahead in blocks.
pub(super) static BLOCKS: AtomicUsize = AtomicUsize::new(0);

/// Checks values and gradient of one program on one engine: they are the evaluator's, to the bit.
///
/// # Errors
/// The first disagreement.
pub fn check_on(program: &Program, engine: Engine) -> Outcomes<()> {
    let inputs: Vec<Nd> = program.inputs.iter().map(|i| i.value.clone()).collect();
    let truth = reference::run(program, &inputs, &program.shared);
    let leaves = Leaves::new(program);
    let looped = told("build", scanned(program, &leaves))?;
    let case = Case { program, leaves, truth, fired: RefCell::default() };
    case.on(engine, "looped values", &looped)?;
    let floats: Vec<usize> = (0..looped.len()).filter(|&i| case.truth.values[i].kind == Kind::Float).collect();
    let wrt = case.wrt();
    if floats.is_empty() || wrt.is_empty() {
        return Ok(());
    }
    let cts: Vec<Array> = floats.iter().map(|&i| weights(&case.truth.values[i], i as u64)).collect();
    let outputs: Vec<Var> = floats.iter().map(|&i| looped[i].clone()).collect();
    case.on(engine, "gradient", &case.pull("gradient", &outputs, &constants(&cts), &wrt)?)
}

/// Checks one program.
///
/// # Errors
/// The first disagreement.
pub fn check(program: &Program) -> Outcomes<Done> {
    let inputs: Vec<Nd> = program.inputs.iter().map(|i| i.value.clone()).collect();
    let truth = reference::run(program, &inputs, &program.shared);
    let leaves = Leaves::new(program);
    let looped = told("build", scanned(program, &leaves))?;
    if reference::decided_by_rounding(program, &inputs, &program.shared, &truth) {
        Case { program, leaves, truth, fired: RefCell::default() }.eval("bits", &looped)?;
        return Ok(Done { bits_only: true, ..Done::default() });
    }
    let flat = told("unroll", unrolled(program, &leaves, &truth.steps))?;
    let case = Case { program, leaves, truth, fired: RefCell::default() };
    case.values(&looped, &flat)?;
    if case.truth.margin > MARGIN {
        mapped::compare(program, &case.leaves, &looped, &mut case.fired.borrow_mut())?;
    }
    let done = case.derivatives(looped, flat)?;
    Ok(Done { fired: case.fired.take(), ..done })
}

struct Case<'p> {
    program: &'p Program,
    leaves: Leaves,
    truth: Outcome,
    fired: RefCell<BTreeSet<&'static str>>,
}

fn told<T>(stage: &'static str, result: Result<T>) -> Outcomes<T> {
    result.map_err(|e| Fault { stage, text: format!("{}: {} {:?}", e.code, e.title, e.notes) })
}

impl Case<'_> {
    fn args(&self) -> Vec<Array> {
        self.program.inputs.iter().map(|i| i.value.to_array()).collect()
    }

    fn function(&self, outputs: Vec<Var>) -> Result<Function> {
        self.function_on(Engine::Eval, Options::none(), outputs)
    }

    fn function_on(&self, engine: Engine, passes: Options, outputs: Vec<Var>) -> Result<Function> {
        let inputs = self.leaves.inputs.clone();
        Function::new(FunctionSpec { inputs, outputs, engine: Some(engine), passes, ..FunctionSpec::default() })
    }

    fn eval(&self, stage: &'static str, outputs: &[Var]) -> Outcomes<Vec<Nd>> {
        let f = told(stage, self.function(outputs.to_vec()))?;
        let values = told(stage, f.call(&mut EvalCx::new(), &self.args()))?;
        if matches!(stage, "bits" | "looped values" | "gradient" | "second") {
            self.text(&f, &values)?;
            let optimised = told(stage, self.function_on(Engine::Eval, Options::full(), outputs.to_vec()))?;
            let better = told(stage, optimised.call(&mut EvalCx::new(), &self.args()))?;
            for engine in [Engine::Vm, Engine::Jit] {
                self.engine(engine, Options::none(), stage, outputs, &values)?;
                self.engine(engine, Options::full(), stage, outputs, &better)?;
            }
        }
        if matches!(stage, "looped values" | "gradient" | "jvp" | "second" | "third") {
            let mut args = self.args();
            args.extend(f.shared().iter().map(|s| s.get()));
            optimised::compare(f.graph(), &args, &values, &mut self.fired.borrow_mut())?;
        }
        Ok(values.iter().map(Nd::of).collect())
    }

    fn on(&self, engine: Engine, stage: &'static str, outputs: &[Var]) -> Outcomes<()> {
        let law = told(stage, self.function_on(Engine::Eval, Options::full(), outputs.to_vec()))?;
        let want = told(stage, law.call(&mut EvalCx::new(), &self.args()))?;
        self.engine(engine, Options::full(), stage, outputs, &want)
    }

    /// An engine gives the evaluator's bits, on one thread and with its lanes over two and rows computed
    /// ahead in blocks.
    fn engine(&self, engine: Engine, passes: Options, stage: &'static str, outputs: &[Var], want: &[Array]) -> Outcomes<()> {
        let f = told(stage, self.function_on(engine, passes, outputs.to_vec()))?;
        let alone = told(stage, f.call(&mut EvalCx::new(), &self.args()))?;
        count_engines(&f);
        let call = || small::parts_of(LANES_OF_PART, || f.call(&mut EvalCx::new(), &self.args()));
        let (parts, blocks) = small::blocks_of_two(call);
        BLOCKS.fetch_add(blocks, Ordering::Relaxed);
        let parts = told(stage, parts)?;
        let name = match engine {
            Engine::Vm => ["vm = eval", "vm in parts = eval"],
            Engine::Device(_) => ["device = eval", "device in parts = eval"],
            _ => ["jit = eval", "jit in parts = eval"],
        };
        for (stage_name, got) in name.into_iter().zip([alone, parts]) {
            if let Some(i) = got.iter().zip(want).position(|(a, b)| !same_bits(a, b)) {
                let text = format!("{stage}, item {i}: got  {:?} want {:?}\n{}", got[i], want[i], f.optimised().to_text("f"));
                return Err(Fault { stage: stage_name, text });
            }
        }
        Ok(())
    }

    /// The graph satisfies the verifier; printed and parsed back, it gives the same bits.
    fn text(&self, f: &Function, values: &[Array]) -> Outcomes<()> {
        told("verify", verify(f.graph()))?;
        let (_, back) = told("parse", parse(&f.graph().to_text("f")))?;
        told("verify parsed", verify(&back))?;
        let mut args = self.args();
        args.extend(f.shared().iter().map(|s| s.get()));
        let again = told("parsed values", eval::run(&back, &mut EvalCx::new(), &args))?;
        if again[..values.len()] != *values {
            return Err(Fault { stage: "parsed values", text: format!("got {again:?}\nwant {values:?}") });
        }
        Ok(())
    }

    fn values(&self, looped: &[Var], flat: &[Var]) -> Outcomes<()> {
        agree("unrolled values", &self.eval("unrolled values", flat)?, &self.truth.values, 1e-10)?;
        let n = self.program.outputs.len();
        let updates = self.program.updates.iter().zip(&looped[n..]).map(|(u, v)| (self.leaves.shared[u.0].clone(), v.clone()));
        let spec = FunctionSpec {
            inputs: self.leaves.inputs.clone(),
            outputs: looped[..n].to_vec(),
            updates: updates.collect(),
            ..FunctionSpec::default()
        };
        let f = told("compile", Function::new(spec))?;
        let all = self.eval("looped values", looped)?;
        agree("looped values", &all, &self.truth.values, 1e-10)?;
        let values = told("values", f.call(&mut EvalCx::new(), &self.args()))?;
        let mut values: Vec<Nd> = values.iter().map(Nd::of).collect();
        let handles: Vec<_> = self.leaves.shared.iter().filter_map(Var::as_shared).collect();
        values.extend(self.program.updates.iter().map(|u| Nd::of(&handles[u.0].get())));
        handles.iter().zip(&self.program.shared).for_each(|(s, value)| s.set(value.to_array()));
        agree("values", &values, &self.truth.values, 1e-10)
    }

    /// So many steps that the unrolled form of higher derivatives and differences by every element take too long.
    fn long(&self) -> bool {
        self.truth.steps.iter().sum::<usize>() > 60
    }

    /// What gradients are taken by: float inputs, then float shared variables.
    fn wrt(&self) -> Vec<Var> {
        self.leaves.inputs.iter().chain(&self.leaves.shared).filter(|v| v.ty().dtype == DType::F64).cloned().collect()
    }

    fn points(&self) -> Vec<Nd> {
        let all = self.program.inputs.iter().map(|i| &i.value).chain(&self.program.shared);
        all.filter(|x| x.kind == Kind::Float).cloned().collect()
    }

    fn derivatives(&self, looped: Vec<Var>, flat: Vec<Var>) -> Outcomes<Done> {
        let floats: Vec<usize> = (0..looped.len()).filter(|&i| self.truth.values[i].kind == Kind::Float).collect();
        let wrt = self.wrt();
        if floats.is_empty() || wrt.is_empty() {
            return Ok(Done::default());
        }
        let only = |all: Vec<Var>| floats.iter().map(|&i| all[i].clone()).collect::<Vec<_>>();
        let (looped, flat) = (only(looped), only(flat));
        let cts: Vec<Array> = floats.iter().map(|&i| weights(&self.truth.values[i], i as u64)).collect();
        let points = self.points();
        let tangents: Vec<Array> = points.iter().enumerate().map(|(i, x)| weights(x, 100 + i as u64)).collect();
        let (cts, tangents) = (constants(&cts), constants(&tangents));
        let done = Done { differences: self.truth.margin > MARGIN && !self.program.truncated(), ..Done::default() };

        let first = self.pull("gradient", &looped, &cts, &wrt)?;
        let first_flat = self.pull("unrolled gradient", &flat, &cts, &wrt)?;
        let got = self.eval("gradient", &first)?;
        if self.truth.margin > MARGIN && !self.long() {
            mapped::compare(self.program, &self.leaves, &first, &mut self.fired.borrow_mut())?;
        }
        agree("gradient = unrolled gradient", &got, &self.eval("unrolled gradient", &first_flat)?, SAME)?;
        if done.differences && !self.long() {
            near("gradient = differences", &got, |step| Ok(self.differences(&floats, &cts, &points, step)))?;
        }

        let forward = self.push("jvp", &looped, &wrt, &tangents, &floats)?;
        let forward_flat = self.push("unrolled jvp", &flat, &wrt, &tangents, &floats)?;
        let got = self.eval("jvp", &forward)?;
        agree("jvp = unrolled jvp", &got, &self.eval("unrolled jvp", &forward_flat)?, SAME)?;
        if done.differences {
            near("jvp = differences", &got, |step| Ok(self.along(&floats, &tangents, &points, step)))?;
        }
        if self.long() {
            return Ok(done);
        }
        self.higher(done, &first, &first_flat, &tangents, &wrt, &points)
    }

    fn higher(&self, mut done: Done, first: &[Var], flat: &[Var], tangents: &[Var], wrt: &[Var], points: &[Nd]) -> Outcomes<Done> {
        let second = self.pull("second", first, tangents, wrt)?;
        let second_flat = self.pull("unrolled second", flat, tangents, wrt)?;
        let got = self.eval("second", &second)?;
        agree("second = unrolled second", &got, &self.eval("unrolled second", &second_flat)?, SAME)?;
        if done.differences {
            let f = told("second", self.function(first.to_vec()))?;
            near("second = differences", &got, |step| self.slope(&f, tangents, points, step))?;
        }
        let size: usize = self.truth.steps.iter().sum();
        done.third = size <= 4 && self.program.items.len() < 120;
        if done.third {
            let third = self.pull("third", &second, tangents, wrt)?;
            let third_flat = self.pull("unrolled third", &second_flat, tangents, wrt)?;
            agree("third = unrolled third", &self.eval("third", &third)?, &self.eval("unrolled third", &third_flat)?, SAME)?;
        }
        Ok(done)
    }

    /// Gradients, zeros where there is no connection.
    fn pull(&self, stage: &'static str, outputs: &[Var], cts: &[Var], wrt: &[Var]) -> Outcomes<Vec<Var>> {
        let found = told(stage, vjp(outputs, cts, wrt, &GradOptions::default()))?;
        let zeros = self.points().into_iter().map(|x| constant(&x.map(Kind::Float, |_| 0.0).to_array()));
        Ok(found.into_iter().zip(zeros).map(|(g, zero)| g.unwrap_or(zero)).collect())
    }

    fn push(&self, stage: &'static str, outputs: &[Var], wrt: &[Var], tangents: &[Var], floats: &[usize]) -> Outcomes<Vec<Var>> {
        let found = told(stage, jvp(outputs, wrt, tangents, crate::base::Span::NONE))?;
        let zeros = floats.iter().map(|&i| constant(&self.truth.values[i].map(Kind::Float, |_| 0.0).to_array()));
        Ok(found.into_iter().zip(zeros).map(|(g, zero)| g.unwrap_or(zero)).collect())
    }

    /// Float outputs of the reference at other points.
    fn at(&self, points: &[Nd], floats: &[usize]) -> Vec<Nd> {
        let mut points = points.iter();
        let mut replaced = |x: &Nd| if x.kind == Kind::Float { points.next().unwrap_or(x).clone() } else { x.clone() };
        let inputs: Vec<Nd> = self.program.inputs.iter().map(|i| replaced(&i.value)).collect();
        let shared: Vec<Nd> = self.program.shared.iter().map(replaced).collect();
        let outcome = reference::run(self.program, &inputs, &shared);
        floats.iter().map(|&i| outcome.values[i].clone()).collect()
    }

    /// Central differences of the reference by every element.
    fn differences(&self, floats: &[usize], cts: &[Var], points: &[Nd], step: f64) -> Vec<Nd> {
        let cts: Vec<Nd> = cts.iter().filter_map(Var::const_value).map(Nd::of).collect();
        let cost = |points: &[Nd]| -> f64 {
            let values = self.at(points, floats);
            values.iter().zip(&cts).flat_map(|(y, c)| y.data.iter().zip(&c.data)).map(|(y, c)| y * c).sum()
        };
        let mut points = points.to_vec();
        let mut all = points.clone();
        for (i, slopes) in all.iter_mut().enumerate() {
            for k in 0..slopes.data.len() {
                let x = points[i].data[k];
                let mut moved = |by: f64| {
                    points[i].data[k] = x + by;
                    cost(&points)
                };
                slopes.data[k] = (moved(step) - moved(-step)) / (2.0 * step);
                points[i].data[k] = x;
            }
        }
        all
    }

    fn along(&self, floats: &[usize], tangents: &[Var], points: &[Nd], step: f64) -> Vec<Nd> {
        let (up, down) = (self.at(&moved(points, tangents, step), floats), self.at(&moved(points, tangents, -step), floats));
        slopes(&up, &down, step)
    }

    /// Differences of a function's outputs along the tangents.
    fn slope(&self, f: &Function, tangents: &[Var], points: &[Nd], step: f64) -> Outcomes<Vec<Nd>> {
        let shared: Vec<_> = self.leaves.shared.iter().filter_map(Var::as_shared).collect();
        let call = |by: f64| {
            let moved = moved(points, tangents, by);
            let mut next = moved.iter();
            let mut replaced = |x: &Nd| if x.kind == Kind::Float { next.next().unwrap_or(x).to_array() } else { x.to_array() };
            let args: Vec<Array> = self.program.inputs.iter().map(|i| replaced(&i.value)).collect();
            shared.iter().zip(&self.program.shared).for_each(|(s, x)| s.set(replaced(x)));
            let values = f.call(&mut EvalCx::new(), &args);
            shared.iter().zip(&self.program.shared).for_each(|(s, x)| s.set(x.to_array()));
            told("second", values).map(|v| v.iter().map(Nd::of).collect::<Vec<_>>())
        };
        Ok(slopes(&call(step)?, &call(-step)?, step))
    }
}

/// Equal type and bits; NaN is NaN.
pub(super) fn same_bits(a: &Array, b: &Array) -> bool {
    let nan = |x: &Array| x.dtype().is_float().then(|| x.to_f64_vec().iter().map(|x| x.is_nan()).collect::<Vec<_>>());
    let equal = |i: usize| a.bits()[i] == b.bits()[i];
    a.dtype() == b.dtype()
        && a.shape() == b.shape()
        && (a == b || nan(a).zip(nan(b)).is_some_and(|(p, q)| (0..p.len()).all(|i| p[i] && q[i] || equal(i))))
}

fn constant(x: &Array) -> Var {
    Var::constant(x.clone(), crate::base::Span::NONE)
}

fn constants(x: &[Array]) -> Vec<Var> {
    x.iter().map(constant).collect()
}

fn moved(points: &[Nd], tangents: &[Var], by: f64) -> Vec<Nd> {
    let tangents = tangents.iter().filter_map(Var::const_value).map(Nd::of);
    points.iter().zip(tangents).map(|(x, t)| x.zip(&t, Kind::Float, |x, t| x + by * t)).collect()
}

fn slopes(up: &[Nd], down: &[Nd], step: f64) -> Vec<Nd> {
    up.iter().zip(down).map(|(a, b)| a.zip(b, Kind::Float, |a, b| (a - b) / (2.0 * step))).collect()
}

/// Equal to central differences. Near a pole these err by more than is asked for: half the step tells by how much, as their error goes with its
/// square (Richardson, 1911).
fn near(stage: &'static str, got: &[Nd], differences: impl Fn(f64) -> Outcomes<Vec<Nd>>) -> Outcomes<()> {
    let wide = differences(STEP)?;
    agree(stage, got, &wide, NEAR).or_else(|_| {
        let better = |(half, wide): (&Nd, &Nd)| half.zip(wide, Kind::Float, |half, wide| (4.0 * half - wide) / 3.0);
        let better: Vec<Nd> = differences(STEP / 2.0)?.iter().zip(&wide).map(better).collect();
        agree(stage, got, &better, NEAR)
    })
}

/// Equal shapes, and numbers equal within a tolerance relative to the largest of the array.
fn agree(stage: &'static str, got: &[Nd], want: &[Nd], tolerance: f64) -> Outcomes<()> {
    for (i, (a, b)) in got.iter().zip(want).enumerate() {
        let scale = b.data.iter().fold(1.0, |m: f64, x| m.max(x.abs()));
        let same = a.shape == b.shape && a.kind == b.kind && a.data.iter().zip(&b.data).all(|(x, y)| (x - y).abs() <= tolerance * scale);
        if !same {
            let text = format!("item {i}\n  got  {:?} {:?} {:?}\n  want {:?} {:?} {:?}", a.kind, a.shape, a.data, b.kind, b.shape, b.data);
            return Err(Fault { stage, text });
        }
    }
    Ok(())
}
