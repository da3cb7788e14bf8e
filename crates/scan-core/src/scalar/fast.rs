//! The elementary functions on scalars, compiled for processors that round `x·y + z` once: without that feature the compiler
//! calls a function for each such operation, which makes them several times slower.

use super::host::Plain;
use super::lanes::fused;
use super::math;

macro_rules! fast {
    ($($name:ident),+ $(,)?) => {$(
        pub(super) mod $name {
            use super::*;
            fast!(@width $name, f32);
            fast!(@width $name, f64);
        }
    )+};
    (@width $name:ident, $t:ident) => {
        #[inline]
        pub fn $t(x: $t) -> $t {
            #[cfg_attr(target_arch = "x86_64", target_feature(enable = "fma"))]
            fn once(x: $t) -> $t {
                math::$name(&Plain::<$t, true>::CX, x)
            }
            if !fused() {
                return math::$name(&Plain::<$t, false>::CX, x);
            }
            // SAFETY: `fused` has asked the processor for that feature.
            #[allow(unused_unsafe)]
            unsafe {
                once(x)
            }
        }
    };
}

fast!(exp, exp2, expm1, log, log2, log10, log1p, tanh, sigmoid, log1p_exp, sin, cos);
