//! The logistic map, x ← r·x·(1 − x): the last of a million values and its slope in r.

use scan_core::prelude::*;
use std::time::Instant;

fn main() -> Result<()> {
    let (x0, r, n) = (scalar("x0"), scalar("r"), integer("n"));
    let x = scan().steps(&n).init("x", &x0).run(|s| {
        let x = s.get("x");
        &r * &x * (1.0 - &x)
    });
    let last = x.last("x");
    let slope = last.grad(&r);
    for (name, output) in [("value", last), ("slope", slope)] {
        let f = function(&[&x0, &r, &n], &[&output]).compile()?;
        let start = Instant::now();
        let out = f.run(&[Array::scalar(0.3), Array::scalar(3.2), Array::scalar(1_000_000_i64)])?;
        println!("{name}: {:?} in {:.0} ns per step", out[0].to_f64_vec(), start.elapsed().as_nanos() as f64 / 1e6);
    }
    Ok(())
}
