//! Every op's rule against a loop over the rows.

mod cases;

use crate::ir::op::*;
use crate::ir::{EvalCx, Graph, Op, Value};
use crate::ops::testing::{assert_close, eval_graph};
use crate::scalar::ElemOp;
use crate::types::{Array, DType, Dim, Sym, Type};
use cases::{Case, ROWS};
use rustc_hash::FxHashSet;

/// Whether extents are known when the graph is built; symbols stand for the same extents in all values.
fn ty(x: &Array, known: bool, leading: bool, extent: &Dim) -> Type {
    let dims = x.shape().iter().enumerate().map(|(axis, &n)| match (known, leading && axis == 0) {
        (true, _) => Dim::known(n),
        (false, true) => extent.clone(),
        (false, false) => Dim::sym(Sym::fresh()),
    });
    Type::new(x.dtype(), dims)
}

/// What a rule computes for so many rows, of which the inputs in `vary` differ from row to row.
fn batched(case: &Case, rows: &[Vec<Array>], vary: &[bool], known: bool) -> crate::base::Result<Vec<(bool, Array)>> {
    let (mut g, extent) = (Graph::new(), Dim::fresh());
    let (mut ins, mut arrays) = (vec![], vec![]);
    for (k, first) in (case.row)(0).iter().enumerate() {
        let constant = !vary[k] && case.constant.contains(&k);
        let column: Vec<Array> = rows.iter().map(|row| row[k].clone()).collect();
        let array = if vary[k] { Array::stack(&column, first.dtype(), first.shape()) } else { first.clone() };
        if constant {
            ins.push(Batched::Fixed(g.constant(array)));
            continue;
        }
        let v = g.param(ty(&array, known, vary[k], &extent), None);
        ins.push(if vary[k] { Batched::Rows(v) } else { Batched::Fixed(v) });
        arrays.push(array);
    }
    let leading = ins.iter().find(|x| x.varies()).expect("one varies").value();
    let outs = case.op.batch(&mut Batching::new(&mut g, leading), &ins)?;
    let wanted: Vec<Value> = outs.iter().map(|x| x.value()).collect();
    let found = eval_graph(&g, &arrays, &wanted)?;
    Ok(outs.iter().map(|x| x.varies()).zip(found).collect())
}

/// What the op computes for one row.
fn alone(case: &Case, row: &[Array], vary: &[bool]) -> Vec<Array> {
    let first = (case.row)(0);
    let mut ins: Vec<Array> = row.iter().zip(first).zip(vary).map(|((x, first), vary)| if *vary { x.clone() } else { first }).collect();
    case.op.evaluate(&mut EvalCx::new(), &mut ins).unwrap_or_else(|e| panic!("{:?}: {}", case.op, e.title)).to_vec()
}

fn masks(case: &Case) -> Vec<Vec<bool>> {
    let n = (case.row)(0).len();
    let subsets = 1..1u32 << case.vary.len();
    subsets.map(|bits| (0..n).map(|k| case.vary.iter().position(|v| *v == k).is_some_and(|at| bits >> at & 1 == 1)).collect()).collect()
}

fn check(case: &Case) {
    for (vary, known) in masks(case).into_iter().flat_map(|vary| [(vary.clone(), true), (vary, false)]) {
        for n in [ROWS, 1] {
            let rows: Vec<Vec<Array>> = (0..n).map(|r| (case.row)(r)).collect();
            let what = format!("{:?} of {n} rows, {vary:?} vary, known = {known}", case.op);
            let found = batched(case, &rows, &vary, known).unwrap_or_else(|e| panic!("{what}: {}", e.title));
            for (r, row) in rows.iter().enumerate() {
                for ((varies, all), one) in found.iter().zip(alone(case, row, &vary)) {
                    let got = if *varies { all.row(r) } else { all.clone() };
                    assert_eq!((got.dtype(), got.shape()), (one.dtype(), one.shape()), "{what}: row {r}");
                    compare(case, &got, &one, &format!("{what}: row {r}"));
                }
            }
        }
        let none = batched(case, &[], &vary, known).unwrap_or_else(|e| panic!("{:?} of no rows, {vary:?} vary: {}", case.op, e.title));
        assert!(none.iter().all(|(varies, x)| !varies || x.shape()[0] == 0), "{:?} of no rows", case.op);
    }
}

fn compare(case: &Case, got: &Array, one: &Array, what: &str) {
    let same = |x: f64, y: f64| x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan();
    let (got, one) = (got.to_f64_vec(), one.to_f64_vec());
    if case.rounded {
        assert_close(&got, &one, 1e-12, what);
    } else {
        assert!(got.iter().zip(&one).all(|(x, y)| same(*x, *y)), "{what}: {got:?} for {one:?}");
    }
}

#[test]
fn rows_are_computed_as_each_alone() {
    cases::all().iter().for_each(check);
}

#[test]
fn elementwise_rows_are_computed_as_each_alone() {
    for row in crate::scalar::ROWS {
        let op = row.op;
        let float = (0..op.arity()).map(|_| DType::F64).collect::<Vec<_>>();
        let dtype = if row.operand(float).is_some() { DType::F64 } else { DType::I64 };
        // Ranks differ, and axes of extent 1 meet longer ones.
        let shapes: [&[usize]; 3] = [&[2, 3], &[1], &[3]];
        let make = move |r: usize| (0..op.arity()).map(|k| cases::positive(shapes[k], 5 * r + k).cast(dtype)).collect::<Vec<_>>();
        check(&Case::new(Op::Elem(op), make, &(0..op.arity()).collect::<Vec<_>>()));
    }
    assert_eq!(crate::scalar::ROWS.len(), ElemOp::ALL.len());
}

#[test]
fn every_op_has_a_case() {
    let tested: FxHashSet<String> = cases::all().iter().map(|c| c.op.name().to_string()).collect();
    let missing: Vec<&str> = Op::STRUCTURAL.iter().copied().filter(|name| !tested.contains(*name)).collect();
    assert!(missing.is_empty(), "no case in ops/batch/tests/cases.rs: {missing:?}");
}
