//! Helpers of the op tests: values and gradients of small graphs, checked node by node.

use crate::base::{Diagnostic, Result};
use crate::dispatch;
use crate::ir::{EvalCx, Graph, Op, Site, Value};
use crate::types::{Array, DType, Dim, Sym, Type};
use rustc_hash::FxHashMap;

/// The values of `outputs` for these parameters. Checks on the way that each node's outputs have the types that
/// inference promised, and that a symbol stands for one extent.
pub(crate) fn eval_graph(g: &Graph, params: &[Array], outputs: &[Value]) -> Result<Vec<Array>> {
    let mut values: Vec<Option<Array>> = vec![None; g.n_values()];
    let mut syms = FxHashMap::default();
    assert_eq!(g.params().len(), params.len(), "number of parameters");
    for (&v, x) in g.params().iter().zip(params) {
        check_type("param", g.ty(v), x, &mut syms);
        values[v.0 as usize] = Some(x.clone());
    }
    let needed = g.needed(outputs);
    for (node, _) in g.nodes().iter().zip(needed).filter(|(_, needed)| *needed) {
        let mut ins: Vec<Array> = node.ins.iter().map(|v| values[v.0 as usize].clone().expect("topological order")).collect();
        let outs = node.op.def().eval(&mut EvalCx::new(), &mut ins)?;
        assert_eq!(outs.len(), node.outs.len(), "outputs of {:?}", node.op);
        for (&v, x) in node.outs.iter().zip(outs) {
            check_type(&format!("{:?}", node.op), g.ty(v), &x, &mut syms);
            values[v.0 as usize] = Some(x);
        }
    }
    Ok(outputs.iter().map(|v| values[v.0 as usize].clone().expect("a parameter or needed")).collect())
}

fn check_type(what: &str, ty: &Type, x: &Array, syms: &mut FxHashMap<Sym, i64>) {
    assert!(ty.admits(x.dtype(), x.shape()), "{what}: inferred {ty}, got {}", x.ty());
    for (dim, &n) in ty.dims.iter().zip(x.shape()) {
        match (dim.eval(&|s| syms.get(&s).copied()), dim.as_sym()) {
            (Some(k), _) => assert_eq!(k, n as i64, "{what}: extent of {dim:?} in {}", x.ty()),
            (None, Some(s)) => drop(syms.insert(s, n as i64)),
            (None, None) => {}
        }
    }
}

/// The value of a one-output op. Also checks inference with and without known extents, and that neither sharing
/// nor owning the inputs' buffers changes anything.
pub(crate) fn apply(op: impl Into<Op>, ins: &[Array]) -> Array {
    try_apply(op, ins).unwrap_or_else(|e| panic!("{}", e.title))
}

/// As [`apply`], for ops that may fail.
pub(crate) fn try_apply(op: impl Into<Op>, ins: &[Array]) -> Result<Array> {
    Ok(try_apply_all(op, ins)?.remove(0))
}

/// As [`try_apply`], for any number of outputs.
pub(crate) fn try_apply_all(op: impl Into<Op>, ins: &[Array]) -> Result<Vec<Array>> {
    let op = op.into();
    let copies: Vec<Array> = ins.iter().map(deep_copy).collect();
    let unknown = run_op(&op, ins, false);
    assert_eq!(ins, copies, "{op:?} wrote into a shared input");
    let known = run_op(&op, ins, true);
    if let (Ok(a), Ok(b)) = (&unknown, &known) {
        assert_eq!(a, b, "{op:?}");
    }
    let owned = op.def().eval(&mut EvalCx::new(), &mut ins.iter().map(deep_copy).collect::<Vec<_>>());
    match (&unknown, &owned) {
        (Ok(a), Ok(b)) => assert_eq!(a[..], b[..], "{op:?} on owned inputs"),
        (a, b) => assert_eq!(a.is_err(), b.is_err(), "{op:?} on owned inputs"),
    }
    unknown.and(known)
}

/// The error of an op at run time, where no extent is known when the graph is built.
pub(crate) fn run_error(op: impl Into<Op>, ins: &[Array]) -> Box<Diagnostic> {
    run_op(&op.into(), ins, false).expect_err("fails at run time")
}

/// The error of an op when the graph is built, where all extents are known.
pub(crate) fn build_error(op: impl Into<Op>, ins: &[Array]) -> Box<Diagnostic> {
    let (mut g, params) = graph_of(ins, true);
    g.apply(op, &params).expect_err("fails when the graph is built")
}

