//! Products of vectors with a matrix that is transposed for them, without the transpose. Behind the passes over loops, so that a transpose
//! which is the same at every step stands before its loop, and the product with it as it is.

use super::Rule;
use crate::ir::Value;
use crate::ir::op::{Expand, MatMul, Op, Squeeze, Transpose};
use crate::rewrite::local::Local;

/// The rules.
pub static RULES: &[Rule] = &[
    Rule { doc: "x @ aᵀ → a @ x, x being a vector or one row", on: &["matmul"], apply: |l, op, ins| row(l, op, ins[0], ins[1]) },
    Rule { doc: "aᵀ @ x → x @ a, x being a vector or one column", on: &["matmul"], apply: |l, op, ins| column(l, op, ins[0], ins[1]) },
];

/// The matrix of which a value is the transpose, if neither is a vector in disguise.
fn matrix(l: &Local, v: Value) -> Option<Value> {
    let (Op::Transpose(Transpose { perm }), &[a]) = l.node(v)? else { return None };
    (perm[..] == [1, 0] && !l.ty(a).dims.iter().any(|d| d.is_one())).then_some(a)
}

/// A vector, or the vector that is the only one of a matrix along an axis; and what its product is expanded by.
fn vector(l: &mut Local, x: Value, axis: usize) -> Option<(Value, Option<Expand>)> {
    match l.ty(x).rank() {
        1 => Some((x, None)),
        2 if l.ty(x).dims[axis].is_one() => Some((l.make(Squeeze { axes: vec![axis] }, &[x])?, Some(Expand { axes: vec![axis] }))),
        _ => None,
    }
}

/// True where the factors fit, or where a call of such that do not is done again by the graph as it was written: they do not fit turned, either.
fn fits(l: &Local, op: &Op, factors: [Value; 2]) -> bool {
    l.speculate || !op.def().fallible(l.g, &factors)
}

fn row(l: &mut Local, op: &Op, x: Value, y: Value) -> Option<Value> {
    let a = matrix(l, y).filter(|_| fits(l, op, [x, y]))?;
    let (x, expand) = vector(l, x, 0)?;
    let product = l.make(MatMul {}, &[a, x])?;
    expand.map_or(Some(product), |expand| l.make(expand, &[product]))
}

fn column(l: &mut Local, op: &Op, x: Value, y: Value) -> Option<Value> {
    let a = matrix(l, x).filter(|_| fits(l, op, [x, y]))?;
    let (y, expand) = vector(l, y, 1)?;
    let product = l.make(MatMul {}, &[y, a])?;
    expand.map_or(Some(product), |expand| l.make(expand, &[product]))
}
