"""Times loops on a card beside JAX and PyTorch on the same card: `python tools/gpu_times.py cuda:0`, in a few minutes.

Arrays lie on the card before and behind each call; a time is the median of calls, each of which waits for its results. JAX and PyTorch are
left out where they are not installed. PyTorch runs an LSTM by cuDNN, other loops step by step.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import rscan as rs


@dataclass
class Loop:
    """A loop, its arguments, and what its peers run."""

    name: str
    steps: int
    inputs: list[Any]
    outputs: list[Any]
    args: list[np.ndarray]
    jax: Callable[..., Any]
    torch: Callable[..., Any] | None = None


def numbers(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    """Random arrays of float32 of these shapes."""
    rng = np.random.default_rng(0)
    return [(rng.uniform(-0.5, 0.5, shape) / np.sqrt(shape[-1] if len(shape) == 2 else 1)).astype(np.float32) for shape in shapes]


def decay(width: int, steps: int = 4096) -> Loop:
    """`h·w + x` over rows; the last one."""
    import jax

    x, w = rs.fmatrix("x"), rs.fvector("w")
    out = rs.loop(lambda x, h: h * w + x, over=x, init=rs.zeros_like(w))

    def peer(x: Any, w: Any) -> Any:
        return jax.lax.scan(lambda h, x: (h * w + x, None), 0 * w, x)[0]

    def rows(torch: Any, x: Any, w: Any) -> Any:
        h = torch.zeros_like(w)
        for row in x:
            h = torch.addcmul(row, h, w)
        return h

    return Loop(f"h*w+x, {width} lanes", steps, [x, w], [out[-1]], numbers((steps, width), (width,)), peer, rows)


def gate(width: int, steps: int = 4096) -> Loop:
    """A gate of a tanh and a sigmoid over rows; the last one."""
    import jax

    x, w = rs.fmatrix("x"), rs.fvector("w")
    out = rs.loop(lambda x, h: rs.tanh(h * w + x) * rs.sigmoid(x), over=x, init=rs.zeros_like(w))

    def peer(x: Any, w: Any) -> Any:
        return jax.lax.scan(lambda h, x: (jax.numpy.tanh(h * w + x) * jax.nn.sigmoid(x), None), 0 * w, x)[0]

    return Loop(f"gate, {width} lanes", steps, [x, w], [out[-1]], numbers((steps, width), (width,)), peer)


def all_rows(width: int, steps: int = 4096) -> Loop:
    """`h·w + x` over rows; each one."""
    import jax

    x, w = rs.fmatrix("x"), rs.fvector("w")
    out = rs.loop(lambda x, h: h * w + x, over=x, init=rs.zeros_like(w))

    def peer(x: Any, w: Any) -> Any:
        return jax.lax.scan(lambda h, x: (h * w + x,) * 2, 0 * w, x)[1]

    return Loop(f"h*w+x, all rows of {width}", steps, [x, w], [out], numbers((steps, width), (width,)), peer)


def lstm(gradient: bool, steps: int = 256, batch: int = 32, width: int = 256) -> Loop:
    """An LSTM, its inputs multiplied before; with `gradient` that of the sum of squares with respect to what it learns."""
    import jax
    import jax.numpy as jnp

    x, w, u, b = rs.ftensor3("x"), rs.fmatrix("w"), rs.fmatrix("u"), rs.fvector("b")

    def cell(np: Any, a: Any, c: Any, sigmoid: Any) -> Any:
        i, f, g, o = (a[:, k * width : (k + 1) * width] for k in range(4))
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c

    def step(x: Any, h: Any, c: Any) -> Any:
        h, c = cell(rs, x + h @ u, c, rs.sigmoid)
        return {"h": h, "c": c}

    zero = rs.zeros((batch, width), "float32")
    out = rs.loop(step, over=x @ w + b, init={"h": zero, "c": zero})
    cost = rs.sum(out.h[-1] ** 2)

    def forward(x: Any, w: Any, u: Any, b: Any) -> Any:
        zero = jnp.zeros((batch, width), jnp.float32)
        (h, _), _ = jax.lax.scan(lambda hc, x: (cell(jnp, x + hc[0] @ u, hc[1], jax.nn.sigmoid), None), (zero, zero), x @ w + b)
        return jnp.sum(h**2)

    outputs = [cost, *rs.grad(cost, [w, u, b])] if gradient else [cost]
    peer = jax.value_and_grad(forward, argnums=(1, 2, 3)) if gradient else forward

    def library(torch: Any, x: Any, *_: Any) -> Any:
        net = library.__dict__.setdefault("net", torch.nn.LSTM(width, width, device="cuda"))
        if not gradient:
            with torch.no_grad():
                return net(x)[1][0]
        net.zero_grad()
        (net(x)[1][0] ** 2).sum().backward()
        return net.weight_hh_l0.grad

    args = numbers((steps, batch, width), (width, 4 * width), (width, 4 * width), (4 * width,))
    return Loop(f"LSTM {batch} x {width}{', gradient' if gradient else ''}", steps, [x, w, u, b], outputs, args, peer, library)


def affine(shape: tuple[int, int, int] = (8, 1536, 4096)) -> Loop:
    """`a·h + b` along the last axis of two arrays; each value."""
    import jax

    a, b = rs.ftensor3("a"), rs.ftensor3("b")
    out = rs.loop(lambda a, b, h: a * h + b, over=[a, b], init=rs.zeros_like(b[0]))

    def peer(a: Any, b: Any) -> Any:
        return jax.lax.associative_scan(lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1]), (a, b))[1]

    batch, width, steps = shape
    return Loop(f"affine {shape}", steps, [a, b], [out], numbers((steps, batch, width), (steps, batch, width)), peer)


def median(call: Callable[[], Any], calls: int = 7, most: float = 6.0) -> float:
    """The median time of calls behind two first ones, in milliseconds."""
    end = time.monotonic() + most
    call(), call()
    times = []
    while len(times) < calls and (len(times) < 2 or time.monotonic() < end):
        start = time.perf_counter()
        call()
        times.append(1000 * (time.perf_counter() - start))
    return statistics.median(times)


def ours(loop: Loop, device: str) -> tuple[float, str]:
    """Our time on the device, and whether its bits are the processor's."""
    f = rs.function(loop.inputs, loop.outputs, device=device, fetch=False)
    there = [rs.to_device(arg, device) for arg in loop.args]
    took = median(lambda: f(*there))
    found = f(*there)
    law = rs.function(loop.inputs, loop.outputs)(*loop.args)
    one = [r.numpy() for r in (found if isinstance(found, (list, tuple)) else [found])]
    other = law if isinstance(law, (list, tuple)) else [law]
    same = all(np.array_equal(p, q) for p, q in zip(one, other, strict=True))
    engines = {v.engine for part in f.explain().loops for v in part.variants}
    return took, ("same bits" if same else "DIFFERENT") + "; " + "; ".join(sorted(map(str, engines)))


