"""What Theano has and the facade lacks. Its names exist, so that programs that import them run; calling one is an error that says
what to do instead. docs/absent.md lists them."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

from .._spans import here
from ..errors import UnsupportedError

#: Per feature, what a program can do without it.
INSTEAD = {
    "complex numbers": "keep real and imaginary parts in two arrays",
    "convolutions of images": "write the sum over windows as products of slices, or an Op with perform and grad",
    "pooling": "reshape into windows and reduce, as in x.reshape((n, c, h // 2, 2, w // 2, 2)).max(axis=(3, 5))",
    "sparse matrices": "use dense ones, or a gather and inc_subtensor of the elements that are not 0",
    "arrays on a GPU": "leave the conversion away: arrays are in the memory of the CPU",
    "typed lists": "use a matrix, or a Python list of variables",
    "optimisations written by users": "replace variables with theano.clone before the function is compiled",
    "variables of any Python type": "pass such values to the Python function that builds the graph",
    "factorisations": "there are eigh, svd, qr, cholesky; eigenvalues of other matrices are complex",
}

#: Functions and classes, per module and feature.
NAMES: dict[str, dict[str, tuple[str, ...]]] = {
    "tensor": {
        "complex numbers": (
            *(prefix + kind for prefix in "cz" for kind in ("scalar", "vector", "matrix", "row", "col", "tensor3", "tensor4")),
            *(prefix + kind for prefix in "cz" for kind in ("scalars", "vectors", "matrices", "rows", "cols", "tensor3s", "tensor4s")),
            "complex", "complex_from_polar",
        ),
    },
    "tensor.nnet": {
        "convolutions of images": ("conv2d", "conv2d_transpose", "conv3d", "separable_conv2d", "grouped_conv2d"),
    },
    "tensor.linalg": {
        "factorisations": ("eig",),
    },
    "tensor.opt": {
        "optimisations written by users": ("register_canonicalize", "register_specialize", "register_stabilize"),
    },
    "gof": {
        "optimisations written by users": (
            "local_optimizer", "LocalOptimizer", "Optimizer", "PatternSub", "OpSub", "OpRemove", "EquilibriumOptimizer", "EquilibriumDB",
            "SequenceDB",
        ),
    },
}  # fmt: skip

#: Modules of which nothing is there.
MODULES = {
    "sparse": "sparse matrices",
    "gpuarray": "arrays on a GPU",
    "sandbox.cuda": "arrays on a GPU",
    "typed_list": "typed lists",
    "tensor.nnet.conv": "convolutions of images",
    "tensor.nnet.abstract_conv": "convolutions of images",
    "tensor.nnet.neighbours": "convolutions of images",
    "tensor.signal.conv": "convolutions of images",
    "tensor.signal.pool": "pooling",
    "tensor.signal.downsample": "pooling",
    "gof.opt": "optimisations written by users",
    "gof.optdb": "optimisations written by users",
    "compile.optdb": "optimisations written by users",
}


def absent(name: str, feature: str) -> Callable[..., Any]:
    """Stands for something that is lacking: a function that raises when it is called."""

    def function(*_: Any, **__: Any) -> Any:
        raise UnsupportedError(
            f"rscan.theano has no {feature}: `{name}`",
            code="E0813",
            labels=[(here(), "")],
            notes=["docs/absent.md lists what there is not"],
            helps=[INSTEAD[feature]],
        )

    function.__name__ = function.__qualname__ = name.rpartition(".")[2]
    function.__doc__ = f"Not provided: {feature}."
    return function


def absent_in(module: str) -> dict[str, Callable[..., Any]]:
    """The functions that a module lacks, by name."""
    return {name: absent(f"{module}.{name}", feature) for feature, names in NAMES[module].items() for name in names}


class AbsentModule(types.ModuleType):
    """Stands for a module that is lacking: whatever is taken from it raises when it is called."""

    def __init__(self, name: str, feature: str) -> None:
        super().__init__(f"{__package__}.{name}", f"Not provided: {feature}.")
        self._short, self._feature = name, feature
        self.__path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return absent(f"{self._short}.{name}", self._feature)


def provide() -> None:
    """Puts the lacking modules in their places."""
    for name, feature in MODULES.items():
        module = AbsentModule(name, feature)
        parent, _, last = f"{__package__}.{name}".rpartition(".")
        sys.modules[module.__name__] = module
        setattr(sys.modules[parent], last, module)