fn run_op(op: &Op, ins: &[Array], known: bool) -> Result<Vec<Array>> {
    let (mut g, params) = graph_of(ins, known);
    let outs = g.apply(op.clone(), &params)?;
    eval_graph(&g, ins, &outs)
}

fn deep_copy(x: &Array) -> Array {
    dispatch!(x.dtype(), T => Array::new::<T>(x.shape(), x.as_slice::<T>().to_vec()))
}

/// A graph with one parameter per array, of known or of unknown extents.
pub(crate) fn graph_of(ins: &[Array], known: bool) -> (Graph, Vec<Value>) {
    let mut g = Graph::new();
    let params = ins
        .iter()
        .map(|x| {
            let ty = if known { x.ty() } else { Type::new(x.dtype(), x.shape().iter().map(|_| Dim::fresh())) };
            g.param(ty, None)
        })
        .collect();
    (g, params)
}

/// Adds the cotangents of `wrt` given that of `y`; `None` is zero.
pub(crate) fn vjp_of(g: &mut Graph, y: Value, ct: Value, wrt: &[Value]) -> Result<Vec<Option<Value>>> {
    let nodes: Vec<_> = g.nodes().iter().cloned().collect();
    let mut cts: FxHashMap<Value, Value> = FxHashMap::default();
    cts.insert(y, ct);
    for node in nodes.iter().rev() {
        let outs: Vec<Option<Value>> = node.outs.iter().map(|v| cts.get(v).copied()).collect();
        if outs.iter().all(Option::is_none) || matches!(node.op, Op::Const(_)) {
            continue;
        }
        let def = node.op.def();
        let grads = def.vjp(g, &Site { ins: &node.ins, outs: &node.outs, wanted: &[] }, &outs)?;
        assert_eq!(grads.len(), node.ins.len(), "cotangents of {:?}", node.op);
        for (i, (&v, grad)) in node.ins.iter().zip(grads).enumerate() {
            let Some(grad) = grad else { continue };
            assert!(def.connected(i), "{:?} has a cotangent for unconnected input {i}", node.op);
            assert_eq!(g.ty(grad).dtype, g.ty(v).dtype, "cotangent {i} of {:?}", node.op);
            assert_eq!(g.ty(grad).rank(), g.ty(v).rank(), "cotangent {i} of {:?}", node.op);
            let sum = match cts.get(&v) {
                Some(&old) => g.add(old, grad),
                None => grad,
            };
            cts.insert(v, sum);
        }
    }
    Ok(wrt.iter().map(|v| cts.get(v).copied()).collect())
}

/// Compares the vjp of `build` with central differences for every f64 input, with known and unknown extents.
/// Inputs of other dtypes are held fixed.
pub(crate) fn check_vjp(build: impl Fn(&mut Graph, &[Value]) -> Value, inputs: &[Array]) {
    for known in [true, false] {
        check_vjp_with(&build, inputs, known);
    }
}

/// The gradient of the same build in single precision has that dtype and agrees with `expected`.
fn check_single(build: &impl Fn(&mut Graph, &[Value]) -> Value, inputs: &[Array], weights: &Array, expected: &[(usize, Array)]) {
    let single = |x: &Array| if x.dtype() == DType::F64 { x.cast(DType::F32) } else { x.clone() };
    let ins: Vec<Array> = inputs.iter().map(single).collect();
    let (mut g, params) = graph_of(&ins, false);
    let y = build(&mut g, &params);
    let weights = weights.cast(g.ty(y).dtype);
    let ct = g.param(weights.ty(), None);
    let wrt: Vec<Value> = expected.iter().map(|e| params[e.0]).collect();
    let grads = vjp_of(&mut g, y, ct, &wrt).expect("has a gradient");
    let all: Vec<Array> = ins.iter().cloned().chain([weights]).collect();
    for ((i, expected), grad) in expected.iter().zip(grads) {
        let got = eval_graph(&g, &all, &[grad.expect("connected as in f64")]).expect("gradient evaluates").remove(0);
        assert_close(&got.to_f64_vec(), &expected.to_f64_vec(), 1e-3, &format!("f32 cotangent of input {i}"));
    }
}

