"""The operations of random programs: what each computes with NumPy by Theano's rules, and how it is written for Theano."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np


class Unfit(Exception):
    """Theano's rules do not allow the program, or do not say what it computes."""


@dataclasses.dataclass(frozen=True)
class Word:
    #: (run, *operands, *parameters) → array. `run` knows floatX.
    value: Callable[..., Any]
    #: How it is written: {0} {1} the operands, {p} and {q} the parameters; several ways in turn.
    written: tuple[str, ...]
    operands: int
    #: Its result is rounded; its operands are summed in an order of the implementation's choice.
    inexact: bool = False
    sums: bool = False
    #: One of two operands, chosen by the first.
    lazy: bool = False


WORDS: dict[str, Word] = {}


def constant(x: Any, floatX: np.dtype, single: np.dtype) -> np.ndarray:
    """A Python number in the smallest dtype that holds it."""
    if isinstance(x, float):
        small = floatX == np.float32 or float(np.float32(x)) == x or math.isnan(x)
        return np.asarray(x, single if small else "float64")
    for dtype in ("int8", "int16", "int32", "int64"):
        if np.iinfo(dtype).min <= int(x) <= np.iinfo(dtype).max:
            return np.asarray(x, dtype)
    raise Unfit


def word(name: str, *written: str, operands: int = 1, **options: bool) -> Callable[[Any], Any]:
    def keep(value: Callable[..., Any]) -> Callable[..., Any]:
        WORDS[name] = Word(value, written, operands, **options)
        return value

    return keep


def common(*xs: np.ndarray) -> list[np.ndarray]:
    """All in the dtype that holds them."""
    if len({x.dtype for x in xs}) == 1:
        return list(xs)
    dtype = np.result_type(*(x.dtype for x in xs))
    return [x.astype(dtype) for x in xs]


def need(condition: bool) -> None:
    if not condition:
        raise Unfit


def numeric(*xs: np.ndarray) -> None:
    need(not all(x.dtype == bool for x in xs))


def is_float(x: np.ndarray) -> bool:
    return x.dtype.kind == "f"


def in_float(run: Any, x: np.ndarray) -> np.ndarray:
    """As functions with float results take it: small integers in float32, others in float64."""
    return x if is_float(x) else x.astype(run.single if x.dtype.itemsize <= 2 else "float64")


# Arithmetic.


def _arithmetic(name: str, f: Any, *written: str) -> None:
    def value(run: Any, a: np.ndarray, b: np.ndarray) -> Any:
        numeric(a, b)
        if f in (np.maximum, np.minimum) and is_float(a) and np.any(a == b):
            run.tied = True
        return f(*common(a, b))

    word(name, *written, operands=2, inexact=True)(value)


_arithmetic("add", np.add, "({0} + {1})", "T.add({0}, {1})")
_arithmetic("sub", np.subtract, "({0} - {1})", "T.sub({0}, {1})")
_arithmetic("mul", np.multiply, "({0} * {1})", "T.mul({0}, {1})")
_arithmetic("maximum", np.maximum, "T.maximum({0}, {1})")
_arithmetic("minimum", np.minimum, "T.minimum({0}, {1})")


@word("truediv", "({0} / {1})", "T.true_div({0}, {1})", operands=2, inexact=True)
def _truediv(run: Any, a: np.ndarray, b: np.ndarray) -> Any:
    numeric(a, b)
    if not is_float(a) and not is_float(b):
        a, b = a.astype(run.floatX), b.astype(run.floatX)
    need(bool(np.all(b != 0)))
    return np.divide(*common(a, b))


@word("floordiv", "({0} // {1})", operands=2)
def _floordiv(run: Any, a: np.ndarray, b: np.ndarray) -> Any:
    numeric(a, b)
    need(bool(np.all(b != 0)))
    return np.floor_divide(*common(a, b))


@word("mod", "({0} % {1})", "T.mod({0}, {1})", operands=2)
def _mod(run: Any, a: np.ndarray, b: np.ndarray) -> Any:
    numeric(a, b)
    need(bool(np.all(b != 0)))
    return np.mod(*common(a, b))


@word("pow", "({0} ** {1})", "T.pow({0}, {1})", operands=2, inexact=True)
def _pow(run: Any, a: np.ndarray, b: np.ndarray) -> Any:
    need(a.dtype != bool and b.dtype != bool)
    need(is_float(b) is False or bool(np.all(a > 0)))
    need(bool(np.all(b >= 0)))
    return np.power(*common(a, b))


def _comparison(name: str, f: Any, *written: str) -> None:
    word(name, *written, operands=2)(lambda run, a, b: f(*common(a, b)))


