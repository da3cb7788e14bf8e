"""Symbolic variables, and how functions of them are made.

To add a function of variables:

- An elementwise function is a row of the core's table; it appears as `rs.<row>` by itself (`_rows`).
- Any other function is a few lines in one of the `ops_*` modules: bring the arguments in with `as_variable` (or
  `operands`, where Python numbers should take the dtype of what they meet), and call `apply` with the name of a
  structural op (the table in `ir/op.rs` says which attributes and inputs it takes), or compose other functions.
- Add the name to the module's `__all__`; `rscan/__init__.py` exports it, and NumPy's function of that name,
  called with a variable, is redirected to it.

Results belong to the family of their inputs: a subclass of `Variable` whose `_family` names itself gets results of
its own class.
"""

from __future__ import annotations

import functools
import threading
import weakref
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np

from . import _methods, _native
from ._methods import Methods, Valueless
from ._redirect import part
from ._spans import here
from .dtypes import DTYPES, as_array, dtype_name, is_foreign, is_weak, promote, short, to_array, weak_dtype  # noqa: F401
from .errors import RscanOverflowError, RscanTypeError


class Variable(Methods, Valueless):
    """A symbolic array: a dtype, a number of axes, extents that may be unknown, and how it is computed.

    Operators compute element by element, `==` and `!=` among them. A variable is hashed by what it is, not by its value: it is
    a key of dictionaries and a member of sets as any object; `x is y` asks whether two are the same.

    >>> x = rs.dmatrix("x")
    >>> y = (x @ x.T).sum(axis=0)
    >>> y.dtype, y.ndim
    ('float64', 1)
    >>> y.eval({x: np.eye(2)})
    array([1., 1.])
    """

    #: The class of results of functions of this class.
    _family: type[Variable]
    #: The class of shared variables of this family.
    _shared_class: type[Variable]

    __array_priority__ = 1000
    #: A table or a column of pandas leaves operators to what has more than it.
    __pandas_priority__ = 10_000

    def __init__(self, native: _native.Var) -> None:
        self._v = native
        #: Remembers (variable, index) where this is `variable[index]`, for `set_subtensor`.
        self._origin: tuple[Variable, Any] | None = None

    @functools.cached_property
    def tag(self) -> SimpleNamespace:
        """Takes any attribute; kept as long as this object lives."""
        return SimpleNamespace()

    @property
    def name(self) -> str | None:
        """The name in prints, errors and keyword arguments."""
        return self._v.name

    @name.setter
    def name(self, name: str | None) -> None:
        self._v.name = name

    @property
    def dtype(self) -> str:
        """NumPy's name of the element type."""
        return self._v.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self._v.ndim

    @property
    def static_shape(self) -> tuple[int | None, ...]:
        """Extents; None where they are not known before the run."""
        return self._v.shape

    @property
    def shape(self) -> tuple[Any, ...]:
        """Extents: an int where known, else a symbolic int64 scalar."""
        return tuple(extent(self, axis) for axis in range(self.ndim))

    @property
    def size(self) -> Any:
        """Number of elements: an int where known, else a symbolic int64 scalar."""
        return functools.reduce(lambda a, b: a * b, self.shape, 1)

    @property
    def T(self) -> Variable:
        """With the axes in reverse order."""
        return _ops.transpose(self)

    @property
    def at(self) -> _ops.At:
        """`x.at[i].set(v)`, `.add(v)`, `.multiply(v)`, `.min(v)`, `.max(v)`: a copy of x, changed at an index."""
        return _ops.At(self)

    # One object per expression (`wrap`), and one hash per object: dictionaries find a key by identity, and ask `==` only where
    # hashes collide, which those of two expressions do not.

    def __hash__(self) -> int:
        return hash(self._v)

    def __repr__(self) -> str:
        dims = ", ".join("?" if n is None else str(n) for n in self._v.shape)
        return f"{self._describe()}: {self.dtype}[{dims}]" if self.ndim else f"{self._describe()}: {self.dtype}"

    def _repr_html_(self) -> str:
        from ._html import variable

        return variable(self)

    def _describe(self) -> str:
        """How to call it in a message."""
        if self._v.kind == "const" and self._v.name is None:
            value = self._v.value
            return repr(value.item()) if value.size == 1 else "a constant"
        return self._v.describe()

    def __reduce__(self) -> Any:
        from ._pickle import reduce_variable

        return reduce_variable(self)

    # Operators. What cannot become a variable is left to the other operand.

    def __add__(self, other: Any) -> Variable:
        return _binary("add", self, other)

    def __radd__(self, other: Any) -> Variable:
        return _binary("add", other, self)

    def __sub__(self, other: Any) -> Variable:
        return _binary("sub", self, other)

    def __rsub__(self, other: Any) -> Variable:
        return _binary("sub", other, self)

    def __mul__(self, other: Any) -> Variable:
        return _binary("mul", self, other)

    def __rmul__(self, other: Any) -> Variable:
        return _binary("mul", other, self)

    def __truediv__(self, other: Any) -> Variable:
        return _binary("div", self, other)

    def __rtruediv__(self, other: Any) -> Variable:
        return _binary("div", other, self)

    def __floordiv__(self, other: Any) -> Variable:
        return _binary("floordiv", self, other)

    def __rfloordiv__(self, other: Any) -> Variable:
        return _binary("floordiv", other, self)

    def __mod__(self, other: Any) -> Variable:
        return _binary("mod", self, other)

    def __rmod__(self, other: Any) -> Variable:
        return _binary("mod", other, self)

    def __divmod__(self, other: Any) -> tuple[Variable, Variable]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Variable, Variable]:
        return other // self, other % self

    def __pow__(self, other: Any) -> Variable:
        return _ops.pow(self, other) if is_operand(other) else _stranger(other)

    def __rpow__(self, other: Any) -> Variable:
        return _ops.pow(other, self) if is_operand(other) else _stranger(other)

    def __and__(self, other: Any) -> Variable:
        return _binary("bit_and", self, other)

    def __rand__(self, other: Any) -> Variable:
        return _binary("bit_and", other, self)

    def __or__(self, other: Any) -> Variable:
        return _binary("bit_or", self, other)

    def __ror__(self, other: Any) -> Variable:
        return _binary("bit_or", other, self)

    def __xor__(self, other: Any) -> Variable:
        return _binary("bit_xor", self, other)

    def __rxor__(self, other: Any) -> Variable:
        return _binary("bit_xor", other, self)

    def __lshift__(self, other: Any) -> Variable:
        return _binary("shift_left", self, other)

    def __rlshift__(self, other: Any) -> Variable:
        return _binary("shift_left", other, self)

    def __rshift__(self, other: Any) -> Variable:
        return _binary("shift_right", self, other)

    def __rrshift__(self, other: Any) -> Variable:
        return _binary("shift_right", other, self)

    def __eq__(self, other: Any) -> Variable:  # type: ignore[override]
        return _binary("eq", self, other)

    def __ne__(self, other: Any) -> Variable:  # type: ignore[override]
        return _binary("ne", self, other)

    def __lt__(self, other: Any) -> Variable:
        return _binary("lt", self, other)

    def __le__(self, other: Any) -> Variable:
        return _binary("le", self, other)

    def __gt__(self, other: Any) -> Variable:
        return _binary("gt", self, other)

    def __ge__(self, other: Any) -> Variable:
        return _binary("ge", self, other)

    def __matmul__(self, other: Any) -> Variable:
        return _ops.matmul(self, other) if is_operand(other) else _stranger(other)

    def __rmatmul__(self, other: Any) -> Variable:
        return _ops.matmul(other, self) if is_operand(other) else _stranger(other)

    def __neg__(self) -> Variable:
        return elementwise("neg", self)

    def __pos__(self) -> Variable:
        return self

    def __abs__(self) -> Variable:
        return elementwise("abs", self)

    def __invert__(self) -> Variable:
        return elementwise("invert", self)

    def __round__(self, digits: int = 0) -> Variable:
        return _ops.round(self, digits)

    # NumPy's functions and ufuncs, called with a variable, give one symbolic node.

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return _ops.from_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return _ops.from_numpy_function(func, args, kwargs)

    def __getitem__(self, key: Any) -> Variable:
        return _ops.getitem(self, key)

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        raise RscanTypeError(
            "variables cannot be changed in place",
            code="E0802",
            labels=[(here(), "")],
            helps=["x = x.at[index].set(value) gives the changed copy"],
        )


