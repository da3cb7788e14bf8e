"""`theano.scan_module.scan_utils`."""

from __future__ import annotations

from typing import Any

from ... import ops
from ...updates import until as _until
from ..graph_tools import clone, replaced
from ..variable import as_tensor_variable
from .computations import equal_computations, map_variables


class until(_until):
    """The condition that ends a loop: `return outputs, until(condition)`. The step that meets it is the last one."""

    def __init__(self, condition: Any) -> None:
        v = as_tensor_variable(condition)
        super().__init__(v if v.dtype == "bool" else ops.cast(v, "bool"))


class scan_args:
    """The inputs and outputs of a loop, outer and inner, taken apart by kind.

    `scan_args(node.inputs, node.outputs, op.inputs, op.outputs, op.info)`.
    """

    n_steps: Any
    as_while: Any
    truncate_gradient: Any
    mit_mot_in_slices: list[Any]
    mit_sot_in_slices: list[Any]
    mit_mot_out_slices: list[Any]
    outer_in_seqs: list[Any]
    outer_in_mit_mot: list[Any]
    outer_in_mit_sot: list[Any]
    outer_in_sit_sot: list[Any]
    outer_in_shared: list[Any]
    outer_in_nit_sot: list[Any]
    outer_in_non_seqs: list[Any]
    inner_in_seqs: list[Any]
    inner_in_mit_mot: list[list[Any]]
    inner_in_mit_sot: list[list[Any]]
    inner_in_sit_sot: list[Any]
    inner_in_shared: list[Any]
    inner_in_non_seqs: list[Any]
    cond: list[Any]
    inner_out_mit_mot: list[list[Any]]
    inner_out_mit_sot: list[Any]
    inner_out_sit_sot: list[Any]
    inner_out_nit_sot: list[Any]
    inner_out_shared: list[Any]
    outer_out_mit_mot: list[Any]
    outer_out_mit_sot: list[Any]
    outer_out_sit_sot: list[Any]
    outer_out_nit_sot: list[Any]
    outer_out_shared: list[Any]
    other_info: dict[str, Any]

    def __init__(self, outer_inputs: Any, outer_outputs: Any, _inner_inputs: Any, _inner_outputs: Any, info: dict[str, Any]) -> None:
        self.n_steps, self.as_while, self.truncate_gradient = outer_inputs[0], info["as_while"], info["truncate_gradient"]
        taps = list(info["tap_array"])
        n_mot, n_mit, n_sit = info["n_mit_mot"], info["n_mit_sot"], info["n_sit_sot"]
        self.mit_mot_in_slices, self.mit_sot_in_slices = taps[:n_mot], taps[n_mot : n_mot + n_mit]
        self.mit_mot_out_slices = list(info["mit_mot_out_slices"])
        outer = _Taker(list(outer_inputs)[1:])
        self.outer_in_seqs = outer.take(info["n_seqs"])
        self.outer_in_mit_mot, self.outer_in_mit_sot, self.outer_in_sit_sot = outer.take(n_mot), outer.take(n_mit), outer.take(n_sit)
        self.outer_in_shared, self.outer_in_nit_sot = outer.take(info["n_shared_outs"]), outer.take(info["n_nit_sot"])
        self.outer_in_non_seqs = outer.rest()
        inner = _Taker(list(_inner_inputs))
        self.inner_in_seqs = inner.take(info["n_seqs"])
        self.inner_in_mit_mot = [inner.take(len(t)) for t in self.mit_mot_in_slices]
        self.inner_in_mit_sot = [inner.take(len(t)) for t in self.mit_sot_in_slices]
        self.inner_in_sit_sot, self.inner_in_shared = inner.take(n_sit), inner.take(info["n_shared_outs"])
        self.inner_in_non_seqs = inner.rest()
        results = list(_inner_outputs)
        self.cond = [results.pop()] if self.as_while else []
        made = _Taker(results)
        self.inner_out_mit_mot = [made.take(len(t)) for t in self.mit_mot_out_slices]
        self.inner_out_mit_sot, self.inner_out_sit_sot = made.take(n_mit), made.take(n_sit)
        self.inner_out_nit_sot, self.inner_out_shared = made.take(info["n_nit_sot"]), made.take(info["n_shared_outs"])
        given = _Taker(list(outer_outputs))
        self.outer_out_mit_mot, self.outer_out_mit_sot, self.outer_out_sit_sot = given.take(n_mot), given.take(n_mit), given.take(n_sit)
        self.outer_out_nit_sot, self.outer_out_shared = given.take(info["n_nit_sot"]), given.take(info["n_shared_outs"])
        self.other_info = {key: info[key] for key in ("truncate_gradient", "name", "gpua", "profile") if key in info}

    @property
    def inner_inputs(self) -> list[Any]:
        """All inner inputs, in canonical order."""
        lists = [*self.inner_in_mit_mot, *self.inner_in_mit_sot]
        return [*self.inner_in_seqs, *(v for l in lists for v in l), *self.inner_in_sit_sot, *self.inner_in_shared, *self.inner_in_non_seqs]

    @property
    def outer_inputs(self) -> list[Any]:
        """All outer inputs, in canonical order."""
        states = [*self.outer_in_mit_mot, *self.outer_in_mit_sot, *self.outer_in_sit_sot]
        return [self.n_steps, *self.outer_in_seqs, *states, *self.outer_in_shared, *self.outer_in_nit_sot, *self.outer_in_non_seqs]

    @property
    def inner_outputs(self) -> list[Any]:
        """All inner outputs, in canonical order."""
        first = [v for l in self.inner_out_mit_mot for v in l]
        return [*first, *self.inner_out_mit_sot, *self.inner_out_sit_sot, *self.inner_out_nit_sot, *self.inner_out_shared, *self.cond]

    @property
    def outer_outputs(self) -> list[Any]:
        """All outer outputs, in canonical order."""
        states = [*self.outer_out_mit_mot, *self.outer_out_mit_sot, *self.outer_out_sit_sot]
        return [*states, *self.outer_out_nit_sot, *self.outer_out_shared]

    @property
    def info(self) -> dict[str, Any]:
        """Counts and taps."""
        taps = [*self.mit_mot_in_slices, *self.mit_sot_in_slices, *([-1] for _ in self.inner_in_sit_sot)]
        counts = {
            "n_seqs": len(self.outer_in_seqs), "n_mit_mot": len(self.outer_in_mit_mot), "n_mit_sot": len(self.outer_in_mit_sot),
            "n_sit_sot": len(self.outer_in_sit_sot), "n_shared_outs": len(self.outer_in_shared), "n_nit_sot": len(self.outer_in_nit_sot),
            "n_mit_mot_outs": sum(map(len, self.mit_mot_out_slices)),
        }  # fmt: skip
        return counts | self.other_info | {"tap_array": taps, "mit_mot_out_slices": self.mit_mot_out_slices, "as_while": self.as_while}


class _Taker:
    """Takes a list apart from its beginning."""

    def __init__(self, items: list[Any]) -> None:
        self._items = items

    def take(self, n: int) -> list[Any]:
        taken, self._items = self._items[:n], self._items[n:]
        return taken

    def rest(self) -> list[Any]:
        return self.take(len(self._items))


def expand_empty(tensor_var: Any, size: Any) -> Any:
    """The array with so many more rows of zeros."""
    from ..tensor.create import zeros

    v = as_tensor_variable(tensor_var)
    return ops.concatenate([v, zeros([size, *list(v.shape)[1:]], v.dtype)])


__all__ = ["clone", "equal_computations", "expand_empty", "map_variables", "replaced", "scan_args", "until"]
