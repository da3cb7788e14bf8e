"""Tap -3 needs three rows of the past."""

import rscan as rs

x0 = rs.zeros((2, 4))
xs, updates = rs.scan(lambda x_tm3, x_tm1: x_tm3 + x_tm1, outputs_info=dict(initial=x0, taps=[-3, -1]), n_steps=10)