Variable._family = Variable

class _Known(weakref.ref["Variable"]):
    """A Python object of an expression. Each operation makes one: `WeakValueDictionary` takes five times as long."""

    __slots__ = ("key",)
    key: Any


_known: dict[Any, _Known] = {}
#: Another thread makes no new object of an expression while the old one is forgotten. An object may go while one is made.
_knowing = threading.RLock()


def _forget(gone: _Known, known: dict[Any, _Known] = _known, knowing: Any = _knowing) -> None:
    # When Python ends, the names of this module may be gone before its objects.
    with knowing:
        if known.get(gone.key) is gone:
            del known[gone.key]


def _remember(key: Any, variable: Variable) -> None:
    known = _Known(variable, _forget)
    known.key = key
    with _knowing:
        _known[key] = known


def wrap(native: _native.Var, family: type[Variable] = Variable) -> Variable:
    """The Python object of an expression; the same one as long as it lives."""
    key = (family, native.key)
    known = _known.get(key)
    found = None if known is None else known()
    if found is None:
        found = family._shared_class._adopt(native) if native.kind == "shared" else family(native)  # type: ignore[attr-defined]
        _remember(key, found)
    return found


def known_as(variable: Variable) -> Variable:
    """Makes this the Python object of its expression."""
    _remember((variable._family, variable._v.key), variable)
    return variable