def by_jax(loop: Loop) -> float:
    """JAX's time."""
    import jax

    f, args = jax.jit(loop.jax), [jax.device_put(arg) for arg in loop.args]
    return median(lambda: jax.block_until_ready(f(*args)))


def by_torch(loop: Loop) -> float:
    """PyTorch's time."""
    import torch

    if loop.torch is None:
        return float("nan")
    args = [torch.from_numpy(arg).cuda() for arg in loop.args]

    def call() -> None:
        loop.torch(torch, *args)  # type: ignore[misc]
        torch.cuda.synchronize()

    return median(call, calls=3)


def tried(what: Callable[..., Any], *args: Any) -> Any:
    """What it gives, or the error, which is printed."""
    try:
        return what(*args)
    except Exception as error:
        print(f"  {what.__name__}: {type(error).__name__}: {str(error)[:300]}")
        return float("nan")


def main() -> int:
    """Prints the table; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("device", nargs="?", default="cuda:0")
    parser.add_argument("--small", action="store_true", help="small loops, for drivers that are slow")
    options = parser.parse_args()
    few = 16 if options.small else 1
    makes: list[Callable[[], Loop]] = [
        *(lambda d=d: decay(d, 4096 // few) for d in (256, 4096, 65536 // few)),
        *(lambda d=d: gate(d, 4096 // few) for d in (4096, 65536 // few)),
        lambda: all_rows(65536 // few, 4096 // few),
        lambda: lstm(False, 256 // few, 32 // few, 256 // few),
        lambda: lstm(True, 256 // few, 32 // few, 256 // few),
        lambda: affine((8, 1536 // few, 4096 // few)),
    ]
    print(f"{'loop':<30} {'ms':>9} {'us/step':>8} {'JAX ms':>9} {'torch ms':>9}")
    for make in makes:
        loop = make()
        got = tried(ours, loop, options.device)
        took, note = got if isinstance(got, tuple) else (float("nan"), "")
        peers = [tried(by, loop) for by in (by_jax, by_torch)]
        print(f"{loop.name:<30} {took:9.3f} {1000 * took / loop.steps:8.3f} {peers[0]:9.3f} {peers[1]:9.3f}  {note}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