_comparison("lt", np.less, "({0} < {1})", "T.lt({0}, {1})")
_comparison("le", np.less_equal, "({0} <= {1})", "T.le({0}, {1})")
_comparison("gt", np.greater, "({0} > {1})", "T.gt({0}, {1})")
_comparison("ge", np.greater_equal, "({0} >= {1})", "T.ge({0}, {1})")
_comparison("eq", np.equal, "T.eq({0}, {1})")
_comparison("neq", np.not_equal, "T.neq({0}, {1})")


def _bitwise(name: str, f: Any, *written: str) -> None:
    def value(run: Any, a: np.ndarray, b: np.ndarray) -> Any:
        need(not is_float(a) and not is_float(b) and (a.dtype == bool) == (b.dtype == bool))
        return f(*common(a, b))

    word(name, *written, operands=2)(value)


_bitwise("and", np.bitwise_and, "({0} & {1})", "T.and_({0}, {1})")
_bitwise("or", np.bitwise_or, "({0} | {1})", "T.or_({0}, {1})")
_bitwise("xor", np.bitwise_xor, "({0} ^ {1})", "T.xor({0}, {1})")


@word("invert", "(~{0})", "T.invert({0})")
def _invert(run: Any, a: np.ndarray) -> Any:
    need(not is_float(a))
    return ~a


# Functions of one operand.


def _same(name: str, f: Any, *written: str, floats: bool = False, **options: bool) -> None:
    def value(run: Any, a: np.ndarray) -> Any:
        need(a.dtype != bool and (not floats or is_float(a)))
        return np.asarray(f(a), a.dtype)

    word(name, *written, **options)(value)


_same("neg", np.negative, "(-{0})")
_same("abs", np.abs, "abs({0})", "T.abs_({0})")
_same("sgn", np.sign, "T.sgn({0})")
_same("sqr", np.square, "T.sqr({0})", "({0} ** 2)", inexact=True)
_same("floor", np.floor, "T.floor({0})", floats=True)
_same("ceil", np.ceil, "T.ceil({0})", floats=True)
_same("round", np.round, "T.round({0})", floats=True)
_same("relu", lambda a: np.maximum(a, 0), "T.nnet.relu({0})", floats=True)


def _function(name: str, f: Any, *written: str) -> None:
    word(name, *written, inexact=True)(lambda run, a: f(in_float(run, a)))


_function("tanh", np.tanh, "T.tanh({0})")
_function("sin", np.sin, "T.sin({0})")
_function("cos", np.cos, "T.cos({0})")
_function("exp", np.exp, "T.exp({0})")
_function("log", np.log, "T.log({0})")
_function("log1p", np.log1p, "T.log1p({0})")
_function("sqrt", np.sqrt, "T.sqrt({0})")
_function("inv", lambda x: 1 / x, "T.inv({0})", "(1.0 / {0})")
_function("sigmoid", lambda x: 1 / (1 + np.exp(-x)), "T.nnet.sigmoid({0})")
_function("softplus", lambda x: np.logaddexp(x, x.dtype.type(0)), "T.nnet.softplus({0})")
_function("arctan", np.arctan, "T.arctan({0})")


@word("cast", "T.cast({0}, {p!r})", "{0}.astype({p!r})")
def _cast(run: Any, a: np.ndarray, dtype: str) -> Any:
    if is_float(a) and np.dtype(run.dtype(dtype)).kind in "iu":
        need(bool(np.all(np.abs(a) < 100)))
    return a.astype(run.dtype(dtype))


@word("clip", "T.clip({0}, {p}, {q})", "{0}.clip({p}, {q})")
def _clip(run: Any, a: np.ndarray, low: Any, high: Any) -> Any:
    numeric(a)
    x, low, high = common(a, run.number(low), run.number(high))
    return np.clip(x, low, high)


# Choices.


@word("switch", "T.switch({0}, {1}, {2})", "T.where({0}, {1}, {2})", operands=3)
def _switch(run: Any, c: np.ndarray, a: np.ndarray, b: np.ndarray) -> Any:
    return np.where(c != 0, *common(a, b))


word("ifelse", "ifelse({0}, {1}, {2})", operands=3, lazy=True)(lambda run, *args: args)


# Reductions.


def _reduction(name: str, f: Any, dtype: Any = lambda run, d: d, inexact: bool = False, numbers: bool = True) -> None:
    def value(run: Any, a: np.ndarray, axis: Any, keep: bool) -> Any:
        need(a.ndim > 0 and (axis is None or -a.ndim <= axis < a.ndim) and (not numbers or a.dtype != bool))
        made = dtype(run, a.dtype)
        if f in (np.max, np.min) and is_float(a) and np.any((a == f(a, axis=axis, keepdims=True)).sum(axis=axis) > 1):
            run.tied = True
        return np.asarray(f(a.astype(made) if made.kind == "f" or f in (np.sum, np.prod) else a, axis=axis, keepdims=keep), made)

    written = (f"T.{name}({{0}}, axis={{p}}, keepdims={{q}})", f"{{0}}.{name}(axis={{p}}, keepdims={{q}})")
    word(name, *written, inexact=inexact, sums=inexact)(value)


