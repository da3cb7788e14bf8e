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


def test_gru_language_model():
    r = run("gru_language_model")
    np.testing.assert_array_equal(r["losses"], r["resumed"])  # bit for bit, from a checkpoint on
    assert np.mean(r["losses"][:5]) > r["letters"] > 2.0 > np.mean(r["losses"][-20:])
    assert len(r["text"]) == 200 and r["plot"].stat().st_size > 5_000


def test_stochastic_volatility():
    r = run("stochastic_volatility")
    assert r["rhat"] < 1.1
    assert np.all((r["accepted"] > 0.5) & (r["accepted"] < 0.99))
    assert np.corrcoef(r["volatility"], r["garch"])[0, 1] > 0.7
    # what nutpie found of the same density, with 2 × 1000 draws: 1.54 ± 0.41, 0.951 ± 0.042, 0.194 ± 0.073
    mu, phi, sigma = r["draws"][..., 0].mean(), np.tanh(r["draws"][..., 1]).mean(), np.exp(r["draws"][..., 2]).mean()
    assert abs(mu - 1.54) < 0.2 and abs(phi - 0.951) < 0.02 and abs(sigma - 0.194) < 0.04


def test_neural_ode():
    r = run("neural_ode")
    assert r["losses"][0] > 0.5 and r["losses"][-1] < 0.05
    assert max(r["errors"]["years learnt"], r["errors"]["one more year"]) < 0.25  # of the seasons' standard deviation
    assert r["plot"].stat().st_size > 10_000


def test_adam_gru():
    r = run("adam_gru")
    np.testing.assert_allclose(r["losses"][:: r["every"]], r["jax"], rtol=1e-8)


def test_lotka_volterra():
    r = run("lotka_volterra")
    np.testing.assert_allclose(r["ours"], r["scipy"], rtol=2e-3)
    assert r["costs"]["rscan"] <= r["costs"]["SciPy"]
    assert r["solved"]["SciPy"] < 1e-6
    np.testing.assert_allclose(r["ours"][:4], [0.55, 0.028, 0.80, 0.024], rtol=0.05)


def test_gamma_variational():
    r = run("gamma_variational")
    np.testing.assert_allclose(r["mean"], r["exact_mean"], rtol=0.01)
    np.testing.assert_allclose(r["shape"], r["exact_shape"], rtol=0.1)
    assert 0 < r["evidence"] - r["bound"] < 0.05
    np.testing.assert_allclose(r["slope"], r["exact_slope"], atol=0.3)


def test_crf():
    r = run("crf")
    assert abs(r["z"] - r["expected_z"]) < 1e-9 and abs(r["few"] - r["expected_few"]) < 1e-9
    np.testing.assert_allclose(r["chances"], r["expected_chances"], atol=1e-10)
    np.testing.assert_array_equal(r["path"], r["expected_path"])
    assert r["losses"][0] > 1.3 and r["losses"][-1] < 0.2 and r["right"] > 0.8


def test_every_example_is_tested():
    tested = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
    assert {p.stem for p in FOLDER.glob("*.py")} <= tested
