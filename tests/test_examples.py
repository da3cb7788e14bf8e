"""Every example runs and agrees with its reference."""

import importlib.util

import executed
import numpy as np

FOLDER = executed.ROOT / "examples"


def run(name):
    """The result of main() of an example."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.main()


def test_garch():
    r = run("garch")
    np.testing.assert_allclose(r["theta"], r["arch"], rtol=1e-4)
    assert abs(r["log_likelihood"] - r["arch_log_likelihood"]) < 1e-4
    assert r["plot"].stat().st_size > 10_000


def test_ar2_sunspots():
    r = run("ar2_sunspots")
    np.testing.assert_allclose(r["parameters"], r["statsmodels"], rtol=1e-5)
    np.testing.assert_allclose(r["forecast"], r["statsmodels_forecast"], rtol=1e-4)
    assert abs(r["log_likelihood"] - r["statsmodels_log_likelihood"]) < 1e-6


def test_nile_kalman():
    r = run("nile_kalman")
    np.testing.assert_allclose(r["variances"], r["published"], rtol=2e-4)
    np.testing.assert_allclose(r["level"], r["statsmodels_level"], rtol=1e-9)
    assert abs(r["log_likelihood"] - r["statsmodels_log_likelihood"]) < 1e-8


def test_char_rnn():
    r = run("char_rnn")
    assert r["first"] > r["letters"] > r["bound"] > r["last"]
    assert len(r["text"]) == 240
    assert 25 < r["text"].count(" ") < 80


def test_rbm_gibbs():
    r = run("rbm_gibbs")
    assert r["error_last"] < r["error_bound"] < r["error_first"]
    assert 0 < r["flips"] < 0.5 * r["most_flips"]
    assert abs(r["sample_mean"] - r["data_mean"]) < 0.05


def test_powers_until():
    r = run("powers_until")
    np.testing.assert_array_equal(r["values"], [2, 4, 8, 16, 32, 64])
    assert r["derivative"] == 64
    assert len(r["long"]) == 997  # 2**997 is the first power of two above 1e300


def test_jacobian_hessian():
    r = run("jacobian_hessian")
    for name, value in r["found"].items():
        np.testing.assert_allclose(value, r["expected"][name], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(r["library"][0], r["expected"]["jacobian"], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(r["library"][1], r["expected"]["hessian"], rtol=1e-10, atol=1e-12)


def test_every_example_is_tested():
    tested = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
    assert {p.stem for p in FOLDER.glob("*.py")} <= tested
