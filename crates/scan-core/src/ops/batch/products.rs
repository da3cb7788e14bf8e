//! Products and systems for all rows. What many rows are multiplied with is multiplied once with all of them.

use crate::base::Result;
use crate::ir::op::*;
use crate::ir::{Op, Value};
use crate::ops::args::one;
use crate::scalar::ElemOp;

/// `matmul`: rows that are vectors become the rows of one matrix.
pub fn matmul(b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
    let (x, y) = (ins[0], ins[1]);
    let product = match (x.varies(), y.varies(), b.rank(x), b.rank(y)) {
        (true, false, _, 1 | 2) | (false, true, 1, 2..) => b.apply(MatMul {}, &[x.value(), y.value()])?,
        (false, true, 1, 1) => b.apply(MatMul {}, &[y.value(), x.value()])?,
        (false, true, 2, 1) => {
            let turned = b.g.transpose_last(x.value());
            b.apply(MatMul {}, &[y.value(), turned])?
        }
        (false, true, 2, 2) if last_is_one(b, y) => {
            let (flat, turned) = (b.g.squeeze(y.value(), &[2]), b.g.transpose_last(x.value()));
            let product = b.apply(MatMul {}, &[flat, turned])?;
            b.g.expand(product, &[2])
        }
        (true, true, 2, 2) if last_is_one(b, x) && b.g.ty(y.value()).dims[1].is_one() && is_float(b, x) && is_float(b, y) => {
            b.apply(Op::Elem(ElemOp::Mul), &[x.value(), y.value()])?
        }
        (false, true, 2, 2) => {
            let (rows, turned) = (b.g.transpose_last(y.value()), b.g.transpose_last(x.value()));
            let product = b.apply(MatMul {}, &[rows, turned])?;
            b.g.transpose_last(product)
        }
        (true, true, 1, 1) if is_float(b, x) && is_float(b, y) => {
            let terms = b.apply(Op::Elem(ElemOp::Mul), &[x.value(), y.value()])?;
            b.g.sum(terms, &[1], false)
        }
        _ => of_matrices(b, x, y)?,
    };
    Ok(one(Batched::Rows(product)))
}

fn is_float(b: &Batching, x: Batched) -> bool {
    b.g.ty(x.value()).dtype.is_float()
}

/// True for matrices that are known to have one column: a product with one of them is that with a vector, or that of all pairs.
fn last_is_one(b: &Batching, x: Batched) -> bool {
    b.g.ty(x.value()).dims.last().is_some_and(crate::types::Dim::is_one)
}

/// A product of each row by itself.
fn of_matrices(b: &mut Batching, x: Batched, y: Batched) -> Result<Value> {
    let (row, column) = (b.rank(x) == 1, b.rank(y) == 1);
    let x = if row { with_axis(b, x, 0) } else { x };
    let y = if column { with_axis(b, y, 1) } else { y };
    let [left, right] = same_rank(b, x, y);
    let product = b.apply(MatMul {}, &[left, right])?;
    let rank = b.g.ty(product).rank();
    let gone: Vec<usize> = [(row, rank - 2), (column, rank - 1)].into_iter().filter(|g| g.0).map(|g| g.1).collect();
    Ok(b.g.squeeze(product, &gone))
}

/// With a new axis of extent 1 at this place of a row.
fn with_axis(b: &mut Batching, x: Batched, axis: usize) -> Batched {
    let at = axis + usize::from(x.varies());
    let v = b.g.expand(x.value(), &[at]);
    if x.varies() { Batched::Rows(v) } else { Batched::Fixed(v) }
}

/// Two arrays whose axes before the last two meet those of the same row.
fn same_rank(b: &mut Batching, x: Batched, y: Batched) -> [Value; 2] {
    let rank = b.rank(x).max(b.rank(y));
    [x, y].map(|v| b.aligned(v, rank))
}

/// `solve`: the right sides of one matrix are columns, so that it is factorised once.
pub fn solve(op: &Solve, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
    let (a, y) = (ins[0], ins[1]);
    let solved = match (a.varies(), b.rank(a), b.rank(y)) {
        (false, 2, 1) => {
            let columns = b.g.transpose(y.value(), &[1, 0]);
            let solved = b.apply(op.clone(), &[a.value(), columns])?;
            b.g.transpose(solved, &[1, 0])
        }
        (false, 2, 2) => {
            let columns = b.moved(y.value(), 0, 1);
            let extents: [Value; 3] = std::array::from_fn(|axis| b.g.dim(columns, axis));
            let side_by_side = b.g.mul(extents[1], extents[2]);
            let flat = b.apply(Reshape {}, &[columns, extents[0], side_by_side])?;
            let solved = b.apply(op.clone(), &[a.value(), flat])?;
            let [n, rows, k] = extents;
            let solved = b.apply(Reshape {}, &[solved, n, rows, k])?;
            b.moved(solved, 1, 0)
        }
        _ => each_system(op.clone().into(), b, a, y)?[0],
    };
    Ok(one(Batched::Rows(solved)))
}

/// `solve_slogdet`: the two ops where all rows have one matrix.
pub fn solve_slogdet(op: &SolveSLogDet, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
    if ins[0].varies() {
        return Ok(each_system(op.clone().into(), b, ins[0], ins[1])?.into_iter().map(Batched::Rows).collect());
    }
    let mut outs = solve(&Solve { kind: MatrixKind::General }, b, ins)?;
    outs.extend(b.g.apply(SLogDet {}, &[ins[0].value()])?.into_iter().map(Batched::Fixed));
    Ok(outs)
}

/// A system of each row by itself; a vector is a matrix of one column meanwhile.
fn each_system(op: Op, b: &mut Batching, a: Batched, y: Batched) -> Result<Outs<Value>> {
    let vector = b.rank(y) == 1;
    let y = if vector { with_axis(b, y, 1) } else { y };
    let ins = same_rank(b, a, y);
    let mut outs = b.g.apply(op, &ins)?;
    if vector {
        let rank = b.g.ty(outs[0]).rank();
        outs[0] = b.g.squeeze(outs[0], &[rank - 1]);
    }
    Ok(outs)
}

/// Ops over rows of a matrix, or a vector: `rows` tells which inputs are these. Vectors become the rows of a matrix.
pub fn vectors(op: impl Into<Op>, b: &mut Batching, ins: &[Batched], rows: &[bool]) -> Result<Outs<Batched>> {
    let fits = ins.iter().zip(rows).all(|(x, row)| if *row { b.rank(*x) == 1 } else { !x.varies() });
    if !fits {
        return b.row_by_row(op, ins);
    }
    let ins: Vec<Value> = ins.iter().zip(rows).map(|(x, row)| if *row { b.rows(*x) } else { Ok(x.value()) }).collect::<Result<_>>()?;
    Ok(one(Batched::Rows(b.apply(op, &ins)?)))
}
