"""Fourier transforms give NumPy's values as pairs of real arrays, with the gradients of linear functions."""

import numpy as np
import pytest

import rscan as rs

RNG = np.random.default_rng(8)
LENGTHS = [1, 2, 3, 4, 5, 8, 12, 30, 61, 67, 97, 128]
NORMS = [None, "backward", "ortho", "forward"]


def pair(z):
    return z.real.copy(), z.imag.copy()


def close(got, expected, tolerance=1e-12):
    got = [v.eval() for v in got] if isinstance(got, tuple) else got.eval()
    got = got[0] + 1j * got[1] if isinstance(got, list) else got
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance * max(1.0, np.abs(expected).max(initial=0.0)))


def complex_numbers(*shape):
    return RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)


@pytest.mark.parametrize("m", LENGTHS)
@pytest.mark.parametrize("norm", NORMS)
def test_lengths(m, norm):
    x, z = RNG.standard_normal((2, m)), complex_numbers(m, 2)
    for n in (None, 1, m, m + 3, max(m - 2, 1)):
        close(rs.fft.rfft(x, n, norm=norm), np.fft.rfft(x, n, norm=norm))
        close(rs.fft.fft(x, n, norm=norm), np.fft.fft(x, n, norm=norm))
        close(rs.fft.fft(pair(z), n, 0, norm), np.fft.fft(z, n, 0, norm))
        close(rs.fft.ifft(pair(z), n, 0, norm), np.fft.ifft(z, n, 0, norm))
        close(rs.fft.ihfft(x, n, norm=norm), np.fft.ihfft(x, n, norm=norm))
        if n or m > 1:
            close(rs.fft.irfft(pair(z), n, 0, norm), np.fft.irfft(z, n, 0, norm))
            close(rs.fft.hfft(pair(z), n, 0, norm), np.fft.hfft(z, n, 0, norm))


@pytest.mark.parametrize("m", [2, 5, 8])
@pytest.mark.parametrize("n", [1, 3, 4, 9])
def test_lengths_that_are_known_when_the_function_runs(m, n):
    x, y, size = rs.dvector("x"), rs.dvector("y"), rs.lscalar("size")
    a, b = RNG.standard_normal((2, m))
    f = rs.function([x, y, size], [*rs.fft.rfft(x), *rs.fft.rfft(x, size), rs.fft.irfft((x, y), size), *rs.fft.fft((x, y), size)])
    re, im, re_n, im_n, back, re_z, im_z = f(a, b, n)
    z = a + 1j * b
    np.testing.assert_allclose(re + 1j * im, np.fft.rfft(a), atol=1e-12)
    np.testing.assert_allclose(re_n + 1j * im_n, np.fft.rfft(a, n), atol=1e-12)
    np.testing.assert_allclose(back, np.fft.irfft(z, n), atol=1e-12)
    np.testing.assert_allclose(re_z + 1j * im_z, np.fft.fft(z, n), atol=1e-12)
    freq = rs.function([size], [rs.fft.fftfreq(size, 0.5), rs.fft.rfftfreq(size)])
    np.testing.assert_allclose(freq(n)[0], np.fft.fftfreq(n, 0.5))
    np.testing.assert_allclose(freq(n)[1], np.fft.rfftfreq(n))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint16", "bool"])
def test_dtypes_and_empty_batches(dtype):
    x = RNG.integers(0, 5, (3, 6)).astype(dtype)
    found = rs.fft.rfft(x)
    assert found[0].dtype == np.fft.rfft(x).real.dtype
    close(found, np.fft.rfft(x), 1e-6)
    close(rs.fft.rfft(x[:0]), np.fft.rfft(x[:0]))
    assert rs.fft.irfft((np.ones(3, "float32"), np.ones(3, "float32"))).dtype == "float32"


def test_several_axes():
    x, z = RNG.standard_normal((3, 4, 5)), complex_numbers(3, 4, 5)
    for axes in (None, (0, 2), (2, 0), (1,)):
        close(rs.fft.fftn(pair(z), axes=axes), np.fft.fftn(z, axes=axes))
        close(rs.fft.ifftn(pair(z), axes=axes, norm="ortho"), np.fft.ifftn(z, axes=axes, norm="ortho"))
        close(rs.fft.rfftn(x, axes=axes), np.fft.rfftn(x, axes=axes))
        close(rs.fft.irfftn(pair(z), axes=axes), np.fft.irfftn(z, axes=axes))
    close(rs.fft.fftn(pair(z), s=(2, 6), axes=(0, 1)), np.fft.fftn(z, s=(2, 6), axes=(0, 1)))
    close(rs.fft.irfftn(pair(z), s=(5, 7), axes=(1, 2)), np.fft.irfftn(z, s=(5, 7), axes=(1, 2)))
    close(rs.fft.fft2(pair(z)), np.fft.fft2(z))
    close(rs.fft.ifft2(pair(z)), np.fft.ifft2(z))
    close(rs.fft.rfft2(x), np.fft.rfft2(x))
    close(rs.fft.irfft2(pair(z)), np.fft.irfft2(z))
    close(rs.fft.fftshift(pair(z)), np.fft.fftshift(z))
    close(rs.fft.ifftshift(x, axes=(0, 2)), np.fft.ifftshift(x, axes=(0, 2)))
    close(np.fft.rfft(rs.constant(x)), np.fft.rfft(x))


