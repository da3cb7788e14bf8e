"""Differential equations `dy/dt = f(y, t, …)`: `rs.ode.odeint`. Solutions have gradients, through the steps of the method."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Never

import numpy as np

from . import _tree
from ._instead import public
from ._signatures import described, misspelt
from ._spans import here, of_function
from .errors import RscanTypeError, RscanValueError
from .ops import (
    abs,
    arange,
    broadcast_to,
    cast,
    concatenate,
    expand_dims,
    logical_and,
    logical_or,
    maximum,
    minimum,
    searchsorted,
    sign,
    sqrt,
    stop_gradient,
    sum,
    where,
)
from .scan import scan
from .updates import until
from .variable import Variable, as_variable

__all__ = ["dense", "euler", "odeint", "rk4", "tsit5"]

if not TYPE_CHECKING:  # for whom a name that is misspelt must stay a mistake
    __getattr__, __dir__ = public(__name__, __all__)

#: Derivatives of all values of a state, given the values and the time.
_Slope = Callable[[list[Variable], Variable], list[Variable]]


def _plus(y: list[Variable], h: Any, terms: list[tuple[float, list[Variable]]]) -> list[Variable]:
    """y + h · Σ coefficient · slope."""
    out = []
    for i, v in enumerate(y):
        total: Any = None
        for coefficient, slope in terms:
            part = slope[i] if coefficient == 1 else coefficient * slope[i]
            total = part if total is None else total + part
        out.append(v + cast(h, v.dtype) * total)
    return out


def _euler(f: _Slope, y: list[Variable], t: Variable, h: Variable) -> list[Variable]:
    return _plus(y, h, [(1, f(y, t))])


def _rk4(f: _Slope, y: list[Variable], t: Variable, h: Variable) -> list[Variable]:
    k1 = f(y, t)
    k2 = f(_plus(y, h / 2, [(1, k1)]), t + h / 2)
    k3 = f(_plus(y, h / 2, [(1, k2)]), t + h / 2)
    k4 = f(_plus(y, h, [(1, k3)]), t + h)
    return _plus(y, h / 6, [(1, k1), (2, k2), (2, k3), (1, k4)])


#: Coefficients of Tsitouras, "Runge–Kutta pairs of order 5(4) satisfying only the first column simplifying assumption" (2011): where slopes
#: are taken, of which combinations (the last is the solution), and its difference from that of order 4.
_AT = (0.161, 0.327, 0.9, 0.9800255409045097, 1.0, 1.0)
_OF: tuple[tuple[float, ...], ...] = (
    (0.161,),
    (-0.008480655492356989, 0.335480655492357),
    (2.8971530571054935, -6.359448489975075, 4.3622954328695815),
    (5.325864828439257, -11.748883564062828, 7.4955393428898365, -0.09249506636175525),
    (5.86145544294642, -12.92096931784711, 8.159367898576159, -0.071584973281401, -0.028269050394068383),
    (0.09646076681806523, 0.01, 0.4798896504144996, 1.379008574103742, -3.290069515436081, 2.324710524099774),
)
_ERROR = (
    -0.00178001105222577714, -0.0008164344596567469, 0.007880878010261995, -0.1447110071732629, 0.5823571654525552,
    -0.45808210592918697, 1 / 66,
)  # fmt: skip


def _tsit5_step(
    f: _Slope, y: list[Variable], k1: list[Variable], t: Variable, h: Variable
) -> tuple[list[Variable], list[Variable], list[Variable]]:
    """The next values, their slopes, and estimates of the error."""
    slopes, new = [k1], y
    for at, of in zip(_AT, _OF, strict=True):
        new = _plus(y, h, list(zip(of, slopes, strict=True)))
        slopes.append(f(new, t + at * h))
    zero = [v * 0 for v in y]
    return new, slopes[-1], _plus(zero, h, list(zip(_ERROR, slopes, strict=True)))


def _size(values: list[Variable], scales: list[Variable]) -> Variable:
    """The root of the mean of the squares of values over their scales."""
    total: Any = as_variable(0.0, "float64")
    count: Any = 0
    for v, s in zip(values, scales, strict=True):
        total = total + cast(sum((v / s) ** 2), "float64")
        count = count + (cast(v.size, "float64") if isinstance(v.size, Variable) else v.size)
    return sqrt(total / maximum(count, 1.0))


def _scales(y: list[Variable], other: list[Variable], rtol: Any, atol: Any) -> list[Variable]:
    return [atol + rtol * maximum(abs(v), abs(w)) for v, w in zip(y, other, strict=True)]


def _steps(
    f: _Slope, rtol: Any, atol: Any, max_steps: int, t0: Variable, t1: Variable, h: Variable, state: list[Variable]
) -> list[Variable]:
    """The rows of the steps from one time to another: the time, what is left, the size of the next step, whether it was the last, the
    values, and their slopes. A step that was too long leaves all but the size as it was."""
    n, direction = len(state) // 2, sign(t1 - t0)

    def step(t: Variable, left: Variable, h: Variable, _: Variable, *values: Variable) -> Any:
        y, k1 = list(values[:n]), list(values[n:])
        last = abs(h) >= abs(left)
        size = where(last, left, direction * abs(h))
        new, k7, errors = _tsit5_step(f, y, k1, t, size)
        error = stop_gradient(_size(errors, _scales(y, new, rtol, atol)))
        good = error <= 1
        factor = where(good, minimum(0.9 * maximum(error, 1e-10) ** -0.2, 10.0), maximum(0.9 * maximum(error, 1.0) ** -0.2, 0.2))
        factor = where(error >= 0, factor, 0.2)
        proposed = abs(size) * factor
        following = where(logical_and(last, good), maximum(proposed, abs(h)), proposed)
        done = logical_and(last, good)
        kept = [where(good, a, b) for a, b in zip((*new, *k7), values, strict=True)]
        remaining = where(good, left - size, left)
        return [where(good, t + size, t), remaining, stop_gradient(following), done, *kept], until(done)

    rows, _ = scan(step, outputs_info=[t0, t1 - t0, h, as_variable(False), *state], n_steps=max_steps, name="tsit5")
    found: list[Variable] = rows
    return found


def _adaptive(f: _Slope, rtol: Any, atol: Any, max_steps: int, n: int) -> Callable[..., list[Variable]]:
    """The step of the loop over times: states are the values, their slopes, and the size of the next step."""

    def interval(t0: Variable, t1: Variable, *state: Variable) -> list[Variable]:
        rows = _steps(f, rtol, atol, max_steps, t0, t1, state[2 * n], list(state[: 2 * n]))
        ends = [row[-1] for row in rows]
        # Where the steps did not suffice there is no solution.
        values = [where(ends[3], v, np.nan).astype(v.dtype) for v in ends[4 : 4 + n]]
        return [*values, *ends[4 + n :], ends[2]]

    return interval


def _first_step(y: list[Variable], slope: list[Variable], span: Variable, rtol: Any, atol: Any) -> Variable:
    """A hundredth of the time in which the state would change by its own size (Hairer, Nørsett, Wanner, 1993, II.4)."""
    scales = _scales(y, y, rtol, atol)
    size, change = _size(y, scales), _size(slope, scales)
    guess = where(logical_and(size > 1e-5, change > 1e-5), 0.01 * size / where(change > 1e-5, change, 1.0), 1e-6)
    return stop_gradient(minimum(guess, maximum(abs(span), 1e-300)))


def odeint(
    func: Callable[..., Any],
    y0: Any,
    t: Any,
    *args: Any,
    method: str = "tsit5",
    rtol: Any = 1.4e-8,
    atol: Any = 1.4e-8,
    max_steps: int = 10_000,
    steps: int = 1,
    **unknown: Never,
) -> Any:
    """The solution of `dy/dt = func(y, t, *args)` with `y(t[0]) = y0` at the times t, along a new first axis. y may be a structure.

    method: "tsit5" takes steps of such sizes that errors stay within `atol + rtol·|y|` per step, at most `max_steps` between two times:
    where they do not suffice the solution is NaN. "rk4" and "euler" take `steps` steps of equal size between two times.
    Gradients go through the steps; sizes of steps are constants of them.

        rs.ode.odeint(lambda y, t, k: -k * y, 1.0, np.linspace(0, 2, 5), k)

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `func` or `t` of another kind; `RscanValueError` (E0809)
    for `max_steps`, `method` or `steps` out of range; `ScanTypeError` (E0101) for a state that changes its rank.

    >>> rs.ode.odeint(lambda y, t, k: -k * y, 1.0, [0.0, 0.5, 1.0], 2.0).eval().round(6)
    array([1.      , 0.367879, 0.135335])
    """
    if unknown:
        raise misspelt(odeint, unknown)
    methods = ("tsit5", "rk4", "euler")
    if method not in methods:
        raise RscanValueError(f"there are the methods {', '.join(methods)}, not {method!r}", code="E0809", labels=[(here(), "")])
    f, y, tree = _problem(func, y0, args, {"steps": steps, "max_steps": max_steps})
    times = as_variable(t)
    times = times if times.dtype.startswith("float") else cast(times, "float64")
    if times.ndim != 1:
        raise RscanTypeError(f"odeint takes a vector of times, got {times!r}", code="E0809", labels=[(here(), "")])
    if method != "tsit5":
        step = _fixed(f, _euler if method == "euler" else _rk4, int(steps))
        found, _ = scan(step, sequences=[times[:-1], times[1:]], outputs_info=y, name=method, return_list=True)
    else:
        times = cast(times, "float64")
        slope = f(y, times[0])
        h = _first_step(y, slope, times[-1] - times[0], rtol, atol)
        interval = _adaptive(f, rtol, atol, int(max_steps), len(y))
        found, _ = scan(interval, sequences=[times[:-1], times[1:]], outputs_info=[*y, *slope, h], name="odeint", return_list=True)
    rows = [concatenate([expand_dims(v, 0), r], 0) for v, r in zip(y, found, strict=False)]
    return tree.build(iter(rows))


described(odeint)


def _problem(func: Any, y0: Any, args: tuple[Any, ...], numbers: dict[str, Any]) -> tuple[_Slope, list[Variable], _tree.Tree]:
    """The function of the slopes, the values in the beginning, and their structure."""
    if not callable(func) or isinstance(func, Variable):
        raise RscanTypeError(f"odeint takes the function of a derivative, not {func!r}", code="E0809", labels=[(here(), "")])
    for what, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < 1:
            raise RscanValueError(f"{what} is a number of steps, at least 1, not {number!r}", code="E0809", labels=[(here(), "")])
    leaves, tree = _tree.flatten(y0, lambda v: isinstance(v, (Variable, np.ndarray)))
    y = [v if v.dtype.startswith("float") else cast(v, "float64") for v in map(as_variable, leaves)]
    return _slope_of(func, tree, y, args), y, tree


def dense(
    func: Callable[..., Any], y0: Any, t0: Any, t1: Any, *args: Any, rtol: Any = 1.4e-8, atol: Any = 1.4e-8, max_steps: int = 10_000
) -> Callable[[Any], Any]:
    """The solution of `dy/dt = func(y, t, *args)` with `y(t0) = y0` as a function of times up to t1: of a time, or of a vector of them
    along a new first axis. NaN before t0, behind t1, and where `max_steps` did not suffice.

    The steps are those of `tsit5` from t0 to t1, whatever the times are. From the last one before a time it takes one more to it, so that
    errors are those of steps.

        solution = rs.ode.dense(lambda y, t, k: -k * y, 1.0, 0.0, 2.0, k)
        solution(1.5), solution(np.linspace(0, 2, 100))

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `func` of another kind; `RscanValueError` (E0809) for
    `max_steps` out of range.

    >>> rs.ode.dense(lambda y, t: -y, 1.0, 0.0, 2.0)([0.0, 0.5, 1.0]).eval().round(6)
    array([1.      , 0.606531, 0.367879])
    """
    f, y, tree = _problem(func, y0, args, {"max_steps": max_steps})
    begin, end = cast(t0, "float64"), cast(t1, "float64")
    slope = f(y, begin)
    h, direction = _first_step(y, slope, end - begin, rtol, atol), sign(end - begin)
    rows = _steps(f, rtol, atol, int(max_steps), begin, end, h, [*y, *slope])
    first = [begin, *y, *slope]
    times, *states = [concatenate([expand_dims(v, 0), r], 0) for v, r in zip(first, [rows[0], *rows[4:]], strict=True)]

    def at(time: Variable) -> list[Variable]:
        place = maximum(searchsorted(times * direction, time * direction, "right") - 1, 0)
        before, near = [v[place] for v in states], times[place]
        found, _, _ = _tsit5_step(f, before[: len(y)], before[len(y) :], near, time - near)
        outside = logical_or((time - begin) * direction < 0, (time - times[-1]) * direction > 0)
        return [where(outside, np.nan, v).astype(v.dtype) for v in found]

    def solution(time: Any) -> Any:
        wanted = cast(time, "float64")
        if wanted.ndim == 0:
            return tree.build(iter(at(wanted)))
        if wanted.ndim != 1:
            raise RscanTypeError(f"a solution takes a time or a vector of times, got {wanted!r}", code="E0809", labels=[(here(), "")])
        found, _ = scan(lambda one: at(one), sequences=wanted, name="dense", return_list=True)
        return tree.build(iter(found))

    return solution


def _fixed(f: _Slope, method: Callable[..., list[Variable]], steps: int) -> Callable[..., list[Variable]]:
    def interval(t0: Variable, t1: Variable, *y: Variable) -> list[Variable]:
        h = (t1 - t0) / steps
        if steps == 1:
            return method(f, list(y), t0, h)
        rows, _ = scan(
            lambda i, *y: method(f, list(y), t0 + cast(i, h.dtype) * h, h), sequences=arange(steps), outputs_info=list(y), return_list=True
        )
        return [row[-1] for row in rows]

    return interval


def _slope_of(func: Callable[..., Any], tree: _tree.Tree, like: list[Variable], args: tuple[Any, ...]) -> _Slope:
    """The function of lists of values: derivatives in the dtypes and shapes of the values."""

    def slope(y: list[Variable], t: Variable) -> list[Variable]:
        given = func(tree.build(iter(y)), t, *args)
        leaves, found = _tree.flatten(given, lambda v: isinstance(v, (Variable, np.ndarray)))
        if len(leaves) != len(y) or not (tree.kind is None or _tree.same(tree, found)):
            raise RscanTypeError(
                f"the derivative of a state, {tree.describe()}, has its structure, not {found.describe()}",
                code="E0809",
                labels=[(here(), ""), (of_function(func), "the function")],
                helps=["rs.stack([…]) makes one array of several derivatives"] if tree.kind is None else [],
            )
        leaves = _tree.aligned(given, tree)
        return [
            broadcast_to(cast(k, v.dtype), v.shape) if as_variable(k).ndim < v.ndim else cast(k, v.dtype)
            for k, v in zip(leaves, y, strict=True)
        ]

    return slope


def euler(func: Callable[..., Any], y0: Any, t: Any, *args: Any, steps: int = 1) -> Any:
    """`odeint` by Euler's method.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `func` or `t` of another kind; `RscanValueError` (E0809)
    for `steps` out of range.

    >>> rs.ode.euler(lambda y, t: -y, 1.0, [0.0, 1.0], steps=4).eval()
    array([1.        , 0.31640625])
    """
    return odeint(func, y0, t, *args, method="euler", steps=steps)


def rk4(func: Callable[..., Any], y0: Any, t: Any, *args: Any, steps: int = 1) -> Any:
    """`odeint` by the classical method of Runge and Kutta, of order 4.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `func` or `t` of another kind; `RscanValueError` (E0809)
    for `steps` out of range.

    >>> rs.ode.rk4(lambda y, t: -y, 1.0, [0.0, 1.0], steps=10).eval().round(6)
    array([1.     , 0.36788])
    """
    return odeint(func, y0, t, *args, method="rk4", steps=steps)


def tsit5(func: Callable[..., Any], y0: Any, t: Any, *args: Any, rtol: Any = 1.4e-8, atol: Any = 1.4e-8, max_steps: int = 10_000) -> Any:
    """`odeint` by Tsitouras' method of order 5, with steps of adapted sizes.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `func` or `t` of another kind; `RscanValueError` (E0809)
    for `max_steps` out of range; `RscanIndexError` (E0202) for an index outside its axis.

    >>> rs.ode.tsit5(lambda y, t: -y, 1.0, [0.0, 1.0]).eval().round(6)
    array([1.      , 0.367879])
    """
    return odeint(func, y0, t, *args, method="tsit5", rtol=rtol, atol=atol, max_steps=max_steps)
