"""`theano.tensor.opt`: assertions."""

from __future__ import annotations

from typing import Any

from ... import ops
from ...variable import Variable
from ..absent import absent_in
from ..variable import as_tensor_variable


class Assert:
    """`Assert("text")(x, condition)` is x where the condition holds, else an AssertionError-like error."""

    def __init__(self, msg: str = "Theano Assert failed!") -> None:
        self.msg = msg

    def __call__(self, x: Any, *conditions: Any) -> Variable:
        return ops.assert_(as_tensor_variable(x), *map(as_tensor_variable, conditions), message=self.msg)


assert_op: Assert = Assert()
assert_: Assert = assert_op
globals().update(absent_in("tensor.opt"))
