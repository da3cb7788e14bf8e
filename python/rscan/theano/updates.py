"""`theano.updates`."""

from ..updates import OrderedUpdates

__all__ = ["OrderedUpdates"]
