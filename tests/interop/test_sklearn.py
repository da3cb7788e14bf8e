"""The base for estimators, judged by scikit-learn's own checks."""

import numpy as np
import pytest

import rscan as rs

pytest.importorskip("sklearn", reason="scikit-learn is not installed")
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from rscan.interop.sklearn import LoopClassifier, LoopRegressor


class Linear(LoopRegressor):
    """The simplest that passes the checks."""

    def initial(self, X, y):
        return {"w": np.zeros(X.shape[1]), "b": 0.0}

    def forward(self, params, X):
        return X @ params["w"] + params["b"]


class Smoother(LoopRegressor):
    """A loop over the rows, with a hyperparameter."""

    def __init__(self, penalty=0.0, max_iter=200, tol=1e-8):
        super().__init__(max_iter, tol)
        self.penalty = penalty

    def initial(self, X, y):
        return {"a": 0.0, "w": np.zeros(X.shape[1])}

    def forward(self, params, X):
        a = rs.sigmoid(params["a"])
        rows, _ = rs.scan(lambda x, h: a * h + x @ params["w"], sequences=X, outputs_info=rs.constant(0.0))
        return rows

    def loss(self, params, X, y):
        return super().loss(params, X, y) + self.penalty * rs.sum(params["w"] ** 2)


class Logistic(LoopClassifier):
    """One score per row of two classes, else one per class."""

    def initial(self, X, y):
        classes = len(np.unique(y))
        return {"w": np.zeros((X.shape[1], classes) if classes > 2 else X.shape[1]), "b": np.zeros(classes) if classes > 2 else 0.0}

    def forward(self, params, X):
        return X @ params["w"] + params["b"]


@parametrize_with_checks([Linear(), Logistic()])
def test_their_own_checks(estimator, check):
    check(estimator)


def test_a_loop_is_fitted():
    random = np.random.default_rng(0)
    X = random.standard_normal((200, 2))
    h, y = 0.0, []
    for row in X:
        h = 0.7 * h + row @ [1.0, -2.0]
        y.append(h)
    model = Smoother().fit(X, np.array(y))
    np.testing.assert_allclose(model.params_["w"], [1, -2], atol=1e-3)
    assert model.score(X, y) > 0.999 and model.n_iter_ > 1
    assert clone(Smoother(penalty=2.0)).penalty == 2.0
    search = GridSearchCV(Smoother(), {"penalty": [0.0, 10.0]}, cv=2).fit(X, np.array(y))
    assert search.best_params_ == {"penalty": 0.0}


def test_a_subclass_that_says_nothing_is_told_what_to_write():
    with pytest.raises(NotImplementedError, match="write `initial"):
        LoopRegressor().fit([[1.0], [2.0]], [1.0, 2.0])


@pytest.mark.parametrize("classes", [2, 3])
def test_the_classifier_finds_what_theirs_finds(classes):
    datasets, linear = pytest.importorskip("sklearn.datasets"), pytest.importorskip("sklearn.linear_model")
    X, y = datasets.load_iris(return_X_y=True)
    X, y = X[y < classes, :2], np.array(["a", "b", "c"])[y[y < classes]]
    if classes == 2:
        X = X[:, 1:]  # one column alone does not separate them

    class Penalised(Logistic):
        def loss(self, params, X, y):
            return super().loss(params, X, y) + 0.5 * rs.sum(params["w"] ** 2) / X.shape[0]

    ours = Penalised(max_iter=1000).fit(X, y)
    theirs = linear.LogisticRegression(tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)
    assert ours.classes_.tolist() == theirs.classes_.tolist() and (ours.predict(X) == theirs.predict(X)).all()


def test_pipelines_and_pickles():
    import pickle

    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X = np.random.default_rng(0).standard_normal((60, 2)) * [1.0, 30.0]
    for model, y in ((Logistic(), X[:, 0] > 0), (Linear(), X[:, 0] + 1.0)):
        fitted = make_pipeline(StandardScaler(), model).fit(X, y)
        copied = pickle.loads(pickle.dumps(fitted))
        np.testing.assert_array_equal(copied.predict(X), fitted.predict(X))
        assert fitted.score(X, y) > 0.99
