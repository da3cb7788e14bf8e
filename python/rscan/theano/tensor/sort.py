"""`theano.tensor.sort`."""

from .arrays import argsort, sort

__all__ = ["argsort", "sort"]
