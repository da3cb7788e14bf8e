//! Runs `tests/ir/**/*.ir`. A file holds one function in text form, with directives in comments:
//!
//! - The function parses, verifies, and prints back unchanged; where a line `===` follows it, printing gives what stands behind
//!   that line. `UPDATE=1` rewrites the expected text.
//! - `# run: 7 n=3` calls it on random inputs from seed 7: what is parsed from the text and what is parsed from the printed text give
//!   the same bits. `n=3` sets an integer parameter or the extent `n0`.
//! - `# call: f64[2]{1.0, 2.0}, 3:i64 => 5.0:f64` calls it on these arguments and compares the results, floats to 1e-9.
//! - `# call: 1.0:f64 => E0301` expects an error of that code.
//! - `# pass: algebra cse` runs these passes alone. What stands behind `===` is then the graph that they make; every `run` and `call` is made of it, too, and
//!   gives the same bits (1e-9, where a pass may round otherwise), and `run` compares the gradients of both.
//! - `# program: …` is a `call` of a program with these passes: where what they make fails, the function as it is written decides.
//! - `# count: mul 2` counts the operations of a name after the passes, those in loops included.
//! - `# needs: fma` leaves the file out where the processor cannot.
//! - `… # error: E0903` at the end of a line expects that the text is refused with that code, blaming that line.

use crate::sources::{Random, files, read, short};
use scan_core::base::Diagnostic;
use scan_core::eval;
use scan_core::exec::{Engine, Program};
use scan_core::grad::{Seeds, vjp};
use scan_core::ir::parse::parse;
use scan_core::ir::verify::verify;
use scan_core::ir::{EvalCx, Graph, Value};
use scan_core::rewrite::pipeline::PASSES;
use scan_core::rewrite::{Exact, Options, optimise};
use scan_core::scalar::lanes::fused;
use scan_core::types::{Array, DType, Sym, Type};
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

type Outcome = Result<(), String>;
type Evaluated = Result<Vec<Array>, Box<Diagnostic>>;

#[test]
fn ir_files() {
    let files = files("tests/ir", "ir");
    assert!(files.len() >= 15, "only {} .ir files found", files.len());
    let failed: Vec<String> = files.iter().filter_map(|f| check(f).err().map(|e| format!("{}: {e}", short(f)))).collect();
    assert!(failed.is_empty(), "{} of {} files fail\n\n{}", failed.len(), files.len(), failed.join("\n\n"));
}

fn check(path: &Path) -> Outcome {
    let whole = read(path);
    if directives(&whole, "needs").any(|what| what.trim() == "fma") && !fused() {
        return Ok(());
    }
    let (source, snapshot) = match whole.split_once("\n===") {
        Some((source, rest)) => (format!("{source}\n"), rest.split_once('\n').map(|s| s.1.to_string())),
        None => (whole.clone(), None),
    };
    if let Some((i, line)) = source.lines().enumerate().find(|(_, l)| l.contains("# error: ")) {
        return refused(&source, i + 1, line);
    }
    let (name, graph) = read_graph(&source)?;
    let mut graph = Arc::new(graph);
    let written = graph.clone();
    let mut printed = graph.to_text(&name);
    let passes = directives(&source, "pass").flat_map(str::split_whitespace).collect::<Vec<_>>();
    if !passes.is_empty() {
        same_text(&read_graph(&printed)?.1, &name, &printed)?;
        let better = improved(&graph, &passes)?;
        printed = better.to_text(&name);
        compare(&graph, &better, &source, &passes)?;
        directives(&source, "count").try_for_each(|line| count(&better, line))?;
        graph = better;
    }
    let start = source.find("\nfn ").map_or(0, |i| i + 1);
    let expected = snapshot.as_deref().unwrap_or(&source[start..]);
    let counted = !passes.is_empty() && snapshot.is_none();
    if printed != expected && !counted {
        if std::env::var_os("UPDATE").is_none() {
            return Err(format!("prints as (UPDATE=1 accepts it)\n{printed}\nexpected\n{expected}"));
        }
        let kept = if snapshot.is_some() { format!("{source}===\n") } else { source[..start].to_string() };
        fs::write(path, kept + &printed).map_err(|e| e.to_string())?;
    }
    let (_, again) = read_graph(&printed)?;
    same_text(&again, &name, &printed)?;
    for line in source.lines() {
        match line.split_once(':') {
            Some(("# run", args)) => run(&graph, &again, args)?,
            Some(("# call", args)) => call(&[&|args| evaluate(&graph, args), &|args| evaluate(&again, args)], args)?,
            Some(("# program", args)) => call(&[&|args| optimised(&written, &passes, args)], args)?,
            _ => {}
        }
    }
    Ok(())
}

fn same_text(again: &Graph, name: &str, printed: &str) -> Outcome {
    let text = again.to_text(name);
    if text == printed { Ok(()) } else { Err(format!("printing is not stable:\n{text}")) }
}

