//! Arguments that do not fit: the door, and who decides what is reported.

use scan_core::base::{Diagnostic, Kind, Span};
use scan_core::exec::{Function, FunctionSpec, Program};
use scan_core::expr::Var;
use scan_core::ir::EvalCx;
use scan_core::ir::parse::parse;
use scan_core::prelude::Engine;
use scan_core::rewrite::Options;
use scan_core::types::{Array, DType, Dim, Type};
use std::sync::Arc;

fn program(text: &str, engine: Engine) -> Program {
    let graph = parse(text).unwrap_or_else(|e| panic!("{}", e.title)).1;
    Program::new(Arc::new(graph), &Options::full(), engine).unwrap_or_else(|e| panic!("{}", e.title))
}

fn ones(shape: &[usize]) -> Array {
    Array::full(DType::F64, shape, 1.0)
}

#[test]
fn inputs_that_share_an_extent_must_have_it() {
    let n = Dim::fresh();
    let input = |name: &str, rank: usize| Var::input(Type::new(DType::F64, vec![n.clone(); rank]), Some(name), Span::NONE);
    let (x, w) = (input("x", 1), input("w", 2));
    let product = x.matmul(&w);
    let f = Function::new(FunctionSpec { inputs: vec![x, w], outputs: vec![product], ..FunctionSpec::default() }).expect("compiles");
    let call = |shapes: [&[usize]; 2]| f.call(&mut EvalCx::new(), &shapes.map(ones));
    assert_eq!(call([&[2], &[2, 2]]).expect("fits")[0].to_f64_vec(), [2.0, 2.0]);
    for shapes in [[&[3][..], &[2, 2][..]], [&[2], &[2, 3]]] {
        let error = call(shapes).expect_err("does not fit");
        assert_eq!((error.code, error.title.contains("are one extent")), ("E0504", true), "{}", error.title);
    }
}

#[test]
fn what_is_certain_to_fail_is_told_as_it_was_written() {
    let text = "fn f(x: f64[n0], y: f64[n1], table: f64[n2], k: i64) {
  %0 = index[pattern=i](table, k)
  %1 = add(x, y)
  %2 = mul(%1, %0)
  return %2
}";
    let args = |x: usize, y: usize, k: i64| [ones(&[x]), ones(&[y]), ones(&[4]), Array::scalar(k)];
    for engine in [Engine::Eval, Engine::Vm, Engine::Jit] {
        let program = program(text, engine);
        let code = |args: &[Array]| program.run(&mut EvalCx::new(), &|| args.to_vec()).map_or_else(|e| e.code, |_| "answered");
        assert_eq!(
            [(3, 2, 9), (3, 2, 1), (3, 3, 9), (3, 1, 1)].map(|(x, y, k)| code(&args(x, y, k))),
            ["E0202", "E0201", "E0202", "answered"]
        );
    }
}

/// A step on rows that do not fit is no fault where no step runs.
#[test]
fn extents_that_nothing_meets_are_answered() {
    let text = "fn f(n: i64, h: f64[1, n0], w: f64[n1, n2]) {
  %0 = scan n_steps=n {
    state h init=h reads=[0] writes=[1] keep=all
    const w = w
    step t
    %1 = matmul(h, w)
    next h = %1
  }
  return %0.h, %0.steps
}";
    for engine in [Engine::Eval, Engine::Vm, Engine::Jit] {
        let program = program(text, engine);
        let call = |n: i64| program.run(&mut EvalCx::new(), &|| vec![Array::scalar(n), ones(&[1, 3]), ones(&[3, 2])]);
        assert_eq!(call(0).expect("no step runs")[0].shape(), [1, 3]);
        assert_eq!(call(2).expect_err("rows change").code, "E0102");
    }
}

#[test]
fn evaluations_can_be_limited() {
    let mut cx = EvalCx::new();
    let steps = |n: usize| move |cx: &mut EvalCx| (0..n).try_for_each(|_| cx.check());
    assert_eq!(cx.within(10, steps(9)), Some(Ok(())));
    assert_eq!(cx.within(10, steps(10)), None);
    let fault = |_: &mut EvalCx| Err::<(), _>(Diagnostic::new(Kind::Value, "E0301", "no"));
    assert!(cx.within(10, fault).is_some_and(|done| done.is_err()));
    assert_eq!(steps(1000)(&mut cx), Ok(()), "what comes later is not limited");
}
