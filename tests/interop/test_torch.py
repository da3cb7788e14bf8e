"""Functions of rscan in PyTorch, judged by torch.autograd.gradcheck."""

import numpy as np
import pytest

import rscan as rs

torch = pytest.importorskip("torch", reason="torch is not installed")
from rscan.interop.torch import wrap  # noqa: E402


def smooth(a, x):
    rows, _ = rs.scan(lambda x, h: a * h + (1 - a) * x, sequences=x, outputs_info=x[0])
    return rs.sum((x - rows) ** 2)


def inputs():
    a = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    return a, torch.tensor([1.0, 2.0, 4.0, 3.0], dtype=torch.float64, requires_grad=True)


def test_gradients_by_their_own_check():
    assert torch.autograd.gradcheck(wrap(smooth), inputs())


def test_values_and_gradients_are_ours():
    a, x = inputs()
    value = wrap(rs.compile(smooth))(a, x)
    value.backward()
    ours, (slope_a, slope_x) = rs.value_and_grad(smooth, wrt=(0, 1))(0.5, x.detach().numpy())
    np.testing.assert_allclose(value.item(), ours)
    np.testing.assert_allclose(a.grad, slope_a)
    np.testing.assert_allclose(x.grad, slope_x)


def test_inside_a_module_with_an_optimiser():
    a = torch.nn.Parameter(torch.tensor(0.9, dtype=torch.float64))
    optimiser, f = torch.optim.SGD([a], lr=1e-3), wrap(smooth)
    x = torch.tensor([1.0, 2.0, 4.0, 3.0], dtype=torch.float64)
    before = f(a, x).item()
    for _ in range(20):
        optimiser.zero_grad()
        f(a, x).backward()
        optimiser.step()
    assert f(a, x).item() < before


def test_structures_and_integers():
    f = wrap(lambda x, n: {"y": x * n, "steps": n + 1})
    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    found = f(x, torch.tensor(3))
    assert int(found["steps"]) == 4 and not found["steps"].requires_grad
    found["y"].sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_second_derivatives_are_refused():
    a, x = inputs()
    (slope,) = torch.autograd.grad(wrap(smooth)(a, x), a, create_graph=True)
    with pytest.raises(RuntimeError, match="does not require grad"):
        slope.backward()
