//! A graph back to expressions.

use super::Var;
use crate::base::{Diagnostic, Result, Span};
use crate::ir::{Graph, Op, Scan, Value};
use rustc_hash::FxHashMap;

/// The expressions of `values`, given those of parameters and of whatever else is known.
///
/// # Errors
/// An internal error where a needed parameter has no expression.
pub fn splice(graph: &Graph, known: FxHashMap<Value, Var>, values: &[Value]) -> Result<Vec<Var>> {
    let mut vars = known;
    let wanted: Vec<Value> = values.iter().copied().filter(|v| !vars.contains_key(v)).collect();
    let live = needed(graph, &wanted, &vars);
    for (id, node) in graph.nodes().enumerate() {
        if !live[id.0 as usize] {
            continue;
        }
        if let Op::Const(a) = &node.op {
            vars.insert(node.outs[0], Var::constant((**a).clone(), node.span));
            continue;
        }
        let ins: Vec<Var> = node.ins.iter().map(|v| look(&vars, *v)).collect::<Result<_>>()?;
        for (v, var) in node.outs.iter().zip(Var::apply(node.op.clone(), &ins, node.span)?) {
            vars.entry(*v).or_insert(var);
        }
    }
    values.iter().map(|v| look(&vars, *v)).collect()
}

/// The step of a loop as expressions: fresh leaves for the parameters of its body, and the results in terms of these.
///
/// ```
/// use scan_core::prelude::*;
///
/// let u = vector("u");
/// let h = scan().over("u", &u).init("h", 0.0).run(|s| s.get("h") + s.get("u")).steps();
/// let (op, ..) = h.owner().unwrap();
/// let (params, results) = open_body(op.as_scan().unwrap())?;
/// assert_eq!((params.len(), results.len()), (3, 1));
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
///
/// # Errors
/// An internal error where the body is malformed.
pub fn open_body(scan: &Scan) -> Result<(Vec<Var>, Vec<Var>)> {
    let body = &scan.body;
    let leaf = |v: Value| Var::input(body.ty(v).clone(), body.name(v).map(|n| &**n), Span::NONE);
    let params: Vec<Var> = body.params().iter().map(|&v| leaf(v)).collect();
    let known = body.params().iter().copied().zip(params.iter().cloned()).collect();
    let results = splice(body, known, body.results())?;
    Ok((params, results))
}

fn needed(graph: &Graph, values: &[Value], known: &FxHashMap<Value, Var>) -> Vec<bool> {
    let mut live = vec![false; graph.nodes().len()];
    let mut stack = values.to_vec();
    while let Some(v) = stack.pop() {
        let crate::ir::Def::Out(id, _) = graph.def(v) else { continue };
        if known.contains_key(&v) || std::mem::replace(&mut live[id.0 as usize], true) {
            continue;
        }
        stack.extend(&graph.nodes()[id].ins);
    }
    live
}

fn look(vars: &FxHashMap<Value, Var>, v: Value) -> Result<Var> {
    vars.get(&v).cloned().ok_or_else(|| Diagnostic::internal(format!("value {v:?} has no expression")))
}
