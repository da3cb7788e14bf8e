"""Elementwise functions. Made from the table: see tests/test_stubs.py."""

from collections.abc import Callable
from typing import Any

from .variable import Variable

ALIASES: dict[str, str]
EXTENDED: tuple[str, ...]
ROWS: dict[str, Callable[..., Variable]]

def add(x: Any, y: Any, /) -> Variable:
    """`x + y`; of bools: or."""

def sub(x: Any, y: Any, /) -> Variable:
    """`x − y`; bools are refused."""

def mul(x: Any, y: Any, /) -> Variable:
    """`x · y`; of bools: and."""

def fma(x: Any, y: Any, z: Any, /) -> Variable:
    """`x · y + z`, rounded once where the processor can, else twice."""

def div(x: Any, y: Any, /) -> Variable:
    """`x / y`, true division: integers give floats."""

def floordiv(x: Any, y: Any, /) -> Variable:
    """`⌊x / y⌋`, as Python's `//`; integers by 0 give 0. Its gradient is zero."""

def mod(x: Any, y: Any, /) -> Variable:
    """`x − ⌊x / y⌋·y`, with the sign of y as Python's `%`; integers by 0 give 0."""

def fmod(x: Any, y: Any, /) -> Variable:
    """Remainder with the sign of x, as C's `fmod`; integers by 0 give 0."""

def neg(x: Any, /) -> Variable:
    """`−x`; bools are refused."""

def abs(x: Any, /) -> Variable:
    """`|x|`; the derivative at 0 is 0."""

def sign(x: Any, /) -> Variable:
    """−1, 0 or 1, NaN where x is NaN; bools are refused. Its gradient is zero."""

def square(x: Any, /) -> Variable:
    """`x²`"""

def sqrt(x: Any, /) -> Variable:
    """`√x`"""

def rsqrt(x: Any, /) -> Variable:
    """`1 / √x`"""

def reciprocal(x: Any, /) -> Variable:
    """`1 / x`; integers give floats."""

def minimum(x: Any, y: Any, /) -> Variable:
    """The lesser of x and y; NaN wins. The cotangent goes to the selected input; where the two are equal, half of it to each."""

def maximum(x: Any, y: Any, /) -> Variable:
    """The greater of x and y; NaN wins. The cotangent goes to the selected input; where the two are equal, half of it to each."""

def hypot(x: Any, y: Any, /) -> Variable:
    """`√(x² + y²)` without overflow; the derivative at the origin is 0."""

def atan2(y: Any, x: Any, /) -> Variable:
    """The angle of the point (x, y), in (−π, π]."""

def copysign(x: Any, y: Any, /) -> Variable:
    """|x| with the sign of y."""

def eq(x: Any, y: Any, /) -> Variable:
    """`x == y`"""

def ne(x: Any, y: Any, /) -> Variable:
    """`x != y`"""

def lt(x: Any, y: Any, /) -> Variable:
    """`x < y`"""

def le(x: Any, y: Any, /) -> Variable:
    """`x <= y`"""

def gt(x: Any, y: Any, /) -> Variable:
    """`x > y`"""

def ge(x: Any, y: Any, /) -> Variable:
    """`x >= y`"""

def isnan(x: Any, /) -> Variable:
    """True where x is NaN."""

def isinf(x: Any, /) -> Variable:
    """True where x is ∞ or −∞."""

def isfinite(x: Any, /) -> Variable:
    """True where x is neither NaN nor infinite."""

def signbit(x: Any, /) -> Variable:
    """True where the sign bit is set: negative numbers, −0 and negative NaN."""

def logical_and(x: Any, y: Any, /) -> Variable:
    """Both x and y, as truth values."""

def logical_or(x: Any, y: Any, /) -> Variable:
    """x or y or both, as truth values."""

def logical_xor(x: Any, y: Any, /) -> Variable:
    """One of x and y, not both, as truth values."""

def logical_not(x: Any, /) -> Variable:
    """True where x is 0 or false."""

def bit_and(x: Any, y: Any, /) -> Variable:
    """Bits set in both; of bools: and."""

def bit_or(x: Any, y: Any, /) -> Variable:
    """Bits set in either; of bools: or."""

def bit_xor(x: Any, y: Any, /) -> Variable:
    """Bits set in one; of bools: exclusive or."""

def invert(x: Any, /) -> Variable:
    """Every bit turned; of bools: not."""

