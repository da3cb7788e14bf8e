"""Jacobian and Hessian by scanning over gradients, against their closed forms.

    y = tanh(A @ x)               dy/dx   = diag(1 - y**2) @ A
    c = sum(log(1 + exp(A @ x)))  d2c/dx2 = A.T @ diag(p * (1 - p)) @ A,   p = 1 / (1 + exp(-A @ x))
    z = x**5, as a loop           d2(sum z)/dx2 = diag(20 * x**3)
"""

import numpy as np

import rscan as rs


def jacobian(y, x):
    """One row per element of y."""
    rows, _ = rs.scan(lambda i, y, x: rs.grad(y[i], x), sequences=rs.arange(y.shape[0]), non_sequences=[y, x])
    return rows


def hessian(cost, x):
    return jacobian(rs.grad(cost, x), x)


def power(x, k):
    """x**k as a loop."""
    powers, _ = rs.scan(lambda previous, x: previous * x, outputs_info=rs.ones_like(x), non_sequences=x, n_steps=k)
    return powers[-1]


def main():
    rng = np.random.default_rng(0)
    A_value, x_value = rng.standard_normal((6, 4)), rng.standard_normal(4)

    A, x = rs.dmatrix("A"), rs.dvector("x")
    y = rs.tanh(A @ x)
    cost = rs.sum(rs.log(1 + rs.exp(A @ x)))
    f = rs.function([A, x], [jacobian(y, x), hessian(cost, x), rs.jacobian(y, x), rs.hessian(cost, x)])
    J, H, J_library, H_library = f(A_value, x_value)
    H_loop = rs.function([x], hessian(rs.sum(power(x, 5)), x))(x_value)

    p = 1 / (1 + np.exp(-A_value @ x_value))
    expected = dict(
        jacobian=(1 - np.tanh(A_value @ x_value) ** 2)[:, None] * A_value,
        hessian=A_value.T @ ((p * (1 - p))[:, None] * A_value),
        hessian_of_loop=np.diag(20 * x_value**3),
    )
    found = dict(jacobian=J, hessian=H, hessian_of_loop=H_loop)
    for name, value in found.items():
        difference = np.abs(value - expected[name]).max()
        print(f"{name:16} {value.shape}  largest difference from the closed form {difference:.1e}")
    return dict(found=found, expected=expected, library=(J_library, H_library))


if __name__ == "__main__":
    main()
