"""A panel of GARCH fits, and a maximum likelihood whose gradient is a sum over parts of the data, on several processes or machines.

    python examples/distributed/run.py --on dask --workers 2 --series 4000
    python examples/distributed/run.py --on ray --address auto

Results are equal in bits wherever they are computed: fits do not know of each other, the data are cut into the same parts whatever the
number of workers, and sums over parts are taken in their order.
"""

import argparse
import time

from workers import KINDS  # before NumPy and SciPy: it says how many threads they may take

import numpy as np  # isort: skip
from models import fit_block, of_parts, simulated_events, simulated_returns
from scipy.optimize import minimize


def panel(on, series, days, block=25):
    """A row per series: omega, alpha, beta, log-likelihood."""
    returns = simulated_returns(series, days)
    blocks = [returns[k : k + block] for k in range(0, series, block)]
    return np.concatenate(on.map(on.send(fit_block), on.keep(blocks)))


def likelihood(on, function, groups, start):
    """The maximum over groups of parts (kept where they are worked on): parameters, value, and how often all parts were asked."""

    def total(beta):
        found = [part for group in on.map(function, groups, beta) for part in group]
        value, slope = found[0]
        for v, g in found[1:]:
            value, slope = value + v, slope + g
        return value, slope

    found = minimize(total, start, jac=True, method="L-BFGS-B")
    return found.x, found.fun, found.nfev


def timed(function, *arguments):
    """What a function returns, and the seconds it took."""
    begun = time.perf_counter()
    out = function(*arguments)
    return out, time.perf_counter() - begun


def main(on="alone", workers=2, series=100, days=500, parts=6, units=100, address=None):
    options = {"address": address} if address else {}
    events, truth = simulated_events(parts, units=units)
    with KINDS[on](workers, **options) as pool:
        pool.map(pool.send(fit_block), [simulated_returns(1, 10)] * workers)  # workers start
        fits, fitted = timed(panel, pool, series, days)
        each = -(-parts // workers)  # a group, and a message in each round, for each worker
        groups, sent = timed(pool.keep, [events[k : k + each] for k in range(0, parts, each)])
        function, start = pool.send(of_parts), np.zeros(len(truth))
        pool.map(function, groups, start)  # compiled where it runs
        (beta, value, calls), found = timed(likelihood, pool, function, groups, start)
    print(f"{on}, {workers if on != 'alone' else 1} workers")
    print(f"{series} GARCH fits of {days} days    {fitted:7.2f} s")
    print(f"{parts} parts of a data set sent    {sent:7.2f} s")
    print(f"{calls} sums of {parts} gradients    {found:7.2f} s   {np.round(beta, 3)}")
    return dict(fits=fits, beta=beta, value=value, seconds=(fitted, sent, found))


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--on", choices=KINDS, default="processes")
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--series", type=int, default=2000)
    options.add_argument("--days", type=int, default=1000)
    options.add_argument("--parts", type=int, default=8)
    options.add_argument("--units", type=int, default=20000)
    options.add_argument("--address", help="of a Dask scheduler or a Ray cluster")
    main(**vars(options.parse_args()))
