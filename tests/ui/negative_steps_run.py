"""A number of steps below 0: seen when the loop runs."""

import rscan as rs

n = rs.lscalar("n")
powers, updates = rs.scan(lambda power: power * 2, outputs_info=1.0, n_steps=n)
rs.function([n], powers)(-3)
