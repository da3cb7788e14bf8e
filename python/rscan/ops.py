"""Every function of variables, gathered for the methods of `Variable`."""

from . import (
    _rows,
    indexing,
    linalg,
    ops_build,
    ops_contract,
    ops_control,
    ops_create,
    ops_elementwise,
    ops_join,
    ops_math,
    ops_numeric,
    ops_pieces,
    ops_polynomial,
    ops_quantiles,
    ops_reduce,
    ops_search,
    ops_select,
    ops_sets,
    ops_shape,
    ops_statistics,
)
from ._comparing import COMPARISONS, compared  # noqa: F401
from ._redirect import from_numpy_function, from_ufunc  # noqa: F401
from ._rows import *  # noqa: F403
from .indexing import *  # noqa: F403
from .indexing import At, getitem  # noqa: F401
from .linalg import batched_dot, dot, inner, kron, matmul, matrix_transpose, outer, tensordot, vdot  # noqa: F401
from .ops_build import *  # noqa: F403
from .ops_contract import *  # noqa: F403
from .ops_control import *  # noqa: F403
from .ops_create import *  # noqa: F403
from .ops_elementwise import *  # noqa: F403
from .ops_join import *  # noqa: F403
from .ops_math import *  # noqa: F403
from .ops_numeric import *  # noqa: F403
from .ops_pieces import *  # noqa: F403
from .ops_polynomial import *  # noqa: F403
from .ops_quantiles import *  # noqa: F403
from .ops_reduce import *  # noqa: F403
from .ops_search import *  # noqa: F403
from .ops_select import *  # noqa: F403
from .ops_sets import *  # noqa: F403
from .ops_shape import *  # noqa: F403
from .ops_statistics import *  # noqa: F403

#: Modules whose names `rscan` exports.
MODULES = (
    _rows, ops_elementwise, ops_math, ops_reduce, ops_quantiles, ops_statistics, ops_search, ops_sets, ops_shape, ops_pieces,
    ops_join, ops_create, ops_build, ops_numeric, ops_contract, ops_polynomial, ops_select, ops_control, indexing,
)  # fmt: skip

#: Names that `rscan` exports.
__all__ = [*linalg.PRODUCTS, "matrix_transpose"]
for _module in MODULES:
    __all__ += [_name for _name in _module.__all__ if _name not in __all__]
