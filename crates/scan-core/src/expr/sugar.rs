//! Inputs, constants and shared variables in a word, and the caller's line.

use super::Var;
use crate::base::Span;
use crate::ir::Op;
use crate::types::{Array, DType, Dim, Shared, Type};
use std::panic::Location;

/// The caller's place as a span.
#[track_caller]
pub fn here() -> Span {
    let at = Location::caller();
    Span::new(at.file(), at.line(), "")
}

/// The first output of an op; of inputs that failed the first one.
pub(super) fn deferred(op: impl Into<Op>, ins: &[Var], span: Span) -> Var {
    let failed = ins.iter().find(|v| v.failure().is_some());
    failed.cloned().unwrap_or_else(|| Var::deferred(Var::apply1(op, ins, span), span))
}

/// A float64 scalar that a caller gives.
///
/// ```
/// use scan_core::prelude::*;
///
/// assert_eq!(scalar("x").ty().to_string(), "float64");
/// ```
#[track_caller]
pub fn scalar(name: &str) -> Var {
    Var::float(name, 0)
}
/// A float64 vector that a caller gives.
///
/// ```
/// use scan_core::prelude::*;
///
/// assert_eq!(vector("x").ty().rank(), 1);
/// ```
#[track_caller]
pub fn vector(name: &str) -> Var {
    Var::float(name, 1)
}
/// A float64 matrix that a caller gives.
///
/// ```
/// use scan_core::prelude::*;
///
/// assert_eq!(matrix("x").ty().rank(), 2);
/// ```
#[track_caller]
pub fn matrix(name: &str) -> Var {
    Var::float(name, 2)
}
/// An int64 scalar that a caller gives.
///
/// ```
/// use scan_core::prelude::*;
///
/// assert_eq!(integer("n").ty(), &Type::scalar(DType::I64));
/// ```
#[track_caller]
pub fn integer(name: &str) -> Var {
    Var::input(Type::scalar(DType::I64), Some(name), here())
}
/// A constant array. A number needs no constant: `x + 1.0`.
///
/// ```
/// use scan_core::prelude::*;
///
/// let x = constant(Array::vector(&[1.0, 2.0]));
/// assert_eq!((x * 10.0).eval()?, Array::vector(&[10.0, 20.0]));
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
#[track_caller]
pub fn constant(value: Array) -> Var {
    Var::constant(value, here())
}

impl Var {
    /// A float64 input of this rank.
    ///
    /// ```
    /// # use scan_core::prelude::*;
    /// assert_eq!(Var::float("x", 3).ty().rank(), 3);
    /// ```
    #[track_caller]
    pub fn float(name: &str, rank: usize) -> Var {
        Var::input(Type::unknown(DType::F64, rank), Some(name), here())
    }
    /// A float64 constant.
    ///
    /// ```
    /// # use scan_core::prelude::*;
    /// assert_eq!(Var::number(0.5).const_value(), Some(&Array::scalar(0.5)));
    /// ```
    #[track_caller]
    pub fn number(x: f64) -> Var {
        Var::constant(Array::scalar(x), here())
    }
    /// An int64 constant.
    ///
    /// ```
    /// # use scan_core::prelude::*;
    /// assert_eq!(Var::int(3).const_value(), Some(&Array::scalar(3i64)));
    /// ```
    #[track_caller]
    pub fn int(n: i64) -> Var {
        Var::constant(Array::scalar(n), here())
    }
    /// A shared variable with this value; its extents may change.
    ///
    /// ```
    /// # use scan_core::prelude::*;
    /// let w = Var::new_shared(Array::vector(&[0.5, 1.5]), "w");
    /// assert_eq!(w.sum().eval()?, Array::scalar(2.0));
    /// # Ok::<(), Box<Diagnostic>>(())
    /// ```
    #[track_caller]
    pub fn new_shared(value: Array, name: &str) -> Var {
        let ty = Type::new(value.dtype(), value.shape().iter().map(|_| Dim::fresh()));
        Var::shared(Shared::new(value, ty), Some(name), here())
    }
}
