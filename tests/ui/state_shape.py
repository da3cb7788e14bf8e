"""A state that grows: seen when the loop runs."""

import numpy as np

import rscan as rs

h0 = rs.dvector("h0")


def step(h_tm1, i):
    return rs.concatenate([h_tm1, h_tm1])[: i + 3]


hs, updates = rs.scan(lambda i, h: step(h, i), sequences=rs.arange(5), outputs_info=h0, name="growing")
rs.function([h0], hs)(np.ones(3))
