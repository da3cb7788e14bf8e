//! Loops of which a few rows matter hold a few rows, however long they run.

use crate::vm_allocations::peak;
use scan_core::prelude::*;
use scan_core::types::DType;

/// What is wanted of the rows of a loop.
#[derive(Clone, Copy, Debug)]
enum Wanted {
    Last,
    LastRows(i64),
    Sum,
}

impl Wanted {
    /// As a function that gets the rows would write it.
    fn of(self, rows: &Var) -> Var {
        match self {
            Wanted::Last => rows.row(-1),
            Wanted::LastRows(k) => rows.rows(-k..),
            Wanted::Sum => rows.sum(),
        }
    }
}

/// x(t) = a · x(t − lag) + 1 for n steps, or until it is beyond a limit.
fn function(wanted: Wanted, lag: i64, until: bool) -> Function {
    let (a, limit) = (Var::float("a", 0), Var::float("limit", 0));
    let n = Var::input(Type::scalar(DType::I64), Some("n"), Span::NONE);
    let mut step = LoopBuilder::new(LoopOptions { n_steps: Some(n.clone()), ..Default::default() }).expect("a loop");
    let start = Var::constant(Array::zeros(DType::F64, if lag == 1 { &[][..] } else { &[3][..] }), Span::NONE);
    let x = step.state(&start, &[-lag], Some("x")).expect("a state").remove(0);
    let next = &a * &x + 1.0;
    let stop = until.then(|| next.gt(&limit));
    let rows = step.finish(&[(Some(0), next)], &[], stop.as_ref()).expect("a loop").outputs.remove(0);
    let output = wanted.of(&rows);
    let spec = FunctionSpec { inputs: vec![a, limit, n], outputs: vec![output], engine: Some(Engine::Auto), ..Default::default() };
    Function::new(spec).unwrap_or_else(|e| panic!("{}", e.title))
}

fn bytes(f: &Function, steps: i64) -> usize {
    let call = |n: i64| {
        let args = [Array::scalar(0.5), Array::scalar(1e300), Array::scalar(n)];
        f.call(&mut EvalCx::new(), &args).unwrap_or_else(|e| panic!("{}", e.title))
    };
    drop(call(100_000));
    peak(|| drop(call(steps)))
}

#[test]
fn ten_million_steps_take_the_memory_of_ten_thousand() {
    for wanted in [Wanted::Last, Wanted::LastRows(5), Wanted::Sum] {
        for (lag, until) in [(1, false), (3, false), (1, true)] {
            let f = function(wanted, lag, until);
            let (few, many) = (bytes(&f, 10_000), bytes(&f, 10_000_000));
            println!("{wanted:?}, tap -{lag}{}: {few} and {many} bytes", if until { ", until" } else { "" });
            assert!(many <= few + 1024, "{wanted:?}, tap -{lag}, until {until}: {few} and {many} bytes");
        }
    }
}

/// h(t) = tanh(x(t)·w + h(t − 1)), whose products for all steps are one product that is computed ahead.
fn wide() -> Function {
    let (x, w, start) = (Var::float("x", 2), Var::float("w", 2), Var::float("start", 1));
    let mut step = LoopBuilder::new(LoopOptions::default()).expect("a loop");
    let row = step.sequence(&x, &[0], Some("x")).expect("a sequence").remove(0);
    let h = step.state(&start, &[-1], Some("h")).expect("a state").remove(0);
    let next = (row.matmul(&w) + &h).tanh();
    let rows = step.finish(&[(Some(0), next)], &[], None).expect("a loop").outputs.remove(0);
    let spec = FunctionSpec {
        inputs: vec![x, w, start],
        outputs: vec![Wanted::Last.of(&rows)],
        engine: Some(Engine::Auto),
        passes: PassOptions::full(),
        ..Default::default()
    };
    Function::new(spec).unwrap_or_else(|e| panic!("{}", e.title))
}

/// y(t) = h(t)·w for h(t) = tanh(x(t) + h(t − 1)): the products of all steps are one product that is computed behind.
fn narrow() -> Function {
    let (x, w, start) = (Var::float("x", 2), Var::float("w", 2), Var::float("start", 1));
    let mut step = LoopBuilder::new(LoopOptions::default()).expect("a loop");
    let row = step.sequence(&x, &[0], Some("x")).expect("a sequence").remove(0);
    let h = step.state(&start, &[-1], Some("h")).expect("a state").remove(0);
    let next = (row + &h).tanh();
    let rows = step.finish(&[(Some(0), next)], &[], None).expect("a loop").outputs.remove(0);
    let spec = FunctionSpec {
        inputs: vec![x, w.clone(), start],
        outputs: vec![rows.matmul(&w)],
        engine: Some(Engine::Auto),
        passes: PassOptions::full(),
        ..Default::default()
    };
    Function::new(spec).unwrap_or_else(|e| panic!("{}", e.title))
}

#[test]
fn rows_that_are_multiplied_alone_take_the_memory_of_blocks() {
    let f = narrow();
    let (steps, width) = (40_000, 64);
    let args = [Array::zeros(DType::F64, &[steps, width]), Array::zeros(DType::F64, &[width, 2]), Array::zeros(DType::F64, &[width])];
    let call = || f.call(&mut EvalCx::new(), &args).unwrap_or_else(|e| panic!("{}", e.title));
    drop(call());
    let (taken, all) = (peak(|| drop(call())), steps * width * 8);
    println!("{taken} bytes, all rows {all}");
    assert!(taken < all / 8, "{taken} bytes, all rows would take {all}\n{}", f.optimised().to_text("f"));
    assert!(f.loops().iter().any(|l| l.behind.iter().any(|op| op == "matmul")), "{:?}", f.loops());
}

#[test]
fn products_computed_ahead_take_the_memory_of_a_block() {
    let f = wide();
    let (steps, width) = (40_000, 64);
    let args = [Array::zeros(DType::F64, &[steps, 4]), Array::zeros(DType::F64, &[4, width]), Array::zeros(DType::F64, &[width])];
    let call = || f.call(&mut EvalCx::new(), &args).unwrap_or_else(|e| panic!("{}", e.title));
    drop(call());
    let (taken, all) = (peak(|| drop(call())), steps * width * 8);
    println!("{taken} bytes, all products {all}");
    assert!(taken < all / 10, "{taken} bytes, all products would take {all}\n{}", f.optimised().to_text("f"));
    assert!(f.loops().iter().any(|l| l.ahead.iter().any(|op| op == "matmul")), "{:?}", f.loops());
}
