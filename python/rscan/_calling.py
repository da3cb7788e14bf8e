"""Calls of compiled functions: arguments that have to be converted, names, defaults, fixed arguments."""

from __future__ import annotations

import contextlib
import inspect
import keyword
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _native
from ._spans import here
from .config import config
from .dtypes import as_array, described, is_foreign, short, what_to_do
from .errors import RscanTypeError, UnsupportedError
from .shared import SharedVariable
from .variable import DTYPES, Variable

if TYPE_CHECKING:
    from .function import Function


#: What docs call a result without a name.
RESULT = "return"


class _MISSING:
    """Stands for no value; a class, so that pickle keeps it itself."""


class In:
    """An input with a default value, or a name of its own for keyword arguments.

    errors: `RscanTypeError` (E0809) for what is no variable; `UnsupportedError` (E0813) for an `update`.

    >>> x, y = rs.dscalars("x y")
    >>> f = rs.function([x, rs.In(y, value=10.0)], x + y)
    >>> f(1.0)
    array(11.)
    """

    variable: Variable
    name: str | None
    strict: bool
    value: Any

    def __init__(
        self,
        variable: Variable,
        name: str | None = None,
        value: Any = _MISSING,
        update: Any = None,
        mutable: bool = False,
        borrow: bool | None = None,
        strict: bool = False,
        allow_downcast: bool | None = None,
    ) -> None:
        if not isinstance(variable, Variable):
            raise RscanTypeError(f"In takes a variable, got {variable!r}", code="E0809", labels=[(here(), "")])
        if update is not None:
            raise UnsupportedError(
                "an input has no update",
                code="E0813",
                labels=[(here(), "")],
                helps=["keep the value in rs.shared(…) and update that"],
            )
        self.variable, self.name, self.strict = variable, name or variable.name, strict
        self.value = _MISSING if value is None else value
        self.allow_downcast = allow_downcast

    def default(self) -> Any:
        """The value where the caller gives none."""
        return self.value.get_value() if isinstance(self.value, SharedVariable) else self.value

    def describe(self) -> str:
        """How to call it in a message."""
        return f"input `{self.name}`" if self.name else f"input {self.variable!r}"


