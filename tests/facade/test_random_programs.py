"""Random Theano programs: every output, every shared variable after each of two calls, and gradients, against the reference."""

import pytest
from facade.random_programs import draw
from facade.reference import Clone, E, Gradient, Loop, RandomDraw, name, parts, statements
from facade.run_programs import check
from facade.words import WORDS

PROGRAMS = 60
PARTS = 6


@pytest.mark.parametrize("part", range(PARTS))
def test_random_programs_agree_with_the_reference(part: int) -> None:
    for seed in range(part, PROGRAMS, PARTS):
        outcome = check(seed)
        assert outcome.fault is None, f"{outcome.source}\n{outcome.fault}, seed {seed}: {outcome.report}"


def test_programs_use_everything() -> None:
    programs = [draw(seed) for seed in range(PROGRAMS)]
    words = {x.word for x in parts(programs) if isinstance(x, E)}
    assert not words ^ (WORDS.keys() | {"name", "number", "array"})
    loops = [s for p in programs for s in statements(p.body) if isinstance(s, Loop)]
    inner = [s for loop in loops for s in loop.body]
    nested = [s for s in inner if isinstance(s, Loop)]
    shared = {n for p in programs for n, _ in p.shared}
    uses = {
        "three deep": [x for s in nested for x in s.body if isinstance(x, Loop)],
        "backwards": [s for s in loops if s.backwards],
        "truncated": [s for s in loops if s.truncate > 0],
        "strict": [s for s in loops if s.strict],
        "until": [s for s in loops if s.until is not None],
        "symbolic steps": [s for s in loops if s.n_steps == name("n")],
        "no step": [s for s in loops if s.n_steps == E("python", (), (0,))],
        "one step": [s for s in loops if s.n_steps == E("python", (), (1,))],
        "sequence taps": [q for s in loops for q in s.sequences if len(q.listed(0)) > 1],
        "state taps": [q for s in loops for q in s.infos if q is not None and len(q.listed(-1)) > 1],
        "updates": [s for s in loops if s.own_updates],
        "updates of nested loops": [s for s in loops if s.passed_on],
        "updates left behind": [s for s in loops if len(s.passed_on) < sum(isinstance(x, Loop) for x in s.body)],
        "shared variables passed": [e for s in loops for _, e in s.non_sequences if e.word == "name" and e.given[0] in shared],
        "expressions of them passed": [e for s in loops for _, e in s.non_sequences if e.word != "name" and e.names() & shared],
        "draws in loops": [s for s in inner if isinstance(s, RandomDraw)],
        "gradients in loops": [s for s in inner if isinstance(s, Gradient)],
        "clones": [s for p in programs for s in statements(p.body) if isinstance(s, Clone)],
        "givens": [p for p in programs if p.givens],
        "updates of the function": [p for p in programs if p.own_updates],
        "gradients": [p for p in programs if p.cost is not None],
    }
    assert not [use for use, found in uses.items() if not found]
    assert {s.kind for s in loops} == {"scan", "map", "reduce", "foldl", "foldr"}
    assert {p.floatX for p in programs} == {"float32", "float64"}