def shift_left(x: Any, y: Any, /) -> Variable:
    """`x · 2ʸ` by shifting bits out on the left; 0 where y is negative or not less than the width."""

def shift_right(x: Any, y: Any, /) -> Variable:
    """`⌊x / 2ʸ⌋` by shifting bits out on the right; the sign alone (0 or −1) where y is negative or not less than the width."""

def floor(x: Any, /) -> Variable:
    """Largest integer not above x. Its gradient is zero."""

def ceil(x: Any, /) -> Variable:
    """Smallest integer not below x. Its gradient is zero."""

def trunc(x: Any, /) -> Variable:
    """x without its fraction. Its gradient is zero."""

def exp(x: Any, /) -> Variable:
    """`eˣ`"""

def exp2(x: Any, /) -> Variable:
    """`2ˣ`"""

def expm1(x: Any, /) -> Variable:
    """`eˣ − 1`, exact near 0."""

def log(x: Any, /) -> Variable:
    """Natural logarithm."""

def log2(x: Any, /) -> Variable:
    """Logarithm of base 2."""

def log10(x: Any, /) -> Variable:
    """Logarithm of base 10."""

def log1p(x: Any, /) -> Variable:
    """`log(1 + x)`, exact near 0."""

def logaddexp(x: Any, y: Any, /) -> Variable:
    """`log(eˣ + eʸ)` without overflow."""

def sin(x: Any, /) -> Variable:
    """Sine."""

def cos(x: Any, /) -> Variable:
    """Cosine."""

def tan(x: Any, /) -> Variable:
    """Tangent."""

def asin(x: Any, /) -> Variable:
    """Arcsine, in [−π/2, π/2]."""

def acos(x: Any, /) -> Variable:
    """Arccosine, in [0, π]."""

def atan(x: Any, /) -> Variable:
    """Arctangent, in (−π/2, π/2)."""

def sinh(x: Any, /) -> Variable:
    """Hyperbolic sine."""

def cosh(x: Any, /) -> Variable:
    """Hyperbolic cosine."""

def tanh(x: Any, /) -> Variable:
    """Hyperbolic tangent."""

def asinh(x: Any, /) -> Variable:
    """Inverse hyperbolic sine."""

def acosh(x: Any, /) -> Variable:
    """Inverse hyperbolic cosine."""

def atanh(x: Any, /) -> Variable:
    """Inverse hyperbolic tangent."""

def sigmoid(x: Any, /) -> Variable:
    """`1 / (1 + e⁻ˣ)`"""

def softplus(x: Any, /) -> Variable:
    """`log(1 + eˣ)` without overflow."""

def log_sigmoid(x: Any, /) -> Variable:
    """`log(1 / (1 + e⁻ˣ)) = −softplus(−x)`"""

def relu(x: Any, /) -> Variable:
    """`maximum(x, 0)`; the derivative at 0 is 1/2."""

def silu(x: Any, /) -> Variable:
    """`x · sigmoid(x)`, also known as swish."""

def erf(x: Any, /) -> Variable:
    """Error function `2/√π ∫₀ˣ e^−t² dt`."""

def erfc(x: Any, /) -> Variable:
    """`1 − erf(x)`, exact for large x."""

def erfinv(x: Any, /) -> Variable:
    """Inverse of erf."""

def gammaln(x: Any, /) -> Variable:
    """`log |Γ(x)|`; ∞ at 0 and the negative integers."""

def digamma(x: Any, /) -> Variable:
    """`ψ(x)`, the derivative of gammaln. Near its zero at 1.4616… the error is absolute."""

def trigamma(x: Any, /) -> Variable:
    """`ψ′(x)`, the derivative of digamma."""

def tetragamma(x: Any, /) -> Variable:
    """`ψ″(x)`, the derivative of trigamma. Its own derivative is not written."""

def xlogy(x: Any, y: Any, /) -> Variable:
    """`x · log y`, and 0 where x = 0."""

def deg2rad(x: Any, /) -> Variable:
    """Degrees to radians, `x · π/180`."""

def rad2deg(x: Any, /) -> Variable:
    """Radians to degrees, `x · 180/π`."""

def subtract(x: Any, y: Any, /) -> Variable:
    """`x − y`; bools are refused."""

def multiply(x: Any, y: Any, /) -> Variable:
    """`x · y`; of bools: and."""

def divide(x: Any, y: Any, /) -> Variable:
    """`x / y`, true division: integers give floats."""

