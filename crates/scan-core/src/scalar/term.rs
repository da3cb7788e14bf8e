//! What derivatives are written over: values that know how to apply a row to themselves.

use super::ElemOp;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// A value in a derivative: a node of a graph, or a number. `+ − · /` and the words of
/// [`Words`](super::Words) (a method per row) build more of them.
pub trait Term:
    Copy
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + Add<f64, Output = Self>
    + Sub<f64, Output = Self>
    + Mul<f64, Output = Self>
    + Div<f64, Output = Self>
{
    /// The constant x beside this value.
    fn num(self, x: f64) -> Self;
    /// A row applied to values, at least one.
    fn apply(op: ElemOp, ins: &[Self]) -> Self;
    /// a where this holds, else b.
    fn pick(self, a: Self, b: Self) -> Self {
        Self::apply(ElemOp::Where, &[self, a, b])
    }
    /// a where this holds, else 0: a cotangent that flows only there.
    fn keep(self, a: Self) -> Self {
        self.pick(a, a.num(0.0))
    }
    /// Half of a where this holds, else a: a cotangent that another input shares there.
    fn share(self, a: Self) -> Self {
        self.pick(a * 0.5, a)
    }
}

/// Numbers; truth is 1 and 0.
impl Term for f64 {
    fn num(self, x: f64) -> f64 {
        x
    }
    fn apply(op: ElemOp, ins: &[f64]) -> f64 {
        op.value(ins)
    }
}
