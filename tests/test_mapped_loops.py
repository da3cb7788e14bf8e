"""Some of `make accept-mapped`."""

import mapped_loops
import numpy as np
import pytest


@pytest.mark.parametrize("part", range(4))
def test_rows_have_the_bits_of_pythons_loops(part):
    assert [seed for seed in range(1000 + 12 * part, 1012 + 12 * part) if mapped_loops.differs(seed)] == []


def test_programs_are_of_all_kinds():
    programs = [mapped_loops.Program(seed) for seed in range(1000, 1048)]
    assert {p.ends for p in programs} == {"sequence", "steps", "until"} and {p.n_sequences for p in programs} == {0, 1, 2}
    stops = [p.in_python(*p.arguments())[-1] for p in programs if p.ends == "until"]
    assert any(len(set(steps.tolist())) > 1 for steps in stops)
    last = [np.asarray(p.mapped(*p.arguments())[0]) for p in programs[:8]]
    assert all(np.isfinite(v).all() for v in last) and sum(bool(v.any()) for v in last) > 4
