"""Elementwise functions. Made by tools/stubs.py."""
# ruff: noqa

from collections.abc import Callable

from .typing import Operand
from .variable import Variable

ALIASES: dict[str, str]
EXTENDED: tuple[str, ...]
ROWS: dict[str, Callable[..., Variable]]

def add(x: Operand, y: Operand, /) -> Variable:
    """`x + y`; of bools: or."""

def sub(x: Operand, y: Operand, /) -> Variable:
    """`x − y`; bools are refused."""

def mul(x: Operand, y: Operand, /) -> Variable:
    """`x · y`; of bools: and."""

def fma(x: Operand, y: Operand, z: Operand, /) -> Variable:
    """`x · y + z`, rounded once where the processor can, else twice."""

def div(x: Operand, y: Operand, /) -> Variable:
    """`x / y`, true division: integers give floats."""

def floordiv(x: Operand, y: Operand, /) -> Variable:
    """`⌊x / y⌋`, as Python's `//`; integers by 0 give 0. Its gradient is zero."""

def mod(x: Operand, y: Operand, /) -> Variable:
    """`x − ⌊x / y⌋·y`, with the sign of y as Python's `%`; integers by 0 give 0."""

def fmod(x: Operand, y: Operand, /) -> Variable:
    """Remainder with the sign of x, as C's `fmod`; integers by 0 give 0."""

def neg(x: Operand, /) -> Variable:
    """`−x`; bools are refused."""

def abs(x: Operand, /) -> Variable:
    """`|x|`; the derivative at 0 is 0."""

def sign(x: Operand, /) -> Variable:
    """−1, 0 or 1, NaN where x is NaN; bools are refused. Its gradient is zero."""

def square(x: Operand, /) -> Variable:
    """`x²`"""

def sqrt(x: Operand, /) -> Variable:
    """`√x`"""

def rsqrt(x: Operand, /) -> Variable:
    """`1 / √x`"""

def reciprocal(x: Operand, /) -> Variable:
    """`1 / x`; integers give floats."""

def minimum(x: Operand, y: Operand, /) -> Variable:
    """The lesser of x and y; NaN wins. The cotangent goes to the selected input; where the two are equal, half of it to each."""

def maximum(x: Operand, y: Operand, /) -> Variable:
    """The greater of x and y; NaN wins. The cotangent goes to the selected input; where the two are equal, half of it to each."""

def hypot(x: Operand, y: Operand, /) -> Variable:
    """`√(x² + y²)` without overflow; the derivative at the origin is 0."""

def atan2(y: Operand, x: Operand, /) -> Variable:
    """The angle of the point (x, y), in (−π, π]."""

def copysign(x: Operand, y: Operand, /) -> Variable:
    """|x| with the sign of y."""

def eq(x: Operand, y: Operand, /) -> Variable:
    """`x == y`"""

def ne(x: Operand, y: Operand, /) -> Variable:
    """`x != y`"""

def lt(x: Operand, y: Operand, /) -> Variable:
    """`x < y`"""

def le(x: Operand, y: Operand, /) -> Variable:
    """`x <= y`"""

def gt(x: Operand, y: Operand, /) -> Variable:
    """`x > y`"""

def ge(x: Operand, y: Operand, /) -> Variable:
    """`x >= y`"""

def isnan(x: Operand, /) -> Variable:
    """True where x is NaN."""

def isinf(x: Operand, /) -> Variable:
    """True where x is ∞ or −∞."""

def isfinite(x: Operand, /) -> Variable:
    """True where x is neither NaN nor infinite."""

def signbit(x: Operand, /) -> Variable:
    """True where the sign bit is set: negative numbers, −0 and negative NaN."""

def logical_and(x: Operand, y: Operand, /) -> Variable:
    """Both x and y, as truth values."""

def logical_or(x: Operand, y: Operand, /) -> Variable:
    """x or y or both, as truth values."""

def logical_xor(x: Operand, y: Operand, /) -> Variable:
    """One of x and y, not both, as truth values."""

