"""Every function of variables, gathered for the methods of `Variable`."""

from . import linalg
from ._redirect import from_numpy_function, from_ufunc
from .indexing import At, diagonal, getitem, inc_subtensor, nonzero, set_subtensor, take, take_along_axis
from .linalg import batched_dot, dot, inner, kron, matmul, outer, tensordot, vdot
from .ops_control import *  # noqa: F403
from .ops_create import *  # noqa: F403
from .ops_elementwise import COMPOSED, ROWS, astype, cast, clip, isclose, nan_to_num, round, switch, where
from .ops_reduce import *  # noqa: F403
from .ops_shape import *  # noqa: F403

globals().update({name: function for name, function in ROWS.items() if name not in COMPOSED})

#: Names that `rscan` exports: every public function here.
__all__ = sorted(
    name for name, value in globals().items() if callable(value) and not name.startswith("_") and name not in ("At", "from_numpy_function", "from_ufunc", "getitem")
)  # fmt: skip
