"""A GRU language model on the help texts that come with Python, trained with Adam: checkpoints, resuming, a loss curve.

    z, r = sigmoid(x_t + h W_zr),   n = tanh(x_t + (r h) W_n),   h' = (1 - z) n + z h

The gradient is compared with finite differences before the training begins. The random numbers of batch i depend on i alone, and a
checkpoint holds parameters and optimiser, so that a training that was interrupted ends with the same bits.

    python examples/gru_language_model.py --iterations 5000     # a run of minutes; again: goes on from the last checkpoint

It needs: pip install matplotlib
"""

import argparse
import pydoc_data.topics
import tempfile
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np

import rscan as rs

matplotlib.use("Agg")
ALPHABET = "abcdefghijklmnopqrstuvwxyz .,'()\n"
HIDDEN, LENGTH, BATCH = 64, 32, 16
OUT = Path(__file__).resolve().parent.parent / "out" / "gru"
OPTIMISER = rs.optim.chain(rs.optim.clip_by_global_norm(5.0), rs.optim.adam(0.01))


def corpus():
    """The help texts as indices into ALPHABET."""
    text = "\n".join(pydoc_data.topics.topics[k] for k in sorted(pydoc_data.topics.topics)).lower()
    index = {c: i for i, c in enumerate(ALPHABET)}
    return np.array([index[c] for c in text if c in index], dtype=np.int64)


def initial(hidden, dtype="float32", seed=0):
    rng, n = np.random.default_rng(seed), len(ALPHABET)
    draw = lambda rows, columns: (rng.standard_normal((rows, columns)) / np.sqrt(rows)).astype(dtype)
    return {
        "embed": draw(n, 3 * hidden),
        "bias": np.zeros(3 * hidden, dtype),
        "gates": draw(hidden, 2 * hidden),
        "new": draw(hidden, hidden),
        "out": draw(hidden, n),
        "out_bias": np.zeros(n, dtype),
    }


def cross_entropy(p, x, y):
    """Mean loss in nats a character; x, y: time × batch."""
    hidden = p["new"].shape[0]

    def step(x, h):
        z, r = rs.split(rs.sigmoid(x[:, : 2 * hidden] + h @ p["gates"]), 2, axis=1)
        n = rs.tanh(x[:, 2 * hidden :] + (r * h) @ p["new"])
        return n + z * (h - n)

    h = rs.loop(step, over=p["embed"][x] + p["bias"], init=rs.zeros((x.shape[1], hidden), p["new"].dtype))
    scores = rs.log_softmax(h @ p["out"] + p["out_bias"])
    return -rs.mean(rs.take_along_axis(scores, y[:, :, None], axis=2))


@rs.compile
def update(p, state, x, y):
    """The loss of a batch, and parameters and optimiser after it."""
    loss, slopes = rs.value_and_grad(cross_entropy)(p, x, y)
    return loss, *OPTIMISER.step(slopes, state, p)


def batch(data, i):
    """Batch number i: the same whenever it is asked for."""
    starts = np.random.default_rng([17, i]).integers(0, len(data) - LENGTH - 1, BATCH)
    window = data[starts + np.arange(LENGTH + 1)[:, None]]
    return window[:-1], window[1:]


def leaves(tree, prefix=""):
    """The arrays of nested dicts and tuples, by path."""
    if isinstance(tree, np.ndarray) or np.isscalar(tree):
        return {prefix: np.asarray(tree)}
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    return {path: leaf for key, value in items for path, leaf in leaves(value, f"{prefix}/{key}").items()}


def rebuilt(tree, found, prefix=""):
    """The same structure with arrays that were read."""
    if isinstance(tree, np.ndarray) or np.isscalar(tree):
        return found[prefix]
    if isinstance(tree, dict):
        return {key: rebuilt(value, found, f"{prefix}/{key}") for key, value in tree.items()}
    items = [rebuilt(value, found, f"{prefix}/{i}") for i, value in enumerate(tree)]
    return type(tree)(*items) if hasattr(tree, "_fields") else type(tree)(items)


def save(file, training, losses):
    """Writes beside the file and renames: whoever is interrupted keeps the last whole checkpoint."""
    file.parent.mkdir(parents=True, exist_ok=True)
    written = file.with_suffix(".part.npz")
    np.savez(written, losses=losses, **leaves(training))
    written.replace(file)


