"""The programs of JAX on docs/from-jax.md print what rscan's beside them print."""

import contextlib
import io
import re

import executed
import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="jax is not installed")

PAIRS = [section for section in executed.sections(executed.ROOT / "docs" / "from-jax.md") if section.blocks]


@pytest.mark.parametrize("section", PAIRS, ids=lambda section: section.title)
def test_both_sides_print_the_same(section):
    theirs, ours, printed = section.blocks
    assert (theirs.language, ours.language, printed.language) == ("py", "python", "text")
    out = io.StringIO()
    with jax.enable_x64(True), contextlib.redirect_stdout(out):
        exec(theirs.text, {"jax": jax, "jnp": jax.numpy, "np": np})
    assert re.split(r"\s+", out.getvalue().strip()) == re.split(r"\s+", printed.text.strip())


def test_there_are_pairs():
    assert len(PAIRS) >= 5
