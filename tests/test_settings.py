"""Settings of the process, and those of a block, which other threads do not see."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import rscan as rs


def test_a_block_sets_and_gives_back():
    with rs.config.override(floatX="float32", passes="none"):
        assert (rs.config.floatX, rs.config.passes) == ("float32", "none")
        with rs.config.override(floatX="float64"):
            assert (rs.config.floatX, rs.config.passes) == ("float64", "none")
        rs.config.floatX = "float64"  # of this block, which gives back what was before
        assert rs.zeros(2).dtype == "float64"
    assert (rs.config.floatX, rs.config.passes) == ("float64", "fast_run")


@pytest.mark.thread_unsafe
def test_what_a_block_does_not_set_is_of_the_process():
    try:
        with rs.config.override(passes="none"):
            rs.config.floatX = "float32"
        assert (rs.config.floatX, rs.config.passes) == ("float32", "fast_run")
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(lambda: rs.zeros(2).dtype).result() == "float32"
    finally:
        rs.config.floatX = "float64"
    assert rs.config.floatX == "float64"


def test_an_error_ends_a_block_likewise():
    with pytest.raises(KeyError), rs.config.override(excluding=("stabilise",)):
        raise KeyError
    assert rs.config.excluding == ()


@pytest.mark.parametrize("settings", [{"floatY": "float32"}, {"floatX": "float16"}, {"passes": "none", "floatX": "int8"}])
def test_what_there_is_not_is_refused_before_anything_is_set(settings):
    with pytest.raises(rs.RscanValueError), rs.config.override(**settings):
        pass
    assert (rs.config.floatX, rs.config.passes) == ("float64", "fast_run")


@pytest.mark.thread_unsafe
def test_blocks_of_threads_do_not_meet():
    """Threads that all are inside their blocks at a time read their own, and nothing is left of them."""
    inside = threading.Barrier(8)

    def use(i):
        wanted = "float32" if i % 2 else "float64"
        f, seen = rs.compile(lambda p: p["a"] * 2), set()
        for _ in range(20):
            with rs.config.override(floatX=wanted):
                inside.wait(60)
                seen |= {rs.config.floatX, rs.zeros(2).dtype, f({"a": 1.0}).dtype.name}
                inside.wait(60)
        return seen

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(use, range(8))) == [{"float64"}, {"float32"}] * 4
    assert rs.config.floatX == "float64" and "floatX" in vars(rs.config)
    assert rs.compile(lambda x: x)(1.0).dtype == np.float64
