"""Something else than outputs, updates and until."""

import rscan as rs

xs = rs.dvector("xs")
ys, updates = rs.scan(lambda x: (x, "twice", 2 * x), sequences=xs)
