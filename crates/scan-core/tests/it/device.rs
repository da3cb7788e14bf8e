//! Functions on a device with a memory of its own. Where there is none the tests say so.

use scan_core::backend::{cuda, wgpu};
use scan_core::exec::Engine;
use scan_core::prelude::*;
use scan_core::types::DType;

/// The last adapter, which runs on the processor, where there is one; and a card that a driver without one interprets.
fn devices() -> Vec<Engine> {
    let card = cuda::open_on(Box::leak(Box::<cuda::fake::Fake>::default()), 0).unwrap_or_else(|e| panic!("{}", e.title));
    let mut all = vec![Engine::Device(card)];
    match wgpu::adapters().len().checked_sub(1) {
        Some(k) => all.push(Engine::Device(wgpu::open(k).unwrap_or_else(|e| panic!("{}", e.title)))),
        None => {
            eprintln!("wgpu: not run (no device)");
            assert!(std::env::var_os("RSCAN_REQUIRE_WGPU").is_none(), "a device is required");
        }
    }
    all
}

fn name(engine: Engine) -> &'static str {
    if let Engine::Device(device) = engine { device.0.name() } else { "cpu" }
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
fn wave(engine: Engine, rank: usize) -> Function {
    let (h0, x, a, n) = (Var::float("h0", rank), Var::float("x", rank), Var::float("a", rank), int("n"));
    let mut step = LoopBuilder::new(LoopOptions { n_steps: Some(n.clone()), ..Default::default() }).expect("a loop");
    let h = step.state(&h0, &[-1], Some("h")).expect("a state").remove(0);
    let next = (h * &x + &a).tanh();
    let rows = step.finish(&[(Some(0), next)], &[], None).expect("a loop").outputs.remove(0);
    function(engine, &[h0, x, a, n], &[rows])
}

fn args(width: usize, steps: i64) -> [Array; 4] {
    let vector = |start: f64| Array::vector(&(0..width).map(|i| start + i as f64 / 64.0).collect::<Vec<_>>());
    [vector(0.5), vector(0.25), vector(-0.125), Array::scalar(steps)]
}

#[test]
fn a_loop_that_is_one_kernel_runs_on_the_device() {
    for engine in devices() {
        let (f, law) = (wave(engine, 1), wave(Engine::Eval, 1));
        for (width, steps) in [(5, 3), (1, 1), (300, 200), (2, 5000), (3, 0)] {
            assert_eq!(call(&f, &args(width, steps)), call(&law, &args(width, steps)), "{width} lanes, {steps} steps");
        }
        let variants = &f.loops()[0].variants;
        assert!(variants.iter().all(|v| v.engine.starts_with(name(engine))), "{variants:?}");
    }
}

/// A graph as text, on the device and by the evaluator, for arguments of these shapes; what became of its loops.
fn compare(engine: Engine, text: &str, args: &[Array]) -> Vec<LoopInfo> {
    let graph = scan_core::ir::parse::parse(text).unwrap_or_else(|e| panic!("{}", e.title)).1;
    let law = scan_core::eval::run(&graph, &mut EvalCx::new(), args).unwrap_or_else(|e| panic!("{}", e.title));
    let planned = scan_core::exec::native::plan(&graph, engine).unwrap_or_else(|e| panic!("{}", e.title));
    for _ in 0..2 {
        let found = scan_core::eval::run(&planned, &mut EvalCx::new(), args).unwrap_or_else(|e| panic!("{}", e.title));
        let bits = |all: &[Array]| all.iter().map(Array::bits).collect::<Vec<_>>();
        assert!(bits(&found) == bits(&law), "{text}\n{found:?}\n{law:?}");
    }
    scan_core::exec::explain::loops(&planned)
}

fn numbers(shape: &[usize]) -> Array {
    let n = shape.iter().product::<usize>();
    Array::new(shape, (0..n).map(|i| ((i * 37 + 11) % 64) as f64 / 64.0 - 0.4).collect())
}

/// Elman's network on rows of a batch, and what it reads of each row.
fn network(depth: usize, sorts: bool) -> String {
    let (last, reads) = if sorts { ("%5 = sort[axis=1](%4)", "%5") } else { ("%5 = mul(%4, %4)", "%5") };
    format!(
        "fn f(n: i64, x: f64[n0, n1, {depth}], h0: f64[1, n1, {depth}], w: f64[{depth}, {depth}], v: f64[{depth}, {depth}]) {{
  %0 = scan n_steps=n {{
    seq x_t = x
    state h init=h0 reads=[0] writes=[1] keep=all
    const a = w
    const b = v
    step t
    %1 = matmul(h, a)
    %2 = matmul(x_t, b)
    %3 = add(%1, %2)
    %4 = tanh(%3)
    {last}
    next h = {reads}
  }}
  return %0.h
}}"
    )
}

#[test]
fn a_list_of_launches_gives_the_laws_bits() {
    for engine in devices() {
        for (depth, batch) in [(3, 2), (300, 2)] {
            let square = numbers(&[depth, depth]);
            let args = [Array::scalar(7i64), numbers(&[7, batch, depth]), numbers(&[1, batch, depth]), square.clone(), square];
            let loops = compare(engine, &network(depth, false), &args);
            let variant = &loops[0].variants[0];
            assert!(variant.engine.contains(name(engine)) && variant.crossed.is_some(), "{variant:?}");
            assert!(!variant.reason.as_deref().unwrap_or_default().contains("on the host"), "{variant:?}");
        }
    }
}

#[test]
fn what_has_no_launch_runs_on_the_host_and_is_named() {
    for engine in devices() {
        let square = numbers(&[64, 64]);
        let args = [Array::scalar(9i64), numbers(&[9, 3, 64]), numbers(&[1, 3, 64]), square.clone(), square];
        let loops = compare(engine, &network(64, true), &args);
        let reason = loops[0].variants[0].reason.clone().unwrap_or_default();
        assert!(reason.contains("`sort` runs on the host"), "{reason}");
    }
}
