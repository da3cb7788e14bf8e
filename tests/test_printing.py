"""Graphs as text, and values printed while a function runs."""

import io

import numpy as np
import pytest

import rscan as rs


class TestDebugprint:
    def test_shows_the_loop_inside_with_names_and_lines(self):
        xs, h0 = rs.dvector("xs"), rs.dscalar("h0")
        hs, _ = rs.scan(lambda x, h: rs.tanh(x + h), xs, h0, name="filter")
        text = rs.debugprint(hs[-1], file="str")
        assert text.startswith("fn")
        for part in ("xs: f64", "scan", "state h", "tanh", "test_printing.py:"):
            assert part in text, text

    def test_of_a_function_and_to_a_file(self, capsys):
        x = rs.dscalar("x")
        f = rs.function([x], x * 2)
        file = io.StringIO()
        rs.debugprint(f, file=file)
        rs.debugprint(f)
        assert file.getvalue() == capsys.readouterr().out
        assert "mul" in file.getvalue()

    def test_of_a_compiled_function(self):
        f = rs.compile(lambda x: rs.sin(x))
        f(1.0)
        assert "sin" in rs.debugprint(f, file="str")


@pytest.mark.parametrize(
    "build, text",
    [
        (lambda x, y: x + y * 2, "x + y * 2.0"),
        (lambda x, y: (x + y) * 2, "(x + y) * 2.0"),
        (lambda x, y: x - (y - x), "x - (y - x)"),
        (lambda x, y: x - y - x, "x - y - x"),
        (lambda x, y: -(x + y), "-(x + y)"),
        (lambda x, y: rs.tanh(x) ** 2, "tanh(x) ** 2.0"),
        (lambda x, y: (-x) ** y, "(-x) ** y"),
        (lambda x, y: x[0] + y[1:], "x[0] + y[1:]"),
        (lambda x, y: (x + y)[0], "(x + y)[0]"),
        (lambda x, y: x.sum() / y.max(), "sum(x) / max(y)"),
        (lambda x, y: rs.where(x > 1, x, y), "where(x > 1.0, x, y)"),
        (lambda x, y: rs.scan(lambda a, s: a + s, x, y[0], name="add")[0][-1], "scan(add).s[1:][-1]"),
    ],
)
def test_pp(build, text):
    assert rs.pp(build(rs.dvector("x"), rs.dvector("y"))) == text


class TestPrint:
    def test_prints_once_per_step(self, capsys):
        y, _ = rs.scan(lambda x, s: rs.Print("s =")(s + x), rs.constant([1.0, 2.0, 3.0]), 0.0)
        np.testing.assert_array_equal(rs.eval(y), [1, 3, 6])
        assert capsys.readouterr().out == "s = 1.0\ns = 3.0\ns = 6.0\n"

    def test_prints_nothing_where_no_step_runs(self, capsys):
        x, w = rs.dvector("x"), rs.dvector("w")
        y, _ = rs.scan(lambda v: rs.Print("v =")(v * w), x)
        f = rs.function([x, w], y)
        assert f(np.zeros(0), np.ones(3)).shape[0] == 0 and capsys.readouterr().out == ""
        assert f(np.ones(1), np.ones(3)).shape == (1, 3) and capsys.readouterr().out.count("v =") == 1

    def test_prints_once_per_step_with_a_gradient(self, capsys):
        x = rs.dscalar("x")
        y, _ = rs.scan(lambda s: rs.Print("s =")(s * x) ** 2, outputs_info=rs.constant(1.0), n_steps=2)
        g = rs.grad(y[-1], x)
        value, slope = rs.function([x], [y[-1], g])(2.0)
        np.testing.assert_allclose([value, slope], [64, 6 * 32])
        assert capsys.readouterr().out == "s = 2.0\ns = 8.0\n"

    def test_a_value_that_does_not_depend_on_the_step_is_printed_in_every_step(self, capsys):
        x = rs.dscalar("x")
        y, _ = rs.scan(lambda i: rs.print_(x, "x:") + i, rs.arange(2))
        rs.function([x], y)(1.5)
        assert capsys.readouterr().out == "x: 1.5\nx: 1.5\n"

    def test_attributes_and_file(self):
        file = io.StringIO()
        rs.eval(rs.Print("m", ["shape", "dtype"], file=file)(rs.ones((2, 3))))
        assert file.getvalue() == "m shape = (2, 3)\nm dtype = float64\n"

    def test_mistakes_are_found_before_the_run(self):
        with pytest.raises(rs.RscanError, match="no attribute 'colour'"):
            rs.Print("m", ["colour"])
        with pytest.raises(rs.RscanError, match="to a file"):
            rs.print_(1.0, file=[])
        assert rs.Print("m", "shape").attrs == ("shape",)

    def test_is_the_identity(self):
        x = rs.dvector("x")
        rs.verify_grad(rs.Print("", callback=lambda v: None)(x) ** 2, {x: np.array([1.0, 2.0])})
