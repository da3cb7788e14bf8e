"""`theano.tensor.fft`: transforms of real arrays. Complex arrays have a last axis of 2, for real and imaginary part."""

from __future__ import annotations

from typing import Any

from ..._args import at_least
from ..._spans import here
from ...errors import RscanTypeError, RscanValueError
from ...ops import stack
from ...variable import Variable
from ..variable import as_tensor_variable

__all__ = ["irfft", "rfft"]


def _checked(inp: Any, ndim: int, norm: Any, what: str) -> Variable:
    if norm not in (None, "ortho", "no_norm"):
        raise RscanValueError(f"norm is None, 'ortho' or 'no_norm', not {norm!r}", code="E0809", labels=[(here(), "")])
    return at_least(as_tensor_variable(inp), ndim, what)


def rfft(inp: Any, norm: str | None = None) -> Variable:
    """The Fourier transform of real inputs over all axes but the first, which counts them: (m, …, n) becomes (m, …, n // 2 + 1, 2).

    It is not scaled; with `norm="ortho"` it is divided by the root of the number of elements of an input.
    """
    from ... import fft

    v = _checked(inp, 2, norm, "rfft")
    return stack(fft.rfftn(v, axes=tuple(range(1, v.ndim)), norm="ortho" if norm == "ortho" else "backward"), -1)


def irfft(inp: Any, norm: str | None = None, is_odd: bool = False) -> Variable:
    """The inverse of `rfft`: (m, …, n // 2 + 1, 2) becomes (m, …, n), of which n is odd if `is_odd`.

    It is divided by the number of elements of a result, with `norm="ortho"` by its root, with `norm="no_norm"` by nothing.
    """
    from ... import fft

    if is_odd not in (True, False):
        raise RscanTypeError(f"is_odd is True or False, not {is_odd!r}", code="E0809", labels=[(here(), "")])
    v = _checked(inp, 3, norm, "irfft")
    lengths = [v.shape[k] for k in range(1, v.ndim - 2)] + [(v.shape[v.ndim - 2] - 1) * 2 + int(is_odd)]
    scaled = {None: "backward", "ortho": "ortho", "no_norm": "forward"}[norm]
    return fft.irfftn((v[..., 0], v[..., 1]), lengths, tuple(range(1, v.ndim - 1)), scaled)
