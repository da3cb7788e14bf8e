//! What is in a module, for people.

use super::save::LARGE;
use super::{Module, Origin, Port};
use crate::ir::{Graph, Keep, Op};
use crate::types::Array;
use crate::types::shape::tuple;
use std::fmt::Write;

/// The file, functions with their arguments, results and loops, then shared variables and constants with their sizes.
pub(super) fn describe(module: &Module) -> String {
    let mut out = String::new();
    if let Some(Origin { format, version, bytes }) = &module.file {
        let _ = writeln!(out, "format {format}, written by rscan {version}, {bytes} bytes");
    }
    for (name, entry) in module.functions.iter() {
        let s = &entry.signature;
        let list = |ports: &[Port]| ports.iter().map(port).collect::<Vec<_>>().join(", ");
        let _ = writeln!(out, "{name}({}) -> ({})", list(&s.inputs), list(&s.outputs));
        let rows = [
            s.doc.as_ref().map(|doc| doc.trim().to_string()),
            (!s.shared.is_empty()).then(|| format!("reads {}", s.shared.join(", "))),
            (!s.updates.is_empty()).then(|| format!("updates {}", s.updates.join(", "))),
            Some(format!("{} operations", operations(&entry.graph))),
        ];
        rows.iter().flatten().for_each(|row| _ = writeln!(out, "  {}", row.replace('\n', "\n  ")));
        loops(&mut out, &entry.graph, 1);
        for (ports, nameless) in [(&s.inputs, "?"), (&s.outputs, "return")] {
            for (port, doc) in ports.iter().filter_map(|port| Some((port, port.doc.as_ref()?))) {
                let _ = writeln!(out, "  {}: {}", port.name.as_deref().unwrap_or(nameless), doc.trim().replace('\n', "\n    "));
            }
        }
    }
    let mut tables = vec![];
    module.functions.values().for_each(|entry| constants(&entry.graph, &mut tables));
    let shared = module.shared().map(|(name, shared)| (format!("{name}: "), shared.get())).collect();
    let shared = arrays(&mut out, "shared variables", shared);
    let tables = arrays(&mut out, "constants", tables.into_iter().map(|a| (String::new(), a)).collect());
    let _ = writeln!(out, "{} functions, {shared} bytes in shared variables, {tables} bytes in constants", module.functions.len());
    out
}

/// A line per array, below what they are; returns how many bytes they have.
fn arrays(out: &mut String, what: &str, all: Vec<(String, Array)>) -> usize {
    if !all.is_empty() {
        let _ = writeln!(out, "{what}");
    }
    for (name, value) in &all {
        let _ = writeln!(out, "  {name}{} {}, {} bytes", value.dtype(), tuple(value.shape()), bytes(value));
    }
    all.iter().map(|(_, value)| bytes(value)).sum()
}

/// Adds the constants of a graph that are tensors of its file, equal ones once.
fn constants(graph: &Graph, found: &mut Vec<Array>) {
    for node in graph.nodes().iter() {
        match &node.op {
            Op::Const(a) if a.len() > LARGE && !found.contains(a) => found.push((**a).clone()),
            Op::Scan(scan) => constants(&scan.body, found),
            _ => {}
        }
    }
}

fn bytes(value: &Array) -> usize {
    value.len() * value.dtype().size()
}

/// `x: float64[n0, 3] = …`
fn port(port: &Port) -> String {
    let axes: Vec<&str> = port.axes.iter().map(|a| a.as_deref().unwrap_or("?")).collect();
    let shape = if axes.is_empty() { String::new() } else { format!("[{}]", axes.join(", ")) };
    let name = port.name.as_ref().map(|n| format!("{n}: ")).unwrap_or_default();
    format!("{name}{}{shape}{}", port.ty.dtype, if port.default.is_some() { " = …" } else { "" })
}

/// Nodes of a graph and of the bodies of its loops, but for constants.
fn operations(graph: &Graph) -> usize {
    let inner = |op: &Op| if let Op::Scan(scan) = op { operations(&scan.body) } else { 0 };
    graph.nodes().iter().map(|n| usize::from(!matches!(n.op, Op::Const(_))) + inner(&n.op)).sum()
}

/// A line per loop, those inside below it.
fn loops(out: &mut String, graph: &Graph, depth: usize) {
    for node in graph.nodes().iter() {
        let Op::Scan(scan) = &node.op else { continue };
        let state = |s: &crate::ir::scan::State| {
            let rows = if let Keep::Last(n) = s.keep { format!(", last {n} rows") } else { String::new() };
            format!("{}: {} {}{rows}", s.name.as_deref().unwrap_or("?"), s.kind(), s.row)
        };
        let states: Vec<String> = scan.states.iter().map(state).collect();
        let steps = graph.const_value(node.ins[crate::ir::Scan::N_STEPS]).and_then(Array::item_i64);
        let _ = writeln!(
            out,
            "{}loop {}{}{}: {} sequences, {} states{}{}",
            "  ".repeat(depth),
            scan.name.as_deref().unwrap_or("without a name"),
            node.span.place().map(|_| format!(" ({})", node.span)).unwrap_or_default(),
            steps.map(|n| format!(", {n} steps")).unwrap_or_default(),
            scan.seqs.len(),
            scan.states.len(),
            if scan.until { ", stops early" } else { "" },
            if states.is_empty() { String::new() } else { format!(" ({})", states.join("; ")) },
        );
        loops(out, &scan.body, depth + 1);
    }
}
