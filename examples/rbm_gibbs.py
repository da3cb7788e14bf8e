"""A restricted Boltzmann machine on 8x8 digits, trained by persistent contrastive divergence.

    E(v, h) = -v @ b - h @ c - v @ W @ h

A loop of Gibbs steps draws v and h in turn; the stream of random numbers advances by itself. The step also updates a
shared variable: it counts the pixels that change, so the mixing of the chain can be read off after every call. The
gradient is that of the free energy at the data minus that at the end of the chain.

It needs: pip install scikit-learn
"""

import numpy as np
from sklearn.datasets import load_digits

import rscan as rs

VISIBLE, HIDDEN, BATCH, STEPS, EPOCHS = 64, 100, 100, 3, 40
# Mean absolute error of one reconstruction; the mean image alone gives 0.27.
ERROR_BOUND = 0.12


def binary_digits():
    """The images with pixels 0 and 1."""
    return (load_digits().data > 7).astype(np.float32)


class Machine:
    """Parameters, the persistent chain, and the compiled functions."""

    def __init__(self, data, rng):
        mean = data.mean(0).clip(0.02, 0.98)
        self.W = rs.shared((0.05 * rng.standard_normal((VISIBLE, HIDDEN))).astype(np.float32), name="W")
        self.b = rs.shared(np.log(mean / (1 - mean)).astype(np.float32), name="b")
        self.c = rs.shared(np.zeros(HIDDEN, np.float32), name="c")
        self.chain = rs.shared((rng.random((BATCH, VISIBLE)) < 0.5).astype(np.float32), name="chain")
        self.flips = rs.shared(np.int64(0), name="flips")
        self.random = rs.random.Stream(seed=1)
        self.train = self.compile_training()
        self.error = self.compile_error()
        self.sample = self.compile_sampling()

    def hidden(self, v):
        return rs.sigmoid(v @ self.W + self.c)

    def visible(self, h):
        return rs.sigmoid(h @ self.W.T + self.b)

    def free_energy(self, v):
        """Per row: -log of the sum over h of exp(-E(v, h))."""
        return -(v @ self.b) - rs.sum(rs.softplus(v @ self.W + self.c), axis=1)

    def gibbs(self, start, n_steps):
        """Mean and sample of v after each step, and the updates of the loop."""

        def step(v):
            h = self.random.bernoulli(self.hidden(v), dtype="float32")
            mean = self.visible(h)
            new = self.random.bernoulli(mean, dtype="float32")
            changed = rs.sum(rs.not_equal(new, v), dtype="int64")
            return [new, mean], {self.flips: self.flips + changed}

        return rs.scan(step, outputs_info=[start, None], n_steps=n_steps, name="gibbs")

    def compile_training(self, rate=0.2):
        v = rs.fmatrix("v")
        (samples, _), updates = self.gibbs(self.chain, STEPS)
        end = samples[-1]
        cost = rs.mean(self.free_energy(v)) - rs.mean(self.free_energy(end))
        parameters = [self.W, self.b, self.c]
        for p, g in zip(parameters, rs.grad(cost, parameters, consider_constant=[end])):
            updates[p] = p - np.float32(rate) * g
        updates[self.chain] = end
        return rs.function([v], cost, updates=updates)

    def compile_error(self):
        v = rs.fmatrix("v")
        return rs.function([v], rs.mean(rs.abs(v - self.visible(self.hidden(v)))))

    def compile_sampling(self):
        (_, means), updates = self.gibbs(self.chain, 200)
        return rs.function([], means[-1], updates=updates)


def draw(image):
    """An image in characters."""
    return "\n".join("".join(" .:#"[int(3.99 * p)] * 2 for p in row) for row in image.reshape(8, 8))


def main():
    rng = np.random.default_rng(0)
    data = binary_digits()
    machine = Machine(data, rng)
    first = float(machine.error(data))
    for epoch in range(EPOCHS):
        order = rng.permutation(len(data))
        for start in range(0, len(data) - BATCH + 1, BATCH):
            machine.train(data[order[start : start + BATCH]])
        last = float(machine.error(data))
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1:3}  reconstruction error {last:.4f}")
    steps = EPOCHS * (len(data) // BATCH) * STEPS
    flips = int(machine.flips.get_value())
    samples = machine.sample()

    print(f"reconstruction error {first:.4f} before, {last:.4f} after training; bound {ERROR_BOUND}")
    print(f"the chain changed {flips / (steps * BATCH):.1f} of {VISIBLE} pixels a step")
    print(f"mean pixel {samples.mean():.4f} of samples, {data.mean():.4f} of the data")
    print(draw(samples[0]))
    return dict(
        error_first=first,
        error_last=last,
        error_bound=ERROR_BOUND,
        flips=flips,
        most_flips=steps * BATCH * VISIBLE,
        sample_mean=float(samples.mean()),
        data_mean=float(data.mean()),
    )


if __name__ == "__main__":
    main()
