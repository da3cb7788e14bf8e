"""Symbolic loops: differentiated, optimised and run as native code. Made by tools/stubs.py."""
# ruff: noqa

from . import errors as errors, linalg as linalg, ode as ode, optim as optim, random as random, special as special, stats as stats, typing as typing
from ._calling import In as In
from ._rows import abs as abs, absolute as absolute, acos as acos, acosh as acosh, add as add, arccos as arccos, arccosh as arccosh, arcsin as arcsin, arcsinh as arcsinh, arctan as arctan, arctan2 as arctan2, arctanh as arctanh, asin as asin, asinh as asinh, atan as atan, atan2 as atan2, atanh as atanh, bit_and as bit_and, bit_or as bit_or, bit_xor as bit_xor, bitwise_and as bitwise_and, bitwise_invert as bitwise_invert, bitwise_left_shift as bitwise_left_shift, bitwise_not as bitwise_not, bitwise_or as bitwise_or, bitwise_right_shift as bitwise_right_shift, bitwise_xor as bitwise_xor, ceil as ceil, copysign as copysign, cos as cos, cosh as cosh, deg2rad as deg2rad, degrees as degrees, digamma as digamma, div as div, divide as divide, eq as eq, equal as equal, erf as erf, erfc as erfc, erfinv as erfinv, exp as exp, exp2 as exp2, expit as expit, expm1 as expm1, fix as fix, floor as floor, floor_divide as floor_divide, floordiv as floordiv, fma as fma, fmod as fmod, gammaln as gammaln, ge as ge, greater as greater, greater_equal as greater_equal, gt as gt, hypot as hypot, int_div as int_div, invert as invert, isfinite as isfinite, isinf as isinf, isnan as isnan, le as le, left_shift as left_shift, less as less, less_equal as less_equal, lgamma as lgamma, log as log, log10 as log10, log1p as log1p, log2 as log2, log_sigmoid as log_sigmoid, logaddexp as logaddexp, logical_and as logical_and, logical_not as logical_not, logical_or as logical_or, logical_xor as logical_xor, lt as lt, maximum as maximum, minimum as minimum, mod as mod, mul as mul, multiply as multiply, ne as ne, neg as neg, negative as negative, not_equal as not_equal, psi as psi, rad2deg as rad2deg, radians as radians, reciprocal as reciprocal, relu as relu, remainder as remainder, right_shift as right_shift, rsqrt as rsqrt, sgn as sgn, shift_left as shift_left, shift_right as shift_right, sigmoid as sigmoid, sign as sign, signbit as signbit, silu as silu, sin as sin, sinh as sinh, softplus as softplus, sqr as sqr, sqrt as sqrt, square as square, sub as sub, subtract as subtract, tan as tan, tanh as tanh, tetragamma as tetragamma, trigamma as trigamma, true_div as true_div, true_divide as true_divide, trunc as trunc, xlogy as xlogy
from .checkpoints import scan_checkpoints as scan_checkpoints
from .compile import Compiled as Compiled
from .config import config as config
from .devices import Device as Device, devices as devices
from .errors import AxisError as AxisError, DeviceError as DeviceError, DisconnectedInputError as DisconnectedInputError, GradientError as GradientError, InternalError as InternalError, LinAlgError as LinAlgError, MissingInputError as MissingInputError, NonScalarCostError as NonScalarCostError, ParseError as ParseError, RscanError as RscanError, RscanIndexError as RscanIndexError, RscanOverflowError as RscanOverflowError, RscanTypeError as RscanTypeError, RscanValueError as RscanValueError, ScanError as ScanError, ScanTypeError as ScanTypeError, ShapeError as ShapeError, UnsupportedError as UnsupportedError, UnusedInputError as UnusedInputError, error_page as error_page
from .function import Function as Function, Out as Out, evaluate as eval
from .gradient import DISCONNECTED as DISCONNECTED
from .indexing import diagonal as diagonal, inc_subtensor as inc_subtensor, nonzero as nonzero, set_subtensor as set_subtensor, take as take, take_along_axis as take_along_axis
from .inputs import bcol as bcol, bcols as bcols, bmatrices as bmatrices, bmatrix as bmatrix, brow as brow, brows as brows, bscalar as bscalar, bscalars as bscalars, btensor3 as btensor3, btensor3s as btensor3s, btensor4 as btensor4, btensor4s as btensor4s, btensor5 as btensor5, btensor5s as btensor5s, bvector as bvector, bvectors as bvectors, col as col, cols as cols, dcol as dcol, dcols as dcols, dmatrices as dmatrices, dmatrix as dmatrix, drow as drow, drows as drows, dscalar as dscalar, dscalars as dscalars, dtensor3 as dtensor3, dtensor3s as dtensor3s, dtensor4 as dtensor4, dtensor4s as dtensor4s, dtensor5 as dtensor5, dtensor5s as dtensor5s, dvector as dvector, dvectors as dvectors, fcol as fcol, fcols as fcols, fmatrices as fmatrices, fmatrix as fmatrix, frow as frow, frows as frows, fscalar as fscalar, fscalars as fscalars, ftensor3 as ftensor3, ftensor3s as ftensor3s, ftensor4 as ftensor4, ftensor4s as ftensor4s, ftensor5 as ftensor5, ftensor5s as ftensor5s, fvector as fvector, fvectors as fvectors, icol as icol, icols as icols, imatrices as imatrices, imatrix as imatrix, irow as irow, irows as irows, iscalar as iscalar, iscalars as iscalars, itensor3 as itensor3, itensor3s as itensor3s, itensor4 as itensor4, itensor4s as itensor4s, itensor5 as itensor5, itensor5s as itensor5s, ivector as ivector, ivectors as ivectors, lcol as lcol, lcols as lcols, lmatrices as lmatrices, lmatrix as lmatrix, lrow as lrow, lrows as lrows, lscalar as lscalar, lscalars as lscalars, ltensor3 as ltensor3, ltensor3s as ltensor3s, ltensor4 as ltensor4, ltensor4s as ltensor4s, ltensor5 as ltensor5, ltensor5s as ltensor5s, lvector as lvector, lvectors as lvectors, matrices as matrices, matrix as matrix, row as row, rows as rows, scalar as scalar, scalars as scalars, tensor as tensor, tensor3 as tensor3, tensor3s as tensor3s, tensor4 as tensor4, tensor4s as tensor4s, tensor5 as tensor5, tensor5s as tensor5s, ubcol as ubcol, ubcols as ubcols, ubmatrices as ubmatrices, ubmatrix as ubmatrix, ubrow as ubrow, ubrows as ubrows, ubscalar as ubscalar, ubscalars as ubscalars, ubtensor3 as ubtensor3, ubtensor3s as ubtensor3s, ubtensor4 as ubtensor4, ubtensor4s as ubtensor4s, ubtensor5 as ubtensor5, ubtensor5s as ubtensor5s, ubvector as ubvector, ubvectors as ubvectors, ucol as ucol, ucols as ucols, uicol as uicol, uicols as uicols, uimatrices as uimatrices, uimatrix as uimatrix, uirow as uirow, uirows as uirows, uiscalar as uiscalar, uiscalars as uiscalars, uitensor3 as uitensor3, uitensor3s as uitensor3s, uitensor4 as uitensor4, uitensor4s as uitensor4s, uitensor5 as uitensor5, uitensor5s as uitensor5s, uivector as uivector, uivectors as uivectors, ulcol as ulcol, ulcols as ulcols, ulmatrices as ulmatrices, ulmatrix as ulmatrix, ulrow as ulrow, ulrows as ulrows, ulscalar as ulscalar, ulscalars as ulscalars, ultensor3 as ultensor3, ultensor3s as ultensor3s, ultensor4 as ultensor4, ultensor4s as ultensor4s, ultensor5 as ultensor5, ultensor5s as ultensor5s, ulvector as ulvector, ulvectors as ulvectors, umatrices as umatrices, umatrix as umatrix, urow as urow, urows as urows, uscalar as uscalar, uscalars as uscalars, utensor3 as utensor3, utensor3s as utensor3s, utensor4 as utensor4, utensor4s as utensor4s, utensor5 as utensor5, utensor5s as utensor5s, uvector as uvector, uvectors as uvectors, uwcol as uwcol, uwcols as uwcols, uwmatrices as uwmatrices, uwmatrix as uwmatrix, uwrow as uwrow, uwrows as uwrows, uwscalar as uwscalar, uwscalars as uwscalars, uwtensor3 as uwtensor3, uwtensor3s as uwtensor3s, uwtensor4 as uwtensor4, uwtensor4s as uwtensor4s, uwtensor5 as uwtensor5, uwtensor5s as uwtensor5s, uwvector as uwvector, uwvectors as uwvectors, vector as vector, vectors as vectors, wcol as wcol, wcols as wcols, wmatrices as wmatrices, wmatrix as wmatrix, wrow as wrow, wrows as wrows, wscalar as wscalar, wscalars as wscalars, wtensor3 as wtensor3, wtensor3s as wtensor3s, wtensor4 as wtensor4, wtensor4s as wtensor4s, wtensor5 as wtensor5, wtensor5s as wtensor5s, wvector as wvector, wvectors as wvectors
from .linalg.products import batched_dot as batched_dot, dot as dot, inner as inner, kron as kron, matmul as matmul, outer as outer, tensordot as tensordot, vdot as vdot
from .linalg.systems import matrix_transpose as matrix_transpose
from .loop import Loop as Loop, LoopOutput as LoopOutput, Taps as Taps, taps as taps
from .ops_build import array as array, asanyarray as asanyarray, asarray as asarray, bartlett as bartlett, blackman as blackman, diag_indices as diag_indices, diag_indices_from as diag_indices_from, diagflat as diagflat, fill_diagonal as fill_diagonal, fromfunction as fromfunction, geomspace as geomspace, hamming as hamming, hanning as hanning, indices as indices, ix_ as ix_, logspace as logspace, meshgrid as meshgrid, tril_indices as tril_indices, tril_indices_from as tril_indices_from, triu_indices as triu_indices, triu_indices_from as triu_indices_from, vander as vander
from .ops_contract import convolve as convolve, correlate as correlate, cross as cross, einsum as einsum, matvec as matvec, trace as trace, vecdot as vecdot, vecmat as vecmat
from .ops_control import assert_ as assert_, consider_constant as consider_constant, disconnected_grad as disconnected_grad, grad_clip as grad_clip, ifelse as ifelse, stop_gradient as stop_gradient
from .ops_create import alloc as alloc, arange as arange, diag as diag, empty as empty, empty_like as empty_like, eye as eye, fill as fill, full as full, full_like as full_like, identity as identity, linspace as linspace, ones as ones, ones_like as ones_like, tri as tri, tril as tril, triu as triu, zeros as zeros, zeros_like as zeros_like
from .ops_elementwise import astype as astype, cast as cast, clip as clip, fabs as fabs, isclose as isclose, nan_to_num as nan_to_num, pow as pow, power as power, rint as rint, round as around, round as round, switch as switch, where as where
from .ops_join import append as append, atleast_3d as atleast_3d, block as block, column_stack as column_stack, concat as concat, delete as delete, dsplit as dsplit, dstack as dstack, hsplit as hsplit, insert as insert, resize as resize, rollaxis as rollaxis, trim_zeros as trim_zeros, unstack as unstack, vsplit as vsplit
from .ops_math import angle as angle, cbrt as cbrt, conj as conj, conjugate as conjugate, divmod as divmod, float_power as float_power, fmax as fmax, fmin as fmin, gcd as gcd, heaviside as heaviside, imag as imag, iscomplex as iscomplex, isneginf as isneginf, isposinf as isposinf, isreal as isreal, lcm as lcm, ldexp as ldexp, logaddexp2 as logaddexp2, modf as modf, positive as positive, real as real, real_if_close as real_if_close, sinc as sinc, unwrap as unwrap
from .ops_polynomial import poly as poly, polyadd as polyadd, polyder as polyder, polyfit as polyfit, polyint as polyint, polymul as polymul, polysub as polysub, polyval as polyval
from .ops_reduce import all as all, amax as amax, amin as amin, any as any, argmax as argmax, argmin as argmin, argsort as argsort, average as average, count_nonzero as count_nonzero, cumprod as cumprod, cumsum as cumsum, diff as diff, log_softmax as log_softmax, logsumexp as logsumexp, max as max, max_and_argmax as max_and_argmax, mean as mean, min as min, prod as prod, ptp as ptp, softmax as softmax, sort as sort, std as std, sum as sum, var as var
from .ops_search import bincount as bincount, cummax as cummax, cummin as cummin, digitize as digitize, interp as interp, one_hot as one_hot, pad as pad, searchsorted as searchsorted, segment_sum as segment_sum, top_k as top_k
from .ops_select import apply_along_axis as apply_along_axis, apply_over_axes as apply_over_axes, choose as choose, compress as compress, extract as extract, piecewise as piecewise, put_along_axis as put_along_axis, select as select
from .ops_sets import allclose as allclose, argpartition as argpartition, argwhere as argwhere, array_equal as array_equal, array_equiv as array_equiv, flatnonzero as flatnonzero, intersect1d as intersect1d, isin as isin, lexsort as lexsort, partition as partition, ravel_multi_index as ravel_multi_index, setdiff1d as setdiff1d, setxor1d as setxor1d, union1d as union1d, unique as unique, unique_counts as unique_counts, unique_inverse as unique_inverse, unique_values as unique_values, unravel_index as unravel_index
from .ops_shape import array_split as array_split, atleast_1d as atleast_1d, atleast_2d as atleast_2d, broadcast_arrays as broadcast_arrays, broadcast_like as broadcast_like, broadcast_to as broadcast_to, concatenate as concatenate, copy as copy, expand_dims as expand_dims, flatten as flatten, flip as flip, fliplr as fliplr, flipud as flipud, hstack as hstack, join as join, moveaxis as moveaxis, ndim as ndim, permute_dims as permute_dims, ravel as ravel, repeat as repeat, reshape as reshape, roll as roll, rot90 as rot90, shape as shape, size as size, split as split, squeeze as squeeze, stack as stack, swapaxes as swapaxes, tile as tile, transpose as transpose, vstack as vstack
from .ops_statistics import corrcoef as corrcoef, cov as cov, cumulative_prod as cumulative_prod, cumulative_sum as cumulative_sum, ediff1d as ediff1d, histogram as histogram, histogram_bin_edges as histogram_bin_edges, median as median, nanargmax as nanargmax, nanargmin as nanargmin, nancumprod as nancumprod, nancumsum as nancumsum, nanmax as nanmax, nanmean as nanmean, nanmedian as nanmedian, nanmin as nanmin, nanpercentile as nanpercentile, nanprod as nanprod, nanquantile as nanquantile, nanstd as nanstd, nansum as nansum, nanvar as nanvar, percentile as percentile, quantile as quantile, trapezoid as trapezoid
from .printing import Print as Print, pp as pp, print_ as print, print_ as print_
from .random.stream import RandomStream as RandomStream
from .shared import SharedVariable as SharedVariable
from .show import show as show
from .transforms import hvp as hvp
from .updates import ForgottenUpdatesWarning as ForgottenUpdatesWarning, OrderedUpdates as OrderedUpdates, until as until
from .variable import Variable as Variable
from .verify import numeric_grad as numeric_grad, verify_grad as verify_grad
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TextIO
import builtins
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, ParamSpec, TextIO, TypeVar, overload