/// What follows a directive, per line.
fn directives<'a>(source: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let head = format!("# {name}:");
    source.lines().filter_map(move |l| l.strip_prefix(&head))
}

/// The graph after some passes.
fn improved(graph: &Graph, passes: &[&str]) -> Result<Arc<Graph>, String> {
    let options = Options::only(passes).map_err(|e| e.to_string())?;
    let (better, report) = optimise(graph.clone(), &options).map_err(|e| e.to_string())?;
    match report.failed().next() {
        Some(entry) => Err(format!("pass {} gave up: {}", entry.pass, entry.text)),
        None => Ok(better),
    }
}

/// What two graphs give for the arguments of every `# run`, with their gradients.
fn compare(graph: &Graph, better: &Graph, source: &str, passes: &[&str]) -> Outcome {
    let exact = PASSES.iter().filter(|p| passes.contains(&p.name)).all(|p| p.exact == Exact::Yes);
    for line in directives(source, "run") {
        let args = inputs(graph, line)?;
        let [before, after] = [evaluate(graph, &args), evaluate(better, &args)].map(|r| r.map_err(|e| e.to_string()));
        let (before, after) = (before?, after?);
        let same = if exact { before == after } else { before.iter().zip(&after).all(|(a, b)| close(a, b)) };
        if !same {
            return Err(format!("# run:{line} differs after the passes:\n{before:?}\n{after:?}"));
        }
        let [before, after] = [gradients(graph, &args), gradients(better, &args)];
        let (before, after) = (before?, after?);
        if !before.iter().zip(&after).all(|(a, b)| close(a, b)) {
            return Err(format!("# run:{line}: gradients differ after the passes:\n{before:?}\n{after:?}"));
        }
    }
    Ok(())
}

/// The gradient of the sum of all float results by every float parameter; nothing where an op has none.
fn gradients(graph: &Graph, args: &[Array]) -> Result<Vec<Array>, String> {
    let mut g = graph.clone();
    let is_float = |v: &Value| graph.ty(*v).dtype.is_float();
    let results: Vec<Value> = graph.results().iter().copied().filter(is_float).collect();
    let wrt: Vec<Value> = graph.params().iter().copied().filter(is_float).collect();
    let outputs = results.iter().map(|&v| (v, g.ones_like(v))).collect();
    let Ok(found) = vjp(&mut g, &Seeds { outputs, ..Seeds::default() }, &wrt) else { return Ok(vec![]) };
    let found: Vec<Value> = found.iter().zip(&wrt).map(|(ct, &x)| ct.unwrap_or_else(|| g.zeros_like(x))).collect();
    g.set_results(found);
    evaluate(&g, args).map_err(|e| format!("the gradient fails\n{e}"))
}

/// Checks how many operations have a name: `mul 2`.
fn count(graph: &Graph, line: &str) -> Outcome {
    let (name, want) = line.trim().split_once(' ').ok_or_else(|| format!("`# count:{line}` needs a name and a number"))?;
    let found = occurrences(graph, name);
    if found.to_string() == want.trim() { Ok(()) } else { Err(format!("# count:{line}, but there are {found}:\n{}", graph.to_text("f"))) }
}

fn occurrences(graph: &Graph, name: &str) -> usize {
    let inside = graph.nodes().iter().filter_map(|n| n.op.as_scan()).map(|s| occurrences(&s.body, name)).sum::<usize>();
    inside + graph.nodes().iter().filter(|n| n.op.name() == name).count()
}

fn read_graph(text: &str) -> Result<(String, Graph), String> {
    let (name, graph) = parse(text).map_err(|e| e.to_string())?;
    verify(&graph).map_err(|e| e.to_string())?;
    Ok((name, graph))
}

fn refused(source: &str, number: usize, line: &str) -> Outcome {
    let want = line.split_once("# error: ").map_or("", |l| l.1.trim());
    let Err(e) = parse(source) else { return Err(format!("expected {want} in line {number}, but it parses")) };
    let place = format!("line {number},");
    let blamed = e.title.contains(&place) || e.notes.iter().any(|n| n.contains(&place));
    if e.code == want && blamed { Ok(()) } else { Err(format!("expected {want} in line {number}, got\n{e}")) }
}

fn evaluate(graph: &Graph, args: &[Array]) -> Result<Vec<Array>, Box<Diagnostic>> {
    eval::run(graph, &mut EvalCx::new(), args)
}

/// The arguments that `# run:` asks for.
fn inputs(graph: &Graph, directive: &str) -> Result<Vec<Array>, String> {
    let mut words = directive.split_whitespace();
    let seed = words.next().and_then(|s| s.parse().ok()).ok_or_else(|| format!("`# run:{directive}` has no seed"))?;
    let given: HashMap<&str, i64> = words.filter_map(|w| w.split_once('=')).filter_map(|(k, v)| Some((k, v.parse().ok()?))).collect();
    Ok(Inputs { random: Random(seed), given, dims: HashMap::new() }.all(graph))
}

