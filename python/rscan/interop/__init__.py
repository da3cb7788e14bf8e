"""Bridges to other libraries, one module each, none of which is imported before it is asked for: `from rscan.interop import scipy`.

| module | |
|---|---|
| `scipy` | objectives with exact gradients, Hessians and Hessian-vector products of nested parameters |
| `jax`, `torch`, `pytensor` | a function of rscan as a differentiable function of theirs; by the last one, of PyMC |
| `nutpie` | a log-density to be sampled |
| `numba` | compiled functions of numbers as arguments of `njit` functions |
| `sklearn` | bases for regressors and classifiers whose loss is a loop |
| `pandas` | a function of rscan as one of columns and tables that keeps their labels |
| `arviz` | draws as what ArviZ takes |
"""