from numpy.typing import NDArray

from .typing import Operand

_P = ParamSpec("_P")
_R = TypeVar("_R")
_K = TypeVar("_K")
_V = TypeVar("_V", bound=Variable)
_Inputs = Variable | In | Sequence[Variable | In] | None
_Several = tuple[Variable, Variable] | tuple[Variable, Variable, Variable] | tuple[Variable, Variable, Variable, Variable]

@overload
def Lop(f: Any, wrt: Variable, eval_points: Any, consider_constant: Any = None, disconnected_inputs: str = 'raise') -> Variable: ...
@overload
def Lop(f: Any, wrt: list[_V], eval_points: Any, consider_constant: Any = None, disconnected_inputs: str = 'raise') -> list[Variable]: ...
@overload
def Lop(f: Any, wrt: tuple[_V, ...], eval_points: Any, consider_constant: Any = None, disconnected_inputs: str = 'raise') -> tuple[Variable, ...]: ...
@overload
def Rop(f: Variable, wrt: Any, eval_points: Any) -> Variable: ...
@overload
def Rop(f: list[_V], wrt: Any, eval_points: Any) -> list[Variable]: ...
@overload
def Rop(f: tuple[_V, ...], wrt: Any, eval_points: Any) -> tuple[Variable, ...]: ...
def __dir__() -> Any:
    """What users mean to see."""
