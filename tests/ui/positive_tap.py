"""A step cannot read what it has yet to compute."""

import rscan as rs

x0 = rs.dvector("x0")
xs, updates = rs.scan(lambda x_tp1: x_tp1 / 2, outputs_info=dict(initial=x0, taps=[1]), n_steps=10)
