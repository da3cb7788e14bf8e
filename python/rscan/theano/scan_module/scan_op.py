"""`theano.scan_module.scan_op`: a loop in Theano's words, for programs that look inside.

Canonical order of the outer inputs: n_steps, sequences, mit_mot, mit_sot, sit_sot, shared, nit_sot, other. Inner inputs hold
all but n_steps and nit_sot; inner outputs hold mit_mot, mit_sot, sit_sot, nit_sot, shared, then the condition; outer outputs the
same without it.
"""

from __future__ import annotations

import functools
from typing import Any

from ...variable import wrap
from ..gof.graph import Apply
from ..variable import TensorVariable

KINDS = ("seq", "mit_mot", "mit_sot", "sit_sot", "shared", "nit_sot", "other")


class Scan:
    """The op of a loop."""

    n_seqs: int
    n_mit_mot: int
    n_mit_sot: int
    n_sit_sot: int
    n_shared_outs: int
    n_nit_sot: int
    n_other: int
    mit_mot_out_slices: list[list[int]]
    n_mit_mot_outs: int
    tap_array: list[list[Any]]
    mintaps: list[Any]

    def __init__(self, native: Any) -> None:
        self._native = native
        self._scan = native.scan
        self.slots: list[dict[str, Any]] = self._scan["slots"]
        self.name: str | None = self._scan["name"]
        self.as_while: bool = bool(self._scan["until"])
        self.truncate_gradient: int = -1 if self._scan["truncate"] is None else self._scan["truncate"]
        self.n_seqs, self.n_mit_mot, self.n_mit_sot, self.n_sit_sot, self.n_shared_outs, self.n_nit_sot, self.n_other = (
            len(self.of(kind)) for kind in KINDS
        )
        self.mit_mot_out_slices = [_ordered(s["taps_out"]) for s in self.of("mit_mot")]
        self.n_mit_mot_outs = sum(len(taps) for taps in self.mit_mot_out_slices)
        self.tap_array = [list(s["taps_in"]) for kind in ("mit_mot", "mit_sot", "sit_sot") for s in self.of(kind)]
        self.mintaps = [min(taps) for taps in self.tap_array]

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The slots of one kind."""
        return [s for s in self.slots if s["kind"] == kind]

    def __str__(self) -> str:
        return f"{'do_while' if self.as_while else 'for'}{{cpu,{self.name or 'scan_fn'}}}"

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scan) and self._native.key[0] == other._native.key[0]

    def __hash__(self) -> int:
        return hash(self._native.key[0])

    # The step.

    @functools.cached_property
    def _body(self) -> tuple[list[Any], list[Any]]:
        params, results = self._native.scan_body()
        ins = [(at, params[p]) for s in self.slots for at, p in zip(s["inner_inputs"], s["params"], strict=True)]
        outs = [(at, results[r]) for s in self.slots for at, r in zip(s["inner_outputs"], s["results"], strict=True)]
        listed = [wrap(v, TensorVariable) for _, v in sorted(ins, key=lambda pair: pair[0])]
        made = [wrap(v, TensorVariable) for _, v in sorted(outs, key=lambda pair: pair[0])]
        if self.as_while:
            made.append(wrap(results[-1], TensorVariable))
        return listed, made

    @property
    def inputs(self) -> list[Any]:
        """The inner inputs."""
        return self._body[0]

    @property
    def outputs(self) -> list[Any]:
        """The inner outputs, with the condition last."""
        return self._body[1]

    @property
    def info(self) -> dict[str, Any]:
        """The counts and taps."""
        names = ("n_seqs", "n_mit_mot", "n_mit_mot_outs", "n_mit_sot", "n_sit_sot", "n_shared_outs", "n_nit_sot")
        counts = {name: getattr(self, name) for name in names}
        rest = ("tap_array", "mit_mot_out_slices", "as_while", "truncate_gradient", "name")
        return counts | {name: getattr(self, name) for name in rest} | {"gpua": False, "profile": False}

    # Which variables belong together, and which depend on each other.

    @functools.cached_property
    def var_mappings(self) -> dict[str, dict[int, Any]]:
        """Twelve dictionaries from positions to positions: to outer variables a number (−1 for none), to inner ones a list."""
        sides = ("outer_inp", "inner_inp", "inner_out", "outer_out")
        names = [f"{to}_from_{start}" for start in sides for to in sides if to != start]
        out: dict[str, dict[int, Any]] = {name: {} for name in names}
        for slot in self.slots:
            at = {
                "outer_inp": slot["outer_input"],
                "inner_inp": list(slot["inner_inputs"]),
                "inner_out": list(slot["inner_outputs"]),
                "outer_out": -1 if slot["outer_output"] is None else slot["outer_output"],
            }
            for start in sides:
                keys = at[start] if isinstance(at[start], list) else [at[start]] if at[start] != -1 else []
                for key in keys:
                    for to in sides:
                        if to != start:
                            out[f"{to}_from_{start}"][key] = at[to]
        return out

    def get_oinp_iinp_iout_oout_mappings(self) -> dict[str, dict[int, Any]]:
        """The same, by the older name."""
        return self.var_mappings

    def connection_pattern(self, node: Any = None) -> list[list[bool]]:
        """`[outer input][outer output]`: True where the output depends on the input, over any number of steps."""
        return [list(row) for row in self._scan["connections"]]

    def inner_connection_pattern(self) -> list[list[bool]]:
        """`[inner output][inner input]`: True where the output of one step is computed from that input."""
        return [list(row) for row in self._scan["inner_connections"]]

    # Taps.

    def mitmot_taps(self) -> list[list[int]]:
        """What each mit_mot reads."""
        return [list(s["taps_in"]) for s in self.of("mit_mot")]

    def mitmot_out_taps(self) -> list[list[int]]:
        """What each mit_mot writes."""
        return self.mit_mot_out_slices

    def mitsot_taps(self) -> list[list[int]]:
        """What each mit_sot reads."""
        return [list(s["taps_in"]) for s in self.of("mit_sot")]

    def get_output_info(self, idx: int) -> Any:
        """The type of a row of an outer output."""
        slot = next(s for s in self.slots if s["outer_output"] == idx)
        return self.outputs[slot["inner_outputs"][0]].type


def _ordered(taps: Any) -> list[int]:
    return list(taps)


def _accessor(side: str, kind: str, of_node: bool) -> Any:
    key = {"inner_in": "inner_inputs", "inner_out": "inner_outputs", "outer_in": "outer_input", "outer_out": "outer_output"}[side]

    def accessor(self: Scan, given: Any = None) -> list[Any]:
        if given is None:
            node = node_of(wrap(self._native, TensorVariable)) if of_node else self
            given = node.inputs if side.endswith("in") else node.outputs
        elif hasattr(given, "inputs"):
            given = given.inputs if side.endswith("in") else given.outputs
        places = [s[key] for s in self.of(kind)]
        flat = [p for place in places for p in (place if isinstance(place, list) else [place])]
        return [given[p] for p in sorted(flat)]

    accessor.__doc__ = f"The {side.replace('_', ' ')}puts of kind {kind}; of a node or of a list, by default its own."
    return accessor


for _word, _kind in {
    "seqs": "seq",
    "mitmot": "mit_mot",
    "mitsot": "mit_sot",
    "sitsot": "sit_sot",
    "shared": "shared",
    "non_seqs": "other",
}.items():
    setattr(Scan, f"inner_{_word}", _accessor("inner_in", _kind, False))
    setattr(Scan, f"outer_{_word}", _accessor("outer_in", _kind, True))
for _word, _kind in {"mitmot": "mit_mot", "mitsot": "mit_sot", "sitsot": "sit_sot", "shared": "shared", "nitsot": "nit_sot"}.items():
    setattr(Scan, f"inner_{_word}_outs", _accessor("inner_out", _kind, False))
    setattr(Scan, f"outer_{_word}_outs", _accessor("outer_out", _kind, True))
Scan.outer_nitsot = _accessor("outer_in", "nit_sot", True)  # type: ignore[attr-defined]


def node_of(v: Any) -> Apply:
    """The application of a loop, with inputs and outputs in canonical order."""
    op = Scan(v._v)
    ins = v._v.inputs
    n_steps = wrap(ins[0], TensorVariable)
    by_place = sorted(op.slots, key=lambda s: s["outer_input"])
    inputs = [n_steps, *(n_steps if s["node_input"] is None else wrap(ins[s["node_input"]], TensorVariable) for s in by_place)]
    made = sorted((s for s in op.slots if s["outer_output"] is not None), key=lambda s: s["outer_output"])
    siblings = v._v.siblings()
    node = Apply(op, inputs, [wrap(siblings[s["node_output"]], TensorVariable) for s in made])
    node._key = v._v.key[0]
    return node


def output_position(native: Any) -> int | None:
    """The position of an output of a loop in canonical order; None for its number of steps."""
    found = [s["outer_output"] for s in native.scan["slots"] if s["node_output"] == native.index]
    return found[0] if found else None


def scan_nodes(variables: Any) -> list[Apply]:
    """The applications of loops that variables depend on."""
    from ..gof.graph import io_toposort

    return [node for node in io_toposort([], variables) if isinstance(node.op, Scan)]