__version__: str
def as_variable(value: Operand, dtype: Any = None, family: type[Variable] = ...) -> Variable: ...
@overload
def compile(fn: Callable[_P, Variable], *, name: str | None = None, device: str | None = None) -> Compiled[_P, NDArray[Any]]: ...
@overload
def compile(fn: Callable[_P, tuple[Variable, Variable]], *, name: str | None = None, device: str | None = None) -> Compiled[_P, tuple[NDArray[Any], NDArray[Any]]]: ...
@overload
def compile(fn: Callable[_P, tuple[Variable, ...]], *, name: str | None = None, device: str | None = None) -> Compiled[_P, tuple[NDArray[Any], ...]]: ...
@overload
def compile(fn: Callable[_P, list[Variable]], *, name: str | None = None, device: str | None = None) -> Compiled[_P, list[NDArray[Any]]]: ...
@overload
def compile(fn: Callable[_P, dict[_K, Variable]], *, name: str | None = None, device: str | None = None) -> Compiled[_P, dict[_K, NDArray[Any]]]: ...
@overload
def compile(fn: Callable[_P, Any], *, name: str | None = None, device: str | None = None) -> Compiled[_P, Any]: ...
@overload
def compile(fn: None = None, *, name: str | None = None, device: str | None = None) -> Callable[[Callable[_P, Any]], Compiled[_P, Any]]: ...
def constant(value: Operand, dtype: Any = None, name: str | None = None) -> Variable: ...
@overload
def debugprint(x: Any, file: TextIO | None = None) -> None: ...
@overload
def debugprint(x: Any, file: str) -> str: ...
e: float
@overload
def foldl(fn: Callable[..., Variable | tuple[Variable, until]], sequences: Any, outputs_info: Any, non_sequences: Any = None, mode: Any = None, name: str | None = None) -> tuple[Variable, OrderedUpdates]: ...
@overload
def foldl(fn: Callable[..., _Several], sequences: Any, outputs_info: Any, non_sequences: Any = None, mode: Any = None, name: str | None = None) -> tuple[list[Variable], OrderedUpdates]: ...
@overload
def foldl(fn: Callable[..., Any], sequences: Any, outputs_info: Any, non_sequences: Any = None, mode: Any = None, name: str | None = None) -> tuple[Any, OrderedUpdates]: ...
@overload
def foldr(fn: Callable[..., Variable | tuple[Variable, until]], sequences: Any, outputs_info: Any, non_sequences: Any = None, mode: Any = None, name: str | None = None) -> tuple[Variable, OrderedUpdates]: ...
@overload
def foldr(fn: Callable[..., _Several], sequences: Any, outputs_info: Any, non_sequences: Any = None, mode: Any = None, name: str | None = None) -> tuple[list[Variable], OrderedUpdates]: ...
@overload
def foldr(fn: Callable[..., Any], sequences: Any, outputs_info: Any, non_sequences: Any = None, mode: Any = None, name: str | None = None) -> tuple[Any, OrderedUpdates]: ...
@overload
def function(inputs: _Inputs, outputs: Variable | Out | float, *, updates: Any = None, givens: Any = None, name: str | None = None, on_unused_input: str = 'raise', allow_input_downcast: bool | None = None, no_default_updates: Any = False, profile: bool | str = False, excluding: Iterable[str] = (), device: str | None = None) -> Function[NDArray[Any]]: ...
@overload
def function(inputs: _Inputs, outputs: list[Any] | tuple[Any, ...] | None = None, *, updates: Any = None, givens: Any = None, name: str | None = None, on_unused_input: str = 'raise', allow_input_downcast: bool | None = None, no_default_updates: Any = False, profile: bool | str = False, excluding: Iterable[str] = (), device: str | None = None) -> Function[list[NDArray[Any]]]: ...
@overload
def function(inputs: _Inputs, outputs: Mapping[_K, Any], *, updates: Any = None, givens: Any = None, name: str | None = None, on_unused_input: str = 'raise', allow_input_downcast: bool | None = None, no_default_updates: Any = False, profile: bool | str = False, excluding: Iterable[str] = (), device: str | None = None) -> Function[dict[_K, NDArray[Any]]]: ...
@overload
def grad(cost: Any, wrt: Variable, consider_constant: Any = None, disconnected_inputs: str = 'raise', known_grads: Mapping[Any, Any] | None = None, return_disconnected: str = 'zero') -> Variable: ...
@overload
def grad(cost: Any, wrt: list[_V], consider_constant: Any = None, disconnected_inputs: str = 'raise', known_grads: Mapping[Any, Any] | None = None, return_disconnected: str = 'zero') -> list[Variable]: ...
@overload
def grad(cost: Any, wrt: tuple[_V, ...], consider_constant: Any = None, disconnected_inputs: str = 'raise', known_grads: Mapping[Any, Any] | None = None, return_disconnected: str = 'zero') -> tuple[Variable, ...]: ...
@overload
def grad(cost: Callable[_P, Any], argnums: Any = 0, has_aux: bool = False) -> Compiled[_P, Any]: ...
@overload
def hessian(cost: Any, wrt: Variable, consider_constant: Any = None, disconnected_inputs: str = 'raise', *, block_size: int | None = None) -> Variable: ...
@overload
def hessian(cost: Any, wrt: list[_V], consider_constant: Any = None, disconnected_inputs: str = 'raise', *, block_size: int | None = None) -> list[Variable]: ...
@overload
def hessian(cost: Any, wrt: tuple[_V, ...], consider_constant: Any = None, disconnected_inputs: str = 'raise', *, block_size: int | None = None) -> tuple[Variable, ...]: ...
@overload
def hessian(cost: Callable[_P, Any], argnums: Any = 0, has_aux: bool = False, *, block_size: int | None = None) -> Compiled[_P, Any]: ...
inf: float
@overload
def jacobian(expression: Any, wrt: Variable, consider_constant: Any = None, disconnected_inputs: str = 'raise', *, block_size: int | None = None) -> Variable: ...
@overload
def jacobian(expression: Any, wrt: list[_V], consider_constant: Any = None, disconnected_inputs: str = 'raise', *, block_size: int | None = None) -> list[Variable]: ...
@overload
def jacobian(expression: Any, wrt: tuple[_V, ...], consider_constant: Any = None, disconnected_inputs: str = 'raise', *, block_size: int | None = None) -> tuple[Variable, ...]: ...
@overload
def jacobian(expression: Callable[_P, Any], argnums: Any = 0, has_aux: bool = False, *, block_size: int | None = None) -> Compiled[_P, Any]: ...
@overload
def jvp(outputs: Variable, wrt: Any, tangents: Any, disconnected_outputs: str = 'ignore', return_disconnected: str = 'zero') -> Variable: ...
@overload
def jvp(outputs: list[_V], wrt: Any, tangents: Any, disconnected_outputs: str = 'ignore', return_disconnected: str = 'zero') -> list[Variable]: ...
@overload
def jvp(outputs: tuple[_V, ...], wrt: Any, tangents: Any, disconnected_outputs: str = 'ignore', return_disconnected: str = 'zero') -> tuple[Variable, ...]: ...
@overload
def jvp(outputs: Callable[_P, Any], primals: Any, tangents: Any, has_aux: bool = False) -> Any: ...
@overload
def loop(step: Callable[..., Mapping[str, Any]], over: Any = None, init: Any = None, n_steps: Any = None, given: Any = None, *, non_sequences: Any = None, reverse: bool = False, go_backwards: bool = False, truncate: int | None = None, window: int | None = None, name: str | None = None, strict: bool = False) -> Loop: ...
@overload
def loop(step: Callable[..., Variable], over: Any = None, init: Operand | Taps | None = None, n_steps: Any = None, given: Any = None, *, non_sequences: Any = None, reverse: bool = False, go_backwards: bool = False, truncate: int | None = None, window: int | None = None, name: str | None = None, strict: bool = False) -> LoopOutput: ...
@overload
def loop(step: Callable[..., Any], over: Any, init: dict[str, Any] | list[Any] | tuple[Any, ...], n_steps: Any = None, given: Any = None, *, non_sequences: Any = None, reverse: bool = False, go_backwards: bool = False, truncate: int | None = None, window: int | None = None, name: str | None = None, strict: bool = False) -> Loop: ...
@overload
def loop(step: Callable[..., Any], over: Any = None, init: Any = None, n_steps: Any = None, given: Any = None, *, non_sequences: Any = None, reverse: bool = False, go_backwards: bool = False, truncate: int | None = None, window: int | None = None, name: str | None = None, strict: bool = False) -> Any: ...
@overload
def map(fn: Callable[..., Variable | tuple[Variable, until]], sequences: Any, non_sequences: Any = None, truncate_gradient: int = -1, go_backwards: bool = False, mode: Any = None, name: str | None = None) -> tuple[Variable, OrderedUpdates]: ...
@overload
def map(fn: Callable[..., _Several], sequences: Any, non_sequences: Any = None, truncate_gradient: int = -1, go_backwards: bool = False, mode: Any = None, name: str | None = None) -> tuple[list[Variable], OrderedUpdates]: ...
@overload
def map(fn: Callable[..., Any], sequences: Any, non_sequences: Any = None, truncate_gradient: int = -1, go_backwards: bool = False, mode: Any = None, name: str | None = None) -> tuple[Any, OrderedUpdates]: ...
nan: float
newaxis: None
pi: float
@overload
def reduce(fn: Callable[..., Variable | tuple[Variable, until]], sequences: Any, outputs_info: Any, non_sequences: Any = None, go_backwards: bool = False, mode: Any = None, name: str | None = None) -> tuple[Variable, OrderedUpdates]: ...
@overload
def reduce(fn: Callable[..., _Several], sequences: Any, outputs_info: Any, non_sequences: Any = None, go_backwards: bool = False, mode: Any = None, name: str | None = None) -> tuple[list[Variable], OrderedUpdates]: ...
@overload
def reduce(fn: Callable[..., Any], sequences: Any, outputs_info: Any, non_sequences: Any = None, go_backwards: bool = False, mode: Any = None, name: str | None = None) -> tuple[Any, OrderedUpdates]: ...
@overload
def scan(fn: Callable[..., Variable | tuple[Variable, until]], sequences: Any = None, outputs_info: Any = None, non_sequences: Any = None, n_steps: Any = None, truncate_gradient: int = -1, go_backwards: bool = False, mode: Any = None, name: str | None = None, profile: Any = False, allow_gc: bool | None = None, strict: bool = False, return_list: Literal[False] = False) -> tuple[Variable, OrderedUpdates]: ...
@overload
def scan(fn: Callable[..., _Several], sequences: Any = None, outputs_info: Any = None, non_sequences: Any = None, n_steps: Any = None, truncate_gradient: int = -1, go_backwards: bool = False, mode: Any = None, name: str | None = None, profile: Any = False, allow_gc: bool | None = None, strict: bool = False, return_list: Literal[False] = False) -> tuple[list[Variable], OrderedUpdates]: ...
@overload
def scan(fn: Callable[..., Any], sequences: Any = None, outputs_info: Any = None, non_sequences: Any = None, n_steps: Any = None, truncate_gradient: int = -1, go_backwards: bool = False, mode: Any = None, name: str | None = None, profile: Any = False, allow_gc: bool | None = None, strict: bool = False, return_list: bool = False) -> tuple[Any, OrderedUpdates]: ...
@overload
def scan(fn: Callable[..., Any], sequences: Any = None, outputs_info: Any = None, non_sequences: Any = None, n_steps: Any = None, truncate_gradient: int = -1, go_backwards: bool = False, mode: Any = None, name: str | None = None, profile: Any = False, allow_gc: bool | None = None, strict: bool = False, return_list: bool = False, *, init: Any = ...) -> Any: ...
def shared(value: Operand, name: str | None = None, borrow: bool = False, shape: Sequence[int | None] | None = None, dtype: Any = None) -> SharedVariable: ...
@overload
def value_and_grad(fn: Compiled[_P, Any], argnums: Any = 0, has_aux: bool = False, *, wrt: Any = None) -> Compiled[_P, tuple[Any, Any]]: ...
@overload
def value_and_grad(fn: Callable[_P, Any], argnums: Any = 0, has_aux: bool = False, *, wrt: Any = None) -> Compiled[_P, tuple[Any, Any]]: ...
@overload
def vjp(outputs: Any, wrt: Variable, cotangents: Any, consider_constant: Any = None, disconnected_inputs: str = 'raise', return_disconnected: str = 'zero') -> Variable: ...
@overload
def vjp(outputs: Any, wrt: list[_V], cotangents: Any, consider_constant: Any = None, disconnected_inputs: str = 'raise', return_disconnected: str = 'zero') -> list[Variable]: ...
@overload
def vjp(outputs: Any, wrt: tuple[_V, ...], cotangents: Any, consider_constant: Any = None, disconnected_inputs: str = 'raise', return_disconnected: str = 'zero') -> tuple[Variable, ...]: ...
@overload
def vjp(outputs: Callable[_P, Any], *primals: Any, has_aux: bool = False) -> Any: ...
def vmap(f: Callable[_P, _R], in_axes: Any = 0, out_axes: Any = 0) -> Callable[_P, _R]: ...