def true_divide(x: Any, y: Any, /) -> Variable:
    """`x / y`, true division: integers give floats."""

def true_div(x: Any, y: Any, /) -> Variable:
    """`x / y`, true division: integers give floats."""

def negative(x: Any, /) -> Variable:
    """`−x`; bools are refused."""

def absolute(x: Any, /) -> Variable:
    """`|x|`; the derivative at 0 is 0."""

def remainder(x: Any, y: Any, /) -> Variable:
    """`x − ⌊x / y⌋·y`, with the sign of y as Python's `%`; integers by 0 give 0."""

def floor_divide(x: Any, y: Any, /) -> Variable:
    """`⌊x / y⌋`, as Python's `//`; integers by 0 give 0. Its gradient is zero."""

def int_div(x: Any, y: Any, /) -> Variable:
    """`⌊x / y⌋`, as Python's `//`; integers by 0 give 0. Its gradient is zero."""

def equal(x: Any, y: Any, /) -> Variable:
    """`x == y`"""

def not_equal(x: Any, y: Any, /) -> Variable:
    """`x != y`"""

def less(x: Any, y: Any, /) -> Variable:
    """`x < y`"""

def less_equal(x: Any, y: Any, /) -> Variable:
    """`x <= y`"""

def greater(x: Any, y: Any, /) -> Variable:
    """`x > y`"""

def greater_equal(x: Any, y: Any, /) -> Variable:
    """`x >= y`"""

def arcsin(x: Any, /) -> Variable:
    """Arcsine, in [−π/2, π/2]."""

def arccos(x: Any, /) -> Variable:
    """Arccosine, in [0, π]."""

def arctan(x: Any, /) -> Variable:
    """Arctangent, in (−π/2, π/2)."""

def arctan2(y: Any, x: Any, /) -> Variable:
    """The angle of the point (x, y), in (−π, π]."""

def arcsinh(x: Any, /) -> Variable:
    """Inverse hyperbolic sine."""

def arccosh(x: Any, /) -> Variable:
    """Inverse hyperbolic cosine."""

def arctanh(x: Any, /) -> Variable:
    """Inverse hyperbolic tangent."""

def sgn(x: Any, /) -> Variable:
    """−1, 0 or 1, NaN where x is NaN; bools are refused. Its gradient is zero."""

def sqr(x: Any, /) -> Variable:
    """`x²`"""

def bitwise_and(x: Any, y: Any, /) -> Variable:
    """Bits set in both; of bools: and."""

def bitwise_or(x: Any, y: Any, /) -> Variable:
    """Bits set in either; of bools: or."""

def bitwise_xor(x: Any, y: Any, /) -> Variable:
    """Bits set in one; of bools: exclusive or."""

def bitwise_not(x: Any, /) -> Variable:
    """Every bit turned; of bools: not."""

def bitwise_invert(x: Any, /) -> Variable:
    """Every bit turned; of bools: not."""

def left_shift(x: Any, y: Any, /) -> Variable:
    """`x · 2ʸ` by shifting bits out on the left; 0 where y is negative or not less than the width."""

def right_shift(x: Any, y: Any, /) -> Variable:
    """`⌊x / 2ʸ⌋` by shifting bits out on the right; the sign alone (0 or −1) where y is negative or not less than the width."""

def bitwise_left_shift(x: Any, y: Any, /) -> Variable:
    """`x · 2ʸ` by shifting bits out on the left; 0 where y is negative or not less than the width."""

def bitwise_right_shift(x: Any, y: Any, /) -> Variable:
    """`⌊x / 2ʸ⌋` by shifting bits out on the right; the sign alone (0 or −1) where y is negative or not less than the width."""

def fix(x: Any, /) -> Variable:
    """x without its fraction. Its gradient is zero."""

def expit(x: Any, /) -> Variable:
    """`1 / (1 + e⁻ˣ)`"""

def psi(x: Any, /) -> Variable:
    """`ψ(x)`, the derivative of gammaln. Near its zero at 1.4616… the error is absolute."""

def degrees(x: Any, /) -> Variable:
    """Radians to degrees, `x · 180/π`."""

def radians(x: Any, /) -> Variable:
    """Degrees to radians, `x · π/180`."""

def lgamma(x: Any, /) -> Variable:
    """`log |Γ(x)|`; ∞ at 0 and the negative integers."""
