//! Methods that change shapes: reductions, products, indexing. Errors are kept, as of operators ([`Var::ok`]).

use super::Var;
use super::operators::Operand;
use super::sugar::{deferred, here};
use crate::base::{Diagnostic, Kind, Result, Span};
use crate::ir::Op;
use crate::ir::op::*;
use crate::scalar::ElemOp;
use crate::types::{Array, DType};
use std::ops::{Bound, RangeBounds};

/// An axis counted from the front; negative ones count from the end.
fn axis_of(x: &Var, axis: i64, rank: usize, span: Span) -> Result<usize> {
    Var::all_ok([x])?;
    let from_front = if axis < 0 { axis + rank as i64 } else { axis };
    match usize::try_from(from_front) {
        Ok(at) if at < rank => Ok(at),
        _ => Err(Diagnostic::new(Kind::Index, "E0221", format!("axis {axis} does not fit {}", x.ty())).at(span)),
    }
}

/// What an op with an axis gives.
fn along<O: Into<Op>>(x: &Var, axis: i64, span: Span, op: impl FnOnce(usize) -> O) -> Var {
    match axis_of(x, axis, x.ty().rank(), span) {
        Ok(axis) => deferred(op(axis), std::slice::from_ref(x), span),
        Err(error) => Var::failed(error, span),
    }
}

/// What divides a sum: the number of elements along these axes, as a float of the sum's dtype.
fn mean_of(x: &Var, sum: Var, axes: &[usize], span: Span) -> Var {
    let mut n = Var::constant(Array::scalar(1i64), span);
    for &axis in axes {
        n = deferred(Op::Elem(ElemOp::Mul), &[n, deferred(DimOf { axis }, std::slice::from_ref(x), span)], span);
    }
    let n = deferred(Cast { dtype: sum.ty().dtype.to_float() }, &[n], span);
    deferred(Op::Elem(ElemOp::Div), &[sum, n], span)
}

