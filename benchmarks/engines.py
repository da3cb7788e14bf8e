"""On which engine each loop of the benchmark runs: `make accept-engines`.

Fourteen loop bodies, each called a few times as a user would; the gradient's loops count with them. A body counts as compiled where
all its loops run as machine code: as one kernel, or as a list of kernels, products and calls of which every kernel is machine code.
"""

import gc
import importlib
import pathlib
import sys

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "peers")]

import p_rscan  # noqa: E402
import rscan as rs  # noqa: E402

BODIES = [
    ("w01_logistic", "01b_logistic_all"),
    ("w02_power", "02_power"),
    ("w04_cumsum", "04_cumsum"),
    ("w05_rnn", "05b_rnn_grad"),
    ("w06_lstm", "06_lstm_train"),
    ("w07_gru", "07_gru_latency"),
    ("w08_until", "08a_until_scalar"),
    ("w08_until", "08c_fixedpoint"),
    ("w09_garch", "09_garch_grad"),
    ("w10_lorenz", "10a_lorenz_scalar"),
    ("w11_kalman", "11_kalman_grad"),
    ("w12_rbm", "12_rbm_gibbs"),
    ("w13_hmm", "13_hmm_grad"),
    ("w15_linrec", "15a_linrec_fwd"),
]
CALLS = 5
WANTED = 12
MACHINE = ("jit", "avx512", "avx2")


def functions_of(module, name):
    """The functions that a workload compiles, after some calls."""
    spec = next(s for s in importlib.import_module(f"specs.{module}").SPECS if s.name == name)
    before = {id(f) for f in gc.get_objects() if type(f).__name__ == "Function"}
    call = p_rscan.IMPL[(name, "")](spec.make())
    for _ in range(CALLS):
        call()
    found = [f for f in gc.get_objects() if type(f).__name__ == "Function" and id(f) not in before and hasattr(f, "explain")]
    return call, found


def is_machine_code(engine):
    kernels = engine.removeprefix("steps of ").split(" kernels")[0].split("+")
    return all(kernel in MACHINE for kernel in kernels)


def main():
    p_rscan.rs = rs
    compiled = 0
    for module, name in BODIES:
        _call, functions = functions_of(module, name)
        loops = [loop for f in functions for loop in f.explain().loops if loop.variants]
        good = bool(loops) and all(is_machine_code(v.engine) for loop in loops for v in loop.variants)
        compiled += good
        print(f"{name:20} {'compiled' if good else 'NOT COMPILED'}")
        for loop in loops:
            for variant in loop.variants:
                print(f"    {loop.name or 'loop'}: {variant}")
    print(f"{compiled} of {len(BODIES)} loop bodies run as machine code (at least {WANTED} are wanted)")
    return 0 if compiled >= WANTED else 1


if __name__ == "__main__":
    sys.exit(main())
