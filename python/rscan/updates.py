"""What a step may return beside its outputs: changes of shared variables, and the condition that ends the loop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ._spans import here
from .errors import ScanError
from .variable import Variable, as_variable

__all__ = ["ForgottenUpdatesWarning", "OrderedUpdates", "until"]


class ForgottenUpdatesWarning(UserWarning):
    """A function uses a loop whose updates of shared variables it was not given.

    >>> issubclass(rs.ForgottenUpdatesWarning, Warning)
    True
    """


class until:
    """The condition that ends a loop: `return outputs, rs.until(condition)`. The step that meets it is the last one.

    No comparison with NaN holds: `rs.until(~(error > tol))` ends a loop whose error has become NaN, `rs.until(error < tol)` does not.

    errors: `RscanTypeError` (E0805) for what is no number or array; the loop raises `ScanError` (E0108) for a condition that is no scalar.

    >>> rows, _ = rs.scan(lambda h: (2 * h, rs.until(h > 10)), outputs_info=rs.constant(1), n_steps=100)
    >>> rows.eval()
    array([ 2,  4,  8, 16, 32])
    """

    def __init__(self, condition: Any) -> None:
        self.condition: Variable = as_variable(condition)

    def __repr__(self) -> str:
        return f"until({self.condition!r})"


class OrderedUpdates(dict[Any, Any]):
    """New values of shared variables, in the order in which they were given. Keys must be shared variables, and what is
    added must not contradict what is there.

    errors: `ScanError` (E0115) for a key that is no shared variable, (E0123) for what are no pairs.

    >>> s = rs.shared(1.0, name="s")
    >>> updates = rs.OrderedUpdates({s: s + 1})
    >>> f = rs.function([], s, updates=updates)
    >>> f(), f()
    (array(1.), array(2.))
    """

    def __init__(self, updates: Any = (), /) -> None:
        super().__init__()
        self.update(updates)

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(_shared(key), as_variable(value))

    def setdefault(self, key: Any, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    def update(self, other: Any = (), /) -> None:  # type: ignore[override]
        """Adds updates, given as a mapping or as pairs.

        errors: `ScanError` (E0126) for two values of one variable, (E0115) for a key that is no shared variable.
        """
        for key, value in pairs(other):
            new = as_variable(value)
            if key in self and self[key]._v != new._v:
                raise ScanError(
                    f"two updates of `{key._describe()}` contradict each other",
                    code="E0126",
                    labels=[(here(), ""), (self[key]._v.span, "one new value"), (new._v.span, "another one")],
                    helps=["combine both into one expression"],
                )
            self[key] = new

    def __or__(self, other: Any) -> OrderedUpdates:  # type: ignore[override]
        result = self.copy()
        result.update(other)
        return result

    __add__ = __or__

    def __radd__(self, other: Any) -> OrderedUpdates:
        return OrderedUpdates(other) + self

    def __ior__(self, other: Any) -> OrderedUpdates:  # type: ignore[override,misc]
        self.update(other)
        return self

    def copy(self) -> OrderedUpdates:
        return OrderedUpdates(self)

    def __repr__(self) -> str:
        return f"OrderedUpdates({super().__repr__()})"


def pairs(updates: Any) -> Iterable[tuple[Any, Any]]:
    """The pairs of a mapping, or of a list of pairs."""
    items = updates.items() if isinstance(updates, Mapping) else updates
    for item in items:
        if not isinstance(item, (tuple, list)) or len(item) != 2:
            raise ScanError(f"updates are pairs of a shared variable and its new value, not {item!r}", code="E0123", labels=[(here(), "")])
        yield item[0], item[1]


def is_shared(value: Any) -> bool:
    """True for a shared variable."""
    return isinstance(value, Variable) and value._v.kind == "shared"


def _shared(key: Any) -> Variable:
    if is_shared(key):
        return key
    what = key._describe() if isinstance(key, Variable) else repr(key)
    raise ScanError(
        f"`{what}` is updated, but it is not a shared variable",
        code="E0115",
        labels=[(here(), ""), *([(key._v.span, "made here")] if isinstance(key, Variable) else [])],
        helps=["the keys of updates are shared variables; other values that change from step to step are states (outputs_info)"],
    )
