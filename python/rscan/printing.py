"""Expressions as text, and values printed while a function runs."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable
from typing import Any, TextIO

import numpy as np

from . import _native
from ._spans import here
from .errors import RscanTypeError
from .function import Function
from .variable import Variable, apply, as_variable

__all__ = ["Print", "debugprint", "pp", "print_"]


def debugprint(x: Any, file: TextIO | str | None = None) -> str | None:
    """Prints a graph in text form, with the steps of its loops inside and the user's lines beside.

    x: a variable, several, or a compiled function. file: where to (standard output), or 'str' to return the text.

    errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for `file` of another kind.

    >>> x = rs.dscalar("x")
    >>> print(rs.debugprint(rs.exp(x) + 1, file="str"))
    fn f(x: f64) {
      %0 = exp(x)                                           # ...:1
      %1 = add(%0, 1.0:f64)                                 # ...:1
      return %1
    }
    """
    text = graph_text(x)
    if file == "str":
        return text
    if file is not None and not hasattr(file, "write"):
        raise RscanTypeError(f"file is something to write to, or 'str', not {file!r}", code="E0809", labels=[(here(), "")])
    builtins.print(text, file=file or sys.stdout)  # type: ignore[arg-type]
    return None


def graph_text(x: Any, optimised: bool = False) -> str:
    """The text form of variables or of a compiled function; a function as it was written, or as it runs."""
    if isinstance(x, Function):
        return x.text(optimised)
    lower = getattr(x, "_variants", None)
    if isinstance(lower, dict):
        return "\n".join(compiled.text(optimised) for compiled, _ in lower.values())
    variables = [as_variable(v) for v in (x if isinstance(x, (list, tuple)) else [x])]
    natives = [v._v for v in variables]
    inputs = [v for v in _native.leaves(natives, []) if v.kind == "input"]
    return _native.Function(inputs, natives).text()


#: Infix operators of elementwise ops, with their binding strength.
_INFIX = {
    "add": ("+", 4), "sub": ("-", 4), "mul": ("*", 5), "div": ("/", 5), "floor_divide": ("//", 5), "mod": ("%", 5),
    "matmul": ("@", 5), "pow": ("**", 7), "eq": ("==", 1), "ne": ("!=", 1), "lt": ("<", 1), "le": ("<=", 1), "gt": (">", 1),
    "ge": (">=", 1), "bitwise_and": ("&", 3), "bitwise_or": ("|", 2), "bitwise_xor": ("^", 2),
}  # fmt: skip


def pp(x: Any, depth: int = 40) -> str:
    """An expression on one line, in infix form: `tanh(x @ W + b)`. What lies deeper than `depth` is `…`.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> x = rs.dscalar("x")
    >>> rs.pp(rs.exp(x) + 1)
    'exp(x) + 1.0'
    """
    return _infix(as_variable(x)._v, depth)[0]


def _infix(v: _native.Var, depth: int) -> tuple[str, int]:
    """Text and binding strength."""
    if v.name:
        return v.name, 9
    if v.kind == "const":
        return _value_text(v.value), 9
    if v.kind != "apply":
        return v.describe(), 9
    if depth <= 0:
        return "…", 9
    op = v.op or "?"
    inputs = v.inputs
    if op in _INFIX and len(inputs) == 2:
        sign, strength = _INFIX[op]
        left, right = (_infix(i, depth - 1) for i in inputs)
        first = left[0] if (left[1] >= strength and op != "pow") or left[1] > strength else f"({left[0]})"
        second = right[0] if right[1] > strength or (op == "pow" and right[1] >= strength) else f"({right[0]})"
        return f"{first} {sign} {second}", strength
    if op == "neg":
        inner, strength = _infix(inputs[0], depth - 1)
        return ("-" + (inner if strength > 5 else f"({inner})")), 6
    scan = v.scan
    if scan is not None:
        states = scan["states"]
        which = states[v.index]["name"] if v.index < len(states) else "steps"
        return f"scan({scan['name'] or 'step'}).{which or v.index}", 9
    return _call_text(v, op, inputs, depth), 9


def _call_text(v: _native.Var, op: str, inputs: list[_native.Var], depth: int) -> str:
    attrs = dict(v.attrs)
    args = [_infix(i, depth - 1)[0] for i in inputs]
    if op == "index":
        subject, rest = args[0], iter(args[1:])
        items = ["".join(next(rest) if c in "ise" else c for c in item) for item in str(attrs["pattern"]).split(",")]
        return f"{_grouped(inputs[0], subject, depth)}[{', '.join(items)}]"
    if op == "reduce":
        op = str(attrs.pop("kind"))
        if len(attrs["axes"]) == inputs[0].ndim:
            del attrs["axes"]
        if not attrs["keepdims"]:
            del attrs["keepdims"]
    named = [f"{key}={value}" for key, value in attrs.items()]
    return f"{op}({', '.join(args + named)})"


def _grouped(v: _native.Var, text: str, depth: int) -> str:
    return text if _infix(v, depth - 1)[1] == 9 else f"({text})"


def _value_text(value: np.ndarray) -> str:
    if value.size == 1 and value.ndim == 0:
        return repr(value.item())
    text = np.array2string(value, threshold=6, separator=", ").replace("\n", "")
    return text if len(text) <= 40 else f"const{list(value.shape)}"


class Print:
    """`Print("h")(x)` is x, and prints it whenever it is computed: in a loop once per step.

    attributes: what else to print, names of NumPy attributes: `Print("h", ["shape", "dtype"])`.
    file: where to; standard output.

    errors: `RscanTypeError` (E0809) for `attrs` that arrays do not have, and for a `file` that is none; (E0805) for what is no number or
    array.

    >>> x = rs.dscalar("x")
    >>> f = rs.function([x], rs.Print("x is")(x) * 2)
    >>> f(1.0)
    x is 1.0
    array(2.)
    """

    message: str
    attrs: tuple[str, ...]
    file: TextIO | None

    def __init__(self, message: str = "", attrs: Any = ("__str__",), file: TextIO | None = None, callback: Any = None) -> None:
        self.message, self.attrs, self.file = message, (attrs,) if isinstance(attrs, str) else tuple(attrs), file
        unknown = [a for a in self.attrs if not (isinstance(a, str) and hasattr(np.ndarray, a))]
        if unknown:
            raise RscanTypeError(f"arrays have no attribute {unknown[0]!r} to print", code="E0809", labels=[(here(), "")])
        if file is not None and not hasattr(file, "write"):
            raise RscanTypeError(f"values are printed to a file, not to {file!r}", code="E0809", labels=[(here(), "")])
        self.callback: Callable[[np.ndarray], Any] | None = callback

    def __call__(self, x: Any) -> Variable:
        return apply(self._user_op(), {}, as_variable(x))

    def _user_op(self, key: str | None = None) -> _native.UserOp:
        """As an op, whose key says what is printed: `print["h"]`, from which `rs.load` makes it again."""
        import json

        said = [str(self.message), *(() if self.attrs == ("__str__",) else self.attrs)]
        key = key or f"print{json.dumps(said, ensure_ascii=False)}"
        return _native.extern(key, False, self._infer, self._eval, self._vjp, True)

    def _infer(self, inputs: Any) -> Any:
        return [(dtype, list(shape)) for dtype, shape in inputs]

    def _eval(self, inputs: list[np.ndarray]) -> list[np.ndarray]:
        if self.callback is not None:
            self.callback(inputs[0])
        else:
            for attr in self.attrs:
                text = str(inputs[0]) if attr == "__str__" else f"{attr} = {getattr(inputs[0], attr)}"
                builtins.print(f"{self.message} {text}".strip(), file=self.file or sys.stdout)
        return inputs

    def _vjp(self, inputs: list[Any], outputs: list[Any], cotangents: list[Any]) -> list[Any]:
        return [cotangents[0]]


def printer(key: str) -> _native.UserOp | None:
    """What prints, from the key that it has in a file."""
    if not key.startswith("print["):
        return None
    import json

    try:
        message, *attrs = json.loads(key.removeprefix("print"))
        return Print(message, attrs or ("__str__",))._user_op(key)
    except (ValueError, RscanTypeError):
        return None


def print_(x: Any, message: str = "", file: TextIO | None = None) -> Variable:
    """x, printed whenever it is computed: in a loop once per step.

    errors: `RscanTypeError` (E0805) for what is no number or array.

    >>> x = rs.dscalar("x")
    >>> f = rs.function([x], rs.print(x, "x is") * 2)
    >>> f(1.0)
    x is 1.0
    array(2.)
    """
    return Print(message, file=file)(x)
