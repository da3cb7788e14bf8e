"""The gradient of a cost that does not use the variable."""

import rscan as rs

x = rs.dvector("x")
w = rs.dvector("w")
cost = (x**2).sum()
rs.grad(cost, [x, w])
