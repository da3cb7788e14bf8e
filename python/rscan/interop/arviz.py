"""For ArviZ, before and after its 1.0: draws of parameters as what its functions take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import arviz
import numpy as np

from .. import _tree
from .._spans import here
from ..errors import ShapeError

__all__ = ["from_draws"]


def from_draws(draws: Any, *, sample_stats: Mapping[str, Any] | None = None, **options: Any) -> Any:
    """Draws as ArviZ's data, an `InferenceData` or, from ArviZ 1.0 on, a `DataTree` of xarray.

    draws: a structure of arrays (a dict, a dataclass, what `unravel` gave), each (chain, draw, …).

    sample_stats: arrays (chain, draw). options: what `arviz.from_dict` takes: coords, dims.

    errors: `ShapeError` (E0809) where draws have no axes of chains and draws.

    >>> from rscan.interop.arviz import from_draws
    >>> found = from_draws({"mu": np.zeros((2, 100)), "w": np.zeros((2, 100, 3))})
    >>> found.posterior["w"].shape
    (2, 100, 3)
    """
    leaves, tree = _tree.flatten(draws, lambda v: isinstance(v, np.ndarray))
    posterior = {name or "x": np.asarray(leaf) for name, leaf in zip(_tree.paths(tree), leaves, strict=True)}
    short = next((name for name, array in posterior.items() if array.ndim < 2), None)
    if short is not None:
        raise ShapeError(f"the draws of `{short}` have no axes of chains and draws", code="E0809", labels=[(here(), "")])
    groups = {"posterior": posterior, **({"sample_stats": dict(sample_stats)} if sample_stats else {})}
    from_dict: Any = arviz.from_dict
    if int(arviz.__version__.partition(".")[0]) >= 1:
        return from_dict(groups, **options)
    return from_dict(**groups, **options)
