"""The programs of Theano's documentation of scan, with only their import lines changed: they print what it prints."""

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

import rscan.theano as theano

SEEDS = Path(__file__).parent / "seeds"
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")

#: What each program prints, as numbers; NumPy changes how it spaces arrays.
PRINTED = {
    "power": [n**2 for n in range(10)] + [n**4 for n in range(10)],
    "polynomial": [19.0, 19.0],
    "triangular": [n * (n + 1) // 2 for n in range(15)] * 2,
    "set_value_at_position": [42 * (i == 6) for i in range(25)] + [50 * (i == 13) for i in range(25)],
    "power_of_2": [2, 4, 8, 16, 32, 64],
    "capture": [1, 4, 9, 16],
    "derivatives": [8, 0, 0, 8, 2, 0, 0, 2],
}


def run(name: str, capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, object], str]:
    """The names and the output of a program."""
    names = runpy.run_path(str(SEEDS / f"{name}.py"))
    return names, capsys.readouterr().out


@pytest.mark.parametrize("name", PRINTED)
def test_program_prints_the_numbers_of_the_documentation(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, out = run(name, capsys)
    assert [float(x) for x in NUMBER.findall(out)] == [float(x) for x in PRINTED[name]]


def test_cumulative_sums(capsys: pytest.CaptureFixture[str]) -> None:
    _, out = run("cumulative_sum", capsys)
    geometric = [sum(5.0**k for k in range(n)) for n in range(1, 9)]
    expected = [*range(1, 21), *(n for n in range(1, 21) for _ in range(3)), *geometric]
    np.testing.assert_allclose([float(x) for x in NUMBER.findall(out)], expected)


def test_updates_and_until_read_what_was_before_the_step(capsys: pytest.CaptureFixture[str]) -> None:
    _, out = run("updates_until", capsys)
    # x < 50 holds at the first step: the loop stops after it, and its update counts.
    lines = out.splitlines()
    assert [float(v) for v in NUMBER.findall(re.sub("array|float32", "", lines[0]))] == [1.0, 2.0, 1.0]
    assert [float(v) for v in NUMBER.findall(re.sub("array|float32", "", lines[1]))] == [1.0, 2.0, 50.0]
    assert lines[2].split() == ["100", "100.0", "True", "150"]


def test_the_step_gets_its_arguments_in_the_documented_order(capsys: pytest.CaptureFixture[str]) -> None:
    names, out = run("argument_order", capsys)
    order = ["Sequence1[t-3]", "Sequence1[t+2]", "Sequence1[t-1]", "Sequence2[t]", "Sequence3[t+3]"]
    order += ["Output1[t-3]", "Output1[t-5]", "Output3[t-1]", "Argument1", "Argument2"]
    assert eval(out.splitlines()[0]) == order
    first, second, third = names["f"](range(10), range(10), range(20), [10, 11, 12, 13, 14], 0, 0, 0)
    # Five steps: the taps of Sequence1 span five rows of ten.
    assert first.tolist() == [12, 13, 14, 12, 13]
    assert second.tolist() == [0, 1, 2, 3, 4]
    assert third.tolist() == [0] * 5


def test_recurrent_network_against_a_loop(rng: np.random.Generator) -> None:
    names = runpy.run_path(str(SEEDS / "rnn.py"))
    weights = [names[w] for w in ("W", "W_in_1", "W_in_2", "W_feedback", "W_out")]
    inputs = [names["u"], names["x0"], names["y0"], *weights]
    f = theano.function(inputs, [names["x_vals"], names["y_vals"]], updates=names["updates"])
    n, k, m = 4, 3, 2
    u, x0, y0 = rng.normal(size=(9, k)), rng.normal(size=(3, n)), rng.normal(size=m)
    w = [rng.normal(size=s) for s in ((n, n), (k, n), (k, n), (m, n), (n, m))]
    xs, ys = list(x0), [y0]
    for t in range(4, 9):
        x_t = np.tanh(xs[-1] @ w[0] + u[t] @ w[1] + u[t - 4] @ w[2] + ys[-1] @ w[3])
        y_t = xs[-3] @ w[4]
        xs.append(x_t)
        ys.append(y_t)
    found = f(u, x0, y0, *w)
    np.testing.assert_allclose(found[0], xs[3:], rtol=1e-12)
    np.testing.assert_allclose(found[1], ys[1:], rtol=1e-12)


def test_map_reduce_folds_checkpoints_and_empty_loops(capsys: pytest.CaptureFixture[str]) -> None:
    _, out = run("family", capsys)
    numbers = [float(x) for x in NUMBER.findall(out)]
    assert numbers[:6] == [2, 4, 6, 6, 11, 17]
    assert numbers[6:12] == [1, 2.0**4, 1, 2.0**8, 1, 2.0**10]
    assert numbers[12:14] == [10, 10 * 2.0**9]
    assert numbers[14:] == [3, 2, 1, 0]


def test_a_compiled_function_is_no_step() -> None:
    x = theano.tensor.dvector("x")
    f = theano.function([x], x * 2)
    with pytest.raises(ValueError, match="compiled function"):
        theano.scan(f, sequences=x)
