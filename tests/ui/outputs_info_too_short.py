"""Two outputs are returned, one is described."""

import rscan as rs

xs, h0 = rs.dvector("xs"), rs.dscalar("h0")


def step(x, h):
    return h + x, 2 * h


(hs, ys), updates = rs.scan(step, sequences=xs, outputs_info=[h0])
