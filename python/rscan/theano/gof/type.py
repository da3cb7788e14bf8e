"""`theano.gof.type`."""

from ..type import TensorType


class Generic:
    """The type of any Python object: not provided."""


Type = TensorType
generic = Generic()
