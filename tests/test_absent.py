"""Names of NumPy's and SciPy's that are missing say what to do instead, and that is right; the page and what completion shows."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg
import scipy.special
import scipy.stats

import rscan as rs


def test_what_numpy_has_and_is_missing_says_what_to_do_instead():
    absent = [n for n in dir(np) if not n.startswith("_") and not hasattr(rs, n)]
    assert {"roots", "savez", "complex128", "mgrid", "frexp", "vectorize"} <= set(absent)
    for name in absent:
        with pytest.raises(AttributeError, match=r"which numpy has: ."):
            getattr(rs, name)
    for name in [n for n in dir(np.linalg) if not n.startswith("_") and not hasattr(rs.linalg, n)]:
        with pytest.raises(AttributeError, match=r"which numpy\.linalg has: ."):
            getattr(rs.linalg, name)
    with pytest.raises(AttributeError, match=r"no attribute 'nothing'$"):
        rs.nothing
    from rscan import _instead

    scipys = [scipy.special, scipy.stats, scipy.linalg]
    for table, ours, theirs in (
        (_instead.NUMPY, rs, [np]), (_instead.LINALG, rs.linalg, [np.linalg, scipy.linalg]), (_instead.RANDOM, rs.random, [np.random]),
        (_instead.SPECIAL, rs.special, [scipy.special]), (_instead.STATS, rs.stats, [scipy.stats]),
    ):  # fmt: skip
        assert [n for n in table if hasattr(ours, n) or not any(hasattr(t, n) for t in theirs)] == []
        absent = [n for n in dir(theirs[0]) if not n.startswith("_") and not hasattr(ours, n)]
        assert theirs[0] in scipys or [n for n in absent if n not in table] == []
        for name, text in table.items():
            with pytest.raises(AttributeError, match=re.escape(text)):
                getattr(ours, name)
    with pytest.raises(AttributeError, match="functions of SciPy's that are not here"):
        rs.special.nothing
    for module in (rs.optim, rs.ode):
        with pytest.raises(AttributeError, match=r"no attribute 'nothing'$"):
            module.nothing
    with pytest.raises(NotImplementedError, match=r"rs\.linalg\.eigh"):
        np.linalg.eig(rs.matrix("x"))
    with pytest.raises(NotImplementedError, match=r"rs\.bincount"):
        np.histogram2d(rs.vector("x"), rs.vector("y"))


#: What the texts say to write, of these numbers, and what SciPy gives.
SAID = {
    ("SPECIAL", "betaincc"): (dict(a=2.0, b=3.0, x=0.3), scipy.special.betaincc(2.0, 3.0, 0.3)),
    ("SPECIAL", "rgamma"): (dict(x=3.5), scipy.special.rgamma(3.5)),
    ("SPECIAL", "erfcx"): (dict(x=9.0), scipy.special.erfcx(9.0)),
    ("SPECIAL", "exprel"): (dict(x=0.3), scipy.special.exprel(0.3)),
    ("SPECIAL", "boxcox"): (dict(x=2.0, lmbda=0.5), scipy.special.boxcox(2.0, 0.5)),
    ("SPECIAL", "inv_boxcox"): (dict(y=2.0, lmbda=0.5), scipy.special.inv_boxcox(2.0, 0.5)),
    ("SPECIAL", "exp10"): (dict(x=1.5), 10**1.5),
    ("SPECIAL", "huber"): (dict(d=1.0, r=2.5), scipy.special.huber(1.0, 2.5)),
    ("SPECIAL", "perm"): (dict(n=7.0, k=3.0), 210.0),
    ("SPECIAL", "zetac"): (dict(x=3.0), scipy.special.zetac(3.0)),
    ("STATS", "rayleigh"): (dict(x=1.3, scale=2.0), scipy.stats.rayleigh.logpdf(1.3, 0.0, 2.0)),
    ("STATS", "chi"): (dict(x=1.3, df=3.0), scipy.stats.chi.logpdf(1.3, 3.0)),
    ("STATS", "loguniform"): (dict(x=1.3, a=1.0, b=4.0), scipy.stats.loguniform.logpdf(1.3, 1.0, 4.0)),
    ("STATS", "betabinom"): (dict(k=2.0, n=5.0, a=1.5, b=2.5), scipy.stats.betabinom.logpmf(2, 5, 1.5, 2.5)),
    ("STATS", "zscore"): (dict(x=np.array([1.0, 4.0])), np.array([-1.0, 1.0])),
    ("RANDOM", "rayleigh"): (dict(scale=2.0), 2 * np.sqrt(np.pi / 2)),
    ("RANDOM", "power"): (dict(a=3.0), 0.75),
    ("RANDOM", "negative_binomial"): (dict(n=3.0, p=0.4), 4.5),
    ("RANDOM", "noncentral_chisquare"): (dict(df=3.0, nonc=2.0), 5.0),
    ("RANDOM", "f"): (dict(m=3.0, n=12.0), 1.2),
}


@pytest.mark.parametrize("which", SAID)
def test_what_is_said_instead_is_right(which):
    from rscan import _instead

    numbers, expected = SAID[which]
    text = getattr(_instead, which[0])[which[1]].split(";")[0]
    shape = (20_000,)
    given = {k: rs.constant(v) for k, v in numbers.items()} | {"rs": rs, "shape": shape, "key": rs.random.key(0)}
    draws = which[0] == "RANDOM"
    if draws:
        given |= {k: rs.full(shape, v) for k, v in numbers.items()} | {"k1": rs.random.key(1), "k2": rs.random.key(2)}
    got = rs.eval(eval(text, given))
    np.testing.assert_allclose(got.mean() if draws else got, expected, rtol=0.05 if draws else 1e-9)


def test_the_page_of_what_is_missing_is_current():
    tool = Path(__file__).parent.parent / "tools" / "absent.py"
    done = subprocess.run([sys.executable, str(tool)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_completion_shows(monkeypatch):
    """Public names alone: no imports, and without the facade no words of Theano's beside NumPy's."""
    monkeypatch.delitem(sys.modules, "rscan.theano", raising=False)
    for module in (rs.optim, rs.ode, rs.special, rs.stats, rs.fft, rs.linalg, rs.random):
        assert dir(module) == sorted(module.__all__) and all(hasattr(module, name) for name in dir(module))
    assert {"equal", "multiply", "stop_gradient", "segment_max"} <= set(dir(rs))
    assert not {"eq", "mul", "inc_subtensor", "consider_constant", "Rop", "alloc"} & set(dir(rs)) and rs.eq is rs.equal


def test_modules_do_not_stand_among_functions():
    """Those that are imported when they are used."""
    program = """
