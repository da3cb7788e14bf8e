"""What NumPy and SciPy have and rscan has not, and what to do instead: the text of the AttributeError, and docs/absent.md."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

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
    **_each("frombuffer fromstring fromiter", _FILES),
    "from_dlpack": "what takes arrays takes what has __dlpack__ as it is; np.from_dlpack(x) is an array in the same memory",
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
    **_each("frexp", "the bits of floats are not there; rs.log2 and rs.floor give an exponent"),
    "emath": _COMPLEX,
    "einsum_path": "rs.einsum chooses the order by itself",
    "row_stack": "rs.vstack",
    "euler_gamma": "np.euler_gamma, a number",
    **_each("testing test exceptions", "np's own: tests and errors know arrays"),
    **_each("False_ True_", "False and True"),
    **_each("char strings", "there are no texts: number them, as np.unique(texts, return_inverse=True) does"),
    **_each("core ctypeslib f2py lib", "parts of NumPy itself, which work on arrays"),
    **_each("get_include show_config show_runtime", "of rscan `python -m rscan doctor` says it"),
    **_each("getbufsize setbufsize", "there are no buffers to set"),
    **_each("dtypes little_endian", _TYPES),
}

#: By names of JAX's, of its parts and of what they hold.
JAX: dict[str, str] = {
    "fori_loop": "rs.fori(lower, upper, body, x)",
    "cond": "rs.ifelse(condition, a, b): only what is taken is computed",
    **_each("lax numpy", "its functions are here: rs.loop, rs.fori, rs.ifelse, rs.sum"),
    "nn": "its functions are here: rs.relu, rs.softmax, rs.sigmoid, rs.logsumexp",
    **_each("dynamic_slice dynamic_slice_in_dim", "x[i + rs.arange(n)]"),
    "dynamic_index_in_dim": "x[i]",
    **_each("dynamic_update_slice dynamic_update_slice_in_dim", "x.at[i + rs.arange(n)].set(values)"),
    **_each("tree tree_map tree_util", "dicts, lists, tuples and dataclasses are taken as they are; their items are a matter of Python"),
    **_each("checkpoint remat", "rs.scan_checkpoints; what is cheaper computed again is not kept"),
    **_each("jacfwd jacrev", "rs.jacobian"),
    "device_put": "rs.to_device",
    "gelu": "0.5 * x * (1 + rs.erf(x / np.sqrt(2.0)))",
    "swish": "rs.silu",
    "elu": "rs.where(x > 0, x, rs.expm1(rs.minimum(x, 0.0)))",
    "leaky_relu": "rs.where(x > 0, x, 0.01 * x)",
    "glu": "a * rs.sigmoid(b), of the halves a, b = rs.split(x, 2, -1)",
    "layer_norm": "(x - rs.mean(x, -1, keepdims=True)) / rs.sqrt(rs.var(x, -1, keepdims=True) + 1e-5) * scale + shift",
    "standardize": "(x - rs.mean(x, -1, keepdims=True)) / rs.sqrt(rs.var(x, -1, keepdims=True) + 1e-5)",
    "dropout": "rs.where(rs.random.bernoulli(key, 0.9, x.shape), x / 0.9, 0.0)",
}

_SVD = "rs.linalg.svd gives it"
_PLACES = "index a vector with places: c[rs.arange(n)[:, None] - rs.arange(n)]"
_BANDS = "rs.linalg.solve of the full matrix, or Thomas's algorithm as an rs.loop"
_SPECTRUM = "of symmetric matrices functions of the eigenvalues: w, v = rs.linalg.eigh(a); (v * rs.sqrt(w)) @ v.T"
_COMPLEX_EIGEN = "of symmetric matrices rs.linalg.eigh; others have complex eigenvalues, and there are no complex numbers"

#: By names in `numpy.linalg` and `scipy.linalg`.
LINALG: dict[str, str] = {
    **_each("eig eigvals schur hessenberg", _COMPLEX_EIGEN),
    **_each("LinAlgError", "rs.LinAlgError"),
    **_each("test", "np's own: tests know arrays"),
    **_each("sqrtm logm fractional_matrix_power funm signm cosm sinm", _SPECTRUM),
    **_each("lu lu_factor lu_solve ldl", "rs.linalg.solve, det and slogdet factorise by themselves; rs.linalg.cholesky, rs.linalg.qr"),
    **_each("cho_factor", "rs.linalg.cholesky, whose factor rs.linalg.cho_solve takes"),
    **_each("null_space orth polar pinvh subspace_angles diagsvd", _SVD),
    **_each("toeplitz circulant hankel", _PLACES),
    **_each("solve_banded solveh_banded solve_toeplitz solve_circulant", _BANDS),
    **_each("solve_sylvester solve_lyapunov solve_continuous_lyapunov solve_discrete_lyapunov", "rs.linalg.solve of rs.kron's matrices"),
}

_KEYS = "draws are functions of a key: key = rs.random.key(0); rs.random.split(key) gives more, rs.random.Stream() hands them out"
_NORMAL = "rs.random.normal(key, shape)"
_UNIFORM = "rs.random.uniform(key, shape)"

#: By names in `numpy.random`.
RANDOM: dict[str, str] = {
    **_each("seed default_rng RandomState Generator SeedSequence get_state set_state mtrand", _KEYS),
    **_each("BitGenerator MT19937 PCG64 PCG64DXSM Philox SFC64 bit_generator get_bit_generator set_bit_generator", _KEYS),
    **_each("rand random random_sample ranf sample", _UNIFORM),
    **_each("randn standard_normal", _NORMAL),
    **_each("randint random_integers bytes", "rs.random.integers(key, low, high, shape)"),
    **_each("shuffle", "rs.random.permutation(key, x) gives the shuffled copy"),
    **_each("standard_cauchy", "rs.random.cauchy(key, shape)"),
    **_each("standard_exponential", "rs.random.exponential(key, shape)"),
    **_each("standard_gamma", "rs.random.gamma(key, a, shape)"),
    **_each("standard_t", "rs.random.student_t(key, df, shape)"),
    **_each("f", "(rs.random.chisquare(k1, m) / m) / (rs.random.chisquare(k2, n) / n)"),
    **_each("rayleigh", "scale * rs.sqrt(2 * rs.random.exponential(key, shape))"),
    **_each("power", "rs.random.uniform(key, shape) ** (1 / a)"),
    **_each("negative_binomial", "rs.random.poisson(k2, rs.random.gamma(k1, n) * (1 - p) / p)"),
    **_each("noncentral_chisquare noncentral_f", "rs.random.chisquare(k1, df + 2 * rs.random.poisson(k2, nonc / 2))"),
    **_each("triangular", "its quantile function of rs.random.uniform(key, shape), by rs.where"),
    **_each("wald vonmises hypergeometric logseries zipf", "rejections in an rs.loop that ends by rs.until, or rs.random.choice with p"),
    **_each("test", "np's own: tests know arrays"),
}

_INVERSE = "Newton's method on rs.special's function, some steps in rs.loop"
_DISTRIBUTION = "rs.stats' cdf of the distribution"
_BESSEL = "rs.special has i0, i0e, i1, i1e; others by their series or recurrences in rs.loop, or SciPy's of arrays before the function"
_POLYNOMIALS = "their recurrence of three terms in rs.loop; nodes and weights are arrays: SciPy's before the function"

#: By names in `scipy.special`.
SPECIAL: dict[str, str] = {
    **_each("gammaincinv gammainccinv betaincinv betainccinv erfcinv stdtrit chdtri fdtri pdtri bdtri nbdtri", _INVERSE),
    **_each("bdtr bdtrc chdtr chdtrc fdtr fdtrc gdtr gdtrc nbdtr nbdtrc pdtr pdtrc stdtr", _DISTRIBUTION),
    **_each("betaincc", "rs.special.betainc(b, a, 1 - x)"),
    **_each("j0 j1 jn jv jve y0 y1 yn yv yve k0 k0e k1 k1e kn kv kve iv ive spherical_jn spherical_yn spherical_in spherical_kn", _BESSEL),
    **_each("legendre_p eval_legendre eval_chebyt eval_chebyu eval_hermite eval_laguerre roots_legendre roots_hermite", _POLYNOMIALS),
    **_each("loggamma", "rs.special.gammaln of positive numbers"),
    **_each("rgamma", "rs.exp(-rs.special.gammaln(x)); of positive numbers"),
    **_each("erfcx", "2 * rs.exp(x * x + rs.special.log_ndtr(-x * 2**0.5))"),
    **_each("exprel", "rs.where(x == 0, 1.0, rs.expm1(x) / x)"),
    **_each("boxcox", "rs.expm1(lmbda * rs.log(x)) / lmbda; rs.log(x) where lmbda is 0"),
    **_each("inv_boxcox", "rs.exp(rs.log1p(lmbda * y) / lmbda)"),
    **_each("cbrt exp2 round", "rs.cbrt, rs.exp2, rs.round"),
    **_each("exp10", "10.0 ** x"),
    **_each("huber", "rs.where(rs.abs(r) <= d, 0.5 * r * r, d * (rs.abs(r) - 0.5 * d))"),
    **_each("pseudo_huber", "d * d * (rs.sqrt(1 + (r / d) ** 2) - 1)"),
    **_each("lambertw", "Newton's method on w * rs.exp(w) = x, some steps in rs.loop"),
    **_each("perm", "rs.special.poch(n - k + 1, k)"),
    **_each("zetac", "rs.special.zeta(x) - 1"),
    **_each("expi exp1 expn sici shichi fresnel dawsn erfi", "a series or a quadrature: rs.sum(weights * f(nodes)) with np's Gauss nodes"),
    **_each("ellipk ellipe ellipkm1", "the arithmetic-geometric mean, some steps in rs.loop"),
    **_each("hyp0f1 hyp1f1 hyp2f1 hyperu", "their series in an rs.loop that ends by rs.until"),
}

_FROM_DENSITY = "write its log-density with rs.special's functions"

#: By names in `scipy.stats`.
STATS: dict[str, str] = {
    **_each("rayleigh", "rs.stats.weibull_min.logpdf(x, 2.0, 0.0, 2**0.5 * scale)"),
    **_each("erlang", "rs.stats.gamma"),
    **_each("chi", "rs.stats.chi2.logpdf(x * x, df) + rs.log(2 * x)"),
    **_each("loguniform reciprocal", "rs.stats.uniform.logpdf(rs.log(x), rs.log(a), rs.log(b / a)) - rs.log(x)"),
    **_each("betabinom", "rs.special.betaln(k + a, n - k + b) - rs.special.betaln(a, b) + rs.log(rs.special.binom(n, k))"),
    **_each("wishart matrix_normal multivariate_t invwishart", "rs.linalg.slogdet, cholesky and rs.special.multigammaln"),
    **_each("invgauss levy maxwell moyal nakagami lomax burr fisk gompertz genextreme genpareto skellam rice zipf", _FROM_DENSITY),
    **_each("gaussian_kde", "rs.logsumexp of rs.stats.norm.logpdf at all pairs"),
    **_each("zscore", "(x - rs.mean(x)) / rs.std(x)"),
    **_each("pearsonr spearmanr", "rs.corrcoef, of the numbers or of rs.argsort(rs.argsort(x))"),
    **_each("ttest_ind kstest ks_2samp", "tests are of data: SciPy on arrays"),
}

_SCIPY = "functions of SciPy's that are not here go on arrays, before or after the compiled function"


def missing(module: str, name: str, theirs: Any, table: dict[str, str], otherwise: str = "") -> AttributeError:
    """The error of a name that a module of ours has not. `theirs`: the module that may have it, or its name."""
    plain = f"module '{module}' has no attribute '{name}'"
    if name.startswith("_"):
        return AttributeError(plain)
    if isinstance(theirs, str) and theirs.startswith("numpy"):
        theirs = import_module(theirs)
    if not isinstance(theirs, str) and hasattr(theirs, name):
        return AttributeError(f"{plain}, which {theirs.__name__} has: {table.get(name, _PYTHON)}")
    text = table.get(name) or _within(module, name) or _alike(module, name) or otherwise
    return AttributeError(f"{plain}: {text}" if text else plain)


#: Modules of functions, by what they are for.
_INNER = ("linalg", "random", "special", "fft", "stats", "optim", "ode")


def _within(module: str, name: str) -> str:
    """Where a name stands that a module within has."""
    if module != "rscan":
        return ""
    found = [f"rs.{inner}.{name}" for inner in _INNER if name in dir(import_module(f"rscan.{inner}"))]
    return f"it is {' or '.join(found)}" if found else ""


def _alike(module: str, name: str) -> str:
    """The names of a module that one may be a slip of."""
    import difflib  # errors alone need it

    found = difflib.get_close_matches(name, dir(import_module(module)), 3, 0.75)
    return f"did you mean {' or '.join(f'`{own}`' for own in found)}?" if found else ""


def of_numpy(name: str) -> AttributeError:
    """That of `rs.<name>`."""
    return missing("rscan", name, np, JAX | NUMPY)


def public(module: str, names: list[str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a module: what names that are not there say, and which are there."""
    theirs, table, otherwise = _MODULES.get(module, ("", {}, ""))

    def absent(name: str) -> Any:
        raise missing(module, name, theirs, table, otherwise)

    return absent, lambda: sorted(names)


