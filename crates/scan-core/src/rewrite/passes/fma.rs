//! `a·b + c` rounded once.
//!
//! ```text
//! before  %0 = mul(a, b)  %1 = add(%0, c)
//! after   %1 = fma(a, b, c)
//! ```
//!
//! An addition contracts with that of two products that is ready last, the other being computed meanwhile; with the first, if there is
//! no telling. The product must be used here alone, and have the dtype of the sum and, as far as is known, its shape.
//!
//! A difference of two products stays, and of a value and a square: `x·x − y·y` is 0 where x is y, and so is the variance `m₂ − m·m` of equal
//! numbers; rounded once it is what the other product was rounded by, of either sign, and its root NaN.
//! No engine contracts by itself, so that all of them give the bits of the evaluator.

use crate::base::{Id, Result};
use crate::ir::{Graph, Op, Value};
use crate::rewrite::driver::Cx;
use crate::rewrite::rebuild::{Rebuild, copy_with};
use crate::rewrite::rules::const_fold::evaluated;
use crate::scalar::ElemOp::{Add, Fma, Mul, Neg, Sub};
use crate::scalar::lanes::fused;
use crate::types::Sym;

/// Contracts; nothing where the processor would round twice.
///
/// # Errors
/// Internal ones.
pub fn run(cx: &mut Cx, graph: &Graph) -> Result<Option<Graph>> {
    if !fused() {
        return Ok(None);
    }
    let uses = graph.uses();
    let contracts = |n: &crate::ir::Node| {
        let sum = |&v: &Value| n.outs.first().is_some_and(|&out| product(graph, &uses, v, out).is_some());
        matches!(n.op, Op::Elem(Add | Sub)) && n.ins.iter().any(sum)
    };
    if !graph.nodes().iter().any(contracts) {
        return Ok(None);
    }
    let depth = depths(graph);
    copy_with(graph, |rebuild, _, node| {
        let (&Op::Elem(op @ (Add | Sub)), &[x, y], &[out]) = (&node.op, &node.ins[..], &node.outs[..]) else { return Ok(false) };
        let product = |v: Value| product(graph, &uses, v, out);
        let since = Sym::fresh();
        let ins = match (product(x), product(y)) {
            _ if op == Sub && cancels(graph, x, y) => return Ok(false),
            (Some(_), Some([a, b])) if depth[y.idx()] > depth[x.idx()] && fits(graph, x, out) => difference(rebuild, op, x, a, b)?,
            (Some([a, b]), _) if fits(graph, y, out) => sum(rebuild, op, a, b, y)?,
            (_, Some([a, b])) if fits(graph, x, out) => difference(rebuild, op, x, a, b)?,
            _ => return Ok(false),
        };
        let value = rebuild.new.apply(Op::Elem(Fma), &ins)?[0];
        rebuild.new.learn(value, graph, out, since);
        rebuild.set(out, value);
        *cx.report.fired.entry(("fma", "a · b + c → fma(a, b, c)")).or_default() += 1;
        Ok(true)
    })
}

/// Whether a difference may be one of two equal numbers that were computed alike.
fn cancels(graph: &Graph, x: Value, y: Value) -> bool {
    let product = |v: Value| graph.node_of(v).filter(|node| matches!(node.op, Op::Elem(Mul))).map(|node| node.ins[0] == node.ins[1]);
    let constant = |v: Value| graph.const_value(v).is_some();
    match (product(x), product(y)) {
        (Some(_), Some(_)) => true,
        (None, Some(square)) => square && !constant(x),
        (Some(square), None) => square && !constant(y),
        (None, None) => false,
    }
}

/// Per value: how many operations come one after the other before it is known.
fn depths(graph: &Graph) -> Vec<u32> {
    let mut depth = vec![0; graph.n_values()];
    for node in graph.nodes().iter() {
        let own = node.ins.iter().map(|v| depth[v.idx()] + 1).max().unwrap_or(0);
        node.outs.iter().for_each(|v| depth[v.idx()] = own);
    }
    depth
}

/// The factors of a product that is as large as the sum and used once.
fn product(graph: &Graph, uses: &[u32], v: Value, sum: Value) -> Option<[Value; 2]> {
    let node = graph.node_of(v)?;
    let (Op::Elem(Mul), &[a, b]) = (&node.op, &node.ins[..]) else { return None };
    let alone = uses[v.idx()] == 1 && as_large(graph, v, sum);
    (alone && fits(graph, a, sum) && fits(graph, b, sum)).then_some([a, b])
}

/// True where a product has the extents of the sum, as far as that is known: two symbols are equal unless one is 1.
fn as_large(graph: &Graph, product: Value, sum: Value) -> bool {
    let (product, sum) = (&graph.ty(product).dims, &graph.ty(sum).dims);
    product.len() == sum.len() && product.iter().zip(sum.iter()).all(|(p, s)| p == s || p.value().is_none())
}

/// True for a float of the dtype of the sum.
fn fits(graph: &Graph, v: Value, sum: Value) -> bool {
    let dtype = graph.ty(sum).dtype;
    dtype.is_float() && graph.ty(v).dtype == dtype
}

/// `a·b + c` or `a·b − c`.
fn sum(rebuild: &mut Rebuild, op: crate::scalar::ElemOp, a: Value, b: Value, c: Value) -> Result<[Value; 3]> {
    let [a, b, c] = [rebuild.image(a)?, rebuild.image(b)?, rebuild.image(c)?];
    Ok([a, b, if op == Add { c } else { minus(&mut rebuild.new, c) }])
}

/// `c + a·b` or `c − a·b`; the sign goes to a constant, where there is one.
fn difference(rebuild: &mut Rebuild, op: crate::scalar::ElemOp, c: Value, a: Value, b: Value) -> Result<[Value; 3]> {
    let [a, b, c] = [rebuild.image(a)?, rebuild.image(b)?, rebuild.image(c)?];
    let g = &mut rebuild.new;
    match op {
        Add => Ok([a, b, c]),
        _ if g.const_value(b).is_some() => Ok([a, minus(g, b), c]),
        _ => Ok([minus(g, a), b, c]),
    }
}

fn minus(g: &mut Graph, x: Value) -> Value {
    if let Some(Op::Elem(Neg)) = g.node_of(x).map(|n| &n.op) {
        return g.node_of(x).map_or(x, |n| n.ins[0]);
    }
    evaluated(g, &Op::Elem(Neg), &[x]).unwrap_or_else(|| g.neg(x))
}
