"""Settings of the process: `rs.config.floatX = "float32"`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

from .errors import RscanValueError


class Config:
    """What can be set, with its defaults. Unknown names are errors."""

    #: The dtype of float variables made without one, and of Python floats that meet nothing else.
    floatX: str = "float64"
    #: How much functions are optimised: "fast_run", "fast_compile" (no passes over loops) or "none".
    passes: str = "fast_run"
    #: Names of passes that do not run in any function.
    excluding: tuple[str, ...] = ()
    #: Where functions run that name no device: "cpu", "cuda", "wgpu", "wgpu:1".
    device: str = "cpu"

    def __setattr__(self, name: str, value: Any) -> None:
        if not hasattr(type(self), name):
            raise RscanValueError(f"there is no setting named `{name}`", code="E0808")
        if name == "floatX" and value not in ("float32", "float64"):
            raise RscanValueError(f"floatX is 'float32' or 'float64', not {value!r}", code="E0808")
        if name == "passes" and value not in ("fast_run", "fast_compile", "none"):
            raise RscanValueError(f"passes is 'fast_run', 'fast_compile' or 'none', not {value!r}", code="E0808")
        object.__setattr__(self, name, value)

    @contextlib.contextmanager
    def override(self, **settings: Any) -> Iterator[None]:
        """Sets within a `with` block."""
        before = {name: getattr(self, name) for name in settings if hasattr(type(self), name)}
        try:
            for name, value in settings.items():
                setattr(self, name, value)
            yield
        finally:
            for name, value in before.items():
                setattr(self, name, value)


#: The settings.
config: Config = Config()


def chosen_passes(excluding: Iterable[str] = ()) -> tuple[str, list[str]]:
    """How much is optimised, and the names of passes that do not run: those of the settings, and some more."""
    return config.passes, [*_names(config.excluding), *_names(excluding)]


def _names(names: Iterable[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)
