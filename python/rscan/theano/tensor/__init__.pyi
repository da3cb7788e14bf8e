"""`theano.tensor`. Made by tools/stubs.py."""
# ruff: noqa

from typing import Any
from ..absent import absent_in as absent_in
from ..config import config as config
from ..gradient import Lop as Lop, Rop as Rop, consider_constant as consider_constant, disconnected_grad as disconnected_grad, grad as grad, hessian as hessian, jacobian as jacobian, verify_grad as verify_grad
from . import _ties as _ties, arrays as arrays, basic as basic, create as create, elemwise as elemwise, extra_ops as extra_ops, fft as fft, linalg as linalg, nlinalg as nlinalg, nnet as nnet, opt as opt, raw_random as raw_random, shared_randomstreams as shared_randomstreams, signal as signal, slinalg as slinalg, subtensor as subtensor, type as type, type_other as type_other, xlogx as xlogx
from ._ties import clip as clip, max as max, maximum as maximum, min as min, minimum as minimum
from .arrays import addbroadcast as addbroadcast, all as all, any as any, argmax as argmax, argmin as argmin, argsort as argsort, atleast_1d as atleast_1d, batched_dot as batched_dot, batched_tensordot as batched_tensordot, bincount as bincount, concatenate as concatenate, cumprod as cumprod, cumsum as cumsum, diagonal as diagonal, diff as diff, dimshuffle as dimshuffle, dot as dot, flatten as flatten, flip as flip, horizontal_stack as horizontal_stack, join as join, logsumexp as logsumexp, max_and_argmax as max_and_argmax, mean as mean, moveaxis as moveaxis, norm as norm, outer as outer, patternbroadcast as patternbroadcast, prod as prod, ptp as ptp, repeat as repeat, reshape as reshape, roll as roll, shape as shape, shape_padaxis as shape_padaxis, shape_padleft as shape_padleft, shape_padright as shape_padright, sort as sort, specify_shape as specify_shape, split as split, squeeze as squeeze, stack as stack, stacklists as stacklists, std as std, sum as sum, swapaxes as swapaxes, tensordot as tensordot, tile as tile, to_one_hot as to_one_hot, transpose as transpose, unbroadcast as unbroadcast, var as var, vertical_stack as vertical_stack
from .basic import _shared as _shared, shared as shared
from .create import alloc as alloc, arange as arange, bcols as bcols, bmatrices as bmatrices, brows as brows, bscalars as bscalars, btensor3s as btensor3s, btensor4s as btensor4s, btensor5s as btensor5s, btensor6s as btensor6s, btensor7s as btensor7s, bvectors as bvectors, col as col, cols as cols, dcols as dcols, diag as diag, dmatrices as dmatrices, drows as drows, dscalars as dscalars, dtensor3s as dtensor3s, dtensor4s as dtensor4s, dtensor5s as dtensor5s, dtensor6s as dtensor6s, dtensor7s as dtensor7s, dvectors as dvectors, eye as eye, fcols as fcols, fmatrices as fmatrices, frows as frows, fscalars as fscalars, ftensor3s as ftensor3s, ftensor4s as ftensor4s, ftensor5s as ftensor5s, ftensor6s as ftensor6s, ftensor7s as ftensor7s, fvectors as fvectors, icols as icols, identity_like as identity_like, imatrices as imatrices, irows as irows, iscalars as iscalars, itensor3s as itensor3s, itensor4s as itensor4s, itensor5s as itensor5s, itensor6s as itensor6s, itensor7s as itensor7s, ivectors as ivectors, lcols as lcols, lmatrices as lmatrices, lrows as lrows, lscalars as lscalars, ltensor3s as ltensor3s, ltensor4s as ltensor4s, ltensor5s as ltensor5s, ltensor6s as ltensor6s, ltensor7s as ltensor7s, lvectors as lvectors, matrices as matrices, matrix as matrix, mgrid as mgrid, ogrid as ogrid, ones as ones, ones_like as ones_like, row as row, rows as rows, scalar as scalar, scalars as scalars, tensor as tensor, tensor3 as tensor3, tensor3s as tensor3s, tensor4 as tensor4, tensor4s as tensor4s, tensor5 as tensor5, tensor5s as tensor5s, tensor6 as tensor6, tensor6s as tensor6s, tensor7 as tensor7, tensor7s as tensor7s, tri as tri, tril as tril, triu as triu, ubcols as ubcols, ubmatrices as ubmatrices, ubrows as ubrows, ubscalars as ubscalars, ubtensor3s as ubtensor3s, ubtensor4s as ubtensor4s, ubtensor5s as ubtensor5s, ubtensor6s as ubtensor6s, ubtensor7s as ubtensor7s, ubvectors as ubvectors, ucols as ucols, uicols as uicols, uimatrices as uimatrices, uirows as uirows, uiscalars as uiscalars, uitensor3s as uitensor3s, uitensor4s as uitensor4s, uitensor5s as uitensor5s, uitensor6s as uitensor6s, uitensor7s as uitensor7s, uivectors as uivectors, ulcols as ulcols, ulmatrices as ulmatrices, ulrows as ulrows, ulscalars as ulscalars, ultensor3s as ultensor3s, ultensor4s as ultensor4s, ultensor5s as ultensor5s, ultensor6s as ultensor6s, ultensor7s as ultensor7s, ulvectors as ulvectors, umatrices as umatrices, urows as urows, uscalars as uscalars, utensor3s as utensor3s, utensor4s as utensor4s, utensor5s as utensor5s, utensor6s as utensor6s, utensor7s as utensor7s, uvectors as uvectors, uwcols as uwcols, uwmatrices as uwmatrices, uwrows as uwrows, uwscalars as uwscalars, uwtensor3s as uwtensor3s, uwtensor4s as uwtensor4s, uwtensor5s as uwtensor5s, uwtensor6s as uwtensor6s, uwtensor7s as uwtensor7s, uwvectors as uwvectors, vector as vector, vectors as vectors, wcols as wcols, wmatrices as wmatrices, wrows as wrows, wscalars as wscalars, wtensor3s as wtensor3s, wtensor4s as wtensor4s, wtensor5s as wtensor5s, wtensor6s as wtensor6s, wtensor7s as wtensor7s, wvectors as wvectors, zeros as zeros, zeros_like as zeros_like
from .elemwise import abs_ as _abs, abs_ as abs_, add as add, allclose as allclose, and_ as and_, arccos as arccos, arccosh as arccosh, arcsin as arcsin, arcsinh as arcsinh, arctan as arctan, arctan2 as arctan2, arctanh as arctanh, bitwise_and as bitwise_and, bitwise_not as bitwise_not, bitwise_or as bitwise_or, bitwise_xor as bitwise_xor, cast as cast, ceil as ceil, choose as choose, conj as conj, cos as cos, cosh as cosh, deg2rad as deg2rad, divmod as divmod, eq as eq, erf as erf, erfc as erfc, erfcinv as erfcinv, erfcx as erfcx, erfinv as erfinv, exp as exp, exp2 as exp2, expm1 as expm1, fill as fill, floor as floor, floor_div as floor_div, gamma as gamma, gammaln as gammaln, ge as ge, gt as gt, imag as imag, int_div as int_div, inv as inv, invert as invert, iround as iround, isclose as isclose, isinf as isinf, isnan as isnan, largest as largest, le as le, left_shift as left_shift, log as log, log10 as log10, log1p as log1p, log2 as log2, logical_not as logical_not, lt as lt, mod as mod, mul as mul, neg as neg, neq as neq, or_ as or_, pow as pow, power as power, psi as psi, rad2deg as rad2deg, real as real, right_shift as right_shift, round as round, round_half_away_from_zero as round_half_away_from_zero, round_half_to_even as round_half_to_even, second as second, sgn as sgn, sigmoid as sigmoid, sin as sin, sinh as sinh, smallest as smallest, softplus as softplus, sqr as sqr, sqrt as sqrt, square as square, sub as sub, switch as switch, tan as tan, tanh as tanh, tri_gamma as tri_gamma, trunc as trunc, trunc as _truncate, where as where, xor as xor
from .linalg import fill_diagonal as fill_diagonal, fill_diagonal_offset as fill_diagonal_offset, matrix_dot as matrix_dot, matrix_inverse as matrix_inverse, searchsorted as searchsorted, trace as trace
from .shared_randomstreams import RandomStreams as RandomStreams
from .subtensor import NotScalarConstantError as NotScalarConstantError, extract_constant as extract_constant, flatnonzero as flatnonzero, get_scalar_constant_value as get_scalar_constant_value, get_vector_length as get_vector_length, inc_subtensor as inc_subtensor, nonzero as nonzero, nonzero_values as nonzero_values, set_subtensor as set_subtensor, take as take
from ..type import TensorType as _Tensor, TensorType as TensorType
from ..variable import ShapeVariable as ShapeVariable, TensorConstant as TensorConstant, TensorSharedVariable as TensorSharedVariable, TensorVariable as TensorVariable, as_tensor_variable as _as_tensor, as_tensor_variable as as_tensor_variable, constant as constant, true_div as _divide, true_div as true_div, true_div as _truediv
from ...variable import Variable as Variable

