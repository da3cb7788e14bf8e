//! Steps of a session: no memory is taken for them, and what they take in time.

use crate::vm_allocations::counted;
use scan_core::prelude::*;
use std::time::Instant;

/// A GARCH filter of three states, a row of which each step returns.
fn garch() -> Function {
    let (xs, inits) = (Var::float("xs", 1), ["mu", "v", "a"].map(|name| Var::float(name, 0)));
    let mut step = LoopBuilder::new(LoopOptions::default()).unwrap();
    let x = step.sequence(&xs, &[0], Some("x")).unwrap().remove(0);
    let [mu, v, a] = [0, 1, 2].map(|k: usize| step.state(&inits[k], &[-1], Some(["mu", "v", "a"][k])).unwrap().remove(0));
    let number = |x: f64| Var::constant(Array::scalar(x), Span::NONE);
    let e = x.sub(&mu).unwrap();
    let new_v = number(0.02).add(&number(0.1).mul(&e.square().unwrap()).unwrap()).unwrap().add(&number(0.88).mul(&v).unwrap()).unwrap();
    let new_mu = mu.add(&number(0.05).mul(&e).unwrap()).unwrap();
    let new_a = a.mul(&number(0.9)).unwrap().add(&e.square().unwrap().div(&new_v).unwrap()).unwrap();
    let outs = step.finish(&[(Some(0), new_mu), (Some(1), new_v), (Some(2), new_a)], &[], None).unwrap().outputs;
    let inputs = std::iter::once(xs).chain(inits).collect();
    Function::new(FunctionSpec { inputs, outputs: outs, engine: Some(Engine::Jit), ..Default::default() }).unwrap()
}

#[test]
fn steps_in_the_callers_memory_take_none_and_make_the_rows_of_the_whole_call() {
    let (f, cx) = (garch(), &mut EvalCx::new());
    let xs: Vec<f64> = (0..1000).map(|i| (i as f64 * 0.7).sin()).collect();
    let start = [0.0, 1.0, 0.5].map(|x: f64| Array::scalar(x));
    let whole = f.call(cx, &[&[Array::vector(&xs)], &start[..]].concat()).unwrap();
    let given: Vec<Option<Array>> = std::iter::once(None).chain(start.into_iter().map(Some)).collect();
    let mut session = f.session(cx, &given).unwrap();
    let mut rows = [0f64; 3];
    let (mut taken, mut quickest) = (0, f64::MAX);
    for (t, x) in xs.iter().enumerate() {
        let [a, b, c] = &mut rows;
        let mut outs = [a, b, c].map(|x| StepRowMut::from(std::slice::from_mut(x)));
        let begun = Instant::now();
        let n = counted(|| session.step_into(cx, &[StepRow::from(std::slice::from_ref(x))], &mut outs).unwrap());
        quickest = f64::min(quickest, begun.elapsed().as_secs_f64());
        taken += if t > 0 { n } else { 0 };
        assert!(rows.iter().zip(&whole).all(|(x, all)| x.to_bits() == all.as_slice::<f64>()[t].to_bits()), "step {t}");
    }
    assert_eq!(taken, 0, "allocations in 999 steps");
    println!("a step of a filter of three states: {:.0} ns", quickest * 1e9);
    let begun = Instant::now();
    for x in &xs {
        let [a, b, c] = &mut rows;
        let mut outs = [a, b, c].map(|x| StepRowMut::from(std::slice::from_mut(x)));
        session.step_into(cx, &[StepRow::from(std::slice::from_ref(x))], &mut outs).unwrap();
    }
    println!("one of a thousand: {:.0} ns", begun.elapsed().as_secs_f64() / 1000.0 * 1e9);
    fn sent(_: impl Send) {}
    sent(session);
}