class Caller(_native.Caller):
    """What calls of a function and of a function with fixed arguments have in common: what the core does not take as it is."""

    name: str | None
    inputs: list[In]
    _names: dict[str, int]
    _allow_downcast: bool | None
    #: What it is, in words, where somebody has said so: a file that it is saved in says it, too.
    doc: str | None = None
    #: The same of its arguments and results, by name.
    docs: Mapping[str, str] = MappingProxyType({})

    if not TYPE_CHECKING:  # for whom an attribute that is misspelt must stay a mistake

        def __getattr__(self, name: str) -> Any:
            if name == "__signature__":
                return _signature(self.inputs)
            if name == "__name__":
                return self.name or "function"
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def address(self) -> int:
        """The address of the function in C, `double f(double, …)`: for programs that call it without Python, from any number of threads.

        Its inputs that are not fixed, and its one output, are float64, float32 or int64 scalars. It is good as long as the function lives.
        A call that fails gives NaN, or the lowest int64, and `address_error` tells why.

        >>> x = rs.dscalar("x")
        >>> f = rs.function([x], x**2)
        >>> import ctypes
        >>> ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(f.address)(3.0)
        9.0
        """
        return self._entry().address

    @property
    def address_error(self) -> BaseException | None:
        """What was wrong in the last call by its address that failed; None where none has."""
        return self._entry().error

    @property
    def ctypes(self) -> Any:
        """The function at `address` as a function object of ctypes, which keeps it alive.

        >>> x = rs.dscalar("x")
        >>> rs.function([x], x**2).ctypes(3.0)
        9.0
        """
        from ._entry import as_ctypes

        return as_ctypes(self._entry())

    def lowlevel(self, kind: str = "numbers") -> Any:
        """A `scipy.LowLevelCallable`, which SciPy calls without Python.

        kind: 'numbers' for `scipy.integrate.quad` and its like: `double (double)` or, of several numbers, `double (int, double *, void *)`;
        'filter' for `scipy.ndimage.generic_filter`: a number per cell of the footprint. All numbers are float64.

        >>> from scipy.integrate import quad
        >>> x, a = rs.dscalars("x a")
        >>> f = rs.function([x, a], a * x**2)
        >>> round(quad(f.lowlevel(), 0.0, 3.0, args=(2.0,))[0], 9)
        18.0
        """
        from ._entry import as_lowlevel

        return as_lowlevel(self._entry(), kind)

    def __wrapper_address__(self) -> int:
        """numba's name for `address`."""
        return self.address

    def signature(self) -> Any:
        """numba's signature of the function at `address`."""
        from ._entry import numba_signature

        return numba_signature(self._entry())

    def _repr_html_(self) -> str:
        from ._html import function

        return function(self)

    def _say(self, doc: str | None, docs: Mapping[str, str]) -> None:
        """Keeps what it is, and what its arguments and results are, in words."""
        if doc is not None or docs:
            self.doc, self.docs = doc, dict(docs)
            self._describe()

    def _describe(self) -> None:
        """Gives it the text that `help` and notebooks show."""
        docs = self.docs
        known = [(slot, docs.get(slot.name or "")) for slot in self.inputs]
        inputs = [f"    {slot.name or '?'}: {_type_text(slot.variable)}" + (f", {text}" if text else "") for slot, text in known]
        names = [slot.name for slot in self.inputs]
        results = [f"    {name}: {text}" for name, text in docs.items() if name not in names]
        text = f"A compiled function of {len(self.inputs)} inputs" + (":\n\n" + "\n".join(inputs) + "\n" if inputs else ".")
        text += "\n\nIt returns:\n\n" + "\n".join(results) + "\n" if results else ""
        self.__doc__ = f"{self.doc}\n\n{text}" if self.doc else text

    def _free_names(self) -> list[str | None]:
        """The name of each input under which a call may give it."""
        return [slot.name if slot.name and self._names[slot.name] == i else None for i, slot in enumerate(self.inputs)]

    def _call(self, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """A call with arguments that have to be converted, or are left out."""
        out = named.pop("out", None) if "out" in named and "out" not in self._names else None
        return self._run(self._arguments(args, named), out)

    def _bad_out(self, position: int | None, text: str) -> RscanTypeError:
        which = "" if position is None else f", output {position}"
        return RscanTypeError(f"{self._called()}{which}: {text}", code="E0515", labels=[(here(), "")])

    def _called(self) -> str:
        """What messages call the function."""
        return f"the function `{self.name}`" if self.name else "the function"

    def _arguments(self, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        """The arguments in order, each an array of its input's dtype."""
        values = self._placed(args, named)
        return tuple(self._argument(slot, value) for slot, value in zip(self.inputs, values, strict=True))

    def _placed(self, args: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
        """The argument of each input, or `_MISSING`."""
        if len(args) > len(self.inputs):
            raise self._bad_call(f"takes {len(self.inputs)} arguments, got {len(args)}")
        values = list(args) + [_MISSING] * (len(self.inputs) - len(args))
        for name, value in named.items():
            i = self._names.get(name)
            if i is None:
                raise self._bad_call(f"got an unexpected keyword argument {name!r}")
            if i < len(args):
                raise self._bad_call(f"got `{name}` twice")
            values[i] = value
        return values

    def _bad_call(self, text: str) -> RscanTypeError:
        names = [slot.name or "?" for slot in self.inputs]
        return RscanTypeError(
            f"{self._called()} {text}",
            code="E0508",
            labels=[(here(), "")],
            notes=[f"its inputs are ({', '.join(names)})"],
        )

    def _argument(self, slot: In, value: Any) -> Any:
        if value is _MISSING:
            value = slot.default()
            if value is _MISSING:
                raise self._bad_call(f"needs {slot.describe()}")
        if isinstance(value, _native.DeviceArray) and _is_fit(value, slot.variable):
            return value  # read where it lies
        allow = self._allow_downcast if slot.allow_downcast is None else slot.allow_downcast
        return plain(convert(value, slot, allow))

    def _fixed_by(self, args: tuple[Any, ...], named: dict[str, Any]) -> dict[int, Any]:
        """Arguments to be fixed by position, converted."""
        values = self._placed(args, named)
        return {i: self._argument(slot, v) for i, (slot, v) in enumerate(zip(self.inputs, values, strict=True)) if v is not _MISSING}

    def free(self) -> None:
        """Gives the memory that is kept for the results of later calls, of any function, back to the system."""
        _native.release()


class Bound(Caller):
    """A function with some of its arguments fixed, made by `f.bind(…)`. It is called with the others."""

    name: str | None
    inputs: list[In]

    def __init__(self, function: Function, fixed: dict[int, np.ndarray]) -> None:
        #: The function behind it.
        self.function = function
        self._fixed = {i: np.array(value) for i, value in fixed.items()}
        self._complete()

    def _complete(self) -> None:
        f = self.function
        self.name, self._allow_downcast = f.name, f._allow_downcast
        self.inputs = [slot for i, slot in enumerate(f.inputs) if i not in self._fixed]
        self._names = {slot.name: i for i, slot in enumerate(self.inputs) if slot.name}
        strict = [slot.strict for slot in f.inputs]
        self._describe()
        self._install(f._native, *f._form, self._free_names(), strict, f.profile, True, self._fixed)

    def __getstate__(self) -> dict[str, Any]:
        return {"function": self.function, "_fixed": self._fixed}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._complete()

    @property
    def profile(self) -> Any:
        """The profile of the function."""
        return self.function.profile

    def bind(self, *args: Any, **named: Any) -> Bound:
        """The same with more arguments fixed: the first ones of those that are left, and those with these names.

        errors: `RscanTypeError` (E0504) for arguments that do not fit, (E0508) for unknown ones.
        """
        left = [i for i in range(len(self.function.inputs)) if i not in self._fixed]
        return Bound(self.function, {**self._fixed, **{left[i]: value for i, value in self._fixed_by(args, named).items()}})

    def __repr__(self) -> str:
        inputs = ", ".join(slot.name or "?" for slot in self.inputs)
        return f"<rscan function {self.name or ''}({inputs}), {len(self._fixed)} fixed>"


def _signature(inputs: list[In]) -> inspect.Signature:
    """The parameters of a function, as `inspect.signature` and whoever calls by it wants them."""
    named = [slot.name is not None and slot.name.isidentifier() and not keyword.iskeyword(slot.name) for slot in inputs]
    names = [str(slot.name) if named[i] else f"_{i}" for i, slot in enumerate(inputs)]
    alone = max((i for i, good in enumerate(named) if not good or names[i] in names[:i]), default=-1)
    parameters: list[inspect.Parameter] = []
    with_default = True
    for i, slot in reversed(list(enumerate(inputs))):
        with_default = with_default and slot.value is not _MISSING
        parameters.append(
            inspect.Parameter(
                f"_{i}" if names[i] in names[:i] else names[i],
                inspect.Parameter.POSITIONAL_ONLY if i <= alone else inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=slot.default() if with_default else inspect.Parameter.empty,
                annotation=_type_text(slot.variable),
            )
        )
    return inspect.Signature(parameters[::-1])


def _is_fit(value: _native.DeviceArray, v: Variable) -> bool:
    """Whether an array on a device is an input's value as it is."""
    fits = all(n is None or n == m for n, m in zip(v.static_shape, value.shape, strict=False))
    return value.dtype.name == v.dtype and value.ndim == v.ndim and fits


def _type_text(v: Variable) -> str:
    return f"{v.dtype}[{', '.join('?' if n is None else str(n) for n in v.static_shape)}]" if v.ndim else v.dtype


def plain(array: np.ndarray) -> np.ndarray:
    """The array where it is aligned, in C order and in this machine's byte order; else such a copy."""
    flags = array.flags
    if flags.c_contiguous and flags.aligned and array.dtype.isnative:
        return array
    return np.require(array, array.dtype.newbyteorder("="), ("C", "A"))


def convert(value: Any, slot: In, allow_downcast: bool | None = None) -> np.ndarray:
    """An argument as an array of its input's dtype and shape.

    Arrays are converted where no value of their dtype can be lost; numbers, lists and ranges where theirs survive.
    """
    variable = slot.variable
    if isinstance(value, Variable):
        raise _unfit(slot, f"got a variable, {value!r}", "arguments are numbers; `givens` replaces variables by variables")
    try:
        array = as_array(_as_float(value) if variable.dtype.startswith("float") else value)
    except ValueError as error:
        raise _unfit(slot, f"got what is no array: {error}") from None
    if array.dtype.name not in DTYPES and array.dtype.kind not in "f":
        raise _unfit(slot, f"got {_kind_of(value, array)}", *what_to_do(value, array))
    if array.dtype != variable.dtype:
        array = _converted(value, array, slot, allow_downcast)
    static = variable.static_shape
    if array.ndim != len(static):
        raise _unfit(slot, f"got an array of {array.ndim} axes, of shape {array.shape}", _rank_help(array, len(static)))
    if any(n is not None and n != m for n, m in zip(static, array.shape, strict=True)):
        raise _unfit(slot, f"got an array of shape {array.shape}")
    return array


def _as_float(value: Any) -> Any:
    """An integer that 64 bits do not hold, as the float that it is exactly; anything else as it is."""
    with contextlib.suppress(OverflowError):
        if type(value) is int and not -(2**63) <= value < 2**64 and float(value) == value:
            return float(value)
    return value


def _converted(value: Any, array: np.ndarray, slot: In, allow_downcast: bool | None) -> np.ndarray:
    dtype = slot.variable.dtype
    if slot.strict:
        raise _unfit(slot, f"got {array.dtype}, and the input is strict")
    if np.can_cast(array.dtype, dtype, "safe") or allow_downcast:
        with np.errstate(all="ignore"):
            return array.astype(dtype)
    if hasattr(value, "dtype") and np.ndim(value):
        raise _unfit(slot, f"got an array of {array.dtype}", f'pass array.astype("{dtype}"), or allow_input_downcast=True')
    with np.errstate(all="ignore"):
        cast = array.astype(dtype)
        lossless = bool(np.all((cast == array) | ((cast != cast) & (array != array))))
    weak = allow_downcast is None and config.floatX == dtype == "float32" and array.dtype == "float64"
    if not (lossless or weak):
        text = np.array2string(array, threshold=6)
        raise _unfit(slot, f"got {text}, which {dtype} cannot hold exactly", "allow_input_downcast=True rounds")
    return cast


def _kind_of(value: Any, array: np.ndarray) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {array.dtype}"
    if is_foreign(value):
        return f"{described(value)} of {array.dtype}"
    text = short(value)
    return text if not text.endswith("…") else f"a {type(value).__name__}"


def _rank_help(array: np.ndarray, rank: int) -> str | None:
    return f"add axes: array[{', '.join(['None'] * (rank - array.ndim))}]" if array.ndim < rank else None


def _unfit(slot: In, text: str, help: str | None = None) -> RscanTypeError:
    v = slot.variable
    wanted = _type_text(v) if v.ndim else f"a {v.dtype} scalar"
    return RscanTypeError(
        f"{slot.describe()} takes {wanted}, {text}",
        code="E0504",
        labels=[(here(), "called here"), (v._v.span, "the input is made here")],
        helps=[help] if help else (),
    )
