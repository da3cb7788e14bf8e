//! What the value of a row is written over: a few arithmetic words and the primitive functions.

use super::math;
use std::sync::OnceLock;

macro_rules! lanes {
    (machine { $($(#[$doc:meta])+ $name:ident($($x:ident),+);)+ } written { $($(#[$doc2:meta])+ $name2:ident;)+ }) => {
        /// A context in which the value of a row is computed: on scalars now; a recording context
        /// (an emitter) implements it too, keeping its state behind a cell.
        pub trait Lanes: Sized {
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
            /// False only where c is true of no value.
            #[inline(always)]
            fn any(&self, _: Self::B) -> bool {
                true
            }
            /// True only where c is true of every value.
            #[inline(always)]
            fn all(&self, _: Self::B) -> bool {
                false
            }
            /// x where `c`, else y: what no value asks for is not computed where that is known.
            #[inline(always)]
            fn choose(&self, c: Self::B, x: impl FnOnce() -> Self::V, y: impl FnOnce() -> Self::V) -> Self::V {
                let x = if self.any(c) { Some(x()) } else { None };
                let y = if self.all(c) { None } else { Some(y()) };
                match (x, y) {
                    (Some(x), Some(y)) => self.select(c, x, y),
                    (Some(found), None) | (None, Some(found)) => found,
                    (None, None) => self.num(0.0),
                }
            }
            /// True where `fma` is rounded once.
            fn fuses(&self) -> bool;
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
            $($(#[$doc2])+ fn $name2(&self, x: Self::V) -> Self::V { math::$name2(self, x) })+
        }
    };
}

/// A context that reads tables.
pub trait Lookup: Lanes {
    /// The row with this number, which is below 128.
    fn lookup<const N: usize>(&self, table: &'static [[f64; N]; 128], row: Self::I) -> [Self::V; N];
}

lanes! {
    machine {
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
        /// Sine by the function of this machine.
        machine_sin(x);
        /// Cosine by the function of this machine.
        machine_cos(x);
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
        /// Quantile of the normal distribution.
        ndtri(x);
        /// `log |Γ(x)|`
        gammaln(x);
        /// `ψ(x) = d/dx log Γ(x)`
        digamma(x);
        /// `ψ′(x)`
        trigamma(x);
        /// `ψ″(x)`
        tetragamma(x);
    }
    written {
        /// `eˣ`
        exp;
        /// `2ˣ`
        exp2;
        /// `eˣ − 1`
        expm1;
        /// Natural logarithm.
        log;
        /// Logarithm of base 2.
        log2;
        /// Logarithm of base 10.
        log10;
        /// `log(1 + x)`
        log1p;
        /// Hyperbolic tangent.
        tanh;
        /// `1 / (1 + e⁻ˣ)`
        sigmoid;
        /// `log(1 + e^−|x|)`
        log1p_exp;
        /// Sine.
        sin;
        /// Cosine.
        cos;
    }
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
