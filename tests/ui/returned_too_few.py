"""Two outputs are described, one is returned."""

import rscan as rs

xs, h0 = rs.dvector("xs"), rs.dscalar("h0")


def step(x, h):
    return h + x


(hs, ys), updates = rs.scan(step, sequences=xs, outputs_info=[h0, None])
