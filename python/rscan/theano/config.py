"""Theano's settings: read and written, few of them with an effect. THEANO_FLAGS is read when Theano's names are imported."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator
from typing import Any

from ..config import config as _rscan
from ..errors import RscanValueError

_DEFAULTS: dict[str, Any] = {
    "mode": "Mode", "device": "cpu", "linker": "cvm", "optimizer": "fast_run", "compute_test_value": "off",
    "compute_test_value_opt": "off", "on_opt_error": "warn", "on_unused_input": "raise", "exception_verbosity": "low",
    "cxx": "", "openmp": False, "profile": False, "profile_optimizer": False, "profile_memory": False, "allow_gc": True,
    "optimizer_including": "", "optimizer_excluding": "", "cast_policy": "custom", "int_division": "int", "warn_float64": "ignore",
    "base_compiledir": "", "compiledir": "", "gcc.cxxflags": "", "nocleanup": False, "assert_no_cpu_op": "ignore",
    "scan.allow_gc": False, "scan.allow_output_prealloc": True, "scan.debug": False, "print_test_value": False,
    "pickle_test_value": True, "reoptimize_unpickled_function": True, "numpy.seterr_all": "ignore", "dnn.enabled": "False",
    "unittests.rseed": 666, "lib.amdlibm": False, "blas.ldflags": "", "traceback.limit": 8, "traceback.compile_limit": 0,
    "experimental.unpickle_gpu_on_cpu": False, "NanGuardMode.nan_is_error": True, "NanGuardMode.inf_is_error": True,
    "NanGuardMode.big_is_error": True, "deterministic": "default", "force_device": False, "ignore_bug_before": "None",
    "DebugMode.check_py": True, "DebugMode.patience": 10, "DebugMode.check_strides": 0, "gpuarray.preallocate": 0.0,
}  # fmt: skip


class _Section:
    """Settings whose names begin alike: `config.scan.allow_gc`."""

    def __init__(self, prefix: str) -> None:
        object.__setattr__(self, "_prefix", prefix)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _get(f"{self._prefix}{name}")

    def __setattr__(self, name: str, value: Any) -> None:
        _set(f"{self._prefix}{name}", value)

    def __delattr__(self, name: str) -> None:
        _values.pop(f"{self._prefix}{name}", None)

    def change_flags(self, **settings: Any) -> change_flags:
        """`change_flags`."""
        return change_flags(**settings)


_values: dict[str, Any] = dict(_DEFAULTS)


def _get(name: str) -> Any:
    if name == "floatX":
        return _rscan.floatX
    if name in _values:
        return _values[name]
    if any(key.startswith(name + ".") for key in _values) or name in ("warn", "lib", "gpuarray", "dnn", "blas", "gcc"):
        return _Section(name + ".")
    if name.startswith("warn."):
        return False
    raise AttributeError(f"there is no setting named `{name}`")


def _set(name: str, value: Any) -> None:
    if name == "floatX":
        if value == "float16":
            raise RscanValueError("floatX is 'float32' or 'float64'", code="E0808")
        _rscan.floatX = value
    else:
        _values[name] = value


#: The settings.
config: _Section = _Section("")


class change_flags:
    """Sets settings in a `with` block, or while a function runs.

    `@change_flags(floatX="float32")`, `with change_flags([("scan.allow_gc", True)]):`.
    """

    def __init__(self, args: Any = (), **settings: Any) -> None:
        pairs = dict(args) | settings
        self._settings = {name.replace("__", "."): value for name, value in pairs.items()}
        self._before: list[tuple[dict[str, Any], contextlib.ExitStack]] = []

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            # One for each call: the function may run in several threads.
            with change_flags(self._settings):
                return function(*args, **kwargs)

        return inside

    def __enter__(self) -> None:
        before, block = {name: _get(name) for name in self._settings if name != "floatX"}, contextlib.ExitStack()
        if "floatX" in self._settings:
            # What has an effect here is of this thread alone.
            block.enter_context(_rscan.override(floatX=self._settings["floatX"]))
        self._before.append((before, block))
        for name in before:
            _set(name, self._settings[name])

    def __exit__(self, *_: Any) -> None:
        before, block = self._before.pop()
        block.close()
        for name, value in before.items():
            _set(name, value)


@contextlib.contextmanager
def settings(**values: Any) -> Iterator[None]:
    """`change_flags` as a context manager alone."""
    with change_flags(**values):
        yield


def read_flags(text: str) -> None:
    """Sets what THEANO_FLAGS says: `floatX=float32,scan.allow_gc=True`."""
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = item.partition("=")
        old = _values.get(name.strip())
        text_value = value.strip()
        if isinstance(old, bool):
            _set(name.strip(), text_value.lower() in ("1", "true", "yes"))
        elif isinstance(old, (int, float)):
            _set(name.strip(), type(old)(text_value))
        else:
            _set(name.strip(), text_value)


read_flags(os.environ.get("THEANO_FLAGS", ""))
