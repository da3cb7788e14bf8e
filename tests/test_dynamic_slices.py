"""Slices in a step that begin at a computed place and have a known length: `x[t : t + n]`. What they give does not depend on the engine;
where they reach beyond the array they give what NumPy's do."""

import numpy as np
import pytest
from test_inner_loops import agree, numbers

import rscan as rs

T = np.arange(7)
SLICES = {
    "ahead": lambda x, t: x[t : t + 3],
    "behind": lambda x, t: x[t + 2 - 2 : t + 2],
    "strides": lambda x, t: x[2 * t : 2 * t + 4],
    "blocks": lambda x, t: x[t * 2 : (t + 1) * 2],
    "turned": lambda x, t: x[11 - t : 14 - t][::-1],
    "all": lambda x, t: x[0 * t : 0 * t + 17],
}


def weighed(piece):
    return rs.sum(piece * rs.arange(1.0, 1.0 + piece.shape[0]))


def scalars(take):
    """A loop that is one kernel."""

    def build(x):
        out = rs.loop(lambda t, s: rs.tanh(s + weighed(take(x, t))), over=rs.constant(T), init=0.0)
        return [out, *rs.grad(rs.sum(out * out), [x])]

    return build


def rows(take):
    """A loop whose step is a list: rows are too wide for scalars."""

    def build(x):
        def step(t, s):
            piece = take(x, t)
            return {"s": rs.tanh(s * 0.5 + rs.sum(piece, axis=0)), "piece": piece}

        out = rs.loop(step, over=rs.constant(T), init={"s": rs.zeros_like(x[0])})
        return [out.s, out.piece, *rs.grad(rs.sum(out.s**2) + rs.sum(out.piece**3), [x])]

    return build


class TestAgree:
    @pytest.mark.parametrize("name", SLICES)
    def test_scalars(self, monkeypatch, name):
        law = agree(monkeypatch, scalars(SLICES[name]), numbers(17))
        assert isinstance(law, list)

    @pytest.mark.parametrize("name", SLICES)
    def test_rows(self, monkeypatch, name):
        law = agree(monkeypatch, rows(SLICES[name]), numbers(17, 40))
        assert law[1][1][0] == len(T)

    @pytest.mark.parametrize("dtype", ["float32", "int16", "bool", "uint8"])
    def test_dtypes(self, monkeypatch, dtype):
        x = (numbers(17, 6) * 3).astype(dtype)
        agree(monkeypatch, lambda x: rs.loop(lambda t: rs.sum(x[t : t + 3], axis=0), over=rs.constant(T)), x)

    def test_patches(self, monkeypatch):
        def build(image, at):
            def step(place, s):
                i, j = place[0], place[1]
                patch = image[i : i + 3, j : j + 3]
                return {"s": s + rs.sum(patch * patch.T), "column": image[i : i + 2, j]}

            out = rs.loop(step, over=at, init={"s": 0.0})
            return [out.s, out.column, rs.grad(out.s[-1] + rs.sum(out.column**2), image)]

        places = np.random.default_rng(1).integers(0, 7, size=(20, 2))
        agree(monkeypatch, build, numbers(9, 9), places)
        agree(monkeypatch, build, numbers(30, 40), places)

    @pytest.mark.parametrize("width", [7, 60])
    def test_beside_a_place_from_the_end(self, monkeypatch, width):
        def build(image, j):
            return rs.loop(lambda t, j: rs.tanh(image[t : t + 3, j]) * image[t : t + 3, 0], over=[rs.constant(T), j])

        j = np.array([-1, 0, 4, -7, 6, -2, 1])
        agree(monkeypatch, build, numbers(9, width), j)
        f = rs.compile(build)
        f(numbers(9, width), j)
        told = str(f.explain(numbers(9, width), j))
        assert "a list for each" not in told and "runs on eval" not in told, told

    def test_windows_of_a_state(self, monkeypatch):
        def build(x):
            def step(t, s):
                return s[t : t + 4], rs.concatenate([s[1:], rs.tanh(s[t : t + 1] + s[:1])])

            out = rs.loop(lambda t, s: {"s": step(t, s)[1], "w": step(t, s)[0]}, over=rs.constant(T), init={"s": x})
            return [out.s, out.w, rs.grad(rs.sum(out.w**2), x)]

        agree(monkeypatch, build, numbers(12))
        agree(monkeypatch, build, numbers(300))

    def test_written(self, monkeypatch):
        def build(x):
            def step(t, s):
                return s.at[t : t + 3].add(rs.sin(s[t + 1 : t + 4])), None

            out = rs.loop(lambda t, s: step(t, s)[0], over=rs.constant(T), init=x)
            return [out, rs.grad(rs.sum(out[-1] ** 2), x)]

        agree(monkeypatch, build, numbers(12))
        agree(monkeypatch, build, numbers(12, 50))

    def test_in_loops_in_loops(self, monkeypatch):
        def build(x, starts):
            def outer(first, s):
                window = x[first : first + 6]

                def inner(t, left, a):
                    return rs.tanh(a + left + rs.sum(window[t : t + 2]))

                inside = rs.loop(inner, over=dict(t=rs.arange(4), left=window), init=dict(a=s)).last.a
                return {"s": inside, "mean": rs.mean(window)}

            out = rs.loop(outer, over=starts, init={"s": 0.1})
            return [out.s, out.mean, rs.grad(rs.sum(out.s) + rs.sum(out.mean**2), x)]

        law = agree(monkeypatch, build, numbers(20), np.array([0, 3, 9, 14]), reached="a kernel in the step of the loop around")
        assert law[0][1] == (4,)


