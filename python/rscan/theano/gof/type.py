"""`theano.gof.type`."""

from ..absent import absent
from ..type import TensorType


class Generic:
    """The type of any Python object: not provided."""

    __call__ = make_variable = staticmethod(absent("gof.generic", "variables of any Python type"))


Type = TensorType
generic = Generic()
