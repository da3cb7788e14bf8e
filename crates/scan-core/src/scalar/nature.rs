//! What is known of an elementwise function besides its value. A function that is not listed does not compile.

use super::ElemOp;

/// Where a function of floats jumps: its result changes by much where inputs hardly change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Jumps {
    /// Nowhere, but for poles.
    No,
    /// At some inputs; in between it is constant, and its derivative zero.
    Flat,
    /// At some inputs.
    Steep,
}

/// What is known of a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Nature {
    /// One or two instructions an element.
    pub simple: bool,
    /// Floats are chosen, or change no more than a sign or a fraction: nothing is rounded.
    pub repeats: bool,
    /// Where it jumps.
    pub jumps: Jumps,
    /// It asks only whether there is a NaN or an infinity.
    pub of_infinity: bool,
}

impl ElemOp {
    /// What is known of the function.
    #[rustfmt::skip]
    pub fn nature(self) -> Nature {
        use ElemOp::*;
        let of = |simple, repeats, jumps| Nature { simple, repeats, jumps, of_infinity: false };
        match self {
            Add | Sub | Mul | Fma | Div | Square | Sqrt | Reciprocal | Deg2Rad | Rad2Deg => of(true, false, Jumps::No),
            Neg | Abs | Minimum | Maximum | Clip | Relu | Where => of(true, true, Jumps::No),
            Sign | Floor | Ceil | Trunc | Round => of(true, true, Jumps::Flat),
            CopySign => of(true, true, Jumps::Steep),
            FloorDiv => of(false, false, Jumps::Flat),
            Mod | Fmod | Atan2 => of(false, false, Jumps::Steep),
            IsNan | IsInf | IsFinite => Nature { of_infinity: true, ..of(true, false, Jumps::No) },
            // Truth values and integers: their dtype tells that they jump.
            Eq | Ne | Lt | Le | Gt | Ge | SignBit | And | Or | Xor | Not | BitAnd | BitOr | BitXor | Invert | ShiftLeft | ShiftRight => {
                of(true, false, Jumps::No)
            }
            Pow | Rsqrt | Hypot | Exp | Exp2 | Expm1 | Log | Log2 | Log10 | Log1p | LogAddExp | Sin | Cos | Tan | Asin | Acos | Atan | Sinh
            | Cosh | Tanh | Asinh | Acosh | Atanh | Sigmoid | Softplus | LogSigmoid | Silu | Erf | Erfc | ErfInv | NdTri | GammaLn | Digamma
            | Trigamma | Tetragamma | XLogY => of(false, false, Jumps::No),
        }
    }
}
