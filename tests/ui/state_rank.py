"""A scalar initial state, and a step that returns a vector."""

import rscan as rs

xs = rs.dmatrix("xs")
total0 = rs.dscalar("total0")

totals, updates = rs.scan(lambda x, total: total + x, sequences=xs, outputs_info=total0)