def _wide(run: Any, d: np.dtype) -> np.dtype:
    return d if d.kind == "f" else np.dtype("int64")


def _mean(run: Any, d: np.dtype) -> np.dtype:
    return d if d.kind == "f" else np.dtype("float64")


_reduction("sum", np.sum, _wide, True, numbers=False)
_reduction("prod", np.prod, _wide, True)
_reduction("max", np.max)
_reduction("min", np.min)
_reduction("mean", np.mean, _mean, True)
_reduction("var", np.var, _mean, True)
_reduction("any", np.any, lambda run, d: np.dtype(bool), numbers=False)
_reduction("all", np.all, lambda run, d: np.dtype(bool), numbers=False)
_reduction("argmax", lambda a, axis, keepdims: np.argmax(a, axis=axis, keepdims=keepdims), lambda run, d: np.dtype("int64"))


@word("masked", "{0}[{0} > {p}].sum()", inexact=True, sums=True)
def _masked(run: Any, a: np.ndarray, least: Any) -> Any:
    need(a.ndim > 0 and a.dtype != bool)
    return np.asarray(a[a > least].sum(), _wide(run, a.dtype))


@word("cumsum", "T.cumsum({0}, axis={p})", inexact=True, sums=True)
def _cumsum(run: Any, a: np.ndarray, axis: int) -> Any:
    need(a.ndim > axis and (is_float(a) or a.dtype == np.int64))
    return np.cumsum(a, axis=axis)


@word("sort", "T.sort({0})")
def _sort(run: Any, a: np.ndarray) -> Any:
    need(a.ndim == 1 and a.dtype != bool)
    return np.sort(a)


@word("norm", "({0} * 1.0).norm(2)", inexact=True, sums=True)
def _norm(run: Any, a: np.ndarray) -> Any:
    need(a.ndim == 1)
    x = in_float(run, a)
    run.tied |= not x.any()
    return np.sqrt(np.square(x).sum())


# Linear algebra.


@word("dot", "T.dot({0}, {1})", "{0}.dot({1})", operands=2, inexact=True, sums=True)
def _dot(run: Any, a: np.ndarray, b: np.ndarray) -> Any:
    need(1 <= a.ndim <= 2 and 1 <= b.ndim <= 2 and a.dtype != bool and b.dtype != bool)
    need(1 not in a.shape and 1 not in b.shape)
    return np.dot(*common(a, b))


@word("outer", "T.outer({0}, {1})", operands=2, inexact=True)
def _outer(run: Any, a: np.ndarray, b: np.ndarray) -> Any:
    need(a.ndim == b.ndim == 1 and a.dtype != bool and b.dtype != bool)
    return np.outer(*common(a, b))


@word("softmax", "T.nnet.softmax({0})", inexact=True)
def _softmax(run: Any, a: np.ndarray) -> Any:
    need(1 <= a.ndim <= 2 and is_float(a))
    x = a if a.ndim == 2 else a[None]
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


# Shapes.


@word("row", "{0}.dimshuffle('x', 0)", "{0}[None, :]")
def _row(run: Any, a: np.ndarray) -> Any:
    need(a.ndim == 1)
    return a[None]


@word("column", "{0}.dimshuffle(0, 'x')", "{0}[:, None]")
def _column(run: Any, a: np.ndarray) -> Any:
    need(a.ndim == 1)
    return a[:, None]


@word("unrow", "{0}.dimshuffle(1)", "{0}[0]")
def _unrow(run: Any, a: np.ndarray) -> Any:
    need(a.ndim == 2 and a.shape[0] == 1)
    return a[0]


@word("transpose", "{0}.T", "{0}.dimshuffle(1, 0)", "T.transpose({0})")
def _transpose(run: Any, a: np.ndarray) -> Any:
    need(a.ndim == 2)
    return a.T


@word("flatten", "{0}.flatten()", "T.reshape({0}, (-1,))")
def _flatten(run: Any, a: np.ndarray) -> Any:
    need(a.ndim == 2 and 1 not in a.shape)
    return a.reshape(-1)


