//! Operators and elementwise functions as methods: `&r * &x * (1.0 - &x)`. An operand that does not fit makes a failed expression
//! ([`Var::ok`]); whatever ends the expression reports the first error, at the line of the operator.

use super::Var;
use super::sugar::{deferred, here};
use crate::base::{Diagnostic, Kind, Span};
use crate::ir::Op;
use crate::scalar::ElemOp;
use crate::types::{Array, DType};

/// What stands beside an expression in an operator: an expression, or a number of Rust. A number takes the dtype of the expression,
/// as in NumPy 2: `x + 1` is int8 where x is; a float beside integers is float64. An integer that the dtype cannot hold is `E0807`.
///
/// ```
/// use scan_core::prelude::*;
///
/// fn twice(x: impl Operand) -> Var {
///     Var::number(2.0) * x
/// }
/// assert_eq!(twice(4.0).eval()?, twice(&Var::number(4.0)).eval()?);
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
pub trait Operand {
    /// Its own dtype; none of a number.
    fn dtype(&self) -> Option<DType>;
    /// It as an expression, beside one of this dtype.
    fn beside(self, met: DType, span: Span) -> Var;
}

impl Operand for Var {
    fn dtype(&self) -> Option<DType> {
        Some(self.ty().dtype)
    }
    fn beside(self, _: DType, _: Span) -> Var {
        self
    }
}
impl Operand for &Var {
    fn dtype(&self) -> Option<DType> {
        Some(self.ty().dtype)
    }
    fn beside(self, _: DType, _: Span) -> Var {
        self.clone()
    }
}
impl Operand for f64 {
    fn dtype(&self) -> Option<DType> {
        None
    }
    fn beside(self, met: DType, span: Span) -> Var {
        Var::constant(Array::full(if met.is_float() { met } else { DType::F64 }, &[], self), span)
    }
}
impl Operand for i64 {
    fn dtype(&self) -> Option<DType> {
        None
    }
    fn beside(self, met: DType, span: Span) -> Var {
        let dtype = if met == DType::Bool { DType::I64 } else { met };
        let value = Array::scalar(self).cast(dtype);
        if dtype.is_int() && value.item_i64() != Some(self) {
            return Var::failed(Diagnostic::new(Kind::Value, "E0807", format!("{self} does not fit into {dtype}")), span);
        }
        Var::constant(value, span)
    }
}

/// An elementwise function of an expression and what stands beside it.
fn binary(op: ElemOp, x: &Var, y: impl Operand, span: Span) -> Var {
    deferred(Op::Elem(op), &[x.clone(), y.beside(x.ty().dtype, span)], span)
}

macro_rules! operators {
    ($($trait:ident $method:ident $op:ident, $assign:ident $in_place:ident;)+) => { $(
        impl<T: Operand> std::ops::$trait<T> for &Var {
            type Output = Var;
            #[track_caller]
            fn $method(self, other: T) -> Var {
                binary(ElemOp::$op, self, other, here())
            }
        }
        impl<T: Operand> std::ops::$trait<T> for Var {
            type Output = Var;
            #[track_caller]
            fn $method(self, other: T) -> Var {
                binary(ElemOp::$op, &self, other, here())
            }
        }
        impl<T: Operand> std::ops::$assign<T> for Var {
            #[track_caller]
            fn $in_place(&mut self, other: T) {
                *self = binary(ElemOp::$op, self, other, here());
            }
        }
        operators! { @number $trait $method $op f64 }
        operators! { @number $trait $method $op i64 }
    )+ };
    (@number $trait:ident $method:ident $op:ident $number:ty) => {
        impl std::ops::$trait<&Var> for $number {
            type Output = Var;
            #[track_caller]
            fn $method(self, other: &Var) -> Var {
                binary(ElemOp::$op, &self.beside(other.ty().dtype, here()), other, here())
            }
        }
        impl std::ops::$trait<Var> for $number {
            type Output = Var;
            #[track_caller]
            fn $method(self, other: Var) -> Var {
                binary(ElemOp::$op, &self.beside(other.ty().dtype, here()), &other, here())
            }
        }
    };
}

