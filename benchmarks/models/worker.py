"""One model in a fresh process: `worker.py NAME JSON`, driven by run.py. The last line of the output is a JSON object."""

import contextlib
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time

# The folder of this file has modules whose names mean something else elsewhere.
sys.path[0] = str(pathlib.Path(__file__).parents[1])

import models
import numpy as np
import rscan as rs
from common import touch


def timed(call, n=1):
    """Seconds of a call, of the process: what others do on the core meanwhile does not count."""
    start = time.process_time()
    for _ in range(n):
        call()
    return (time.process_time() - start) / n


def prepared(build, size, arguments):
    """A call without arguments."""
    f = build(**size)
    return f, lambda: f(*arguments)


def first(model, size, arguments):
    """The compiled function, its result, and how long it took to make it and call it once."""
    x = rs.dscalar("x")
    rs.function([x], x + 1)(1.0)
    touch(512)
    start = time.process_time()
    f, call = prepared(model.rscan, size, arguments)
    result = call()
    return f, call, result, time.process_time() - start


def twin(model, size, arguments):
    """The call of the twin, and its result."""
    import jax

    # What a user holds: arrays of JAX, numbers as they are.
    held = [jax.numpy.asarray(a) if isinstance(a, (np.ndarray, np.generic)) else a for a in arguments]
    _, call = prepared(model.jax, size, held)
    call = lambda call=call: jax.block_until_ready(call())
    start = time.process_time()
    result = call()
    return call, [np.asarray(a) for a in models.flat(result)], time.process_time() - start


def measure(calls, rounds, seconds):
    """Seconds per call of each, one list per call: they take turns, so that what else the machine does hits all alike."""
    for call in calls:
        start = time.perf_counter()
        while timed(call) and time.perf_counter() - start < 0.1:  # kernels become machine code after some calls
            pass
    once = [timed(call) for call in calls]
    counts = [max(1, min(2000, int(seconds / t))) for t in once]
    taken = sum(n * t for n, t in zip(counts, once))
    rounds = max(3, min(rounds, int(5 / taken)))
    samples = [[] for _ in calls]
    for _ in range(rounds):
        for call, n, found in zip(calls, counts, samples):
            if n > 1:
                call()
            found.append(timed(call, n))
    return samples


def function_of(f, arguments):
    """The rs.Function behind what a model returned."""
    return f.lower(*arguments) if hasattr(f, "lower") else f


def loops_of(f, arguments):
    """Per loop: its engine, the ops that its steps call from the host, and why it is not machine code through and through."""
    found = []
    for loop in function_of(f, arguments).explain().loops:
        for variant in loop.variants[-1:]:
            _, _, calls = variant.engine.partition(" and calls of ")
            calls = calls.split(", ") if calls else ["eval"] if variant.engine == "eval" else []
            copies = [f"{what}: {size:,} bytes" for what, size in variant.copies]
            found.append(dict(loop=loop.name, depth=loop.depth, engine=variant.engine, calls=calls, reason=variant.reason, copies=copies))
    return found


def run(model, options):
    """What is known about a model; raises where it fails."""
    size = model.small if options["small"] else model.size
    arguments = model.arguments(size)
    f, call, ours, first_s = first(model, size, arguments)
    found = dict(first_call_s=first_s)
    if options["first_only"]:
        return found
    calls = [call]
    if options["jax"]:
        try:
            other, theirs, found["jax_first_call_s"] = twin(model, size, arguments)
        except Exception as error:
            raise RuntimeError(f"the twin in JAX fails: {type(error).__name__}: {error}") from error
        model.same([np.array(a) for a in models.flat(ours)], theirs)
        # Once more: kernels may be other ones by now.
        model.same(models.flat([call() for _ in range(3)][-1]), theirs)
        calls.append(other)
    if options["rounds"]:
        samples = measure(calls, options["rounds"], options["seconds"])
        # On a machine that others use, the best of many short rounds is what repeats; medians are beside it.
        found.update(run_s=min(samples[0]), run_median_s=statistics.median(samples[0]))
        if options["jax"]:
            found.update(jax_s=min(samples[1]), jax_median_s=statistics.median(samples[1]))
            found["ratio"] = found["run_s"] / found["jax_s"]
            found["ratio_of_medians"] = found["run_median_s"] / found["jax_median_s"]
    found["loops"] = loops_of(f, arguments)
    return found


@contextlib.contextmanager
def the_core_alone():
    """One worker at a time on this core, whoever started it: where two share one, a call of JAX, which wakes another thread, may take a
    hundred times as long as it takes alone."""
    try:
        import fcntl

        cores = "-".join(map(str, sorted(os.sched_getaffinity(0))))
    except (ImportError, AttributeError):  # not on Linux
        yield
        return
    with open(os.path.join(tempfile.gettempdir(), f"rscan-models-{cores}.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main():
    name, options = sys.argv[1], json.loads(sys.argv[2])
    model = models.find()[name]
    try:
        with the_core_alone():
            result = dict(ok=True, **run(model, options))
    except Exception as error:
        result = dict(ok=False, error=f"{type(error).__name__}: {error}")
    print("\n" + json.dumps(result))


if __name__ == "__main__":
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    main()
