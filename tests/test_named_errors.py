"""The errors that docstrings name are those that are raised: for each claim of a table, the error's class and code."""

import numpy as np
import pytest
from test_docstrings import CALLABLES, errors_of

import rscan as rs

X, M, KEY = np.array([1.0, 2.0, 3.0]), np.arange(6.0).reshape(2, 3), np.zeros(2, "uint64")


def value(x):
    return rs.eval(x)


def ended(**arguments):
    x = rs.dscalar("x")
    return rs.function([x], x, **arguments)


def at_session(*args, **named):
    xs = rs.dvector("xs")
    return rs.function([xs], rs.loop(lambda x, h: h + x, over=xs, init=0.0)[:]).session().run(*args, **named)


#: Per claim: whose docstring makes it, the program, the class and the code.
CLAIMS = [
    ("exp", lambda: rs.exp("text"), "RscanTypeError", "E0805"),
    ("exp", lambda: rs.exp(1.0, 2.0), "RscanTypeError", "E0809"),
    ("add", lambda: rs.add(X, np.ones(2)), "ShapeError", "E0201"),
    ("bit_and", lambda: rs.bit_and(1.5, 2), "RscanTypeError", "E0230"),
    ("sum", lambda: rs.sum(X, axis=1), "AxisError", "E0810"),
    ("sum", lambda: rs.sum(X, axis="rows"), "RscanTypeError", "E0809"),
    ("sum", lambda: rs.sum(X, dtype="complex64"), "RscanTypeError", "E0806"),
    ("nansum", lambda: rs.nansum(X, axis=1), "AxisError", "E0810"),
    ("amax", lambda: rs.amax(X, where=[True, False, True]), "RscanValueError", "E0809"),
    ("argsort", lambda: rs.argsort(None), "RscanTypeError", "E0805"),
    ("searchsorted", lambda: rs.searchsorted(X, 1.0, side="up"), "RscanValueError", "E0809"),
    ("quantile", lambda: rs.quantile(X, 1.5), "RscanValueError", "E0809"),
    ("pad", lambda: rs.pad(X, 1, mode="wrapped"), "RscanValueError", "E0809"),
    ("one_hot", lambda: rs.one_hot([0, 1], 2, axis=5), "AxisError", "E0810"),
    ("reshape", lambda: value(rs.reshape(X, (2, 2))), "ShapeError", "E0204"),
    ("broadcast_to", lambda: rs.broadcast_to(X, (2, 2)), "ShapeError", "E0201"),
    ("concatenate", lambda: rs.concatenate([]), "RscanTypeError", "E0809"),
    ("stack", lambda: rs.stack([X], axis=4), "AxisError", "E0810"),
    ("split", lambda: value(rs.split(X, 2)), "ShapeError", "E0812"),
    ("repeat", lambda: value(rs.repeat(X, [1, 2])), "ShapeError", "E0812"),
    ("swapaxes", lambda: rs.swapaxes(X, 0, 1), "AxisError", "E0810"),
    ("empty", lambda: rs.empty(3, dtype="str"), "RscanTypeError", "E0806"),
    ("eye", lambda: value(rs.eye(-1)), "RscanValueError", "E0222"),
    ("linspace", lambda: rs.linspace(0.0, 1.0, 2.5), "RscanTypeError", "E0809"),
    ("take", lambda: rs.take(X, [0.5]), "RscanIndexError", "E0803"),
    ("take", lambda: value(rs.take(X, [5])), "RscanIndexError", "E0202"),
    ("segment_sum", lambda: value(rs.segment_sum(X, [0, 0, 5], 2)), "RscanIndexError", "E0202"),
    ("insert", lambda: value(rs.insert(X, [7], 1.0)), "AssertionFailedError", "E0301"),
    ("linalg.solve", lambda: rs.linalg.solve(np.eye(2), np.ones(3)), "LinAlgError", "E0604"),
    ("random.normal", lambda: value(rs.random.normal(KEY, 3, scale=-1.0)), "AssertionFailedError", "E0301"),
    ("take_along_axis", lambda: rs.take_along_axis(M, [0], 0), "RscanIndexError", "E0803"),
    ("ifelse", lambda: rs.ifelse([True, False], 1.0, 2.0), "RscanTypeError", "E0809"),
    ("ifelse", lambda: rs.ifelse(True, 1.0, X), "RscanTypeError", "E0220"),
    ("assert_", lambda: value(rs.assert_(1.0, False)), "AssertionFailedError", "E0301"),
    ("grad_clip", lambda: rs.grad_clip(X, 1.0, -1.0), "RscanValueError", "E0406"),
    ("matmul", lambda: rs.matmul(1.0, X), "RscanTypeError", "E0809"),
    ("matmul", lambda: value(rs.matmul(M, M)), "ShapeError", "E0208"),
    ("gcd", lambda: rs.gcd(1.5, 2), "RscanTypeError", "E0809"),
    ("cov", lambda: rs.cov(np.ones((2, 2, 2))), "RscanTypeError", "E0809"),
    ("convolve", lambda: rs.convolve(M, M), "RscanValueError", "E0809"),
    ("einsum", lambda: rs.einsum("ij,jk", M, "text"), "RscanTypeError", "E0805"),
    ("fft.fft", lambda: rs.fft.fft(X, norm="none"), "RscanValueError", "E0809"),
    ("fft.ifft", lambda: rs.fft.ifft(X, axis=3), "AxisError", "E0810"),
    ("linalg.inv", lambda: value(rs.linalg.inv(np.zeros((2, 2)))), "LinAlgError", "E0601"),
    ("linalg.inv", lambda: rs.linalg.inv(M), "LinAlgError", "E0603"),
    ("linalg.cholesky", lambda: value(rs.linalg.cholesky(-np.eye(2))), "LinAlgError", "E0602"),
    ("linalg.solve", lambda: rs.linalg.solve(M, X), "LinAlgError", "E0603"),
    ("linalg.qr", lambda: rs.linalg.qr(np.eye(2), mode="full"), "UnsupportedError", "E0813"),
    ("linalg.norm", lambda: rs.linalg.norm(X, ord="large"), "RscanValueError", "E0809"),
    ("random.key", lambda: rs.random.key(-1), "RscanValueError", "E0809"),
    ("random.key", lambda: rs.random.key("seed"), "RscanTypeError", "E0809"),
    ("random.split", lambda: rs.random.split(0), "RscanTypeError", "E0702"),
    ("random.normal", lambda: rs.random.normal(0, 3), "RscanTypeError", "E0702"),
    ("random.laplace", lambda: rs.random.laplace(0, 3), "RscanTypeError", "E0702"),
    ("random.normal", lambda: rs.random.normal(KEY, 3, dtype="int32"), "RscanTypeError", "E0806"),
    ("RandomStream", lambda: rs.RandomStream("seed"), "RscanTypeError", "E0809"),
    ("RandomStream.seed", lambda: rs.RandomStream(0).seed(-1), "RscanValueError", "E0809"),
    ("special.gammainc", lambda: rs.special.gammainc(1.0, None), "RscanTypeError", "E0805"),
    ("stats.multivariate_normal", lambda: value(rs.stats.multivariate_normal.logpdf(X, X, np.zeros((3, 3)))), "LinAlgError", "E0602"),
    ("stats.categorical.logpmf", lambda: value(rs.stats.categorical.logpmf(5, X)), "RscanIndexError", "E0202"),
    ("ode.odeint", lambda: rs.ode.odeint(lambda y, t: y, 1.0, X, method="rk5"), "RscanValueError", "E0809"),
    ("ode.odeint", lambda: rs.ode.odeint(lambda y, t: y, 1.0, 2.0), "RscanTypeError", "E0809"),
    ("optim.apply_updates", lambda: rs.optim.apply_updates({"a": 1}, {"a": 1.0}), "RscanTypeError", "E0401"),
    ("optim.apply_updates", lambda: rs.optim.apply_updates({"a": 1.0}, {"b": 1.0}), "RscanValueError", "E0809"),
    ("optim.adam", lambda: rs.optim.adam(0.1).init({"a": 1}), "RscanTypeError", "E0401"),
    ("optim.cosine_decay", lambda: rs.optim.cosine_decay(0.1, 5)("first"), "RscanTypeError", "E0805"),
    ("scan", lambda: rs.scan(lambda h: rs.stack([h, h]), outputs_info=rs.constant(0.0), n_steps=2), "ScanTypeError", "E0101"),
    ("loop", lambda: rs.loop(lambda h: {"g": h}, init={"h": 0.0}, n_steps=2), "ScanError", "E0105"),
    ("foldl", lambda: rs.foldl(lambda a, b, c: a, X, 0.0), "ScanError", "E0122"),
    ("scan_checkpoints", lambda: rs.scan_checkpoints(lambda h: h, outputs_info=0.0, n_steps=4, save_every_N=0), "ScanError", "E0124"),
    ("fori", lambda: rs.fori(0, 2.5, lambda i, h: h, 0.0), "ScanError", "E0117"),
    ("taps", lambda: rs.taps(X, 0.5), "ScanError", "E0121"),
    ("until", lambda: rs.until("done"), "RscanTypeError", "E0805"),
    ("until", lambda: rs.loop(lambda h: (h, rs.until(h > X)), init=0.0, n_steps=2), "ScanError", "E0108"),
    ("OrderedUpdates", lambda: rs.OrderedUpdates({"w": 1.0}), "ScanError", "E0115"),
    ("OrderedUpdates.update", lambda: rs.OrderedUpdates({W: 1.0}).update({W: 2.0}), "ScanError", "E0126"),
    ("vmap", lambda: rs.vmap("f"), "RscanTypeError", "E0508"),
    ("vmap", lambda: rs.vmap(rs.add)(X, 1.0), "ShapeError", "E0128"),
    ("grad", lambda: rs.grad(rs.constant(X) * 1.0, rs.dscalar()), "NonScalarCostError", "E0401"),
    ("hvp", lambda: rs.hvp("f", (X,), (X,)), "RscanTypeError", "E0508"),
    ("verify_grad", lambda: rs.verify_grad(lambda x: rs.sum(x * rs.stop_gradient(x)), [X]), "GradientCheckError", "E0407"),
    ("function", lambda: ended()("text"), "RscanTypeError", "E0504"),
    ("function", lambda: rs.function([], rs.dscalar("x")), "MissingInputError", "E0501"),
    ("Function.bind", lambda: ended().bind(y=1.0), "RscanTypeError", "E0508"),
    ("Session.run", lambda: at_session("text"), "RscanTypeError", "E0504"),
    ("Session.run", lambda: at_session(ys=X), "RscanTypeError", "E0532"),
    ("step_all", lambda: rs.step_all([]), "RscanTypeError", "E0532"),
    ("compile", lambda: rs.compile(lambda x: x)(np.array(["text"])), "RscanTypeError", "E0508"),
    ("Compiled.lower", lambda: rs.compile(lambda x: x).lower(np.array(["text"])), "RscanTypeError", "E0508"),
    ("shared", lambda: rs.shared("text"), "RscanTypeError", "E0805"),
    ("SharedVariable.set_value", lambda: rs.shared(1, "n").set_value(0.5), "RscanTypeError", "E0506"),
    ("tensor", lambda: rs.tensor("float99"), "RscanTypeError", "E0806"),
    ("In", lambda: rs.In(3), "RscanTypeError", "E0809"),
    ("debugprint", lambda: rs.debugprint(X, file=3), "RscanTypeError", "E0809"),
    ("show", lambda: rs.show(rs.dvector("x"), format="bmp"), "RscanValueError", "E0809"),
    ("save", lambda: rs.save("m.rscan"), "RscanValueError", "E0926"),
    ("save", lambda: rs.save("no/such/folder", f=ended()), "FileError", "E0921"),
    ("load", lambda: rs.load("nonsense"), "ParseError", "E0922"),
    ("save_params", lambda: rs.save_params("w", {"": 1.0}), "RscanValueError", "E0926"),
    ("load_params", lambda: rs.load_params("nonsense"), "ParseError", "E0922"),
]

W = rs.shared(1.0, "w")


def said(name):
    """What the docstring says of errors, with what those to which it leads say."""
    text = errors_of(CALLABLES[name])
    home = name.rpartition(".")[0]
    for other in [part.split("`")[0].removeprefix("rs.") for part in text.split("those of `")[1:]]:
        other = f"{home}.{other}" if f"{home}.{other}" in CALLABLES else other
        text += said(other) if other in CALLABLES else ""
    return text


@pytest.mark.parametrize(("name", "program", "kind", "code"), CLAIMS, ids=[f"{n}-{k}-{c}" for n, _, k, c in CLAIMS])
def test_claims(name, program, kind, code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nonsense").write_bytes(b"nonsense")
    with pytest.raises(rs.RscanError) as caught:
        program()
    assert (type(caught.value).__name__, caught.value.code) == (kind, code)
    text = said(name)
    assert f"`{kind}`" in text and (code in text or "E0105 to E0129" in text or "E0101 to E0103" in text), text
