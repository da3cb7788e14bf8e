"""A likelihood with its gradient, as an optimiser wants it."""

import numpy as np
from numpy.typing import NDArray

import rscan as rs


@rs.compile
def nll(theta: rs.Variable, y: rs.Variable) -> rs.Variable:
    omega, alpha, beta = rs.exp(theta[0]), rs.sigmoid(theta[1]), rs.sigmoid(theta[2])

    def step(y: rs.Variable, h: rs.Variable) -> dict[str, rs.Variable]:
        return {"h": omega + alpha * y**2 + beta * h}

    out = rs.loop(step, over={"y": y}, init={"h": rs.mean(y**2)})
    h = rs.concatenate([[1.0], out.h[:-1]])
    return 0.5 * rs.sum(rs.log(h) + y**2 / h)


def descend(y: NDArray[np.float64], steps: int = 3) -> NDArray[np.float64]:
    theta = np.zeros(3)
    both = rs.value_and_grad(nll)
    for _ in range(steps):
        _, slope = both(theta, y)
        theta = theta - 1e-3 * np.asarray(slope)
    total: float = float(nll(theta, y))
    print(total < float(nll(np.zeros(3), y)), nll.lower(theta, y).explain().loops[0].name)
    return theta


def symbolic() -> float:
    x = rs.dvector("x")
    w = rs.shared(np.ones(3), name="w")
    cost = (rs.tanh(x) @ w) ** 2 + rs.sum(rs.where(x > 0, x, 0.0))
    slope = rs.grad(cost, x)
    first, second = rs.grad(cost, [x, w])
    f = rs.function([x], [cost, slope, first, second], updates=[(w, w - 0.1 * second)])
    return float(f([1.0, 2.0, 3.0])[0])


if __name__ == "__main__":
    print(descend(np.sin(np.arange(50.0))).shape, symbolic() > 0)
