//! Graphs broken by hand.

use super::*;
use crate::base::IdxVec;
use crate::ir::op::*;
use crate::ir::scan::*;
use crate::types::{Array, Dim};
use std::sync::Arc;

fn vector() -> Type {
    Type::known(DType::F64, &[3])
}

/// x, and its extent.
fn small() -> Graph {
    let mut g = Graph::new();
    let x = g.param(vector(), Some("x"));
    let y = g.emit(StopGradient {}, &[x]);
    let z = g.emit(GradClip { low: Bits(0.0), high: Bits(1.0) }, &[y]);
    g.set_results([z]);
    g
}

fn code(result: Result<()>) -> &'static str {
    result.map_or_else(|e| e.code, |()| "fine")
}

#[test]
fn whole_graphs_pass() {
    assert_eq!(code(verify(&small())), "fine");
    assert_eq!(code(run(&looping())), "fine");
}

#[test]
fn order_and_origins_are_checked() {
    let mut g = small();
    let later = g.nodes()[NodeId(1)].outs[0];
    g.node_mut(NodeId(0)).ins[0] = later;
    assert_eq!(code(verify(&g)), "E0911");
    let mut g = small();
    g.node_mut(NodeId(0)).ins[0] = Value(99);
    assert_eq!(code(verify(&g)), "E0911");
    let mut g = small();
    let (first, second) = (g.nodes()[NodeId(0)].outs.clone(), g.nodes()[NodeId(1)].outs.clone());
    g.node_mut(NodeId(0)).outs = second;
    g.node_mut(NodeId(1)).outs = first;
    assert_eq!(code(verify(&g)), "E0911");
    let mut g = small();
    g.node_mut(NodeId(1)).outs.clear();
    assert_eq!(code(verify(&g)), "E0911");
}

#[test]
fn types_are_inferred_again() {
    for ty in [Type::known(DType::F32, &[3]), Type::known(DType::F64, &[4]), Type::scalar(DType::F64)] {
        let mut g = small();
        let v = g.nodes()[NodeId(0)].outs[0];
        g.set_ty(v, ty);
        assert_eq!(code(verify(&g)), "E0912");
    }
    let mut g = small();
    let v = g.nodes()[NodeId(1)].outs[0];
    g.set_ty(v, Type::unknown(DType::F64, 1));
    assert_eq!(code(verify(&g)), "fine");
    let mut g = small();
    g.node_mut(NodeId(0)).ins.clear();
    assert_eq!(code(verify(&g)), "E0912");
}

#[test]
fn results_exist() {
    let mut g = small();
    g.set_results([Value(7)]);
    assert_eq!(code(verify(&g)), "E0913");
}

/// `seq x; state h reads [0] writes [1]; const w; next h = ifelse(c, x, h); until c`, with the types of its inputs.
struct Loop {
    scan: Scan,
    ins: Vec<Type>,
}

const H: StateId = StateId(0);

fn looping() -> Loop {
    let mut body = Graph::new();
    body.param(Type::scalar(DType::I64), None);
    let x = body.param(vector(), None);
    let h = body.param(vector(), None);
    let c = body.param(Type::scalar(DType::Bool), None);
    let next = body.emit(IfElse {}, &[c, x, h]);
    body.set_results([next, c]);
    let state = State {
        row: vector(),
        init: true,
        reads: Offsets::from_slice(&[0]),
        writes: Offsets::from_slice(&[1]),
        keep: Keep::All,
        tag: Tag::Output,
        name: Some("h".into()),
    };
    let scan = Scan {
        name: Some("l".into()),
        body,
        seqs: [Seq { reverse: false, name: None }].into_iter().collect(),
        states: [state].into_iter().collect(),
        captured: [NonSeq { name: None }].into_iter().collect(),
        until: true,
        truncate: None,
    };
    let rows = |n: Dim| vector().rows(n);
    Loop { scan, ins: vec![Type::scalar(DType::I64), rows(Dim::fresh()), rows(Dim::known(1)), Type::scalar(DType::Bool)] }
}

fn run(l: &Loop) -> Result<()> {
    check_scan(&l.scan, &l.ins.iter().collect::<Vec<_>>())
}

/// Breaks one thing and tells the code and text of the error.
fn broken(change: impl FnOnce(&mut Loop)) -> (&'static str, String) {
    let mut l = looping();
    change(&mut l);
    let e = run(&l).unwrap_err();
    (e.code, e.title.clone())
}

#[test]
fn slots_are_counted() {
    assert_eq!(broken(|l| l.ins.truncate(3)).1, "expected 4 inputs of the loop, got 3");
    assert_eq!(broken(|l| l.scan.captured = IdxVec::new()).0, "E0914");
    assert_eq!(broken(|l| l.scan.states[H].reads.push(1)).1, "expected 5 parameters of the body, got 4");
    assert_eq!(broken(|l| l.scan.until = false).1, "expected 1 results of the body, got 2");
    assert_eq!(broken(|l| l.scan.body.set_results([Value(9), Value(3)])).0, "E0913");
}

#[test]
fn rows_agree() {
    assert_eq!(broken(|l| l.ins[1] = Type::scalar(DType::F64)).0, "E0915");
    assert_eq!(broken(|l| l.ins[1] = Type::known(DType::F32, &[5, 3])).0, "E0915");
    assert_eq!(
        broken(|l| l.ins[2] = Type::known(DType::F64, &[1, 4])).1,
        "state `h`: expected float64[3] for the initial rows, got float64[4]"
    );
    assert_eq!(broken(|l| l.ins[3] = Type::known(DType::Bool, &[1])).0, "E0915");
    assert_eq!(broken(|l| l.scan.states[H].row = Type::known(DType::F64, &[2])).0, "E0915");
    assert_eq!(
        broken(|l| l.scan.body.set_results([Value(3), Value(3)])).1,
        "state `h`: expected float64[3] for the row that is written, got bool"
    );
}

#[test]
fn scalars_have_their_types() {
    assert_eq!(broken(|l| l.ins[0] = Type::scalar(DType::I32)).1, "expected int64 for n_steps, got int32");
    assert_eq!(broken(|l| l.scan.body.set_results([Value(2), Value(0)])).1, "expected bool for the condition of `until`, got int64");
    assert_eq!(broken(|l| l.scan.body.set_ty(Value(0), Type::scalar(DType::F64))).0, "E0916");
}

#[test]
fn offsets_and_initial_rows_fit() {
    assert_eq!(broken(|l| l.scan.states[H].writes = Offsets::from_slice(&[2])).1, "state `h`: expected at least 2 initial rows, got 1");
    let twice = broken(|l| {
        l.scan.states[H].writes = Offsets::from_slice(&[1, 1]);
        l.scan.body.set_results([Value(2), Value(2), Value(3)]);
    });
    assert_eq!(twice, ("E0917", "state `h` writes offset 1 twice".to_string()));
    let none = broken(|l| {
        l.scan.states[H].init = false;
        l.ins.remove(2);
    });
    assert_eq!(none.0, "E0918");
}

#[test]
fn bodies_are_verified_too() {
    let mut l = looping();
    l.scan.body.node_mut(NodeId(0)).ins[1] = Value(4);
    let mut g = Graph::new();
    let n = g.constant(Array::scalar(2i64));
    let mut ins = vec![n];
    ins.extend(l.ins[1..].iter().map(|ty| g.param(ty.clone(), None)));
    g.apply(Op::Scan(Arc::new(l.scan)), &ins).unwrap();
    let e = verify(&g).unwrap_err();
    assert_eq!((e.code, &*e.notes.concat()), ("E0911", "in the body of loop l"));
}
