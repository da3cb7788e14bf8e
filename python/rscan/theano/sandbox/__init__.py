"""`theano.sandbox`."""

from . import rng_mrg

__all__ = ["rng_mrg"]
