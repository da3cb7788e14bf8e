//! Functions that kernels call, since they are too long to be written into each: their value at one place, and at the lanes of a
//! vector. Both have the same bits. A formula over `Lanes` holds where it says so; elsewhere the value is that of `std`, `libm` or `special`.

use super::host::Plain;
use super::lanes::fused;
use super::{math, special};

/// Lanes of the largest vector.
pub const LANES: usize = 8;

/// What a call for many lanes reads and writes: up to two arguments, and the value.
pub type Frame = [[f64; LANES]; 3];

/// A function for many lanes.
pub type Many = unsafe extern "C" fn(*mut Frame, usize);

macro_rules! called {
    ($($(#[doc = $doc:literal])+ $name:ident($($x:ident),+) else $rest:expr $(, $how:ident)?;)+) => {$(
        $(#[doc = $doc])+
        pub mod $name {
            use super::*;

            /// The value.
            pub fn one($($x: f64),+) -> f64 {
                #[cfg_attr(target_arch = "x86_64", target_feature(enable = "fma"))]
                fn once($($x: f64),+) -> (f64, bool) {
                    called!(@ $($how)? (math::$name(&Plain::<f64, true>::CX, $($x),+)), true)
                }
                let (value, meant) = if fused() {
                    // SAFETY: `fused` has asked the processor for that feature.
                    #[allow(unused_unsafe)]
                    unsafe { once($($x),+) }
                } else {
                    called!(@ $($how)? (math::$name(&Plain::<f64, false>::CX, $($x),+)), true)
                };
                if meant { value } else { ($rest)($($x),+) }
            }

            /// The values at so many lanes, a multiple of four. Only where the processor has AVX2 and FMA, and [`fused`] holds.
            ///
            /// # Safety
            /// The frame is there, and the processor is as said.
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            pub unsafe extern "C" fn many(frame: *mut Frame, lanes: usize) {
                use crate::scalar::four::{self, Four};
                // SAFETY: as granted by the caller.
                let frame = unsafe { &mut *frame };
                for at in (0..lanes.min(LANES)).step_by(4) {
                    called!(@args frame, at, $($x),+);
                    let (value, meant) = called!(@ $($how)? (math::$name(&Four, $($x),+)), four::all());
                    four::store(value, &mut frame[2], at);
                    for lane in four::others(meant).map(|lane| at + lane) {
                        called!(@lane frame, lane, $($x),+);
                        frame[2][lane] = ($rest)($($x),+);
                    }
                }
            }
        }
    )+};
    (@ inside ($formula:expr), $all:expr) => { $formula };
    (@ ($formula:expr), $all:expr) => { ($formula, $all) };
    (@args $frame:ident, $at:ident, $x:ident) => { let $x = four::load(&$frame[0], $at); };
    (@args $frame:ident, $at:ident, $x:ident, $y:ident) => { let ($x, $y) = (four::load(&$frame[0], $at), four::load(&$frame[1], $at)); };
    (@lane $frame:ident, $at:ident, $x:ident) => { let $x = $frame[0][$at]; };
    (@lane $frame:ident, $at:ident, $x:ident, $y:ident) => { let ($x, $y) = ($frame[0][$at], $frame[1][$at]); };
}

called! {
    /// `xʸ`
    pow(x, y) else f64::powf, inside;
    /// `√(x² + y²)`
    hypot(x, y) else f64::hypot, inside;
    /// Remainder with the sign of x, exact.
    fmod(x, y) else |x: f64, y: f64| x % y, inside;
    /// The angle of the point (x, y).
    atan2(y, x) else f64::atan2, inside;
    /// Arcsine.
    asin(x) else f64::asin;
    /// Arccosine.
    acos(x) else f64::acos;
    /// Arctangent.
    atan(x) else f64::atan;
    /// Hyperbolic sine.
    sinh(x) else f64::sinh, inside;
    /// Hyperbolic cosine.
    cosh(x) else f64::cosh, inside;
    /// Error function.
    erf(x) else libm::erf;
    /// `1 − erf(x)`
    erfc(x) else libm::erfc, inside;
    /// Inverse of the error function.
    erfinv(x) else |x: f64| if x.abs() == 1.0 { x * f64::INFINITY } else { f64::NAN }, inside;
    /// Quantile of the normal distribution.
    ndtri(p) else |p: f64| if p == 0.0 || p == 1.0 { (p - 0.5) * f64::INFINITY } else { f64::NAN }, inside;
    /// `log |Γ(x)|`
    gammaln(x) else libm::lgamma, inside;
    /// `ψ(x)`
    digamma(x) else special::digamma, inside;
    /// `ψ′(x)`
    trigamma(x) else special::trigamma, inside;
}

#[cfg(test)]
mod tests;
