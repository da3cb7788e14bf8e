"""What is noted along a training."""

import pickle
import sys

import numpy as np
import pytest

import rscan as rs
from rscan.interop.history import History


class Writer:
    """Whatever has `add_scalar`."""

    def __init__(self):
        self.got = []

    def add_scalar(self, tag, value, step):
        self.got.append((tag, value, step))


def noted(writer=None):
    history = History(writer)
    step = rs.value_and_grad(lambda w: rs.sum((w - 3.0) ** 2))
    w = np.zeros(2)
    for i in range(4):
        loss, slope = step(w)
        w = w - 0.25 * slope
        history.note(i, loss=loss)
        if i % 2:
            history.note(i, size=np.abs(w).sum())
    return history


def test_numbers_by_name_and_step():
    history = noted()
    np.testing.assert_allclose(history["loss"], 18.0 * 0.25 ** np.arange(4))
    assert history.steps("size").tolist() == [1, 3] and len(history) == 4 and repr(history) == "History(4 steps of loss, size)"
    again = pickle.loads(pickle.dumps(noted(Writer())))
    assert again["size"].tolist() == history["size"].tolist() and again.writer is None


def test_what_is_no_number_is_named():
    with pytest.raises(ValueError, match=r"`loss` of step 0 is no number, but float64 of shape \(2,\)"):
        History().note(0, loss=np.ones(2))


def test_writers_get_each_number():
    writer = Writer()
    history = noted(writer)
    assert [value for tag, value, _ in writer.got if tag == "loss"] == history["loss"].tolist()
    assert [step for tag, _, step in writer.got if tag == "size"] == [1, 3]


def test_tensorboard_reads_it_back(tmp_path):
    tensorboard = pytest.importorskip("tensorboardX", reason="tensorboardX is not installed")
    accumulators = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator", reason="tensorboard is not installed")
    with tensorboard.SummaryWriter(str(tmp_path)) as writer:
        history = noted(writer)
    read = accumulators.EventAccumulator(str(tmp_path))
    read.Reload()
    events = read.Scalars("loss")
    assert [e.step for e in events] == [0, 1, 2, 3]
    np.testing.assert_allclose([e.value for e in events], history["loss"], rtol=1e-6)


def test_as_a_table():
    pytest.importorskip("pandas", reason="pandas is not installed")
    table = noted().to_dataframe()
    assert list(table.columns) == ["loss", "size"] and table.index.tolist() == [0, 1, 2, 3] and table.index.name == "step"
    assert table["size"].isna().tolist() == [True, False, True, False]


def test_as_a_plot(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    import matplotlib.pyplot as plt

    ax = noted().plot("loss")
    assert [line.get_label() for line in ax.lines] == ["loss"] and ax.lines[0].get_xdata().tolist() == [0, 1, 2, 3]
    assert noted().plot(ax=ax) is ax and len(ax.lines) == 3
    assert not list(tmp_path.iterdir())
    plt.close("all")


def test_without_matplotlib_only_the_plot_is_missing(monkeypatch):
    for name in [n for n in sys.modules if n.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    history = noted()
    with pytest.raises(ImportError, match="matplotlib"):
        history.plot()
