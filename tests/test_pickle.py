"""Variables and functions through pickle and copy."""

import contextlib
import copy
import importlib
import importlib.util
import pickle
import subprocess
import sys

import models_to_pickle
import numpy as np
import pytest
from helpers import same

import rscan as rs
from rscan import _native

WAYS = [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]


@pytest.fixture(params=WAYS, ids=["deepcopy", "pickle"])
def through(request):
    """A way to copy."""
    return request.param


def test_expressions(through):
    x, w = rs.vector("x"), rs.shared(np.ones(3), "w")
    y = (x * w).sum()
    y.name = "total"
    y.tag.note = "kept"
    x2, w2, y2 = through((x, w, y))
    assert (x2.name, y2.name, y2.tag.note) == ("x", "total", "kept") and x2 is not x and w2 is not w
    w2.set_value(np.full(3, 2.0))
    same(rs.function([x2], y2)([1, 2, 3]), np.asarray(12.0))
    same(rs.function([x], y)([1, 2, 3]), np.asarray(6.0))


def test_functions_keep_sharing(through):
    n = rs.shared(0, "n")
    up, show = through((rs.function([], [], updates={n: n + 1}), rs.function([], n)))
    up(), up()
    assert int(show()) == 2 and int(n.get_value()) == 0


def test_everything_of_a_function(through):
    x, y, z = rs.scalars("x y z")
    f = rs.function([x, rs.In(y, value=5.0)], {"a": x + y + z, "b": rs.exp(x)}, givens={z: x * 100}, name="f")
    g = through(f)
    assert g(1.0) == f(1.0) and g(1.0, y=2.0) == f(1.0, 2.0) and g.name == "f" and repr(g) == repr(f)
    with pytest.raises(TypeError):
        g()
    h = rs.function([e := rs.exp(x)], e * 2)
    assert through(h)(3.0) == 6.0


def test_default_updates(through):
    n = rs.shared(0, "n")
    n.default_update = n + 1
    m, y = through((n, n * 10))
    f = rs.function([], y)
    assert (int(f()), int(f()), int(m.get_value()), int(n.get_value())) == (0, 10, 2, 0)


def test_loops(through):
    x, h0 = rs.vector("x"), rs.scalar("h0")
    hs, _ = rs.scan(lambda x_t, h: x_t + 0.5 * h, sequences=x, outputs_info=h0)
    f = rs.function([x, h0], [hs, rs.grad(hs[-1], h0)])
    same(through(f)([1.0, 2.0], 4.0), f([1.0, 2.0], 4.0))


def test_extents_of_states_stay_those_of_inputs(through):
    m, k = rs.dmatrix("m"), rs.dscalar("k")
    out = rs.loop(lambda m, k: (0.4 * m + 0.2 * rs.sin(k), 0.4 * k + 0.2 * rs.tanh(rs.mean(m))), init=[m, k], n_steps=3)
    f = rs.function([m, k], rs.sum(out[1] * np.array([0.57, 2.43, 0.64])))
    g = through(f)
    assert g.text() == f.text() and g.text(optimised=True) == f.text(optimised=True)
    random = np.random.default_rng(0)
    for shape in [(2, 4), (1, 1), (5, 3)]:
        args = random.normal(size=shape), random.normal()
        same(g(*args), f(*args))


def test_constants(through):
    c = rs.constant(np.arange(3), name="c")
    d = through(c)
    assert d.name == "c" and d.eval().tolist() == [0, 1, 2]


# Functions of Python.

