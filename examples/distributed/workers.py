"""Where work is done: in this process, in processes beside it, on a Dask cluster, or on a Ray cluster.

Each has `send(function)` and `keep(items)`, which put a function and items where the work is done, once, and `map(function, items, *same)`:
results in the order of the items; `same` are arguments of all of them.

What is sent are functions under `@rs.compile` and `rs.value_and_grad`: they travel as Python functions, and a worker compiles them at its
first call, in milliseconds. So they are sent once: a function that goes along with each task is another function each time, and is compiled
for each.
"""

import concurrent.futures
import functools
import multiprocessing
import operator
import os

#: Many processes share a machine: none of them takes more than one thread, nor does the one that asks them. OpenBLAS, which NumPy and SciPy
#: call, would wait for threads that others keep from running: without this line the fits take thirty times as long in two processes as in
#: one. It reads these once, when it is loaded.
ONE_THREAD = dict.fromkeys(("RSCAN_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
os.environ.update(ONE_THREAD)


class Alone:
    """This process."""

    def __init__(self, workers=1):
        pass

    def send(self, function):
        return function

    def keep(self, items):
        return items

    def map(self, function, items, *same):
        return [function(*same, item) for item in items]

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def close(self):
        pass


class Processes(Alone):
    """Processes of this machine, by the standard library."""

    def __init__(self, workers):
        context = multiprocessing.get_context("spawn")
        self.pool = concurrent.futures.ProcessPoolExecutor(workers, context)

    def map(self, function, items, *same):
        return list(self.pool.map(functools.partial(function, *same), items))

    def close(self):
        self.pool.shutdown()


class OnDask(Alone):
    """A Dask cluster: at an address, or of workers that are started here."""

    def __init__(self, workers, address=None):
        import cloudpickle
        import dask
        import models
        from dask.distributed import Client

        # Workers elsewhere do not have this folder: its functions travel whole.
        cloudpickle.register_pickle_by_value(models)
        own = dict(n_workers=workers, threads_per_worker=1, dashboard_address=None, processes=True)
        # A worker looks a hundred times a second at what its threads do, which takes a tenth of a core from what they do.
        with dask.config.set({"distributed.worker.profile.enabled": False}):
            self.client = Client(address) if address else Client(**own)
        self.homes = {}

    # Without `hash` what is sent again has the name of what was sent before, and may go with that while it is given up.
    def send(self, function):
        return self.client.scatter(function, broadcast=True, hash=False)

    def keep(self, items):
        kept = self.client.scatter(items, hash=False)
        self.homes.update(self.client.who_has(kept))
        return kept

    # What is kept is worked on where it is: a scheduler that sees a worker without work may move hundreds of megabytes there first.
    def map(self, function, items, *same):
        def task(item):
            return self.client.submit(operator.call, function, *same, item, pure=False, workers=self.homes.get(getattr(item, "key", None)))

        return self.client.gather([task(item) for item in items])

    def close(self):
        self.client.close()
        if self.client.cluster is not None:
            self.client.cluster.close()


class OnRay(Alone):
    """A Ray cluster: at an address, or of workers that are started here."""

    def __init__(self, workers, address=None):
        import models
        import ray

        self.ray = ray
        ray.cloudpickle.register_pickle_by_value(models)
        own = dict(num_cpus=workers, include_dashboard=False, log_to_driver=False)
        ray.init(address=address, runtime_env={"env_vars": ONE_THREAD}, **({} if address else own))

    def send(self, function):
        return self.ray.remote(function)

    def keep(self, items):
        return [self.ray.put(item) for item in items]

    def map(self, function, items, *same):
        return self.ray.get([function.remote(*same, item) for item in items])

    def close(self):
        self.ray.shutdown()


KINDS = {"alone": Alone, "processes": Processes, "dask": OnDask, "ray": OnRay}
