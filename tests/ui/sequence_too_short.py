"""Five steps over three rows."""

import numpy as np

import rscan as rs

xs = rs.dvector("xs")
doubled, updates = rs.scan(lambda x_t: x_t * 2, sequences=xs, n_steps=5)
f = rs.function([xs], doubled)
f(np.array([1.0, 2.0, 3.0]))
