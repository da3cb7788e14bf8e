"""`theano.tensor.fft` gives NumPy's transforms, with a last axis for real and imaginary part, and their gradients."""

import numpy as np
import pytest

import rscan as rs
import rscan.theano as theano
import rscan.theano.tensor as T
from rscan.theano.tensor import fft

rng = np.random.default_rng(0)
NORMS = {None: ("backward", "backward"), "ortho": ("ortho", "ortho"), "no_norm": ("backward", "forward")}


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("shape", [(3, 8), (2, 7), (2, 4, 6), (1, 3, 5), (2, 1)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_like_numpy(norm, shape, dtype):
    x = rng.standard_normal(shape).astype(dtype)
    axes, (forward, inverse) = tuple(range(1, len(shape))), NORMS[norm]
    v = T.TensorType(dtype, (False,) * len(shape))()
    there = theano.function([v], fft.rfft(v, norm))(x)
    expected = np.fft.rfftn(x, axes=axes, norm=forward)
    assert there.dtype == dtype and there.shape == (*expected.shape, 2)
    close = dict(rtol=1e-5, atol=1e-5) if dtype == "float32" else dict(rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(there[..., 0] + 1j * there[..., 1], expected, **close)
    w = T.TensorType(dtype, (False,) * (len(shape) + 1))()
    for odd in (False, True):
        back = theano.function([w], T.fft.irfft(w, norm, odd))(there)
        n = (expected.shape[-1] - 1) * 2 + odd
        if n:
            wide = np.fft.irfftn(expected, s=(*shape[1:-1], n), axes=axes, norm=inverse)
            assert back.dtype == dtype and back.shape == wide.shape
            np.testing.assert_allclose(back, wide, **close)


def test_gradients():
    x, weights = rng.standard_normal((2, 3, 5)), rng.standard_normal((2, 3, 3, 2))
    rs.verify_grad(lambda v: rs.sum(fft.rfft(v, "ortho") * weights), [x])
    for odd in (False, True):
        rs.verify_grad(lambda v, odd=odd: rs.sum(fft.irfft(v, is_odd=odd) ** 2), [weights])


def test_of_known_extents_the_result_has_known_ones():
    v = theano.shared(np.ones((2, 8)))
    assert fft.rfft(v).eval().shape == (2, 5, 2)


@pytest.mark.parametrize(
    "call", [lambda v: fft.rfft(v, "forward"), lambda v: fft.irfft(v, is_odd=2), lambda v: fft.irfft(v), lambda v: fft.rfft(v[0])]
)
def test_refused(call):
    with pytest.raises((ValueError, TypeError), match="E0809"):
        call(T.matrix())
