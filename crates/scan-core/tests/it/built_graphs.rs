//! Graphs that the expression API makes, as text and back: loops with taps, their gradients, gradients of gradients.

use crate::sources::Random;
use scan_core::eval;
use scan_core::exec::{Function, FunctionSpec};
use scan_core::expr::gradient::grad_with;
use scan_core::expr::{GradOptions, LoopBuilder, LoopOptions, Var};
use scan_core::ir::parse::parse;
use scan_core::ir::verify::verify;
use scan_core::ir::{EvalCx, Graph};
use scan_core::types::Array;

/// The graph prints as text that reads back to a graph that verifies, prints the same and computes the same bits.
pub fn round_trip(graph: &Graph, args: &[Array]) {
    let text = graph.to_text("f");
    verify(graph).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let (_, again) = parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    verify(&again).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(again.to_text("f"), text);
    let run = |g: &Graph| eval::run(g, &mut EvalCx::new(), args).map_err(|e| e.code);
    assert_eq!(run(graph), run(&again), "{text}");
}

fn function(inputs: &[&Var], outputs: Vec<Var>) -> Function {
    let inputs = inputs.iter().map(|&v| v.clone()).collect();
    Function::new(FunctionSpec { inputs, outputs, ..FunctionSpec::default() }).unwrap()
}

/// `x_t = tanh(W (x_(t-1) + x_(t-3)) + u_t u_(t-2))`, several options, with cost, gradient and a gradient of that.
fn network(options: LoopOptions, until: bool) -> (Vec<Var>, Vec<Var>) {
    let (w, u, x0) = (Var::float("W", 2), Var::float("u", 1), Var::float("x0", 2));
    let n = options.n_steps.clone();
    let mut b = LoopBuilder::new(options).unwrap();
    let taps = b.sequence(&u, &[0, -2], Some("u")).unwrap();
    let x = b.state(&x0, &[-3, -1], Some("x")).unwrap();
    let inner = x[0].add(&x[1]);
    let next = w.matmul(&inner).add(taps[0].mul(&taps[1])).tanh();
    let norm = next.square().sum();
    let stop = norm.lt(1e-3);
    let done = b.finish(&[(Some(0), next), (None, norm)], &[], until.then_some(&stop)).unwrap();
    let cost = done.outputs[0].square().sum().add(done.outputs[1].row(-1));
    cost.set_name(Some("the cost"));
    let wrt = [w.clone(), u.clone(), x0.clone()];
    let first: Vec<Var> = grad_with(Some(&cost), &wrt, &GradOptions::default()).unwrap().into_iter().flatten().collect();
    let slope = first[0].square().sum();
    let second: Vec<Var> = grad_with(Some(&slope), &wrt, &GradOptions::default()).unwrap().into_iter().flatten().collect();
    let inputs = [w, u, x0].into_iter().chain(n).collect();
    (inputs, [cost, done.steps].into_iter().chain(done.outputs).chain(first).chain(second).collect())
}

#[test]
fn loops_and_their_gradients_round_trip() {
    let mut random = Random(3);
    let mut values = |shape: &[usize]| Array::new(shape, (0..shape.iter().product()).map(|_| random.unit()).collect::<Vec<f64>>());
    let args = [values(&[2, 2]), values(&[9]), values(&[3, 2])];
    let n = || Some(Var::input(scan_core::types::Type::scalar(scan_core::types::DType::I64), Some("n"), scan_core::base::Span::NONE));
    let plain = LoopOptions { name: Some("reservoir".into()), ..LoopOptions::default() };
    let backwards = LoopOptions { go_backwards: true, truncate: Some(2), ..LoopOptions::default() };
    let counted = LoopOptions { n_steps: n(), ..LoopOptions::default() };
    for (options, until) in [(plain, false), (backwards, false), (counted.clone(), true), (counted, false)] {
        let (inputs, outputs) = network(options, until);
        assert_eq!(outputs.len(), 4 + 3 + 3);
        let f = function(&inputs.iter().collect::<Vec<_>>(), outputs);
        let steps = (inputs.len() == 4).then(|| Array::scalar(5i64));
        round_trip(f.graph(), &args.iter().cloned().chain(steps).collect::<Vec<_>>());
    }
}

#[test]
fn a_loop_without_steps_round_trips_with_its_gradients() {
    let n = Var::int(0);
    let (inputs, outputs) = network(LoopOptions { n_steps: Some(n), ..LoopOptions::default() }, false);
    let args = [
        Array::full(scan_core::types::DType::F64, &[2, 2], 0.5),
        Array::full(scan_core::types::DType::F64, &[4], 0.5),
        Array::full(scan_core::types::DType::F64, &[3, 2], 0.5),
    ];
    round_trip(function(&inputs[..3].iter().collect::<Vec<_>>(), outputs).graph(), &args);
}

#[test]
fn lines_of_the_user_stand_in_the_text() {
    let x = Var::float("x", 1);
    let y = x.exp();
    let line = line!() - 1;
    let text = function(&[&x], vec![y]).graph().to_text("f");
    assert!(text.contains(&format!("# built_graphs.rs:{line}")), "{text}");
}
