"""`theano.gof.type`."""

from ..type import TensorType as Type


class Generic:
    """The type of any Python object: not provided."""


generic = Generic()
