"""`theano.tensor.nnet`. Made by tools/stubs.py."""
# ruff: noqa

from typing import Any
from .... import ops as ops
from ...._spans import here as here
from ....errors import RscanTypeError as RscanTypeError, RscanValueError as RscanValueError
from ...absent import absent_in as absent_in
from .._ties import clip as clip
from ..create import arange as arange
from ..elemwise import _in_float as _in_float, switch as switch
from ...variable import as_tensor_variable as as_tensor_variable
from ....variable import Variable as Variable, elementwise as elementwise

ROWS: dict[Any, Any]
def _float(x: Any) -> Variable:
    ...
def _rows(x: Any) -> Variable:
    ...
abstract_conv: Any
def batch_normalization(inputs: Any, gamma: Any, beta: Any, mean: Any, std: Any, mode: str = 'low_mem') -> Variable:
    """(x − mean) gamma / std + beta."""
def binary_crossentropy(output: Any, target: Any) -> Variable:
    """−(t log o + (1 − t) log(1 − o))."""
def categorical_crossentropy(coding_dist: Any, true_dist: Any) -> Variable:
    """−Σ p log q of each row; true_dist: rows of probabilities, or the number of the class of each row."""
def confusion_matrix(actual: Any, pred: Any) -> list[Variable]:
    """How often each class was taken for each, and the classes."""
conv: Any
def conv2d(*_: Any, **__: Any) -> Any:
    """Not provided: convolutions of images."""
def conv2d_transpose(*_: Any, **__: Any) -> Any:
    """Not provided: convolutions of images."""
def conv3d(*_: Any, **__: Any) -> Any:
    """Not provided: convolutions of images."""
def crossentropy_softmax_1hot(x: Any, y_idx: Any, **_: Any) -> tuple[Variable, Variable]:
    """`categorical_crossentropy` of the softmax of x, and the softmax."""
def elu(x: Any, alpha: Any = 1) -> Variable:
    """x where it is positive, else alpha (exp(x) − 1)."""
def grouped_conv2d(*_: Any, **__: Any) -> Any:
    """Not provided: convolutions of images."""
def hard_sigmoid(x: Any) -> Variable:
    """0.2 x + 0.5, clipped to [0, 1]."""
def logsoftmax(x: Any) -> Variable:
    """The logarithm of `softmax`."""
neighbours: Any
def relu(x: Any, alpha: Any = 0) -> Variable:
    """x where it is positive, else alpha x."""
def selu(x: Any) -> Variable:
    """`elu`, scaled so that it normalises itself."""
def separable_conv2d(*_: Any, **__: Any) -> Any:
    """Not provided: convolutions of images."""
def sigmoid(x: Any) -> Variable:
    """1 / (1 + exp(−x))."""
def sigmoid_binary_crossentropy(output: Any, target: Any) -> Variable:
    """`binary_crossentropy` of the sigmoid of output."""
def softmax(x: Any) -> Variable:
    """exp(x) / Σ exp(x) of each row; of a vector as a matrix of one row."""
def softplus(x: Any) -> Variable:
    """log(1 + exp(x))."""
def softsign(x: Any) -> Variable:
    """x / (1 + |x|)."""
def ultra_fast_sigmoid(x: Any) -> Variable:
    """The sigmoid itself."""