Tensor = _Tensor
abs = _abs
as_tensor = _as_tensor
divide = _divide
truediv = _truediv
truncate = _truncate
all_dtypes: tuple[Any, ...]
bcol: TensorType
bmatrix: TensorType
brow: TensorType
bscalar: TensorType
btensor3: TensorType
btensor4: TensorType
btensor5: TensorType
btensor6: TensorType
btensor7: TensorType
bvector: TensorType
def ccol(*_: Any, **__: Any) -> Any:
    """Not provided: complex numbers."""
def ccols(*_: Any, **__: Any) -> Any:
    """Not provided: complex numbers."""
def cmatrices(*_: Any, **__: Any) -> Any:
    """Not provided: complex numbers."""
def cmatrix(*_: Any, **__: Any) -> Any:
    """Not provided: complex numbers."""
def complex(*_: Any, **__: Any) -> Any:
    """Not provided: complex numbers."""
complex_dtypes: tuple[Any, ...]
def complex_from_polar(*_: Any, **__: Any) -> Any:
    """Not provided: complex numbers."""
continuous_dtypes: tuple[Any, ...]
def crow(*_: Any, **__: Any) -> Any:
    """Not provided: complex numbers."""
def crows(*_: Any, **__: Any) -> Any:
    """Not provided: complex numbers."""
