"""Theano's elementwise functions. Made by tools/stubs.py."""
# ruff: noqa

from typing import Any
from ... import ops as ops
from ..._spans import here as here
from ...errors import RscanTypeError as RscanTypeError, RscanValueError as RscanValueError, UnsupportedError as UnsupportedError
from . import _ties as _ties
from ._ties import clip as clip, maximum as maximum, minimum as minimum
from ..variable import as_tensor_variable as as_tensor_variable, true_div as _div, true_div as true_div, true_div as _truediv
from ...variable import Variable as Variable, apply as apply, elementwise as elementwise
from collections.abc import Callable

div = _div
truediv = _truediv
CASTS: dict[Any, Any]
FLOAT: dict[Any, Any]
NAMES: list[Any]
ROWS: dict[Any, Any]
SAME: dict[Any, Any]
_SMALL: tuple[Any, ...]
def _convert_to(dtype: str) -> Callable[[Any], Variable]:
    ...
def _convert_to_bool(x: Any) -> Any:
    ...
def _convert_to_float32(x: Any) -> Any:
    ...
def _convert_to_float64(x: Any) -> Any:
    ...
def _convert_to_int16(x: Any) -> Any:
    ...
def _convert_to_int32(x: Any) -> Any:
    ...
def _convert_to_int64(x: Any) -> Any:
    ...
def _convert_to_int8(x: Any) -> Any:
    ...
def _float_alone(x: Any) -> Variable:
    ...
def _fold(row: str, args: Any) -> Variable:
    ...
def _in_float(v: Variable) -> Variable:
    """Small integers as float32, others as float64."""
def _row(name: str, row: str, in_float: bool) -> Callable[..., Variable]:
    ...
def abs_(*args: Any) -> Variable:
    """Elementwise `abs`."""
def add(*args: Any) -> Variable:
    """The sum of all arguments."""
def allclose(a: Any, b: Any, rtol: float = ..., atol: float = ..., equal_nan: bool = False) -> Variable:
    """True where all are close."""
def and_(*args: Any) -> Variable:
    """Elementwise `bit_and`."""
def arccos(*args: Any) -> Variable:
    """Elementwise `acos`."""
def arccosh(*args: Any) -> Variable:
    """Elementwise `acosh`."""
def arcsin(*args: Any) -> Variable:
    """Elementwise `asin`."""
def arcsinh(*args: Any) -> Variable:
    """Elementwise `asinh`."""
def arctan(*args: Any) -> Variable:
    """Elementwise `atan`."""
def arctan2(*args: Any) -> Variable:
    """Elementwise `atan2`."""
def arctanh(*args: Any) -> Variable:
    """Elementwise `atanh`."""
def bitwise_and(*args: Any) -> Variable:
    """Elementwise `bit_and`."""
def bitwise_not(*args: Any) -> Variable:
    """Elementwise `invert`."""
def bitwise_or(*args: Any) -> Variable:
    """Elementwise `bit_or`."""
def bitwise_xor(*args: Any) -> Variable:
    """Elementwise `bit_xor`."""
def cast(x: Any, dtype: Any) -> Variable:
    """The same elements as another dtype."""
def ceil(*args: Any) -> Variable:
    """Elementwise `ceil`."""
def choose(a: Any, choices: Any, mode: str = 'raise') -> Variable:
    """For each element of a the element of that one of the choices, a list of arrays."""
def clip_grad(x: Any, low: Any, high: Any) -> Variable:
    """x; the gradient that flows through is clipped."""
def conj(x: Any) -> Variable:
    """x: there are no complex numbers."""
def cos(*args: Any) -> Variable:
    """Elementwise `cos`."""
def cosh(*args: Any) -> Variable:
    """Elementwise `cosh`."""
def deg2rad(*args: Any) -> Variable:
    """Elementwise `deg2rad`."""
def divmod(a: Any, b: Any) -> tuple[Variable, Variable]:
    """The quotient rounded down, and the rest."""
def eq(*args: Any) -> Variable:
    """Elementwise `eq`."""
def erf(*args: Any) -> Variable:
    """Elementwise `erf`."""
def erfc(*args: Any) -> Variable:
    """Elementwise `erfc`."""
def erfcinv(x: Any) -> Variable:
    """The inverse of erfc."""
def erfcx(x: Any) -> Variable:
    """exp(x²) erfc(x)."""
def erfinv(*args: Any) -> Variable:
    """Elementwise `erfinv`."""
def exp(*args: Any) -> Variable:
    """Elementwise `exp`."""
def exp2(*args: Any) -> Variable:
    """Elementwise `exp2`."""
def expm1(*args: Any) -> Variable:
    """Elementwise `expm1`."""
def fill(like: Any, value: Any) -> Variable:
    """`value` broadcast to the shape of `like`, in its own dtype."""
def floor(*args: Any) -> Variable:
    """Elementwise `floor`."""
def floor_div(*args: Any) -> Variable:
    """Elementwise `floordiv`."""
