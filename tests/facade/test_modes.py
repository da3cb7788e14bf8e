"""Modes say which optimisations run."""

import numpy as np
import pytest

import rscan.theano as theano
import rscan.theano.tensor as T


def _text(mode):
    x = T.dscalar("x")
    return theano.function([x], T.log(1.0 + T.exp(x)), mode=mode).text(optimised=True)


def test_modes_and_their_names():
    assert "softplus" in _text(None)
    assert "softplus" in _text("FAST_RUN")
    assert "softplus" in _text(theano.Mode(linker="py", optimizer="fast_run"))
    assert "softplus" not in _text(theano.Mode(optimizer=None))
    assert "softplus" not in _text(theano.Mode(optimizer="None"))


def test_including_and_excluding():
    mode = theano.compile.mode.get_default_mode()
    without = mode.excluding("stabilize", "some_optimisation_of_mine")
    assert "softplus" not in _text(without)
    assert "softplus" in _text(mode)
    assert "softplus" in _text(without.including("stabilize"))
    assert without != mode and without == mode.excluding("some_optimisation_of_mine", "stabilize")


def test_flags():
    with theano.change_flags(optimizer_excluding="fusion:stabilize"):
        assert "softplus" not in _text(None)
        with theano.change_flags(optimizer_including="stabilize"):
            assert "softplus" in _text(None)
    with theano.change_flags(optimizer="None"):
        assert "softplus" not in _text(None)


@pytest.mark.parametrize("tag", ["scan", "scan_save_mem", "PushOutNonSeqScan", "scan_merge_inouts"])
def test_loops_without_some_of_their_optimisations(tag):
    x, n = T.dvector("x"), T.iscalar("n")
    rows, updates = theano.scan(lambda h, x: h * x, outputs_info=T.ones_like(x), non_sequences=x, n_steps=n)
    mode = theano.compile.mode.get_default_mode().excluding(tag)
    f = theano.function([x, n], rows[-1], updates=updates, mode=mode)
    np.testing.assert_array_equal(f([1.0, 2.0], 3), [1.0, 8.0])


def test_copies_of_modes():
    mode = theano.Mode(optimizer="fast_run")
    assert mode.clone().passes() == mode.passes() and mode.clone() == mode
    assert mode.clone(optimizer="None").passes()[0] == "none" and mode.passes()[0] == "fast_run"
    assert mode.clone(optimizer="fast_compile").passes()[0] == "fast_compile"