def train(data, iterations, file=None, every=100, report=lambda text: None):
    """Parameters and losses after so many batches, going on from the checkpoint where there is one."""
    p = initial(HIDDEN)
    training, losses = {"p": p, "state": OPTIMISER.init(p)}, []
    if file is not None and file.exists():
        with np.load(file) as found:
            training, losses = rebuilt(training, found), list(found["losses"])
        report(f"going on from batch {len(losses)}")
    for i in range(len(losses), iterations):
        loss, p, state = update(training["p"], training["state"], *batch(data, i))
        training = {"p": p, "state": state}
        losses.append(float(loss))
        if (i + 1) % every == 0:
            report(f"batch {i + 1:6}   loss {np.mean(losses[-every:]):.3f}")
        if file is not None and ((i + 1) % every == 0 or i + 1 == iterations):
            save(file, training, losses)
    return training["p"], np.array(losses)


def verify():
    """Raises where the gradient of a small model differs from finite differences."""
    x, y = np.random.default_rng(1).integers(0, len(ALPHABET), (2, 5, 2))
    p = initial(3, "float64")
    rs.verify_grad(lambda *values: cross_entropy(dict(zip(p, values)), rs.constant(x), rs.constant(y)), list(p.values()))


def write(p, first, length, seed=3):
    """What the network writes after a first character."""
    key = rs.random.key(seed)

    @rs.compile
    def characters(p, first):
        hidden = p["new"].shape[0]

        def step(h, c, i):
            x = p["embed"][c] + p["bias"]
            z, r = rs.split(rs.sigmoid(x[: 2 * hidden] + h @ p["gates"]), 2)
            n = rs.tanh(x[2 * hidden :] + (r * h) @ p["new"])
            h = n + z * (h - n)
            return {"h": h, "c": rs.random.categorical(rs.random.fold_in(key, i), h @ p["out"] + p["out_bias"])}

        return rs.loop(step, over={"i": rs.arange(length)}, init={"h": rs.zeros(hidden, p["new"].dtype), "c": first}).c

    return "".join(ALPHABET[i] for i in characters(p, np.int64(ALPHABET.index(first))))


def plot(losses, file):
    smooth = np.convolve(losses, np.ones(50) / 50, mode="valid") if len(losses) > 50 else losses
    fig, ax = plt.subplots(figsize=(7, 4))
    ax.plot(losses, color="0.85", linewidth=0.5)
    ax.plot(np.arange(len(smooth)) + len(losses) - len(smooth), smooth, color="C0")
    ax.set(xlabel="batch", ylabel="nats a character", title="GRU, help texts of Python")
    fig.savefig(file, dpi=100, bbox_inches="tight")
    plt.close(fig)


def main(iterations=240, folder=None, report=lambda text: None):
    """Trains in one go and in two parts, whose bits must be equal; with a folder in one go, going on from what lies there."""
    verify()
    data = corpus()
    frequency = np.bincount(data, minlength=len(ALPHABET)) / len(data)
    with tempfile.TemporaryDirectory() as scratch:
        file = (folder or Path(scratch)) / "checkpoint.npz"
        if folder is None:
            train(data, iterations // 2, file)  # is interrupted here
        p, losses = train(data, iterations, file, report=report)
        again = losses if folder else train(data, iterations)[1]
    picture = OUT / "loss.png"
    picture.parent.mkdir(parents=True, exist_ok=True)
    plot(losses, picture)
    text = write(p, "t", 200)
    print(f"GRU, {len(data)} characters, {len(losses)} batches of {BATCH} × {LENGTH}")
    print(f"loss, first 10 batches {np.mean(losses[:10]):.3f}, last 20 {np.mean(losses[-20:]):.3f}; curve: {picture}")
    print("t" + text)
    return dict(
        losses=losses, resumed=again, letters=-np.sum(frequency * np.log(frequency)), text=text, plot=picture, alphabet=len(ALPHABET)
    )


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--iterations", type=int, default=2000)
    options.add_argument("--folder", type=Path, default=OUT)
    given = options.parse_args()
    main(given.iterations, given.folder, report=lambda text: print(text, flush=True))
