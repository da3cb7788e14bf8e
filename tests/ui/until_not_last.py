"""The condition comes before the output."""

import rscan as rs


def step(power):
    return rs.until(power > 100), power * 2


powers, updates = rs.scan(step, outputs_info=1.0, n_steps=1024)