PROGRAM = """
import sys, pickle, multiprocessing
import numpy as np
import rscan as rs

w = rs.shared(np.array([1.0, 2.0]), "w")

@rs.compile
def loss(a, x):
    return rs.sum((a * x * w) ** 2)

both = rs.value_and_grad(loss)
rows = rs.compile(rs.vmap(loss, (0, None)))
a, x = rs.dscalar("a"), rs.dvector("x")
graph = rs.function([a, x], [rs.sum((a * x * w) ** 2), rs.grad(rs.sum((a * x * w) ** 2), x)])

def call(job):
    f, args = job
    return [np.asarray(v) for v in (lambda r: r if isinstance(r, (tuple, list)) else (r,))(f(*args))]

if __name__ == "__main__":
    x = np.array([1.0, 2.0])
    local = rs.compile(lambda a, x: rs.sum(a * x))
    jobs = [(loss, (0.5, x)), (both, (0.5, x)), (rows, (np.array([0.5, 1.0]), x)), (local, (2.0, x)), (graph, (0.5, x))]
    jobs.append((graph.bind(x=x), (0.5,)))
    here = [call(job) for job in jobs]
    if sys.argv[1] == "spawn":
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            there = pool.map(call, jobs)
    elif sys.argv[1] == "loky":
        from joblib.externals.loky import ProcessPoolExecutor
        with ProcessPoolExecutor(1) as pool:
            there = list(pool.map(call, jobs))
    elif sys.argv[1] == "dask":
        from distributed import Client
        with Client(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None) as client:
            there = client.gather(client.map(call, jobs, pure=False))
    else:
        import ray
        ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, configure_logging=False)
        there = ray.get([ray.remote(call).remote(job) for job in jobs])
    for a, b in zip(here, there, strict=True):
        for v, w in zip(a, b, strict=True):
            np.testing.assert_array_equal(v, w)
    print("equal", len(there))
"""


@pytest.mark.parametrize(("way", "package"), [("spawn", "pickle"), ("loky", "joblib"), ("dask", "distributed"), ("ray", "ray")])
def test_functions_of_a_program_run_in_other_processes(way, package, tmp_path):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    (tmp_path / "program.py").write_text(PROGRAM)
    done = subprocess.run([sys.executable, tmp_path / "program.py", way], capture_output=True, text=True, timeout=200)
    assert done.stdout.strip().endswith("equal 6"), done.stderr


def pickles():
    found = [pickle]
    with contextlib.suppress(ImportError):
        found.append(importlib.import_module("cloudpickle"))
    return found


@pytest.mark.parametrize("way", pickles(), ids=lambda way: way.__name__)
class TestFunctionsOfPython:
    def test_of_a_module_are_found_by_their_names(self, way):
        assert pickle.loads(way.dumps(models_to_pickle.loss)) is models_to_pickle.loss
        assert len(way.dumps(models_to_pickle.loss)) < 100

    def test_gradients_of_them(self, way):
        x = np.array([1.0, 2.0, 4.0])
        for f in (models_to_pickle.both, rs.value_and_grad(models_to_pickle.plain), rs.value_and_grad(models_to_pickle.loss, wrt="x")):
            for here, there in zip(f(0.5, x), pickle.loads(way.dumps(f))(0.5, x), strict=True):
                same(np.asarray(there), np.asarray(here))

    def test_what_transforms_made(self, way):
        a, x = np.array([0.5, 1.0]), np.array([1.0, 2.0])
        rows = rs.vmap(models_to_pickle.plain, (0, None))
        same(rs.compile(pickle.loads(way.dumps(rows)))(a, x), rs.compile(rows)(a, x))
        compiled = rs.compile(rs.vmap(rs.vmap(lambda a, x: a * x, (0, None)), (None, 0)))
        same(pickle.loads(way.dumps(compiled))(a, x), compiled(a, x))

    def test_local_functions_with_what_they_capture(self, way):
        pytest.importorskip("cloudpickle", reason="cloudpickle is not installed")
        power = 3
        f = rs.compile(lambda x: x**power, name="cube")
        g = pickle.loads(way.dumps(f))
        assert g(2.0) == 8.0 and repr(g) == repr(f)

    def test_bound_functions_and_results(self, way):
        x, y = rs.dvectors("x y")
        f = rs.function([x, y], x * y).bind(y=[1.0, 2.0])
        same(pickle.loads(way.dumps(f))([3.0, 4.0]), f([3.0, 4.0]))
        explained = rs.function([x], rs.cumsum(x)).explain()
        assert pickle.loads(way.dumps(explained)) == explained