__all__ = [
    'AxisError',
    'Compiled',
    'Device',
    'DeviceError',
    'DISCONNECTED',
    'DisconnectedInputError',
    'ForgottenUpdatesWarning',
    'Function',
    'GradientError',
    'In',
    'InternalError',
    'LinAlgError',
    'Loop',
    'LoopOutput',
    'Lop',
    'MissingInputError',
    'NonScalarCostError',
    'OrderedUpdates',
    'Out',
    'ParseError',
    'Print',
    'RandomStream',
    'Rop',
    'RscanError',
    'RscanIndexError',
    'RscanOverflowError',
    'RscanTypeError',
    'RscanValueError',
    'ScanError',
    'ScanTypeError',
    'ShapeError',
    'SharedVariable',
    'Taps',
    'UnsupportedError',
    'UnusedInputError',
    'Variable',
    '__version__',
    'as_variable',
    'compile',
    'config',
    'constant',
    'debugprint',
    'devices',
    'error_page',
    'errors',
    'eval',
    'foldl',
    'foldr',
    'function',
    'grad',
    'hessian',
    'hvp',
    'jacobian',
    'jvp',
    'linalg',
    'loop',
    'map',
    'numeric_grad',
    'ode',
    'optim',
    'pp',
    'print_',
    'random',
    'reduce',
    'scan',
    'scan_checkpoints',
    'shared',
    'show',
    'special',
    'stats',
    'taps',
    'tensor',
    'typing',
    'until',
    'value_and_grad',
    'verify_grad',
    'vjp',
    'vmap',
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
    'batched_dot',
    'dot',
    'inner',
    'kron',
    'matmul',
    'outer',
    'tensordot',
    'vdot',
    'matrix_transpose',
    'add',
    'sub',
    'mul',
    'fma',
    'div',
    'floordiv',
    'mod',
    'fmod',
    'neg',
    'abs',
    'sign',
    'square',
    'sqrt',
    'rsqrt',
    'reciprocal',
    'minimum',
    'maximum',
    'hypot',
    'atan2',
    'copysign',
    'eq',
    'ne',
    'lt',
    'le',
    'gt',
    'ge',
    'isnan',
    'isinf',
    'isfinite',
    'signbit',
    'logical_and',
    'logical_or',
    'logical_xor',
    'logical_not',
    'bit_and',
    'bit_or',
    'bit_xor',
    'invert',
    'shift_left',
    'shift_right',
    'floor',
    'ceil',
    'trunc',
    'exp',
    'exp2',
    'expm1',
    'log',
    'log2',
    'log10',
    'log1p',
    'logaddexp',
    'sin',
    'cos',
    'tan',
    'asin',
    'acos',
    'atan',
    'sinh',
    'cosh',
    'tanh',
    'asinh',
    'acosh',
    'atanh',
    'sigmoid',
    'softplus',
    'log_sigmoid',
    'relu',
    'silu',
    'erf',
    'erfc',
    'erfinv',
    'gammaln',
    'digamma',
    'trigamma',
    'tetragamma',
    'xlogy',
    'deg2rad',
    'rad2deg',
    'subtract',
    'multiply',
    'divide',
    'true_divide',
    'true_div',
    'negative',
    'absolute',
    'remainder',
    'floor_divide',
    'int_div',
    'equal',
    'not_equal',
    'less',
    'less_equal',
    'greater',
    'greater_equal',
    'arcsin',
    'arccos',
    'arctan',
    'arctan2',
    'arcsinh',
    'arccosh',
    'arctanh',
    'sgn',
    'sqr',
    'bitwise_and',
    'bitwise_or',
    'bitwise_xor',
    'bitwise_not',
    'bitwise_invert',
    'left_shift',
    'right_shift',
    'bitwise_left_shift',
    'bitwise_right_shift',
    'fix',
    'expit',
    'psi',
    'degrees',
    'radians',
    'lgamma',
    'astype',
    'cast',
    'clip',
    'fabs',
    'isclose',
    'nan_to_num',
    'pow',
    'power',
    'rint',
    'round',
    'switch',
    'where',
    'angle',
    'around',
    'cbrt',
    'conj',
    'conjugate',
    'divmod',
    'float_power',
    'fmax',
    'fmin',
    'gcd',
    'heaviside',
    'imag',
    'iscomplex',
    'isneginf',
    'isposinf',
    'isreal',
    'lcm',
    'ldexp',
    'logaddexp2',
    'modf',
    'positive',
    'real',
    'real_if_close',
    'sinc',
    'unwrap',
    'all',
    'amax',
    'amin',
    'any',
    'argmax',
    'argmin',
    'argsort',
    'average',
    'count_nonzero',
    'cumprod',
    'cumsum',
    'diff',
    'log_softmax',
    'logsumexp',
    'max',
    'max_and_argmax',
    'mean',
    'min',
    'prod',
    'ptp',
    'softmax',
    'sort',
    'std',
    'sum',
    'var',
    'corrcoef',
    'cov',
    'cumulative_prod',
    'cumulative_sum',
    'ediff1d',
    'histogram',
    'histogram_bin_edges',
    'median',
    'nanargmax',
    'nanargmin',
    'nancumprod',
    'nancumsum',
    'nanmax',
    'nanmean',
    'nanmedian',
    'nanmin',
    'nanpercentile',
    'nanprod',
    'nanquantile',
    'nanstd',
    'nansum',
    'nanvar',
    'percentile',
    'quantile',
    'trapezoid',
    'bincount',
    'cummax',
    'cummin',
    'digitize',
    'interp',
    'one_hot',
    'pad',
    'searchsorted',
    'segment_sum',
    'top_k',
    'allclose',
    'argpartition',
    'argwhere',
    'array_equal',
    'array_equiv',
    'flatnonzero',
    'intersect1d',
    'isin',
    'lexsort',
    'partition',
    'ravel_multi_index',
    'setdiff1d',
    'setxor1d',
    'union1d',
    'unique',
    'unique_counts',
    'unique_inverse',
    'unique_values',
    'unravel_index',
    'array_split',
    'atleast_1d',
    'atleast_2d',
    'broadcast_arrays',
    'broadcast_like',
    'broadcast_to',
    'concatenate',
    'copy',
    'expand_dims',
    'flatten',
    'flip',
    'fliplr',
    'flipud',
    'hstack',
    'join',
    'moveaxis',
    'ndim',
    'permute_dims',
    'ravel',
    'repeat',
    'reshape',
    'roll',
    'rot90',
    'shape',
    'size',
    'split',
    'squeeze',
    'stack',
    'swapaxes',
    'tile',
    'transpose',
    'vstack',
    'append',
    'atleast_3d',
    'block',
    'column_stack',
    'concat',
    'delete',
    'dsplit',
    'dstack',
    'hsplit',
    'insert',
    'resize',
    'rollaxis',
    'trim_zeros',
    'unstack',
    'vsplit',
    'alloc',
    'arange',
    'diag',
    'empty',
    'empty_like',
    'eye',
    'fill',
    'full',
    'full_like',
    'identity',
    'linspace',
    'ones',
    'ones_like',
    'tri',
    'tril',
    'triu',
    'zeros',
    'zeros_like',
    'array',
    'asanyarray',
    'asarray',
    'bartlett',
    'blackman',
    'diag_indices',
    'diag_indices_from',
    'diagflat',
    'fill_diagonal',
    'fromfunction',
    'geomspace',
    'hamming',
    'hanning',
    'indices',
    'ix_',
    'logspace',
    'meshgrid',
    'tril_indices',
    'tril_indices_from',
    'triu_indices',
    'triu_indices_from',
    'vander',
    'convolve',
    'correlate',
    'cross',
    'einsum',
    'matvec',
    'trace',
    'vecdot',
    'vecmat',
    'poly',
    'polyadd',
    'polyder',
    'polyfit',
    'polyint',
    'polymul',
    'polysub',
    'polyval',
    'apply_along_axis',
    'apply_over_axes',
    'choose',
    'compress',
    'extract',
    'piecewise',
    'put_along_axis',
    'select',
    'assert_',
    'consider_constant',
    'disconnected_grad',
    'grad_clip',
    'ifelse',
    'stop_gradient',
    'diagonal',
    'inc_subtensor',
    'nonzero',
    'set_subtensor',
    'take',
    'take_along_axis',
]
