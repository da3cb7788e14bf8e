"""`theano.compile.mode`: modes are accepted, and change nothing: the engine chooses."""

from __future__ import annotations

from typing import Any

from ...errors import RscanValueError
from ..config import config


class Mode:
    """How to compile. Every mode gives the same results."""

    def __init__(self, linker: Any = None, optimizer: Any = "default", name: str | None = None, **_: Any) -> None:
        self.provided_linker, self.provided_optimizer, self.name = linker, optimizer, name
        self.linker, self.optimizer = linker, optimizer

    def including(self, *tags: str) -> Mode:
        """The mode with rewrites of any names."""
        return self

    def excluding(self, *tags: str) -> Mode:
        """The mode without rewrites of any names."""
        return self

    requiring = including

    def register(self, *_: Any) -> Mode:
        """The mode."""
        return self

    def clone(self, **options: Any) -> Mode:
        """A copy."""
        return Mode(options.get("linker", self.linker), options.get("optimizer", self.optimizer), self.name)

    def __str__(self) -> str:
        return f"{type(self).__name__}(linker = {self.provided_linker}, optimizer = {self.provided_optimizer})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mode) and type(self) is type(other) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


FAST_COMPILE = Mode("py", "fast_compile", "FAST_COMPILE")
FAST_RUN = Mode("cvm", "fast_run", "FAST_RUN")
JAX = Mode("jax", "fast_run", "JAX")
predefined_modes = {"FAST_COMPILE": FAST_COMPILE, "FAST_RUN": FAST_RUN, "Mode": FAST_RUN, "JAX": JAX}
predefined_linkers = {name: name for name in ("py", "c", "c|py", "c&py", "vm", "cvm", "vm_nogc", "cvm_nogc", "jax")}
predefined_optimizers = {name: name for name in ("None", "fast_compile", "fast_run", "merge", "o1", "o2", "o3", "o4")}


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
optdb: Any = None
