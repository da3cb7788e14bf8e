//! The names of functions of values in the text form of a kernel.

use super::{Bin, Cmp, HostFn, Un};

macro_rules! named {
    ($Type:ident: $($Name:ident $name:literal),+) => {
        impl $Type {
            /// Its name in the text form of a kernel.
            pub fn name(self) -> &'static str {
                match self { $($Type::$Name => $name),+ }
            }
            /// That of a name.
            pub(super) fn named(name: &str) -> Option<$Type> {
                match name { $($name => Some($Type::$Name),)+ _ => None }
            }
        }
    };
}

named!(Un: Neg "neg", Abs "abs", Not "not", Sqrt "sqrt", Floor "floor", Ceil "ceil", Trunc "trunc", Round "round");
named!(Bin: Add "add", Sub "sub", Mul "mul", Div "div", And "and", Or "or", Xor "xor", Shl "shl", Shr "shr", FloorDiv "floor_div", Mod "mod",
    Fmod "fmod");
named!(Cmp: Eq "eq", Ne "ne", Lt "lt", Le "le");
named!(HostFn:
    Pow "pow", Hypot "hypot", Atan2 "atan2", Fmod "fmod", Tan "tan", Asin "asin", Acos "acos", Atan "atan", Sinh "sinh", Cosh "cosh",
    Asinh "asinh", Acosh "acosh", Atanh "atanh", Erf "erf", Erfc "erfc", ErfInv "erfinv", NdTri "ndtri", GammaLn "gammaln", Digamma "digamma",
    Trigamma "trigamma", Tetragamma "tetragamma", Sin "sin", Cos "cos", NormalCos "normal_cos", NormalSin "normal_sin", Exp "exp",
    Exp2 "exp2", Expm1 "expm1", Log "log", Log2 "log2", Log10 "log10", Log1p "log1p", Tanh "tanh");
