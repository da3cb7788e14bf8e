"""What NumPy has and rscan has not, and what to do instead: the text of the AttributeError."""

from __future__ import annotations

import numpy as np


def _each(names: str, instead: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), instead)


_COMPLEX = "there are no complex numbers; keep real and imaginary parts in two arrays"
_FILES = "read or write with NumPy, and pass the arrays to the compiled function"
_DTYPE = "dtypes are given by name or as NumPy's: rs.cast(x, 'int32'), dtype=np.int32"
_TYPES = "ask NumPy about dtypes: they are known before the function runs, x.dtype is a name"
_PLACE = "variables cannot be changed in place: x.at[index].set(value) gives the changed copy"
_PRINTING = "values are printed by NumPy once the function ran, and by rs.print while it runs"
_PYTHON = "use NumPy on arrays before or after the compiled function"
_PIECES = "write the indices out, or build the array with rs.concatenate and rs.stack"
_CALLS = "write the function with variables: rs.vmap maps it over rows, rs.compile compiles it"

_DATES = "there are no dates: count days as integers"
_WARNINGS = "floats do not warn: ask rs.isfinite, or say rs.assert_"

#: By names in `numpy`.
NUMPY: dict[str, str] = {
    **_each("cdouble clongdouble complex128 complex256 complex64 complexfloating csingle sort_complex iscomplexobj isrealobj", _COMPLEX),
    **_each("fromfile fromregex genfromtxt loadtxt savetxt savez savez_compressed memmap", _FILES),
    **_each("frombuffer fromstring fromiter from_dlpack", _FILES),
    **_each("bool bool_ byte bytes_ character double flexible float128 float16 float32 float64 floating generic half", _DTYPE),
    **_each("inexact int16 int32", _DTYPE),
    **_each("int64 int8 int_ intc integer intp long longdouble longlong number object_ short signedinteger single str_", _DTYPE),
    **_each("ubyte uint uint16", _DTYPE),
    **_each("uint32 uint64 uint8 uintc uintp ulong ulonglong unsignedinteger ushort void datetime64 timedelta64 dtype", _DTYPE),
    **_each("can_cast common_type finfo iinfo isdtype issubdtype min_scalar_type mintypecode promote_types result_type typename", _TYPES),
    **_each("isfortran isscalar iterable may_share_memory shares_memory typecodes sctypeDict ScalarType broadcast_shapes", _TYPES),
    **_each("copyto place putmask", _PLACE),
    **_each("array2string array_repr array_str base_repr binary_repr format_float_positional format_float_scientific", _PRINTING),
    **_each("get_printoptions set_printoptions printoptions info", _PRINTING),
    **_each("busday_count busday_offset busdaycalendar is_busday datetime_as_string datetime_data isnat", _DATES),
    **_each("errstate geterr geterrcall seterr seterrcall", _WARNINGS),
    **_each("mgrid ogrid", "rs.meshgrid and rs.indices"),
    **_each("r_ c_ s_ index_exp", _PIECES),
    **_each("bmat asmatrix", "rs.block joins matrices"),
    **_each("frompyfunc vectorize nditer nested_iters ndenumerate ndindex ufunc broadcast flatiter", _CALLS),
    **_each("ascontiguousarray asfortranarray require ndarray asarray_chkfinite", "rs.asarray; memory is laid out by the compiler"),
    **_each("rec recarray record ma", "keep columns and masks in arrays of their own; a dict of variables is a structure everywhere"),
    **_each("polydiv roots poly1d polynomial", "rs.polyval, polyfit, polymul, polyder are there; roots: Newton's method in rs.loop"),
    **_each("histogram2d histogramdd", "rs.digitize each axis, then rs.bincount of rs.ravel_multi_index"),
    **_each("mask_indices", "rs.nonzero of the mask, rs.tril_indices, rs.triu_indices"),
    **_each("packbits unpackbits", "shift and mask: (x[:, None] >> rs.arange(8)) & 1"),
    **_each("frexp nextafter spacing", "the bits of floats are not there; rs.log2 and rs.floor give an exponent"),
    "emath": _COMPLEX,
    "einsum_path": "rs.einsum chooses the order by itself",
    "row_stack": "rs.vstack",
    "euler_gamma": "np.euler_gamma, a number",
    "testing": _PYTHON,
}

#: By names in `numpy.linalg`.
LINALG: dict[str, str] = {
    **_each("eig eigvals", "of symmetric matrices rs.linalg.eigh; others have complex eigenvalues, and there are no complex numbers"),
    **_each("LinAlgError", "rs.LinAlgError"),
}


def missing(module: str, name: str, numpys: object, table: dict[str, str]) -> AttributeError:
    """The error of a name that a module of ours has not."""
    plain = f"module '{module}' has no attribute '{name}'"
    if name.startswith("_") or not hasattr(numpys, name):
        return AttributeError(plain)
    return AttributeError(f"{plain}, which {numpys.__name__} has: {table.get(name, _PYTHON)}")  # type: ignore[attr-defined]


def of_numpy(name: str) -> AttributeError:
    """That of `rs.<name>`."""
    return missing("rscan", name, np, NUMPY)


def of_linalg(name: str) -> AttributeError:
    """That of `rs.linalg.<name>`."""
    return missing("rscan.linalg", name, np.linalg, LINALG)


# What to do where a variable is taken for its value, by how it was asked for it.

#: By `float(x)`.
OF_FLOAT = ["functions of `math` and float() take numbers: rs.exp(x), rs.log(x), … take variables, as np.exp(x) and np.log(x) do"]

#: By `table[x]` of a list, and by `range(n)`.
OF_INDEX = [
    "rs.constant(table)[i] reads a table, and rs.stack(items)[i] a list of variables",
    "what is done n times is a loop: rs.loop(step, init=…, n_steps=n), or rs.fori(0, n, body, init)",
]

_OF_ARRAY = [
    "rs.stack([a, b]) makes an array of variables, where np.array([a, b]) wants numbers",
    "rs.constant(table)[x] reads a table, where table[x] of NumPy's wants numbers",
]


def of_array(module: str) -> list[str]:
    """By NumPy's `asarray`, in a module."""
    library, _, rest = module.partition(".")
    if library != "scipy":
        return _OF_ARRAY
    ours = {"stats": "rs.stats has log-densities: rs.stats.norm.logpdf(x)", "special": "rs.special has its functions"}
    ours |= {"linalg": "rs.linalg has its functions"}
    ours |= {"optimize": "rs.optim and rscan.interop.scipy minimise", "integrate": "rs.ode solves differential equations"}
    known = ours.get(rest.partition(".")[0], "rs.stats, rs.special, rs.linalg, rs.optim and rs.ode take variables")
    return [f"SciPy computes with numbers; {known}"]
