"""Draws are the same bits on every engine and any number of threads; loops that never end run out of memory with an error."""

import os
import subprocess
import sys

import pytest

DRAWS = """
import hashlib
import numpy as np, rscan as rs
R, K = rs.random, rs.random.key(3)
A = rs.dvector("a")
a = np.linspace(0.3, 4.0, 3000)
draws = [
    R.gamma(K, A), R.beta(K, A, 0.5), R.poisson(K, 20 * A), R.poisson(K, A), R.student_t(K, A), R.laplace(K, loc=A), R.cauchy(K, loc=A),
    R.dirichlet(K, rs.reshape(A, (1000, 3))), R.multivariate_normal(K, np.zeros(3), np.eye(3), 1000), R.choice(K, A, 500, replace=False),
    R.categorical(K, rs.reshape(A, (1000, 3))), R.multinomial(K, 20, np.ones(4) / 4, 500), R.permutation(K, A), R.binomial(K, 100, A / 5),
    R.truncated_normal(K, -A, 2.0), R.uniform(K, high=A), R.normal(K, scale=A), R.exponential(K, scale=A), R.gumbel(K, loc=A),
    R.logistic(K, loc=A), R.lognormal(K, mean=A), R.pareto(K, A), R.weibull(K, A), R.chisquare(K, A), R.geometric(K, A / 5),
    R.bernoulli(K, A / 5), R.integers(K, 0, 1000, 3000), R.split(K, 5),
]
draws += [rs.grad(rs.sum(d), A) for d in draws[:2]]
draws += [rs.loop(lambda i: R.normal(R.fold_in(K, i), 50) * R.gamma(R.fold_in(K, i), 0.7, 50), over=rs.arange(20))]
found = rs.function([A], draws)(a)
print([hashlib.md5(np.ascontiguousarray(d).tobytes()).hexdigest()[:8] for d in found])
"""


def printed(program, **environment):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def usual():
    environment = {k: v for k, v in os.environ.items() if k not in ("RSCAN_ENGINE", "RSCAN_THREADS")}
    done = subprocess.run([sys.executable, "-c", DRAWS], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


ENVIRONMENTS = [dict(RSCAN_ENGINE=e) for e in ("eval", "vm", "jit")] + [dict(RSCAN_THREADS=n) for n in "14"]


@pytest.mark.parametrize("environment", ENVIRONMENTS, ids=str)
def test_draws_are_the_same_bits(usual, environment):
    assert len(usual) > 300 and printed(DRAWS, **environment) == usual


ENDLESS = """
import resource
import numpy as np, rscan as rs
x = rs.dvector("x")
rows = rs.loop(lambda s: (s * 0.999, rs.until(rs.sum(s) < -1)), init=x)
last = rs.loop(lambda s: (s * 0.5, rs.until(rs.sum(s) < 1e-3)), init=x)
# Slopes of a sine need the state of each step, those of a product by a constant do not.
waves = rs.loop(lambda s: (rs.sin(s), rs.until(rs.sum(s) < -1)), init=x)
all_rows, slopes, ends = rs.function([x], rows), rs.function([x], rs.grad(rs.sum(waves[-1]), x)), rs.function([x], last)
ends(np.ones(3))
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
for f in (all_rows, slopes):
    try:
        f(np.ones(100_000))
    except MemoryError as error:
        print(error.code, "not enough memory" in str(error))
print(ends(np.ones(3)).shape)
"""


def test_loops_that_never_end_run_out_of_memory():
    """Rows that are kept, and what a gradient keeps: E0392, and the next call works."""
    assert printed(ENDLESS).split("\n")[:3] == ["E0392 True", "E0392 True", "(13, 3)"]
