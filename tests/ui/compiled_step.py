"""A compiled function as the step."""

import rscan as rs

x = rs.dscalar("x")
double = rs.function([x], x * 2)

xs = rs.dvector("xs")
doubled, updates = rs.scan(double, sequences=xs)