def test_a_model_with_its_gradient_is_small_and_loads_at_once():
    omega, alpha, beta = parameters = rs.dscalars("omega alpha beta")
    y = rs.dvector("y")
    out = rs.loop(lambda y, h: {"h": omega + alpha * y**2 + beta * h}, over={"y": y}, init={"h": rs.mean(y**2)})
    nll = 0.5 * rs.sum(rs.log(out.h[:-1]) + y[1:] ** 2 / out.h[:-1])
    data = pickle.dumps(f := rs.function([*parameters, y], [nll, *rs.grad(nll, list(parameters))]))
    assert len(data) < 10_000
    values = np.linspace(-1, 1, 50)
    for here, there in zip(f(0.1, 0.1, 0.8, values), pickle.loads(data)(0.1, 0.1, 0.8, values), strict=True):
        same(there, here)


def test_without_cloudpickle_the_error_says_what_to_do(monkeypatch):
    for name in ("cloudpickle", "joblib.externals.cloudpickle"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(pickle.PicklingError, match="move it into a module, or install cloudpickle"):
        pickle.dumps(rs.compile(lambda x: x))


def test_gradients_of_local_functions():
    """What was made of a function is kept with it, and does not travel along."""
    way = pytest.importorskip("cloudpickle", reason="cloudpickle is not installed")
    scale = 2.0
    f = rs.value_and_grad(lambda x: scale * x**2)
    assert pickle.loads(way.dumps(f))(3.0) == f(3.0) == (18.0, 12.0)


ONLY_HERE = """
import rscan as rs

def cost(x):
    return x**3

both = rs.value_and_grad(cost)

def slope(x):
    return float(both(x)[1])
"""

LACKING = """
import pickle, sys
import numpy as np
f = pickle.loads(open(sys.argv[1], "rb").read())
print(f(2.0), "only_here" in sys.modules)
"""


def test_modules_that_the_receiver_lacks_travel_whole(tmp_path, monkeypatch):
    way = pytest.importorskip("cloudpickle", reason="cloudpickle is not installed")
    (tmp_path / "only_here.py").write_text(ONLY_HERE)
    monkeypatch.syspath_prepend(tmp_path)
    import only_here

    way.register_pickle_by_value(only_here)
    try:
        (tmp_path / "slope.pickle").write_bytes(way.dumps(only_here.slope))
    finally:
        way.unregister_pickle_by_value(only_here)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "receiver.py").write_text(LACKING)
    done = subprocess.run(
        [sys.executable, tmp_path / "elsewhere" / "receiver.py", tmp_path / "slope.pickle"], capture_output=True, text=True, timeout=200
    )
    assert done.stdout.strip() == "12.0 False", done.stderr


def cost(a, x):
    return rs.sum((a * x) ** 3)


@pytest.mark.parametrize("transform", [rs.grad, rs.value_and_grad, rs.jacobian, rs.hessian], ids=lambda t: t.__name__)
def test_every_transform_travels(transform):
    made = transform(cost)
    args = 1.5, np.array([1.0, 2.0])
    before = made(*args)
    copied = pickle.loads(pickle.dumps(made))
    np.testing.assert_array_equal(copied(*args), before)
    assert copied.__name__ == made.__name__


@pytest.mark.parametrize("version", ["0.0.1", ""])
def test_pickles_of_another_version_say_so(version, monkeypatch):
    """What another version wrote may hold ops that this one has not."""
    x = rs.dvector("x")
    things = rs.function([x], rs.exp(x)), rs.exp(x)
    for module in ("rscan._pickle", "rscan.function"):
        monkeypatch.setattr(sys.modules[module], "to_text", lambda variables, leaves: "fn f(x: f64[n0]) {\n  %0 = newer(x)\n  return %0\n}")
    own = [pickle.dumps(thing) for thing in things]
    monkeypatch.setattr(_native, "__version__", version)
    foreign = [pickle.dumps(thing) for thing in things]
    monkeypatch.undo()
    for data in own:
        with pytest.raises(rs.ParseError, match="E0901") as caught:
            pickle.loads(data)
        assert not caught.value.helps
    for data in foreign:
        with pytest.raises(rs.ParseError, match="E0901") as caught:
            pickle.loads(data)
        written = f"rscan {version}" if version else "rscan of an earlier version"
        assert caught.value.notes == [f"it was pickled by {written}, and is read by {rs.__version__}"]
        assert "rs.save" in caught.value.helps[0]