def gamma(x: Any) -> Variable:
    """The gamma function."""
def gammaln(*args: Any) -> Variable:
    """Elementwise `gammaln`."""
def ge(*args: Any) -> Variable:
    """Elementwise `ge`."""
def gt(*args: Any) -> Variable:
    """Elementwise `gt`."""
def imag(x: Any) -> Variable:
    """Zeros: there are no complex numbers."""
def int_div(*args: Any) -> Variable:
    """Elementwise `floordiv`."""
def inv(*args: Any) -> Variable:
    """Elementwise `reciprocal`."""
def invert(*args: Any) -> Variable:
    """Elementwise `invert`."""
def iround(x: Any, mode: Any = None) -> Variable:
    """`round` as int64."""
def isclose(a: Any, b: Any, rtol: float = ..., atol: float = ..., equal_nan: bool = False) -> Variable:
    """True where |a − b| ≤ atol + rtol·|b|, or both are the same infinity; of NaN nowhere, or with `equal_nan` where both are."""
def isinf(*args: Any) -> Variable:
    """Elementwise `isinf`."""
def isnan(*args: Any) -> Variable:
    """Elementwise `isnan`."""
def largest(*args: Any) -> Variable:
    """The greatest of the arguments, element by element."""
def le(*args: Any) -> Variable:
    """Elementwise `le`."""
def left_shift(*args: Any) -> Variable:
    """Elementwise `shift_left`."""
def log(*args: Any) -> Variable:
    """Elementwise `log`."""
def log10(*args: Any) -> Variable:
    """Elementwise `log10`."""
def log1p(*args: Any) -> Variable:
    """Elementwise `log1p`."""
def log2(*args: Any) -> Variable:
    """Elementwise `log2`."""
def logical_not(*args: Any) -> Variable:
    """Elementwise `logical_not`."""
def lt(*args: Any) -> Variable:
    """Elementwise `lt`."""
def mod(*args: Any) -> Variable:
    """Elementwise `mod`."""
def mul(*args: Any) -> Variable:
    """The product of all arguments."""
def neg(*args: Any) -> Variable:
    """Elementwise `neg`."""
def neq(*args: Any) -> Variable:
    """Elementwise `ne`."""
def ops_pair(a: Variable, b: Variable) -> tuple[Variable, Variable]:
    """Both in their common dtype."""
def or_(*args: Any) -> Variable:
    """Elementwise `bit_or`."""
def pow(*args: Any) -> Variable:
    """Elementwise `pow`."""
def power(*args: Any) -> Variable:
    """Elementwise `pow`."""
def psi(*args: Any) -> Variable:
    """Elementwise `digamma`."""
def rad2deg(*args: Any) -> Variable:
    """Elementwise `rad2deg`."""
def real(x: Any) -> Variable:
    """x: there are no complex numbers."""
def right_shift(*args: Any) -> Variable:
    """Elementwise `shift_right`."""
def round(x: Any, mode: Any = None) -> Variable:
    """The nearest integer; of two equally near ones the even one, or that away from 0."""
def round_half_away_from_zero(x: Any) -> Variable:
    """The nearest integer; of two equally near ones that away from 0."""
def round_half_to_even(x: Any) -> Variable:
    """The nearest integer; of two equally near ones the even one."""
def second(like: Any, value: Any) -> Variable:
    """`value` broadcast to the shape of `like`."""
def sgn(*args: Any) -> Variable:
    """Elementwise `sign`."""
def sigmoid(*args: Any) -> Variable:
    """Elementwise `sigmoid`."""
def sin(*args: Any) -> Variable:
    """Elementwise `sin`."""
def sinh(*args: Any) -> Variable:
    """Elementwise `sinh`."""
def smallest(*args: Any) -> Variable:
    """The least of the arguments, element by element."""
def softplus(*args: Any) -> Variable:
    """Elementwise `softplus`."""
def sqr(*args: Any) -> Variable:
    """Elementwise `square`."""
def sqrt(*args: Any) -> Variable:
    """Elementwise `sqrt`."""
def square(*args: Any) -> Variable:
    """Elementwise `square`."""
def sub(*args: Any) -> Variable:
    """Elementwise `sub`."""
def switch(condition: Any, a: Any, b: Any) -> Variable:
    """Elements of a where the condition is not 0, else of b."""
def tan(*args: Any) -> Variable:
    """Elementwise `tan`."""
def tanh(*args: Any) -> Variable:
    """Elementwise `tanh`."""
def tri_gamma(*args: Any) -> Variable:
    """Elementwise `trigamma`."""
def trunc(*args: Any) -> Variable:
    """Elementwise `trunc`."""
def upcast(*dtypes: str) -> str:
    """The dtype that holds all of these."""
def where(condition: Any, a: Any = None, b: Any = None) -> Any:
    """`switch`; with the condition alone the positions where it is not 0."""
def xor(*args: Any) -> Variable:
    """Elementwise `bit_xor`."""

