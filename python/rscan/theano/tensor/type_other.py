"""`theano.tensor.type_other`: the constant that stands for None."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _native
from ..variable import TensorConstant


class NoneTypeT:
    """The type of None."""

    def filter(self, value: Any, strict: bool = False, allow_downcast: bool | None = None) -> None:
        """None; a TypeError of anything else."""
        if value is not None:
            raise TypeError(f"only None is of this type, not {value!r}")

    def is_valid_value(self, value: Any) -> bool:
        """True for None."""
        return value is None

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return "NoneTypeT"


none_type_t: NoneTypeT = NoneTypeT()


class NoneConstant(TensorConstant):
    """None as a constant: an axis that is added in an index. It has no array, and expressions cannot be made of it."""

    data: Any = property(lambda self: None)
    value: Any = data
    type = none_type_t  # type: ignore[assignment]

    def equals(self, other: Any) -> bool:
        """True of None as a constant."""
        return isinstance(other, NoneConstant)

    def __str__(self) -> str:
        return "NoneConst"

    def __repr__(self) -> str:
        return str(self)


NoneConst: NoneConstant = NoneConstant(_native.constant(np.zeros(0, np.int8), 0))
NoneConst.name = "NoneConst"
