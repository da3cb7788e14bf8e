"""A condition per element."""

import rscan as rs

x0 = rs.dvector("x0")


def step(x):
    doubled = x * 2
    return doubled, rs.until(doubled > 100)


xs, updates = rs.scan(step, outputs_info=x0, n_steps=1024)
