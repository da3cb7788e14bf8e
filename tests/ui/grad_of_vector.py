"""The gradient of a vector."""

import rscan as rs

x = rs.dvector("x")
y = rs.tanh(x)
rs.grad(y, x)
