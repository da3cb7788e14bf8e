"""Variables that a caller fills, and arrays from nothing. Made by tools/stubs.py."""
# ruff: noqa

from typing import Any
from ... import ops as ops
from ..._spans import here as here
from ...dtypes import dtype_name as dtype_name
from ...errors import RscanTypeError as RscanTypeError
from ..config import config as config
from ..type import TensorType as TensorType
from ..variable import as_tensor_variable as as_tensor_variable, constant as constant
from ...variable import Variable as Variable, apply as apply
from collections.abc import Callable

import builtins
CONSTRUCTORS: dict[Any, Any]
KINDS: dict[Any, Any]
NAMES: list[Any]
PREFIXES: dict[Any, Any]
def TensorTypeOf(dtype: Any, broadcastable: Any) -> TensorType:
    """A type."""
class _Grid:
    def __init__(self: Any, sparse: bool) -> None: ...
    def __getitem__(self: Any, key: Any) -> Any: ...
_dtype: str
_function: TensorType
_kind: str
_many: str
def _one(word: str, pattern: tuple[bool, ...], dtype: str | None) -> Callable[..., Variable]:
    """The type where the dtype is fixed; else a function."""
_pattern: tuple[Any, ...]
_prefix: str
def _several(one: Callable[..., Variable], word: str) -> Callable[..., Any]:
    ...
def alloc(value: Any, *shape: Any) -> Variable:
    """`value` broadcast to a shape. Axes of constant extent 1 are broadcastable."""
def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Variable:
    """start, start + step, … up to but without stop. Integers give int64."""
