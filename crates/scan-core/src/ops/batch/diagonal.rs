//! Rows of which each is zero but for one element: what the unit vectors that a Jacobian starts from become until a product mixes them. They
//! are known by the vector of those elements, so that a product with them is one with that vector, and what lies beside it stays zero where
//! a derivative is not finite.

use super::shapes::{checked, same_dims};
use crate::base::Result;
use crate::ir::op::*;
use crate::ir::{Batched, Batching, Diagonal, Op, Value};
use crate::ops::args::one;
use crate::ops::certain::is_zero;
use crate::scalar::ElemOp;

/// What an op gives where rows that it is given are diagonal; none where its own rule has to see them.
///
/// # Errors
/// What type inference reports.
pub fn diagonal(b: &mut Batching, op: &Op, ins: &[Batched]) -> Result<Option<Outs<Batched>>> {
    let known: Vec<Option<Diagonal>> = ins.iter().map(|x| b.diagonal(*x)).collect();
    let Some(first) = known.iter().position(Option::is_some) else { return Ok(None) };
    match op {
        Op::BroadcastLike(_) | Op::SumTo(_) if first == 0 && same_dims(b, ins[0], ins[1]) => Ok(Some(one(ins[0]))),
        Op::Reduce(Reduce { kind: ReduceKind::Sum, axes, keepdims: false }) if axes[..] == [0] => {
            Ok(known[0].map(|d| one(Batched::Rows(d.elements))))
        }
        Op::MatMul(_) => product(b, ins, &known),
        op if op.elementwise() && stays(b, op, ins, &known) => {
            let parts: Vec<Value> = ins.iter().zip(&known).map(|(x, d)| d.map_or(x.value(), |d| d.elements)).collect();
            let elements = b.apply(op.clone(), &parts)?;
            Ok(Some(one(b.of_diagonal(elements)?)))
        }
        _ => Ok(None),
    }
}

/// True where a function of diagonal rows has diagonal rows: it gives zeros where they have zeros, whatever is finite beside them.
fn stays(b: &Batching, op: &Op, ins: &[Batched], known: &[Option<Diagonal>]) -> bool {
    let Some(rows) = ins.iter().zip(known).find_map(|(x, d)| d.map(|_| *x)) else { return false };
    let fits = |k: usize| known[k].is_some() || !ins[k].varies() && (b.rank(ins[k]) == 0 || same_dims(b, rows, ins[k]));
    let zero = |k: usize| known[k].is_some() || is_zero(b.g, ins[k].value());
    let float = |k: usize| b.g.ty(ins[k].value()).dtype.is_float();
    match op {
        Op::Cast(to) => to.dtype.is_float(),
        Op::Elem(ElemOp::Neg) => true,
        Op::Elem(ElemOp::Mul) => fits(0) && fits(1),
        Op::Elem(ElemOp::Div) => known[1].is_none() && fits(1) && float(1),
        Op::Elem(ElemOp::Add | ElemOp::Sub) => known.iter().all(Option::is_some),
        Op::Elem(ElemOp::Where) => known[0].is_none() && fits(0) && (1..3).all(|k| zero(k) && fits(k)),
        _ => false,
    }
}

/// A matrix, of which columns or rows are multiplied with the elements, or a vector.
fn product(b: &mut Batching, ins: &[Batched], known: &[Option<Diagonal>]) -> Result<Option<Outs<Batched>>> {
    let (rows, other, d) = match known {
        [None, Some(d)] => (ins[1], ins[0], d),
        [Some(d), None] => (ins[0], ins[1], d),
        _ => return Ok(None),
    };
    let (Batched::Fixed(a), 1 | 2, true) = (other, b.rank(other), b.g.ty(other.value()).dtype == b.g.ty(d.elements).dtype) else {
        return Ok(None);
    };
    let (left, rank) = (known[0].is_none(), b.rank(other));
    let axis = if left { rank - 1 } else { 0 };
    let a = as_many(b, a, axis, rows)?;
    let a = if left && rank == 2 { b.g.transpose_last(a) } else { a };
    if d.ones {
        return Ok(Some(one(Batched::Rows(a))));
    }
    let elements = b.aligned(Batched::Rows(d.elements), rank - 1);
    Ok(Some(one(Batched::Rows(b.apply(Op::Elem(ElemOp::Mul), &[a, elements])?))))
}

/// An array of which the extent of an axis is the number of rows: where types do not tell, it is looked at when it is computed.
fn as_many(b: &mut Batching, a: Value, axis: usize, rows: Batched) -> Result<Value> {
    if b.g.ty(a).dims[axis] == b.g.ty(rows.value()).dims[0] {
        return Ok(a);
    }
    let n = b.g.dim(rows.value(), 0);
    checked(b.g, a, (axis, n), "a matrix is multiplied with a vector of another extent")
}
