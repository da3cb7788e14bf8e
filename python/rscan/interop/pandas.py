"""For pandas: `wrap(f)` takes columns and tables, and gives columns and tables with their labels."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from .. import _tree
from .._calling import Caller
from .._spans import here
from ..compile import Compiled, compile
from ..errors import RscanValueError

__all__ = ["wrap"]


def wrap(fn: Callable[..., Any]) -> Callable[..., Any]:
    """`fn`, a function of variables or what `rs.compile` or `rs.function` made, as a function of columns and tables that keeps labels.

    A result with as many rows as the columns and tables among the arguments has their index: of one axis a Series, of two a
    DataFrame, with the columns of a table that has as many. Columns are named by their key in the result, else as the first
    column of the arguments. All other results are as `fn` gives them.

    errors: `RscanValueError` (E0809) where arguments of one length have different labels; whatever `fn` raises.

    >>> import pandas as pd
    >>> from rscan.interop.pandas import wrap
    >>> smooth = wrap(lambda x: rs.loop(lambda x, h: 0.5 * h + x, over=x, init=0.0)[:])
    >>> smooth(pd.Series([1.0, 2.0], index=["a", "b"], name="x"))
    a    1.0
    b    2.5
    Name: x, dtype: float64
    """
    made = fn if isinstance(fn, (Compiled, Caller)) else compile(fn)

    @functools.wraps(fn, updated=())
    def wrapped(*args: Any, **named: Any) -> Any:
        labels = _Labels([args, named])
        return labels.given_to(made(*args, **named))

    return wrapped


def _is_labelled(value: Any) -> bool:
    return isinstance(value, (pd.Series, pd.DataFrame))


class _Labels:
    """The indices, columns and names of what a function was called with."""

    def __init__(self, arguments: Any) -> None:
        leaves, _ = _tree.flatten(arguments, lambda v: _is_labelled(v) or isinstance(v, np.ndarray))
        self.index: dict[int, pd.Index] = {}
        self.columns: dict[int, pd.Index] = {}
        self.name: Any = None
        for leaf in filter(_is_labelled, leaves):
            self._add(leaf)

    def _add(self, leaf: Any) -> None:
        known = self.index.setdefault(len(leaf), leaf.index)
        if known is not leaf.index and not known.equals(leaf.index):
            raise RscanValueError(
                f"two arguments of {len(leaf)} rows have different labels",
                code="E0809",
                labels=[(here(), "")],
                helps=["x.align(y) gives both the same labels, x.to_numpy() is without any"],
            )
        if isinstance(leaf, pd.DataFrame):
            self.columns.setdefault(leaf.shape[1], leaf.columns)
        elif self.name is None:
            self.name = leaf.name

    def given_to(self, result: Any) -> Any:
        """A result with labels where it has their rows."""
        leaves, tree = _tree.flatten(result, lambda v: isinstance(v, np.ndarray))
        named: Iterator[Any] = (path.rpartition(".")[2] or self.name for path in _tree.paths(tree))
        return tree.build(iter([self._labelled(leaf, name) for leaf, name in zip(leaves, named, strict=True)]))

    def _labelled(self, value: Any, name: Any) -> Any:
        index = self.index.get(len(value)) if isinstance(value, np.ndarray) and value.ndim in (1, 2) else None
        if index is None:
            return value
        if value.ndim == 1:
            return pd.Series(value, index=index, name=name)
        return pd.DataFrame(value, index=index, columns=self.columns.get(value.shape[1]))
