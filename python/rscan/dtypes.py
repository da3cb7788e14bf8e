"""dtypes of variables, and what becomes of Python's numbers and NumPy's arrays."""

from __future__ import annotations

import contextlib
import functools
import re
import sys
from typing import Any

import numpy as np

from ._spans import here
from .config import config
from .errors import RscanTypeError

#: What every dtype is called.
DTYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")


def is_weak(value: Any) -> bool:
    """True for Python numbers, which take the dtype of what they meet."""
    return isinstance(value, (bool, int, float)) and not isinstance(value, np.generic)


@functools.lru_cache(maxsize=1024)
def promote(dtypes: tuple[str, ...]) -> str:
    """NumPy's `result_type` of dtypes by name."""
    return np.result_type(*dtypes).name


def weak_dtype(value: bool | int | float, met: str | None) -> str:
    """The dtype that a Python number takes where it meets one."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int64" if met in (None, "bool") else str(met)
    if met is None:
        return config.floatX
    return met if met.startswith("float") else "float64"


def dtype_name(dtype: Any, default: str | None = None) -> str:
    """The name of a dtype given by name, NumPy dtype, or Python type; `floatX` is the configured float.

    Every `dtype=` of a user's comes here. `default` is what None stands for; without it None is NumPy's float64.
    """
    if type(dtype) is str and dtype in DTYPES:
        return dtype
    if dtype is None and default is not None:
        return default
    if dtype is float or (isinstance(dtype, str) and dtype == "floatX"):
        return config.floatX
    name = ""
    # NumPy also takes what has a `dtype`, which arrays and variables have, and descriptions of records.
    if dtype is None or isinstance(dtype, (str, type, np.dtype)):
        with contextlib.suppress(Exception):  # whatever NumPy says of a text that is no dtype
            name = np.dtype(dtype).name
    if name not in DTYPES:
        raise RscanTypeError(
            f"{short(dtype)} is not a dtype of variables",
            code="E0806",
            labels=[(here(), "")],
            helps=["there are " + ", ".join(DTYPES)],
        )
    return name


#: Types of numbers, of which lists are looked through at once.
_NUMBERS = {bool, int, float, np.float64, np.float32, np.int64}


def _holds_mask(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return not _NUMBERS.issuperset(map(type, value)) and any(map(_holds_mask, value))
    # Who has such an array has imported its module, which takes longer than most first calls.
    masked = getattr(sys.modules.get("numpy.ma"), "MaskedArray", None)
    return masked is not None and isinstance(value, masked)


def is_foreign(value: Any) -> bool:
    """True for arrays that are neither NumPy's nor ours: they have `__array__` or `__dlpack__`, or are buffers of Python's."""
    cls = type(value)
    if not (hasattr(cls, "__array__") or hasattr(cls, "__dlpack__")):
        return _is_buffer(value)
    if isinstance(value, (np.ndarray, np.generic)):
        return False
    return not hasattr(cls, "_family")  # which variables have


def _is_buffer(value: Any) -> bool:
    return isinstance(value, (memoryview, getattr(sys.modules.get("array"), "array", memoryview)))


def as_array(value: Any, dtype: str | None = None) -> np.ndarray:
    """What NumPy makes of a value of the user's. Every such value comes here: numbers, lists, arrays of NumPy and of other libraries.

    Arrays with a mask are refused, also where nothing is masked: there is no mask behind this door, and whether a program runs
    must not hang on the numbers that it is given. `ValueError` for what does not become an array.
    """
    if _holds_mask(value):
        raise RscanTypeError(
            "a masked array would lose its mask",
            code="E0814",
            labels=[(here(), "")],
            helps=["x.filled(value) gives masked elements a value, x.compressed() leaves them out"],
        )
    if isinstance(value, (list, tuple)) and any(map(is_foreign, value)):
        value = [as_array(item) for item in value]
    return np.asarray(_taken(value) if is_foreign(value) else value, dtype)


def _taken(value: Any) -> np.ndarray:
    """An array of another library. What holds numbers as objects, as tables of several nullable columns do, is made of numbers."""
    try:
        array = np.from_dlpack(value) if hasattr(type(value), "__dlpack__") and not hasattr(type(value), "__array__") else np.asarray(value)
    except (TypeError, RuntimeError, BufferError, ValueError) as error:  # on another device, or part of a gradient of its library's
        raise ValueError(f"{described(value)} does not give its numbers: {error}") from None
    if array.dtype != object:
        return array
    numbers = np.asarray(array.tolist())
    if numbers.dtype == object:
        advice = "".join(f": {text}" for text in what_to_do(value))
        raise ValueError(f"{described(value)} holds something that is no number, or has missing values{advice}")
    return numbers


def described(value: Any) -> str:
    """What a value is, in a message: an array of another library by its kind and its name."""
    if not is_foreign(value):
        return short(value)
    name = getattr(value, "name", None)
    kind = f"{type(value).__module__.partition('.')[0]}.{type(value).__name__}"
    return f"{kind} `{name}`" if isinstance(name, str) and name else f"a {kind}"


def to_array(value: Any, dtype: Any) -> np.ndarray:
    """Numbers as an array of one of our dtypes."""
    if hasattr(type(value), "_no_array"):
        raise value._no_array()
    try:
        array = as_array(value)
        if array.size == 0 and isinstance(value, (list, tuple)) and dtype is None:
            dtype = "floatX"
        if dtype is not None:
            array = _convert(array, dtype_name(dtype))
        elif array.dtype == np.float64 and isinstance(value, (list, tuple)):
            array = array.astype(config.floatX)
    except (ValueError, OverflowError) as error:
        raise no_array(f"{described(value)} cannot become an array", error, "E0805") from None
    if array.dtype.name not in DTYPES:
        raise RscanTypeError(
            f"{described(value)} cannot become a variable: its dtype is {array.dtype}",
            code="E0805",
            labels=[(here(), "")],
            helps=what_to_do(value, array),
        )
    return array


def no_array(text: str, error: Exception, code: str) -> RscanTypeError:
    """The error of what NumPy makes no array of."""
    why, helps = str(error), []
    if "inhomogeneous" in why:
        why = "its rows have different lengths"
        helps = ["fill them up to one length; rs.loop(…, lengths=n) takes as many steps of each row as it has"]
    return RscanTypeError(f"{text}: {why}", code=code, labels=[(here(), "")], helps=helps)


#: What to do with arrays that hold no numbers of ours, by the kind of their dtype.
_ADVICE = {
    "U": "text is no number: np.asarray(x, dtype=float) reads it, np.unique(x, return_inverse=True)[1] numbers its kinds",
    "O": "it holds objects of Python, such as None: np.asarray(x, dtype=float) makes numbers of them, and NaN of None",
    "M": "times are numbers by x.astype('int64'), or as differences: (x - x[0]) / np.timedelta64(1, 'D')",
    "m": "durations are numbers by x / np.timedelta64(1, 'D')",
    "c": "there are no complex dtypes: pass x.real and x.imag",
}
_ADVICE |= {"S": _ADVICE["U"], "T": _ADVICE["U"]}


def what_to_do(value: Any, array: np.ndarray | None = None) -> list[str]:
    """Advice about a value that is not one yet, or about the array of another dtype that it became."""
    if value is None and array is not None:
        return ["pass an array or a number"]
    if hasattr(value, "__next__"):
        return ["it gives its values one by one, and only once: pass list(…) of it"]
    if array is not None and (callable(value) or (isinstance(value, (list, tuple)) and any(map(callable, value)))):
        return ["a function is no value: call it, and pass what it gives"]
    kinds = [(name, getattr(dtype, "kind", "f")) for name, dtype in getattr(getattr(value, "dtypes", None), "items", list)()]
    if odd := [str(name) for name, kind in kinds if kind not in "biuf"]:
        return [f"leave out what holds no numbers: column{'s' * (len(odd) > 1)} " + ", ".join(f"`{name}`" for name in odd)]
    if array is not None and array.dtype == object and all(isinstance(v, (int, float)) for v in array.flat):
        return ["integers have 64 bits: np.asarray(x, dtype=float) makes floats of larger ones"]
    return [] if array is None else [_ADVICE.get(array.dtype.kind, "variables are bool, integers, float32 or float64")]


def _convert(array: np.ndarray, dtype: str) -> np.ndarray:
    if array.dtype.kind in "iu" and dtype[0] in "iu" and array.size:
        limits = np.iinfo(dtype)
        if array.min() < limits.min or array.max() > limits.max:
            raise OverflowError(f"{dtype} holds {limits.min} to {limits.max}")
    with np.errstate(over="ignore", invalid="ignore"):
        return array.astype(dtype)


def short(value: Any) -> str:
    """A value in a message, without its address."""
    text = re.sub(r" at 0x[0-9a-fA-F]+", "", " ".join(repr(value).split()))
    return text if len(text) <= 60 else text[:57] + "…"
