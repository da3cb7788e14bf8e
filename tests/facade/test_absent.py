"""What is lacking says so when it is used, and stands on the page that lists it."""

import importlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import rscan.theano as theano
import rscan.theano.tensor as T
from rscan.theano import absent

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "absent.md").read_text()
PLACES = [(module, feature, name) for module, features in absent.NAMES.items() for feature, names in features.items() for name in names]


def at(path):
    found = theano
    for part in path.split("."):
        found = getattr(found, part)
    return found


@pytest.mark.parametrize(("module", "feature", "name"), PLACES)
def test_lacking_functions_raise_when_called(module, feature, name):
    with pytest.raises(NotImplementedError, match=feature) as error:
        getattr(at(module), name)("anything", option=1)
    assert error.value.code == "E0813" and absent.INSTEAD[feature] in str(error.value) and f"`{module}.{name}`" in str(error.value)


@pytest.mark.parametrize(("module", "feature"), absent.MODULES.items())
def test_lacking_modules_can_be_imported_and_not_used(module, feature):
    found = importlib.import_module(f"rscan.theano.{module}")
    assert found is at(module)
    with pytest.raises(NotImplementedError, match=feature):
        found.anything()
    with pytest.raises(AttributeError):
        found.__wrapped__
    assert f"`{module}`" in PAGE


def test_the_page_lists_every_feature_and_name():
    for feature, instead in absent.INSTEAD.items():
        (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| {feature} |")]
        assert instead == row.split("|")[3].strip().replace("`", "")
    for _, feature, name in PLACES:
        assert f"{name}`" in PAGE or feature == "complex numbers"
    with pytest.raises(NotImplementedError, match="any Python type"):
        theano.gof.generic()


def test_dtypes_that_are_lacking():
    for make in (
        lambda: T.TensorType("complex64", (False,))(),
        lambda: T.vector(dtype="float16"),
        lambda: T.cast(T.vector(), "complex128"),
        lambda: theano.shared(np.zeros(2, "complex64")),
        lambda: theano.shared(np.zeros(2, "float16")),
        lambda: theano.shared({"a": 1}),
        lambda: T.constant(1j),
        lambda: T.as_tensor_variable(np.zeros(2, complex)),
        lambda: T.vector() * 1j,
        lambda: 1j + T.vector(),
    ):
        with pytest.raises(TypeError, match=r"E080[56]"):
            make()
    with pytest.raises(ValueError, match="E0808"):
        theano.config.floatX = "float16"


def run(*arguments, cwd):
    done = subprocess.run([sys.executable, *arguments], cwd=cwd, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("arguments", [["nofile.py"], ["folder"], ["-m", "nomodule"], ["-m", "nomodule.inner"]])
def test_a_program_that_is_not_there_is_the_error_that_python_gives(arguments, tmp_path):
    (tmp_path / "folder").mkdir()
    expected = run(*arguments, cwd=tmp_path)
    found = run("-m", "rscan.theano", *arguments, cwd=tmp_path)
    assert found[0] == expected[0] != 0 and found[1] == "" and "Traceback" not in found[2]
    if "." not in arguments[-1] or arguments[0] != "-m":
        assert found[2].replace(str(tmp_path), "") == expected[2].replace(str(tmp_path), "")


def test_programs_import_what_is_lacking(tmp_path):
    (tmp_path / "program.py").write_text(
        "import sys, theano, theano.sparse, theano.tensor as T\n"
        "from theano.tensor.signal.pool import pool_2d\n"
        "from theano.tensor.nnet import conv2d\n"
        "from theano.gof import local_optimizer\n"
        "print(theano.__version__, sys.argv)\n"
        "sys.exit(3)\n"
    )
    code, out, err = run("-m", "rscan.theano", "program.py", "more", cwd=tmp_path)
    assert (code, out, err) == (3, "1.0.5 ['program.py', 'more']\n", "")
