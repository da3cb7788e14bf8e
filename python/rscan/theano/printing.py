"""`theano.printing`."""

from __future__ import annotations

import os
import sys
import tempfile
from typing import Any

from .. import printing as base
from ..printing import debugprint as _debugprint
from ..variable import Variable
from .picture import kind_of, picture_of
from .variable import as_tensor_variable


class Print(base.Print):
    """`Print("message")(x)` is x, and prints it whenever it is computed."""

    def __init__(self, message: str = "", attrs: Any = ("__str__",), global_fn: Any = None) -> None:
        self._global_fn = global_fn
        super().__init__(message, attrs)

    def __call__(self, x: Any) -> Variable:
        return super().__call__(as_tensor_variable(x))

    def _eval(self, inputs: list[Any]) -> list[Any]:
        if self._global_fn is not None:
            self._global_fn(self, inputs[0])
        else:
            for attr in self.attrs:
                found = getattr(inputs[0], attr)
                print(self.message, attr, "=", found() if callable(found) else found, file=sys.stdout)
        return inputs


def debugprint(obj: Any, depth: int = -1, print_type: bool = False, file: Any = None, ids: str = "CHAR", stop_on_name: bool = False,
               done: Any = None, print_storage: bool = False, **_: Any) -> Any:  # fmt: skip
    """Prints a graph in rscan's text form."""
    return _debugprint(obj, file)


def pp(x: Any) -> str:
    """An expression on one line."""
    return base.pp(as_tensor_variable(x))


pprint = pp


def pydotprint(
    fct: Any,
    outfile: Any = None,
    compact: bool = True,
    format: str = "png",
    with_ids: bool = False,
    high_contrast: bool = True,
    cond_highlight: Any = None,
    colorCodes: Any = None,
    max_label_size: int = 70,
    scan_graphs: bool = False,
    var_with_name_simple: bool = False,
    print_output_file: bool = True,
    return_image: bool = False,
) -> bytes | None:
    """Draws the graph of a function, of a variable or of several, with matplotlib.

    outfile: where to, as PNG, SVG or PDF; without one, a file in the directory for temporary files. format: what kind of file,
    where the name does not tell. scan_graphs: the steps of loops are drawn too, in files of their own beside it. return_image:
    the bytes of the picture are returned, and nothing is written. The other arguments are accepted.
    """
    from .gof.graph import io_toposort

    if hasattr(fct, "maker"):
        ins, outs = fct.maker.fgraph.inputs, fct.maker.fgraph.outputs
    elif hasattr(fct, "toposort"):
        ins, outs = fct.inputs, fct.outputs
    else:
        ins, outs = [], [as_tensor_variable(v) for v in (fct if isinstance(fct, (list, tuple)) else [fct])]
    kind = kind_of(outfile, format)
    nodes = io_toposort(ins, outs)
    image = picture_of(nodes, outs, max_label_size).image(kind)
    if return_image:
        return image
    path = os.path.join(tempfile.gettempdir(), f"theano.pydotprint.{kind}") if outfile is None else os.fspath(outfile)
    _write(path, image, print_output_file)
    loops = [node.op for node in nodes if hasattr(node.op, "truncate_gradient")] if scan_graphs else []
    for n, op in enumerate(loops):
        root, ending = os.path.splitext(path)
        step = picture_of(io_toposort(op.inputs, op.outputs), op.outputs, max_label_size).image(kind)
        _write(f"{root}_{op.name or 'scan'}_{n}{ending}", step, print_output_file)
    return None


def _write(path: str, image: bytes, tell: bool) -> None:
    with open(path, "wb") as file:
        file.write(image)
    if tell:
        print(f"The picture is in {path}")


class MonitorMode:
    """A mode as any other: there are no nodes to watch."""

    pre_func: Any
    post_func: Any

    def __init__(self, pre_func: Any = None, post_func: Any = None, **_: Any) -> None:
        self.pre_func, self.post_func = pre_func, post_func


def min_informative_str(obj: Any, *_: Any, **__: Any) -> str:
    """An expression on one line."""
    return pp(obj)


__all__ = ["MonitorMode", "Print", "debugprint", "min_informative_str", "pp", "pprint", "pydotprint"]
