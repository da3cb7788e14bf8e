"""For PyTensor, and so for PyMC: `RscanOp(f)` is an op whose values and gradients come from rscan, to be used in `pm.Potential`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op

from ._differentiable import Differentiable, differentiable

__all__ = ["RscanOp", "wrap"]


class RscanOp(Op):
    """`fn`, a function of variables or what `@rs.compile` made, as an op.

    errors: what `fn` raises, when the graph is made or runs.

    >>> import pytensor.tensor as pt
    >>> from rscan.interop.pytensor import RscanOp
    >>> total = RscanOp(lambda x: rs.sum(x**2))
    >>> total(pt.as_tensor([1.0, 2.0])).eval().item()
    5.0
    """

    made: Differentiable

    __props__: tuple[str, ...] = ("made",)

    def __init__(self, fn: Callable[..., Any] | Differentiable) -> None:
        self.made = fn if isinstance(fn, Differentiable) else differentiable(fn)

    def make_node(self, *inputs: Any) -> Apply:
        """A node of these inputs, with outputs of the types that `fn` gives.

        errors: what `fn` raises for inputs of these types.
        """
        variables = [pt.as_tensor(x) for x in inputs]
        outputs = self.made.made([(v.dtype, v.ndim) for v in variables])[3]
        return Apply(self, variables, [pt.tensor(dtype=v.dtype, shape=v.static_shape) for v in outputs])

    def perform(self, node: Any, inputs: Sequence[np.ndarray], output_storage: list[list[Any]], *more: Any) -> None:
        """Computes the values.

        errors: what `fn` raises for these values, as `ShapeError` for extents that do not fit.
        """
        values = self.made.forward([np.asarray(x, v.dtype) for x, v in zip(inputs, node.inputs, strict=True)])
        for storage, value in zip(output_storage, values, strict=True):
            storage[0] = value

    def L_op(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        """The cotangents of the inputs.

        errors: `GradientError` where `fn` has a part that has no derivative.
        """
        filled = [pt.zeros_like(o) if isinstance(g.type, _DISCONNECTED) else g for g, o in zip(output_grads, outputs, strict=True)]
        slopes = _Backward(self.made, len(inputs))(*inputs, *filled)
        found = iter(slopes if isinstance(slopes, (list, tuple)) else [slopes])
        return [next(found) if x.dtype.startswith("float") else pt.zeros_like(x, dtype="float64") for x in inputs]

    #: The name since PyTensor 3.
    pullback = L_op


class _Backward(Op):
    """Cotangents of the float inputs."""

    __props__ = ("made", "n")

    def __init__(self, made: Differentiable, n: int) -> None:
        self.made, self.n = made, n

    def make_node(self, *inputs: Any) -> Apply:
        floats = [v for v in inputs[: self.n] if v.dtype.startswith("float")]
        return Apply(self, list(inputs), [pt.tensor(dtype=v.dtype, shape=v.type.shape) for v in floats])

    def perform(self, node: Any, inputs: Sequence[np.ndarray], output_storage: list[list[Any]], *more: Any) -> None:
        arrays = [np.asarray(x, v.dtype) for x, v in zip(inputs[: self.n], node.inputs[: self.n], strict=True)]
        found = [slope for slope in self.made.backward(arrays, inputs[self.n :]) if slope is not None]
        for storage, value in zip(output_storage, found, strict=True):
            storage[0] = value


def _disconnected() -> type:
    """The type of gradients that are not there; it moved between versions."""
    import pytensor.gradient

    return pytensor.gradient.DisconnectedType


_DISCONNECTED = _disconnected()


def wrap(fn: Callable[..., Any]) -> RscanOp:
    """`fn` as an op: called with tensors it gives tensors.

    errors: what `fn` raises, when the graph is made or runs.

    >>> import pytensor
    >>> import pytensor.tensor as pt
    >>> from rscan.interop.pytensor import wrap
    >>> x = pt.dvector("x")
    >>> slope = pytensor.grad(wrap(lambda x: rs.sum(x**2))(x), x)
    >>> slope.eval({x: [1.0, 2.0]}).tolist()
    [2.0, 4.0]
    """
    return RscanOp(fn)
