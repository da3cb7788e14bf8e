"""Fixtures of all tests."""

import numpy as np
import pytest


@pytest.fixture
def rng() -> np.random.Generator:
    """Reproducible numbers."""
    return np.random.default_rng(1)
