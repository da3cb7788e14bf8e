"""Elementwise functions: one per row of the core's table, with NumPy's and Theano's other names. `_rows.pyi` lists them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _native
from ._row_examples import EXAMPLES
from ._spans import here
from .errors import RscanTypeError
from .variable import Variable, elementwise

#: Other names of rows.
ALIASES = {
    "subtract": "sub", "multiply": "mul", "divide": "div", "true_divide": "div", "true_div": "div", "negative": "neg",
    "absolute": "abs", "power": "pow", "remainder": "mod", "floor_divide": "floordiv", "int_div": "floordiv",
    "equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge",
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2", "arcsinh": "asinh", "arccosh": "acosh",
    "arctanh": "atanh", "sgn": "sign", "sqr": "square", "bitwise_and": "bit_and", "bitwise_or": "bit_or",
    "bitwise_xor": "bit_xor", "bitwise_not": "invert", "bitwise_invert": "invert", "left_shift": "shift_left",
    "right_shift": "shift_right", "bitwise_left_shift": "shift_left", "bitwise_right_shift": "shift_right",
    "fix": "trunc", "expit": "sigmoid", "psi": "digamma", "degrees": "rad2deg", "radians": "deg2rad", "lgamma": "gammaln",
}  # fmt: skip


#: Rows that floats have no meaning for.
_OF_INTEGERS = ("bit_and", "bit_or", "bit_xor", "invert", "shift_left", "shift_right")


def _row(row: dict[str, Any]) -> Callable[..., Variable]:
    """The function of a row of the table."""
    name, args = row["name"], row["args"]
    of_one = {"maximum": "max", "minimum": "min", "logical_and": "all", "logical_or": "any"}

    def function(*operands: Any) -> Variable:
        if len(operands) != len(args):
            text = f"{name}({', '.join(args)}) takes {len(args)} argument{'s' * (len(args) > 1)}, got {len(operands)}"
            helps = [f"rs.{of_one[name]}(x) is that of the elements of one array"] if name in of_one and len(operands) == 1 else []
            raise RscanTypeError(text, code="E0809", labels=[(here(), "")], helps=helps)
        return elementwise(name, *operands)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = _doc(row)
    function.__module__ = "rscan"
    return function


def _doc(row: dict[str, Any]) -> str:
    """What the table says of a row, and its example."""
    name = row["name"]
    kind = f"The result has {row['rule']}" if "dtype" in row["rule"] else f"The result is {row['rule']}"
    refused = ", (E0230) for floats" if name in _OF_INTEGERS else ""
    domain = "" if row["domain"] == "all" else f" Defined for {row['domain']}."
    text = f"""{name}({", ".join(row["args"])}): {row["doc"]}

Elementwise: shapes broadcast. {kind}.{domain}

errors: `RscanTypeError` (E0805) for what is no number or array, (E0809) for a wrong number of arguments{refused}; `ShapeError` (E0201)
where shapes do not broadcast.
"""
    given, found = EXAMPLES.get(name, ("", ""))
    return f"{text}\n>>> rs.{name}({given}).eval()\n{found}\n" if given else text


#: The function of each row, by its name and its other names.
ROWS: dict[str, Callable[..., Variable]] = {row["name"]: _row(row) for row in _native.catalogue()}
ROWS.update({alias: ROWS[name] for alias, name in ALIASES.items() if name in ROWS and alias not in ROWS})
globals().update(ROWS)

#: Rows that `ops_elementwise` gives more arguments.
EXTENDED = ("clip", "pow", "power", "round", "where")

__all__ = [name for name in ROWS if name not in EXTENDED]
