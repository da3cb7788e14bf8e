//! The step of a loop made ready for lowering: extents known, and told by the operands of each node.

use super::axes::together;
use super::dynamic_slice;
use super::extents::known_shape;
use super::lengths::length;
use super::{Lowered, refuse};
use crate::ir::op::BroadcastTo;
use crate::ir::{EvalCx, Graph, Node, Op, Scan, Value};
use crate::scalar::ElemOp;
use crate::scan::retype::specialised;
use crate::types::shape::count;
use crate::types::{Array, DType, Type};
use rustc_hash::FxHashMap;

/// The body with known extents, parameters with a value being numbers, elementwise nodes given operands of one element or all.
///
/// # Errors
/// What type inference reports.
pub(super) fn prepared(scan: &Scan, types: &[Type], values: &[Option<Array>]) -> Lowered<Graph> {
    let body = specialised(&scan.body, types, values)?;
    // What does not read its rows may leave it out: the law says what is wrong.
    let steps = |n: &Node| body.const_value(n.ins[Scan::N_STEPS]).and_then(Array::item_i64);
    if body.nodes().iter().any(|n| matches!(n.op, Op::Scan(_)) && steps(n).is_some_and(|n| n < 0)) {
        return refuse("a loop of a negative number of steps");
    }
    ready(&body)
}

/// The body with what is computed of extents and constants computed, elementwise nodes given operands of one element or all.
///
/// # Errors
/// What type inference reports.
pub(super) fn ready(body: &Graph) -> Lowered<Graph> {
    let open = body.nodes().iter().any(|n| folds(body, n)) || body.value_ids().any(|v| known_shape(body, v).is_err());
    let folded = if open { Some(folded(body)?) } else { None };
    let ready = widened(folded.as_ref().unwrap_or(body))?;
    // A slice that nothing reads is not looked at: nobody would know that it reaches beyond its array, and has another extent.
    let (read, made) =
        (dynamic_slice::live(&ready), folded.map_or_else(|| dynamic_slice::live(body), |folded| dynamic_slice::all(&folded)));
    if read < made { refuse("a slice from a computed place of which the extent alone is read") } else { Ok(ready) }
}

/// True for what is computed while planning, or might be: assertions, extents, and what depends on constants alone.
fn folds(body: &Graph, node: &Node) -> bool {
    let constant = |v: &Value| body.const_value(*v).is_some_and(|a| a.len() <= FOLDED);
    matches!(node.op, Op::Assert(_) | Op::DimOf(_)) || !node.ins.is_empty() && node.ins.iter().all(constant)
}

/// The largest array that is computed while planning.
const FOLDED: usize = 64;

/// The graph with what is computed of extents and constants computed, so that extents that follow from it are known, too.
fn folded(body: &Graph) -> crate::base::Result<Graph> {
    let mut out = Graph::new();
    let mut image: FxHashMap<Value, Value> = FxHashMap::default();
    for &p in body.params() {
        image.insert(p, out.param(body.ty(p).clone(), body.name(p).map(|n| &**n)));
    }
    let live = body.needed(body.results());
    for (_, node) in body.nodes().enumerate().filter(|n| live[n.0.0 as usize]) {
        out.set_span(node.span);
        let ins: Vec<Value> = node.ins.iter().map(|v| image[v]).collect();
        if let Some(v) = asserted(&out, node, &ins) {
            image.insert(node.outs[0], v);
            continue;
        }
        if let Some(v) = decided(&out, node, &ins) {
            image.insert(node.outs[0], v);
            continue;
        }
        if let Some(v) = length(&mut out, node, &ins)? {
            image.insert(node.outs[0], v);
            continue;
        }
        let node_op = dynamic_slice::found(&out, node, &ins).unwrap_or_else(|| node.op.clone());
        let found = match &node_op {
            Op::DimOf(dim) => out.ty(ins[0]).dims[dim.axis].value().map(|n| vec![Array::scalar(n as i64)]),
            op => computed(&out, op, &ins),
        };
        let outs = match found {
            Some(found) => found.into_iter().map(|a| out.constant(a)).collect(),
            None => out.apply(node_op, &ins)?,
        };
        node.outs.iter().zip(outs).for_each(|(&a, b)| {
            image.insert(a, b);
        });
    }
    let results: Vec<Value> = body.results().iter().map(|v| image[v]).collect();
    out.set_results(results);
    Ok(out)
}

/// What an assertion hands on, where it certainly holds.
fn asserted(graph: &Graph, node: &Node, ins: &[Value]) -> Option<Value> {
    let holds = |&v: &Value| graph.const_value(v).is_some_and(|a| a.bits().iter().all(|&b| b != 0));
    (matches!(node.op, Op::Assert(_)) && ins[1..].iter().all(holds)).then(|| ins[0])
}

/// The branch that is taken, where that is known.
fn decided(graph: &Graph, node: &Node, ins: &[Value]) -> Option<Value> {
    let Op::IfElse(_) = node.op else { return None };
    let condition = graph.const_value(ins[0]).filter(|a| a.len() == 1 && a.dtype() == DType::Bool)?;
    Some(ins[if condition.bits()[0] != 0 { 1 } else { 2 }])
}

/// The results of a node of constants, where they are small.
fn computed(graph: &Graph, op: &Op, ins: &[Value]) -> Option<Vec<Array>> {
    if op.number() == Op::OTHERS {
        return None;
    }
    let mut args = ins.iter().map(|&v| graph.const_value(v).filter(|a| a.len() <= FOLDED).cloned()).collect::<Option<Vec<_>>>()?;
    let made = op.evaluate(&mut EvalCx::new(), &mut args).ok()?;
    made.iter().all(|a| a.len() <= FOLDED).then(|| made.into_vec())
}

