//! How long the passes take, and that their time grows with the number of nodes: `cargo run --profile wheel -p scan-core --example
//! pass_times`. Fails where ten times the nodes take more than 15 times the time.

use scan_core::ir::Graph;
use scan_core::prelude::*;
use scan_core::rewrite::optimise;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

/// The fastest of several runs in milliseconds, and the optimised graph.
fn time(graph: &Graph, options: &PassOptions) -> Result<(f64, Arc<Graph>)> {
    let graph = Arc::new(graph.clone());
    let mut best = (f64::INFINITY, graph.clone());
    for _ in 0..7 {
        let start = Instant::now();
        let (better, _) = optimise(graph.clone(), options)?;
        let spent = start.elapsed().as_secs_f64() * 1e3;
        if spent < best.0 {
            best = (spent, better);
        }
    }
    Ok(best)
}

/// Nodes, those in loops included.
fn nodes(graph: &Graph) -> usize {
    graph.nodes().iter().map(|n| 1 + n.op.as_scan().map_or(0, |s| nodes(&s.body))).sum()
}

/// So many elementwise nodes one after the other; some of them say nothing.
fn chain(length: usize) -> Graph {
    let mut g = Graph::new();
    let x = g.param(Type::unknown(DType::F64, 1), Some("x"));
    let y = g.param(Type::scalar(DType::F64), Some("y"));
    let mut v = x;
    for i in 0..length / 5 {
        let c = g.number(DType::F64, 1.0 + i as f64);
        let product = g.mul(v, c);
        let sum = g.add(product, y);
        let minus = g.neg(sum);
        let difference = g.sub(x, minus);
        v = g.exp(difference);
    }
    g.set_results([v]);
    g
}

/// The likelihood of a GARCH(1, 1) model with its gradient.
fn garch() -> Result<Graph> {
    let r = Var::float("r", 1);
    let parameters: Vec<Var> = ["omega", "alpha", "beta"].iter().map(|n| Var::float(n, 0)).collect();
    let mut step = LoopBuilder::new(LoopOptions::default())?;
    let taps = step.sequence(&r, &[-1, 0], Some("r"))?;
    let start = Var::float("h0", 0);
    let h = step.state(&start, &[-1], Some("h"))?.remove(0);
    let h_t = &parameters[0] + &parameters[1] * taps[0].square() + &parameters[2] * h;
    let term = h_t.log() + taps[1].square() / &h_t;
    let out = step.finish(&[(Some(0), h_t), (None, term)], &[], None)?;
    let loss = out.outputs[1].sum();
    let slopes = grad_with(Some(&loss), &parameters, &GradOptions::default())?;
    let outputs = std::iter::once(loss).chain(slopes.into_iter().flatten()).collect();
    let inputs = [r, start].into_iter().chain(parameters).collect();
    let f = Function::new(FunctionSpec { inputs, outputs, passes: PassOptions::none(), ..Default::default() })?;
    Ok((**f.graph()).clone())
}

/// How many times the time a chain of ten times the nodes takes: the two take turns.
fn growth(nodes: usize) -> Result<f64> {
    let [short, long] = [nodes, 10 * nodes].map(|n| chain(n * 5 / 6));
    let mut best = [f64::INFINITY; 2];
    for _ in 0..5 {
        for (best, graph) in best.iter_mut().zip([&short, &long]) {
            *best = best.min(time(graph, &PassOptions::full())?.0);
        }
    }
    Ok(best[1] / best[0])
}

fn main() -> Result<ExitCode> {
    println!("{:<28} {:>8} {:>8} {:>10} {:>12}", "graph", "nodes", "after", "ms", "ns per node");
    let row = |name: &str, graph: &Graph, options: &PassOptions| -> Result<()> {
        let (ms, better) = time(graph, options)?;
        let n = nodes(graph);
        println!("{name:<28} {n:>8} {:>8} {ms:>10.3} {:>12.0}", nodes(&better), ms * 1e6 / n as f64);
        Ok(())
    };
    for length in [1_250, 2_500, 5_000, 10_000, 20_000] {
        row("chain", &chain(length), &PassOptions::full())?;
    }
    for (name, graph) in [("chain", chain(20_000)), ("garch with gradient", garch()?)] {
        row(name, &graph, &PassOptions::full())?;
        for pass in PASSES {
            row(&format!("  {} alone", pass.name), &graph, &PassOptions::only(&[pass.name])?)?;
        }
    }
    let grown = growth(2_000)?;
    println!("20000 nodes take {grown:.1} times the time of 2000; at most 15 are wanted");
    Ok(if grown <= 15.0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
