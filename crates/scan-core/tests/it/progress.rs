//! How far an evaluation has come, told to whoever asks while it runs.

use scan_core::prelude::*;
use std::cell::Cell;

const STEPS: usize = 20_000_000;

/// A loop of many steps, of which all rows are returned.
fn halves(engine: Engine) -> Function {
    let start = Var::float("start", 0);
    let n_steps = Some(Var::int(STEPS as i64));
    let mut step = LoopBuilder::new(LoopOptions { n_steps, ..LoopOptions::default() }).unwrap();
    let h = step.state(&start, &[-1], Some("h")).unwrap().remove(0);
    let next = h * 0.5 + 1.0;
    let outputs = step.finish(&[(Some(0), next)], &[], None).unwrap().outputs;
    Function::new(FunctionSpec { inputs: vec![start], outputs, engine: Some(engine), ..Default::default() }).unwrap()
}

#[test]
fn steps_are_told_on_every_engine() {
    for engine in [Engine::Eval, Engine::Vm, Engine::Jit] {
        let (f, walked, seen) = (halves(engine), Cell::new(Walked::default()), Cell::new(Walked::default()));
        let stop = || {
            seen.set(walked.get());
            if seen.get().done > 0 { Err(Diagnostic::new(Kind::Interrupted, "E0390", "enough")) } else { Ok(()) }
        };
        let mut cx = EvalCx::with_poll(&stop).telling(&walked);
        let error = f.call(&mut cx, &[Array::scalar(3.0)]).unwrap_err();
        assert_eq!(error.code, "E0390", "{engine:?}");
        assert!(seen.get().steps == STEPS && (1..STEPS).contains(&seen.get().done), "{engine:?}: {:?}", seen.get());
        assert_eq!(walked.get(), Walked::default(), "no loop runs any more");
    }
}
