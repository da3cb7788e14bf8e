"""Random Theano programs: every output, every shared variable after each of two calls, and gradients, against the reference."""

import pytest
from facade.random_programs import check, draw
from facade.reference import Loop, RandomDraw, statements

PROGRAMS = 60
PARTS = 6


@pytest.mark.parametrize("part", range(PARTS))
def test_random_programs_agree_with_the_reference(part: int) -> None:
    for seed in range(part, PROGRAMS, PARTS):
        outcome = check(seed)
        assert outcome.fault is None, f"{outcome.source}\n{outcome.fault}, seed {seed}: {outcome.report}"


def test_programs_use_everything() -> None:
    programs = [draw(seed) for seed in range(PROGRAMS)]
    for feature in [
        "scan", "map", "reduce", "foldl", "foldr", "nested", "nested in nested", "backwards", "truncated", "strict", "until", "no step",
        "one step", "symbolic steps", "sequence taps", "state taps", "update in a loop", "update in a nested loop", "shared passed",
        "draw in a loop", "givens", "clone", "ifelse", "set_at", "inc_at", "gradient in a loop", "rows used",
    ]:  # fmt: skip
        assert any(feature in p.features for p in programs), feature
    loops = [s for p in programs for s in statements(p.body) if isinstance(s, Loop)]
    assert {"float32", "float64"} == {p.floatX for p in programs}
    assert any(len(s.sequences) > 1 and len(s.infos) > 1 and s.non_sequences for s in loops)
    assert any(isinstance(s, RandomDraw) for p in programs for s in p.body)
