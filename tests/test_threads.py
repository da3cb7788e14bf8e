"""The number of threads changes no bit of a result: programs of operations wide enough to be divided, with 1, 2 and 8."""

import os
import subprocess
import sys

import numpy as np

PROGRAM = """
import hashlib
import numpy as np
import rscan as rs

rng = np.random.default_rng(1)
X, W, v = rng.normal(size=(700, 400)), rng.normal(size=(400, 300)) / 20, rng.normal(size=300_000)
x, w, u = rs.dmatrix("x"), rs.dmatrix("w"), rs.dvector("u")
rows, _ = rs.scan(lambda h: rs.tanh(h @ w @ w.T) + x, outputs_info=x, n_steps=3)
cost = rs.sum(rows[-1] ** 2)
f = rs.function([x, w], [rs.exp(x) @ w, rs.sum(x, axis=0), rs.mean(x), cost, *rs.grad(cost, [x, w])])
g = rs.function([u], [rs.sum(rs.sin(u)), rs.sort(u), rs.cumsum(u), rs.logsumexp(u), rs.exp(u) * u])
draws = rs.function([], rs.random.normal(rs.random.key(3), (200_000,)))
for value in [*f(X, W), *g(v), draws()]:
    print(hashlib.sha256(np.ascontiguousarray(value)).hexdigest())
"""


def bits(threads: int) -> list[str]:
    environment = {**os.environ, "RSCAN_NUM_THREADS": str(threads)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_results_are_the_same_bits():
    one = bits(1)
    assert len(set(one)) == len(one) == 12
    for threads in (2, 8):
        np.testing.assert_array_equal(bits(threads), one)
