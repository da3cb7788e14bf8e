//! Expressions by method, for native users: `x.mul(&y)?`. Each node remembers the caller's line.

use super::Var;
use crate::base::{Result, Span};
use crate::ir::Op;
use crate::ir::op::*;
use crate::scalar::ElemOp;
use crate::types::{Array, DType, Dim, Shared, Type};
use std::panic::Location;

/// The caller's place as a span.
#[track_caller]
pub fn here() -> Span {
    let at = Location::caller();
    Span::new(at.file(), at.line(), "")
}

macro_rules! elementwise {
    ($($(#[$doc:meta])* $name:ident($self:ident $(, $arg:ident)*) = $op:ident;)+) => {
        impl Var {
            $($(#[$doc])*
            ///
            /// # Errors
            /// Where the types do not fit, at the caller's line.
            #[track_caller]
            pub fn $name(&$self $(, $arg: &Var)*) -> Result<Var> {
                Var::apply1(Op::Elem(ElemOp::$op), &[$self.clone() $(, $arg.clone())*], here())
            })+
        }
    };
}

elementwise! {
    /// Sine.
    sin(self) = Sin;
    /// `self + other`, broadcast.
    add(self, other) = Add;
    /// `self − other`, broadcast.
    sub(self, other) = Sub;
    /// `self · other`, broadcast.
    mul(self, other) = Mul;
    /// `self / other`, broadcast; a float.
    div(self, other) = Div;
    /// `−self`.
    neg(self) = Neg;
    /// eˣ.
    exp(self) = Exp;
    /// Natural logarithm.
    log(self) = Log;
    /// Hyperbolic tangent.
    tanh(self) = Tanh;
    /// `1 / (1 + e⁻ˣ)`.
    sigmoid(self) = Sigmoid;
    /// x².
    square(self) = Square;
    /// √x.
    sqrt(self) = Sqrt;
    /// `self < other`, broadcast; bool.
    lt(self, other) = Lt;
    /// `self > other`, broadcast; bool.
    gt(self, other) = Gt;
}

impl Var {
    /// A float64 input of this rank.
    #[track_caller]
    pub fn float(name: &str, rank: usize) -> Var {
        Var::input(Type::unknown(DType::F64, rank), Some(name), here())
    }
    /// A float64 constant.
    #[track_caller]
    pub fn number(x: f64) -> Var {
        Var::constant(Array::scalar(x), here())
    }
    /// An int64 constant.
    #[track_caller]
    pub fn int(n: i64) -> Var {
        Var::constant(Array::scalar(n), here())
    }
    /// A shared variable with this value; its extents may change.
    #[track_caller]
    pub fn new_shared(value: Array, name: &str) -> Var {
        let ty = Type::new(value.dtype(), value.shape().iter().map(|_| Dim::fresh()));
        Var::shared(Shared::new(value, ty), Some(name), here())
    }
    /// The sum of all elements.
    ///
    /// # Errors
    /// Never for well-formed expressions.
    #[track_caller]
    pub fn sum(&self) -> Result<Var> {
        let axes = (0..self.ty().rank()).collect();
        Var::apply1(Reduce { kind: ReduceKind::Sum, axes, keepdims: false }, std::slice::from_ref(self), here())
    }
    /// `numpy.matmul(self, other)`.
    ///
    /// # Errors
    /// Where the types do not fit, at the caller's line.
    #[track_caller]
    pub fn matmul(&self, other: &Var) -> Result<Var> {
        Var::apply1(MatMul {}, &[self.clone(), other.clone()], here())
    }
    /// Row `i` along the first axis; negative counts from the end.
    ///
    /// # Errors
    /// For a scalar.
    #[track_caller]
    pub fn row(&self, i: i64) -> Result<Var> {
        let at = Var::int(i);
        Var::apply1(Index { pattern: "i".into() }, &[self.clone(), at], here())
    }
    /// Another dtype.
    ///
    /// # Errors
    /// Never for well-formed expressions.
    #[track_caller]
    pub fn cast(&self, dtype: DType) -> Result<Var> {
        Var::apply1(Cast { dtype }, std::slice::from_ref(self), here())
    }
}
