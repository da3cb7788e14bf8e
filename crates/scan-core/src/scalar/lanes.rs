//! What the value of a row is written over: a few arithmetic words and the primitive functions.

use std::marker::PhantomData;

macro_rules! lanes {
    ($($(#[$doc:meta])+ $name:ident($($x:ident),+);)+) => {
        /// A context in which the value of a row is computed: on scalars now; a recording context
        /// (an emitter) implements it too, keeping its state behind a cell.
        pub trait Lanes {
            /// A value.
            type V: Copy;
            /// A truth value per value.
            type B: Copy;
            /// The constant nearest to x.
            fn num(&self, x: f64) -> Self::V;
            /// `x == y`
            fn eq(&self, x: Self::V, y: Self::V) -> Self::B;
            /// `x < y`
            fn lt(&self, x: Self::V, y: Self::V) -> Self::B;
            /// `x <= y`
            fn le(&self, x: Self::V, y: Self::V) -> Self::B;
            /// Both.
            fn and(&self, a: Self::B, b: Self::B) -> Self::B;
            /// The opposite.
            fn not(&self, a: Self::B) -> Self::B;
            /// x where `c`, else y.
            fn select(&self, c: Self::B, x: Self::V, y: Self::V) -> Self::V;
            /// True where the sign bit is set, −0 and NaN included.
            fn signbit(&self, x: Self::V) -> Self::B;
            /// `x != y`
            fn ne(&self, x: Self::V, y: Self::V) -> Self::B {
                self.not(self.eq(x, y))
            }
            /// Either, not both.
            fn xor(&self, a: Self::B, b: Self::B) -> Self::B {
                self.not(self.and(self.not(self.and(a, self.not(b))), self.not(self.and(b, self.not(a)))))
            }
            $($(#[$doc])+ fn $name(&self, $($x: Self::V),+) -> Self::V;)+
        }
    };
}

lanes! {
    /// `x + y`
    add(x, y);
    /// `x − y`
    sub(x, y);
    /// `x · y`
    mul(x, y);
    /// `x / y`
    div(x, y);
    /// `−x`
    neg(x);
    /// `|x|`
    abs(x);
    /// `√x`
    sqrt(x);
    /// Remainder with the sign of x, exact.
    fmod(x, y);
    /// |x| with the sign of y.
    copysign(x, y);
    /// Largest integer not above x.
    floor(x);
    /// Smallest integer not below x.
    ceil(x);
    /// x without its fraction.
    trunc(x);
    /// Nearest integer, halves to even.
    round(x);
    /// `xʸ`
    pow(x, y);
    /// `√(x² + y²)` without overflow.
    hypot(x, y);
    /// The angle of the point (x, y), first argument y.
    atan2(y, x);
    /// `eˣ`
    exp(x);
    /// `2ˣ`
    exp2(x);
    /// `eˣ − 1`
    expm1(x);
    /// Natural logarithm.
    log(x);
    /// Logarithm of base 2.
    log2(x);
    /// Logarithm of base 10.
    log10(x);
    /// `log(1 + x)`
    log1p(x);
    /// Sine.
    sin(x);
    /// Cosine.
    cos(x);
    /// Tangent.
    tan(x);
    /// Arcsine.
    asin(x);
    /// Arccosine.
    acos(x);
    /// Arctangent.
    atan(x);
    /// Hyperbolic sine.
    sinh(x);
    /// Hyperbolic cosine.
    cosh(x);
    /// Hyperbolic tangent.
    tanh(x);
    /// Inverse hyperbolic sine.
    asinh(x);
    /// Inverse hyperbolic cosine.
    acosh(x);
    /// Inverse hyperbolic tangent.
    atanh(x);
    /// Error function.
    erf(x);
    /// `1 − erf(x)`
    erfc(x);
    /// Inverse of the error function.
    erfinv(x);
    /// `log |Γ(x)|`
    gammaln(x);
    /// `ψ(x) = d/dx log Γ(x)`
    digamma(x);
    /// `ψ′(x)`
    trigamma(x);
    /// `ψ″(x)`
    tetragamma(x);
}

/// Scalars of this machine. The primitive functions are those of `std` and `libm`; for f32 most are
/// computed in f64 and rounded once.
pub struct Host<T>(PhantomData<T>);

impl<T> Host<T> {
    /// The context; it has no state.
    pub const CX: Host<T> = Host(PhantomData);
}

macro_rules! host {
    ($t:ty, direct { $($direct:ident = $d:path),+ $(,)? }, wide { $($wide:ident = $w:path),+ $(,)? }, wide2 { $($wide2:ident = $w2:path),+ $(,)? }) => {
        impl Lanes for Host<$t> {
            type V = $t;
            type B = bool;
            fn num(&self, x: f64) -> $t { x as $t }
            fn eq(&self, x: $t, y: $t) -> bool { x == y }
            fn lt(&self, x: $t, y: $t) -> bool { x < y }
            fn le(&self, x: $t, y: $t) -> bool { x <= y }
            fn and(&self, a: bool, b: bool) -> bool { a & b }
            fn not(&self, a: bool) -> bool { !a }
            fn xor(&self, a: bool, b: bool) -> bool { a ^ b }
            fn select(&self, c: bool, x: $t, y: $t) -> $t { if c { x } else { y } }
            fn signbit(&self, x: $t) -> bool { x.is_sign_negative() }
            fn add(&self, x: $t, y: $t) -> $t { x + y }
            fn sub(&self, x: $t, y: $t) -> $t { x - y }
            fn mul(&self, x: $t, y: $t) -> $t { x * y }
            fn div(&self, x: $t, y: $t) -> $t { x / y }
            fn neg(&self, x: $t) -> $t { -x }
            fn fmod(&self, x: $t, y: $t) -> $t { x % y }
            fn copysign(&self, x: $t, y: $t) -> $t { x.copysign(y) }
            $(fn $direct(&self, x: $t) -> $t { $d(x) })+
            $(fn $wide(&self, x: $t) -> $t { $w(x as f64) as $t })+
            $(fn $wide2(&self, x: $t, y: $t) -> $t { $w2(x as f64, y as f64) as $t })+
        }
    };
}

macro_rules! hosts {
    ($($t:ident),+) => {$(
        host!($t,
            direct { abs = $t::abs, sqrt = $t::sqrt, floor = $t::floor, ceil = $t::ceil, trunc = $t::trunc, round = $t::round_ties_even,
                exp = $t::exp, log = $t::ln, sin = $t::sin, cos = $t::cos },
            wide { exp2 = f64::exp2, expm1 = f64::exp_m1, log2 = f64::log2, log10 = f64::log10, log1p = f64::ln_1p,
                tan = f64::tan, asin = f64::asin, acos = f64::acos, atan = f64::atan, sinh = f64::sinh, cosh = f64::cosh, tanh = f64::tanh,
                asinh = libm::asinh, acosh = libm::acosh, atanh = libm::atanh, erf = libm::erf, erfc = libm::erfc, erfinv = super::special::erfinv,
                gammaln = libm::lgamma, digamma = super::special::digamma, trigamma = super::special::trigamma, tetragamma = super::special::tetragamma },
            wide2 { pow = f64::powf, hypot = f64::hypot, atan2 = f64::atan2 });
    )+};
}

hosts!(f32, f64);