/// As [`check_vjp`] for the vjp of the vjp: each cotangent of `build` is differentiated by all inputs and by the
/// cotangent that it was given.
pub(crate) fn check_vjp2(build: impl Fn(&mut Graph, &[Value]) -> Value, inputs: &[Array]) {
    let (mut g, params) = graph_of(inputs, true);
    let y = build(&mut g, &params);
    let weights = weights(eval_graph(&g, inputs, &[y]).expect("evaluates")[0].shape());
    let n = inputs.len();
    let all: Vec<Array> = inputs.iter().cloned().chain([weights]).collect();
    for i in (0..n).filter(|&i| inputs[i].dtype() == DType::F64) {
        let first = |g: &mut Graph, v: &[Value]| {
            let y = build(g, &v[..n]);
            let grads = vjp_of(g, y, v[n], &v[..n]).expect("has a gradient");
            grads[i].unwrap_or_else(|| g.zeros_like(v[i]))
        };
        check_vjp(first, &all);
    }
}

fn check_vjp_with(build: &impl Fn(&mut Graph, &[Value]) -> Value, inputs: &[Array], known: bool) {
    let (mut g, params) = graph_of(inputs, known);
    let y = build(&mut g, &params);
    let value = |x: &[Array], g: &Graph| eval_graph(g, x, &[y]).expect("evaluates").remove(0);
    let weights = weights(value(inputs, &g).shape());
    let cost = |x: &[Array], g: &Graph| -> f64 { value(x, g).to_f64_vec().iter().zip(weights.to_f64_vec()).map(|(y, w)| y * w).sum() };
    let wrt: Vec<usize> = (0..inputs.len()).filter(|&i| inputs[i].dtype() == DType::F64).collect();
    let expected: Vec<Vec<f64>> = wrt.iter().map(|&i| differences(inputs, i, &|x| cost(x, &g))).collect();
    let ct = g.param(if known { weights.ty() } else { g.ty(y).clone() }, None);
    let wrt_values: Vec<Value> = wrt.iter().map(|&i| params[i]).collect();
    let grads = vjp_of(&mut g, y, ct, &wrt_values).expect("has a gradient");
    let all: Vec<Array> = inputs.iter().cloned().chain([weights.clone()]).collect();
    let mut found = vec![];
    for ((&i, grad), expected) in wrt.iter().zip(grads).zip(&expected) {
        let Some(grad) = grad else {
            assert!(expected.iter().all(|&d| d == 0.0), "input {i}: no cotangent, differences say {expected:?}");
            continue;
        };
        let got = eval_graph(&g, &all, &[grad]).expect("gradient evaluates").remove(0);
        assert_eq!(got.shape(), inputs[i].shape(), "shape of cotangent {i}, known = {known}");
        assert_close(&got.to_f64_vec(), expected, 1e-6, &format!("cotangent of input {i}, known = {known}"));
        found.push((i, got));
    }
    check_single(build, inputs, &weights, &found);
}

/// Central differences of `cost` by each element of input `i`.
fn differences(inputs: &[Array], i: usize, cost: &dyn Fn(&[Array]) -> f64) -> Vec<f64> {
    let at = |k: usize, by: f64| {
        let mut x = inputs.to_vec();
        x[i].as_mut_slice::<f64>()[k] += by;
        cost(&x)
    };
    let step = |k: usize| 1e-5 * inputs[i].as_slice::<f64>()[k].abs().max(1.0);
    (0..inputs[i].len()).map(|k| (at(k, step(k)) - at(k, -step(k))) / (2.0 * step(k))).collect()
}

/// Fixed numbers without pattern, in [0.5, 1.5).
pub(crate) fn weights(shape: &[usize]) -> Array {
    let n = crate::types::shape::count(shape);
    Array::new(shape, (0..n).map(|i| 0.5 + (i as f64 * 0.618_033_988_749_895 + 0.25).fract()).collect())
}

/// Fixed numbers without pattern and without ties, in [-1, 1).
pub(crate) fn sample(shape: &[usize], seed: usize) -> Array {
    let n = crate::types::shape::count(shape);
    let x = |i: usize| 2.0 * ((i + 37 * seed) as f64 * 0.754_877_666_246_692 + 0.1).fract() - 1.0;
    Array::new(shape, (0..n).map(x).collect())
}

/// Equal up to a relative (below 1: absolute) tolerance; NaN and infinities must be the same.
#[track_caller]
pub(crate) fn assert_close(got: &[f64], expected: &[f64], tolerance: f64, what: &str) {
    assert_eq!(got.len(), expected.len(), "{what}: number of elements");
    for (k, (&a, &b)) in got.iter().zip(expected).enumerate() {
        let same = a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance * b.abs().max(1.0);
        assert!(same, "{what}: element {k} is {a}, expected {b}\n got {got:?}\n expected {expected:?}");
    }
}
