"""For nutpie: `nutpie.sample(model(logp, params))` samples a log-density that is written in rscan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from nutpie.compiled_pyfunc import from_pyfunc

from .. import _tree
from .scipy import objective

__all__ = ["model"]


def model(
    logp: Callable[..., Any],
    params: Any,
    args: tuple[Any, ...] = (),
    *,
    expand: Callable[[Any], dict[str, Any]] | None = None,
    jitter: float = 0.1,
    coords: dict[str, Any] | None = None,
    dims: dict[str, tuple[str, ...]] | None = None,
) -> Any:
    """A model to be sampled: `logp(params, *args)`, a float scalar, over all real values of the parameters.

    params: where chains begin, each moved by normal numbers of width `jitter`. expand: of the parameters of a draw, a dict of what is
    recorded; by default the parameters under their names. Values travel as numbers of float64.

    errors: `NonScalarCostError` (E0401), when it is sampled, where `logp` gives no float scalar.

    >>> from rscan.interop.nutpie import model
    >>> normal = model(lambda p: -0.5 * p["mu"] ** 2, {"mu": 0.0})
    >>> normal.n_dim
    1
    >>> import nutpie
    >>> draws = nutpie.sample(normal, draws=500, tune=300, chains=2, seed=1, progress_bar=False)
    >>> abs(float(draws.posterior["mu"].mean())) < 0.3
    True
    """
    f = objective(logp, params, args)

    def recorded(x: Any) -> dict[str, np.ndarray]:
        if expand is not None:
            found = expand(f.unravel(x))
        else:
            leaves, tree = _tree.flatten(f.unravel(x))
            found = dict(zip([name or "x" for name in _tree.paths(tree)], leaves, strict=True))
        return {name: np.asarray(value, np.float64) for name, value in found.items()}

    first = recorded(f.x0)
    return from_pyfunc(
        f.x0.size,
        lambda: f,
        lambda seed1, seed2, chain: recorded,
        [np.dtype(np.float64)] * len(first),
        [value.shape for value in first.values()],
        list(first),
        coords=coords,
        dims=dims,
        make_initial_point_fn=lambda seed: f.x0 + jitter * np.random.default_rng(seed).standard_normal(f.x0.size),
    )
