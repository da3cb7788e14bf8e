"""Sessions: functions that are given the rows of their sequences one by one, `f.session(h0=…)` and then `session.step(x_t)`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _native, _tree
from ._calling import _MISSING, In, convert, plain
from ._spans import here
from .errors import RscanError, RscanTypeError
from .variable import wrap

if TYPE_CHECKING:
    from .function import Function

__all__ = ["Session", "step_all"]


class Session(_native.Session):
    """A function whose sequences come row by row, made by `f.session(…)`. It keeps the states of the function's loops.

    `session.step(x_t)` gives what `f` would have made of that row: the bits are those of a call with all rows. Nothing that a session
    does is seen outside; shared variables are read when it begins, and written by `commit`. It may be used from any thread, which then
    wait for each other.

    errors: `RscanTypeError` (E0504) for arguments that do not fit, (E0532) for names that are no sequence.

    >>> x, h0 = rs.dvector("x"), rs.dscalar("h0")
    >>> f = rs.function([x, h0], rs.loop(lambda x, h: 0.5 * h + x, over=x, init=h0))
    >>> session = f.session(h0=1.0)
    >>> float(session.step(2.0)), float(session.step(3.0)), len(session)
    (2.5, 4.25, 2)
    """

    def __init__(self, function: Function, args: tuple[Any, ...], named: Mapping[str, Any]) -> None:
        if not isinstance(getattr(function, "_native", None), _native.Function):
            raise RscanTypeError("sessions are begun by f.session(…)", code="E0809", labels=[(here(), "")])
        #: The function behind it.
        self.function = function
        self._places, self._needed = function._native.stepwise()
        self._names = {name: k for k, name in enumerate(function.inputs[p].name for p, _ in self._places) if name}
        self._given: dict[int, Any] = {}
        self.reset(*args, **named)

    # Steps.

    def _step(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        """A step whose rows have to be converted, or have names."""
        return self._step_with(*self._rows(args, named, by_step=True))

    def run(self, *args: Any, **named: Any) -> Any:
        """Many steps: given the rows of each sequence, in order or by name, the rows of each result. It ends early where there are no more
        steps. Without sequences it takes the number of steps.

        errors: `RscanTypeError` (E0504) for rows that do not fit, (E0532) for names that are no sequence.
        """
        if not self._places:
            if named or len(args) != 1 or not isinstance(args[0], (int, np.integer)) or args[0] < 0:
                raise self._bad("takes the number of steps, as it has no sequences")
            return self._run_with(int(args[0]))
        rows = self._rows(args, named, by_step=False)
        return self._run_with(len(rows[0]), *rows)

    def _many(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> list[np.ndarray]:
        """Per sequence an array of rows, one of each of many sessions."""
        return self._rows(args, named, by_step=False)

    def _built(self, rows: Any) -> Any:
        """Results in the structure in which steps return them."""
        return rows

    def _rows(self, args: tuple[Any, ...], named: Mapping[str, Any], by_step: bool) -> list[np.ndarray]:
        values: list[Any] = [*args[: len(self._places)], *[_MISSING] * (len(self._places) - len(args))]
        if len(args) > len(values):
            raise self._bad(f"takes a row of {len(values)} sequences, got {len(args)}")
        for name, value in named.items():
            if name not in self._names:
                raise self._bad(f"has no sequence named {name!r}")
            if values[self._names[name]] is not _MISSING:
                raise self._bad(f"got `{name}` twice")
            values[self._names[name]] = value
        slots = [_row_slot(self.function.inputs[p], by_step) for p, _ in self._places]
        missing = next((slot for slot, value in zip(slots, values, strict=True) if value is _MISSING), None)
        if missing is not None:
            raise self._bad(f"needs a row of {missing.describe()}")
        allow = self.function._allow_downcast
        return [plain(convert(value, slot, allow)) for slot, value in zip(slots, values, strict=True)]

    def _bad(self, text: str) -> RscanTypeError:
        names = ", ".join(self.function.inputs[p].name or "?" for p, _ in self._places)
        notes = [f"its sequences are ({names})"] if self._places else ["it has no sequences"]
        return RscanTypeError(f"a step {text}", code="E0532", labels=[(here(), "")], notes=notes)

    # States.

    @property
    def state(self) -> dict[str, np.ndarray]:
        """The states by name: what the last step left, or the rows of the last steps where a step reads several."""
        return dict(self._states())

    def copy(self) -> Session:
        """Another session that goes on from here."""
        other = type(self).__new__(type(self))
        other.__dict__.update({**self.__dict__, "_given": dict(self._given)})
        other._copied(self)
        return other

    __copy__ = copy

    def reset(self, *args: Any, **named: Any) -> Session:
        """Begins anew, with the arguments that it began with but for those given here. Shared variables are read again.

        errors: `RscanTypeError` (E0504) for arguments that do not fit, (E0532) for too many.
        """
        function = self.function
        given = {**self._given, **self._arguments(args, named)}
        values: list[np.ndarray | None] = []
        histories = {p for p, _ in self._places}
        for i, slot in enumerate(function.inputs):
            value = given.get(i, _MISSING)
            if value is _MISSING and i in self._needed:
                value = slot.default()
            fits = _row_slot(slot, by_step=False) if i in histories else slot
            values.append(None if value is _MISSING else plain(convert(value, fits, function._allow_downcast)))
        self._begin(function._native, *function._form, values)
        self._given = given
        return self

    def _arguments(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> dict[int, Any]:
        """Arguments by position among the inputs: given by name, or in the order of those that are no sequences."""
        function = self.function
        if len(args) > len(self._needed):
            raise self._bad_begin(f"takes {len(self._needed)} arguments that are no sequences, got {len(args)}")
        given = dict(zip(self._needed, args, strict=False))
        for name, value in named.items():
            i = function._names.get(name)
            if i is None:
                raise self._bad_begin(f"got an unexpected keyword argument {name!r}")
            if i in given:
                raise self._bad_begin(f"got `{name}` twice")
            given[i] = value
        return given

    def _bad_begin(self, text: str) -> RscanTypeError:
        needed = ", ".join(self.function.inputs[i].name or "?" for i in self._needed)
        return RscanTypeError(f"a session {text}", code="E0532", labels=[(here(), "")], notes=[f"it needs ({needed})"])

    def __iter__(self) -> Iterator[Any]:
        raise TypeError("a session is not iterable: call step")

    def __repr__(self) -> str:
        names = ", ".join(self.function.inputs[p].name or "?" for p, _ in self._places)
        return f"<rscan session of {self.function.name or 'a function'}({names}), {len(self)} steps{', ended' if self.stopped else ''}>"


def step_all(sessions: Iterable[Session], *args: Any, failed: dict[int, BaseException] | None = None, **named: Any) -> Any:
    """One step of many sessions of one function. Given per sequence, in order or by name, an array with a row for each session, it
    returns what `session.step` does with an axis more, the sessions. Thousands take one call, on all threads; each makes the bits that it
    makes alone.

    A session that cannot make its step (it has ended, an op reports an error) is left as it was; all others make theirs. Then the first
    error is raised, unless `failed` is given: a dict that gets the errors by position. The rows of these sessions are zeros.

    errors: `RscanTypeError` (E0532) for what are no sessions of one function, (E0504) for arguments that do not fit; `RscanValueError`
    (E0532) where rows are not as many as sessions.

    >>> x, h0 = rs.dvector("x"), rs.dscalar("h0")
    >>> f = rs.function([x, h0], rs.loop(lambda x, h: 0.5 * h + x, over=x, init=h0))
    >>> sessions = [f.session(h0=h) for h in (0.0, 2.0, 4.0)]
    >>> rs.step_all(sessions, [1.0, 1.0, 1.0])
    array([1., 2., 3.])
    """
    sessions = sessions if isinstance(sessions, list) else list(sessions)
    if not sessions or not all(isinstance(s, Session) for s in sessions):
        raise RscanTypeError("step_all takes sessions, at least one", code="E0532", labels=[(here(), "")])
    first = sessions[0]
    rows, errors = _native.step_all(sessions, first._many(args, named))
    for i, error in errors:
        if failed is None or not isinstance(error, RscanError):
            if isinstance(error, RscanError):
                error.notes.append(f"of session {i}; {len(errors)} of {len(sessions)} sessions failed, the others made their step")
            raise error
        failed[i] = error
    return None if rows is None else first._built(rows)


class CompiledSession(Session):
    """A session of what `rs.compile` made: rows and results have the structure of its arguments and results."""

    def __init__(self, function: Function, build: Callable[[list[Any]], Any], given: dict[int, Any]) -> None:
        self._build, self._first = build, given
        super().__init__(function, (), {})

    def _arguments(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> dict[int, Any]:
        first, self._first = self._first, {}
        return first or super()._arguments(args, named)

    def step(self, *args: Any, **named: Any) -> Any:
        """One step: the row of each result, given a row of each sequence in their order, or by name.

        errors: `RscanTypeError` (E0504) for rows that do not fit.
        """
        return self._build(super().step(*self._leaves(args, named)))

    def run(self, *args: Any, **named: Any) -> Any:
        """Many steps: given the rows of each sequence, in order or by name, the rows of each result.

        errors: `RscanTypeError` (E0504) for rows that do not fit.
        """
        return self._build(super().run(*(self._leaves(args, named) if self._places else args)))

    def _many(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> list[np.ndarray]:
        return super()._many(tuple(self._leaves(args, named)), {})

    def _built(self, rows: Any) -> Any:
        return self._build(rows)

    def _leaves(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> list[Any]:
        """A value per sequence, taken out of structures."""
        names = [self.function.inputs[p].name or "?" for p, _ in self._places]
        parameters = list(dict.fromkeys(re.split(r"[.\[]", name)[0] for name in names))
        if len(args) > len(parameters):
            raise self._bad(f"takes rows of {len(parameters)} arguments, got {len(args)}")
        found: dict[str, Any] = {}
        for name, value in {**dict(zip(parameters, args, strict=False)), **named}.items():
            leaves, tree = _tree.flatten(value, lambda v: isinstance(v, (np.ndarray, np.generic)) or _is_numbers(v))
            found.update(zip(_tree.paths(tree, name), leaves, strict=True))
        missing = next((name for name in names if name not in found), None)
        if missing is not None:
            raise self._bad(f"needs a row of `{missing}`")
        unknown = next((name for name in found if name not in names), None)
        if unknown is not None:
            raise self._bad(f"has no sequence named {unknown!r}")
        return [found[name] for name in names]


def _is_numbers(value: Any) -> bool:
    """True for lists of numbers, which count as arrays."""
    return isinstance(value, list) and all(isinstance(v, (int, float, np.generic)) or _is_numbers(v) for v in value)


def _row_slot(slot: In, by_step: bool) -> In:
    """What takes a row of a sequence, or some rows of it."""
    v = slot.variable
    extents = list(v.static_shape[1:])
    row = _native.input(v.dtype, extents if by_step else [None, *extents], slot.name, v._v.span)
    return In(wrap(row, v._family), slot.name, strict=slot.strict, allow_downcast=slot.allow_downcast)
