"""`theano.compile.monitormode`."""

from ..printing import MonitorMode

__all__ = ["MonitorMode"]
