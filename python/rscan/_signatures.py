"""What `help`, editors and the reference show of functions that take many kinds of arguments: types where annotations leave them open."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ._spans import here
from .errors import RscanTypeError

_WRT = "Variable | list[Variable] | tuple[Variable, ...]"
_ARGNUMS = "int | str | tuple[int | str, ...]"
_STRUCTURE = "Operand | dict[str, Any] | list[Any] | tuple[Any, ...]"

#: By the names of functions: of parameters and, as `return`, of the result.
WORDS: dict[str, dict[str, str]] = {
    "scan": {
        "sequences": "Operand | dict[str, Any] | list[Any] | None",
        "outputs_info": "Operand | dict[str, Any] | list[Any] | None",
        "non_sequences": "Operand | list[Operand] | None",
        "n_steps": "int | Variable | None",
        "profile": "bool | str",
        "init": _STRUCTURE,
        "return": "tuple[Variable | list[Variable] | None, OrderedUpdates]",
    },
    "loop": {
        "over": _STRUCTURE + " | Taps",
        "init": _STRUCTURE + " | Taps",
        "n_steps": "int | Variable | None",
        "given": _STRUCTURE,
        "non_sequences": _STRUCTURE,
        "lengths": "Operand | None",
        "mask": "Operand | None",
        "return": "Loop | LoopOutput",
    },
    "function": {
        "inputs": "Variable | In | list[Variable | In]",
        "outputs": "Variable | list[Variable] | dict[str, Variable] | None",
        "updates": "dict[SharedVariable, Operand] | list[tuple[SharedVariable, Operand]] | None",
        "givens": "dict[Variable, Operand] | list[tuple[Variable, Operand]] | None",
        "no_default_updates": "bool | list[SharedVariable]",
        "progress": "bool | Callable[[int, int | None, float], Any] | None",
        "return": "Function",
    },
    "compile": {
        "progress": "bool | Callable[[int, int | None, float], Any] | None",
        "profile": "bool | str",
        "return": "Compiled",
    },
    "shared": {"value": "Operand", "dtype": "str | np.dtype | None"},
    "value_and_grad": {"argnums": _ARGNUMS, "wrt": _ARGNUMS + " | None"},
    "vmap": {"in_axes": "int | None | tuple[Any, ...] | dict[str, Any]", "out_axes": "int | tuple[Any, ...] | dict[str, Any]"},
    "hvp": {"primals": "tuple[Any, ...]", "tangents": "tuple[Any, ...]", "return": "tuple[Any, Any]"},
    "fori": {"lower": "int | Variable", "upper": "int | Variable", "init": _STRUCTURE, "return": _STRUCTURE},
    "associative_scan": {"elems": _STRUCTURE, "return": _STRUCTURE},
    "grad": {"cost": "Variable | Callable[..., Variable]", "return": _WRT + " | Compiled"},
    "jacobian": {"expression": "Variable | Callable[..., Variable]", "return": _WRT + " | Compiled"},
    "hessian": {"cost": "Variable | Callable[..., Variable]", "return": _WRT + " | Compiled"},
}


#: What arguments are called elsewhere, and here.
_ELSEWHERE = {
    "loop": {"sequences": "over", "xs": "over", "outputs_info": "init", "carry": "init", "steps": "n_steps"},
    "scan": {"over": "sequences", "xs": "sequences", "carry": "outputs_info", "length": "n_steps", "steps": "n_steps"},
    "odeint": {"args": "*args", "t_eval": "t", "t_span": "t", "fun": "func"},
}

#: Where a name may mean several things.
_SEVERAL = {"loop": {"length": "the number of steps is `n_steps` here; `lengths` has one for each row of the states"}}


def misspelt(function: Callable[..., Any], given: Mapping[str, Any]) -> RscanTypeError:
    """The error of keywords that a function does not have: which ones may be meant."""
    import difflib  # errors alone need it

    known, name = list(inspect.signature(function).parameters), next(iter(given))
    alike = next(iter(difflib.get_close_matches(name, known, 1)), None)
    meant = _ELSEWHERE.get(function.__name__, {}).get(name, alike)
    several = _SEVERAL.get(function.__name__, {}).get(name)
    text = f"{function.__name__}() has no argument `{name}`"
    helps = [several] if several else [] if meant is None else [f"it is called `{meant}` here"]
    return RscanTypeError(text, code="E0809", labels=[(here(), "")], notes=[f"its arguments are {', '.join(known)}"], helps=helps)


def described(function: Callable[..., Any]) -> None:
    """Gives a function the signature that is shown: without `**unknown`, which takes keywords that it does not have."""
    own, words = inspect.signature(function), WORDS.get(function.__name__, {})
    parameters = [p for p in own.parameters.values() if p.name != "unknown"]
    shown = [p.replace(annotation=words.get(p.name, p.annotation)) for p in parameters]
    function.__signature__ = own.replace(parameters=shown, return_annotation=words.get("return", own.return_annotation))  # type: ignore[attr-defined]
