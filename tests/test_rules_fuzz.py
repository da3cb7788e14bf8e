"""Random formulas of operands that lack axes, or have one place of some: with the rules over graphs and without, to second derivatives."""

import numpy as np
import pytest

import rscan as rs

RULES = [
    "cse",
    "const_fold",
    "algebra",
    "shape",
    "index",
    "stabilise",
    "contract",
    "scatter",
    "release",
    "transposed",
    "masks",
    "stacks",
    "join_writes",
    "fma",
]
MAKE = [rs.dscalar, rs.dvector, rs.dmatrix, rs.dtensor3]
BATCHES, EACH = 12, 40


class Formula:
    """A reduction of a random expression, and a number made of it."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.given: list[tuple[rs.Variable, np.ndarray]] = []
        self.extents = self.random.integers(2, 4, size=self.random.integers(1, 4))
        few = self.random.random() < 0.6
        self.x = self.sum() if few else self.tree(3)
        self.y = self.reduced(self.x)
        self.number = rs.sum(rs.sin(self.y))

    def operand(self):
        """Of some of the last axes, some of which have one place."""
        rank = self.random.integers(0, len(self.extents) + 1)
        extents = self.extents[len(self.extents) - rank :]
        there = self.random.random(rank) < 0.65
        values = self.random.normal(size=np.where(there, extents, 1))
        if self.random.random() < 0.25:
            return rs.constant(values)
        variable = MAKE[there.sum()]()
        self.given.append((variable, values.reshape(extents[there])))
        return variable[tuple(slice(None) if t else None for t in there)] if rank else variable

    def sum(self):
        terms = [self.tree(self.random.integers(0, 2)) for _ in range(self.random.integers(2, 4))]
        return terms[0] + terms[1] - sum(terms[2:])

    def tree(self, depth: int):
        if depth == 0 or self.random.random() < 0.25:
            return self.operand()
        a, b = self.tree(depth - 1), self.tree(depth - 1)
        kinds = [a + b, a + b, a - b, a * b, rs.exp(0.5 * a), rs.log(rs.exp(a) + 1.5), rs.where(a > 0.1, a, b), rs.maximum(a, b)]
        return kinds[self.random.integers(len(kinds))]

    def reduced(self, x):
        if x.ndim == 0:
            return x
        axis = int(self.random.integers(x.ndim))
        axes = [axis, None, tuple(np.flatnonzero(self.random.random(x.ndim) < 0.6).tolist()) or axis][self.random.integers(3)]
        keep = bool(self.random.random() < 0.5)
        e = rs.exp(x - rs.max(x, axis=axis, keepdims=True))
        kinds = {
            "logsumexp": lambda: rs.logsumexp(x, axis=axes, keepdims=keep),
            "written out": lambda: rs.log(rs.sum(rs.exp(x), axis=axes, keepdims=keep)),
            "less the maximum": lambda: rs.log(rs.sum(e, axis=axis, keepdims=True)) + rs.max(x, axis=axis, keepdims=True),
            "softmax": lambda: rs.softmax(x, axis=axis),
            "softmax written out": lambda: e / rs.sum(e, axis=axis, keepdims=True),
            "log_softmax": lambda: rs.log_softmax(x, axis=axis),
            "sum": lambda: rs.sum(x * self.operand(), axis=axis),
            "max": lambda: rs.max(x, axis=axes, keepdims=keep),
            "mean": lambda: rs.mean(x, axis=axes, keepdims=keep),
            "argmax": lambda: rs.cast(rs.argmax(x, axis=axis), "float64"),
        }
        return list(kinds.values())[self.random.integers(len(kinds))]()

    def functions(self):
        variables = [v for v, _ in self.given]
        first = rs.grad(self.number, variables, disconnected_inputs="ignore") if variables else []
        second = [rs.sum(rs.grad(rs.sum(rs.sin(first[0])), variables[0], disconnected_inputs="ignore"))] if variables else []
        outs = [self.y, self.number, *first, *second]
        return [rs.function(variables, outs, on_unused_input="ignore", excluding=passes) for passes in ([], RULES)]


@pytest.mark.parametrize("batch", range(BATCHES))
def test_rules_change_no_number(batch):
    for seed in range(batch * EACH, (batch + 1) * EACH):
        formula = Formula(seed)
        optimised, plain = formula.functions()
        args = [value for _, value in formula.given]
        for got, right in zip(optimised(*args), plain(*args), strict=True):
            assert got.shape == right.shape, seed
            np.testing.assert_allclose(got, right, rtol=1e-9, atol=1e-10, err_msg=f"seed {seed}")


@pytest.mark.parametrize("axis", [0, 1, 2, (0, 2), (1, 2)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_terms_that_lack_axes_are_summed_over_their_own(axis, keepdims):
    """What changes along the reduced axis may lack leading axes, which what is taken out of the logsumexp has."""
    a, w = rs.dvector("a"), rs.dmatrix("w")
    x, y = np.arange(3.0), np.random.default_rng(0).normal(size=(3, 3))
    f = rs.function([a, w], rs.logsumexp(a[:, None, None] + w, axis=axis, keepdims=keepdims))
    right = np.log(np.exp(x[:, None, None] + y).sum(axis=axis, keepdims=keepdims))
    np.testing.assert_allclose(f(x, y), right, rtol=1e-13)
