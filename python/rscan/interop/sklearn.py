"""For scikit-learn: a base for estimators whose loss is written in rscan."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ..compile import compile
from .scipy import objective

__all__ = ["LoopRegressor"]


class LoopRegressor(RegressorMixin, BaseEstimator):
    """A regressor that is fitted by L-BFGS on exact gradients. A subclass says where to begin and how to predict:

        class Smoother(LoopRegressor):
            def initial(self, X, y):
                return {"w": np.zeros(X.shape[1]), "b": 0.0}

            def forward(self, params, X):
                return X @ params["w"] + params["b"]

    `forward` is given variables, and may loop over the rows of X. `loss`, by default the mean of squares, may be overridden.
    Hyperparameters are arguments of `__init__`, as always. What was fitted is `params_`, the loss `loss_`, the iterations `n_iter_`.

    >>> from rscan.interop.sklearn import LoopRegressor
    >>> class Linear(LoopRegressor):
    ...     def initial(self, X, y):
    ...         return np.zeros(X.shape[1])
    ...     def forward(self, w, X):
    ...         return X @ w
    >>> X = np.eye(2)
    >>> Linear().fit(X, [1.0, 3.0]).predict(X).round(3)
    array([1., 3.])
    """

    params_: Any
    loss_: float
    n_iter_: int

    def __init__(self, max_iter: int = 200, tol: float = 1e-8) -> None:
        self.max_iter = max_iter
        self.tol = tol

    def initial(self, X: np.ndarray, y: np.ndarray) -> Any:
        """The parameters to begin with: numbers, arrays, and structures of these."""
        raise NotImplementedError(f"{type(self).__name__} says nothing of where to begin: write `initial(self, X, y)`")

    def forward(self, params: Any, X: Any) -> Any:
        """The predictions for the rows of X, a vector."""
        raise NotImplementedError(f"{type(self).__name__} says nothing of how to predict: write `forward(self, params, X)`")

    def loss(self, params: Any, X: Any, y: Any) -> Any:
        """What is minimised, a float scalar."""
        return ((self.forward(params, X) - y) ** 2).mean()

    def fit(self, X: Any, y: Any) -> LoopRegressor:
        """Fits the parameters to rows of X and values y."""
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        f = objective(self.loss, self.initial(X, y), (X, np.asarray(y, np.float64)))
        found = minimize(f, f.x0, jac=True, method="L-BFGS-B", options={"maxiter": self.max_iter, "gtol": self.tol})
        self.params_, self.loss_, self.n_iter_ = f.unravel(found.x), float(found.fun), max(int(found.nit), 1)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The predictions for the rows of X."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return compile(self.forward)(self.params_, X)
