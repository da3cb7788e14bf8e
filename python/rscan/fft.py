"""Discrete Fourier transforms, by the names of `numpy.fft`. There are no complex dtypes: a complex array is a tuple of two arrays, its real
and its imaginary part. Arguments may be such pairs or real arrays.

    re, im = rs.fft.rfft(x)
    power = re**2 + im**2
    y = rs.fft.irfft((re * gain, im * gain), n=x.shape[-1])

Lengths may be any, known or not; they cost least where they have small factors. float32 is computed in float64 and rounded once. Gradients,
and `rs.vmap`, are those of linear functions.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ._args import axes_of, one_axis
from ._instead import public
from ._spans import here
from .errors import RscanTypeError, RscanValueError, ShapeError
from .ops import arange, cast, concatenate, flip, maximum, moveaxis, roll, sqrt, stack, zeros, zeros_like
from .variable import Variable, apply, as_variable, operands

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft", "irfft2", "irfftn",
    "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip

if not TYPE_CHECKING:  # for whom a name that is misspelt must stay a mistake
    __getattr__, __dir__ = public(__name__, __all__)

#: A complex array.
Pair = tuple[Variable, Variable]


def _float(v: Variable) -> Variable:
    return v if v.dtype.startswith("float") else cast(v, "float64")


def _real(a: Any, what: str) -> Variable:
    if isinstance(a, tuple):
        raise RscanTypeError(f"{what} takes a real array, not a pair", code="E0809", labels=[(here(), "")])
    return _with_axes(_float(as_variable(a)), what)


def _pair(a: Any, what: str) -> Pair:
    """A pair of arrays of one dtype and shape."""
    if not isinstance(a, tuple):
        v = _with_axes(_float(as_variable(a)), what)
        return v, zeros_like(v)
    if len(a) != 2:
        raise RscanTypeError(f"{what} takes a pair of real and imaginary part, not {len(a)} arrays", code="E0809", labels=[(here(), "")])
    re, im = operands(a)
    if re.ndim != im.ndim or any(m != n and None not in (m, n) for m, n in zip(re.static_shape, im.static_shape, strict=True)):
        raise ShapeError(f"{what} takes real and imaginary parts of one shape, got {re!r} and {im!r}", code="E0201", labels=[(here(), "")])
    return _with_axes(_float(re), what), _float(im)


def _with_axes(v: Variable, what: str) -> Variable:
    if v.ndim == 0:
        raise RscanTypeError(f"{what} takes an array with an axis, got {v!r}", code="E0809", labels=[(here(), "")])
    return v


def _count(n: Any) -> Any:
    """A number of elements."""
    if isinstance(n, Variable) or (isinstance(n, np.ndarray) and n.ndim == 0):
        v = as_variable(n)
        if v.ndim or not v.dtype.startswith(("int", "uint")):
            raise RscanTypeError(f"a number of elements is an integer, not {v!r}", code="E0809", labels=[(here(), "")])
        return v
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)):
        raise RscanTypeError(f"a number of elements is an integer, not {n!r}", code="E0809", labels=[(here(), "")])
    if n < 1:
        raise RscanValueError(f"a transform of {n} elements", code="E0809", labels=[(here(), "")], helps=["it takes 1 or more"])
    return int(n)


def _extent(v: Variable) -> Any:
    """The last extent: a number where it is known."""
    known = v.static_shape[-1]
    return v.shape[-1] if known is None else known


def _sized(v: Variable, n: Any) -> Variable:
    """With n elements along the last axis: cut, or filled up with zeros."""
    here_ = _extent(v)
    if isinstance(n, int) and isinstance(here_, int):
        missing: Any = max(n - here_, 0)
    else:
        missing = maximum(as_variable(n) - here_, 0)
    cut = v[..., :n]
    return cut if isinstance(missing, int) and missing == 0 else concatenate([cut, zeros([*v.shape[:-1], missing], v.dtype)], axis=-1)


#: Norms of the forward transform, and what they are of the inverse one.
_OTHER = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def _scale(n: Any, norm: str | None, inverse: bool) -> Any:
    """What results are divided by, or None."""
    if norm not in _OTHER:
        names = '"backward", "ortho" or "forward"'
        raise RscanValueError(f"norm is {names}, not {norm!r}", code="E0809", labels=[(here(), "")])
    which = _OTHER[norm] if inverse else norm or "backward"
    if which == "backward":
        return None
    return n if which == "forward" else math.sqrt(n) if isinstance(n, int) else sqrt(cast(n, "float64"))


def _divided(v: Variable, scale: Any) -> Variable:
    return v if scale is None else v / (scale if isinstance(scale, (int, float)) else cast(scale, v.dtype))


def _transformed(pair: Pair, n: Any, norm: str | None, inverse: bool) -> Pair:
    """Along the last axis."""
    size = _count(_extent(pair[0]) if n is None else n)
    scale = _scale(size, norm, inverse)
    both = apply("dft", {"inverse": inverse}, stack([_sized(v, size) for v in pair], axis=-1))
    return _divided(both[..., 0], scale), _divided(both[..., 1], scale)


def _along(pair: Pair, n: Any, axis: Any, norm: str | None, inverse: bool) -> Pair:
    at = one_axis(axis, pair[0].ndim)
    re, im = _transformed((moveaxis(pair[0], at, -1), moveaxis(pair[1], at, -1)), n, norm, inverse)
    return moveaxis(re, -1, at), moveaxis(im, -1, at)


def fft(a: Any, n: Any = None, axis: int = -1, norm: str | None = None) -> Pair:
    """The transform of an array or a pair along an axis, of n elements: cut, or filled up with zeros.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `a`, `n` or `axis` of another kind; `RscanValueError`
    (E0809) for `a`, `n` or `norm` out of range; `AxisError` (E0810) for an axis that is not there.

    >>> re, im = rs.fft.fft([1.0, 0.0, -1.0, 0.0])
    >>> re.eval(), im.eval()
    (array([0., 2., 0., 2.]), array([0., 0., 0., 0.]))
    """
    return _along(_pair(a, "fft"), n, axis, norm, False)


def ifft(a: Any, n: Any = None, axis: int = -1, norm: str | None = None) -> Pair:
    """The inverse of `fft`.

    errors: those of `fft`.

    >>> re, im = rs.fft.ifft(rs.fft.fft([1.0, 2.0, 3.0]))
    >>> re.eval().round(9), im.eval().round(9) + 0
    (array([1., 2., 3.]), array([0., 0., 0.]))
    """
    return _along(_pair(a, "ifft"), n, axis, norm, True)


def rfft(a: Any, n: Any = None, axis: int = -1, norm: str | None = None) -> Pair:
    """The first half of `fft` of a real array, n // 2 + 1 elements; the others are their conjugates.

    errors: those of `fft`.

    >>> re, im = rs.fft.rfft([1.0, 2.0, 3.0, 4.0])
    >>> re.eval(), im.eval()
    (array([10., -2., -2.]), array([0., 2., 0.]))
    """
    v = _real(a, "rfft")
    at = one_axis(axis, v.ndim)
    given = moveaxis(v, at, -1)
    size = _count(_extent(given) if n is None else n)
    re, im = (moveaxis(part[..., : size // 2 + 1], -1, at) for part in _transformed((given, zeros_like(given)), size, norm, False))
    return re, im


def irfft(a: Any, n: Any = None, axis: int = -1, norm: str | None = None) -> Variable:
    """The real array of n elements whose `rfft` is given; n is 2 (m - 1) of m elements by default.

    errors: those of `fft`.

    >>> rs.fft.irfft(rs.fft.rfft([1.0, 2.0, 3.0]), n=3).eval().round(9)
    array([1., 2., 3.])
    """
    pair = _pair(a, "irfft")
    at = one_axis(axis, pair[0].ndim)
    given = [moveaxis(v, at, -1) for v in pair]
    size = _count(2 * (_extent(given[0]) - 1) if n is None else n)
    re, im = (_sized(v, size // 2 + 1) for v in given)
    behind = slice(1, size - size // 2)
    whole = concatenate([re, flip(re[..., behind], -1)], axis=-1), concatenate([im, -flip(im[..., behind], -1)], axis=-1)
    return moveaxis(_transformed(whole, size, norm, True)[0], -1, at)


def hfft(a: Any, n: Any = None, axis: int = -1, norm: str | None = None) -> Variable:
    """The transform, which is real, of n elements of which the first half is given; the others are their conjugates.

    errors: those of `fft`.

    >>> rs.fft.hfft([1.0, 2.0, 3.0]).eval()
    array([ 8., -2.,  0., -2.])
    """
    re, im = _pair(a, "hfft")
    return irfft((re, -im), n, axis, _swapped(norm))


def ihfft(a: Any, n: Any = None, axis: int = -1, norm: str | None = None) -> Pair:
    """The inverse of `hfft`.

    errors: those of `fft`.

    >>> re, im = rs.fft.ihfft([8.0, -2.0, 0.0, -2.0])
    >>> re.eval(), im.eval() + 0
    (array([1., 2., 3.]), array([0., 0., 0.]))
    """
    re, im = rfft(a, n, axis, _swapped(norm))
    return re, -im


def _swapped(norm: str | None) -> str:
    if norm not in _OTHER:
        _scale(1, norm, False)
    return _OTHER[norm]


def _axes(a: Variable, s: Any, axes: Any) -> list[tuple[int, Any]]:
    """Axes in order, each with its number of elements or None."""
    if axes is None:
        chosen = list(range(a.ndim)) if s is None else list(range(a.ndim - len(s), a.ndim))
    else:
        chosen = [one_axis(k, a.ndim) for k in (axes if isinstance(axes, (tuple, list)) else (axes,))]
    sizes = [None] * len(chosen) if s is None else list(s)
    if len(sizes) != len(chosen) or not chosen:
        raise RscanValueError(f"{len(sizes)} numbers of elements for {len(chosen)} axes", code="E0809", labels=[(here(), "")])
    return list(zip(chosen, sizes, strict=True))


def _over(pair: Pair, places: list[tuple[int, Any]], norm: str | None, inverse: bool) -> Pair:
    for axis, n in reversed(places):
        pair = _along(pair, n, axis, norm, inverse)
    return pair


def fftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None) -> Pair:
    """`fft` along several axes, of s elements; all axes by default.

    errors: those of `fft`.

    >>> re, im = rs.fft.fftn(np.eye(2))
    >>> re.eval()
    array([[2., 0.],
           [0., 2.]])
    """
    pair = _pair(a, "fftn")
    return _over(pair, _axes(pair[0], s, axes), norm, False)


def ifftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None) -> Pair:
    """The inverse of `fftn`.

    errors: those of `fft`.

    >>> re, im = rs.fft.ifftn(rs.fft.fftn(np.eye(2)))
    >>> re.eval()
    array([[1., 0.],
           [0., 1.]])
    """
    pair = _pair(a, "ifftn")
    return _over(pair, _axes(pair[0], s, axes), norm, True)


def rfftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None) -> Pair:
    """`rfft` along the last of several axes, `fft` along the others.

    errors: those of `fft`.

    >>> re, im = rs.fft.rfftn(np.ones((2, 2)))
    >>> re.eval()
    array([[4., 0.],
           [0., 0.]])
    """
    v = _real(a, "rfftn")
    *before, (axis, n) = _axes(v, s, axes)
    return _over(rfft(v, n, axis, norm), before, norm, False)


def irfftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None) -> Variable:
    """The inverse of `rfftn`.

    errors: those of `fft`.

    >>> rs.fft.irfftn(rs.fft.rfftn(np.eye(2))).eval()
    array([[1., 0.],
           [0., 1.]])
    """
    pair = _pair(a, "irfftn")
    *before, (axis, n) = _axes(pair[0], s, axes)
    for other, m in before:
        pair = _along(pair, m, other, norm, True)
    return irfft(pair, n, axis, norm)


def fft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None) -> Pair:
    """`fftn` along two axes.

    errors: those of `fft`.

    >>> rs.fft.fft2(np.eye(2))[0].eval()
    array([[2., 0.],
           [0., 2.]])
    """
    return fftn(a, s, axes, norm)


def ifft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None) -> Pair:
    """`ifftn` along two axes.

    errors: those of `fft`.

    >>> rs.fft.ifft2(rs.fft.fft2(np.eye(2)))[0].eval()
    array([[1., 0.],
           [0., 1.]])
    """
    return ifftn(a, s, axes, norm)


def rfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None) -> Pair:
    """`rfftn` along two axes.

    errors: those of `fft`.

    >>> rs.fft.rfft2(np.ones((2, 2)))[0].eval()
    array([[4., 0.],
           [0., 0.]])
    """
    return rfftn(a, s, axes, norm)


def irfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None) -> Variable:
    """`irfftn` along two axes.

    errors: those of `fft`.

    >>> rs.fft.irfft2(rs.fft.rfft2(np.eye(2))).eval()
    array([[1., 0.],
           [0., 1.]])
    """
    return irfftn(a, s, axes, norm)


def fftfreq(n: Any, d: Any = 1.0, *, dtype: Any = None) -> Variable:
    """The frequencies of the elements of `fft`, for samples at a distance d, as float64 or as `dtype` says.

    errors: `RscanTypeError` (E0809) for `n` of another kind; `RscanValueError` (E0809) for `n` out of range; `ShapeError` (E0201) where
    shapes do not broadcast.

    >>> rs.fft.fftfreq(4).eval()
    array([ 0.  ,  0.25, -0.5 , -0.25])
    """
    size = _count(n)
    places = concatenate([arange(0, (size - 1) // 2 + 1), arange(-(size // 2), 0)])
    return cast(cast(places, "float64") / (size * d), "float64" if dtype is None else dtype)


def rfftfreq(n: Any, d: Any = 1.0, *, dtype: Any = None) -> Variable:
    """The frequencies of the elements of `rfft`, as `fftfreq`.

    errors: `RscanTypeError` (E0809) for `n` of another kind; `RscanValueError` (E0809) for `n` out of range; `ShapeError` (E0201) where
    shapes do not broadcast.

    >>> rs.fft.rfftfreq(4).eval()
    array([0.  , 0.25, 0.5 ])
    """
    size = _count(n)
    return cast(cast(arange(0, size // 2 + 1), "float64") / (size * d), "float64" if dtype is None else dtype)


def _rolled(x: Any, axes: Any, back: bool) -> Any:
    if isinstance(x, tuple):
        re, im = _pair(x, "fftshift")
        return _rolled(re, axes, back), _rolled(im, axes, back)
    v = as_variable(x)
    for axis in axes_of(axes, v.ndim):
        half = v.shape[axis] // 2
        v = roll(v, -half if back else half, axis)
    return v


def fftshift(x: Any, axes: Any = None) -> Any:
    """With the element of frequency 0 in the middle; of a pair a pair.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axes` of another kind; `AxisError` (E0810) for an axis
    that is not there.

    >>> rs.fft.fftshift([0, 1, 2, -2, -1]).eval()
    array([-2, -1,  0,  1,  2])
    """
    return _rolled(x, axes, False)


def ifftshift(x: Any, axes: Any = None) -> Any:
    """The inverse of `fftshift`.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `axes` of another kind; `AxisError` (E0810) for an axis
    that is not there.

    >>> rs.fft.ifftshift([-2, -1, 0, 1, 2]).eval()
    array([ 0,  1,  2, -2, -1])
    """
    return _rolled(x, axes, True)