#: By names, since some of NumPy's modules take time to import.
_MODULES: dict[str, tuple[str, dict[str, str], str]] = {
    "rscan.linalg": ("numpy.linalg", LINALG, ""),
    "rscan.random": ("numpy.random", RANDOM, ""),
    "rscan.fft": ("numpy.fft", {"test": "np's own: tests know arrays"}, ""),
    "rscan.special": ("scipy.special", SPECIAL, _SCIPY),
    "rscan.stats": ("scipy.stats", STATS, _SCIPY),
}


#: What variables have by other names, by those of PyTorch's tensors.
TENSORS: dict[str, str] = {
    "unsqueeze": "rs.expand_dims(x, axis)",
    "permute": "x.transpose(…)",
    "view": "x.reshape(…)",
    "float": "x.astype('float32')",
    "double": "x.astype('float64')",
    "long": "x.astype('int64')",
    "detach": "rs.stop_gradient(x)",
    "clamp": "rs.clip(x, low, high)",
    "numel": "x.size",
    "dim": "x.ndim",
    "cat": "rs.concatenate([a, b])",
    "backward": "rs.grad(cost, x)",
    "grad": "rs.grad(cost, x)",
    "requires_grad": "rs.grad(cost, x) of any x",
    "flat": "x.ravel()",
    "mm": "a @ b",
    "bmm": "a @ b",
    "matmul": "a @ b",
}


