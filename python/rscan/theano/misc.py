"""`theano.misc`: small tools."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dtypes import dtype_name


def _asarray(a: Any, dtype: Any, order: Any = None) -> np.ndarray:
    """The value as an array of a dtype, which may be 'floatX' (None: float64); itself where it is one already."""
    return np.asarray(a, dtype="float64" if dtype is None else dtype_name(dtype), order=order)
