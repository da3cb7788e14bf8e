"""`theano.printing`."""

from __future__ import annotations

import sys
from typing import Any

from .. import printing as base
from ..printing import debugprint as _debugprint
from ..variable import Variable
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


def pydotprint(fct: Any, outfile: Any = None, *_: Any, **__: Any) -> None:
    """Writes the text form of the graph to a file, in place of a picture."""
    if outfile is not None:
        with open(outfile, "w", encoding="utf-8") as file:
            file.write(base.graph_text(fct))


class MonitorMode:
    """A mode as any other: there are no nodes to watch."""

    def __init__(self, pre_func: Any = None, post_func: Any = None, **_: Any) -> None:
        self.pre_func, self.post_func = pre_func, post_func


def min_informative_str(obj: Any, *_: Any, **__: Any) -> str:
    """An expression on one line."""
    return pp(obj)


__all__ = ["MonitorMode", "Print", "debugprint", "min_informative_str", "pp", "pprint", "pydotprint"]
