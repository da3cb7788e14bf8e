"""For PyTorch: `wrap(f)` is a function of tensors on the host that autograd differentiates; the values come from rscan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ._differentiable import differentiable

__all__ = ["wrap"]


def wrap(fn: Callable[..., Any]) -> Callable[..., Any]:
    """`fn`, a function of variables or what `@rs.compile` made, as a function of tensors: an `autograd.Function`.

    Tensors on another device are copied to the host, and results stay there. Second derivatives are not there.

    errors: what `fn` raises, when it is called.

    >>> import torch
    >>> from rscan.interop.torch import wrap
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> wrap(lambda x: rs.sum(x**2))(x).backward()
    >>> x.grad
    tensor([2., 4.])
    """
    made = differentiable(fn)

    class Call(torch.autograd.Function):
        """Values by the one function of rscan, cotangents by the other."""

        @staticmethod
        def forward(ctx: Any, *tensors: Any) -> Any:
            ctx.arrays = [t.detach().cpu().numpy() for t in tensors]
            ctx.devices = [t.device for t in tensors]
            values = [torch.from_numpy(np.ascontiguousarray(v).reshape(v.shape)) for v in made.forward(ctx.arrays)]
            ctx.mark_non_differentiable(*[v for v in values if not v.is_floating_point()])
            return tuple(values)

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, *cotangents: Any) -> Any:
            slopes = made.backward(ctx.arrays, [c.detach().cpu().numpy() for c in cotangents])
            return tuple(None if s is None else torch.from_numpy(s).to(d) for s, d in zip(slopes, ctx.devices, strict=True))

    def wrapped(*args: Any) -> Any:
        tensors = [a if isinstance(a, torch.Tensor) else torch.as_tensor(a) for a in args]
        values = Call.apply(*tensors)
        tree = made.made([(str(t.dtype).removeprefix("torch."), t.ndim) for t in tensors])[2]
        return tree.build(iter(values))

    wrapped.__name__ = made.name
    return wrapped
