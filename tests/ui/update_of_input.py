"""An update of something that is not shared."""

import rscan as rs

xs = rs.dvector("xs")
count = rs.lscalar("count")


def step(x):
    return x * 2, {count: count + 1}


doubled, updates = rs.scan(step, sequences=xs)
