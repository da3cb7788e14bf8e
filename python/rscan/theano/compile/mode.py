"""`theano.compile.mode`: a mode says which optimisations run. What runs them is not its choice."""

from __future__ import annotations

import copy
import functools
from typing import Any

from ... import _native
from ...errors import RscanValueError
from ..config import config


class Mode:
    """How to compile. Every mode gives the same results, but for the rounding of floats."""

    provided_linker: Any
    provided_optimizer: Any
    name: str | None
    linker: Any
    optimizer: Any

    def __init__(self, linker: Any = None, optimizer: Any = "default", name: str | None = None, **_: Any) -> None:
        self.provided_linker, self.provided_optimizer, self.name = linker, optimizer, name
        self.linker, self.optimizer = linker, optimizer
        self._excluded: frozenset[str] = frozenset()

    def including(self, *tags: str) -> Mode:
        """The mode with optimisations of any names, where they were excluded."""
        return self._without(self._excluded - set(tags))

    def excluding(self, *tags: str) -> Mode:
        """The mode without optimisations of any names, Theano's or ours. Names that stand for nothing here have no effect."""
        return self._without(self._excluded | set(tags))

    requiring = including

    def _without(self, names: frozenset[str]) -> Mode:
        mode = copy.copy(self)
        mode._excluded = names
        return mode

    def passes(self) -> tuple[str, list[str]]:
        """How much is optimised, and the names of the passes that are not run."""
        level = config.optimizer if self.optimizer in ("default", "Mode") else self.optimizer
        wanted = set(str(config.optimizer_including).split(":"))
        names = (set(self._excluded) | set(str(config.optimizer_excluding).split(":"))) - wanted
        return _LEVELS.get(str(level), "fast_run"), sorted(name for name in names if name in _known())

    def register(self, *_: Any) -> Mode:
        """The mode."""
        return self

    def clone(self, **options: Any) -> Mode:
        """A copy."""
        mode = copy.copy(self)
        for name in ("linker", "optimizer"):
            setattr(mode, name, options.get(name, getattr(self, name)))
        return mode

    def __str__(self) -> str:
        return f"{type(self).__name__}(linker = {self.provided_linker}, optimizer = {self.provided_optimizer})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mode) and type(self) is type(other) and str(self) == str(other) and self._excluded == other._excluded

    def __hash__(self) -> int:
        return hash(str(self))


#: Theano's optimizers by name; others are run in full.
_LEVELS = {"None": "none", "o0": "none", "merge": "fast_compile", "o1": "fast_compile", "fast_compile": "fast_compile"}


@functools.cache
def _known() -> frozenset[str]:
    """Every name of a pass."""
    return frozenset(["scan", *(name for own, names, *_ in _native.passes() for name in [own, *names])])


FAST_COMPILE = Mode("py", "fast_compile", "FAST_COMPILE")
FAST_RUN = Mode("cvm", "fast_run", "FAST_RUN")
JAX = Mode("jax", "fast_run", "JAX")
predefined_modes: dict[str, Mode] = {"FAST_COMPILE": FAST_COMPILE, "FAST_RUN": FAST_RUN, "Mode": Mode("cvm", "default", "Mode"), "JAX": JAX}
predefined_linkers: dict[str, str] = {name: name for name in ("py", "c", "c|py", "c&py", "vm", "cvm", "vm_nogc", "cvm_nogc", "jax")}
predefined_optimizers: dict[str, str] = {name: name for name in ("None", "fast_compile", "fast_run", "merge", "o1", "o2", "o3", "o4")}


def get_mode(mode: Any) -> Any:
    """The mode of a name; None is the configured one."""
    if mode is None:
        mode = config.mode
    if isinstance(mode, Mode):
        return mode
    if mode in ("DebugMode", "DEBUG_MODE"):
        from .debugmode import DebugMode

        return DebugMode()
    if mode in ("NanGuardMode", "MonitorMode"):
        return Mode(name=mode)
    if mode in predefined_modes:
        return predefined_modes[mode]
    raise RscanValueError(f"there is no mode {mode!r}", code="E0809")


def get_default_mode() -> Any:
    """The configured mode."""
    return get_mode(None)


def register_mode(name: str, mode: Mode) -> None:
    """Gives a mode a name."""
    predefined_modes[name] = mode


def register_linker(name: str, linker: Any) -> None:
    """Accepted."""


register_optimizer = register_linker
AddDestroyHandler = AddFeatureOptimizer = PrintCurrentFunctionGraph = object