def family_of(args: Any) -> type[Variable]:
    """The class of results of a function of these arguments."""
    for arg in args:
        if isinstance(arg, Variable) and arg._family is not Variable:
            return arg._family
    return Variable


def apply_all(op: Any, attrs: dict[str, Any], inputs: list[Variable]) -> list[Variable]:
    """All outputs of an op of the core's table, or of a user's op."""
    family = family_of(inputs)
    return [wrap(v, family) for v in _native.apply(op, attrs, [x._v for x in inputs], here())]


def apply(op: Any, attrs: dict[str, Any], *inputs: Variable) -> Variable:
    """The first output of an op."""
    return wrap(_native.apply(op, attrs, [x._v for x in inputs], here())[0], family_of(inputs))


#: Functions of two values that make floats of integers.
_FLOATS = {"div", "hypot", "arctan2", "logaddexp"}


def elementwise(op: str, *args: Any) -> Variable:
    """An elementwise function. Python numbers take the dtype of what they meet, as in NumPy."""
    if op in _ops.COMPARISONS:
        return _ops.compared(op, *args)
    try:
        return apply(op, {}, *operands(args))
    except RscanOverflowError:
        if op not in _FLOATS:
            raise
    # Integers become floats here, so that a number need not fit into those that it meets: `hash / 2**32`.
    return apply(op, {}, *operands([weak_constant(a, "float64") if is_weak(a) else a for a in args]))


def _binary(op: str, a: Any, b: Any) -> Variable:
    if not (is_operand(a) and is_operand(b)):
        return NotImplemented if op in ("eq", "ne") else _stranger(b if is_operand(a) else a)
    try:
        return elementwise(op, a, b)
    except RscanTypeError as error:
        if error.code == "E0230" and op in ("bit_and", "bit_or", "bit_xor"):
            meant = part("_precedence").with_parentheses()
            error.helps = [*([] if meant else error.helps), f"& | ^ bind tighter than comparisons: {meant or '(a < b) & (c < d)'}"]
        raise


def _stranger(value: Any) -> Any:
    """For arithmetic with what can become no variable: a complex number is told why."""
    if isinstance(value, complex):
        as_variable(value)
    return NotImplemented


def is_operand(value: Any) -> bool:
    """True for what can become a variable."""
    return isinstance(value, (Variable, bool, int, float, np.ndarray, np.generic, list, tuple)) or is_foreign(value)


