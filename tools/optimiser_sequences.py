"""Writes tests/optimisers.json: what optax's and PyTorch's optimisers make of a small problem, for tests/test_optim.py.

    python -m venv out/optimisers && out/optimisers/bin/pip install optax==0.2.8 jax==0.10.2 torch==2.15.0
    out/optimisers/bin/python tools/optimiser_sequences.py optax torch

Without names of packages it writes the sequences of both; one that is not named keeps what the file has of it.
"""

import json
import math
import sys
from pathlib import Path

PATH = Path(__file__).parent.parent / "tests" / "optimisers.json"
START = [1.0, -2.0, 0.5]
STEPS = 12


def slopes(p: list[float]) -> list[float]:
    """The gradient of sum(p⁴/4 − p·(1, 2, 3)·cos 1) + p₀·p₁: the same numbers in every library."""
    coupled = [p[1], p[0], 0.0]
    return [x**3 - (i + 1) * math.cos(1.0) + c for i, (x, c) in enumerate(zip(p, coupled, strict=True))]


def with_optax() -> dict[str, list[list[float]]]:
    """By names of tests/test_optim.py."""
    import jax
    import optax

    jax.config.update("jax_enable_x64", True)
    made = {
        "sgd": optax.sgd(0.1),
        "momentum": optax.sgd(0.1, 0.8),
        "nesterov": optax.sgd(0.1, 0.8, nesterov=True),
        "adam": optax.adam(0.1),
        "adam of others": optax.adam(0.1, 0.5, 0.7, 1e-3),
        "adamw": optax.adamw(0.1, weight_decay=0.3),
        "adadelta": optax.adadelta(1.0),
        "adadelta of others": optax.adadelta(0.5, 0.8, 1e-3),
        "adagrad": optax.adagrad(0.1),
        "rmsprop": optax.rmsprop(0.1),
        "rmsprop centered": optax.rmsprop(0.1, 0.8, 1e-4, centered=True, momentum=0.5),
        "lion": optax.lion(0.1, weight_decay=0.0),
        "lion with decay": optax.lion(0.1, weight_decay=0.3),
        "clip": optax.chain(optax.clip(0.4), optax.sgd(0.1)),
        "clip_by_global_norm": optax.chain(optax.clip_by_global_norm(1.5), optax.sgd(0.1)),
        "cosine": optax.adam(optax.cosine_decay_schedule(0.2, 8, 0.25)),
        "exponential": optax.sgd(optax.exponential_decay(0.2, 3, 0.5)),
        "linear": optax.sgd(optax.linear_schedule(0.2, 0.05, 6)),
        "warmup": optax.sgd(optax.warmup_cosine_decay_schedule(0.0, 0.2, 4, 10)),
        "pieces": optax.sgd(optax.piecewise_constant_schedule(0.2, {3: 0.5, 6: 0.1})),
    }
    return {name: _steps_of_optax(optimiser) for name, optimiser in made.items()}


def _steps_of_optax(optimiser) -> list[list[float]]:
    import jax.numpy as jnp
    import optax

    p = jnp.array(START)
    state, found = optimiser.init(p), []
    for _ in range(STEPS):
        updates, state = optimiser.update(jnp.array(slopes(p.tolist())), state, p)
        p = optax.apply_updates(p, updates)
        found.append(p.tolist())
    return found


def with_torch() -> dict[str, list[list[float]]]:
    """Those whose formulas are the same in both; PyTorch adds eps of rmsprop and adagrad behind the root."""
    import torch

    made = {
        "sgd": lambda p: torch.optim.SGD(p, 0.1),
        "momentum": lambda p: torch.optim.SGD(p, 0.1, 0.8),
        "nesterov": lambda p: torch.optim.SGD(p, 0.1, 0.8, nesterov=True),
        "adam": lambda p: torch.optim.Adam(p, 0.1),
        "adam of others": lambda p: torch.optim.Adam(p, 0.1, (0.5, 0.7), 1e-3),
        "adamw": lambda p: torch.optim.AdamW(p, 0.1, weight_decay=0.3),
        "adadelta": lambda p: torch.optim.Adadelta(p, 1.0),
        "adadelta of others": lambda p: torch.optim.Adadelta(p, 0.5, 0.8, 1e-3),
        "adagrad without eps": lambda p: torch.optim.Adagrad(p, 0.1, initial_accumulator_value=0.1, eps=0.0),
        "rmsprop without eps": lambda p: torch.optim.RMSprop(p, 0.1, 0.9, eps=0.0),
    }
    return {name: _steps_of_torch(optimiser) for name, optimiser in made.items()}


def _steps_of_torch(make) -> list[list[float]]:
    import torch

    p = torch.tensor(START, dtype=torch.float64, requires_grad=True)
    optimiser, found = make([p]), []
    for _ in range(STEPS):
        p.grad = torch.tensor(slopes(p.tolist()), dtype=torch.float64)
        optimiser.step()
        found.append(p.tolist())
    return found


def main(names: list[str]) -> None:
    """Writes the file."""
    found = json.loads(PATH.read_text()) if PATH.exists() else {}
    for name in names or ["optax", "torch"]:
        found[name] = {"optax": with_optax, "torch": with_torch}[name]()
    rows = [f"{json.dumps(package)}: {{\n" + ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in sequences.items()) + "\n}"
            for package, sequences in sorted(found.items())]  # fmt: skip
    PATH.write_text("{\n" + ",\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
