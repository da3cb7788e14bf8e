"""For JAX: `wrap(f)` is a function that JAX traces, differentiates in reverse mode, and maps; the values come from rscan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from ._differentiable import differentiable

__all__ = ["wrap"]


def wrap(fn: Callable[..., Any]) -> Callable[..., Any]:
    """`fn`, a function of variables or what `@rs.compile` made, as a function of JAX arrays: by `pure_callback` and `custom_vjp`.

    It runs on the host. Its results have the shapes that they have for arguments of ones: those may not depend on values. Forward mode
    and second derivatives are not there. `vmap` runs it row after row: `rs.vmap` inside `fn` runs all rows at once.

    errors: JAX reports what `fn` raises while it runs; a second derivative is a `ValueError` of `pure_callback`.

    >>> import jax
    >>> from rscan.interop.jax import wrap
    >>> f = wrap(lambda x: rs.sum(x**2))
    >>> jax.grad(f)(np.array([1.0, 2.0], "float32")).tolist()
    [2.0, 4.0]
    """
    made = differentiable(fn)

    def types(args: tuple[Any, ...]) -> list[jax.ShapeDtypeStruct]:
        found = made.forward([np.ones(a.shape, a.dtype) for a in args])
        return [jax.ShapeDtypeStruct(v.shape, jax.dtypes.canonicalize_dtype(v.dtype)) for v in found]

    def forward(*args: Any) -> list[Any]:
        values = made.forward([np.asarray(a) for a in args])
        return [np.asarray(v, jax.dtypes.canonicalize_dtype(v.dtype)) for v in values]

    def backward(args: tuple[Any, ...], cotangents: list[Any]) -> list[Any]:
        slopes = made.backward([np.asarray(a) for a in args], [np.asarray(c) for c in cotangents])
        return [s for s in slopes if s is not None]

    @jax.custom_vjp
    def call(*args: Any) -> list[Any]:
        return list(jax.pure_callback(forward, types(args), *args, vmap_method="sequential"))

    def call_forward(*args: Any) -> Any:
        return call(*args), args

    def call_backward(args: tuple[Any, ...], cotangents: list[Any]) -> tuple[Any, ...]:
        floats = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in args if np.issubdtype(a.dtype, np.floating)]
        seeds = [np.zeros(c.shape) if c.dtype == jax.dtypes.float0 else c for c in cotangents]
        slopes = iter(jax.pure_callback(backward, floats, args, seeds, vmap_method="sequential") if floats else [])
        nothing = lambda a: np.zeros(a.shape, jax.dtypes.float0)
        return tuple(next(slopes) if np.issubdtype(a.dtype, np.floating) else nothing(a) for a in args)

    call.defvjp(call_forward, call_backward)

    def wrapped(*args: Any) -> Any:
        arrays = [jax.numpy.asarray(a) for a in args]
        values = call(*arrays)
        tree = made.made([(a.dtype.name, a.ndim) for a in arrays])[2]
        return tree.build(iter(values))

    wrapped.__name__ = made.name
    return wrapped