fn run(graph: &Graph, again: &Graph, directive: &str) -> Outcome {
    let args = inputs(graph, directive)?;
    let first = evaluate(graph, &args).map_err(|e| format!("# run:{directive} fails\n{e}"))?;
    let second = evaluate(again, &args).map_err(|e| format!("# run:{directive} fails when printed and read again\n{e}"))?;
    if first != second {
        return Err(format!("# run:{directive} differs when printed and read again:\n{first:?}\n{second:?}"));
    }
    for (v, a) in graph.results().iter().zip(&first) {
        if !graph.ty(*v).admits(a.dtype(), a.shape()) {
            return Err(format!("# run:{directive} gives {}, but the type is {}", a.ty(), graph.ty(*v)));
        }
    }
    Ok(())
}

fn call(ways: &[&dyn Fn(&[Array]) -> Evaluated], directive: &str) -> Outcome {
    let (args, want) = directive.split_once("=>").ok_or_else(|| format!("`# call:{directive}` has no `=>`"))?;
    let args = literals(args)?;
    for way in ways {
        match way(&args) {
            Err(e) if e.code == want.trim() => {}
            Err(e) => return Err(format!("# call:{directive} fails\n{e}")),
            Ok(got) if want.trim().starts_with("E0") => return Err(format!("# call:{directive}\ngives {got:?}")),
            Ok(got) => {
                let want = literals(want)?;
                if got.len() != want.len() || !got.iter().zip(&want).all(|(a, b)| close(a, b)) {
                    return Err(format!("# call:{directive}\ngives {got:?}"));
                }
            }
        }
    }
    Ok(())
}

/// What a program of these passes gives.
fn optimised(written: &Arc<Graph>, passes: &[&str], args: &[Array]) -> Evaluated {
    let program = Program::new(written.clone(), &Options::only(passes)?, Engine::Eval)?;
    program.run(&mut EvalCx::new(), &|| args.to_vec())
}

/// The values of literals separated by commas.
fn literals(text: &str) -> Result<Vec<Array>, String> {
    let (_, graph) = parse(&format!("fn f() {{ return {text} }}")).map_err(|e| format!("{text}: {e}"))?;
    evaluate(&graph, &[]).map_err(|e| e.to_string())
}

fn close(a: &Array, b: &Array) -> bool {
    let near = |(x, y): (f64, f64)| x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= 1e-9 * (1.0 + y.abs());
    a.dtype() == b.dtype()
        && a.shape() == b.shape()
        && (if a.dtype() == DType::F64 { a.to_f64_vec().into_iter().zip(b.to_f64_vec()).all(near) } else { a == b })
}

/// Random arguments of a function: extents of 2 to 5, small integers.
pub fn arguments(graph: &Graph, seed: u64) -> Vec<Array> {
    Inputs { random: Random(seed), given: HashMap::new(), dims: HashMap::new() }.all(graph)
}

struct Inputs<'a> {
    random: Random,
    given: HashMap<&'a str, i64>,
    dims: HashMap<Sym, i64>,
}

impl Inputs<'_> {
    fn all(mut self, graph: &Graph) -> Vec<Array> {
        let params = graph.params().iter();
        params
            .map(|&v| (graph.ty(v).clone(), graph.name(v).and_then(|n| self.given.get(&**n)).copied()))
            .collect::<Vec<_>>()
            .into_iter()
            .map(|(ty, n)| self.one(&ty, n))
            .collect()
    }
    fn one(&mut self, ty: &Type, given: Option<i64>) -> Array {
        let shape: Vec<usize> = ty.dims.iter().map(|d| self.extent(d)).collect();
        let values: Vec<f64> = (0..shape.iter().product()).map(|_| self.random.unit()).collect();
        let ints = |random: &mut Random, n: usize| -> Vec<i64> {
            values.iter().map(|_| given.unwrap_or_else(|| random.below(n) as i64)).collect()
        };
        match ty.dtype {
            d if d.is_float() => Array::new(&shape, values).cast(d),
            DType::Bool => Array::new(&shape, ints(&mut self.random, 2)).cast(DType::Bool),
            DType::U64 => Array::new(&shape, ints(&mut self.random, usize::MAX)).cast(DType::U64),
            d => Array::new(&shape, ints(&mut self.random, 3)).cast(d),
        }
    }
    /// An extent; symbols are n0, n1… in order of appearance and between 2 and 5 unless given.
    fn extent(&mut self, dim: &scan_core::types::Dim) -> usize {
        for (sym, _) in dim.parts().0 {
            if !self.dims.contains_key(sym) {
                let name = format!("n{}", self.dims.len());
                let n = self.given.get(name.as_str()).copied().unwrap_or_else(|| 2 + self.random.below(4) as i64);
                self.dims.insert(*sym, n);
            }
        }
        let n = dim.eval(&|s| self.dims.get(&s).copied()).unwrap_or(0);
        usize::try_from(n).unwrap_or(0)
    }
}
