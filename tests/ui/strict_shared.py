"""strict=True, and a shared variable that was not passed."""

import numpy as np

import rscan as rs

h0 = rs.dvector("h0")
W = rs.shared(np.eye(3), name="W")


def step(h_tm1):
    return rs.tanh(h_tm1 @ W)


hs, updates = rs.scan(step, outputs_info=h0, n_steps=5, strict=True)
