"""`theano.tensor.subtensor`."""

from .arrays import inc_subtensor, set_subtensor, take

__all__ = ["inc_subtensor", "set_subtensor", "take"]
