"""Runs random Theano programs and compares everything that they give with the reference, which knows nothing of rscan.

`python -m facade.run_programs --programs 2000 --seed 0` runs many, `--show 17` prints one.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from typing import Any

import numpy as np
from facade.program_source import source
from facade.random_programs import draw
from facade.reference import Gradient, Program, Reference, statements
from facade.words import Unfit


@dataclasses.dataclass
class Outcome:
    """What became of a program."""

    seed: int
    source: str
    #: None where everything agrees; 'refused' or 'wrong'.
    fault: str | None = None
    report: str = ""
    #: Gradients were compared with differences.
    differences: int = 0


class Disagreement(Exception):
    """A result is not what the reference gives."""


@np.errstate(all="ignore")
def check(seed: int) -> Outcome:
    """Runs the program of a seed, and compares everything that it gives."""
    p = draw(seed)
    out = Outcome(seed, source(p))
    try:
        results = run_source(out.source, seed)
    except Exception as error:
        out.fault, out.report = "refused", f"{type(error).__name__}: {error}"
        return out
    try:
        try:
            compare(p, results, 2)
        except Disagreement:
            # Decisions by the last digit: two runs with other rounding may both decide as the first.
            compare(p, results, 12)
        if p.cost is not None:
            out.differences = compare_gradients(p, results[0][0][len(p.outputs) :])
    except Disagreement as error:
        out.fault, out.report = "wrong", str(error)
    return out


def run_source(text: str, seed: int) -> Any:
    """What a program leaves in `results`."""
    import rscan.theano as theano

    before = theano.config.floatX
    scope: dict[str, Any] = {}
    try:
        exec(compile(text, f"<program {seed}>", "exec"), scope)
    finally:
        theano.config.floatX = before
    return scope["results"]


def compare(p: Program, results: Any, runs: int) -> None:
    """Every output and every shared variable after each call, against the reference; what depends on rounding less closely."""
    plain, noisy = Reference(p), [Reference(p, noise=k) for k in range(1, runs + 1)]
    # Derivatives inside of programs are differences in the reference.
    least = 1e-8 if any(isinstance(s, Gradient) for s in statements(p.body)) else 0.0
    for call, (outputs, shared) in enumerate(results):
        want_outputs, want_shared = plain.call(call)
        others = [shaken(r, call) for r in noisy]
        for k, (got, want) in enumerate(zip(outputs, want_outputs, strict=False)):
            close(got, want, [o and o[0][k] for o in others], least, f"call {call}, output {k}")
        for n, got in zip([n for n, _ in p.shared], shared, strict=True):
            close(got, want_shared[n], [o and o[1][n] for o in others], least, f"call {call}, shared variable {n}")


def shaken(reference: Reference, call: int) -> Any:
    """A call with other rounding, where that can be done."""
    try:
        return reference.call(call)
    except (Unfit, ValueError, IndexError):
        return None


def close(got: np.ndarray, want: np.ndarray, others: list[Any], least: float, what: str) -> None:
    if got.dtype != want.dtype:
        raise Disagreement(f"{what}: {got.dtype}, expected {want.dtype}")
    if any(o is None or o.shape != want.shape for o in others):
        return
    if got.shape != want.shape:
        raise Disagreement(f"{what}: shape {got.shape}, expected {want.shape}")
    a, b = got.astype(float), want.astype(float)
    spread = max((float(np.abs(o.astype(float) - b).max(initial=0)) for o in others), default=0.0)
    scale = float(np.abs(b).max(initial=1))
    allowed = 15 * spread + (max(20 * np.finfo(want.dtype).eps, least) * scale if want.dtype.kind == "f" else 0)
    if not np.isnan(spread) and not np.all((np.abs(a - b) <= allowed) | (np.isnan(a) & np.isnan(b))):
        raise Disagreement(f"{what}:\n{got}\nexpected, up to {allowed}:\n{want}")


def compare_gradients(p: Program, gradients: list[np.ndarray]) -> int:
    """Gradients of the first call, along a random direction and by single elements, where the reference is smooth."""
    rng, done = np.random.default_rng(p.seed), 0
    reference = Reference(p, wide=not p.double)
    leaves = {n: v[0] for n, v in p.inputs} | dict(p.shared)
    found = dict(zip(p.wrt, gradients, strict=True))
    for n in found.keys() & leaves.keys():
        if found[n].shape != leaves[n].shape:
            raise Disagreement(f"the gradient by {n} has shape {found[n].shape}, expected {leaves[n].shape}")
    everything = {n: rng.uniform(-1, 1, g.shape) for n, g in found.items() if n in leaves}
    for moves in [everything, *({n: unit(found[n].shape, rng)} for n in map(str, rng.permutation(p.wrt)[:3]))]:
        try:
            slope = reference.cost_slope(0, moves)
        except (Unfit, ValueError, IndexError):
            continue
        along = float(sum((found[n] * d).sum() for n, d in moves.items()))
        done += 1
        if not abs(along - slope) <= (1e-5 if p.double else 1e-3) * max(1, abs(slope), *(np.abs(found[n]).max(initial=0) for n in moves)):
            shown = "\n".join(f"by {n}:\n{found[n]}\nalong\n{d}" for n, d in moves.items())
            raise Disagreement(f"a gradient is\n{shown}\n{along}, differences give {slope}")
    return done


def unit(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """A single element."""
    out = np.zeros(shape)
    if out.size:
        out.flat[int(rng.integers(out.size))] = 1
    return out


def main() -> int:
    """Runs programs, prints those that fail, and one line at the end."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--programs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, help="print the program of this seed, and what becomes of it")
    asked = parser.parse_args()
    if asked.show is not None:
        outcome = check(asked.show)
        print(outcome.source, outcome.fault or "agrees", outcome.report, sep="\n")
        return int(outcome.fault is not None)
    counts = {"wrong": 0, "refused": 0, "differences": 0}
    for seed in range(asked.seed, asked.seed + asked.programs):
        outcome = check(seed)
        counts["differences"] += outcome.differences > 0
        if outcome.fault is not None:
            counts[outcome.fault] += 1
            print(f"{outcome.source}\n{outcome.fault}, seed {seed}: {outcome.report}\n", flush=True)
    tail = f"{counts['wrong']} wrong, {counts['refused']} refused"
    print(f"{asked.programs} programs, {counts['differences']} also against finite differences: {tail}")
    return int(counts["wrong"] + counts["refused"] > 0)


if __name__ == "__main__":
    sys.exit(main())
