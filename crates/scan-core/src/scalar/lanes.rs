//! What the value of a row is written over: a few arithmetic words and the primitive functions.

use std::marker::PhantomData;
use std::sync::OnceLock;

macro_rules! lanes {
    ($($(#[$doc:meta])+ $name:ident($($x:ident),+);)+) => {
        /// A context in which the value of a row is computed: on scalars now; a recording context
        /// (an emitter) implements it too, keeping its state behind a cell.
        pub trait Lanes {
            /// A value.
            type V: Copy;
            /// A truth value per value.
            type B: Copy;
            /// An unsigned integer as wide as a value.
            type I: Copy;
            /// True where values are f64; they are f32 else.
            fn wide(&self) -> bool;
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
            /// `x · y + z`, rounded once where [`fused`] says so, else twice.
            fn fma(&self, x: Self::V, y: Self::V, z: Self::V) -> Self::V;
            /// The bits of a value.
            fn bits(&self, x: Self::V) -> Self::I;
            /// The value of bits.
            fn of_bits(&self, i: Self::I) -> Self::V;
            /// The constant k, cut to the width.
            fn int(&self, k: u64) -> Self::I;
            /// `i + j`, wrapping.
            fn int_add(&self, i: Self::I, j: Self::I) -> Self::I;
            /// `i − j`, wrapping.
            fn int_sub(&self, i: Self::I, j: Self::I) -> Self::I;
            /// Bits set in both.
            fn int_and(&self, i: Self::I, j: Self::I) -> Self::I;
            /// Bits set in either.
            fn int_or(&self, i: Self::I, j: Self::I) -> Self::I;
            /// Bits set in one.
            fn int_xor(&self, i: Self::I, j: Self::I) -> Self::I;
            /// `i << n`, n less than the width.
            fn int_shl(&self, i: Self::I, n: u32) -> Self::I;
            /// `i >> n`, zeros coming in, n less than the width.
            fn int_shr(&self, i: Self::I, n: u32) -> Self::I;
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

/// True where `fma` is rounded once: the processor can, and the environment variable `RSCAN_ISA` is not `portable`. Decided
/// once per process, since the evaluator and every engine must agree.
pub fn fused() -> bool {
    static FUSED: OnceLock<bool> = OnceLock::new();
    *FUSED.get_or_init(|| can_fuse() && std::env::var_os("RSCAN_ISA").is_none_or(|isa| isa != "portable"))
}

#[cfg(target_arch = "x86_64")]
fn can_fuse() -> bool {
    std::is_x86_feature_detected!("fma")
}

#[cfg(not(target_arch = "x86_64"))]
fn can_fuse() -> bool {
    cfg!(target_arch = "aarch64")
}

/// Scalars of this machine. The primitive functions are those of `std` and `libm`; for f32 they are
/// computed in f64 and rounded once.
pub struct Host<T>(PhantomData<T>);

impl<T> Host<T> {
    /// The context; it has no state.
    pub const CX: Host<T> = Host(PhantomData);
}

macro_rules! host {
    ($t:ty, $i:ty, direct { $($direct:ident = $d:path),+ $(,)? }, wide { $($wide:ident = $w:path),+ $(,)? }, wide2 { $($wide2:ident = $w2:path),+ $(,)? }) => {
        impl Lanes for Host<$t> {
            type V = $t;
            type B = bool;
            type I = $i;
            fn wide(&self) -> bool { size_of::<$t>() == 8 }
            fn fma(&self, x: $t, y: $t, z: $t) -> $t { if fused() { x.mul_add(y, z) } else { x * y + z } }
            fn bits(&self, x: $t) -> $i { x.to_bits() }
            fn of_bits(&self, i: $i) -> $t { <$t>::from_bits(i) }
            fn int(&self, k: u64) -> $i { k as $i }
            fn int_add(&self, i: $i, j: $i) -> $i { i.wrapping_add(j) }
            fn int_sub(&self, i: $i, j: $i) -> $i { i.wrapping_sub(j) }
            fn int_and(&self, i: $i, j: $i) -> $i { i & j }
            fn int_or(&self, i: $i, j: $i) -> $i { i | j }
            fn int_xor(&self, i: $i, j: $i) -> $i { i ^ j }
            fn int_shl(&self, i: $i, n: u32) -> $i { i << n }
            fn int_shr(&self, i: $i, n: u32) -> $i { i >> n }
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
    ($($t:ident $i:ident),+) => {$(
        host!($t, $i,
            direct { abs = $t::abs, sqrt = $t::sqrt, floor = $t::floor, ceil = $t::ceil, trunc = $t::trunc, round = $t::round_ties_even },
            wide { exp = f64::exp, log = f64::ln, sin = f64::sin, cos = f64::cos, exp2 = f64::exp2, expm1 = f64::exp_m1, log2 = f64::log2, log10 = f64::log10, log1p = f64::ln_1p,
                tan = f64::tan, asin = f64::asin, acos = f64::acos, atan = f64::atan, sinh = f64::sinh, cosh = f64::cosh, tanh = f64::tanh,
                asinh = libm::asinh, acosh = libm::acosh, atanh = libm::atanh, erf = libm::erf, erfc = libm::erfc, erfinv = super::special::erfinv,
                gammaln = libm::lgamma, digamma = super::special::digamma, trigamma = super::special::trigamma, tetragamma = super::special::tetragamma },
            wide2 { pow = f64::powf, hypot = f64::hypot, atan2 = f64::atan2 });
    )+};
}

hosts!(f32 u32, f64 u64);