def logical_not(x: Operand, /) -> Variable:
    """True where x is 0 or false."""

def bit_and(x: Operand, y: Operand, /) -> Variable:
    """Bits set in both; of bools: and."""

def bit_or(x: Operand, y: Operand, /) -> Variable:
    """Bits set in either; of bools: or."""

def bit_xor(x: Operand, y: Operand, /) -> Variable:
    """Bits set in one; of bools: exclusive or."""

def invert(x: Operand, /) -> Variable:
    """Every bit turned; of bools: not."""

def shift_left(x: Operand, y: Operand, /) -> Variable:
    """`x · 2ʸ` by shifting bits out on the left; 0 where y is negative or not less than the width."""

def shift_right(x: Operand, y: Operand, /) -> Variable:
    """`⌊x / 2ʸ⌋` by shifting bits out on the right; the sign alone (0 or −1) where y is negative or not less than the width."""

def floor(x: Operand, /) -> Variable:
    """Largest integer not above x. Its gradient is zero."""

def ceil(x: Operand, /) -> Variable:
    """Smallest integer not below x. Its gradient is zero."""

def trunc(x: Operand, /) -> Variable:
    """x without its fraction. Its gradient is zero."""

def exp(x: Operand, /) -> Variable:
    """`eˣ`"""

def exp2(x: Operand, /) -> Variable:
    """`2ˣ`"""

def expm1(x: Operand, /) -> Variable:
    """`eˣ − 1`, exact near 0."""

def log(x: Operand, /) -> Variable:
    """Natural logarithm."""

def log2(x: Operand, /) -> Variable:
    """Logarithm of base 2."""

def log10(x: Operand, /) -> Variable:
    """Logarithm of base 10."""

def log1p(x: Operand, /) -> Variable:
    """`log(1 + x)`, exact near 0."""

def logaddexp(x: Operand, y: Operand, /) -> Variable:
    """`log(eˣ + eʸ)` without overflow."""

def sin(x: Operand, /) -> Variable:
    """Sine."""

def cos(x: Operand, /) -> Variable:
    """Cosine."""

def tan(x: Operand, /) -> Variable:
    """Tangent."""

def asin(x: Operand, /) -> Variable:
    """Arcsine, in [−π/2, π/2]."""

def acos(x: Operand, /) -> Variable:
    """Arccosine, in [0, π]."""

def atan(x: Operand, /) -> Variable:
    """Arctangent, in (−π/2, π/2)."""

def sinh(x: Operand, /) -> Variable:
    """Hyperbolic sine."""

def cosh(x: Operand, /) -> Variable:
    """Hyperbolic cosine."""

def tanh(x: Operand, /) -> Variable:
    """Hyperbolic tangent."""

def asinh(x: Operand, /) -> Variable:
    """Inverse hyperbolic sine."""

def acosh(x: Operand, /) -> Variable:
    """Inverse hyperbolic cosine."""

def atanh(x: Operand, /) -> Variable:
    """Inverse hyperbolic tangent."""

def sigmoid(x: Operand, /) -> Variable:
    """`1 / (1 + e⁻ˣ)`"""

def softplus(x: Operand, /) -> Variable:
    """`log(1 + eˣ)` without overflow."""

def log_sigmoid(x: Operand, /) -> Variable:
    """`log(1 / (1 + e⁻ˣ)) = −softplus(−x)`"""

def relu(x: Operand, /) -> Variable:
    """`maximum(x, 0)`; the derivative at 0 is 1/2."""

def silu(x: Operand, /) -> Variable:
    """`x · sigmoid(x)`, also known as swish."""

def erf(x: Operand, /) -> Variable:
    """Error function `2/√π ∫₀ˣ e^−t² dt`."""

def erfc(x: Operand, /) -> Variable:
    """`1 − erf(x)`, exact for large x."""

def erfinv(x: Operand, /) -> Variable:
    """Inverse of erf."""

