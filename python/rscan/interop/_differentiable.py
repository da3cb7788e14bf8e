"""A function of variables as arrays in, arrays out, with the products of cotangents and its Jacobian: what other systems of
differentiation ask for."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import _tree
from ..compile import Compiled
from ..derivatives import vjp
from ..function import Function, function
from ..inputs import tensor
from ..variable import Variable, as_variable


class Differentiable:
    """Values and derivatives of `fn`, a function of variables that returns one or several, compiled per dtypes and numbers of axes."""

    fn: Callable[..., Any]
    name: Any | str

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn._fn if isinstance(fn, Compiled) else fn
        self.name = getattr(self.fn, "__name__", "function")
        self._made: dict[Any, tuple[Function[Any], Function[Any], _tree.Tree, list[Variable]]] = {}

    def made(self, types: Sequence[tuple[str, int]]) -> tuple[Function[Any], Function[Any], _tree.Tree, list[Variable]]:
        """Functions for arguments of these dtypes and numbers of axes: values, and cotangents of float arguments; outputs."""
        key = tuple(types)
        if key not in self._made:
            self._made[key] = self._compiled(key)
        return self._made[key]

    def _compiled(self, types: tuple[tuple[str, int], ...]) -> tuple[Function[Any], Function[Any], _tree.Tree, list[Variable]]:
        inputs = [tensor(dtype, [None] * ndim, f"argument_{i}") for i, (dtype, ndim) in enumerate(types)]
        leaves, tree = _tree.flatten(self.fn(*inputs), lambda v: isinstance(v, Variable))
        outputs = [as_variable(v) for v in leaves]
        floats = [v for v in inputs if v.dtype.startswith("float")]
        smooth = [v for v in outputs if v.dtype.startswith("float")]
        seeds = [tensor(v.dtype, [None] * v.ndim, f"cotangent_{i}") for i, v in enumerate(smooth)]
        slopes = vjp(smooth, floats, seeds, disconnected_inputs="ignore") if smooth and floats else []
        forward = function(inputs, outputs, name=self.name, on_unused_input="ignore")
        backward = function([*inputs, *seeds], slopes, name=f"backward of {self.name}", on_unused_input="ignore")
        return forward, backward, tree, outputs

    def forward(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The values."""
        return self.made(types_of(arrays))[0](*arrays)

    def backward(self, arrays: Sequence[np.ndarray], cotangents: Sequence[np.ndarray]) -> list[np.ndarray | None]:
        """Per argument the cotangent, None for one that is not made of floats; cotangents of outputs that are none are passed over."""
        _, backward, _, outputs = self.made(types_of(arrays))
        seeds = [np.asarray(c, v.dtype) for c, v in zip(cotangents, outputs, strict=True) if v.dtype.startswith("float")]
        slopes = iter(backward(*arrays, *seeds))
        return [next(slopes) if a.dtype.kind == "f" else None for a in arrays]


def types_of(arrays: Sequence[np.ndarray]) -> list[tuple[str, int]]:
    """dtype and number of axes of each."""
    return [(a.dtype.name, a.ndim) for a in arrays]


@functools.lru_cache(maxsize=256)
def differentiable(fn: Callable[..., Any]) -> Differentiable:
    """One per function."""
    return Differentiable(fn)
