"""Nested parameters as one vector of float64, and back, for numbers and for variables."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import _tree
from .._spans import here
from ..compile import _array, _is_leaf
from ..errors import RscanTypeError, ShapeError
from ..variable import Variable


class Vector:
    """The order in which the values of a structure lie in a vector."""

    def __init__(self, params: Any) -> None:
        leaves, self.tree = _tree.flatten(params, _is_leaf)
        self.names = [name or "x" for name in _tree.paths(self.tree)]
        arrays = [_array(leaf, name) for leaf, name in zip(leaves, self.names, strict=True)]
        bad = next((name for name, a in zip(self.names, arrays, strict=True) if a.dtype.kind not in "fiu"), None)
        if bad is not None:
            raise RscanTypeError(f"the parameter `{bad}` is not made of numbers", code="E0809", labels=[(here(), "")])
        self.shapes = [a.shape for a in arrays]
        self.start = np.concatenate([np.ravel(a).astype(np.float64) for a in arrays]) if arrays else np.zeros(0)

    def ravel(self, params: Any) -> np.ndarray:
        """The vector of a structure of this kind."""
        other = Vector(params)
        if not _tree.same(self.tree, other.tree) or sorted(zip(self.names, self.shapes, strict=True)) != sorted(
            zip(other.names, other.shapes, strict=True)
        ):
            raise ShapeError(
                f"these parameters are {other.tree.describe()} of {other.shapes}, not {self.tree.describe()} of {self.shapes}",
                code="E0809",
                labels=[(here(), "")],
            )
        parts = dict(zip(other.names, other._parts(other.start), strict=True))
        return np.concatenate([np.ravel(parts[name]) for name in self.names])

    def unravel(self, vector: Any) -> Any:
        """The structure of a vector: arrays of an array, variables of a variable. Rows of a matrix of vectors stay in front."""
        if not isinstance(vector, Variable):
            vector = np.asarray(vector)
        return self.tree.build(iter(self._parts(vector)))

    def _parts(self, vector: Any) -> Iterator[Any]:
        at = 0
        for shape in self.shapes:
            size = math.prod(shape)
            part = vector[..., at : at + size]
            at += size
            if isinstance(vector, Variable):
                yield part.reshape(shape) if shape else part[0]
            else:
                yield part.reshape((*vector.shape[:-1], *shape))