bcol: TensorType
def bcols(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
def bmatrices(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
bmatrix: TensorType
brow: TensorType
def brows(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
bscalar: TensorType
def bscalars(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
btensor3: TensorType
def btensor3s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
btensor4: TensorType
def btensor4s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
btensor5: TensorType
def btensor5s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
btensor6: TensorType
def btensor6s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
btensor7: TensorType
def btensor7s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
bvector: TensorType
def bvectors(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
def col(name: Any = None, dtype: Any = None) -> Variable:
    """A variable of floatX, broadcastable (False, True), with an optional name."""
def cols(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
dcol: TensorType
def dcols(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
def diag(v: Any, k: int = 0) -> Variable:
    """The diagonal of a matrix, or the matrix with a vector on its diagonal."""
def dmatrices(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
dmatrix: TensorType
drow: TensorType
def drows(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
dscalar: TensorType
def dscalars(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
dtensor3: TensorType
def dtensor3s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
dtensor4: TensorType
def dtensor4s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
dtensor5: TensorType
def dtensor5s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
dtensor6: TensorType
def dtensor6s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
dtensor7: TensorType
def dtensor7s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
dvector: TensorType
def dvectors(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
def eye(n: Any, m: Any = None, k: Any = 0, dtype: Any = None) -> Variable:
    """A matrix with ones where column − row = k."""
fcol: TensorType
def fcols(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
def fmatrices(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
fmatrix: TensorType
frow: TensorType
def frows(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
fscalar: TensorType
def fscalars(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
ftensor3: TensorType
def ftensor3s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
ftensor4: TensorType
def ftensor4s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
ftensor5: TensorType
def ftensor5s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
ftensor6: TensorType
def ftensor6s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
ftensor7: TensorType
def ftensor7s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
fvector: TensorType
def fvectors(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
icol: TensorType
def icols(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
def identity_like(x: Any) -> Variable:
    """The identity with the extents of a matrix."""
def imatrices(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
imatrix: TensorType
irow: TensorType
def irows(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
iscalar: TensorType
def iscalars(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
itensor3: TensorType
def itensor3s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
itensor4: TensorType
def itensor4s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
itensor5: TensorType
def itensor5s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
itensor6: TensorType
def itensor6s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
itensor7: TensorType
def itensor7s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
ivector: TensorType
def ivectors(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
lcol: TensorType
def lcols(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
def lmatrices(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
lmatrix: TensorType
lrow: TensorType
def lrows(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
lscalar: TensorType
def lscalars(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
ltensor3: TensorType
def ltensor3s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
ltensor4: TensorType
def ltensor4s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
ltensor5: TensorType
def ltensor5s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
ltensor6: TensorType
def ltensor6s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
ltensor7: TensorType
def ltensor7s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
lvector: TensorType
def lvectors(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
def matrices(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
def matrix(name: Any = None, dtype: Any = None) -> Variable:
    """A variable of floatX, broadcastable (False, False), with an optional name."""
mgrid: Any
def mgrid_axes(slices: Any) -> builtins.list[Variable]:
    """One grid per slice, as `numpy.mgrid`."""
ogrid: Any
def ones(shape: Any, dtype: Any = None) -> Variable:
    """An array of ones."""
def ones_like(model: Any, dtype: Any = None, opt: bool = False) -> Variable:
    """Ones with the shape of the model."""
def row(name: Any = None, dtype: Any = None) -> Variable:
    """A variable of floatX, broadcastable (True, False), with an optional name."""
def rows(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
def scalar(name: Any = None, dtype: Any = None) -> Variable:
    """A variable of floatX, broadcastable (), with an optional name."""
def scalars(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
def shape_items(shape: Any) -> list[Variable]:
    """A shape as int64 scalars: a number, a variable (scalar or vector of known length), or a list of these."""
def tensor(dtype: Any = None, broadcastable: Any = (), name: str | None = None) -> Variable:
    """A variable of any dtype and broadcast pattern."""
def tensor3(name: Any = None, dtype: Any = None) -> Variable:
    """A variable of floatX, broadcastable (False, False, False), with an optional name."""
def tensor3s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
def tensor4(name: Any = None, dtype: Any = None) -> Variable:
    """A variable of floatX, broadcastable (False, False, False, False), with an optional name."""
def tensor4s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
def tensor5(name: Any = None, dtype: Any = None) -> Variable:
    """A variable of floatX, broadcastable (False, False, False, False, False), with an optional name."""
def tensor5s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
def tensor6(name: Any = None, dtype: Any = None) -> Variable:
    """A variable of floatX, broadcastable (False, False, False, False, False, False), with an optional name."""
def tensor6s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
def tensor7(name: Any = None, dtype: Any = None) -> Variable:
    """A variable of floatX, broadcastable (False, False, False, False, False, False, False), with an optional name."""
def tensor7s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
def tri(n: Any, m: Any = None, k: int = 0, dtype: Any = None) -> Variable:
    """Ones at and below a diagonal."""
def tril(m: Any, k: int = 0) -> Variable:
    """With zeros above a diagonal."""
def triu(m: Any, k: int = 0) -> Variable:
    """With zeros below a diagonal."""
ubcol: TensorType
def ubcols(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
def ubmatrices(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
ubmatrix: TensorType
ubrow: TensorType
def ubrows(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
ubscalar: TensorType
def ubscalars(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
ubtensor3: TensorType
def ubtensor3s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
ubtensor4: TensorType
def ubtensor4s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
ubtensor5: TensorType
def ubtensor5s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
ubtensor6: TensorType
def ubtensor6s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
ubtensor7: TensorType
def ubtensor7s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
ubvector: TensorType
def ubvectors(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
ucol: TensorType
def ucols(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
uicol: TensorType
def uicols(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
def uimatrices(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
uimatrix: TensorType
uirow: TensorType
def uirows(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
uiscalar: TensorType
def uiscalars(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
uitensor3: TensorType
def uitensor3s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
uitensor4: TensorType
def uitensor4s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
uitensor5: TensorType
def uitensor5s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
uitensor6: TensorType
def uitensor6s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
uitensor7: TensorType
def uitensor7s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
uivector: TensorType
def uivectors(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
ulcol: TensorType
def ulcols(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
def ulmatrices(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
ulmatrix: TensorType
ulrow: TensorType
def ulrows(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
ulscalar: TensorType
def ulscalars(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
ultensor3: TensorType
def ultensor3s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
ultensor4: TensorType
def ultensor4s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
ultensor5: TensorType
def ultensor5s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
ultensor6: TensorType
def ultensor6s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
ultensor7: TensorType
def ultensor7s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
ulvector: TensorType
def ulvectors(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
def umatrices(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
umatrix: TensorType
urow: TensorType
def urows(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
uscalar: TensorType
def uscalars(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
utensor3: TensorType
def utensor3s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
utensor4: TensorType
def utensor4s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
utensor5: TensorType
def utensor5s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
utensor6: TensorType
def utensor6s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
utensor7: TensorType
def utensor7s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
uvector: TensorType
def uvectors(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
uwcol: TensorType
def uwcols(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
def uwmatrices(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
uwmatrix: TensorType
uwrow: TensorType
def uwrows(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
uwscalar: TensorType
def uwscalars(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
uwtensor3: TensorType
def uwtensor3s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
uwtensor4: TensorType
def uwtensor4s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
uwtensor5: TensorType
def uwtensor5s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
uwtensor6: TensorType
def uwtensor6s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
uwtensor7: TensorType
def uwtensor7s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
uwvector: TensorType
def uwvectors(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
def vector(name: Any = None, dtype: Any = None) -> Variable:
    """A variable of floatX, broadcastable (False,), with an optional name."""
def vectors(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
wcol: TensorType
def wcols(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
def wmatrices(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
wmatrix: TensorType
wrow: TensorType
def wrows(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
wscalar: TensorType
def wscalars(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
wtensor3: TensorType
def wtensor3s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
wtensor4: TensorType
def wtensor4s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
wtensor5: TensorType
def wtensor5s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
wtensor6: TensorType
def wtensor6s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
wtensor7: TensorType
def wtensor7s(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
wvector: TensorType
def wvectors(*names: Any, **options: Any) -> list[Variable]:
    """Several variables of one type, by names or by number."""
def zeros(shape: Any, dtype: Any = None) -> Variable:
    """An array of zeros."""
def zeros_like(model: Any, dtype: Any = None, opt: bool = False) -> Variable:
    """Zeros with the shape of the model."""

