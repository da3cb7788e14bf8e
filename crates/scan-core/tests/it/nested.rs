//! Loops that stand in each other, many levels deep: the work of building them grows with the levels and no faster, and no stack
//! overflows.

use crate::sources::Random;
use scan_core::base::{Result, Span};
use scan_core::exec::{Function, FunctionSpec};
use scan_core::expr::gradient::grad_with;
use scan_core::expr::{GradOptions, LoopBuilder, LoopOptions, Var};
use scan_core::ir::parse::parse;
use scan_core::ir::{EvalCx, Scan};
use scan_core::types::{Array, DType, Type};
use std::time::Instant;

/// What a step does around the loop in it.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Style {
    /// Nothing.
    Bare,
    /// It decides on its state, by what the outermost loop was given.
    Choice,
    /// It reads rows of a sequence, and may stop the loop.
    Rows,
}
const STYLES: [Style; 3] = [Style::Bare, Style::Choice, Style::Rows];
/// Numbers of steps: those that are written out, one that is not, and one that the caller says.
const STEPS: [Option<i64>; 6] = [Some(1), Some(2), Some(3), Some(4), Some(7), None];

/// Loops in loops.
struct Nest {
    n: Var,
    rows: Var,
    x: Var,
    w: Var,
    /// What stands in the innermost loop at last.
    end: Var,
}

/// Arguments that let every loop run once.
fn args() -> [Array; 4] {
    let vector = |values: [f64; 3]| Array::new(&[3], values.to_vec());
    [Array::scalar(1i64), Array::new(&[1, 3], vec![0.1, 0.2, 0.3]), vector([0.5, -0.25, 0.125]), vector([0.5, 1.5, 0.75])]
}

impl Nest {
    /// So many loops, of which `level` says how they look, the outermost first.
    fn new(depth: usize, level: &mut dyn FnMut() -> (Style, Option<i64>)) -> Result<Nest> {
        let n = Var::input(Type::scalar(DType::I64), Some("n"), Span::NONE);
        let (rows, x, w) = (Var::float("rows", 2), Var::float("x", 1), Var::float("w", 1));
        let mut nest = Nest { n, rows, x: x.clone(), w, end: x.clone() };
        nest.end = nest.inside(depth, &x, level)?;
        Ok(nest)
    }
    fn inside(&self, depth: usize, x: &Var, level: &mut dyn FnMut() -> (Style, Option<i64>)) -> Result<Var> {
        if depth == 0 {
            return Ok((x * &self.w).tanh());
        }
        let (style, steps) = level();
        let n_steps = Some(steps.map_or_else(|| self.n.clone(), Var::int));
        let mut b = LoopBuilder::new(LoopOptions { n_steps, ..LoopOptions::default() })?;
        let row = if style == Style::Rows { b.sequence(&self.rows, &[0], Some("u"))?.pop() } else { None };
        let h = b.state(x, &[-1], Some("h"))?.remove(0);
        let from = row.as_ref().map_or_else(|| h.clone(), |u| &h + u);
        let made = self.inside(depth - 1, &from, level)?;
        let next = if style == Style::Choice { h.lt(&self.x).select(made * x, h) } else { made };
        let stop = if style == Style::Rows { Some(next.sum().gt(100.0)) } else { None };
        Ok(b.finish(&[(Some(0), next)], &[], stop.as_ref())?.outputs[0].row(-1))
    }
    fn inputs(&self) -> Vec<Var> {
        [&self.n, &self.rows, &self.x, &self.w].map(Var::clone).to_vec()
    }
    /// The function of what comes out and, where that is asked for, of its slopes.
    fn compiled(&self, slopes: bool) -> Result<Function> {
        let mut outputs = vec![self.end.clone()];
        if slopes {
            let found = grad_with(Some(&self.end.sum()), &[self.x.clone(), self.w.clone()], &GradOptions::default())?;
            outputs.extend(found.into_iter().flatten());
        }
        Function::new(FunctionSpec { inputs: self.inputs(), outputs, ..FunctionSpec::default() })
    }
}

fn nest(depth: usize, style: Style, steps: Option<i64>) -> Nest {
    Nest::new(depth, &mut || (style, steps)).unwrap_or_else(|e| panic!("{e}"))
}

