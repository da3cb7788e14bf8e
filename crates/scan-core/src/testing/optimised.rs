//! What the optimiser makes of a graph gives what the graph gives: with all passes, and with each pass alone.

use super::check::Fault;
use super::nd::Nd;
use crate::eval;
use crate::ir::verify::verify;
use crate::ir::{EvalCx, Graph};
use crate::rewrite::pipeline::PASSES;
use crate::rewrite::{Exact, Options, optimise};
use crate::types::Array;
use std::collections::BTreeSet;

/// Compares `values`, which a graph gives for these arguments, with what it gives when optimised. Adds the names of the passes that
/// found something to do.
///
/// # Errors
/// The first disagreement, with the pass.
pub fn compare(graph: &Graph, args: &[Array], values: &[Array], fired: &mut BTreeSet<&'static str>) -> Result<(), Fault> {
    let all = Options::full();
    for (name, exact) in PASSES.iter().map(|p| (p.name, p.exact)) {
        let only = Options::only(&[name]).map_err(|e| fault(name, &e.title))?;
        if one(graph, args, values, &only, name, exact)? {
            fired.insert(name);
        }
    }
    one(graph, args, values, &Options::exact(), "all that keep every bit", Exact::Yes)?;
    let exact = if PASSES.iter().all(|p| p.exact == Exact::Yes) { Exact::Yes } else { Exact::No };
    one(graph, args, values, &all, "all", exact).map(drop)
}

/// The same with one pass alone; true where it found something to do.
///
/// # Errors
/// The disagreement.
pub fn compare_alone(name: &'static str, graph: &Graph, args: &[Array], values: &[Array]) -> Result<bool, Fault> {
    let only = Options::only(&[name]).map_err(|e| fault(name, &e.title))?;
    one(graph, args, values, &only, name, Exact::Yes)
}

fn fault(pass: &str, text: &str) -> Fault {
    Fault { stage: "optimised", text: format!("pass {pass}: {text}") }
}

/// True where the passes found something to do.
fn one(graph: &Graph, args: &[Array], values: &[Array], options: &Options, name: &str, exact: Exact) -> Result<bool, Fault> {
    let told = |e: Box<crate::base::Diagnostic>| fault(name, &format!("{}: {} {:?}\n{}", e.code, e.title, e.notes, graph.to_text("f")));
    let (better, report) = optimise(graph.clone(), options).map_err(told)?;
    if let Some(entry) = report.failed().next() {
        return Err(fault(name, &format!("{} gave up: {}\n{}", entry.pass, entry.text, graph.to_text("f"))));
    }
    if report.entries.iter().all(|e| !e.done) && report.fired.is_empty() {
        return Ok(false);
    }
    verify(&better).map_err(told)?;
    let got = match eval::run(&better, &mut EvalCx::new(), args) {
        // What might fail was moved to where nobody needs it. A function does such a run again by the graph as it was written.
        Err(_) if options.speculates() => return one(graph, args, values, &options.clone().certain(), name, exact),
        got => got.map_err(|e| fault(name, &format!("{}: {} {:?}\n{}", e.code, e.title, e.notes, better.to_text("f"))))?,
    };
    if got.iter().zip(values).all(|(a, b)| same(a, b, exact)) {
        return Ok(true);
    }
    Err(fault(name, &format!("got  {got:?}\nwant {values:?}\n{}\n{}\n{report}", graph.to_text("before"), better.to_text("after"))))
}

fn same(got: &Array, want: &Array, exact: Exact) -> bool {
    if exact == Exact::Yes || got.dtype() != want.dtype() || got.shape() != want.shape() {
        return got == want;
    }
    let (a, b) = (Nd::of(got), Nd::of(want));
    let scale = b.data.iter().fold(1.0, |m: f64, x| m.max(x.abs()));
    a.data.iter().zip(&b.data).all(|(x, y)| (x - y).abs() <= 1e-9 * scale)
}
