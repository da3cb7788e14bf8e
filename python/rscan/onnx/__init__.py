"""Compiled functions as models of ONNX, for runtimes that know nothing of rscan: `rs.onnx.export(f, "model.onnx")`."""

from __future__ import annotations

import os
from typing import Any

from .._spans import here
from ..errors import RscanTypeError
from ..function import Function

__all__ = ["export"]


def export(f: Function[Any], path: str | os.PathLike[str] | None = None, *, name: str | None = None) -> bytes:
    """Writes a compiled function as a model of ONNX, operator set 18, and returns its bytes; without a path nothing is written.

    The graph is that of the expressions as they were written, loops as `Scan` and `Loop`. Inputs and outputs have the function's names, and
    extents that are not fixed have names, too. Shared variables are constants of the model, with the values that they have now.

    Raises UnsupportedError E0927, at the user's line, for what ONNX cannot say: updates of shared variables, random draws, factorisations
    of matrices, users' ops (docs/onnx.md lists them). Needs the package `onnx`.

    errors: `RscanTypeError` (E0809) for what is no function; `UnsupportedError` for what ONNX cannot say; `ImportError` without the package
    `onnx`.

    >>> x = rs.dvector("x")
    >>> rows, _ = rs.scan(lambda x, h: rs.tanh(h + x), sequences=x, outputs_info=0.0)
    >>> f = rs.function([x], rows, name="cell")
    >>> rs.onnx.export(f, "cell.onnx")  # doctest: +SKIP
    """
    from ._model import model_of

    if not isinstance(f, Function):
        raise RscanTypeError(
            f"{type(f).__name__} cannot be exported; what `rs.function` returns can",
            code="E0809",
            labels=[(here(), "")],
        )
    model = model_of(f, name or f.name or "f")
    from ._proto import proto

    made: bytes = proto(model).SerializeToString()
    if path is not None:
        with open(path, "wb") as file:
            file.write(made)
    return made
