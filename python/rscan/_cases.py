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
        """What fn gives for each row of the sequences. Returns (outputs, updates).

        errors: those of `scan`.

        >>> squares, updates = rs.map(lambda x: x**2, sequences=np.array([1.0, 2.0]))
        >>> squares.eval()
        array([1., 4.])
        """
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
        """The last value of fn(row, accumulator, …), starting from outputs_info. Returns (value or values, updates).

        errors: those of `scan`.

        >>> total, updates = rs.reduce(lambda x, total: total + x, np.array([1.0, 2.0, 3.0]), rs.constant(0.0))
        >>> rs.eval(total)
        array(6.)
        """
        outputs, updates = scan(fn, sequences, outputs_info, non_sequences, None, -1, go_backwards, mode, name)
        if isinstance(outputs, (list, tuple)):
            return [rows[-1] for rows in outputs], updates
        return outputs[-1], updates

    def foldl(
        fn: Callable[..., Any], sequences: Any, outputs_info: Any, non_sequences: Any = None, mode: Any = None, name: str | None = None
    ) -> Any:
        """`reduce` from the first row to the last.

        errors: those of `scan`.

        >>> value, updates = rs.foldl(lambda x, value: 10 * value + x, np.array([1, 2, 3]), rs.constant(0))
        >>> rs.eval(value)
        array(123)
        """
        return reduce(fn, sequences, outputs_info, non_sequences, False, mode, name)

    def foldr(
        fn: Callable[..., Any], sequences: Any, outputs_info: Any, non_sequences: Any = None, mode: Any = None, name: str | None = None
    ) -> Any:
        """`reduce` from the last row to the first.

        errors: those of `scan`.

        >>> value, updates = rs.foldr(lambda x, value: 10 * value + x, np.array([1, 2, 3]), rs.constant(0))
        >>> rs.eval(value)
        array(321)
        """
        return reduce(fn, sequences, outputs_info, non_sequences, True, mode, name)

    return map, reduce, foldl, foldr
