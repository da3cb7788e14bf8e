"""`map`, `reduce`, `foldl` and `foldr`: cases of a `scan`, whichever it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Loop = Callable[..., Any]


def cases_of(scan: Loop) -> tuple[Loop, Loop, Loop, Loop]:
    """The four, in this order, with Theano's arguments."""

    def map(
        fn: Callable[..., Any],
        sequences: Any,
        non_sequences: Any = None,
        truncate_gradient: int = -1,
        go_backwards: bool = False,
        mode: Any = None,
        name: str | None = None,
    ) -> Any:
        """What fn gives for each row of the sequences. Returns (outputs, updates)."""
        return scan(fn, sequences, None, non_sequences, None, truncate_gradient, go_backwards, mode, name)

    def reduce(
        fn: Callable[..., Any],
        sequences: Any,
        outputs_info: Any,
        non_sequences: Any = None,
        go_backwards: bool = False,
        mode: Any = None,
        name: str | None = None,
    ) -> Any:
        """The last value of fn(row, accumulator, …), starting from outputs_info. Returns (value or values, updates)."""
        outputs, updates = scan(fn, sequences, outputs_info, non_sequences, None, -1, go_backwards, mode, name)
        if isinstance(outputs, (list, tuple)):
            return [rows[-1] for rows in outputs], updates
        return outputs[-1], updates

    def foldl(
        fn: Callable[..., Any], sequences: Any, outputs_info: Any, non_sequences: Any = None, mode: Any = None, name: str | None = None
    ) -> Any:
        """`reduce` from the first row to the last."""
        return reduce(fn, sequences, outputs_info, non_sequences, False, mode, name)

    def foldr(
        fn: Callable[..., Any], sequences: Any, outputs_info: Any, non_sequences: Any = None, mode: Any = None, name: str | None = None
    ) -> Any:
        """`reduce` from the last row to the first."""
        return reduce(fn, sequences, outputs_info, non_sequences, True, mode, name)

    return map, reduce, foldl, foldr
