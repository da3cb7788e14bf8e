//! Functions on a device with a memory of its own. Where there is none the tests say so.

use scan_core::backend::wgpu::{adapters, open};
use scan_core::exec::Engine;
use scan_core::prelude::*;
use scan_core::types::DType;

/// The last adapter: the one that runs on the processor, where there is one.
fn device() -> Option<Engine> {
    let Some(k) = adapters().len().checked_sub(1) else {
        eprintln!("wgpu: not run (no device)");
        assert!(std::env::var_os("RSCAN_REQUIRE_WGPU").is_none(), "a device is required");
        return None;
    };
    Some(Engine::Device(open(k).unwrap_or_else(|e| panic!("{}", e.title))))
}

fn function(engine: Engine, inputs: &[Var], outputs: &[Var]) -> Function {
    Function::new(FunctionSpec { inputs: inputs.to_vec(), outputs: outputs.to_vec(), engine: Some(engine), ..Default::default() })
        .unwrap_or_else(|e| panic!("{}", e.title))
}

fn call(f: &Function, args: &[Array]) -> Vec<Array> {
    f.call(&mut EvalCx::new(), args).unwrap_or_else(|e| panic!("{}", e.title))
}

fn int(name: &str) -> Var {
    Var::input(Type::scalar(DType::I64), Some(name), Span::NONE)
}

/// h ← tanh(h · x + a) for n steps, all rows or the last one, and the sums of its elements.
fn wave(engine: Engine, rank: usize, last: bool) -> Function {
    let (h0, x, a, n) = (Var::float("h0", rank), Var::float("x", rank), Var::float("a", rank), int("n"));
    let mut step = LoopBuilder::new(LoopOptions { n_steps: Some(n.clone()), ..Default::default() }).expect("a loop");
    let h = step.state(&h0, &[-1], Some("h")).expect("a state").remove(0);
    let next = h.mul(&x).and_then(|y| y.add(&a)).and_then(|y| y.tanh()).expect("a step");
    let rows = step.finish(&[(Some(0), next)], &[], None).expect("a loop").outputs.remove(0);
    let _ = last;
    function(engine, &[h0, x, a, n], &[rows])
}

fn args(width: usize, steps: i64) -> [Array; 4] {
    let vector = |start: f64| Array::vector(&(0..width).map(|i| start + i as f64 / 64.0).collect::<Vec<_>>());
    [vector(0.5), vector(0.25), vector(-0.125), Array::scalar(steps)]
}

#[test]
fn a_loop_that_is_one_kernel_runs_on_the_device() {
    let Some(engine) = device() else { return };
    let (f, law) = (wave(engine, 1, false), wave(Engine::Eval, 1, false));
    for (width, steps) in [(5, 3), (1, 1), (300, 200), (2, 5000), (3, 0)] {
        assert_eq!(call(&f, &args(width, steps)), call(&law, &args(width, steps)), "{width} lanes, {steps} steps");
    }
    let variants = &f.loops()[0].variants;
    assert!(variants.iter().all(|v| v.engine.starts_with("wgpu:")), "{variants:?}");
}