class TestBeyond:
    @pytest.mark.parametrize("width", [1, 30])
    def test_pieces_that_are_cut_off(self, monkeypatch, width):
        """Steps whose slice reaches beyond the array, in front or behind, see what is there."""
        starts = np.array([0, 5, 8, 9, 10, 12, -2, -9, 3])

        def build(x, starts):
            return rs.loop(lambda t, s: s * 0.5 + rs.sum(x[t : t + 4], axis=0), over=starts, init=rs.zeros_like(x[0]))

        x = numbers(10, width)
        law = agree(monkeypatch, build, x, starts)
        s, expected = np.zeros(width), []
        for t in starts:
            s = s * 0.5 + x[t : t + 4].sum(axis=0)
            expected.append(s)
        np.testing.assert_allclose(np.frombuffer(law[0][2]).reshape(-1, width), expected, rtol=1e-12, atol=1e-12)

    def test_first_within_then_beyond_then_within(self):
        @rs.compile
        def f(x, starts):
            return rs.loop(lambda t, s: s * 0.5 + rs.sum(x[t : t + 3]), over=starts, init=0.0)

        def law(x, starts):
            s, out = 0.0, []
            for t in starts:
                s = s * 0.5 + x[t : t + 3].sum()
                out.append(s)
            return out

        x = numbers(12)
        for starts in ([0, 1, 2], [9, 8], [10, 1, 11], [12, 0], [0, 5], [-3, -1], [4]):
            np.testing.assert_allclose(f(x, np.array(starts)), law(x, starts), rtol=1e-12, atol=1e-12)
        assert "a list for each of" in str(f.explain(x, np.array([4]))), "one list does not do for pieces of other lengths"

    def test_rows_of_other_lengths_are_refused_as_before(self):
        """A slice that is cut off where rows of one length are returned is an error that names the step."""

        @rs.compile
        def f(x, starts):
            return rs.loop(lambda t: x[t : t + 3], over=starts)

        np.testing.assert_array_equal(f(np.arange(9.0), np.array([0, 6])), [[0, 1, 2], [6, 7, 8]])
        with pytest.raises(rs.RscanError, match="step 1"):
            f(np.arange(9.0), np.array([0, 7]))

    def test_before_the_loop(self, monkeypatch):
        """A slice that no step changes may be cut off, too, whether a step needs it or not."""

        def build(x, t, n):
            window = lambda: rs.sum(x[t : t + 4])
            outer = rs.loop(lambda k, s: s + k * window(), over=rs.arange(n), init=0.0)
            return outer

        for t in (0, 5, 8, -2):
            agree(monkeypatch, build, numbers(10), np.int64(t), np.int64(3))

    def test_arrays_without_elements(self, monkeypatch):
        def build(image, t):
            return rs.loop(lambda t, s: s + rs.sum(image[t : t + 2, t]), over=t, init=0.0)

        for shape in ((4, 0), (0, 4), (0, 0), (1, 4)):
            agree(monkeypatch, build, np.zeros(shape), np.array([0, 1]))

    def test_wrapped_numbers(self, monkeypatch):
        """Where t + n leaves the integers, the end is in front of the beginning."""
        starts = np.array([0, 2**63 - 2, 1])
        agree(monkeypatch, lambda x, t: rs.loop(lambda t, s: s + rs.sum(x[t : t + 4]), over=t, init=0.0), numbers(10), starts)


class TestEfficient:
    @pytest.mark.parametrize("shape", [(40,), (40, 30)])
    def test_one_list_for_all_places(self, shape):
        """No list per place: what a step is does not depend on where its slices begin."""
        f = rs.compile(lambda x, t: rs.loop(lambda t, s: s + rs.sum(x[t : t + 5], axis=0), over=t, init=rs.zeros_like(x[0])))
        x, t = np.ones(shape), np.arange(30)
        np.testing.assert_array_equal(f(x, t)[-1], np.full(shape[1:], 150.0))
        assert "a list for each" not in str(f.explain(x, t)), f.explain(x, t)
        assert "runs on eval" not in str(f.explain(x, t))
