"""The step does not take what the loop passes."""

import rscan as rs

xs, h0 = rs.dvector("xs"), rs.dscalar("h0")


def step(x):
    return 2 * x


ys, updates = rs.scan(step, sequences=xs, outputs_info=h0)
