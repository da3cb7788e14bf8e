//! Shapes for all rows. An input that gives its shape only gives the same one to every row, also where its elements differ.

use crate::base::Result;
use crate::ir::op::*;
use crate::ir::{Graph, Op, Value};
use crate::ops::args::one;
use crate::ops::create::diagonal_start;
use crate::scalar::ElemOp;
use crate::types::Array;

/// `broadcast_to`.
pub fn broadcast_to(op: &BroadcastTo, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
    if ins[1..].iter().any(|n| n.varies()) {
        return b.row_by_row(op.clone(), ins);
    }
    let extents: Vec<Value> = ins[1..].iter().map(|n| n.value()).collect();
    Ok(one(spread(b, ins[0], &extents)?))
}

/// x broadcast to these extents of a row.
fn spread(b: &mut Batching, x: Batched, extents: &[Value]) -> Result<Batched> {
    let aligned = b.aligned(x, extents.len());
    let mut ins = vec![aligned];
    if x.varies() {
        ins.push(b.extent());
    }
    ins.extend(extents);
    let out = b.apply(BroadcastTo {}, &ins)?;
    Ok(if x.varies() { Batched::Rows(out) } else { Batched::Fixed(out) })
}

/// `broadcast_like`.
pub fn broadcast_like(b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
    let (x, like) = (ins[0], ins[1]);
    if same_dims(b, x, like) {
        return Ok(one(x));
    }
    if x.varies() && like.varies() {
        return b.broadcasting(BroadcastLike {}, ins);
    }
    let extents = b.dims(like);
    Ok(one(spread(b, x, &extents)?))
}

/// True where two values have certainly the same extents in each row.
pub fn same_dims(b: &Batching, x: Batched, y: Batched) -> bool {
    b.rank(x) == b.rank(y) && (0..b.rank(x)).all(|axis| b.same_dim(x, y, axis))
}

/// An array whose extent along an axis is a number, an i64 scalar, or an error of the call with this message.
///
/// # Errors
/// Internal ones.
pub fn checked(g: &mut Graph, x: Value, (axis, n): (usize, Value), message: &str) -> Result<Value> {
    let own = g.dim(x, axis);
    let same = g.eq(own, n);
    let sure = g.apply(Assert { message: message.into() }, &[x, same])?[0];
    let dims: Vec<Value> = (0..g.ty(x).rank()).map(|k| if k == axis { n } else { g.dim(x, k) }).collect();
    Ok(g.apply(Reshape {}, &[&[sure], &dims[..]].concat())?[0])
}

/// `sum_to`.
pub fn sum_to(b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
    let (x, like) = (ins[0], ins[1]);
    if same_dims(b, x, like) {
        return Ok(one(x));
    }
    let shape = match (x.varies(), like.varies()) {
        (true, true) => like,
        (false, _) => {
            let shape = zeros(b, like, false)?;
            return Ok(one(Batched::Fixed(b.apply(SumTo {}, &[x.value(), shape])?)));
        }
        (true, false) => Batched::Rows(zeros(b, like, true)?),
    };
    let (rank, new) = (b.rank(x), b.rank(x) - b.rank(shape));
    let aligned = b.aligned(shape, rank);
    let sum = b.apply(SumTo {}, &[x.value(), aligned])?;
    Ok(one(Batched::Rows(b.g.squeeze(sum, &(1..=new).collect::<Vec<_>>()))))
}

/// Zeros of the shape of a row, for one row or for all.
fn zeros(b: &mut Batching, like: Batched, rows: bool) -> Result<Value> {
    let mut ins = vec![b.g.number(b.g.ty(like.value()).dtype, 0.0)];
    if rows {
        ins.push(b.extent());
    }
    ins.extend(b.dims(like));
    b.apply(BroadcastTo {}, &ins)
}

/// `reshape`.
pub fn reshape(op: &Reshape, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
    if ins[1..].iter().any(|n| n.varies()) {
        return b.row_by_row(op.clone(), ins);
    }
    let extents: Vec<Value> = ins[1..].iter().map(|n| n.value()).collect();
    let extents = counted(b, ins[0], extents)?;
    Ok(one(reshaped(b, ins[0], &extents)?))
}

/// `reshape_like`.
pub fn reshape_like(b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
    let (x, like) = (ins[0], ins[1]);
    if same_dims(b, x, like) {
        return Ok(one(x));
    }
    if x.varies() && like.varies() {
        return b.as_is(ReshapeLike {}, ins);
    }
    let extents = b.dims(like);
    Ok(one(reshaped(b, x, &extents)?))
}

fn reshaped(b: &mut Batching, x: Batched, extents: &[Value]) -> Result<Batched> {
    let mut ins = vec![x.value()];
    if x.varies() {
        ins.push(b.extent());
    }
    ins.extend(extents);
    let out = b.apply(Reshape {}, &ins)?;
    Ok(if x.varies() { Batched::Rows(out) } else { Batched::Fixed(out) })
}

