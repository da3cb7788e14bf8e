//! Damaged programs: whatever the text, reading it gives a graph or an error, and a graph that was read is sound.

use crate::ir_files::arguments;
use crate::sources::{Random, files, read, setting, short};
use scan_core::eval;
use scan_core::grad::{Seeds, vjp};
use scan_core::ir::parse::parse;
use scan_core::ir::verify::verify;
use scan_core::ir::{EvalCx, Graph, Value};
use std::panic::catch_unwind;

/// How many programs are damaged, unless the variable `MUTATIONS` says otherwise.
const MUTATIONS: u64 = 10_000;
const PIECES: &[&str] = &[
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    "=",
    ":",
    ".",
    "@",
    "*",
    "+",
    "-",
    "\n",
    "\"",
    "%0",
    "%1",
    "%9",
    "h",
    "x",
    "n0",
    "f64",
    "bool",
    "u8",
    "i64[0]",
    "nan",
    "inf",
    "true",
    "0",
    "1",
    "-1",
    "2",
    "7",
    "99999999999",
    "9223372036854775807",
    "18446744073709551616",
    "1e999",
    "0.5",
    "scan",
    "state",
    "seq",
    "const",
    "step",
    "next",
    "until",
    "return",
    "fn",
    "extern",
    "init=h0",
    "reads=[0]",
    "writes=[1]",
    "keep=last(0)",
    "axis=3",
    "axes=[5]",
    "axes=[]",
    "perm=[0, 0]",
    "pattern=\"s:e:-1,i\"",
    "k=-9223372036854775808",
    "f64[4294967296, 4294967296, 0]{}",
    "reverse",
    "shared",
    "# model.py:7",
    "é",
    "\u{0}",
];

#[test]
fn damaged_programs_never_panic() {
    let sound = damaged(MUTATIONS, outcome);
    assert!(sound > 0.02, "only {sound} of the damaged programs could be read: the damage is too great to test much");
}

#[test]
fn damaged_programs_that_read_run_and_differentiate() {
    damaged(MUTATIONS, run);
}

/// Damages programs and tries them; fails where one panics or gives an error. Returns the share of those that give true.
fn damaged(count: u64, attempt: fn(&str) -> Result<bool, String>) -> f64 {
    let programs: Vec<(String, String)> = files("tests/ir", "ir").iter().map(|f| (short(f), read(f))).collect();
    let ops = ops(&programs);
    let mutations = setting("MUTATIONS", count);
    let mut random = Random(setting("SEED", 1));
    let mut panics = vec![];
    let mut sound = 0;
    for _ in 0..mutations {
        let (name, program) = random.pick(&programs);
        let mut text = program.split("\n===").next().unwrap_or(program).to_string();
        for _ in 0..1 + random.below(3) {
            text = damage(&mut random, text, &programs, &ops);
        }
        match catch_unwind(|| attempt(&text)) {
            Ok(Ok(read)) => sound += usize::from(read),
            Ok(Err(e)) => panics.push(format!("from {name}: {e}\n{text}")),
            Err(_) => panics.push(format!("from {name}: panics\n{text}")),
        }
    }
    assert!(panics.is_empty(), "{} of {mutations}\n{}", panics.len(), panics[..panics.len().min(5)].join("\n--------\n"));
    sound as f64 / mutations as f64
}

/// True where the text could be read; an error where the graph is not sound.
fn outcome(text: &str) -> Result<bool, String> {
    let Ok((name, graph)) = parse(text) else { return Ok(false) };
    verify(&graph).map_err(|e| format!("read, but does not verify: {e}"))?;
    let printed = graph.to_text(&name);
    let (_, again) = parse(&printed).map_err(|e| format!("prints as what cannot be read: {e}\n{printed}"))?;
    if again.to_text(&name) != printed {
        return Err(format!("printing is not stable:\n{printed}\n{}", again.to_text(&name)));
    }
    Ok(true)
}

