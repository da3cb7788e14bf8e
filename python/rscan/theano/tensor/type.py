"""`theano.tensor.type`."""

from ..type import TensorType

__all__ = ["TensorType"]