macro_rules! reductions {
    ($($(#[$doc:meta])* $name:ident $along:ident = $kind:ident, $whole:literal, $rows:literal;)+) => {
        impl Var { $(
            $(#[$doc])*
            /// Of all elements; a scalar.
            ///
            /// ```
            /// # use scan_core::prelude::*;
            /// let x = constant(Array::new(&[2, 2], vec![1.0, 2.0, 3.0, 4.0]));
            #[doc = concat!("assert_eq!(x.", stringify!($name), "().eval()?.to_f64_vec(), ", $whole, ");")]
            /// # Ok::<(), Box<Diagnostic>>(())
            /// ```
            #[track_caller]
            pub fn $name(&self) -> Var {
                let axes = (0..self.ty().rank()).collect();
                deferred(Reduce { kind: ReduceKind::$kind, axes, keepdims: false }, std::slice::from_ref(self), here())
            }
            $(#[$doc])*
            /// Along an axis, which goes away; negative counts from the end. `E0221` for one that there is not.
            ///
            /// ```
            /// # use scan_core::prelude::*;
            /// let x = constant(Array::new(&[2, 2], vec![1.0, 2.0, 3.0, 4.0]));
            #[doc = concat!("assert_eq!(x.", stringify!($along), "(0).eval()?.to_f64_vec(), ", $rows, ");")]
            /// # Ok::<(), Box<Diagnostic>>(())
            /// ```
            #[track_caller]
            pub fn $along(&self, axis: i64) -> Var {
                along(self, axis, here(), |axis| Reduce { kind: ReduceKind::$kind, axes: vec![axis], keepdims: false })
            }
        )+ }
    };
}

reductions! {
    /// The sum.
    sum sum_axis = Sum, "[10.0]", "[4.0, 6.0]";
    /// The product.
    prod prod_axis = Prod, "[24.0]", "[3.0, 8.0]";
    /// The largest element (`E0203` where there is none).
    max max_axis = Max, "[4.0]", "[3.0, 4.0]";
    /// The smallest element (`E0203` where there is none).
    min min_axis = Min, "[1.0]", "[1.0, 2.0]";
    /// Whether any element is true.
    any any_axis = Any, "[1.0]", "[1.0, 1.0]";
    /// Whether all elements are true.
    all all_axis = All, "[1.0]", "[1.0, 1.0]";
}

macro_rules! along_axis {
    ($($(#[$doc:meta])* $name:ident = |$axis:ident| $op:expr, $example:literal;)+) => {
        impl Var { $(
            $(#[$doc])*
            /// Negative axes count from the end; `E0221` for one that there is not.
            ///
            /// ```
            /// # use scan_core::prelude::*;
            /// let x = constant(Array::vector(&[1.0, 2.0]));
            #[doc = concat!("assert_eq!(x.", $example, ");")]
            /// # Ok::<(), Box<Diagnostic>>(())
            /// ```
            #[track_caller]
            pub fn $name(&self, axis: i64) -> Var {
                along(self, axis, here(), |$axis| $op)
            }
        )+ }
    };
}

along_axis! {
    /// Sums of the elements up to each one along an axis.
    cumsum = |axis| CumSum { axis, reverse: false }, "cumsum(0).eval()?.to_f64_vec(), [1.0, 3.0]";
    /// `exp(x) / Σ exp(x)` along an axis.
    softmax = |axis| Softmax { axis }, "softmax(0).sum().eval()?.to_f64_vec(), [1.0]";
    /// `x − log Σ exp(x)` along an axis.
    log_softmax = |axis| LogSoftmax { axis }, "log_softmax(0).exp().sum().eval()?.to_f64_vec(), [1.0]";
    /// `log Σ exp(x)` along an axis, which goes away.
    logsumexp = |axis| LogSumExp { axes: vec![axis], keepdims: false }, "logsumexp(0).eval()?.shape(), [0usize; 0]";
    /// Position of the first largest element along an axis, which goes away; int64.
    argmax = |axis| ArgReduce { kind: Extreme::Max, axis }, "argmax(0).eval()?.to_i64_vec(), [1]";
    /// Position of the first smallest element along an axis, which goes away; int64.
    argmin = |axis| ArgReduce { kind: Extreme::Min, axis }, "argmin(0).eval()?.to_i64_vec(), [0]";
    /// The elements in the opposite order along an axis.
    flip = |axis| Flip { axis }, "flip(0).eval()?.to_f64_vec(), [2.0, 1.0]";
    /// One extent, as an int64 scalar.
    dim = |axis| DimOf { axis }, "dim(0).eval()?.to_i64_vec(), [2]";
    /// Without an axis, whose extent must be 1 (`E0205`).
    squeeze = |axis| Squeeze { axes: vec![axis] }, "expand(0).squeeze(0).eval()?.shape(), [2]";
}

impl Var {
    /// The mean of all elements: a float scalar.
    ///
    /// ```
    /// # use scan_core::prelude::*;
    /// assert_eq!(constant(Array::vector(&[1.0, 2.0])).mean().eval()?, Array::scalar(1.5));
    /// # Ok::<(), Box<Diagnostic>>(())
    /// ```
    #[track_caller]
    pub fn mean(&self) -> Var {
        let axes: Vec<usize> = (0..self.ty().rank()).collect();
        mean_of(self, self.sum(), &axes, here())
    }
    /// The mean along an axis, which goes away: a float. Negative axes count from the end; `E0221` for one that there is not.
    ///
    /// ```
    /// # use scan_core::prelude::*;
    /// let x = constant(Array::new(&[2, 2], vec![1.0, 2.0, 3.0, 4.0]));
    /// assert_eq!(x.mean_axis(-1).eval()?, Array::vector(&[1.5, 3.5]));
    /// # Ok::<(), Box<Diagnostic>>(())
    /// ```
    #[track_caller]
    pub fn mean_axis(&self, axis: i64) -> Var {
        match axis_of(self, axis, self.ty().rank(), here()) {
            Ok(at) => mean_of(self, self.sum_axis(axis), &[at], here()),
            Err(error) => Var::failed(error, here()),
        }
    }
    /// `numpy.matmul(self, other)`: ranks 1 and up, leading axes broadcast.
    ///
    /// ```
    /// # use scan_core::prelude::*;
    /// let (a, x) = (constant(Array::new(&[2, 2], vec![1.0, 2.0, 3.0, 4.0])), constant(Array::vector(&[1.0, 1.0])));
    /// assert_eq!(a.matmul(&x).eval()?, Array::vector(&[3.0, 7.0]));
    /// # Ok::<(), Box<Diagnostic>>(())
    /// ```
    #[track_caller]
    pub fn matmul(&self, other: &Var) -> Var {
        deferred(MatMul {}, &[self.clone(), other.clone()], here())
    }
    /// `numpy.dot(self, other)` of ranks up to 2: [`Var::matmul`], or a multiple where one is a scalar.
    ///
    /// ```
    /// # use scan_core::prelude::*;
    /// let x = constant(Array::vector(&[1.0, 2.0]));
    /// assert_eq!(x.dot(&x).eval()?, Array::scalar(5.0));
    /// # Ok::<(), Box<Diagnostic>>(())
    /// ```
    #[track_caller]
    pub fn dot(&self, other: &Var) -> Var {
        if self.ty().rank() == 0 || other.ty().rank() == 0 { self.mul(other) } else { self.matmul(other) }
    }
    /// Row `i` along the first axis, of a number or an integer scalar; negative counts from the end. `E0202` where there is none.
    ///
    /// ```
    /// # use scan_core::prelude::*;
    /// let x = constant(Array::vector(&[1.0, 2.0, 3.0]));
    /// assert_eq!(x.row(-1).eval()?, Array::scalar(3.0));
    /// assert_eq!(x.row(Var::int(0)).eval()?, Array::scalar(1.0));
    /// # Ok::<(), Box<Diagnostic>>(())
    /// ```
    #[track_caller]
    pub fn row(&self, i: impl Operand) -> Var {
        let span = here();
        deferred(Index { pattern: "i".into() }, &[self.clone(), i.beside(DType::I64, span)], span)
    }
    /// Rows of a range along the first axis; negative bounds count from the end, and bounds outside are cut, as in NumPy.
    ///
    /// ```
    /// # use scan_core::prelude::*;
    /// let x = constant(Array::vector(&[1.0, 2.0, 3.0]));
    /// assert_eq!(x.rows(1..).eval()?, Array::vector(&[2.0, 3.0]));
    /// assert_eq!(x.rows(..-1).eval()?, Array::vector(&[1.0, 2.0]));
    /// # Ok::<(), Box<Diagnostic>>(())
    /// ```
    #[track_caller]
    pub fn rows(&self, range: impl RangeBounds<i64>) -> Var {
        // The row behind −1 is the end, which has no number.
        let behind = |n: i64| (n != -1).then_some(n + 1);
        let start = match range.start_bound() {
            Bound::Included(&n) => Some(n),
            Bound::Excluded(&n) => behind(n),
            Bound::Unbounded => None,
        };
        let end = match range.end_bound() {
            Bound::Included(&n) => behind(n),
            Bound::Excluded(&n) => Some(n),
            Bound::Unbounded => None,
        };
        let pattern = format!("{}:{}", if start.is_some() { "s" } else { "" }, if end.is_some() { "e" } else { "" });
        let mut ins = vec![self.clone()];
        ins.extend([start, end].into_iter().flatten().map(Var::int));
        deferred(Index { pattern }, &ins, here())
    }
    /// The rows whose numbers an integer array has: the shape is that of `indices`, then that of a row. `E0202` where one is missing.
    ///
    /// ```
    /// # use scan_core::prelude::*;
    /// let (x, i) = (constant(Array::vector(&[1.0, 2.0, 3.0])), constant(Array::vector(&[2i64, 0])));
    /// assert_eq!(x.take(&i).eval()?, Array::vector(&[3.0, 1.0]));
    /// # Ok::<(), Box<Diagnostic>>(())
    /// ```
    #[track_caller]
    pub fn take(&self, indices: &Var) -> Var {
        deferred(Gather { axes: vec![0] }, &[self.clone(), indices.clone()], here())
    }
    /// The same array with another row `i`, to which `value` is broadcast.
    ///
    /// ```
    /// # use scan_core::prelude::*;
    /// let x = constant(Array::vector(&[1.0, 2.0, 3.0]));
    /// assert_eq!(x.set_row(0, 9.0).eval()?, Array::vector(&[9.0, 2.0, 3.0]));
    /// # Ok::<(), Box<Diagnostic>>(())
    /// ```
    #[track_caller]
    pub fn set_row(&self, i: impl Operand, value: impl Operand) -> Var {
        let span = here();
        let ins = [self.clone(), value.beside(self.ty().dtype, span), i.beside(DType::I64, span)];
        deferred(IndexWrite { mode: Write::Set, pattern: "i".into() }, &ins, span)
    }
    /// Another dtype.
    ///
    /// ```
    /// # use scan_core::prelude::*;
    /// assert_eq!(Var::number(1.5).cast(DType::I64).eval()?, Array::scalar(1i64));
    /// # Ok::<(), Box<Diagnostic>>(())
    /// ```
    #[track_caller]
    pub fn cast(&self, dtype: DType) -> Var {
        deferred(Cast { dtype }, std::slice::from_ref(self), here())
    }
    /// The same elements in another shape; one extent may be −1. `E0204` where their number differs.
    ///
    /// ```
    /// # use scan_core::prelude::*;
    /// let x = constant(Array::vector(&[1.0, 2.0, 3.0, 4.0]));
    /// assert_eq!(x.reshape(&[2, -1]).eval()?.shape(), [2, 2]);
    /// # Ok::<(), Box<Diagnostic>>(())
    /// ```
    #[track_caller]
    pub fn reshape(&self, shape: &[i64]) -> Var {
        let mut ins = vec![self.clone()];
        ins.extend(shape.iter().map(|&n| Var::int(n)));
        deferred(Reshape {}, &ins, here())
    }
    /// The axes in the opposite order.
    ///
    /// ```
    /// # use scan_core::prelude::*;
    /// let x = constant(Array::new(&[2, 1], vec![1.0, 2.0]));
    /// assert_eq!(x.transpose().eval()?.shape(), [1, 2]);
    /// # Ok::<(), Box<Diagnostic>>(())
    /// ```
    #[track_caller]
    pub fn transpose(&self) -> Var {
        let perm = (0..self.ty().rank()).rev().collect();
        deferred(Transpose { perm }, std::slice::from_ref(self), here())
    }
    /// A new axis of extent 1, at this position of the result; negative counts from its end.
    ///
    /// ```
    /// # use scan_core::prelude::*;
    /// let x = constant(Array::vector(&[1.0, 2.0]));
    /// assert_eq!(x.expand(-1).eval()?.shape(), [2, 1]);
    /// # Ok::<(), Box<Diagnostic>>(())
    /// ```
    #[track_caller]
    pub fn expand(&self, axis: i64) -> Var {
        let span = here();
        match axis_of(self, axis, self.ty().rank() + 1, span) {
            Ok(axis) => deferred(Expand { axes: vec![axis] }, std::slice::from_ref(self), span),
            Err(error) => Var::failed(error, span),
        }
    }
    /// The same value, through which no gradient flows.
    ///
    /// ```
    /// # use scan_core::prelude::*;
    /// assert_eq!(Var::number(1.5).stop_gradient().eval()?, Array::scalar(1.5));
    /// # Ok::<(), Box<Diagnostic>>(())
    /// ```
    #[track_caller]
    pub fn stop_gradient(&self) -> Var {
        deferred(StopGradient {}, std::slice::from_ref(self), here())
    }
}

/// Arrays one after the other along an axis that they have; negative counts from the end. `E0206` where the other extents differ.
///
/// ```
/// use scan_core::prelude::*;
///
/// let x = constant(Array::vector(&[1.0, 2.0]));
/// assert_eq!(concat(&[&x, &x], 0).eval()?, Array::vector(&[1.0, 2.0, 1.0, 2.0]));
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
#[track_caller]
pub fn concat(parts: &[&Var], axis: i64) -> Var {
    joined(parts.iter().map(|&v| v.clone()).collect(), axis, here())
}

/// Arrays of one shape as rows of a new first axis. `E0206` where shapes differ.
///
/// ```
/// use scan_core::prelude::*;
///
/// let (x, y) = (Var::number(1.0), Var::number(2.0));
/// assert_eq!(stack(&[&x, &y]).eval()?, Array::vector(&[1.0, 2.0]));
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
#[track_caller]
pub fn stack(parts: &[&Var]) -> Var {
    let span = here();
    let row = |&v: &&Var| deferred(Expand { axes: vec![0] }, std::slice::from_ref(v), span);
    joined(parts.iter().map(row).collect(), 0, span)
}

fn joined(parts: Vec<Var>, axis: i64, span: Span) -> Var {
    let known = Var::all_ok(&parts).and_then(|()| match parts.first() {
        Some(first) => axis_of(first, axis, first.ty().rank(), span),
        // What there is to say of no parts, the op says.
        None => Ok(0),
    });
    match known {
        Ok(axis) => deferred(Join { axis }, &parts, span),
        Err(error) => Var::failed(error, span),
    }
}
