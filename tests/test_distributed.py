"""The examples for many processes and machines: results have the bits of one process, whoever distributes the work."""

import subprocess
import sys

import executed
import numpy as np
import pytest

FOLDER = executed.ROOT / "examples" / "distributed"
PROGRAM = """
import sys, numpy as np
sys.path.insert(0, {folder!r})
if __name__ == "__main__":
    from run import main
    found = main({on!r}, workers=2, series=50, days=200, parts=3, units=20)
    np.savez({out!r}, fits=found["fits"], beta=found["beta"], value=found["value"])
"""


def found(on, folder):
    """What the example computes in a process of its own."""
    program, out = folder / f"on_{on}.py", folder / f"{on}.npz"
    program.write_text(PROGRAM.format(folder=str(FOLDER), on=on, out=str(out)))
    done = subprocess.run([sys.executable, "-W", "ignore", program], capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stderr
    with np.load(out) as values:
        return dict(values)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    return found("alone", tmp_path_factory.mktemp("alone"))


def test_fits_find_what_was_simulated(alone):
    _, alpha, beta, _ = alone["fits"].T
    assert alone["fits"].shape == (50, 4) and np.isfinite(alone["fits"]).all()
    assert np.all((alpha >= 0) & (beta >= 0) & (alpha + beta < 1))
    np.testing.assert_allclose(alone["beta"][:4], [0.3, 0.3, 0.3, 0.4], atol=0.2)


@pytest.mark.parametrize(("on", "package"), [("processes", None), ("dask", "distributed"), ("ray", "ray")])
def test_bits_are_those_of_one_process(on, package, alone, tmp_path):
    if package:
        pytest.importorskip(package)
    other = found(on, tmp_path)
    for name, value in alone.items():
        np.testing.assert_array_equal(other[name], value)
