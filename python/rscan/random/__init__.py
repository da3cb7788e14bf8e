"""Random numbers: pure functions of a key, and streams that hand out keys."""

from typing import TYPE_CHECKING

from .._instead import public
from .counts import bernoulli, binomial, categorical, choice, geometric, integers, multinomial, permutation, poisson
from .draws import (
    beta,
    cauchy,
    chisquare,
    dirichlet,
    exponential,
    gamma,
    gumbel,
    laplace,
    logistic,
    lognormal,
    multivariate_normal,
    normal,
    pareto,
    student_t,
    truncated_normal,
    uniform,
    weibull,
)
from .keys import fold_in, key, split
from .stream import RandomStream, Stream

__all__ = [
    "RandomStream", "Stream", "bernoulli", "beta", "binomial", "categorical", "cauchy", "chisquare", "choice", "dirichlet", "exponential",
    "fold_in", "gamma", "geometric", "gumbel", "integers", "key", "laplace", "logistic", "lognormal", "multinomial", "multivariate_normal",
    "normal", "pareto", "permutation", "poisson", "split", "student_t", "truncated_normal", "uniform", "weibull",
]  # fmt: skip

if not TYPE_CHECKING:  # for whom a name that is misspelt must stay a mistake
    __getattr__, __dir__ = public(__name__, __all__)
