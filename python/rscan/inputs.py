"""Variables that a caller fills: `rs.vector("x")`, `rs.dmatrix("A")`, `rs.tensor("float32", (None, 3))`, `rs.vectors("a b")`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from . import _native
from ._spans import here
from .config import config
from .errors import RscanTypeError
from .variable import Variable, dtype_name, wrap

#: Prefixes of constructors. Without one the dtype is `config.floatX`.
PREFIXES = {
    "b": "int8", "w": "int16", "i": "int32", "l": "int64", "f": "float32", "d": "float64",
    "u": "uint32", "ub": "uint8", "uw": "uint16", "ui": "uint32", "ul": "uint64",
}  # fmt: skip

#: Extents of the kinds of variables.
KINDS: dict[str, tuple[int | None, ...]] = {
    "scalar": (), "vector": (None,), "matrix": (None, None), "row": (1, None), "col": (None, 1),
    "tensor3": (None,) * 3, "tensor4": (None,) * 4, "tensor5": (None,) * 5,
}  # fmt: skip

PLURALS = {kind: kind + "s" if kind != "matrix" else "matrices" for kind in KINDS}


def tensor(dtype: Any = None, shape: Sequence[int | None] = (), name: str | None = None) -> Variable:
    """A variable of any dtype and shape; None is an extent that is not known before the run.

    errors: `RscanTypeError` (E0809) for `shape` of another kind, (E0806) for a dtype that is not there.

    >>> x = rs.tensor("float32", (None, 3), name="x")
    >>> x.dtype, x.ndim, x.static_shape
    ('float32', 2, (None, 3))
    """
    return wrap(_native.input(dtype_name(dtype, config.floatX), [_extent(n) for n in shape], name, here()))


def _extent(n: Any) -> int | None:
    if n is None or (isinstance(n, int) and n >= 0):
        return n
    raise RscanTypeError(f"an extent is a number or None, not {n!r}", code="E0809", labels=[(here(), "")])


def _constructor(word: str, kind: str, dtype: str | None) -> Callable[..., Variable]:
    rank = KINDS[kind]

    def function(name: str | None = None, dtype: Any = dtype, shape: Sequence[int | None] | None = None) -> Variable:
        if name is not None and not isinstance(name, str):
            raise RscanTypeError(
                f"{word} takes a name first, got {name!r}",
                code="E0809",
                labels=[(here(), "")],
                helps=[f"{word}(dtype=…)"],
            )
        if shape is not None and len(shape) != len(rank):
            raise RscanTypeError(
                f"{word} has {len(rank)} axes, and the shape {tuple(shape)!r} does not",
                code="E0809",
                labels=[(here(), "")],
            )
        return tensor(dtype, rank if shape is None else shape, name)

    function.__name__ = function.__qualname__ = word
    function.__module__ = "rscan"
    article = "an" if (dtype or "").startswith("int") else "a"
    function.__doc__ = f"""{article.capitalize()} {dtype or "floatX"} {kind} with an optional name.

shape: extents that are known, None being one that is not.

errors: `RscanTypeError` (E0809) where the name is no text, or the shape has another number of axes; (E0806) for a dtype that is not there.

>>> x = rs.{word}("x")
>>> x.name, x.dtype, x.static_shape
('x', '{dtype or "float64"}', {rank!r})
"""
    return function


def _plural(word: str, one: Callable[..., Variable]) -> Callable[..., list[Variable]]:
    def function(*names: Any, dtype: Any = None) -> list[Variable]:
        options = {} if dtype is None else {"dtype": dtype}
        if len(names) == 1 and isinstance(names[0], int):
            return [one(**options) for _ in range(names[0])]
        if len(names) == 1 and not isinstance(names[0], str):
            raise RscanTypeError(f"{word} takes names or a number, got {names[0]!r}", code="E0809", labels=[(here(), "")])
        words = names[0].replace(",", " ").split() if len(names) == 1 else list(names)
        return [one(name, **options) for name in words]

    function.__name__ = function.__qualname__ = word
    function.__module__ = "rscan"
    function.__doc__ = f"""Several of `{one.__name__}`: by names (`'a', 'b'` or `'a b'`) or by number.

errors: `RscanTypeError` (E0809) for what are neither names nor a number.

>>> [v.name for v in rs.{word}("a b")], len(rs.{word}(3))
(['a', 'b'], 3)
"""
    return function


#: Every constructor, by its name.
CONSTRUCTORS: dict[str, Callable[..., Any]] = {}
for _prefix, _dtype in {"": None, **PREFIXES}.items():
    for _kind, _many in PLURALS.items():
        _one = CONSTRUCTORS[_prefix + _kind] = _constructor(_prefix + _kind, _kind, _dtype)
        CONSTRUCTORS[_prefix + _many] = _plural(_prefix + _many, _one)
globals().update(CONSTRUCTORS)

__all__ = ["tensor", *CONSTRUCTORS]
