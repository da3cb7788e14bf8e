"""For scipy.optimize: `f = objective(cost, params)`, then `minimize(f, f.x0, jac=True)`; `f.unravel(result.x)` is the structure again."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _tree
from ..compile import _array, _is_leaf
from ..derivatives import grad, hessian, jvp
from ..function import function
from ..inputs import tensor
from ..variable import Variable
from ._vector import Vector

__all__ = ["Objective", "objective", "residuals"]


class Objective:
    """A function of one vector: called it gives value and gradient, for `jac=True`; `fun`, `jac`, `hess` and `hessp` give one each.

    x0: the vector of the parameters that it was made with. Values are floats, gradients arrays of float64 of x's shape.

    errors: those of `objective`, when it is called.

    >>> from rscan.interop.scipy import objective
    >>> f = objective(lambda p: rs.sum(p**2), np.array([1.0, 2.0]))
    >>> f.fun(f.x0), f.jac(f.x0), f.unravel(f.x0)
    (5.0, array([2., 4.]), array([1., 2.]))
    """

    def __init__(self, cost: Callable[..., Any], params: Any, args: Any = ()) -> None:
        self._vector = Vector(params)
        self.x0: np.ndarray = self._vector.start
        leaves, tree = _tree.flatten(list(args) if isinstance(args, tuple) else [args], _is_leaf)
        self._data = [_array(leaf, name) for leaf, name in zip(leaves, _tree.paths(tree, "args"), strict=True)]
        self._inputs = [tensor(a.dtype.name, a.shape, name) for a, name in zip(self._data, _tree.paths(tree, "args"), strict=True)]
        self._x = tensor("float64", self.x0.shape, "x")
        self._cost: Variable = cost(self._vector.unravel(self._x), *tree.build(iter(self._inputs)))

    @functools.cached_property
    def _slope(self) -> Variable:
        return grad(self._cost, self._x, disconnected_inputs="ignore")

    def _made(self, outputs: Any, *more: Variable) -> Any:
        made = function([*self._inputs, self._x, *more], outputs, on_unused_input="ignore", allow_input_downcast=True)
        return made.bind(*self._data) if self._data else made

    @functools.cached_property
    def _both(self) -> Any:
        return self._made([self._cost, self._slope])

    @functools.cached_property
    def _value(self) -> Any:
        return self._made(self._cost)

    @functools.cached_property
    def _hessian(self) -> Any:
        return self._made(hessian(self._cost, self._x, disconnected_inputs="ignore"))

    @functools.cached_property
    def _product(self) -> Any:
        p = tensor("float64", self.x0.shape, "p")
        return self._made(jvp(self._slope, self._x, p), p)

    def __call__(self, x: Any) -> tuple[float, np.ndarray]:
        """Value and gradient."""
        value, slope = self._both(np.asarray(x, np.float64))
        return float(value), slope

    def fun(self, x: Any) -> float:
        """The value.

        errors: `RscanTypeError` (E0504) for another number of parameters; what the program finds.
        """
        return float(self._value(np.asarray(x, np.float64)))

    def jac(self, x: Any) -> np.ndarray:
        """The gradient.

        errors: `RscanTypeError` (E0504) for another number of parameters; what the program finds.
        """
        return self(x)[1]

    def hess(self, x: Any) -> np.ndarray:
        """The matrix of second derivatives.

        errors: `RscanTypeError` (E0504) for another number of parameters; what the program finds.
        """
        return self._hessian(np.asarray(x, np.float64))

    def hessp(self, x: Any, p: Any) -> np.ndarray:
        """That matrix times a vector, without the matrix.

        errors: `RscanTypeError` (E0504) for another number of parameters; what the program finds.
        """
        return self._product(np.asarray(x, np.float64), np.asarray(p, np.float64))

    def ravel(self, params: Any) -> np.ndarray:
        """The vector of parameters of the kind that it was made with.

        errors: `ShapeError` (E0809) for another structure or other shapes.
        """
        return self._vector.ravel(params)

    def unravel(self, x: Any) -> Any:
        """The parameters of a vector; of rows of vectors, arrays with the rows in front.

        errors: `ValueError` for fewer numbers than there are parameters.
        """
        return self._vector.unravel(x)

    @property
    def names(self) -> list[str]:
        """A name per parameter: `a`, `b.c`, `d[0]`."""
        return list(self._vector.names)


def objective(cost: Callable[..., Any], params: Any, args: Any = ()) -> Objective:
    """The cost `cost(params, *args)`, a float scalar, as a function of one vector.

    params: where to begin: numbers, arrays, and dicts, lists, tuples and dataclasses of these. args: a tuple of arrays, which
    are copied once; what is no tuple is one argument, as SciPy has it.

    errors: `RscanTypeError` (E0508) for what is no function; calls raise what `cost` raises, and `NonScalarCostError` (E0401).

    >>> from rscan.interop.scipy import objective
    >>> f = objective(lambda p: (p["a"] - 1.0) ** 2 + p["b"] ** 2, {"a": 0.0, "b": 2.0})
    >>> f.names, f.x0
    (['a', 'b'], array([0., 2.]))
    >>> f(f.x0)
    (5.0, array([-2.,  4.]))
    >>> f.hess(f.x0)
    array([[2., 0.],
           [0., 2.]])
    """
    return Objective(cost, params, args)


def residuals(fn: Callable[..., Any], params: Any, args: Any = ()) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """What `least_squares` and `root` want of `fn(params, *args)`, a vector: its values and its Jacobian as functions of one vector.

    errors: `RscanTypeError` (E0508) for what is no function; calls raise what `fn` raises.

    >>> from rscan.interop.scipy import residuals
    >>> values, jac = residuals(lambda p, t: p * t - 1.0, 2.0, (np.array([1.0, 2.0]),))
    >>> values([2.0]), jac([2.0])
    (array([1., 3.]), array([[1.],
           [2.]]))
    """
    from ..derivatives import jacobian

    made = Objective(fn, params, args)
    jac = made._made(jacobian(made._cost, made._x, disconnected_inputs="ignore"))
    return lambda x: made._value(np.asarray(x, np.float64)), lambda x: jac(np.asarray(x, np.float64))