def test_an_axis_given_twice_is_transformed_twice_the_last_first():
    z = complex_numbers(3, 4)
    for ours, theirs in ((rs.fft.fftn, np.fft.fftn), (rs.fft.ifftn, np.fft.ifftn)):
        close(ours(pair(z), s=(2, 5), axes=(0, 0)), theirs(z, s=(2, 5), axes=(0, 0)))
    assert rs.fft.fftn(z.real, s=(2, 5), axes=(0, 0))[0].eval().shape == (2, 4)


def test_gradients_and_rows():
    weights = RNG.standard_normal(9)
    loss = lambda x: sum(rs.sum(rs.constant(weights)[: v.shape[0]] * v**2) for v in rs.fft.rfft(x))
    for n in (1, 4, 7, 9):
        rs.verify_grad(loss, [RNG.standard_normal(n)])
        rs.verify_grad(lambda re, im: rs.sum(rs.fft.irfft((re, im)) ** 2 * 0.5), [*pair(complex_numbers(n + 1))])
        rs.verify_grad(lambda re, im, n=n: rs.sum(weights[:n] * rs.fft.ifft((re, im))[1] ** 2), [*pair(complex_numbers(n))])
    x = rs.dmatrix("x")
    rows = rs.vmap(lambda v: rs.fft.rfft(v)[1])(x)
    v = RNG.standard_normal((3, 6))
    np.testing.assert_allclose(rs.function([x], rows)(v), np.fft.rfft(v).imag, atol=1e-12)
    np.testing.assert_allclose(rs.hessian(loss)(v[0]), rs.jacobian(rs.grad(loss))(v[0]), atol=1e-12)


def test_a_filter_in_a_loop():
    signal, gain = RNG.standard_normal((5, 8)), np.array([1.0, 0.5, 0.25, 0.0, 0.0])
    x = rs.dmatrix("x")

    def step(row, state):
        re, im = rs.fft.rfft(row + 0.5 * state)
        return rs.fft.irfft((re * gain, im * gain), n=8)

    f = rs.function([x], rs.loop(step, over=x, init=np.zeros(8)))
    state, expected = np.zeros(8), []
    for row in signal:
        state = np.fft.irfft(np.fft.rfft(row + 0.5 * state) * gain, 8)
        expected.append(state)
    np.testing.assert_allclose(f(signal), expected, atol=1e-12)


WRONG = {
    "scalar": (lambda: rs.fft.fft(1.0), TypeError),
    "three": (lambda: rs.fft.fft((np.ones(2), np.ones(2), np.ones(2))), TypeError),
    "shapes": (lambda: rs.fft.fft((np.ones(2), np.ones(3))), rs.ShapeError),
    "ranks": (lambda: rs.fft.fft((np.ones(2), np.ones((2, 2)))), rs.ShapeError),
    "a pair that is to be real": (lambda: rs.fft.rfft((np.ones(2), np.ones(2))), TypeError),
    "axis": (lambda: rs.fft.rfft(np.ones(2), axis=1), rs.AxisError),
    "no elements": (lambda: rs.fft.fft(np.ones(0)), ValueError),
    "n": (lambda: rs.fft.fft(np.ones(3), 0), ValueError),
    "broken n": (lambda: rs.fft.fft(np.ones(3), 2.5), TypeError),
    "several n": (lambda: rs.fft.fft(np.ones(3), rs.lvector("n")), TypeError),
    "n that is a float": (lambda: rs.fft.fft(np.ones(3), rs.dscalar("n")), TypeError),
    "norm": (lambda: rs.fft.fft(np.ones(3), norm="no"), ValueError),
    "norm of hfft": (lambda: rs.fft.hfft(np.ones(3), norm="no"), ValueError),
    "sizes": (lambda: rs.fft.fftn(np.ones((2, 2)), s=(2, 2), axes=(0,)), ValueError),
    "one element": (lambda: rs.fft.irfft(np.ones(1)), ValueError),
    "complex": (lambda: rs.fft.fft(np.ones(2) * 1j), rs.RscanError),
}


@pytest.mark.parametrize("name", WRONG)
def test_mistakes(name):
    make, kind = WRONG[name]
    with pytest.raises(kind):
        make()
