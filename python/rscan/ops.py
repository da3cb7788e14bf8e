"""Every function of variables, gathered for the methods of `Variable`."""

from . import _rows, indexing, linalg, ops_control, ops_create, ops_elementwise, ops_reduce, ops_search, ops_shape
from ._comparing import COMPARISONS, compared  # noqa: F401
from ._redirect import from_numpy_function, from_ufunc  # noqa: F401
from ._rows import *  # noqa: F403
from .indexing import *  # noqa: F403
from .indexing import At, getitem  # noqa: F401
from .linalg import batched_dot, dot, inner, kron, matmul, outer, tensordot, vdot  # noqa: F401
from .ops_control import *  # noqa: F403
from .ops_create import *  # noqa: F403
from .ops_elementwise import *  # noqa: F403
from .ops_reduce import *  # noqa: F403
from .ops_search import *  # noqa: F403
from .ops_shape import *  # noqa: F403

#: Names that `rscan` exports.
__all__ = list(linalg.PRODUCTS)
for _module in (_rows, ops_elementwise, ops_reduce, ops_search, ops_shape, ops_create, ops_control, indexing):
    __all__ += [_name for _name in _module.__all__ if _name not in __all__]
