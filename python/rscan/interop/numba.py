"""For numba: compiled functions of rscan as arguments of functions that `numba.njit` compiles, which call them by their address.

numba finds this module by itself where rscan is installed; elsewhere `import rscan.interop.numba` does. A function has an address where it
takes and returns float64, float32 or int64 scalars (docs/interop.md); numba sees a first-class function of that signature.

>>> from rscan.interop import numba
>>> from numba import njit
>>> x = rs.dscalar("x")
>>> f = rs.function([x], x**2)
>>> @njit
... def total(f, n):
...     result = 0.0
...     for i in range(n):
...         result += f(float(i))
...     return result
>>> total(f, 4)
14.0
"""

from __future__ import annotations

from .._calling import Caller

__all__: list[str] = []


def register() -> None:
    """Tells numba that functions of rscan follow its protocol of addresses. It may be called again."""
    from numba.core.types import WrapperAddressProtocol
    from numba.experimental import function_type  # noqa: F401  which tells the types of such arguments, and is else imported too late

    WrapperAddressProtocol.register(Caller)


register()
