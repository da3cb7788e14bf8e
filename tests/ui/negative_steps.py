"""A constant number of steps below 0."""

import rscan as rs

powers, updates = rs.scan(lambda power: power * 2, outputs_info=1.0, n_steps=-3)