/// The extents of a reshape, without a −1 where there may be no rows: as many elements as none tell nothing.
fn counted(b: &mut Batching, x: Batched, mut extents: Vec<Value>) -> Result<Vec<Value>> {
    let minus = b.g.int(-1);
    let open = extents.iter().position(|&n| b.g.const_value(n).and_then(|a| a.item_i64()) == Some(-1));
    let extent = b.extent();
    let some = b.g.const_value(extent).and_then(|a| a.item_i64()).is_some_and(|n| n > 0);
    let (Some(open), false) = (open, some) else { return Ok(extents) };
    let (zero, unit) = (b.g.int(0), b.g.int(1));
    let wide = extents.iter().enumerate().filter(|(at, _)| *at != open).map(|(_, &n)| n).collect::<Vec<_>>();
    let mut others = unit;
    for n in wide {
        let n = b.g.cast(n, crate::types::DType::I64);
        others = b.g.mul(others, n);
    }
    let all = b.dims(x).into_iter().fold(unit, |all, n| b.g.mul(all, n));
    let divisor = b.g.maximum(others, unit);
    let quotient = b.apply(Op::Elem(ElemOp::FloorDiv), &[all, divisor])?;
    let none = b.g.eq(others, zero);
    extents[open] = b.g.select(none, minus, quotient);
    Ok(extents)
}

/// `grad_to`: a value that is the same in every row is repeated, since the cotangent of each row goes elsewhere.
pub fn grad_to(op: &GradTo, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
    let mut ins = ins.to_vec();
    ins[0] = Batched::Rows(b.rows(ins[0])?);
    let (own, rank) = (b.rank(ins[0]), ins.iter().map(|x| b.rank(*x)).max().unwrap_or(0));
    let wide = b.broadcasting(op.clone(), &ins)?[0].value();
    Ok(one(Batched::Rows(b.g.squeeze(wide, &(1..=rank - own).collect::<Vec<_>>()))))
}

/// `assert`: conditions of all rows are conditions.
pub fn assert(op: &Assert, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
    let values: Vec<Value> = ins.iter().map(|x| x.value()).collect();
    let out = b.apply(op.clone(), &values)?;
    Ok(one(if ins[0].varies() { Batched::Rows(out) } else { Batched::Fixed(out) }))
}

/// `ifelse` of branches that are there: a condition of its own in each row selects.
pub fn if_else(b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
    if !ins[0].varies() {
        let (x, y) = (b.rows(ins[1])?, b.rows(ins[2])?);
        return Ok(one(Batched::Rows(b.apply(IfElse {}, &[ins[0].value(), x, y])?)));
    }
    if same_dims(b, ins[1], ins[2]) {
        return b.broadcasting(Op::Elem(ElemOp::Where), ins);
    }
    if b.rank(ins[1]) != b.rank(ins[2]) {
        return b.row_by_row(IfElse {}, ins);
    }
    chosen(b, ins).map(one)
}

/// Rows chosen from two arrays of the same rank, all at once where they have the same extents, which is known when it runs; else one after
/// the other.
///
/// # Errors
/// What type inference reports.
pub fn chosen(b: &mut Batching, ins: &[Batched]) -> Result<Batched> {
    let dims = |x: Batched| b.row_type(x).dims;
    if dims(ins[1]).iter().zip(&dims(ins[2])).any(|(x, y)| x.conflicts(y)) {
        return Ok(b.row_by_row(IfElse {}, ins)?[0]);
    }
    let mut alike = b.g.constant(Array::scalar(true));
    for axis in 0..b.rank(ins[1]) {
        let (x, y) = (b.dim(ins[1], axis), b.dim(ins[2], axis));
        let same = b.g.eq(x, y);
        alike = b.g.emit(Op::Elem(ElemOp::And), &[alike, same]);
    }
    let before = (b.looped, b.apart);
    let apart = b.row_by_row(IfElse {}, ins)?[0].value();
    (b.looped, b.apart) = before;
    let together = b.broadcasting(Op::Elem(ElemOp::Where), ins)?[0].value();
    Ok(Batched::Rows(b.apply(IfElse {}, &[alike, together, apart])?))
}

/// `diag`: the diagonal read of matrices, or written into zeros.
pub fn diag(op: &Diag, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
    let x = ins[0];
    let (row, column) = diagonal_start(op.k);
    let (row, column) = (b.g.int(row as i64), b.g.int(column as i64));
    let n = b.dim(x, 0);
    let length = if b.rank(x) == 1 {
        n
    } else {
        let m = b.dim(x, 1);
        let (rows, columns) = (b.g.sub(n, row), b.g.sub(m, column));
        b.g.minimum(rows, columns)
    };
    let (zero, step) = (b.g.int(0), b.g.int(1));
    let along = b.apply(Arange {}, &[zero, length, step])?;
    let places = [b.g.add(along, row), b.g.add(along, column)];
    if b.rank(x) == 2 {
        return Ok(one(Batched::Rows(b.apply(Gather { axes: vec![1, 2] }, &[x.value(), places[0], places[1]])?)));
    }
    let away = b.g.int(op.k.unsigned_abs() as i64);
    let (extent, side) = (b.extent(), b.g.add(n, away));
    let zero = b.g.number(b.g.ty(x.value()).dtype, 0.0);
    let zeros = b.apply(BroadcastTo {}, &[zero, extent, side, side])?;
    let write = GatherWrite { mode: Write::Set, axes: vec![1, 2] };
    Ok(one(Batched::Rows(b.apply(write, &[zeros, x.value(), places[0], places[1]])?)))
}
