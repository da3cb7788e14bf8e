"""Settings of the process, `rs.config.floatX = "float32"`, and of a block: `with rs.config.override(floatX="float32")`."""

from __future__ import annotations

import contextlib
import contextvars
import threading
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from .errors import RscanValueError

#: What `with` blocks around have set, innermost last: of this thread and task alone, as NumPy's `errstate` is.
_OVERRIDDEN: contextvars.ContextVar[dict[str, Any] | None] = contextvars.ContextVar("overridden", default=None)
#: For the settings of the process, and for which of them blocks set.
_LOCK = threading.Lock()


class _Setting:
    """One of the settings: what holds for the process. `config` has it as an attribute of its own, which is read quickly. Only while a
    block of some thread sets it the attribute is not there, and this is asked, which looks at what the block of the reader has set."""

    def __init__(self, default: Any, allowed: tuple[str, ...] = ()) -> None:
        self.value, self.allowed, self.blocks = default, allowed, 0

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, config: Config | None, owner: type | None = None) -> Any:
        return (_OVERRIDDEN.get() or {}).get(self.name, self.value)

    def check(self, value: Any) -> None:
        if self.allowed and value not in self.allowed:
            *most, last = map(repr, self.allowed)
            raise RscanValueError(f"{self.name} is {', '.join(most)} or {last}, not {value!r}", code="E0808")


class Config:
    """What can be set, with its defaults. Unknown names are errors."""

    if TYPE_CHECKING:
        floatX: str
        passes: str
        excluding: tuple[str, ...]
        device: str
    else:
        #: The dtype of float variables made without one, and of Python floats that meet nothing else.
        floatX = _Setting("float64", ("float32", "float64"))
        #: How much functions are optimised: "fast_run", "fast_compile" (no passes over loops) or "none".
        passes = _Setting("fast_run", ("fast_run", "fast_compile", "none"))
        #: Names of passes that do not run in any function.
        excluding = _Setting(())
        #: Where functions run that name no device: "cpu", "cuda", "wgpu", "wgpu:1".
        device = _Setting("cpu")

    def __init__(self) -> None:
        vars(self).update((name, setting.value) for name, setting in vars(Config).items() if isinstance(setting, _Setting))

    def __setattr__(self, name: str, value: Any) -> None:
        setting, overridden = _setting(name), _OVERRIDDEN.get() or {}
        setting.check(value)
        if name in overridden:
            overridden[name] = value
            return
        with _LOCK:
            setting.value = value
            if not setting.blocks:
                vars(self)[name] = value

    @contextlib.contextmanager
    def override(self, **settings: Any) -> Iterator[None]:
        """Sets within a `with` block, for what this thread does there: other threads do not see it."""
        for name, value in settings.items():
            _setting(name).check(value)
        self._count(settings, 1)
        token = _OVERRIDDEN.set({**(_OVERRIDDEN.get() or {}), **settings})
        try:
            yield
        finally:
            _OVERRIDDEN.reset(token)
            self._count(settings, -1)

    def _count(self, names: Iterable[str], more: int) -> None:
        """Says that blocks that set these begin or end."""
        with _LOCK:
            for name in names:
                setting = _setting(name)
                setting.blocks += more
                if setting.blocks:
                    vars(self).pop(name, None)
                else:
                    vars(self)[name] = setting.value


def _setting(name: str) -> _Setting:
    found = vars(Config).get(name)
    if not isinstance(found, _Setting):
        raise RscanValueError(f"there is no setting named `{name}`", code="E0808")
    return found


#: The settings.
config: Config = Config()


def chosen_passes(excluding: Iterable[str] = ()) -> tuple[str, list[str]]:
    """How much is optimised, and the names of passes that do not run: those of the settings, and some more."""
    return config.passes, [*_names(config.excluding), *_names(excluding)]


def _names(names: Iterable[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)
