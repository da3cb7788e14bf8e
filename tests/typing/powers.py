"""Scan with updates, `until`, and functions of one output, of a list and of a dict."""

import numpy as np

import rscan as rs
from rscan.typing import Array


def newton(x: rs.Variable) -> tuple[rs.Variable, rs.until]:
    new = (x + 2 / x) / 2
    return new, rs.until(rs.abs(new - x) < 1e-12)


@rs.compile
def smooth(a: Array, x: Array, power: int = 2) -> tuple[rs.Variable, rs.Variable]:
    rows, _ = rs.scan(lambda x_t, h: a * h + (1 - a) * x_t, sequences=x, outputs_info=x[0])
    return rows, rs.sum((x - rows) ** power)


def both_at(f: rs.Function, g: rs.Compiled) -> float:
    return float(f(2.0)) + float(g(2.0))


def main() -> None:
    a, k = rs.dvector("A"), rs.iscalar("k")
    powers, updates = rs.scan(lambda prior, a: prior * a, outputs_info=rs.ones_like(a), non_sequences=a, n_steps=k)
    power = rs.function([a, k], powers[-1], updates=updates, name="power")
    result = power(np.arange(5.0), 3)
    print(result.shape, power.bind(k=2)(np.arange(5.0)).sum(), power.name)

    roots, _ = rs.scan(newton, outputs_info=rs.constant(1.0), n_steps=100)
    both = rs.function([], {"root": roots[-1], "steps": roots.shape[0]})()
    print(float(both["root"]) ** 2 > 1.99, sorted(both))

    rows, error = smooth(0.5, np.arange(4.0), power=2)
    print(rows.shape, float(error) > 0, smooth.n_variants)

    s = rs.dscalar("s")
    cube = rs.compile(lambda v: v**3)
    print(both_at(rs.function([s], s**2), cube) == 12.0)

    x, y = rs.vectors("x y")
    jacobian = rs.jacobian(rs.stack([rs.sum(x * y), rs.max(x)]), [x, y])
    print(len(rs.function([x, y], jacobian)([1.0, 2.0], [3.0, 4.0])), rs.pp(rs.exp(x) + y))


if __name__ == "__main__":
    main()
