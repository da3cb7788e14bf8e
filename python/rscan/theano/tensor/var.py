"""`theano.tensor.var`."""

from ..variable import TensorConstant, TensorSharedVariable, TensorVariable

__all__ = ["TensorConstant", "TensorSharedVariable", "TensorVariable"]