/// The extent that a `dim` node asks for, where it is known.
fn extent(body: &Graph, node: &Node) -> Option<usize> {
    let Op::DimOf(dim) = &node.op else { return None };
    body.ty(node.ins[0]).dims.get(dim.axis)?.value()
}

/// What only hands on an array of the same extents: its input.
fn unchanged(body: &Graph, node: &Node) -> Option<Value> {
    let like = node.op.properties().shape_only == [1];
    let same = |v: Value| known_shape(body, v).ok() == known_shape(body, node.outs[0]).ok();
    (like && same(node.ins[0])).then(|| node.ins[0])
}

/// True per value whose computation cannot fail, all extents being known and having been found to fit.
fn sure(body: &Graph) -> Vec<bool> {
    let mut sure = vec![true; body.n_values()];
    for node in body.nodes().iter() {
        let sure_here = !node.op.def().fallible(body, &node.ins) && node.ins.iter().all(|v| sure[v.0 as usize]);
        node.outs.iter().for_each(|v| sure[v.0 as usize] = sure_here);
    }
    sure
}

/// Zeros of an extent that is known, where nothing but the shape of a value is read.
fn shape_alone(out: &mut Graph, body: &Graph, v: Value) -> crate::base::Result<Option<Value>> {
    let Ok(shape) = known_shape(body, v) else { return Ok(None) };
    let dims: Vec<Value> = shape.iter().map(|&n| out.int(n as i64)).collect();
    let zero = out.number(body.ty(v).dtype, 0.0);
    Ok(Some(out.apply(BroadcastTo {}, &[&[zero], &dims[..]].concat())?[0]))
}

/// A product of a column and a row, each element of which has one term: elementwise, the law of products adding it to a zero. `None` for
/// whatever else.
fn outer(out: &mut Graph, body: &Graph, node: &Node, image: &FxHashMap<Value, Value>) -> crate::base::Result<Option<Value>> {
    let ty = body.ty(node.outs[0]);
    let alike = node.ins.iter().all(|&v| body.ty(v).dtype == ty.dtype && body.ty(v).rank() == 2);
    if !matches!(node.op, Op::MatMul(_)) || !ty.dtype.is_float() || !alike {
        return Ok(None);
    }
    let known = |v: Value| known_shape(body, v).ok();
    let (Some(shape), Some(column), Some(row)) = (known(node.outs[0]), known(node.ins[0]), known(node.ins[1])) else { return Ok(None) };
    if column[1] != 1 || row[0] != 1 {
        return Ok(None);
    }
    let mut ins = vec![];
    for v in &node.ins {
        ins.push(broadcast(out, body, (*v, image[v]), &shape)?);
    }
    let zero = out.number(ty.dtype, 0.0);
    let product = out.apply(Op::Elem(ElemOp::Fma), &[&ins[..], &[zero]].concat())?[0];
    // A product with one column adds up eight sums, most of which are 0 here: of a term that underflows it makes a zero without a sign.
    Ok(Some(if shape[1] == 1 { out.apply(Op::Elem(ElemOp::Add), &[product, zero])?[0] } else { product }))
}

/// The image of a value as an operand of an elementwise node of this shape.
fn broadcast(out: &mut Graph, body: &Graph, (v, image): (Value, Value), shape: &[usize]) -> crate::base::Result<Value> {
    let size = known_shape(body, v).map_or(1, |s| count(&s));
    if size == 1 || size == count(shape) {
        return Ok(image);
    }
    let dims: Vec<Value> = shape.iter().map(|&n| out.int(n as i64)).collect();
    Ok(out.apply(BroadcastTo {}, &[&[image], &dims[..]].concat())?[0])
}

/// Operands that an elementwise node broadcasts along some axes are broadcast by a node of their own; extents are constants, and what
/// is computed for its shape alone is not computed.
fn widened(body: &Graph) -> crate::base::Result<Graph> {
    let mut out = Graph::new();
    let mut image: FxHashMap<Value, Value> = FxHashMap::default();
    for &p in body.params() {
        let q = out.param(body.ty(p).clone(), body.name(p).map(|n| &**n));
        image.insert(p, q);
    }
    let (live, sure) = (body.needed(body.results()), sure(body));
    for (_, node) in body.nodes().enumerate().filter(|n| live[n.0.0 as usize]) {
        out.set_span(node.span);
        if let Some(v) = unchanged(body, node).filter(|_| sure[node.ins[1].0 as usize]) {
            image.insert(node.outs[0], image[&v]);
            continue;
        }
        if let Some(n) = extent(body, node) {
            let n = out.int(n as i64);
            image.insert(node.outs[0], n);
            continue;
        }
        let other = match together(&mut out, body, node, &image)? {
            None => outer(&mut out, body, node, &image)?,
            some => some,
        };
        if let Some(v) = other {
            image.insert(node.outs[0], v);
            continue;
        }
        let shape = known_shape(body, node.outs[0]).ok().filter(|_| matches!(node.op, Op::Elem(_)));
        let mut ins = vec![];
        for (k, &v) in node.ins.iter().enumerate() {
            if node.op.properties().shape_only.contains(&k) && sure[v.0 as usize] && body.node_of(v).is_some() {
                let alone = shape_alone(&mut out, body, v)?;
                ins.push(alone.unwrap_or(image[&v]));
                continue;
            }
            ins.push(match &shape {
                Some(shape) => broadcast(&mut out, body, (v, image[&v]), shape)?,
                None => image[&v],
            });
        }
        let outs = out.apply(node.op.clone(), &ins)?;
        node.outs.iter().zip(outs).for_each(|(&a, b)| {
            image.insert(a, b);
        });
    }
    let results: Vec<Value> = body.results().iter().map(|v| image[v]).collect();
    out.set_results(results);
    Ok(out)
}