def attribute(cls: str, name: str, functions: Any) -> str:
    """The text of the AttributeError of a variable, whose functions stand in a module."""
    text = f"{cls!r} object has no attribute {name!r}"
    if name.startswith("_"):
        return text
    instead = TENSORS.get(name) or (f"rs.{name}(x)" if callable(getattr(functions, name, None)) else "")
    return f"{text}: {instead}" if instead else text


# What to do where a variable is taken for its value, by how it was asked for it.

#: By `float(x)`.
OF_FLOAT = ["functions of `math` and float() take numbers: rs.exp(x), rs.log(x), … take variables, as np.exp(x) and np.log(x) do"]

#: By `f"{x:.2f}"`.
OF_FORMAT = 'rs.Print("text")(x) prints the value while the function runs; f"{x}" is the expression'

#: By `for row in x`, `a, b = x`, `zip(x, y)` and `enumerate(x)`.
OF_ITERATION = [
    "a, b = (x[i] for i in range(2)) takes two elements; where the function is given variables, rs.tensor(dtype, shape=(2,)) has an extent",
    "rs.loop(step, over=x) goes through the rows; over=(x, y) is what zip is, over=(rs.arange(x.shape[0]), x) what enumerate is",
]

#: By `table[x]` of a list, by `range(n)`, and by NumPy's functions that take extents.
OF_INDEX = [
    "rs.constant(table)[i] reads a table, and rs.stack(items)[i] a list of variables",
    "what is done n times is a loop: rs.loop(step, init=…, n_steps=n), or rs.fori(0, n, body, init)",
    "arrays of extents that are variables are made by rs.zeros(x.shape), rs.ones, rs.full, rs.arange(n), rs.random.normal(key, x.shape)",
    "a text or a list times a variable is so many copies of it: pass 0.3 for '0.3', and rs.full(n, x) for [x] * n",
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
