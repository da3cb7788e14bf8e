//! THE elementwise table: one row per function. How a row reads: see `table.rs`.

use super::table::{Bools, Outcome, Row, Rule, plain};
use super::walk::Operands;
use super::{Host, Int, Lanes, Term, math};
use crate::types::Cast;
use crate::types::{Array, Element};
use std::f64::consts::{FRAC_2_SQRT_PI, LN_2, LN_10};

/// √(2π)
const SQRT_TAU: f64 = 2.5066282746310002;

const RADIANS: f64 = std::f64::consts::PI / 180.0;

impl ElemOp {
    /// What is known of it at run time.
    pub fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }
    /// Name in Python and in the text form.
    pub fn name(self) -> &'static str {
        self.row().name
    }
    /// The op of a name.
    pub fn parse(name: &str) -> Option<ElemOp> {
        ROWS.iter().find(|r| r.name == name).map(|r| r.op)
    }
    /// Number of inputs.
    pub fn arity(self) -> usize {
        self.row().arity()
    }
    /// What it computes; the first line stands alone.
    pub fn doc(self) -> &'static str {
        self.row().doc.trim()
    }
}

rows! { (c, g, out)
    /// `x + y`; of bools: or.
    Add add(x, y): Same, ulp 0.5, domain "all",
        float [c.add(x, y)] int [x.plus(y)] bool [x | y],
        grad { x: g, y: g },
        test (1.5, 2.25) (-3.0, 0.125) (0.0, -0.0);
    /// `x − y`; bools are refused.
    Sub sub(x, y): Same, ulp 0.5, domain "all",
        float [c.sub(x, y)] int [x.minus(y)] bool !,
        grad { x: g, y: -g },
        test (1.5, 2.25) (-3.0, 0.125) (0.0, 1.0);
    /// `x · y`; of bools: and.
    Mul mul(x, y): Same, ulp 0.5, domain "all",
        float [c.mul(x, y)] int [x.times(y)] bool [x & y],
        grad { x: g * y, y: g * x },
        test (1.5, 2.25) (-3.0, 0.125) (0.0, 7.0);
    /// `x · y + z`, rounded once where the processor can, else twice.
    Fma fma(x, y, z): Same, ulp 0.5, domain "all",
        float [c.fma(x, y, z)] int [x.times(y).plus(z)],
        grad { x: g * y, y: g * x, z: g },
        test (1.5, 2.25, -1.0) (-3.0, 0.125, 2.0) (0.0, 7.0, 0.5);
    /// `x / y`, true division: integers give floats.
    Div div(x, y): Float, ulp 0.5, domain "y ≠ 0",
        float [c.div(x, y)],
        grad { x: g / y, y: -(g / y) * out },
        test (1.5, 2.25) (-3.0, 0.125) (0.0, 7.0) (1.0, -3.0);
    /// `⌊x / y⌋`, as Python's `//`; integers by 0 give 0. Its gradient is zero.
    FloorDiv floordiv(x, y): Same, ulp 0.5, domain "y ≠ 0",
        float [math::floor_div(c, x, y)] int [x.floor_div(y)],
        test (7.5, 2.0) (-7.5, 2.0) (7.5, -2.0) (-7.5, -2.0) (6.5, 3.0);
    /// `x − ⌊x / y⌋·y`, with the sign of y as Python's `%`; integers by 0 give 0.
    Mod r#mod(x, y): Same, ulp 0.5, domain "y ≠ 0",
        float [math::floor_mod(c, x, y)] int [x.floor_mod(y)],
        grad { x: g, y: -g * x.floordiv(y) },
        test (7.5, 2.0) (-7.5, 2.0) (7.5, -2.0) (-7.5, -2.0);
    /// Remainder with the sign of x, as C's `fmod`; integers by 0 give 0.
    Fmod fmod(x, y): Same, ulp 0.5, domain "y ≠ 0",
        float [c.fmod(x, y)] int [x.remainder(y)],
        grad { x: g, y: -g * (x / y).trunc() },
        test (7.5, 2.0) (-7.5, 2.0) (7.5, -2.0) (-7.5, -2.0);
    /// `xʸ`. Integers wrap; a negative integer exponent gives 0, but for the bases 1 and −1. The
    /// derivative of `x⁰` is 0 at 0, and that by the exponent is 0 where x <= 0.
    Pow pow(x, y): Same, ulp 1.0, domain "x > 0, or y an integer",
        float [c.pow(x, y)] int [x.power(y)],
        grad {
            x: g * y * x.pow(x.eq(x.num(0.0)).pick(y.eq(y.num(0.0)).pick(y.num(1.0), y - 1.0), y - 1.0)),
            y: g * out * x.gt(x.num(0.0)).pick(x, x.num(1.0)).log()
        },
        test (1.5, 2.25) (2.0, -3.0) (0.5, 0.5) (3.0, 0.0);
    /// `−x`; bools are refused.
    Neg neg(x): Same, ulp 0.5, domain "all",
        float [c.neg(x)] int [T::ZERO.minus(x)] bool !,
        grad { x: -g },
        test (1.5) (-2.0) (0.0);
    /// `|x|`; the derivative at 0 is 0.
    Abs abs(x): Same, ulp 0.5, domain "all",
        float [c.abs(x)] int [x.magnitude()] bool [x],
        grad { x: g * x.sign() },
        test (1.5) (-2.0);
    /// −1, 0 or 1, NaN where x is NaN; bools are refused. Its gradient is zero.
    Sign sign(x): Same, ulp 0.0, domain "all",
        float [math::sign(c, x)] int [x.sign()] bool !,
        test (1.5) (-2.0);
    /// `x²`
    Square square(x): Same, ulp 0.5, domain "all",
        float [c.mul(x, x)] int [x.times(x)],
        grad { x: g * x * 2.0 },
        test (1.5) (-2.0) (0.0);
    /// `√x`
    Sqrt sqrt(x): Float, ulp 0.5, domain "x >= 0",
        float [c.sqrt(x)],
        grad { x: g / (out * 2.0) },
        test (0.25) (2.0) (100.0);
    /// `1 / √x`
    Rsqrt rsqrt(x): Float, ulp 1.5, domain "x > 0",
        float [c.div(c.num(1.0), c.sqrt(x))],
        grad { x: g * -0.5 * out * out * out },
        test (0.25) (2.0) (100.0);
    /// `1 / x`; integers give floats.
    Reciprocal reciprocal(x): Float, ulp 0.5, domain "x ≠ 0",
        float [c.div(c.num(1.0), x)],
        grad { x: -g * out * out },
        test (0.25) (-3.0) (100.0);

    /// The lesser of x and y; NaN wins. The cotangent goes to the selected input; where the two are equal, half of it to each.
    Minimum minimum(x, y): Same, ulp 0.0, domain "all",
        float [math::minimum(c, x, y)] int [x.min(y)] bool [x & y],
        grad { x: x.le(y).keep(y.le(x).share(g)), y: y.le(x).keep(x.le(y).share(g)) },
        test (1.5, 2.25) (3.0, -1.0);
    /// The greater of x and y; NaN wins. The cotangent goes to the selected input; where the two are equal, half of it to each.
    Maximum maximum(x, y): Same, ulp 0.0, domain "all",
        float [math::maximum(c, x, y)] int [x.max(y)] bool [x | y],
        grad { x: x.ge(y).keep(y.ge(x).share(g)), y: y.ge(x).keep(x.ge(y).share(g)) },
        test (1.5, 2.25) (3.0, -1.0);
    /// x held between lo and hi: `minimum(maximum(x, lo), hi)`, the gradient of which it has: half of the cotangent goes to x at a bound.
    Clip clip(x, lo, hi): Same, ulp 0.0, domain "lo <= hi",
        float [math::minimum(c, math::maximum(c, x, lo), hi)] int [x.max(lo).min(hi)] bool [(x | lo) & hi],
        grad {
            x: x.ge(lo).keep(lo.ge(x).share(x.maximum(lo).le(hi).keep(hi.le(x.maximum(lo)).share(g)))),
            lo: lo.ge(x).keep(x.ge(lo).share(x.maximum(lo).le(hi).keep(hi.le(x.maximum(lo)).share(g)))),
            hi: hi.le(x.maximum(lo)).keep(x.maximum(lo).le(hi).share(g))
        },
        test (0.5, -1.0, 1.0) (-2.0, -1.0, 1.0) (5.0, -1.0, 1.0);
    /// `√(x² + y²)` without overflow; the derivative at the origin is 0.
    Hypot hypot(x, y): Float, ulp 1.0, domain "all",
        float [c.hypot(x, y)],
        grad {
            x: g * (x / out.eq(out.num(0.0)).pick(out.num(1.0), out)),
            y: g * (y / out.eq(out.num(0.0)).pick(out.num(1.0), out))
        },
        test (3.0, 4.0) (-0.5, 1.25) (0.0, 2.0);
    /// The angle of the point (x, y), in (−π, π].
    Atan2 atan2(y, x): Float, ulp 1.0, domain "not both 0",
        float [c.atan2(y, x)],
        grad { y: g * x / (x * x + y * y), x: -g * y / (x * x + y * y) },
        test (1.0, 2.0) (-1.0, 2.0) (1.0, -2.0) (-0.5, -0.25);
    /// |x| with the sign of y.
    CopySign copysign(x, y): Float, ulp 0.0, domain "all",
        float [c.copysign(x, y)],
        grad { x: g * x.num(1.0).copysign(x) * x.num(1.0).copysign(y) },
        test (1.5, -2.0) (-1.5, 2.0) (-1.5, -2.0);

    /// `x == y`
    Eq eq(x, y): Bool, ulp 0.0, domain "all",
        float [c.eq(x, y)] int [x == y] bool [x == y],
        test (1.5, 1.5) (1.5, 2.0);
    /// `x != y`
    Ne ne(x, y): Bool, ulp 0.0, domain "all",
        float [c.ne(x, y)] int [x != y] bool [x != y],
        test (1.5, 1.5) (1.5, 2.0);
    /// `x < y`
    Lt lt(x, y): Bool, ulp 0.0, domain "all",
        float [c.lt(x, y)] int [x < y] bool [!x & y],
        test (1.5, 1.5) (1.5, 2.0) (3.0, 2.0);
    /// `x <= y`
    Le le(x, y): Bool, ulp 0.0, domain "all",
        float [c.le(x, y)] int [x <= y] bool [!x | y],
        test (1.5, 1.5) (1.5, 2.0) (3.0, 2.0);
    /// `x > y`
    Gt gt(x, y): Bool, ulp 0.0, domain "all",
        float [c.lt(y, x)] int [x > y] bool [x & !y],
        test (1.5, 1.5) (1.5, 2.0) (3.0, 2.0);
    /// `x >= y`
    Ge ge(x, y): Bool, ulp 0.0, domain "all",
        float [c.le(y, x)] int [x >= y] bool [x | !y],
        test (1.5, 1.5) (1.5, 2.0) (3.0, 2.0);
    /// True where x is NaN.
    IsNan isnan(x): Bool, ulp 0.0, domain "all",
        float [c.ne(x, x)] int [false] bool [false],
        test (1.5) (0.0);
    /// True where x is ∞ or −∞.
    IsInf isinf(x): Bool, ulp 0.0, domain "all",
        float [c.eq(c.abs(x), c.num(f64::INFINITY))] int [false] bool [false],
        test (1.5) (0.0);
    /// True where x is neither NaN nor infinite.
    IsFinite isfinite(x): Bool, ulp 0.0, domain "all",
        float [c.lt(c.abs(x), c.num(f64::INFINITY))] int [true] bool [true],
        test (1.5) (0.0);
    /// True where the sign bit is set: negative numbers, −0 and negative NaN.
    SignBit signbit(x): Bool, ulp 0.0, domain "all",
        float [c.signbit(x)] int [x < T::ZERO] bool [false],
        test (1.5) (-0.5);

    /// Both x and y, as truth values.
    And logical_and(x, y): Logic, ulp 0.0, domain "all",
        bool [x & y],
        test (1.5, 0.0) (2.0, 1.0);
    /// x or y or both, as truth values.
    Or logical_or(x, y): Logic, ulp 0.0, domain "all",
        bool [x | y],
        test (1.5, 0.0) (0.0, 0.0);
    /// One of x and y, not both, as truth values.
    Xor logical_xor(x, y): Logic, ulp 0.0, domain "all",
        bool [x ^ y],
        test (1.5, 0.0) (2.0, 1.0);
    /// True where x is 0 or false.
    Not logical_not(x): Logic, ulp 0.0, domain "all",
        bool [!x],
        test (1.5) (0.0);
    /// Bits set in both; of bools: and.
    BitAnd bit_and(x, y): Int, ulp 0.0, domain "all",
        int [x & y] bool [x & y],
        test (12, 10) (7, 1);
    /// Bits set in either; of bools: or.
    BitOr bit_or(x, y): Int, ulp 0.0, domain "all",
        int [x | y] bool [x | y],
        test (12, 10) (7, 1);
    /// Bits set in one; of bools: exclusive or.
    BitXor bit_xor(x, y): Int, ulp 0.0, domain "all",
        int [x ^ y] bool [x ^ y],
        test (12, 10) (7, 1);
    /// Every bit turned; of bools: not.
    Invert invert(x): Int, ulp 0.0, domain "all",
        int [!x] bool [!x],
        test (12) (0);
    /// `x · 2ʸ` by shifting bits out on the left; 0 where y is negative or not less than the width.
    ShiftLeft shift_left(x, y): Int, ulp 0.0, domain "0 <= y < width",
        int [x.shift_left(y)],
        test (3, 2) (1, 0);
    /// `⌊x / 2ʸ⌋` by shifting bits out on the right; the sign alone (0 or −1) where y is negative or not less than the width.
    ShiftRight shift_right(x, y): Int, ulp 0.0, domain "0 <= y < width",
        int [x.shift_right(y)],
        test (13, 2) (1, 0);

    /// Largest integer not above x. Its gradient is zero.
    Floor floor(x): Same, ulp 0.0, domain "all",
        float [c.floor(x)] int [x] bool [x],
        test (1.75) (-1.25) (0.5);
    /// Smallest integer not below x. Its gradient is zero.
    Ceil ceil(x): Same, ulp 0.0, domain "all",
        float [c.ceil(x)] int [x] bool [x],
        test (1.75) (-1.25) (0.5);
    /// x without its fraction. Its gradient is zero.
    Trunc trunc(x): Same, ulp 0.0, domain "all",
        float [c.trunc(x)] int [x] bool [x],
        test (1.75) (-1.25) (0.75);
    /// Nearest integer, halves to even. Its gradient is zero.
    Round round(x): Same, ulp 0.0, domain "all",
        float [c.round(x)] int [x] bool [x],
        test (1.75) (-1.25) (0.25);

    /// `eˣ`
    Exp exp(x): Float, ulp 1.0, domain "all",
        float [c.exp(x)],
        grad { x: g * out },
        test (0.0) (1.0) (-2.5) (20.0);
    /// `2ˣ`
    Exp2 exp2(x): Float, ulp 1.0, domain "all",
        float [c.exp2(x)],
        grad { x: g * out * LN_2 },
        test (0.0) (1.5) (-2.5) (20.0);
    /// `eˣ − 1`, exact near 0.
    Expm1 expm1(x): Float, ulp 1.5, domain "all",
        float [c.expm1(x)],
        grad { x: g * x.exp() },
        test (0.0009765625) (1.0) (-2.5) (20.0);
    /// Natural logarithm.
    Log log(x): Float, ulp 1.0, domain "x > 0",
        float [c.log(x)],
        grad { x: g / x },
        test (0.5) (1.0) (2.5) (1000.0);
    /// Logarithm of base 2.
    Log2 log2(x): Float, ulp 1.0, domain "x > 0",
        float [c.log2(x)],
        grad { x: g / (x * LN_2) },
        test (0.5) (1.0) (2.5) (1000.0);
    /// Logarithm of base 10.
    Log10 log10(x): Float, ulp 1.0, domain "x > 0",
        float [c.log10(x)],
        grad { x: g / (x * LN_10) },
        test (0.5) (1.0) (2.5) (1000.0);
    /// `log(1 + x)`, exact near 0.
    Log1p log1p(x): Float, ulp 1.0, domain "x > −1",
        float [c.log1p(x)],
        grad { x: g / (x + 1.0) },
        test (0.0009765625) (-0.5) (2.5) (1000.0);
    /// `log(eˣ + eʸ)` without overflow.
    LogAddExp logaddexp(x, y): Float, ulp 2.0, domain "all",
        float [math::logaddexp(c, x, y)],
        grad {
            x: g * x.isinf().pick(x.eq(y).pick(x.num(0.0), x - y), x - y).sigmoid(),
            y: g * x.isinf().pick(x.eq(y).pick(x.num(0.0), y - x), y - x).sigmoid()
        },
        test (1.0, 2.0) (-3.0, 0.5) (100.0, 100.0) (1.5, 1.5);

    /// Sine.
    Sin sin(x): Float, ulp 1.0, domain "all",
        float [c.sin(x)],
        grad { x: g * x.cos() },
        test (0.5) (-2.0) (10.0);
    /// Cosine.
    Cos cos(x): Float, ulp 1.0, domain "all",
        float [c.cos(x)],
        grad { x: -g * x.sin() },
        test (0.5) (-2.0) (10.0);
    /// Tangent.
    Tan tan(x): Float, ulp 1.0, domain "x ≠ π/2 + kπ",
        float [c.tan(x)],
        grad { x: g * (out * out + 1.0) },
        test (0.5) (-1.0) (2.5);
    /// Arcsine, in [−π/2, π/2].
    Asin asin(x): Float, ulp 1.0, domain "−1 <= x <= 1",
        float [c.asin(x)],
        grad { x: g * ((-x + 1.0) * (x + 1.0)).rsqrt() },
        test (0.5) (-0.75) (0.0);
    /// Arccosine, in [0, π].
    Acos acos(x): Float, ulp 1.0, domain "−1 <= x <= 1",
        float [c.acos(x)],
        grad { x: -g * ((-x + 1.0) * (x + 1.0)).rsqrt() },
        test (0.5) (-0.75) (0.0);
    /// Arctangent, in (−π/2, π/2).
    Atan atan(x): Float, ulp 1.0, domain "all",
        float [c.atan(x)],
        grad { x: g / (x * x + 1.0) },
        test (0.5) (-2.0) (10.0);
    /// Hyperbolic sine.
    Sinh sinh(x): Float, ulp 2.0, domain "all",
        float [c.sinh(x)],
        grad { x: g * x.cosh() },
        test (0.5) (-2.0) (10.0);
    /// Hyperbolic cosine.
    Cosh cosh(x): Float, ulp 2.0, domain "all",
        float [c.cosh(x)],
        grad { x: g * x.sinh() },
        test (0.5) (-2.0) (10.0);
    /// Hyperbolic tangent.
    Tanh tanh(x): Float, ulp 2.0, domain "all",
        float [c.tanh(x)],
        grad { x: g * (-(out * out) + 1.0) },
        test (0.5) (-2.0) (0.0078125);
    /// Inverse hyperbolic sine.
    Asinh asinh(x): Float, ulp 2.0, domain "all",
        float [c.asinh(x)],
        grad { x: g / x.hypot(x.num(1.0)) },
        test (0.5) (-2.0) (100.0);
    /// Inverse hyperbolic cosine.
    Acosh acosh(x): Float, ulp 2.0, domain "x >= 1",
        float [c.acosh(x)],
        grad { x: g / ((x - 1.0).sqrt() * (x + 1.0).sqrt()) },
        test (1.5) (2.0) (100.0);
    /// Inverse hyperbolic tangent.
    Atanh atanh(x): Float, ulp 2.0, domain "−1 < x < 1",
        float [c.atanh(x)],
        grad { x: g / ((-x + 1.0) * (x + 1.0)) },
        test (0.5) (-0.75) (0.0078125);

    /// `1 / (1 + e⁻ˣ)`
    Sigmoid sigmoid(x): Float, ulp 2.0, domain "all",
        float [c.sigmoid(x)],
        grad { x: g * out * (-out + 1.0) },
        test (0.0) (2.5) (-2.5) (-30.0);
    /// `log(1 + eˣ)` without overflow.
    Softplus softplus(x): Float, ulp 2.0, domain "all",
        float [math::softplus(c, x)],
        grad { x: g * x.sigmoid() },
        test (0.0) (2.5) (-2.5) (-30.0) (40.0);
    /// `log(1 / (1 + e⁻ˣ)) = −softplus(−x)`
    LogSigmoid log_sigmoid(x): Float, ulp 2.0, domain "all",
        float [c.neg(math::softplus(c, c.neg(x)))],
        grad { x: g * (-x).sigmoid() },
        test (0.0) (2.5) (-2.5) (30.0) (-40.0);
    /// `maximum(x, 0)`; the derivative at 0 is 1/2.
    Relu relu(x): Same, ulp 0.0, domain "all",
        float [math::maximum(c, x, c.num(0.0))] int [x.max(T::ZERO)] bool [x],
        grad { x: x.ge(x.num(0.0)).keep(x.le(x.num(0.0)).share(g)) },
        test (1.5) (-2.0);
    /// `x · sigmoid(x)`, also known as swish.
    Silu silu(x): Float, ulp 3.0, domain "all",
        float [c.mul(x, c.sigmoid(x))],
        grad { x: g * x.sigmoid() * (x * (-x).sigmoid() + 1.0) },
        test (0.0) (2.5) (-2.5) (-30.0) (40.0);
    /// Error function `2/√π ∫₀ˣ e^−t² dt`.
    Erf erf(x): Float, ulp 1.0, domain "all",
        float [c.erf(x)],
        grad { x: g * (-(x * x)).exp() * FRAC_2_SQRT_PI },
        test (0.5) (-1.25) (2.0) (0.0078125);
    /// `1 − erf(x)`, exact for large x.
    Erfc erfc(x): Float, ulp 2.0, domain "all",
        float [c.erfc(x)],
        grad { x: -g * (-(x * x)).exp() * FRAC_2_SQRT_PI },
        test (0.5) (-1.25) (2.0) (5.0);
    /// Inverse of erf.
    ErfInv erfinv(x): Float, ulp 6.0, domain "−1 < x < 1",
        float [c.erfinv(x)],
        grad { x: g * (out * out).exp() / FRAC_2_SQRT_PI },
        test (0.5) (-0.875) (0.0078125) (0.96875);
    /// Quantile of the normal distribution: the share x of all numbers is below it.
    NdTri ndtri(x): Float, ulp 6.0, domain "0 < x < 1",
        float [c.ndtri(x)],
        grad { x: g * (out * out * 0.5).exp() * SQRT_TAU },
        test (0.5) (0.125) (0.9375) (0.0625);
    /// `log |Γ(x)|`; ∞ at 0 and the negative integers.
    GammaLn gammaln(x): Float, ulp 4.0, domain "x > 0, or not an integer",
        float [c.gammaln(x)],
        grad { x: g * x.digamma() },
        test (0.5) (3.5) (-1.5) (30.0);
    /// `ψ(x)`, the derivative of gammaln. Near its zero at 1.4616… the error is absolute.
    Digamma digamma(x): Float, ulp 8.0, domain "x > 0, or not an integer",
        float [c.digamma(x)],
        grad { x: g * x.trigamma() },
        test (0.5) (3.5) (-1.75) (30.0) (0.25);
    /// `ψ′(x)`, the derivative of digamma.
    Trigamma trigamma(x): Float, ulp 8.0, domain "x > 0, or not an integer",
        float [c.trigamma(x)],
        grad { x: g * x.tetragamma() },
        test (0.5) (3.5) (-1.75) (30.0) (0.25);
    /// `ψ″(x)`, the derivative of trigamma. Its own derivative is not written.
    Tetragamma tetragamma(x): Float, ulp 8.0, domain "x > 0, or not an integer",
        float [c.tetragamma(x)],
        grad !,
        test (0.5) (3.5) (-1.75) (30.0) (0.25);
    /// `x · log y`, and 0 where x = 0.
    XLogY xlogy(x, y): Float, ulp 2.0, domain "y > 0, or x = 0",
        float [math::xlogy(c, x, y)],
        grad {
            x: g * y.log(),
            y: g * x / y.eq(y.num(0.0)).pick(x.eq(x.num(0.0)).pick(x.num(1.0), y), y)
        },
        test (1.5, 2.25) (-3.0, 0.125) (0.0, 7.0);
    /// Degrees to radians, `x · π/180`.
    Deg2Rad deg2rad(x): Float, ulp 1.5, domain "all",
        float [c.mul(x, c.num(RADIANS))],
        grad { x: g * RADIANS },
        test (45.0) (-200.0);
    /// Radians to degrees, `x · 180/π`.
    Rad2Deg rad2deg(x): Float, ulp 1.5, domain "all",
        float [c.mul(x, c.num(1.0 / RADIANS))],
        grad { x: g / RADIANS },
        test (0.5) (-2.0);
    /// x where cond is true (not 0), else y. Cotangents flow to the selected input alone.
    Where r#where(cond, x, y): Where, ulp 0.0, domain "all",
        float [c.select(c.ne(cond, c.num(0.0)), x, y)] int [if cond == T::ZERO { y } else { x }] bool [if cond { x } else { y }],
        grad { x: cond.keep(g), y: cond.pick(g.num(0.0), g) },
        test (1.0, 1.5, 2.5) (0.0, 1.5, 2.5);
}
