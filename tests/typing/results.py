"""What checkers know of results, of steps and functions without annotations, too."""

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import rscan as rs

x = rs.dvector("x")


def cost(a: rs.Variable, x: rs.Variable) -> rs.Variable:
    return rs.sum((x - a) ** 2)


def of_names(p: dict[str, rs.Variable], x: rs.Variable) -> rs.Variable:
    return rs.sum((x - p["a"]) ** 2)


rows, updates = rs.scan(lambda x, h: 0.5 * h + x, sequences=x, outputs_info=rs.constant(0.0))
assert_type(rows, rs.Variable)
assert_type(updates, rs.OrderedUpdates)
out = rs.loop(lambda x, h: {"h": 0.5 * h + x}, over={"x": x}, init={"h": 0.0})
assert_type(out, rs.Loop)

slope = rs.grad(cost)(0.5, np.ones(3))
assert_type(slope, NDArray[Any])
value, slope = rs.value_and_grad(cost)(0.5, np.ones(3))
assert_type(value, NDArray[Any])
assert_type(slope, NDArray[Any])
value, slopes = rs.value_and_grad(of_names)({"a": rs.constant(1.0)}, x)
assert_type(slopes, dict[str, NDArray[Any]])
first = rs.grad(rs.sum(x * x), x)
assert_type(first, rs.Variable)

if __name__ == "__main__":
    print(bool(abs(float(slope) + 3.0) < 1e-12), rs.function([x], rows[-1])([1.0, 2.0]) == 2.5)
