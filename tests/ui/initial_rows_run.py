"""Tap -3 needs three rows of the past: seen when the loop runs."""

import numpy as np

import rscan as rs

x0 = rs.dvector("x0")
xs, updates = rs.scan(lambda x_tm3, x_tm1: x_tm3 + x_tm1, outputs_info=dict(initial=x0, taps=[-3, -1]), n_steps=10)
rs.function([x0], xs)(np.ones(2))
