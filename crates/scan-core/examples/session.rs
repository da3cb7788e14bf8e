//! A filter one observation at a time: `session model.rscan` makes the file where there is none, as `rs.save` would, loads it and steps.
//!
//! Prints how long a step takes. The file has `filter(xs, mu, v, a)`: the means, variances and activities of a GARCH model after each row of xs.

use scan_core::prelude::*;
use std::sync::Arc;
use std::time::Instant;

fn main() -> Result<()> {
    let Some(path) = std::env::args().nth(1) else {
        println!("usage: session model.rscan");
        return Ok(());
    };
    if !std::path::Path::new(&path).exists() {
        make().and_then(|module| module.save(&path))?;
    }
    let module = Module::load(&path)?;
    let start = [("mu", Array::scalar(0.0)), ("v", Array::scalar(1.0)), ("a", Array::scalar(0.5))];
    let mut cx = EvalCx::new();
    let mut session = module.session(&mut cx, "filter", &start)?;

    // Arrays in, arrays out: one per sequence, one per result.
    let rows = session.step(&mut cx, &[Array::scalar(0.3)])?;
    println!("after {} step: {rows:?}", session.len());

    // In memory of the caller's: the second step and all after it take none from the allocator.
    let (mut mu, mut v, mut a) = ([0.0], [0.0], [0.0]);
    let mut quickest = f64::MAX;
    for _ in 0..1000 {
        let begun = Instant::now();
        for t in 0..1000 {
            let x = [f64::from(t % 7) * 0.25 - 0.75];
            session.step_into(&mut cx, &[(&x[..]).into()], &mut [(&mut mu[..]).into(), (&mut v[..]).into(), (&mut a[..]).into()])?;
        }
        quickest = quickest.min(begun.elapsed().as_secs_f64() / 1000.0);
    }
    println!("{:.0} ns a step at best; mu {:.6} v {:.6} a {:.6}", quickest * 1e9, mu[0], v[0], a[0]);

    // Many clients: a row for each goes in, a row for each comes out.
    for n in [1_000, 10_000] {
        let mut many = (0..n).map(|_| module.session(&mut cx, "filter", &start)).collect::<Result<Vec<Session>>>()?;
        let x = Array::vector(&(0..n).map(|i| f64::from(i % 7) * 0.25 - 0.75).collect::<Vec<f64>>());
        let mut quickest = f64::MAX;
        for _ in 0..100 {
            let begun = Instant::now();
            let stepped = Session::step_all(&mut cx, &mut many, std::slice::from_ref(&x))?;
            assert!(stepped.failed.is_empty() && stepped.rows[0].len() == many.len());
            quickest = quickest.min(begun.elapsed().as_secs_f64() / f64::from(n));
        }
        println!("{n} sessions at once: {:.0} ns a step of each at best", quickest * 1e9);
    }

    // Elsewhere, later: another session goes on from the bytes.
    let mut other = module.session(&mut cx, "filter", &start)?;
    other.restore(&session.snapshot()?)?;
    let same = other.step(&mut cx, &[Array::scalar(0.1)])? == session.step(&mut cx, &[Array::scalar(0.1)])?;
    println!("restored after {} steps; the next rows are the same: {same}", other.len() - 1);
    Ok(())
}

/// What a program in Python would have saved.
fn make() -> Result<Module> {
    let (xs, mu, v, a) = (vector("xs"), scalar("mu"), scalar("v"), scalar("a"));
    let out = scan().over("x", &xs).init("mu", &mu).init("v", &v).init("a", &a).run(|s| {
        let e = s.get("x") - s.get("mu");
        let v = 0.02 + 0.1 * e.square() + 0.88 * s.get("v");
        let a = 0.9 * s.get("a") + e.square() / &v;
        (s.get("mu") + 0.05 * e, v, a)
    });
    let filter = function(&[&xs, &mu, &v, &a], &[&out.rows("mu"), &out.rows("v"), &out.rows("a")]).compile()?;
    let mut module = Module::new();
    module.add("filter", Arc::new(filter))?;
    Ok(module)
}