def operands(args: Any) -> list[Variable]:
    """Arguments that meet in an elementwise function, as variables."""
    if all(isinstance(a, Variable) for a in args):
        return list(args)
    family = family_of(args)
    strong = [a if is_weak(a) else as_variable(a, family=family) for a in args]
    dtypes = tuple(a.dtype for a in strong if isinstance(a, Variable))
    if len(dtypes) == len(strong):
        return strong
    met = promote(dtypes) if dtypes else None
    return [a if isinstance(a, Variable) else weak_constant(a, met, family) for a in strong]


def result_dtype(*args: Any) -> str:
    """The dtype that results where these meet: NumPy's `result_type`, with Python numbers weak."""
    return promote(tuple(v.dtype for v in operands(args)))


def weak_constant(value: bool | int | float, met: str | None, family: type[Variable] = Variable) -> Variable:
    """A Python number as a constant of the dtype it takes where it meets `met`."""
    dtype = weak_dtype(value, met)
    try:
        return wrap(_native.number(value, dtype, here()), family)
    except OverflowError:
        text = short(value)
    whole = dtype[0] in "iu"
    limits = np.iinfo(dtype) if whole else np.finfo(dtype)
    raise RscanOverflowError(
        f"{text} does not fit into {dtype}, which holds {limits.min} to {limits.max}",
        labels=[(here(), "")],
        helps=[f"a Python number takes the dtype of what it meets; rs.constant({text}, dtype=…) chooses another"] if whole else [],
    )


def as_variable(value: Any, dtype: Any = None, family: type[Variable] = Variable) -> Variable:
    """`value` as a variable: a variable itself, a number, an array, or nested lists of these (stacked).

    Python numbers become int64, bool or `config.floatX` unless `dtype` says otherwise.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0806) for a dtype that is not there.

    >>> rs.as_variable([1, 2]).dtype, rs.as_variable(1.5).ndim
    ('int64', 0)
    """
    if isinstance(value, Variable):
        return value if dtype is None or value.dtype == dtype_name(dtype) else _ops.cast(value, dtype)
    if isinstance(value, _native.Var):
        return wrap(value, family)
    if is_weak(value) and dtype is None:
        return weak_constant(value, None, family)
    if isinstance(value, (list, tuple)) and _holds_variable(value):
        return _ops.stack([as_variable(v, dtype, family) for v in value])
    return wrap(_native.constant(to_array(value, dtype), here()), family)


def constant(value: Any, dtype: Any = None, name: str | None = None) -> Variable:
    """A constant variable of a number or array.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0806) for a dtype that is not there.

    >>> c = rs.constant([1.0, 2.0], name="c")
    >>> (c * 2).eval()
    array([2., 4.])
    """
    result = as_variable(value, dtype)
    if result._v.kind != "const":
        raise RscanTypeError("a constant is made of numbers, not of variables", code="E0805", labels=[(here(), "")])
    if name is not None:
        result.name = name
    return result


def extent(x: Variable, axis: int) -> Any:
    """One extent: an int where known, else a symbolic int64 scalar."""
    known = x._v.shape[axis]
    return apply("dim", {"axis": axis}, x) if known is None else known


def extents(shape: Any) -> list[Variable]:
    """A shape (number, variable, or a sequence of these) as int64 scalars."""
    items = shape if isinstance(shape, (list, tuple)) else np.atleast_1d(as_array(shape)) if isinstance(shape, np.ndarray) else [shape]
    return [_extent_variable(item) for item in items]


def _extent_variable(item: Any) -> Variable:
    v = as_variable(int(item) if isinstance(item, np.integer) else item)
    if v.ndim != 0 or v.dtype[0] not in "iu":
        raise RscanTypeError(f"an extent is an integer, not {v!r}", code="E0809", labels=[(here(), "")])
    return v


def static_value(x: Any) -> Any:
    """The value of a constant (a copy), a number as itself, or None where it is only known when the function runs."""
    if isinstance(x, Variable):
        return x._v.value
    return x


def _holds_variable(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_holds_variable(v) for v in value)
    return isinstance(value, Variable)


from . import ops as _ops  # noqa: E402  (the functions need the class, and its methods the functions)

_methods.ops = _ops