def ndtri(x: Operand, /) -> Variable:
    """Quantile of the normal distribution: the share x of all numbers is below it."""

def gammaln(x: Operand, /) -> Variable:
    """`log |Γ(x)|`; ∞ at 0 and the negative integers."""

def digamma(x: Operand, /) -> Variable:
    """`ψ(x)`, the derivative of gammaln. Near its zero at 1.4616… the error is absolute."""

def trigamma(x: Operand, /) -> Variable:
    """`ψ′(x)`, the derivative of digamma."""

def tetragamma(x: Operand, /) -> Variable:
    """`ψ″(x)`, the derivative of trigamma. Its own derivative is not written."""

def xlogy(x: Operand, y: Operand, /) -> Variable:
    """`x · log y`, and 0 where x = 0."""

def deg2rad(x: Operand, /) -> Variable:
    """Degrees to radians, `x · π/180`."""

def rad2deg(x: Operand, /) -> Variable:
    """Radians to degrees, `x · 180/π`."""

def subtract(x: Operand, y: Operand, /) -> Variable:
    """`x − y`; bools are refused."""

def multiply(x: Operand, y: Operand, /) -> Variable:
    """`x · y`; of bools: and."""

def divide(x: Operand, y: Operand, /) -> Variable:
    """`x / y`, true division: integers give floats."""

def true_divide(x: Operand, y: Operand, /) -> Variable:
    """`x / y`, true division: integers give floats."""

def true_div(x: Operand, y: Operand, /) -> Variable:
    """`x / y`, true division: integers give floats."""

def negative(x: Operand, /) -> Variable:
    """`−x`; bools are refused."""

def absolute(x: Operand, /) -> Variable:
    """`|x|`; the derivative at 0 is 0."""

def remainder(x: Operand, y: Operand, /) -> Variable:
    """`x − ⌊x / y⌋·y`, with the sign of y as Python's `%`; integers by 0 give 0."""

def floor_divide(x: Operand, y: Operand, /) -> Variable:
    """`⌊x / y⌋`, as Python's `//`; integers by 0 give 0. Its gradient is zero."""

def int_div(x: Operand, y: Operand, /) -> Variable:
    """`⌊x / y⌋`, as Python's `//`; integers by 0 give 0. Its gradient is zero."""

def equal(x: Operand, y: Operand, /) -> Variable:
    """`x == y`"""

def not_equal(x: Operand, y: Operand, /) -> Variable:
    """`x != y`"""

def less(x: Operand, y: Operand, /) -> Variable:
    """`x < y`"""

def less_equal(x: Operand, y: Operand, /) -> Variable:
    """`x <= y`"""

def greater(x: Operand, y: Operand, /) -> Variable:
    """`x > y`"""

def greater_equal(x: Operand, y: Operand, /) -> Variable:
    """`x >= y`"""

def arcsin(x: Operand, /) -> Variable:
    """Arcsine, in [−π/2, π/2]."""

def arccos(x: Operand, /) -> Variable:
    """Arccosine, in [0, π]."""

def arctan(x: Operand, /) -> Variable:
    """Arctangent, in (−π/2, π/2)."""

def arctan2(y: Operand, x: Operand, /) -> Variable:
    """The angle of the point (x, y), in (−π, π]."""

def arcsinh(x: Operand, /) -> Variable:
    """Inverse hyperbolic sine."""

def arccosh(x: Operand, /) -> Variable:
    """Inverse hyperbolic cosine."""

def arctanh(x: Operand, /) -> Variable:
    """Inverse hyperbolic tangent."""

def sgn(x: Operand, /) -> Variable:
    """−1, 0 or 1, NaN where x is NaN; bools are refused. Its gradient is zero."""

def sqr(x: Operand, /) -> Variable:
    """`x²`"""

def bitwise_and(x: Operand, y: Operand, /) -> Variable:
    """Bits set in both; of bools: and."""

def bitwise_or(x: Operand, y: Operand, /) -> Variable:
    """Bits set in either; of bools: or."""