/// Evaluates a program that reads, and its gradient, on small arguments: errors are fine, panics are not. Programs with large
/// numbers are left out, since they may rightly take all memory. Extents are not compared: a damaged type may promise wrong ones.
fn run(text: &str) -> Result<bool, String> {
    let large = text.split(|c: char| !c.is_ascii_digit()).any(|digits| digits.len() > 4);
    let Ok((_, mut graph)) = parse(text) else { return Ok(false) };
    if large {
        return Ok(false);
    }
    let args = arguments(&graph, 1);
    let values = |graph: &Graph| eval::run(graph, &mut EvalCx::new(), &args);
    let Ok(first) = values(&graph) else { return Ok(true) };
    let types = graph.results().iter().map(|&v| graph.ty(v).clone()).collect::<Vec<_>>();
    if let Some((a, ty)) = first.iter().zip(&types).find(|(a, ty)| a.dtype() != ty.dtype || a.rank() != ty.rank()) {
        return Err(format!("gives {} for {ty}", a.ty()));
    }
    let is_float = |graph: &Graph, v: &Value| graph.ty(*v).dtype.is_float();
    let costs: Vec<Value> = graph.results().iter().copied().filter(|v| is_float(&graph, v)).collect();
    let wrt: Vec<Value> = graph.params().iter().copied().filter(|v| is_float(&graph, v)).collect();
    let seeds: Vec<(Value, Value)> = costs.into_iter().map(|v| (v, graph.ones_like(v))).collect();
    let Ok(found) = vjp(&mut graph, &Seeds { outputs: seeds, ..Seeds::default() }, &wrt) else { return Ok(true) };
    for (v, ct) in wrt.iter().zip(&found).filter_map(|(v, ct)| Some((v, (*ct)?))) {
        let (have, want) = (graph.ty(ct), graph.ty(*v));
        if have.dtype != want.dtype || have.rank() != want.rank() {
            return Err(format!("the gradient of {want} is {have}"));
        }
    }
    graph.set_results(found.into_iter().flatten().collect::<Vec<_>>());
    verify(&graph).map_err(|e| format!("the gradient does not verify: {e}"))?;
    let _ = values(&graph);
    Ok(true)
}

/// Names of ops that the programs use.
fn ops(programs: &[(String, String)]) -> Vec<String> {
    let calls = programs.iter().flat_map(|(_, p)| p.lines()).filter_map(|l| l.split_once(" = ")).filter(|(_, call)| call.contains('('));
    calls.map(|(_, call)| call[..call.find(['(', '[']).unwrap_or(0)].to_string()).collect()
}

fn damage(random: &mut Random, text: String, programs: &[(String, String)], ops: &[String]) -> String {
    let at = |random: &mut Random, text: &str| {
        let mut i = random.below(text.len() + 1);
        while !text.is_char_boundary(i) {
            i -= 1;
        }
        i
    };
    let i = at(random, &text);
    let rest = at(random, &text[i..]);
    let (short, long) = (i + rest.min(1 + random.below(8)), i + rest);
    let short = (short..=text.len()).find(|&k| text.is_char_boundary(k)).unwrap_or(text.len());
    let mut lines: Vec<&str> = text.lines().collect();
    if lines.is_empty() {
        return random.pick(PIECES).to_string();
    }
    let line = random.below(lines.len());
    match random.below(9) {
        0 => format!("{}{}", &text[..i], &text[short..]),
        1 => format!("{}{}", &text[..i], &text[long..]),
        2 | 3 => format!("{}{}{}", &text[..i], random.pick(PIECES), &text[i..]),
        4 => format!("{}{}{}", &text[..i], random.pick(PIECES), &text[short..]),
        5 => {
            let (_, other) = random.pick(programs);
            let other: Vec<&str> = other.lines().collect();
            lines.insert(line, other[random.below(other.len())]);
            lines.join("\n")
        }
        6 => {
            let other = random.below(lines.len());
            lines.swap(line, other);
            lines.join("\n")
        }
        7 => {
            let (from, to) = (random.pick(ops).clone(), random.pick(ops).clone());
            text.replacen(&format!(" {from}"), &format!(" {to}"), 1)
        }
        _ => number(random, &text, i),
    }
}

/// Another number in place of the first one behind a position.
fn number(random: &mut Random, text: &str, from: usize) -> String {
    let Some(start) = text[from..].find(|c: char| c.is_ascii_digit()).map(|k| from + k) else { return text.to_string() };
    let len = text[start..].find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len() - start);
    let numbers = ["0", "1", "2", "3", "5", "33", "4294967296", "1099511627776", "9223372036854775807"];
    format!("{}{}{}", &text[..start], random.pick(&numbers), &text[start + len..])
}