/// Nodes that passes were given, and nodes that they left, at every place where they stand.
fn work(f: &Function) -> [usize; 2] {
    [f.report().walked, f.optimised().whole().nodes]
}

/// Twice the depth is twice the work; in gradients, where each level computes those below it once more, four times.
#[test]
fn the_work_of_building_grows_with_the_depth_alone() {
    for (slopes, depth, most) in [(false, 10, 3), (true, 6, 6)] {
        for (style, steps) in STYLES.iter().flat_map(|s| STEPS.map(|n| (*s, n))) {
            let of = |depth: usize| work(&nest(depth, style, steps).compiled(slopes).unwrap_or_else(|e| panic!("{e}")));
            let (shallow, deep) = (of(depth), of(2 * depth));
            // What is written out at the innermost levels is the same at any depth.
            let fits = (0..2).all(|k| deep[k] <= most * shallow[k] + 300);
            assert!(fits, "{style:?}, {steps:?} steps, slopes: {slopes}: {shallow:?} at depth {depth}, {deep:?} at twice that");
        }
    }
}

/// Build times of programs as users write them; shown with `--nocapture`, and not judged: machines are shared.
#[test]
fn three_hundred_nests_are_built() {
    let mut random = Random(20);
    let (mut slowest, mut at) = (0.0, String::new());
    for k in 0..300 {
        let depth = 1 + random.below(20);
        let slopes = k % 3 == 0 && depth <= 8;
        let mut levels = vec![];
        let start = Instant::now();
        let nest = Nest::new(depth, &mut || {
            levels.push((*random.pick(&STYLES), *random.pick(&STEPS)));
            levels[levels.len() - 1]
        });
        let f = nest.and_then(|n| n.compiled(slopes)).unwrap_or_else(|e| panic!("{e}"));
        let spent = start.elapsed().as_secs_f64() * 1e3;
        assert!(work(&f)[1] >= 1 && f.graph().results().len() == if slopes { 3 } else { 1 });
        if spent > slowest {
            (slowest, at) = (spent, format!("program {k}, slopes: {slopes}, {depth} levels: {levels:?}"));
        }
    }
    println!("300 nests, the slowest built in {slowest:.1} ms: {at}");
}

/// The deepest nest that is allowed, on a stack as small as threads usually have: built, differentiated, printed, read, run, dropped.
#[test]
fn the_deepest_nest_fits_the_stack() {
    let all = || {
        for style in STYLES {
            let nest = nest(Scan::MAX_DEPTH, style, None);
            let f = nest.compiled(false).unwrap_or_else(|e| panic!("{e}"));
            let text = f.graph().to_text("f");
            let (_, again) = parse(&text).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(again.to_text("f"), text);
            let law = scan_core::eval::run(f.graph(), &mut EvalCx::new(), &args()).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(f.call(&mut EvalCx::new(), &args()).unwrap_or_else(|e| panic!("{e}")), law);
            assert_eq!(f.loops().len(), Scan::MAX_DEPTH);
        }
        let found = nest(Scan::MAX_DEPTH, Style::Bare, None).compiled(true).unwrap_or_else(|e| panic!("{e}"));
        assert!(found.call(&mut EvalCx::new(), &args()).is_ok_and(|outs| outs.len() == 3));
    };
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(all);
    thread.map(|t| t.join().map_err(|_| "it panicked")).unwrap_or_else(|e| panic!("{e}")).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn deeper_nests_are_errors() {
    let error = Nest::new(Scan::MAX_DEPTH + 1, &mut || (Style::Bare, None)).err().expect("too deep");
    assert_eq!((error.code, &*error.title), ("E0127", "loops stand in each other 101 deep, of which 100 are allowed"));
    let text = |depth: usize| {
        let open = "%0 = scan n_steps=n {\nconst n = n\n".repeat(depth);
        format!("fn f(n: i64) {{\n{open}{}return n\n}}\n", "}\n".repeat(depth))
    };
    assert!(parse(&text(Scan::MAX_DEPTH)).is_ok());
    assert_eq!(parse(&text(10_000)).err().map(|e| e.code), Some("E0906"));
}
