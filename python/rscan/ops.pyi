"""Every function of variables, gathered for the methods of `Variable`. Made by tools/stubs.py."""
# ruff: noqa

from typing import Any
from ._rows import *
from . import _rows as _rows, indexing as __module, indexing as indexing, linalg as linalg, ops_build as ops_build, ops_contract as ops_contract, ops_control as ops_control, ops_create as ops_create, ops_elementwise as ops_elementwise, ops_join as ops_join, ops_math as ops_math, ops_numeric as ops_numeric, ops_pad as ops_pad, ops_pieces as ops_pieces, ops_polynomial as ops_polynomial, ops_quantiles as ops_quantiles, ops_reduce as ops_reduce, ops_search as ops_search, ops_select as ops_select, ops_sets as ops_sets, ops_shape as ops_shape, ops_statistics as ops_statistics
from ._comparing import compared as compared
from ._redirect import from_numpy_function as from_numpy_function, from_ufunc as from_ufunc
from .indexing import At as At, diagonal as diagonal, getitem as getitem, inc_subtensor as inc_subtensor, nonzero as nonzero, set_subtensor as set_subtensor, take as take, take_along_axis as take_along_axis
from .linalg.products import batched_dot as batched_dot, dot as dot, inner as inner, kron as kron, matmul as matmul, outer as outer, tensordot as tensordot, vdot as vdot
from .linalg.systems import matrix_transpose as matrix_transpose
from .ops_build import array as array, asanyarray as asanyarray, asarray as asarray, bartlett as bartlett, blackman as blackman, diag_indices as diag_indices, diag_indices_from as diag_indices_from, diagflat as diagflat, fill_diagonal as fill_diagonal, fromfunction as fromfunction, geomspace as geomspace, hamming as hamming, hanning as hanning, indices as indices, ix_ as ix_, logspace as logspace, meshgrid as meshgrid, tril_indices as tril_indices, tril_indices_from as tril_indices_from, triu_indices as triu_indices, triu_indices_from as triu_indices_from, vander as vander
from .ops_contract import convolve as convolve, correlate as correlate, cross as cross, einsum as einsum, matvec as matvec, trace as trace, vecdot as vecdot, vecmat as vecmat
from .ops_control import assert_ as assert_, consider_constant as consider_constant, disconnected_grad as disconnected_grad, grad_clip as grad_clip, ifelse as ifelse, stop_gradient as stop_gradient
from .ops_create import alloc as alloc, arange as arange, diag as diag, empty as empty, empty_like as empty_like, eye as eye, fill as fill, full as full, full_like as full_like, identity as identity, linspace as linspace, ones as ones, ones_like as ones_like, tri as tri, tril as tril, triu as triu, zeros as zeros, zeros_like as zeros_like
from .ops_elementwise import astype as astype, cast as cast, clip as clip, fabs as fabs, isclose as isclose, nan_to_num as nan_to_num, pow as pow, power as power, rint as rint, round as _around, round as round, switch as switch, where as where
from .ops_join import append as append, atleast_3d as atleast_3d, block as block, column_stack as column_stack, concat as concat, delete as delete, dsplit as dsplit, dstack as dstack, hsplit as hsplit, insert as insert, repeat as repeat, resize as resize, rollaxis as rollaxis, trim_zeros as trim_zeros, unstack as unstack, vsplit as vsplit
from .ops_math import angle as angle, cbrt as cbrt, conj as conj, conjugate as conjugate, diff as diff, divmod as divmod, float_power as float_power, fmax as fmax, fmin as fmin, gcd as gcd, heaviside as heaviside, imag as imag, iscomplex as iscomplex, isneginf as isneginf, isposinf as isposinf, isreal as isreal, lcm as lcm, ldexp as ldexp, logaddexp2 as logaddexp2, modf as modf, positive as positive, real as real, real_if_close as real_if_close, sinc as sinc, unwrap as unwrap
from .ops_numeric import bitwise_count as bitwise_count, gradient as gradient, i0 as i0, kaiser as kaiser, nextafter as nextafter, put as put, spacing as spacing
from .ops_pad import pad as pad
from .ops_pieces import array_split as array_split, roll as roll, split as split, tile as tile
from .ops_polynomial import poly as poly, polyadd as polyadd, polyder as polyder, polyfit as polyfit, polyint as polyint, polymul as polymul, polysub as polysub, polyval as polyval
from .ops_quantiles import median as median, nanmedian as nanmedian, nanpercentile as nanpercentile, nanquantile as nanquantile, percentile as percentile, quantile as quantile
from .ops_reduce import all as all, amax as amax, amin as amin, any as any, argmax as argmax, argmin as argmin, argsort as argsort, average as average, count_nonzero as count_nonzero, cumprod as cumprod, cumsum as cumsum, log_softmax as log_softmax, logsumexp as logsumexp, max as max, max_and_argmax as max_and_argmax, mean as mean, min as min, prod as prod, ptp as ptp, softmax as softmax, sort as sort, std as std, sum as sum, var as var
from .ops_search import bincount as bincount, cummax as cummax, cummin as cummin, digitize as digitize, interp as interp, one_hot as one_hot, searchsorted as searchsorted, segment_max as segment_max, segment_min as segment_min, segment_prod as segment_prod, segment_sum as segment_sum, top_k as top_k
from .ops_select import apply_along_axis as apply_along_axis, apply_over_axes as apply_over_axes, choose as choose, compress as compress, extract as extract, piecewise as piecewise, put_along_axis as put_along_axis, select as select
from .ops_sets import allclose as allclose, argpartition as argpartition, argwhere as argwhere, array_equal as array_equal, array_equiv as array_equiv, flatnonzero as flatnonzero, intersect1d as intersect1d, isin as isin, lexsort as lexsort, partition as partition, ravel_multi_index as ravel_multi_index, setdiff1d as setdiff1d, setxor1d as setxor1d, union1d as union1d, unique as unique, unique_all as unique_all, unique_counts as unique_counts, unique_inverse as unique_inverse, unique_values as unique_values, unravel_index as unravel_index
from .ops_shape import atleast_1d as atleast_1d, atleast_2d as atleast_2d, broadcast_arrays as broadcast_arrays, broadcast_like as broadcast_like, broadcast_to as broadcast_to, concatenate as concatenate, copy as copy, expand_dims as expand_dims, flatten as flatten, flip as flip, fliplr as fliplr, flipud as flipud, hstack as hstack, join as join, moveaxis as moveaxis, ndim as ndim, permute_dims as permute_dims, ravel as ravel, reshape as reshape, rot90 as rot90, shape as shape, size as size, squeeze as squeeze, stack as stack, swapaxes as swapaxes, transpose as transpose, vstack as vstack
from .ops_statistics import corrcoef as corrcoef, cov as cov, cumulative_prod as cumulative_prod, cumulative_sum as cumulative_sum, ediff1d as ediff1d, histogram as histogram, histogram_bin_edges as histogram_bin_edges, nanargmax as nanargmax, nanargmin as nanargmin, nancumprod as nancumprod, nancumsum as nancumsum, nanmax as nanmax, nanmean as nanmean, nanmin as nanmin, nanprod as nanprod, nanstd as nanstd, nansum as nansum, nanvar as nanvar, trapezoid as trapezoid

_module = __module
around = _around
COMPARISONS: dict[Any, Any]
MODULES: tuple[Any, ...]

