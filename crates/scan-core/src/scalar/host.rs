//! The context of the evaluator: scalars of this machine.

use super::lanes::fused;

use super::{Lanes, Lookup, called, fast};
use std::marker::PhantomData;

/// Scalars of this machine. Functions that kernels call are those of [`called`], `std` and `libm`; for f32 they are
/// computed in f64 and rounded once.
pub struct Host<T>(PhantomData<T>);

impl<T> Host<T> {
    /// The context; it has no state.
    pub const CX: Host<T> = Host(PhantomData);
}

/// As [`Host`], with `fma` rounded once or twice as the code says.
pub(super) struct Plain<T, const FUSED: bool>(PhantomData<T>);

impl<T, const FUSED: bool> Plain<T, FUSED> {
    pub(super) const CX: Plain<T, FUSED> = Plain(PhantomData);
}

macro_rules! host {
    ($Cx:ty, $t:ident, $i:ty, [$($FUSED:ident: bool)?] fma $fma:expr, written { $($written:ident)* }, direct { $($direct:ident = $d:path),+ $(,)? }, wide { $($wide:ident = $w:path),+ $(,)? }, wide2 { $($wide2:ident = $w2:path),+ $(,)? }) => {
        impl$(<const $FUSED: bool>)? Lanes for $Cx {
            type V = $t;
            type B = bool;
            type I = $i;
            #[inline(always)] fn wide(&self) -> bool { size_of::<$t>() == 8 }
            #[inline(always)] fn fuses(&self) -> bool { $fma }
            #[inline(always)] fn any(&self, c: bool) -> bool { c }
            #[inline(always)] fn all(&self, c: bool) -> bool { c }
            #[inline(always)] fn fma(&self, x: $t, y: $t, z: $t) -> $t { if $fma { x.mul_add(y, z) } else { x * y + z } }
            $(#[inline(always)] fn $written(&self, x: $t) -> $t { fast::$written::$t(x) })*
            #[inline(always)] fn bits(&self, x: $t) -> $i { x.to_bits() }
            #[inline(always)] fn of_bits(&self, i: $i) -> $t { <$t>::from_bits(i) }
            #[inline(always)] fn int(&self, k: u64) -> $i { k as $i }
            #[inline(always)] fn int_add(&self, i: $i, j: $i) -> $i { i.wrapping_add(j) }
            #[inline(always)] fn int_sub(&self, i: $i, j: $i) -> $i { i.wrapping_sub(j) }
            #[inline(always)] fn int_and(&self, i: $i, j: $i) -> $i { i & j }
            #[inline(always)] fn int_or(&self, i: $i, j: $i) -> $i { i | j }
            #[inline(always)] fn int_xor(&self, i: $i, j: $i) -> $i { i ^ j }
            #[inline(always)] fn int_shl(&self, i: $i, n: u32) -> $i { i << n }
            #[inline(always)] fn int_shr(&self, i: $i, n: u32) -> $i { i >> n }
            #[inline(always)] fn num(&self, x: f64) -> $t { x as $t }
            #[inline(always)] fn eq(&self, x: $t, y: $t) -> bool { x == y }
            #[inline(always)] fn lt(&self, x: $t, y: $t) -> bool { x < y }
            #[inline(always)] fn le(&self, x: $t, y: $t) -> bool { x <= y }
            #[inline(always)] fn and(&self, a: bool, b: bool) -> bool { a & b }
            #[inline(always)] fn not(&self, a: bool) -> bool { !a }
            #[inline(always)] fn xor(&self, a: bool, b: bool) -> bool { a ^ b }
            #[inline(always)] fn select(&self, c: bool, x: $t, y: $t) -> $t { if c { x } else { y } }
            #[inline(always)] fn signbit(&self, x: $t) -> bool { x.is_sign_negative() }
            #[inline(always)] fn add(&self, x: $t, y: $t) -> $t { x + y }
            #[inline(always)] fn sub(&self, x: $t, y: $t) -> $t { x - y }
            #[inline(always)] fn mul(&self, x: $t, y: $t) -> $t { x * y }
            #[inline(always)] fn div(&self, x: $t, y: $t) -> $t { x / y }
            #[inline(always)] fn neg(&self, x: $t) -> $t { -x }
            #[inline(always)] fn fmod(&self, x: $t, y: $t) -> $t { x % y }
            #[inline(always)] fn copysign(&self, x: $t, y: $t) -> $t { x.copysign(y) }
            $(#[inline(always)] fn $direct(&self, x: $t) -> $t { $d(x) })+
            $(#[inline(always)] fn $wide(&self, x: $t) -> $t { $w(x as f64) as $t })+
            $(#[inline(always)] fn $wide2(&self, x: $t, y: $t) -> $t { $w2(x as f64, y as f64) as $t })+
        }
    };
}

macro_rules! hosts {
    ($($t:ident $i:ident),+) => {$(
        hosts!(Host<$t>, $t, $i, [] fma fused(), written { exp exp2 expm1 log log2 log10 log1p tanh sigmoid log1p_exp sin cos });
        hosts!(Plain<$t, FUSED>, $t, $i, [FUSED: bool] fma FUSED, written {});
    )+};
    ($Cx:ty, $t:ident, $i:ident, $generics:tt fma $fma:expr, written $written:tt) => {
        host!($Cx, $t, $i, $generics fma $fma, written $written,
            direct { abs = $t::abs, sqrt = $t::sqrt, floor = $t::floor, ceil = $t::ceil, trunc = $t::trunc, round = $t::round_ties_even },
            wide { machine_sin = far_sin, machine_cos = far_cos,
                tan = f64::tan, asin = called::asin::one, acos = called::acos::one, atan = called::atan::one,
                sinh = called::sinh::one, cosh = called::cosh::one, asinh = libm::asinh, acosh = super::special::acosh, atanh = libm::atanh,
                erf = called::erf::one, erfc = called::erfc::one, erfinv = called::erfinv::one, ndtri = called::ndtri::one, gammaln = called::gammaln::one,
                digamma = called::digamma::one, trigamma = called::trigamma::one, tetragamma = super::special::tetragamma },
            wide2 { pow = called::pow::one, hypot = called::hypot::one, atan2 = called::atan2::one });
    };
}

hosts!(f32 u32, f64 u64);

impl<const FUSED: bool> Lookup for Plain<f64, FUSED> {
    #[inline(always)]
    fn lookup<const N: usize>(&self, table: &'static [[f64; N]; 128], row: u64) -> [f64; N] {
        table[row as usize & 127]
    }
}

/// Sine; what is 0 because its value is not used costs no call.
pub(crate) fn far_sin(x: f64) -> f64 {
    if x == 0.0 { x } else { x.sin() }
}

/// Cosine, likewise.
pub(crate) fn far_cos(x: f64) -> f64 {
    if x == 0.0 { 1.0 } else { x.cos() }
}
