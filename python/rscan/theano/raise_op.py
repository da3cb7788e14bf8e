"""`theano.raise_op`."""

from .tensor.opt import Assert

__all__ = ["Assert"]
