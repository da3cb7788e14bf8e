"""`theano.scan_module`."""

from . import scan_op, scan_utils
from .scan import foldl, foldr, map, reduce, scan, scan_checkpoints
from .scan_op import Scan
from .scan_utils import clone, until

__all__ = ["Scan", "clone", "foldl", "foldr", "map", "reduce", "scan", "scan_checkpoints", "scan_op", "scan_utils", "until"]
