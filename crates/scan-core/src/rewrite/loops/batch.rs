//! Nodes of a step, evaluated for all steps at once: values of all steps are rows of one array.

use crate::ir::op::*;
use crate::ir::{Graph, Node, Value};
use crate::scalar::ElemOp;

/// What stands for a value of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Batched {
    /// Row i is the value of step i.
    Rows(Value),
    /// The same at every step.
    Fixed(Value),
}

/// True where a node can be evaluated for all steps at once, with inputs that are rows (`true`) or the same at every step.
pub fn has_rule(body: &Graph, node: &Node, rows: &[bool]) -> bool {
    if !rows.iter().any(|r| *r) {
        return false;
    }
    let rank = |k: usize| body.ty(node.ins[k]).rank();
    match &node.op {
        Op::Elem(_) | Op::Cast(_) | Op::StopGradient(_) | Op::GradClip(_) => true,
        Op::MatMul(_) => rows[0] && !rows[1] && (1..=2).contains(&rank(0)) && rank(1) == 2 && same_dtype(body, node),
        Op::Reduce(op) => matches!(op.kind, ReduceKind::Sum | ReduceKind::Prod),
        Op::LogSumExp(_) | Op::ExtremeMask(_) | Op::Softmax(_) | Op::LogSoftmax(_) | Op::Transpose(_) | Op::Expand(_) | Op::Flip(_) => true,
        _ => false,
    }
}

fn same_dtype(body: &Graph, node: &Node) -> bool {
    node.ins.iter().all(|v| body.ty(*v).dtype == body.ty(node.ins[0]).dtype)
}

/// True for an elementwise node of one value that differs from step to step, whose axes include those of all others: where no step
/// runs, the others can be made to fit.
pub fn can_be_fitted(body: &Graph, node: &Node, rows: &[bool]) -> bool {
    let mut varying = node.ins.iter().zip(rows).filter(|(_, rows)| **rows).map(|(v, _)| *v);
    let Some(x) = varying.next() else { return false };
    let widest = node.ins.iter().all(|v| body.ty(*v).rank() <= body.ty(x).rank());
    matches!(node.op, Op::Elem(_)) && widest && varying.all(|v| v == x)
}

/// A node for all steps; it has a rule. With `fit`, it must not fail where no step runs, although its extents may not fit then.
pub fn all_steps(g: &mut Graph, body: &Graph, node: &Node, ins: &[Batched], fit: bool) -> Value {
    let rank = ins.iter().zip(&node.ins).map(|(_, v)| body.ty(*v).rank()).max().unwrap_or(0);
    let plain = |b: Batched| match b {
        Batched::Rows(v) | Batched::Fixed(v) => v,
    };
    let shift = |axes: &[usize]| axes.iter().map(|a| a + 1).collect::<Vec<usize>>();
    let x = plain(ins[0]);
    match &node.op {
        Op::MatMul(_) => product(g, x, plain(ins[1])),
        Op::Elem(_) => {
            let mut aligned: Vec<Value> = ins.iter().zip(&node.ins).map(|(b, v)| aligned(g, *b, body.ty(*v).rank(), rank)).collect();
            let rows = ins.iter().position(|b| matches!(b, Batched::Rows(_))).filter(|_| fit).map(|at| aligned[at]);
            for (b, v) in ins.iter().zip(&mut aligned) {
                if let (Some(rows), Batched::Fixed(_)) = (rows, b) {
                    *v = fitted(g, *v, rows);
                }
            }
            g.emit(node.op.clone(), &aligned)
        }
        Op::Reduce(op) => g.emit(Reduce { kind: op.kind, axes: shift(&op.axes), keepdims: op.keepdims }, &[x]),
        Op::ExtremeMask(op) => g.emit(ExtremeMask { kind: op.kind, axes: shift(&op.axes) }, &[x]),
        Op::LogSumExp(op) => g.emit(LogSumExp { axes: shift(&op.axes), keepdims: op.keepdims }, &[x]),
        Op::Softmax(op) => g.emit(Softmax { axis: op.axis + 1 }, &[x]),
        Op::LogSoftmax(op) => g.emit(LogSoftmax { axis: op.axis + 1 }, &[x]),
        Op::Transpose(op) => g.transpose(x, &[&[0], &shift(&op.perm)[..]].concat()),
        Op::Expand(op) => g.expand(x, &shift(&op.axes)),
        Op::Flip(op) => g.emit(Flip { axis: op.axis + 1 }, &[x]),
        op => g.emit(op.clone(), &[x]),
    }
}

/// Rows with axes of extent 1 behind the first one, so that elements of a step meet those of the same step.
fn aligned(g: &mut Graph, x: Batched, own: usize, rank: usize) -> Value {
    match x {
        Batched::Rows(v) if own < rank => g.expand(v, &(1..=rank - own).collect::<Vec<_>>()),
        Batched::Rows(v) | Batched::Fixed(v) => v,
    }
}

/// A value that rows meet elementwise: where there is no row, cut to extents of 1 where it might not fit.
fn fitted(g: &mut Graph, x: Value, rows: Value) -> Value {
    let (rank, own) = (g.ty(rows).rank(), g.ty(x).rank());
    let (n, zero, one, all) = (g.dim(rows, 0), g.int(0), g.int(1), g.int(i64::MAX));
    let some = g.emit(Op::Elem(ElemOp::Gt), &[n, zero]);
    let (mut words, mut ins) = (vec![], vec![x]);
    for axis in 0..own {
        let (here, there) = (g.ty(x).dims[axis].clone(), g.ty(rows).dims[rank - own + axis].clone());
        if here.is_one() || here == there {
            words.push(":");
            continue;
        }
        let extent = g.dim(rows, rank - own + axis);
        let spread = g.eq(extent, one);
        let whole = g.emit(Op::Elem(ElemOp::Or), &[some, spread]);
        ins.push(g.select(whole, all, one));
        words.push(":e");
    }
    if ins.len() == 1 { x } else { g.emit(Index { pattern: words.join(",") }, &ins) }
}

/// The products of all rows with a matrix, as one. Where there is no row, nothing tells how long a row would be: it fits then.
pub fn product(g: &mut Graph, x: Value, w: Value) -> Value {
    let rank = g.ty(x).rank();
    let (n, zero) = (g.dim(x, 0), g.int(0));
    let (k, fitting, p) = (g.dim(x, rank - 1), g.dim(w, 0), g.dim(w, 1));
    let some = g.emit(Op::Elem(ElemOp::Gt), &[n, zero]);
    let inner = g.select(some, k, fitting);
    if rank == 2 {
        let flat = g.emit(Reshape {}, &[x, n, inner]);
        return g.emit(MatMul {}, &[flat, w]);
    }
    let b = g.dim(x, 1);
    let rows = g.mul(n, b);
    let flat = g.emit(Reshape {}, &[x, rows, inner]);
    let product = g.emit(MatMul {}, &[flat, w]);
    g.emit(Reshape {}, &[product, n, b, p])
}