def cscalar(*_: Any, **__: Any) -> Any:
    """Not provided: complex numbers."""
def cscalars(*_: Any, **__: Any) -> Any:
    """Not provided: complex numbers."""
def ctensor3(*_: Any, **__: Any) -> Any:
    """Not provided: complex numbers."""
def ctensor3s(*_: Any, **__: Any) -> Any:
    """Not provided: complex numbers."""
def ctensor4(*_: Any, **__: Any) -> Any:
    """Not provided: complex numbers."""
def ctensor4s(*_: Any, **__: Any) -> Any:
    """Not provided: complex numbers."""
def cvector(*_: Any, **__: Any) -> Any:
    """Not provided: complex numbers."""
def cvectors(*_: Any, **__: Any) -> Any:
    """Not provided: complex numbers."""
dcol: TensorType
discrete_dtypes: tuple[Any, ...]
dmatrix: TensorType
drow: TensorType
dscalar: TensorType
dtensor3: TensorType
dtensor4: TensorType
dtensor5: TensorType
dtensor6: TensorType
dtensor7: TensorType
dvector: TensorType
e: float
fcol: TensorType
float_dtypes: tuple[Any, ...]
fmatrix: TensorType
frow: TensorType
fscalar: TensorType
ftensor3: TensorType
ftensor4: TensorType
ftensor5: TensorType
ftensor6: TensorType
ftensor7: TensorType
fvector: TensorType
icol: TensorType
def identity(x: Any) -> Any:
    ...
imatrix: TensorType
inf: float
int_dtypes: tuple[Any, ...]
integer_dtypes: tuple[Any, ...]
irow: TensorType
iscalar: TensorType
itensor3: TensorType
itensor4: TensorType
itensor5: TensorType
itensor6: TensorType
itensor7: TensorType
ivector: TensorType
lcol: TensorType
lmatrix: TensorType
lrow: TensorType
lscalar: TensorType
ltensor3: TensorType
ltensor4: TensorType
ltensor5: TensorType
ltensor6: TensorType
ltensor7: TensorType
lvector: TensorType
nan: float
newaxis: None
pi: float
def tensor_copy(x: Any) -> Any:
    ...
