"""Reductions, products, shapes, joins, indexing as Theano names them. Made by tools/stubs.py."""
# ruff: noqa

from typing import Any
from ... import indexing as indexing, linalg as linalg, ops as ops
from ..._spans import here as here
from ...dtypes import dtype_name as dtype_name
from ...errors import RscanTypeError as RscanTypeError, RscanValueError as RscanValueError, ShapeError as ShapeError
from ._ties import max as max, min as min
from .create import shape_items as shape_items
from ..variable import _axis as _axis, as_tensor_variable as as_tensor_variable
from ...variable import Variable as Variable, apply as apply, elementwise as elementwise, extent as extent

NAMES: list[Any]
def _forget(v: Variable, axis: int) -> Variable:
    """The same array with an extent that is not known before the run: it is cut at a computed 1."""
def _matrices(args: Any, axis: int) -> Variable:
    ...
def _patterned(x: Any, pattern: dict[int, bool]) -> Variable:
    ...
def _position(function: Any, x: Any, axis: Any, keepdims: bool) -> Variable:
    """A position along one axis, or among the elements along several, taken in their order."""
def addbroadcast(x: Any, *axes: int) -> Variable:
    """With axes declared to have extent 1, which is checked when the function runs."""
def all(x: Any, axis: Any = None, keepdims: bool = False) -> Variable:
    """True where no element is 0."""
def any(x: Any, axis: Any = None, keepdims: bool = False) -> Variable:
    """True where some element is not 0."""
def argmax(x: Any, axis: Any = None, keepdims: bool = False) -> Variable:
    """The position of the first largest element."""
def argmin(x: Any, axis: Any = None, keepdims: bool = False) -> Variable:
    """The position of the first smallest element."""
def argsort(x: Any, axis: Any = -1, kind: str = 'quicksort', order: Any = None) -> Variable:
    """The positions that sort."""
def atleast_1d(x: Any) -> Variable:
    """A scalar as a vector."""
def batched_dot(a: Any, b: Any) -> Variable:
    """`dot` of each pair of items along the first axes."""
def batched_tensordot(x: Any, y: Any, axes: Any = 2) -> Variable:
    """`tensordot` of each pair of items along the first axes; axes count the first one."""
def bincount(x: Any, weights: Any = None, minlength: Any = None, assert_nonneg: bool = False) -> Variable:
    """How often each number occurs, or the sum of its weights."""
def concatenate(tensors: Any, axis: Any = 0) -> Variable:
    """Joined along an existing axis."""
def cumprod(x: Any, axis: Any = None) -> Variable:
    """Products of the elements up to each one."""
def cumsum(x: Any, axis: Any = None) -> Variable:
    """Sums of the elements up to each one."""
def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Variable:
    """The elements whose positions along two axes differ by an offset."""
def diff(x: Any, n: int = 1, axis: int = -1) -> Variable:
    """Differences of neighbours."""
def dimshuffle(x: Any, pattern: Any) -> Variable:
    """Axes in the order of the pattern; 'x' is a new axis, and what is left out must have extent 1."""
def dot(a: Any, b: Any) -> Variable:
    """The product as `numpy.dot`."""
def flatten(x: Any, ndim: int | None = None, outdim: int | None = None) -> Variable:
    """With the axes from ndim − 1 on merged into one."""
def flip(x: Any, axis: Any = None) -> Variable:
    """In reverse order."""
def horizontal_stack(*args: Any) -> Variable:
    """Matrices side by side."""
def join(axis: Any, *tensors: Any) -> Variable:
    """Joined along an existing axis."""
def logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Variable:
    """log Σ exp(x)."""
def max_and_argmax(x: Any, axis: Any = None, keepdims: bool = False) -> tuple[Variable, Variable]:
    """The largest element and its position."""
def mean(x: Any, axis: Any = None, dtype: Any = None, op: Any = False, keepdims: bool = False, acc_dtype: Any = None) -> Variable:
    """The mean; of integers as float64."""
def moveaxis(x: Any, source: Any, destination: Any) -> Variable:
    """With axes moved."""
def norm(x: Any, ord: Any = 2, axis: Any = None, keepdims: bool = False) -> Variable:
    """The sum of |x|**ord over axes, to the power 1/ord."""
def outer(a: Any, b: Any) -> Variable:
    """The outer product of two vectors."""
def patternbroadcast(x: Any, broadcastable: Any) -> Variable:
    """With a broadcast pattern."""
def prod(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, acc_dtype: Any = None, no_zeros_in_input: bool = False) -> Variable:
    """The product."""
def ptp(x: Any, axis: Any = None) -> Variable:
    """The largest minus the smallest element."""
def repeat(x: Any, repeats: Any, axis: Any = None) -> Variable:
    """Each element so often in a row."""
def reshape(x: Any, newshape: Any, ndim: int | None = None) -> Variable:
    """The same elements under other extents, of which one may be −1. A symbolic vector as the shape needs `ndim`."""
def roll(x: Any, shift: Any, axis: Any = None) -> Variable:
    """Moved along an axis; what leaves at one end enters at the other."""
def shape(x: Any) -> Variable:
    """The extents, an int64 vector."""
def shape_padaxis(x: Any, axis: int) -> Variable:
    """With a new axis."""
def shape_padleft(x: Any, n_ones: int = 1) -> Variable:
    """With new first axes."""
def shape_padright(x: Any, n_ones: int = 1) -> Variable:
    """With new last axes."""
def sort(x: Any, axis: Any = -1, kind: str = 'quicksort', order: Any = None) -> Variable:
    """Sorted along an axis."""
def specify_shape(x: Any, shape: Any) -> Variable:
    """x, whose extents are checked when the function runs; None leaves one open."""
def split(x: Any, splits_size: Any, n_splits: int | None = None, axis: int = 0) -> list[Variable]:
    """Parts of these sizes along an axis."""
def squeeze(x: Any, axis: Any = None) -> Variable:
    """Without the broadcastable axes."""
def stack(*tensors: Any, axis: int | None = None) -> Variable:
    """Joined along a new axis: `stack([a, b], axis=1)`, or, as formerly, `stack(a, b)`."""
def stacklists(arg: Any) -> Variable:
    """Nested lists of equal lengths as one array, with an axis per level."""
def std(x: Any, axis: Any = None, ddof: int = 0, keepdims: bool = False, corrected: bool = False) -> Variable:
    """The standard deviation."""
def sum(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, acc_dtype: Any = None) -> Variable:
    """The sum; of small integers as int64."""
def swapaxes(x: Any, a: int, b: int) -> Variable:
    """With two axes exchanged."""
def tensordot(a: Any, b: Any, axes: Any = 2) -> Variable:
    """The sum of products over axes."""
def tile(x: Any, reps: Any, ndim: int | None = None) -> Variable:
    """Repeated as a whole."""
def to_one_hot(y: Any, nb_class: Any, dtype: Any = None) -> Variable:
    """A row with a single 1 for each number."""
def transpose(x: Any, axes: Any = None) -> Variable:
    """With axes permuted."""
def unbroadcast(x: Any, *axes: int) -> Variable:
    """With axes of extent 1 whose extent counts as unknown."""
def var(x: Any, axis: Any = None, ddof: int = 0, keepdims: bool = False, corrected: bool = False) -> Variable:
    """The variance."""
def vertical_stack(*args: Any) -> Variable:
    """Matrices one below the other."""

