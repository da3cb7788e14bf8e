"""Fixtures of all tests."""

import signal
from collections.abc import Iterator

import numpy as np
import pytest


@pytest.fixture
def rng() -> np.random.Generator:
    """Reproducible numbers."""
    return np.random.default_rng(1)


@pytest.fixture
def ctrl_c_interrupts() -> Iterator[None]:
    """As in a terminal: a process that was started in the background ignores the signal."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def chosen_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine that is chosen where nobody asks for one: of tests that look at what it makes of a loop."""
    monkeypatch.delenv("RSCAN_ENGINE", raising=False)