import types, rscan as rs
x = rs.dvector()
f = rs.function([x], rs.loop(lambda a, b: a + b, over=x, init=0.0))
f([1.0]); f.explain(); f.profile; rs.show(f); f.bind([1.0])(); rs.grad(rs.sum(x), x)
print([n for n in vars(rs) if isinstance(vars(rs)[n], types.ModuleType) and not n.startswith("_") and n not in rs.__all__])
from rscan.explain import Explanation
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stdout + done.stderr


def test_what_importing_rscan_leaves_out():
    """It takes a good part of the time that these modules would take."""
    program = """
import sys, rscan
left_out = "fft ode optim special stats explain bench doctor theano onnx interop".split()
others = "scipy matplotlib pandas torch jax onnx asyncio unittest http multiprocessing doctest".split()
print([m for m in sys.modules if m.split(".")[0] in others or m in [f"rscan.{name}" for name in left_out]])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stdout + done.stderr


def test_names_of_jax_say_what_is_here():
    from rscan import _instead

    for name in _instead.JAX:
        assert not hasattr(rs, name), name
        with pytest.raises(AttributeError) as caught:
            getattr(rs, name)
        assert str(caught.value).endswith(_instead.JAX[name]), name
    for text in _instead.JAX.values():
        for own in re.findall(r"rs\.(\w+)", text):
            assert hasattr(rs, own), own