@word("stack", "T.stack([{0}, {1}])", "T.stack([{0}, {1}], axis=0)", operands=2)
def _stack(run: Any, a: np.ndarray, b: np.ndarray) -> Any:
    need(a.shape == b.shape and a.ndim < 2 and 1 not in a.shape)
    return np.stack(common(a, b))


@word("concatenate", "T.concatenate([{0}, {1}])", "T.join(0, {0}, {1})", operands=2)
def _concatenate(run: Any, a: np.ndarray, b: np.ndarray) -> Any:
    need(a.ndim == b.ndim > 0 and a.shape[1:] == b.shape[1:] and 1 not in a.shape + b.shape and len(a) + len(b) < 7)
    return np.concatenate(common(a, b))


word("zeros_like", "T.zeros_like({0})")(lambda run, a: np.zeros_like(a))
word("ones_like", "T.ones_like({0})")(lambda run, a: np.ones_like(a))
word("zeros", "T.zeros({p})", operands=0)(lambda run, shape: np.zeros(shape, run.floatX))
word("ones", "T.ones({p})", operands=0)(lambda run, shape: np.ones(shape, run.floatX))
word("arange", "T.arange({p})", operands=0)(lambda run, n: np.arange(n, dtype="int64"))
word("eye", "T.eye({p})", operands=0)(lambda run, n: np.eye(n, dtype=run.floatX))
word("python", "{p!r}", operands=0)(lambda run, x: run.number(x))
word("constant", "T.constant({p!r})", operands=0)(lambda run, x: run.number(x))


@word("alloc", "T.alloc({0}, *{p})")
def _alloc(run: Any, a: np.ndarray, shape: tuple[int, ...]) -> Any:
    return np.broadcast_to(a, shape).copy()


@word("length", "{0}.shape[0]", "T.shape({0})[0]")
def _length(run: Any, a: np.ndarray) -> Any:
    need(a.ndim > 0)
    return np.asarray(a.shape[0], "int64")


# Indexing. A key is written in Python; `i` in it is the symbolic operand.


@functools.cache
def _code(code: str) -> Any:
    return compile(f"np.s_[{code}]", code, "eval")


def _key(code: str, index: Any = None) -> Any:
    """What stands between the brackets; `i` is the symbolic index."""
    return eval(_code(code), {"np": np, "i": index})


@word("at", "{0}[{p}]")
def _at(run: Any, a: np.ndarray, code: str) -> Any:
    return _taken(a, _key(code))


@word("at_symbolic", "{0}[{i:1}]", operands=2)
def _at_symbolic(run: Any, a: np.ndarray, i: np.ndarray, code: str) -> Any:
    return _taken(a, _key(code, _index(i)))


def _index(i: np.ndarray) -> Any:
    need(i.dtype.kind in "iu" and i.ndim <= 1)
    return i if i.ndim else int(i)


def _taken(a: np.ndarray, key: Any) -> np.ndarray:
    """A part that has no axis of extent 1 which it had not: Theano would not broadcast it."""
    need(a.ndim > 0)
    out = np.asarray(a[key])
    need(out.size > 0 and (1 not in out.shape or 1 in a.shape) and out.ndim <= a.ndim)
    return out.copy()


@word("take", "T.take({0}, {1}, axis=0)", "{0}.take({1}, axis=0)", operands=2)
def _take(run: Any, a: np.ndarray, i: np.ndarray) -> Any:
    return _taken(a, _index(i))


def _written(a: np.ndarray, value: np.ndarray, key: Any, add: bool) -> np.ndarray:
    need(a.ndim > 0 and a.dtype != bool and value.dtype != bool and np.result_type(a.dtype, value.dtype) == a.dtype)
    place = np.asarray(a[key])
    need(place.size > 0 and value.ndim <= place.ndim and (1 not in value.shape or value.shape == place.shape))
    need(np.broadcast_shapes(place.shape, value.shape) == place.shape)
    out = a.copy()
    if add:
        np.add.at(out, key, value.astype(a.dtype))
    else:
        out[key] = value
    return out


def _writing(name: str, add: bool) -> None:
    def plain(run: Any, a: np.ndarray, value: np.ndarray, code: str) -> Any:
        return _written(a, value, _key(code), add)

    def symbolic(run: Any, a: np.ndarray, value: np.ndarray, i: np.ndarray, code: str) -> Any:
        index = _index(i)
        need(add or not isinstance(index, np.ndarray))
        return _written(a, value, _key(code, index), add)

    word(f"{name}_at", f"T.{name}_subtensor({{0}}[{{p}}], {{1}})", operands=2, inexact=add)(plain)
    word(f"{name}_symbolic", f"T.{name}_subtensor({{0}}[{{i:2}}], {{1}})", operands=3, inexact=add)(symbolic)


_writing("set", False)
_writing("inc", True)
