//! The logistic map, x ← r·x·(1 − x): the last of a million values and its slope in r.

use scan_core::prelude::*;
use std::time::Instant;

fn main() -> Result<()> {
    let (x0, r, n) = (Var::float("x0", 0), Var::float("r", 0), Var::input(Type::scalar(DType::I64), Some("n"), Span::NONE));
    let mut step = LoopBuilder::new(LoopOptions { n_steps: Some(n.clone()), ..Default::default() })?;
    let x = step.state(&x0, &[-1], Some("x"))?.remove(0);
    let next = r.mul(&x)?.mul(&Var::number(1.0).sub(&x)?)?;
    let last = step.finish(&[(Some(0), next)], &[], None)?.outputs[0].row(-1)?;
    let slope = grad(Some(&last), std::slice::from_ref(&r), &GradOptions::default())?.remove(0).unwrap_or_else(|| last.clone());
    let inputs = vec![x0, r, n];
    for (name, output) in [("value", last), ("slope", slope)] {
        let f = Function::new(FunctionSpec { inputs: inputs.clone(), outputs: vec![output], ..Default::default() })?;
        let start = Instant::now();
        let out = f.call(&mut EvalCx::new(), &[Array::scalar(0.3), Array::scalar(3.2), Array::scalar(1_000_000_i64)])?;
        println!("{name}: {:?} in {:.0} ns per step", out[0].to_f64_vec(), start.elapsed().as_nanos() as f64 / 1e6);
    }
    Ok(())
}