ubcol: TensorType
ubmatrix: TensorType
ubrow: TensorType
ubscalar: TensorType
ubtensor3: TensorType
ubtensor4: TensorType
ubtensor5: TensorType
ubtensor6: TensorType
ubtensor7: TensorType
ubvector: TensorType
ucol: TensorType
uicol: TensorType
uimatrix: TensorType
uint_dtypes: tuple[Any, ...]
uirow: TensorType
uiscalar: TensorType
uitensor3: TensorType
uitensor4: TensorType
uitensor5: TensorType
uitensor6: TensorType
uitensor7: TensorType
uivector: TensorType
ulcol: TensorType
ulmatrix: TensorType
ulrow: TensorType
ulscalar: TensorType
ultensor3: TensorType
ultensor4: TensorType
ultensor5: TensorType
ultensor6: TensorType
ultensor7: TensorType
ulvector: TensorType
umatrix: TensorType
urow: TensorType
uscalar: TensorType
utensor3: TensorType
utensor4: TensorType
utensor5: TensorType
utensor6: TensorType
utensor7: TensorType
uvector: TensorType
uwcol: TensorType
uwmatrix: TensorType
uwrow: TensorType
uwscalar: TensorType
uwtensor3: TensorType
uwtensor4: TensorType
uwtensor5: TensorType
uwtensor6: TensorType
uwtensor7: TensorType
uwvector: TensorType
wcol: TensorType
wmatrix: TensorType
wrow: TensorType
wscalar: TensorType
wtensor3: TensorType
wtensor4: TensorType
wtensor5: TensorType
wtensor6: TensorType
wtensor7: TensorType
wvector: TensorType
def zcol(*_: Any, **__: Any) -> Any:
    """Not provided: complex numbers."""
def zcols(*_: Any, **__: Any) -> Any:
    """Not provided: complex numbers."""
def zmatrices(*_: Any, **__: Any) -> Any:
    """Not provided: complex numbers."""
def zmatrix(*_: Any, **__: Any) -> Any:
    """Not provided: complex numbers."""
def zrow(*_: Any, **__: Any) -> Any:
    """Not provided: complex numbers."""
def zrows(*_: Any, **__: Any) -> Any:
    """Not provided: complex numbers."""
def zscalar(*_: Any, **__: Any) -> Any:
    """Not provided: complex numbers."""
def zscalars(*_: Any, **__: Any) -> Any:
    """Not provided: complex numbers."""
def ztensor3(*_: Any, **__: Any) -> Any:
    """Not provided: complex numbers."""
def ztensor3s(*_: Any, **__: Any) -> Any:
    """Not provided: complex numbers."""
def ztensor4(*_: Any, **__: Any) -> Any:
    """Not provided: complex numbers."""
def ztensor4s(*_: Any, **__: Any) -> Any:
    """Not provided: complex numbers."""
def zvector(*_: Any, **__: Any) -> Any:
    """Not provided: complex numbers."""
def zvectors(*_: Any, **__: Any) -> Any:
    """Not provided: complex numbers."""
def __getattr__(name: str) -> Any: ...


