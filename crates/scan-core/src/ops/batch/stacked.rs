//! Buffers of loops: the leading axis, over which loops go, stays in front, and rows stand behind it. So what surrounds a loop (rows cut off,
//! written into zeros, turned) looks for many rows as it does for one, and nothing is moved.

use super::shapes;
use crate::base::Result;
use crate::ir::op::*;
use crate::ir::{Op, Value};
use crate::ops::args::one;

/// What an op gives where an input is a buffer, or where it makes one; none where it takes rows in front.
///
/// # Errors
/// What type inference reports.
pub fn stacked(b: &mut Batching, op: &Op, ins: &[Batched]) -> Result<Option<Outs<Batched>>> {
    let buffer = |x: &Batched| matches!(x, Batched::Stacked(_));
    let (any, first) = (ins.iter().any(buffer), ins.first().is_some_and(buffer));
    match op {
        Op::Expand(op) if op.axes == [0] && matches!(ins[0], Batched::Rows(_)) => {
            Ok(Some(one(Batched::Stacked(b.g.expand(ins[0].value(), &[0])))))
        }
        Op::IndexWrite(op) => write(b, op, ins),
        _ if !any => Ok(None),
        Op::Index(op) if first && !ins[1..].iter().any(|i| i.varies()) => index(b, op, ins),
        Op::Flip(op) => made(b, Flip { axis: behind(op.axis) }, ins),
        Op::Cast(_) | Op::StopGradient(_) | Op::Hold(_) | Op::GradClip(_) => made(b, op.clone(), ins),
        Op::Elem(_) => elementwise(b, op, ins),
        Op::DimOf(op) => Ok(Some(one(Batched::Fixed(b.dim(ins[0], op.axis))))),
        Op::BroadcastLike(_) | Op::SumTo(_) | Op::ReshapeLike(_) if ins.iter().all(buffer) && shapes::same_dims(b, ins[0], ins[1]) => {
            Ok(Some(one(ins[0])))
        }
        Op::BroadcastLike(_) | Op::SumTo(_) | Op::ReshapeLike(_) if !ins[0].varies() => op.def().batch(b, ins).map(Some),
        Op::Join(op) => {
            let parts: Vec<Value> = ins.iter().map(|x| b.stacked(*x)).collect::<Result<_>>()?;
            Ok(Some(one(Batched::Stacked(b.apply(Join { axis: behind(op.axis) }, &parts)?))))
        }
        Op::Squeeze(op) if op.axes == [0] => Ok(Some(one(Batched::Rows(b.g.squeeze(ins[0].value(), &[0]))))),
        Op::Reduce(op) => {
            let axes: Vec<usize> = op.axes.iter().map(|a| behind(*a)).collect();
            let out = b.apply(Reduce { axes, ..op.clone() }, &[ins[0].value()])?;
            let gone = !op.keepdims && op.axes.first() == Some(&0);
            Ok(Some(one(if gone { Batched::Rows(out) } else { Batched::Stacked(out) })))
        }
        _ => Ok(None),
    }
}

/// Where an axis of a row is in a buffer.
fn behind(axis: usize) -> usize {
    if axis == 0 { 0 } else { axis + 1 }
}

fn made(b: &mut Batching, op: impl Into<Op>, ins: &[Batched]) -> Result<Option<Outs<Batched>>> {
    Ok(Some(one(Batched::Stacked(b.apply(op, &[ins[0].value()])?))))
}

/// The pattern with an item for the rows behind the first one, and whether that takes the leading axis away.
fn around(pattern: &str) -> (String, bool) {
    match pattern.split_once(',') {
        None => (pattern.to_string(), pattern == "i"),
        Some((first, rest)) => (format!("{first},:,{rest}"), first == "i"),
    }
}

fn index(b: &mut Batching, op: &Index, ins: &[Batched]) -> Result<Option<Outs<Batched>>> {
    let (pattern, gone) = around(&op.pattern);
    let all: Vec<Value> = ins.iter().map(|x| x.value()).collect();
    let out = b.apply(Index { pattern }, &all)?;
    Ok(Some(one(if gone { Batched::Rows(out) } else { Batched::Stacked(out) })))
}

/// A write at an index that is the same in every row: into a buffer, or into what is the same in every row and becomes one.
fn write(b: &mut Batching, op: &IndexWrite, ins: &[Batched]) -> Result<Option<Outs<Batched>>> {
    let (x, y, idxs) = (ins[0], ins[1], &ins[2..]);
    let whole = op.pattern.is_empty() || op.pattern == ":" || op.pattern.starts_with(":,");
    if idxs.iter().any(|i| i.varies()) || matches!(x, Batched::Rows(_)) || !x.varies() && (whole || !y.varies()) {
        return Ok(None);
    }
    let (pattern, gone) = around(&op.pattern);
    let integers = op.pattern.split(',').filter(|word| *word == "i").count();
    let place = b.rank(x) - integers;
    let y = match (gone, b.rank(y) == place) {
        (false, true) if y.varies() => b.stacked(y)?,
        (false, true) => b.g.expand(y.value(), &[1]),
        _ => {
            let rows = b.settled(y);
            b.aligned(rows, if gone { place } else { place - 1 })
        }
    };
    let mut all = vec![b.stacked(x)?, y];
    all.extend(idxs.iter().map(|i| i.value()));
    Ok(Some(one(Batched::Stacked(b.apply(IndexWrite { mode: op.mode, pattern }, &all)?))))
}

/// An elementwise function of buffers with what meets their elements.
fn elementwise(b: &mut Batching, op: &Op, ins: &[Batched]) -> Result<Option<Outs<Batched>>> {
    let rank = ins.iter().map(|x| b.rank(*x)).max().unwrap_or(0);
    if ins.iter().any(|x| matches!(x, Batched::Stacked(_)) && b.rank(*x) < rank) {
        return Ok(None);
    }
    let mut all = vec![];
    for &x in ins {
        all.push(match x {
            Batched::Fixed(v) if b.rank(x) == rank => b.g.expand(v, &[1]),
            Batched::Rows(_) if b.rank(x) < rank => b.aligned(x, rank - 1),
            Batched::Rows(_) => b.stacked(x)?,
            _ => x.value(),
        });
    }
    Ok(Some(one(Batched::Stacked(b.apply(op.clone(), &all)?))))
}
