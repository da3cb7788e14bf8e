//! Memory that is refused: an error at the line that asked for it, after which the function works.

use scan_core::base::small;
use scan_core::prelude::*;

/// So many bytes are refused.
const REFUSED: usize = 1 << 15;

fn function(engine: Engine, inputs: &[&Var], outputs: Vec<Var>, updates: Vec<(Var, Var)>) -> Function {
    let inputs = inputs.iter().map(|&v| v.clone()).collect();
    Function::new(FunctionSpec { inputs, outputs, updates, engine: Some(engine), ..Default::default() }).expect("compiles")
}

/// The rows and the last row's slope of `h ← tanh(w·h)` over n steps, h a vector.
fn program(n: &Var, w: &Var, h: &Var) -> Vec<Var> {
    let mut step = LoopBuilder::new(LoopOptions { n_steps: Some(n.clone()), ..Default::default() }).expect("a loop");
    let before = step.state(h, &[-1], Some("h")).expect("a state").remove(0);
    let after = (w * &before).tanh();
    let rows = step.finish(&[(Some(0), after)], &[], None).expect("a loop").outputs.remove(0);
    let cost = rows.square().sum();
    let slope = grad_with(Some(&cost), &[w.clone()], &GradOptions::default()).expect("a gradient").remove(0).expect("connected");
    vec![rows, slope]
}

#[test]
fn loops_and_gradients_give_an_error_and_work_at_the_next_call() {
    for engine in [Engine::Eval, Engine::Vm, Engine::Jit] {
        let n = Var::input(Type::scalar(DType::I64), Some("n"), Span::NONE);
        let (w, h) = (Var::float("w", 0), Var::float("h", 1));
        let f = function(engine, &[&n, &w, &h], program(&n, &w, &h), vec![]);
        let call = |steps: i64| f.call(&mut EvalCx::new(), &[Array::scalar(steps), Array::scalar(0.5), Array::vector(&[1.0; 8])]);
        let expected = call(20).expect("runs");
        small::refusing_from(REFUSED, || {
            for steps in [600, 5000] {
                let error = call(steps).expect_err("memory is refused");
                assert_eq!((error.kind, error.code), (Kind::Memory, "E0392"), "{engine:?}: {error}");
                assert!(error.title.contains("`h`") || error.title.contains("bytes"), "{error}");
                assert_eq!(call(20).expect("little is needed"), expected, "{engine:?}");
            }
        });
        assert_eq!(call(20).expect("runs"), expected);
        assert_eq!(call(600).expect("memory is there again")[0].shape(), [600, 8]);
    }
}

#[test]
fn a_refused_call_writes_no_shared_variable_and_leaves_no_lock() {
    for engine in [Engine::Eval, Engine::Jit] {
        let total = Shared::new(Array::scalar(0.0), Type::scalar(DType::F64));
        let (leaf, x) = (Var::shared(total.clone(), Some("total"), Span::NONE), Var::float("x", 1));
        let column = x.square();
        let sum = &leaf + column.sum();
        let f = function(engine, &[&x], vec![column], vec![(leaf, sum)]);
        let call = |x: Vec<f64>| f.call(&mut EvalCx::new(), &[Array::new(&[x.len()], x)]);
        // Memory that is kept for later would serve as well.
        release_memory();
        let large = vec![2.0; 1 << 20];
        let error = small::refusing_from(REFUSED, || call(large).expect_err("refused"));
        assert_eq!((error.kind, total.get()), (Kind::Memory, Array::scalar(0.0)), "{engine:?}");
        for _ in 0..2 {
            assert_eq!(call(vec![2.0; 3]).expect("runs")[0], Array::vector(&[4.0; 3]));
        }
        assert_eq!(total.get(), Array::scalar(24.0));
    }
}
