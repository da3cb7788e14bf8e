"""A conditional random field that finds words in text without spaces (the help texts that come with Python), by `rs.associative_scan`.

Each letter is the first (B), an inner (I), the last (E) or the only one (S) of its word. Sums over all labellings are products of matrices
in logarithms, one matrix a letter, and so an associative function. Everything else is its gradient: by the scores of letters that of log Z
gives the probabilities of labels, and that of the best labelling's score the best labelling.

The reference is forward-backward and Viterbi in NumPy and SciPy, and on few letters the sum over all labellings.

It needs: pip install scipy
"""

import argparse
import itertools
import pydoc_data.topics

import numpy as np
from scipy.special import logsumexp

import rscan as rs

STATES, LETTERS, OFFSETS = 4, 27, range(-2, 3)
START, END = np.array([0.0, -1e3, -1e3, 0.0]), np.array([-1e3, -1e3, 0.0, 0.0])


def words(n):
    """The first words of the help texts that are letters alone, until they have n letters."""
    text = " ".join(pydoc_data.topics.topics[k] for k in sorted(pydoc_data.topics.topics)).lower()
    found = [w for w in text.split() if w.isascii() and w.isalpha()]
    return found[: 1 + int(np.searchsorted(np.cumsum([len(w) for w in found]), n))]


def labelled(found):
    """Letters around each letter (0 beyond the ends), and labels."""
    letters = np.array([ord(c) - 96 for w in found for c in w])
    ends = [[3] if len(w) == 1 else [0, *[1] * (len(w) - 2), 2] for w in found]
    padded = np.pad(letters, 2)
    around = np.stack([padded[2 + k : 2 + k + len(letters)] for k in OFFSETS], axis=1)
    return around, np.concatenate(ends)


def features(around):
    """Numbers of what is seen: letters at their offsets, and pairs of neighbours."""
    singles = around + LETTERS * np.arange(around.shape[1])
    pairs = around[:, :-1] * LETTERS + around[:, 1:] + LETTERS * around.shape[1] + LETTERS**2 * np.arange(around.shape[1] - 1)
    return np.concatenate([singles, pairs], axis=1)


N_FEATURES = LETTERS * len(OFFSETS) + LETTERS**2 * (len(OFFSETS) - 1)


def combined(together, scores, moves):
    """What all labellings come to, summed up by `together`: first label, matrices of moves and scores, last label."""
    rows = moves + scores[1:, None, :]
    paths = rs.associative_scan(lambda a, b: together(a[:, :, :, None] + b[:, None, :, :], axis=2), rows)
    return together((START + scores[0])[:, None] + paths[-1] + END, axis=(0, 1))


def log_z(scores, moves):
    return combined(rs.logsumexp, scores, moves)


def best(scores, moves):
    return combined(rs.max, scores, moves)


def of_labels(scores, moves, labels):
    """The score of one labelling."""
    chosen = rs.sum(rs.take_along_axis(scores, labels[:, None], axis=1))
    return chosen + rs.sum(moves[labels[:-1], labels[1:]]) + rs.constant(START)[labels[0]] + rs.constant(END)[labels[-1]]


def loss(p, seen, labels):
    scores = rs.sum(p["weights"][seen], axis=1)
    penalty = 2e-4 * (rs.sum(p["weights"] ** 2) + rs.sum(p["moves"] ** 2))
    return (log_z(scores, p["moves"]) - of_labels(scores, p["moves"], labels)) / labels.shape[0] + penalty


def train(seen, labels, iterations):
    optimiser = rs.optim.adam(0.05)

    @rs.compile
    def update(p, state, seen, labels):
        value, slopes = rs.value_and_grad(loss)(p, seen, labels)
        return value, *optimiser.step(slopes, state, p)

    p = {"weights": np.zeros((N_FEATURES, STATES)), "moves": np.zeros((STATES, STATES))}
    state, losses = rs.compile(optimiser.init)(p), []
    for _ in range(iterations):
        value, p, state = update(p, state, seen, labels)
        losses.append(float(value))
    return p, np.array(losses)


# References.


def forward_backward(scores, moves):
    """log Z, and the probability of each label of each letter."""
    forward, backward = [START + scores[0]], [END]
    for row in scores[1:]:
        forward.append(logsumexp(forward[-1][:, None] + moves, axis=0) + row)
    for row in scores[:0:-1]:
        backward.append(logsumexp(moves + row + backward[-1], axis=1))
    both = np.array(forward) + np.array(backward[::-1])
    z = logsumexp(both[0])
    return z, np.exp(both - z)


def viterbi(scores, moves):
    value, back = START + scores[0], []
    for row in scores[1:]:
        back.append(np.argmax(value[:, None] + moves, axis=0))
        value = np.max(value[:, None] + moves, axis=0) + row
    path = [int(np.argmax(value + END))]
    for choice in back[::-1]:
        path.append(int(choice[path[-1]]))
    return np.array(path[::-1])


def over_all(scores, moves):
    """log Z by its definition."""
    n = len(scores)
    of = lambda y: START[y[0]] + END[y[-1]] + scores[np.arange(n), y].sum() + moves[y[:-1], y[1:]].sum()
    return logsumexp([of(np.array(y)) for y in itertools.product(range(STATES), repeat=n)])


def main(letters=3000, iterations=60):
    found = words(letters + letters // 3)
    around, labels = labelled(found)
    seen = features(around)
    p, losses = train(seen[:letters], labels[:letters], iterations)

    scores = p["weights"][seen[letters:]].sum(axis=1)
    z, chances = rs.value_and_grad(log_z)(scores, p["moves"])
    path = np.argmax(rs.grad(best)(scores, p["moves"]), axis=1)
    expected_z, expected_chances = forward_backward(scores, p["moves"])
    expected_path = viterbi(scores, p["moves"])

    right = float(np.mean(path == labels[letters:]))
    print(f"a conditional random field on {letters} letters: loss {losses[0]:.3f} -> {losses[-1]:.3f} in {iterations} steps of Adam")
    print(f"labels of {len(path)} other letters that are right: {100 * right:.1f} %")
    text = "".join(found)
    at = letters + 1 + int(np.flatnonzero(path[1:] % 3 == 0)[0])
    print("".join(" " * int(y % 3 == 0) + c for c, y in zip(text[at : at + 70], path[at - letters :], strict=False)).strip())
    few = rs.compile(log_z)(scores[:6], p["moves"])
    return dict(
        losses=losses, right=right, z=float(z), expected_z=expected_z, chances=chances, expected_chances=expected_chances,
        path=path, expected_path=expected_path, few=float(few), expected_few=over_all(scores[:6], p["moves"]),
    )  # fmt: skip


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--letters", type=int, default=20000)
    options.add_argument("--iterations", type=int, default=150)
    given = options.parse_args()
    main(given.letters, given.iterations)