operators! {
    Add add Add, AddAssign add_assign;
    Sub sub Sub, SubAssign sub_assign;
    Mul mul Mul, MulAssign mul_assign;
    Div div Div, DivAssign div_assign;
    BitAnd bitand BitAnd, BitAndAssign bitand_assign;
    BitOr bitor BitOr, BitOrAssign bitor_assign;
}

macro_rules! prefix {
    ($($trait:ident $method:ident $op:ident;)+) => { $(
        impl std::ops::$trait for &Var {
            type Output = Var;
            #[track_caller]
            fn $method(self) -> Var {
                deferred(Op::Elem(ElemOp::$op), std::slice::from_ref(self), here())
            }
        }
        impl std::ops::$trait for Var {
            type Output = Var;
            #[track_caller]
            fn $method(self) -> Var {
                deferred(Op::Elem(ElemOp::$op), &[self], here())
            }
        }
    )+ };
}

prefix! {
    Neg neg Neg;
    Not not Invert;
}

/// Methods with an example each: the value at a point.
macro_rules! elementwise {
    (unary { $($(#[$doc:meta])* $name:ident = $op:ident, $x:literal => $y:literal;)+ }
     binary { $($(#[$doc2:meta])* $name2:ident = $op2:ident, $x1:literal, $x2:literal => $y2:literal;)+ }) => {
        impl Var {
            $($(#[$doc])*
            ///
            /// ```
            /// # use scan_core::prelude::*;
            #[doc = concat!("let y = Var::number(", stringify!($x), ").", stringify!($name), "().eval()?.to_f64_vec()[0];")]
            #[doc = concat!("assert!((y - (", stringify!($y), ")).abs() < 1e-12);")]
            /// # Ok::<(), Box<Diagnostic>>(())
            /// ```
            #[track_caller]
            pub fn $name(&self) -> Var {
                deferred(Op::Elem(ElemOp::$op), std::slice::from_ref(self), here())
            })+
            $($(#[$doc2])*
            ///
            /// ```
            /// # use scan_core::prelude::*;
            #[doc = concat!("let y = Var::number(", stringify!($x1), ").", stringify!($name2), "(", stringify!($x2), ").eval()?.to_f64_vec()[0];")]
            #[doc = concat!("assert!((y - (", stringify!($y2), ")).abs() < 1e-12);")]
            /// # Ok::<(), Box<Diagnostic>>(())
            /// ```
            #[track_caller]
            pub fn $name2(&self, other: impl Operand) -> Var {
                binary(ElemOp::$op2, self, other, here())
            })+
        }
    };
}

elementwise! {
    unary {
    /// `−self`; also `-x`.
    neg = Neg, 2.0 => -2.0;
    /// The absolute value.
    abs = Abs, -2.0 => 2.0;
    /// −1, 0 or 1.
    sign = Sign, -2.0 => -1.0;
    /// x².
    square = Square, 3.0 => 9.0;
    /// √x; a float.
    sqrt = Sqrt, 4.0 => 2.0;
    /// eˣ; a float.
    exp = Exp, 0.0 => 1.0;
    /// eˣ − 1, accurate near 0; a float.
    exp_m1 = Expm1, 0.0 => 0.0;
    /// Natural logarithm; a float.
    log = Log, 1.0 => 0.0;
    /// log(1 + x), accurate near 0; a float.
    log1p = Log1p, 0.0 => 0.0;
    /// Sine; a float.
    sin = Sin, 0.0 => 0.0;
    /// Cosine; a float.
    cos = Cos, 0.0 => 1.0;
    /// Tangent; a float.
    tan = Tan, 0.0 => 0.0;
    /// Arc tangent; a float.
    atan = Atan, 0.0 => 0.0;
    /// Hyperbolic sine; a float.
    sinh = Sinh, 0.0 => 0.0;
    /// Hyperbolic cosine; a float.
    cosh = Cosh, 0.0 => 1.0;
    /// Hyperbolic tangent; a float.
    tanh = Tanh, 0.0 => 0.0;
    /// `1 / (1 + e⁻ˣ)`; a float.
    sigmoid = Sigmoid, 0.0 => 0.5;
    /// `log(1 + eˣ)`; a float.
    softplus = Softplus, 0.0 => 0.6931471805599453;
    /// `maximum(x, 0)`.
    relu = Relu, -3.0 => 0.0;
    /// The error function; a float.
    erf = Erf, 0.0 => 0.0;
    /// `log Γ(x)`; a float.
    gammaln = GammaLn, 2.0 => 0.0;
    /// The largest integer that is not above.
    floor = Floor, 1.5 => 1.0;
    /// The smallest integer that is not below.
    ceil = Ceil, 1.5 => 2.0;
    /// The nearest integer; halves to the even one.
    round = Round, 2.5 => 2.0;
    /// True where it is NaN; bool.
    is_nan = IsNan, 1.0 => 0.0;
    /// True where it is neither NaN nor infinite; bool.
    is_finite = IsFinite, 1.0 => 1.0;
    }
    binary {
    /// `self + other`, broadcast; also `x + y`.
    add = Add, 2.0, 3.0 => 5.0;
    /// `self − other`, broadcast; also `x - y`.
    sub = Sub, 2.0, 3.0 => -1.0;
    /// `self · other`, broadcast; also `x * y`.
    mul = Mul, 2.0, 3.0 => 6.0;
    /// `self / other`, broadcast; a float; also `x / y`.
    div = Div, 3.0, 2.0 => 1.5;
    /// The larger one of each pair, broadcast; NaN where one is.
    maximum = Maximum, 2.0, 3.0 => 3.0;
    /// The smaller one of each pair, broadcast; NaN where one is.
    minimum = Minimum, 2.0, 3.0 => 2.0;
    /// √(self² + other²), broadcast; a float.
    hypot = Hypot, 3.0, 4.0 => 5.0;
    /// The angle of the point (other, self), broadcast; a float.
    atan2 = Atan2, 0.0, 1.0 => 0.0;
    /// `log(eˣ + eʸ)`, broadcast; a float.
    logaddexp = LogAddExp, 0.0, 0.0 => 0.6931471805599453;
    /// `self == other`, broadcast; bool. (`==` of Rust asks whether both are the same expression.)
    eq = Eq, 2.0, 3.0 => 0.0;
    /// `self != other`, broadcast; bool.
    ne = Ne, 2.0, 3.0 => 1.0;
    /// `self < other`, broadcast; bool.
    lt = Lt, 2.0, 3.0 => 1.0;
    /// `self <= other`, broadcast; bool.
    le = Le, 2.0, 3.0 => 1.0;
    /// `self > other`, broadcast; bool.
    gt = Gt, 2.0, 3.0 => 0.0;
    /// `self >= other`, broadcast; bool.
    ge = Ge, 2.0, 3.0 => 0.0;
    }
}

impl Var {
    /// `self` within `[low, high]`, broadcast.
    ///
    /// ```
    /// # use scan_core::prelude::*;
    /// assert_eq!(Var::number(1.5).clip(0.0, 1.0).eval()?, Array::scalar(1.0));
    /// # Ok::<(), Box<Diagnostic>>(())
    /// ```
    #[track_caller]
    pub fn clip(&self, low: impl Operand, high: impl Operand) -> Var {
        let span = here();
        let met = self.ty().dtype;
        deferred(Op::Elem(ElemOp::Clip), &[self.clone(), low.beside(met, span), high.beside(met, span)], span)
    }
    /// `yes` where `self` is true, elsewhere `no`, broadcast. Both are computed.
    ///
    /// ```
    /// # use scan_core::prelude::*;
    /// let x = Var::constant(Array::vector(&[-1.0, 2.0]), Span::NONE);
    /// assert_eq!(x.gt(0.0).select(&x, 0.0).eval()?, Array::vector(&[0.0, 2.0]));
    /// # Ok::<(), Box<Diagnostic>>(())
    /// ```
    #[track_caller]
    pub fn select(&self, yes: impl Operand, no: impl Operand) -> Var {
        let span = here();
        // A number takes the dtype of the other branch, not that of the condition.
        let met = yes.dtype().or(no.dtype()).unwrap_or(DType::Bool);
        deferred(Op::Elem(ElemOp::Where), &[self.clone(), yes.beside(met, span), no.beside(met, span)], span)
    }
}
