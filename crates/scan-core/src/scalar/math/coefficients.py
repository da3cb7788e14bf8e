"""Prints the constants of this folder: python coefficients.py (needs mpmath).

Polynomials have the least greatest error, weighted as it enters the result, over the interval that the argument is reduced to. Constants in parts: the first parts have so few bits that their products with the integer that
they are multiplied by are exact, with and without fma."""

import struct

from mpmath import (
    asin,
    atan,
    cos,
    erf,
    erfc,
    euler,
    exp,
    findroot,
    floor,
    frexp,
    ldexp,
    log,
    loggamma,
    lu_solve,
    matrix,
    mp,
    mpf,
    pi,
    polyval,
    psi,
    sin,
    sqrt,
    tanh,
)

mp.dps = 60
POINTS = 200


def narrow(x):
    return struct.unpack("f", struct.pack("f", float(x)))[0]


def minimax(f, low, high, count, weight):
    """Coefficients whose greatest weighted error is least: Lawson's iteration of weighted least squares."""
    points = [(low + high) / 2 - (high - low) / 2 * cos(pi * (k + mpf(1) / 2) / POINTS) for k in range(POINTS)]
    values, scale = [f(x) for x in points], [weight(x) for x in points]
    share = [mpf(1) / POINTS] * POINTS
    for _ in range(40):
        normal, right = matrix(count, count), matrix(count, 1)
        for x, y, s, w in zip(points, values, scale, share):
            powers = [x**i for i in range(count)]
            for i in range(count):
                right[i] += w * s * s * powers[i] * y
                for j in range(count):
                    normal[i, j] += w * s * s * powers[i] * powers[j]
        coefficients = lu_solve(normal, right)
        errors = [abs(s * (polyval(list(coefficients)[::-1], x) - y)) for x, y, s in zip(points, values, scale)]
        total = sum(w * e for w, e in zip(share, errors))
        share = [w * e / total for w, e in zip(share, errors)]
    return list(coefficients), max(errors)


def fit(name, f, low, high, wide, single, weight):
    for suffix, count, rounded in (("", wide, float), ("_F32", single, narrow)):
        coefficients, error = minimax(f, low, high, count, weight)
        values = ", ".join(repr(rounded(a)) for a in coefficients)
        print(f"const {name}{suffix}: [f64; {count}] = [{values}];  // error {float(error):.1e}")


def parts(name, x, bits, rounded):
    out = []
    for n in bits:
        if n:
            mantissa, exponent = frexp(x)
            part = ldexp(floor(ldexp(mantissa, n)), exponent - n)
        else:
            part = mpf(rounded(x))
        out.append(part)
        x -= part
    print(f"const {name}: [f64; {len(out)}] = [{', '.join(repr(float(p)) for p in out)}];")


def quotient(numerator, at_zero, power):
    """numerator(x) / x^power, near 0 by its first Taylor terms."""
    return lambda x: numerator(x) / x**power if abs(x) > mpf(10) ** -12 else sum(c * x**k for k, c in enumerate(at_zero))


def atanh_tail(z):
    """(2·atanh(s) − 2s) / s³ at z = s²."""
    s = sqrt(z) if z > 0 else mpf(0)
    return (log((1 + s) / (1 - s)) - 2 * s) / s**3 if s > mpf(10) ** -8 else mpf(2) / 3 + mpf(2) / 5 * z


def even(f, at_zero):
    """f(r) as a function of z = r²."""
    return lambda z: f(sqrt(z)) if z > mpf(10) ** -12 else sum(c * z**k for k, c in enumerate(at_zero))


def sides(edge, counts, scale):
    """even and odd with (even + r·odd) / (even − r·odd) = eʳ at the zeros of a Chebyshev polynomial in z = r² up to an edge."""
    for suffix, count, rounded in (("", counts[0], float), ("_F32", counts[1], narrow)):
        points = [edge / 2 * (1 - cos(pi * (k + mpf(1) / 2) / (2 * count - 2))) for k in range(2 * count - 2)]
        system, right = matrix(len(points), len(points)), matrix(len(points), 1)
        for i, z in enumerate(points):
            ratio = tanh(sqrt(z) / 2) / sqrt(z)
            right[i] = ratio - mpf(1) / 2
            for k in range(1, count):
                system[i, k - 1], system[i, count + k - 2] = z**k, -ratio * z**k
        found = list(lu_solve(system, right))
        for side, terms in (("EVEN", [mpf(1)] + found[count - 1 :]), ("ODD", [mpf(1) / 2] + found[: count - 1])):
            print(f"const {side}{suffix}: [f64; {count}] = [{', '.join(repr(rounded(scale * a)) for a in terms)}];")