__all__ = [
    'absent_in',
    'Lop',
    'Rop',
    'consider_constant',
    'disconnected_grad',
    'grad',
    'hessian',
    'jacobian',
    'verify_grad',
    'TensorType',
    'ShapeVariable',
    'TensorConstant',
    'TensorSharedVariable',
    'TensorVariable',
    'as_tensor_variable',
    'constant',
    'create',
    'arrays',
    'elemwise',
    'subtensor',
    'basic',
    'linalg',
    'extra_ops',
    'fft',
    'nlinalg',
    'nnet',
    'opt',
    'raw_random',
    'shared_randomstreams',
    'signal',
    'slinalg',
    'sort',
    'type',
    'type_other',
    'var',
    'xlogx',
    'shared',
    'fill_diagonal',
    'fill_diagonal_offset',
    'searchsorted',
    'to_one_hot',
    'matrix_dot',
    'matrix_inverse',
    'trace',
    'RandomStreams',
    'sub',
    'mod',
    'int_div',
    'floor_div',
    'pow',
    'power',
    'neg',
    'abs_',
    'sgn',
    'sqr',
    'square',
    'eq',
    'neq',
    'lt',
    'gt',
    'le',
    'ge',
    'isnan',
    'isinf',
    'and_',
    'or_',
    'xor',
    'invert',
    'bitwise_and',
    'bitwise_or',
    'bitwise_xor',
    'bitwise_not',
    'logical_not',
    'left_shift',
    'right_shift',
    'floor',
    'ceil',
    'trunc',
    'sqrt',
    'inv',
    'log',
    'log1p',
    'exp',
    'exp2',
    'expm1',
    'log2',
    'log10',
    'sin',
    'cos',
    'tan',
    'arcsin',
    'arccos',
    'arctan',
    'arctan2',
    'sinh',
    'cosh',
    'tanh',
    'arcsinh',
    'arccosh',
    'arctanh',
    'erf',
    'erfc',
    'erfinv',
    'gammaln',
    'psi',
    'tri_gamma',
    'deg2rad',
    'rad2deg',
    'sigmoid',
    'softplus',
    'add',
    'mul',
    'maximum',
    'minimum',
    'erfcx',
    'erfcinv',
    'gamma',
    'cast',
    'switch',
    'where',
    'clip',
    'round',
    'iround',
    'round_half_to_even',
    'round_half_away_from_zero',
    'isclose',
    'allclose',
    'real',
    'conj',
    'imag',
    'divmod',
    'second',
    'fill',
    'smallest',
    'largest',
    'choose',
    'true_div',
    'truediv',
    'scalar',
    'scalars',
    'vector',
    'vectors',
    'matrix',
    'matrices',
    'row',
    'rows',
    'col',
    'cols',
    'tensor3',
    'tensor3s',
    'tensor4',
    'tensor4s',
    'tensor5',
    'tensor5s',
    'tensor6',
    'tensor6s',
    'tensor7',
    'tensor7s',
    'bscalar',
    'bscalars',
    'bvector',
    'bvectors',
    'bmatrix',
    'bmatrices',
    'brow',
    'brows',
    'bcol',
    'bcols',
    'btensor3',
    'btensor3s',
    'btensor4',
    'btensor4s',
    'btensor5',
    'btensor5s',
    'btensor6',
    'btensor6s',
    'btensor7',
    'btensor7s',
    'wscalar',
    'wscalars',
    'wvector',
    'wvectors',
    'wmatrix',
    'wmatrices',
    'wrow',
    'wrows',
    'wcol',
    'wcols',
    'wtensor3',
    'wtensor3s',
    'wtensor4',
    'wtensor4s',
    'wtensor5',
    'wtensor5s',
    'wtensor6',
    'wtensor6s',
    'wtensor7',
    'wtensor7s',
    'iscalar',
    'iscalars',
    'ivector',
    'ivectors',
    'imatrix',
    'imatrices',
    'irow',
    'irows',
    'icol',
    'icols',
    'itensor3',
    'itensor3s',
    'itensor4',
    'itensor4s',
    'itensor5',
    'itensor5s',
    'itensor6',
    'itensor6s',
    'itensor7',
    'itensor7s',
    'lscalar',
    'lscalars',
    'lvector',
    'lvectors',
    'lmatrix',
    'lmatrices',
    'lrow',
    'lrows',
    'lcol',
    'lcols',
    'ltensor3',
    'ltensor3s',
    'ltensor4',
    'ltensor4s',
    'ltensor5',
    'ltensor5s',
    'ltensor6',
    'ltensor6s',
    'ltensor7',
    'ltensor7s',
    'fscalar',
    'fscalars',
    'fvector',
    'fvectors',
    'fmatrix',
    'fmatrices',
    'frow',
    'frows',
    'fcol',
    'fcols',
    'ftensor3',
    'ftensor3s',
    'ftensor4',
    'ftensor4s',
    'ftensor5',
    'ftensor5s',
    'ftensor6',
    'ftensor6s',
    'ftensor7',
    'ftensor7s',
    'dscalar',
    'dscalars',
    'dvector',
    'dvectors',
    'dmatrix',
    'dmatrices',
    'drow',
    'drows',
    'dcol',
    'dcols',
    'dtensor3',
    'dtensor3s',
    'dtensor4',
    'dtensor4s',
    'dtensor5',
    'dtensor5s',
    'dtensor6',
    'dtensor6s',
    'dtensor7',
    'dtensor7s',
    'uscalar',
    'uscalars',
    'uvector',
    'uvectors',
    'umatrix',
    'umatrices',
    'urow',
    'urows',
    'ucol',
    'ucols',
    'utensor3',
    'utensor3s',
    'utensor4',
    'utensor4s',
    'utensor5',
    'utensor5s',
    'utensor6',
    'utensor6s',
    'utensor7',
    'utensor7s',
    'ubscalar',
    'ubscalars',
    'ubvector',
    'ubvectors',
    'ubmatrix',
    'ubmatrices',
    'ubrow',
    'ubrows',
    'ubcol',
    'ubcols',
    'ubtensor3',
    'ubtensor3s',
    'ubtensor4',
    'ubtensor4s',
    'ubtensor5',
    'ubtensor5s',
    'ubtensor6',
    'ubtensor6s',
    'ubtensor7',
    'ubtensor7s',
    'uwscalar',
    'uwscalars',
    'uwvector',
    'uwvectors',
    'uwmatrix',
    'uwmatrices',
    'uwrow',
    'uwrows',
    'uwcol',
    'uwcols',
    'uwtensor3',
    'uwtensor3s',
    'uwtensor4',
    'uwtensor4s',
    'uwtensor5',
    'uwtensor5s',
    'uwtensor6',
    'uwtensor6s',
    'uwtensor7',
    'uwtensor7s',
    'uiscalar',
    'uiscalars',
    'uivector',
    'uivectors',
    'uimatrix',
    'uimatrices',
    'uirow',
    'uirows',
    'uicol',
    'uicols',
    'uitensor3',
    'uitensor3s',
    'uitensor4',
    'uitensor4s',
    'uitensor5',
    'uitensor5s',
    'uitensor6',
    'uitensor6s',
    'uitensor7',
    'uitensor7s',
    'ulscalar',
    'ulscalars',
    'ulvector',
    'ulvectors',
    'ulmatrix',
    'ulmatrices',
    'ulrow',
    'ulrows',
    'ulcol',
    'ulcols',
    'ultensor3',
    'ultensor3s',
    'ultensor4',
    'ultensor4s',
    'ultensor5',
    'ultensor5s',
    'ultensor6',
    'ultensor6s',
    'ultensor7',
    'ultensor7s',
    'tensor',
    'alloc',
    'zeros',
    'ones',
    'zeros_like',
    'ones_like',
    'eye',
    'identity_like',
    'arange',
    'mgrid',
    'ogrid',
    'diag',
    'tri',
    'tril',
    'triu',
    'sum',
    'prod',
    'mean',
    'std',
    'max',
    'min',
    'any',
    'all',
    'argmax',
    'argmin',
    'max_and_argmax',
    'ptp',
    'norm',
    'logsumexp',
    'cumsum',
    'cumprod',
    'argsort',
    'diff',
    'bincount',
    'dot',
    'outer',
    'tensordot',
    'batched_dot',
    'batched_tensordot',
    'shape',
    'shape_padleft',
    'shape_padright',
    'shape_padaxis',
    'reshape',
    'flatten',
    'dimshuffle',
    'transpose',
    'squeeze',
    'addbroadcast',
    'unbroadcast',
    'patternbroadcast',
    'specify_shape',
    'join',
    'concatenate',
    'stack',
    'stacklists',
    'horizontal_stack',
    'vertical_stack',
    'split',
    'tile',
    'repeat',
    'roll',
    'swapaxes',
    'moveaxis',
    'diagonal',
    'atleast_1d',
    'flip',
    'take',
    'nonzero',
    'nonzero_values',
    'flatnonzero',
    'set_subtensor',
    'inc_subtensor',
    'get_vector_length',
    'get_scalar_constant_value',
    'NotScalarConstantError',
    'extract_constant',
    'abs',
    'pi',
    'e',
    'inf',
    'nan',
    'newaxis',
    'divide',
    'truncate',
    'discrete_dtypes',
    'continuous_dtypes',
    'float_dtypes',
    'int_dtypes',
    'uint_dtypes',
    'complex_dtypes',
    'integer_dtypes',
    'all_dtypes',
    'as_tensor',
    'Tensor',
    'tensor_copy',
    'identity',
    'cscalar',
    'cvector',
    'cmatrix',
    'crow',
    'ccol',
    'ctensor3',
    'ctensor4',
    'zscalar',
    'zvector',
    'zmatrix',
    'zrow',
    'zcol',
    'ztensor3',
    'ztensor4',
    'cscalars',
    'cvectors',
    'cmatrices',
    'crows',
    'ccols',
    'ctensor3s',
    'ctensor4s',
    'zscalars',
    'zvectors',
    'zmatrices',
    'zrows',
    'zcols',
    'ztensor3s',
    'ztensor4s',
    'complex',
    'complex_from_polar',
]
