"""A loop that stops itself: the powers of two up to the first one above a bound, and the gradient through the stop."""

import numpy as np

import rscan as rs


def main():
    bound, start = rs.dscalar("bound"), rs.dscalar("start")

    def double(power, bound):
        return power * 2, rs.until(power * 2 > bound)

    powers, updates = rs.scan(double, outputs_info=start, non_sequences=bound, n_steps=1024)
    f = rs.function([start, bound], powers, updates=updates)
    # d(last power)/d(start) is 2**steps: as many steps as ran
    slope = rs.function([start, bound], rs.grad(powers[-1], start), updates=updates)

    values, derivative = f(1.0, 45.0), slope(1.0, 45.0)
    print("powers   ", values)
    print("expected ", 2.0 ** np.arange(1, 7))
    print("d(last)/d(start) =", float(derivative), " expected", 2.0**6)
    return dict(values=values, derivative=float(derivative), long=f(1.0, 1e300))


if __name__ == "__main__":
    main()
