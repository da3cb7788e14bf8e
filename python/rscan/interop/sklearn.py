"""For scikit-learn: a base for estimators whose loss is written in rscan."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ..compile import compile
from ..ops import expand_dims, log_softmax, softplus, take_along_axis
from .scipy import objective

__all__ = ["LoopClassifier", "LoopRegressor"]


class _Fitted(BaseEstimator):
    """What the estimators have in common: parameters that L-BFGS finds."""

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
        """What is predicted for the rows of X."""
        raise NotImplementedError(f"{type(self).__name__} says nothing of how to predict: write `forward(self, params, X)`")

    def loss(self, params: Any, X: Any, y: Any) -> Any:
        """What is minimised, a float scalar."""
        raise NotImplementedError

    def _minimised(self, X: np.ndarray, y: np.ndarray) -> None:
        f = objective(self.loss, self.initial(X, y), (X, y))
        found = minimize(f, f.x0, jac=True, method="L-BFGS-B", options={"maxiter": self.max_iter, "gtol": self.tol})
        self.params_, self.loss_, self.n_iter_ = f.unravel(found.x), float(found.fun), max(int(found.nit), 1)

    def _forward(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return compile(self.forward)(self.params_, validate_data(self, X, dtype=np.float64, reset=False))


class LoopRegressor(RegressorMixin, _Fitted):
    """A regressor that is fitted by L-BFGS on exact gradients. A subclass says where to begin and how to predict:

        class Smoother(LoopRegressor):
            def initial(self, X, y):
                return {"w": np.zeros(X.shape[1]), "b": 0.0}

            def forward(self, params, X):
                return X @ params["w"] + params["b"]

    `forward` is given variables, and may loop over the rows of X. `loss`, by default the mean of squares, may be overridden.
    Hyperparameters are arguments of `__init__`, as always. What was fitted is `params_`, the loss `loss_`, the iterations `n_iter_`.

    errors: `ValueError` for what scikit-learn refuses; what `forward` and `loss` raise.

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

    def loss(self, params: Any, X: Any, y: Any) -> Any:
        """What is minimised, a float scalar: by default the mean of squares.

        errors: what `forward` raises; `ShapeError` (E0201) where shapes do not broadcast.
        """
        return ((self.forward(params, X) - y) ** 2).mean()

    def fit(self, X: Any, y: Any) -> LoopRegressor:
        """Fits the parameters to rows of X and values y.

        errors: `ValueError` for what scikit-learn refuses; what `initial`, `forward` and `loss` raise.
        """
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        self._minimised(X, np.asarray(y, np.float64))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The predictions for the rows of X.

        errors: `ValueError` before `fit`, and for what scikit-learn refuses; what `forward` raises.
        """
        return self._forward(X)


class LoopClassifier(ClassifierMixin, _Fitted):
    """A classifier that is fitted by L-BFGS on exact gradients. A subclass says where to begin and how to score, as with `LoopRegressor`:
    `forward` gives a score per row and class, a matrix, or, of two classes, that of the second one, a vector.

    `initial` is given the numbers of the classes as y. `loss`, by default the mean of the cross entropy, may be overridden.

    errors: `ValueError` where there is one class alone.

    >>> from rscan.interop.sklearn import LoopClassifier
    >>> class Linear(LoopClassifier):
    ...     def initial(self, X, y):
    ...         return {"w": np.zeros(X.shape[1]), "b": 0.0}
    ...     def forward(self, p, X):
    ...         return X @ p["w"] + p["b"]
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> Linear().fit(X, ["low", "high", "low", "high"]).predict(X[[0, 3]])
    array(['low', 'high'], dtype='<U4')
    """

    classes_: np.ndarray

    def loss(self, params: Any, X: Any, y: Any) -> Any:
        """What is minimised, a float scalar: by default the mean of the cross entropy. y: the numbers of the classes.

        errors: what `forward` raises; `ShapeError` (E0201) where shapes do not broadcast.
        """
        scores = self.forward(params, X)
        if scores.ndim == 1:
            return (softplus(scores) - y * scores).mean()
        return -take_along_axis(log_softmax(scores, axis=-1), expand_dims(y, 1), axis=1).mean()

    def fit(self, X: Any, y: Any) -> LoopClassifier:
        """Fits the parameters to rows of X and classes y.

        errors: `ValueError` where there is one class alone, and for what scikit-learn refuses; what `initial`, `forward` and `loss` raise.
        """
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, numbers = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"there is one class alone, {self.classes_[0]!r}: a classifier tells two classes or more apart")
        self._minimised(X, numbers.astype(np.int64))
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """The scores of the rows of X.

        errors: `ValueError` before `fit`, and for what scikit-learn refuses; what `forward` raises.
        """
        return self._forward(X)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Per row of X the probability of each class.

        errors: `ValueError` before `fit`, and for what scikit-learn refuses; what `forward` raises.
        """
        scores = self._forward(X)
        scores = np.stack([np.zeros_like(scores), scores], axis=1) if scores.ndim == 1 else scores
        return special.softmax(scores, axis=1)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row of X.

        errors: `ValueError` before `fit`, and for what scikit-learn refuses; what `forward` raises.
        """
        most = np.argmax(self.predict_proba(X), axis=1)
        return self.classes_[most]