def bitwise_xor(x: Operand, y: Operand, /) -> Variable:
    """Bits set in one; of bools: exclusive or."""

def bitwise_not(x: Operand, /) -> Variable:
    """Every bit turned; of bools: not."""

def bitwise_invert(x: Operand, /) -> Variable:
    """Every bit turned; of bools: not."""

def left_shift(x: Operand, y: Operand, /) -> Variable:
    """`x · 2ʸ` by shifting bits out on the left; 0 where y is negative or not less than the width."""

def right_shift(x: Operand, y: Operand, /) -> Variable:
    """`⌊x / 2ʸ⌋` by shifting bits out on the right; the sign alone (0 or −1) where y is negative or not less than the width."""

def bitwise_left_shift(x: Operand, y: Operand, /) -> Variable:
    """`x · 2ʸ` by shifting bits out on the left; 0 where y is negative or not less than the width."""

def bitwise_right_shift(x: Operand, y: Operand, /) -> Variable:
    """`⌊x / 2ʸ⌋` by shifting bits out on the right; the sign alone (0 or −1) where y is negative or not less than the width."""

def fix(x: Operand, /) -> Variable:
    """x without its fraction. Its gradient is zero."""

def expit(x: Operand, /) -> Variable:
    """`1 / (1 + e⁻ˣ)`"""

def psi(x: Operand, /) -> Variable:
    """`ψ(x)`, the derivative of gammaln. Near its zero at 1.4616… the error is absolute."""

def degrees(x: Operand, /) -> Variable:
    """Radians to degrees, `x · 180/π`."""

def radians(x: Operand, /) -> Variable:
    """Degrees to radians, `x · π/180`."""

def lgamma(x: Operand, /) -> Variable:
    """`log |Γ(x)|`; ∞ at 0 and the negative integers."""


__all__ = [
    'add',
    'sub',
    'mul',
    'fma',
    'div',
    'floordiv',
    'mod',
    'fmod',
    'neg',
    'abs',
    'sign',
    'square',
    'sqrt',
    'rsqrt',
    'reciprocal',
    'minimum',
    'maximum',
    'hypot',
    'atan2',
    'copysign',
    'eq',
    'ne',
    'lt',
    'le',
    'gt',
    'ge',
    'isnan',
    'isinf',
    'isfinite',
    'signbit',
    'logical_and',
    'logical_or',
    'logical_xor',
    'logical_not',
    'bit_and',
    'bit_or',
    'bit_xor',
    'invert',
    'shift_left',
    'shift_right',
    'floor',
    'ceil',
    'trunc',
    'exp',
    'exp2',
    'expm1',
    'log',
    'log2',
    'log10',
    'log1p',
    'logaddexp',
    'sin',
    'cos',
    'tan',
    'asin',
    'acos',
    'atan',
    'sinh',
    'cosh',
    'tanh',
    'asinh',
    'acosh',
    'atanh',
    'sigmoid',
    'softplus',
    'log_sigmoid',
    'relu',
    'silu',
    'erf',
    'erfc',
    'erfinv',
    'ndtri',
    'gammaln',
    'digamma',
    'trigamma',
    'tetragamma',
    'xlogy',
    'deg2rad',
    'rad2deg',
    'subtract',
    'multiply',
    'divide',
    'true_divide',
    'true_div',
    'negative',
    'absolute',
    'remainder',
    'floor_divide',
    'int_div',
    'equal',
    'not_equal',
    'less',
    'less_equal',
    'greater',
    'greater_equal',
    'arcsin',
    'arccos',
    'arctan',
    'arctan2',
    'arcsinh',
    'arccosh',
    'arctanh',
    'sgn',
    'sqr',
    'bitwise_and',
    'bitwise_or',
    'bitwise_xor',
    'bitwise_not',
    'bitwise_invert',
    'left_shift',
    'right_shift',
    'bitwise_left_shift',
    'bitwise_right_shift',
    'fix',
    'expit',
    'psi',
    'degrees',
    'radians',
    'lgamma',
]
