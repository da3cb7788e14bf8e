"""Writes reference.rs: the value of every row at its test points, from mpmath at 60 digits.

Run `python reference.py` beside rows.rs after a row or a test point was added (needs mpmath)."""

import pathlib
import random
import re

from mpmath import mp, mpf, polygamma
import mpmath as m

mp.dps = 60
HERE = pathlib.Path(__file__).parent
PI = +m.pi


def floordiv(x, y):
    return m.floor(x / y)


def trunc(x):
    return m.floor(x) if x >= 0 else m.ceil(x)


def half_even(x):
    low = m.floor(x)
    gap = x - low
    up = gap > 0.5 or (gap == 0.5 and int(low) % 2 == 1)
    return low + 1 if up else low


def bits(f):
    return lambda *v: f(*(int(x) for x in v))


def truth(f):
    return lambda *v: f(*(x != 0 for x in v))


VALUES = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "fma": lambda x, y, z: x * y + z,
    "div": lambda x, y: x / y,
    "floordiv": floordiv,
    "mod": lambda x, y: x - floordiv(x, y) * y,
    "fmod": lambda x, y: x - trunc(x / y) * y,
    "pow": lambda x, y: m.power(x, y),
    "neg": lambda x: -x,
    "abs": abs,
    "sign": m.sign,
    "square": lambda x: x * x,
    "sqrt": m.sqrt,
    "rsqrt": lambda x: 1 / m.sqrt(x),
    "reciprocal": lambda x: 1 / x,
    "minimum": min,
    "maximum": max,
    "clip": lambda x, lo, hi: min(max(x, lo), hi),
    "hypot": m.hypot,
    "atan2": m.atan2,
    "copysign": lambda x, y: abs(x) if y > 0 else -abs(x),
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y,
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
    "isnan": lambda x: False,
    "isinf": lambda x: False,
    "isfinite": lambda x: True,
    "signbit": lambda x: x < 0,
    "logical_and": truth(lambda x, y: x and y),
    "logical_or": truth(lambda x, y: x or y),
    "logical_xor": truth(lambda x, y: x != y),
    "logical_not": truth(lambda x: not x),
    "bit_and": bits(lambda x, y: x & y),
    "bit_or": bits(lambda x, y: x | y),
    "bit_xor": bits(lambda x, y: x ^ y),
    "invert": bits(lambda x: ~x),
    "shift_left": bits(lambda x, y: x << y),
    "shift_right": bits(lambda x, y: x >> y),
    "floor": m.floor,
    "ceil": m.ceil,
    "trunc": trunc,
    "round": half_even,
    "exp": m.exp,
    "exp2": lambda x: mpf(2) ** x,
    "expm1": m.expm1,
    "log": m.log,
    "log2": lambda x: m.log(x, 2),
    "log10": m.log10,
    "log1p": m.log1p,
    "logaddexp": lambda x, y: m.log(m.exp(x) + m.exp(y)),
    "sin": m.sin,
    "cos": m.cos,
    "tan": m.tan,
    "asin": m.asin,
    "acos": m.acos,
    "atan": m.atan,
    "sinh": m.sinh,
    "cosh": m.cosh,
    "tanh": m.tanh,
    "asinh": m.asinh,
    "acosh": m.acosh,
    "atanh": m.atanh,
    "sigmoid": lambda x: 1 / (1 + m.exp(-x)),
    "softplus": lambda x: m.log1p(m.exp(x)),
    "log_sigmoid": lambda x: -m.log1p(m.exp(-x)),
    "relu": lambda x: max(x, mpf(0)),
    "silu": lambda x: x / (1 + m.exp(-x)),
    "erf": m.erf,
    "erfc": m.erfc,
    "erfinv": m.erfinv,
    "ndtri": lambda p: m.sqrt(2) * m.erfinv(2 * p - 1),
    "gammaln": lambda x: m.log(abs(m.gamma(x))),
    "digamma": lambda x: polygamma(0, x),
    "trigamma": lambda x: polygamma(1, x),
    "tetragamma": lambda x: polygamma(2, x),
    "xlogy": lambda x, y: x * m.log(y) if x else mpf(0),
    "deg2rad": lambda x: x * PI / 180,
    "rad2deg": lambda x: x * 180 / PI,
    "where": lambda c, x, y: x if c else y,
}

ROW = re.compile(r"^    [A-Z]\w* (?:r#)?(\w+)\([\w, ]+\): .*?test ((?:\([^()]+\)\s*)+);", re.M | re.S)


# Ranges over which the functions that are written here, not taken from a library, are sampled.
SWEPT = {
    "erfinv": [(-1, 1), (0.99, 1)],
    "digamma": [(0, 2), (2, 40), (-6, 0)],
    "trigamma": [(0, 2), (2, 40), (-6, 0)],
    "tetragamma": [(0, 2), (2, 40), (-6, 0)],
    "gammaln": [(0, 3), (3, 200)],
    "sigmoid": [(-40, 40)],
    "softplus": [(-40, 40)],
    "log_sigmoid": [(-40, 40)],
    "asinh": [(-5, 5)],
    "acosh": [(1, 5)],
    "atanh": [(-1, 1)],
}


def sweep():
    draw = random.Random(20261121)
    for name, ranges in SWEPT.items():
        for low, high in ranges:
            for _ in range(20):
                x = draw.uniform(low, high)
                yield f'    ("{name}", {x!r}, {float(VALUES[name](mpf(x)))!r}),\n'


def main():
    lines = []
    for name, points in ROW.findall((HERE / "rows.rs").read_text()):
        for point in re.findall(r"\(([^()]+)\)", points):
            x = [float(v) for v in point.split(",")]
            value = float(VALUES[name](*(mpf(v) for v in x)))
            lines.append(f'    ("{name}", &{x!r}, {value!r}),\n')
    head = "//! Values of the rows at their test points, to the last digit of f64: written by `reference.py` (mpmath, 60 digits).\n\n"
    table = "/// Name, inputs, value.\n#[rustfmt::skip]\n#[allow(clippy::approx_constant)]\npub(super) const REFERENCE: &[(&str, &[f64], f64)] = &[\n"
    swept = "\n/// Name, input, value at seeded random inputs.\n#[rustfmt::skip]\npub(super) const SWEPT: &[(&str, f64, f64)] = &[\n"
    (HERE / "reference.rs").write_text(head + table + "".join(lines) + "];\n" + swept + "".join(sweep()) + "];\n")


if __name__ == "__main__":
    main()
