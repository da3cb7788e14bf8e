//! Ops in terms of others, with the same bits: for devices, which have no kernels for them.

mod reductions;

use crate::ir::op::*;
use crate::ir::{Graph, Value};
use crate::scalar::ElemOp;
use crate::types::shape::count;
use crate::types::{DType, Extents};

/// What the exponentials of a lane have in common.
struct Powers {
    x: Value,
    /// The largest number.
    top: Value,
    differences: Value,
    powers: Value,
    sum: Value,
}

impl Op {
    /// Adds to a graph what computes the result of the op for an input of known extents by sums and extremes of few elements, and elementwise ops, of
    /// f64 if that is quick; `None` where the op is not one of those that are made of them.
    pub fn spelled(&self, g: &mut Graph, x: Value, quick_in_f64: bool) -> Option<Value> {
        Some(match self {
            Op::Reduce(op) => return reductions::spelled(g, x, op),
            _ if !quick_in_f64 && g.ty(x).dtype.to_float() == DType::F64 => return None,
            Op::Softmax(Softmax { axis }) => {
                let p = powers(g, x, *axis)?;
                g.div(p.powers, p.sum)
            }
            Op::LogSoftmax(LogSoftmax { axis }) => {
                let p = powers(g, x, *axis)?;
                let log = g.log(p.sum);
                g.sub(p.differences, log)
            }
            Op::LogSumExp(LogSumExp { axes, keepdims }) if axes.len() == 1 => {
                let p = powers(g, x, axes[0])?;
                let (log, finite) = (g.log(p.sum), g.emit(Op::Elem(ElemOp::IsFinite), &[p.top]));
                let (sum, other) = (g.add(p.top, log), largest(g, p.x, axes[0]));
                let found = g.select(finite, sum, other);
                if *keepdims { found } else { g.squeeze(found, axes) }
            }
            _ => return None,
        })
    }
}

fn extents(g: &Graph, x: Value) -> Option<Extents> {
    g.ty(x).dims.iter().map(|dim| dim.value()).collect()
}

/// The largest element along an axis; NaN where there is one.
fn largest(g: &mut Graph, x: Value, axis: usize) -> Value {
    g.emit(Reduce { kind: ReduceKind::Max, axes: vec![axis], keepdims: true }, &[x])
}

/// Exponentials along an axis; `None` where it has no elements.
fn powers(g: &mut Graph, x: Value, axis: usize) -> Option<Powers> {
    extents(g, x).filter(|extents| count(extents) > 0)?;
    let dtype = g.ty(x).dtype.to_float();
    let x = g.cast(x, dtype);
    let (low, is_number) = (g.number(dtype, f64::NEG_INFINITY), g.eq(x, x));
    let numbers = g.select(is_number, x, low);
    let top = largest(g, numbers, axis);
    let differences = g.sub(x, top);
    let powers = g.exp(differences);
    let sum = g.sum(powers, &[axis], true);
    Some(Powers { x, top, differences, powers, sum })
}
