"""The step multiplies by float64 weights, the initial state is float32."""

import numpy as np

import rscan as rs

xs = rs.fmatrix("xs")
h0 = rs.fvector("h0")
W = rs.shared(np.eye(3), name="W")


def step(x_t, h_tm1):
    return rs.tanh(x_t + h_tm1 @ W)


hs, updates = rs.scan(step, sequences=xs, outputs_info=h0)
