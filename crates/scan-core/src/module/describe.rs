//! What is in a module, for people.

use super::{Module, Port};
use crate::ir::{Graph, Keep, Op};
use crate::types::Array;
use crate::types::shape::tuple;
use std::fmt::Write;

/// Functions with their arguments, results and loops, then shared variables with their sizes.
pub(super) fn describe(module: &Module) -> String {
    let mut out = String::new();
    for (name, entry) in &module.functions {
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
        for port in s.inputs.iter().chain(&s.outputs) {
            if let Some(doc) = &port.doc {
                let _ = writeln!(out, "  {}: {}", port.name.as_deref().unwrap_or("?"), doc.trim());
            }
        }
    }
    if !module.shared.is_empty() {
        let _ = writeln!(out, "shared variables");
    }
    let values: Vec<(&str, Array)> = module.shared().map(|(name, shared)| (name, shared.get())).collect();
    for (name, value) in &values {
        let _ = writeln!(out, "  {name}: {} {}, {} bytes", value.dtype(), tuple(value.shape()), bytes(value));
    }
    let _ = writeln!(
        out,
        "{} functions, {} bytes in shared variables",
        module.functions.len(),
        values.iter().map(|v| bytes(&v.1)).sum::<usize>()
    );
    out
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