half = log(2) / 2 * (1 + mpf(2) ** -20)
fit("EXP", quotient(lambda r: exp(r) - 1 - r, [mpf(1) / 2, mpf(1) / 6], 2), -half, half, 10, 5, lambda r: r**2)
fit("EXPM1", quotient(lambda r: exp(r) - 1 - r, [mpf(1) / 2, mpf(1) / 6], 2), -half, half, 11, 6, abs)
sides(half**2, (3, 2), mpf("1.65"))
two = quotient(lambda r: mpf(2) ** r - 1, [log(2), log(2) ** 2 / 2], 1)
fit("EXP2", two, mpf(-0.5) - mpf(2) ** -20, mpf(0.5) + mpf(2) ** -20, 11, 6, abs)
fit("LOG", atanh_tail, mpf(0), mpf("0.02945"), 7, 3, lambda z: z)
fit("LOG_UNIT", atanh_tail, mpf(0), mpf("0.04001"), 7, 3, lambda z: z)
edge = (pi / 4 * (1 + mpf(2) ** -20)) ** 2
fit("SIN", even(lambda r: (sin(r) - r) / r**3, [-mpf(1) / 6, mpf(1) / 120]), mpf(0), edge, 6, 4, lambda z: z)
fit("COS", even(lambda r: (cos(r) - 1 + r**2 / 2) / r**4, [mpf(1) / 24, -mpf(1) / 720]), mpf(0), edge, 6, 3, lambda z: z**2)
parts("LN2", log(2), [32, 0], float)
parts("LN2_F32", log(2), [15, 0], narrow)
parts("LOG2E", 1 / log(2), [21, 0], float)
parts("LOG2E_F32", 1 / log(2), [12, 0], narrow)
parts("LOG10E", 1 / log(10), [21, 0], float)
parts("LOG10E_F32", 1 / log(10), [12, 0], narrow)
parts("LOG10_2", log(2) / log(10), [32, 0], float)
parts("LOG10_2_F32", log(2) / log(10), [15, 0], narrow)
parts("HALF_PI", pi / 2, [33, 33, 33, 0], float)
parts("HALF_PI_F32", pi / 2, [15, 15, 15, 0], narrow)


# What kernels call, in f64 alone.
mp.dps = 80
POINTS = 120
TINY = mpf(10) ** -20


def wide(name, f, low, high, count, weight):
    coefficients, error = minimax(f, low, high, count, weight)
    print(f"const {name}: [f64; {count}] = [{', '.join(repr(float(a)) for a in coefficients)}];  // error {float(error):.1e}")


def scaled_erfc(q):
    """`e^a²·erfc(a)·(1 + 2a)` at q = (a − 4)/(a + 4)."""
    a = 4 * (1 + q) / (1 - q)
    return exp(a * a) * erfc(a) * (1 + 2 * a)


def of_square(f, at_zero):
    """f(x) as a function of x², near 0 by its first Taylor terms."""
    return lambda z: f(sqrt(z)) if z > TINY else at_zero[0] + at_zero[1] * z


def interval(first, step, k):
    """Where the k-th interval of the table of logarithms begins."""
    return struct.unpack("d", struct.pack("Q", first + k * step))[0]


def table():
    """Per interval `1/c` of few bits, nearest to the middle, and `log c` in two parts, the first a multiple of 2⁻⁴²."""
    for k in range(128):
        low, high = (interval(0x3FE6955500000000, 1 << 45, k + i) for i in (0, 1))
        inverses = [j / d for d in (128, 256) for j in range(1, 2 * d) if d == 128 or j < d]
        inverse = 1.0 if low <= 1 <= high else min(inverses, key=lambda x: max(abs(low * x - 1), abs(high * x - 1)))
        exact = -log(mpf(inverse))
        first = ldexp(floor(ldexp(exact, 42) + mpf(1) / 2), -42)
        print(f"    [{inverse!r}, {float(first)!r}, {float(exact - first)!r}],")


one = lambda _: mpf(1)
near = mpf("0.84375")
wide("ERF", of_square(lambda x: erf(x) / x - 1, [2 / sqrt(pi) - 1, -2 / sqrt(pi) / 3]), mpf(0), near**2, 11, one)
wide("ERFC", scaled_erfc, (near - 4) / (near + 4), mpf(24) / 32, 20, lambda q: 1 / scaled_erfc(q))
gamma_near = lambda y: loggamma(2 + y) / y if abs(y) > TINY else 1 - euler
wide("NEAR", gamma_near, mpf(-0.5), mpf(0.5), 18, lambda y: 1 / gamma_near(y))
stirling = lambda x: (loggamma(x) - (x - mpf(1) / 2) * (log(x) - 1) - (log(2 * pi) - 1) / 2) * x
wide("STIRLING", lambda u: stirling(1 / sqrt(u)), mpf(10) ** -12, mpf(1) / 64, 6, one)
wide("DIGAMMA", lambda u: (log(1 / sqrt(u)) - sqrt(u) / 2 - psi(0, 1 / sqrt(u))) / u, mpf(10) ** -10, mpf(1) / 64, 7, one)
wide("TRIGAMMA", lambda u: (psi(1, 1 / sqrt(u)) - sqrt(u) - u / 2) / (u * sqrt(u)), mpf(10) ** -10, mpf(1) / 64, 7, one)
root = findroot(lambda x: psi(0, x), mpf("1.4616"))
from_root = lambda y: psi(0, mpf(1.5) + y) / (mpf(1.5) + y - root) if abs(mpf(1.5) + y - root) > TINY else psi(1, root)
wide("DIGAMMA_NEAR", from_root, mpf(-0.5), mpf(0.5), 21, lambda y: 1 / from_root(y))
parts("ROOT", root, [53, 0], float)
wide("ATAN", of_square(lambda x: (atan(x) / x - 1) / x**2, [-mpf(1) / 3, mpf(1) / 5]), mpf(0), (mpf(7) / 16) ** 2 * (1 + mpf(2) ** -20), 11, lambda z: z)
wide("ASIN", of_square(lambda x: (asin(x) / x - 1) / x**2, [mpf(1) / 6, mpf(3) / 40]), mpf(0), mpf(1) / 4 * (1 + mpf(2) ** -20), 13, lambda z: z)
power_log = lambda r: (log(1 + r) - r + r * r / 2) / r**3 if abs(r) > TINY else mpf(1) / 3 - r / 4
edge = mpf(2) ** -7 * mpf("1.06")
wide("LOG", power_log, -edge, edge, 7, lambda r: r**2)
for name, x in (("HALF", atan(mpf(0.5))), ("ONE", pi / 4), ("THREE_HALVES", atan(mpf(1.5))), ("HALF_PI", pi / 2)):
    parts(name, x, [53, 0], float)
table()
