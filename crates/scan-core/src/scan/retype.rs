//! A loop for inputs of other types than it was built for.

use crate::bail;
use crate::base::{Id, Result};
use crate::ir::op::Outs;
use crate::ir::{EvalCx, Graph, Node, Op, Scan, Value};
use crate::ops::certain::never_negative;
use crate::scan::reached::{computed, told_before};
use crate::types::{Array, DType, Type};
use rustc_hash::FxHashMap;

/// True where inputs of these types do not fit the parameters of the body.
pub fn differs(scan: &Scan, ins: &[Type]) -> bool {
    let kept = param_types(scan, ins);
    let params = scan.body.params();
    kept.iter().zip(params).any(|(new, &p)| new.dtype != scan.body.ty(p).dtype || new.rank() != scan.body.ty(p).rank())
}

/// The loop with its step inferred again for inputs of other types.
///
/// # Errors
/// `E0120` where a state would no longer keep its type; whatever type inference reports.
pub fn retyped(scan: &Scan, ins: &[Type]) -> Result<Scan> {
    retyped_by(scan, ins, &|body, types| {
        let mut graph = Graph::new();
        let mut image: FxHashMap<Value, Value> = FxHashMap::default();
        for (&p, ty) in body.params().iter().zip(types) {
            image.insert(p, graph.param(ty.clone(), body.name(p).map(|n| &**n)));
        }
        let results = graph.inline(body, &image, body.results())?;
        graph.set_results(results);
        Ok(graph)
    })
}

/// The loop with a step that `infer` has made of the one there is, for parameters of other types.
fn retyped_by(scan: &Scan, ins: &[Type], infer: &dyn Fn(&Graph, &[Type]) -> Result<Graph>) -> Result<Scan> {
    let graph = infer(&scan.body, &param_types(scan, ins))?;
    let results = graph.results();
    let mut new = scan.clone();
    for id in scan.states.ids() {
        let written = results[scan.write_results(id).start];
        let row = match scan.init_input(id) {
            Some(at) => ins[at].row(),
            None => graph.ty(written).clone(),
        };
        for &value in &results[scan.write_results(id)] {
            let ty = graph.ty(value);
            if ty.dtype != row.dtype || ty.rank() != row.rank() {
                let name = scan.states[id].name.as_deref().unwrap_or("?");
                bail!(Scan, "E0120", "with these inputs state `{name}` would start as {row} and go on as {ty}");
            }
        }
        new.states[id].row = row;
    }
    new.body = graph;
    Ok(new)
}

/// The row of a state that all agree on: its initial ones, those that a step reads and those that it writes, as far as they are given.
pub fn state_row<'a>(rows: impl IntoIterator<Item = &'a Type>) -> Option<&'a Type> {
    let mut rows = rows.into_iter();
    let row = rows.next()?;
    let agrees = |other: &Type| other.rank() == row.rank() && !other.dims.iter().zip(&row.dims).any(|(a, b)| a.conflicts(b));
    rows.all(agrees).then_some(row)
}

/// The types of the body's parameters that inputs ask for.
pub fn param_types(scan: &Scan, ins: &[Type]) -> Vec<Type> {
    let mut types: Vec<Type> = scan.body.params().iter().map(|&p| scan.body.ty(p).clone()).collect();
    for id in scan.seqs.ids() {
        types[scan.seq_param(id)] = ins[scan.seq_input(id)].row();
    }
    for id in scan.states.ids() {
        if let Some(at) = scan.init_input(id) {
            scan.read_params(id).for_each(|p| types[p] = ins[at].row());
        }
    }
    for id in scan.captured.ids() {
        types[scan.captured_param(id)] = ins[scan.captured_input(id)].clone();
    }
    types
}

/// The graph with parameters of known types, and so, where nothing depends on values, with all extents known: those of loops in it, too.
/// Of parameters with a value, of extents, and of integers that follow from these, the value is taken where it decides more than elements:
/// what is computed for other values is computed by the same kernels.
///
/// # Errors
/// What type inference reports.
pub fn specialised(graph: &Graph, types: &[Type], values: &[Option<Array>]) -> Result<Graph> {
    let mut known = Graph::new();
    let mut image: FxHashMap<Value, Value> = FxHashMap::default();
    let mut fixed: FxHashMap<Value, Array> = FxHashMap::default();
    for ((k, &p), ty) in graph.params().iter().enumerate().zip(types) {
        image.insert(p, known.param(ty.clone(), graph.name(p).map(|n| &**n)));
        fixed.extend(values.get(k).cloned().flatten().map(|a| (p, a)));
    }
    let (live, mut reached) = (graph.needed(graph.results()), None);
    for (_, node) in graph.nodes().enumerate().filter(|(id, _)| live[id.idx()]) {
        known.set_span(node.span);
        let told = node.op.as_scan().is_some_and(|scan| told_before(node, scan, reached.get_or_insert_with(|| computed(graph))));
        let outs = specialised_node(&mut known, graph, node, &image, (&mut fixed, told))?;
        image.extend(node.outs.iter().copied().zip(outs));
    }
    let results: Vec<Value> = graph.results().iter().map(|v| image[v]).collect();
    known.set_results(results);
    Ok(known)
}

fn specialised_node(
    known: &mut Graph,
    graph: &Graph,
    node: &Node,
    image: &FxHashMap<Value, Value>,
    (fixed, told): (&mut FxHashMap<Value, Array>, bool),
) -> Result<Outs<Value>> {
    let elementwise = matches!(node.op, Op::Elem(_) | Op::Cast(_));
    if elementwise && !fixed.is_empty() {
        let value = |v: &Value| fixed.get(v).or(graph.const_value(*v)).filter(|a| a.rank() == 0 && !a.dtype().is_float()).cloned();
        let args: Option<Vec<Array>> = node.ins.iter().map(value).collect();
        let found = args.and_then(|mut args| node.op.evaluate(&mut EvalCx::new(), &mut args).ok());
        fixed.extend(node.outs.iter().copied().zip(found.into_iter().flatten()));
    }
    let mut ins = vec![];
    for (k, v) in node.ins.iter().enumerate() {
        let element = elementwise || matches!(node.op, Op::Scan(_)) && k != Scan::N_STEPS;
        let value = fixed.get(v).filter(|_| !element).cloned();
        ins.push(value.map_or(image[v], |a| known.constant(a)));
    }
    let Op::Scan(scan) = &node.op else {
        let outs: Outs<Value> = known.apply(node.op.clone(), &ins)?.into_iter().collect();
        let integers = outs.iter().zip(&node.outs).filter(|(new, _)| *known.ty(**new) == Type::scalar(DType::I64));
        fixed.extend(integers.filter_map(|(new, old)| Some((*old, Array::scalar(known.arg(*new).dim?.value()? as i64)))));
        return Ok(outs);
    };
    let types: Vec<Type> = ins.iter().map(|&v| known.ty(v).clone()).collect();
    let mut values = vec![None; scan.body.params().len()];
    scan.captured.ids().for_each(|id| values[scan.captured_param(id)] = fixed.get(&node.ins[scan.captured_input(id)]).cloned());
    let inner = retyped_by(scan, &types, &|body, params| specialised(body, params, &values))?;
    let mut outs: Outs<Value> = known.apply(Op::Scan(inner.into()), &ins)?.into_iter().collect();
    if told
        && never_negative(known, ins[Scan::N_STEPS])
        && let Some(steps) = outs.last_mut()
    {
        *steps = ins[Scan::N_STEPS];
    }
    Ok(outs)
}
