"""`theano.gof.type`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..absent import absent
from ..type import TensorType


class Generic:
    """The type of any Python object: not provided."""

    __call__: Callable[..., Any] = staticmethod(absent("gof.generic", "variables of any Python type"))
    make_variable: Callable[..., Any] = __call__


Type = TensorType
generic: Generic = Generic()
