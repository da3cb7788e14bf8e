"""Writes the file that the service serves: `python make_model.py model.rscan [seed]`.

`gru(x)` gives the states of a GRU of 64 units, row by row; `predict(x)` a number for a series; `train(x, y)` makes a step of
descent and gives the loss; `spin(n)` is a loop of any length.
"""

import sys

import numpy as np

import rscan as rs


def main(path: str, seed: int = 0, n: int = 64, m: int = 16) -> None:
    draw = np.random.default_rng(seed)
    wz, wr, wh = (rs.shared(draw.normal(size=(m, n)) / 8, name) for name in ("wz", "wr", "wh"))
    uz, ur, uh = (rs.shared(draw.normal(size=(n, n)) / 8, name) for name in ("uz", "ur", "uh"))
    out, steps = rs.shared(draw.normal(size=n) / 8, "out"), rs.shared(np.int64(0), "steps")
    x, y = rs.dmatrix("x"), rs.dscalar("y")

    def cell(x, h):
        z, r = rs.sigmoid(x @ wz + h @ uz), rs.sigmoid(x @ wr + h @ ur)
        return (1 - z) * h + z * rs.tanh(x @ wh + (r * h) @ uh)

    states = rs.loop(cell, over=x, init=rs.zeros(n))
    guess = states[-1] @ out
    loss = (guess - y) ** 2
    learned = [wz, wr, wh, uz, ur, uh, out]
    updates = {w: w - 0.01 * g for w, g in zip(learned, rs.grad(loss, learned), strict=True)}
    k = rs.lscalar("n")
    rs.save(
        path,
        gru=rs.function([x], {"h": states}),
        predict=rs.function([x], {"guess": guess}),
        train=rs.function([x, y], {"loss": loss, "steps": steps + 1}, updates={**updates, steps: steps + 1}),
        spin=rs.function([k], {"h": rs.loop(lambda h: 0.5 * h + 1, init=0.0, n_steps=k).last}),
    )


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
