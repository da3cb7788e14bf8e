"""`theano.compile.sharedvalue`."""

from ..tensor.basic import shared
from ..variable import TensorSharedVariable as SharedVariable

__all__ = ["SharedVariable", "shared"]


def shared_constructor(constructor: object, remove: bool = False) -> object:
    """Accepted; shared variables have one constructor."""
    return constructor
