"""`theano.tensor.nnet`."""

from __future__ import annotations

from typing import Any

import numpy as np

from .... import ops
from ...._spans import here
from ....errors import RscanTypeError, RscanValueError
from ....variable import Variable, elementwise
from ...absent import absent_in
from ...variable import as_tensor_variable
from ..create import arange
from ..elemwise import ROWS, _in_float, clip, switch


def _float(x: Any) -> Variable:
    return _in_float(as_tensor_variable(x))


def sigmoid(x: Any) -> Variable:
    """1 / (1 + exp(−x))."""
    return elementwise("sigmoid", _float(x))


def hard_sigmoid(x: Any) -> Variable:
    """0.2 x + 0.5, clipped to [0, 1]."""
    v = _float(x)
    slope, shift = (as_tensor_variable(np.asarray(c, v.dtype)) for c in (0.2, 0.5))
    return clip(v * slope + shift, 0, 1)


def ultra_fast_sigmoid(x: Any) -> Variable:
    """The sigmoid itself."""
    return sigmoid(x)


def softplus(x: Any) -> Variable:
    """log(1 + exp(x))."""
    return elementwise("softplus", _float(x))


def relu(x: Any, alpha: Any = 0) -> Variable:
    """x where it is positive, else alpha x."""
    v = as_tensor_variable(x)
    if isinstance(alpha, (int, float)) and alpha == 0:
        return 0.5 * (v + abs(v))
    return switch(elementwise("gt", v, as_tensor_variable(0)), v, as_tensor_variable(alpha) * v)


def elu(x: Any, alpha: Any = 1) -> Variable:
    """x where it is positive, else alpha (exp(x) − 1)."""
    v = _float(x)
    return switch(elementwise("gt", v, as_tensor_variable(0)), v, as_tensor_variable(alpha) * elementwise("expm1", v))


def selu(x: Any) -> Variable:
    """`elu`, scaled so that it normalises itself."""
    return 1.0507009873554805 * elu(x, 1.6732632423543772)


def softsign(x: Any) -> Variable:
    """x / (1 + |x|)."""
    v = _float(x)
    return v / (1 + abs(v))


def _rows(x: Any) -> Variable:
    v = _float(x)
    if v.ndim > 2:
        raise RscanValueError(f"softmax takes a vector or a matrix, got {v.ndim} axes", code="E0809", labels=[(here(), "")])
    return ops.expand_dims(v, 0) if v.ndim == 1 else v


def softmax(x: Any) -> Variable:
    """exp(x) / Σ exp(x) of each row; of a vector as a matrix of one row."""
    return ops.softmax(_rows(x), -1)


def logsoftmax(x: Any) -> Variable:
    """The logarithm of `softmax`."""
    return ops.log_softmax(_rows(x), -1)


def categorical_crossentropy(coding_dist: Any, true_dist: Any) -> Variable:
    """−Σ p log q of each row; true_dist: rows of probabilities, or the number of the class of each row."""
    q, p = as_tensor_variable(coding_dist), as_tensor_variable(true_dist)
    if p.ndim == q.ndim:
        return -ops.sum(p * ROWS["log"](q), axis=q.ndim - 1)
    if p.ndim != q.ndim - 1:
        raise RscanTypeError("rank mismatch between coding and true distributions", code="E0809", labels=[(here(), "")])
    return -ROWS["log"](q)[arange(p.shape[0]), p]


def binary_crossentropy(output: Any, target: Any) -> Variable:
    """−(t log o + (1 − t) log(1 − o))."""
    o, t = as_tensor_variable(output), as_tensor_variable(target)
    return -(t * ROWS["log"](o) + (1.0 - t) * ROWS["log"](1.0 - o))


def sigmoid_binary_crossentropy(output: Any, target: Any) -> Variable:
    """`binary_crossentropy` of the sigmoid of output."""
    o, t = _float(output), as_tensor_variable(target)
    return elementwise("softplus", -abs(o)) + o * ((o > 0) - t)


def crossentropy_softmax_1hot(x: Any, y_idx: Any, **_: Any) -> tuple[Variable, Variable]:
    """`categorical_crossentropy` of the softmax of x, and the softmax."""
    rows = logsoftmax(x)
    y = as_tensor_variable(y_idx)
    return -rows[arange(y.shape[0]), y], elementwise("exp", rows)


def confusion_matrix(actual: Any, pred: Any) -> list[Variable]:
    """How often each class was taken for each, and the classes."""
    from ..linalg import unique_values

    a, p = as_tensor_variable(actual), as_tensor_variable(pred)
    order = unique_values(ops.concatenate([a, p]))
    one = ops.cast(elementwise("eq", ops.expand_dims(a, 1), order), "int64")
    other = ops.cast(elementwise("eq", ops.expand_dims(p, 1), order), "int64")
    return [ops.matmul(one.T, other), order]


def batch_normalization(inputs: Any, gamma: Any, beta: Any, mean: Any, std: Any, mode: str = "low_mem") -> Variable:
    """(x − mean) gamma / std + beta."""
    return (as_tensor_variable(inputs) - mean) * (as_tensor_variable(gamma) / std) + beta


globals().update(absent_in("tensor.nnet"))
