"""Keys: what draws are pure functions of."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._args import whole
from .._spans import here
from ..errors import RscanTypeError, RscanValueError
from ..function import evaluate
from ..variable import Variable, apply, as_variable

__all__ = ["fold_in", "key", "split"]


def key(seed: int | np.integer[Any] | Variable) -> Variable:
    """The key of a seed, uint64[2]. seed: an integer, or a variable of one, such as an argument of a compiled function.

    errors: `RscanTypeError` (E0809) for `seed` of another kind; `RscanValueError` (E0809) for `seed` out of range.

    >>> rs.random.key(0).eval().dtype
    dtype('uint64')
    >>> rs.random.normal(rs.random.key(0), 2).eval() - rs.random.normal(rs.random.key(0), 2).eval()
    array([0., 0.])
    """
    if isinstance(seed, Variable) and seed.ndim == 0 and "int" in seed.dtype:
        return fold_in(np.zeros(2, np.uint64), seed)
    return as_variable(key_array(seed))


def key_array(seed: Any) -> np.ndarray:
    """The key of a seed, as an array."""
    if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool):
        raise RscanTypeError(f"a seed is an integer, not {seed!r}", code="E0809", labels=[(here(), "")])
    if not 0 <= int(seed) < 2**64:
        raise RscanValueError(f"a seed is at least 0 and less than 2**64, not {seed}", code="E0809", labels=[(here(), "")])
    return evaluate(fold_in(np.zeros(2, np.uint64), np.uint64(seed)))


def fold_in(key: Any, n: Any) -> Variable:
    """Another key, of number n of a key. Different numbers give independent keys.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0222) for extents that are negative or no scalars, (E0702) for what
    is no key.

    >>> key = rs.random.fold_in(rs.random.key(0), 7)
    >>> key.eval().shape, key.dtype
    ((2,), 'uint64')
    """
    return drawn("fold_in", {}, key, _number(n))


def _number(n: Any) -> Variable:
    v = as_variable(n)
    if v.ndim:
        message = f"`fold_in` takes one number, got {v!r}"
        helps = ["rs.vmap(lambda n: rs.random.fold_in(key, n))(numbers) makes a key of each"]
        raise RscanTypeError(message, code="E0222", labels=[(here(), "")], helps=helps)
    return v


def drawn(op: str, params: dict[str, Any], key: Any, *args: Any) -> Variable:
    """A draw of one key. Draws of several keys are those of `rs.vmap` alone, where shapes cannot be taken for each other."""
    v = as_variable(key)
    if v.ndim > 1:
        message = f"`{op}` needs a key, a uint64 vector of 2, got {v!r}"
        raise RscanTypeError(message, code="E0702", labels=[(here(), "")], helps=["rs.vmap(f)(keys) draws with each of several keys"])
    return apply(op, params, v, *args)


def split(key: Any, num: int | np.integer[Any] | Variable = 2) -> Variable:
    """Several independent keys of one, a row for each, uint64[num, 2]: row i is `fold_in(key, i)`. num: an integer, or a variable of one.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `num` of another kind, (E0702) for what is no key.

    >>> one, two = rs.random.split(rs.random.key(0))
    >>> bool((one.eval() == two.eval()).all())
    False
    >>> rs.vmap(rs.random.normal)(rs.random.split(rs.random.key(0), 5)).eval().shape
    (5,)
    """
    from ..ops import arange, stack
    from ..vmap import vmap

    if not (isinstance(num, Variable) and num.ndim == 0 and "int" in num.dtype):
        num = whole(num, "the number of keys")
        if 0 < num <= _WRITTEN:
            return stack([fold_in(key, i) for i in range(num)])
    return vmap(lambda i: fold_in(key, i))(arange(num))


#: So many keys are written down one by one: each is known by itself, and those that nothing reads are not made.
_WRITTEN = 16
