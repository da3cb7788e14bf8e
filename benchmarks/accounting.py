"""Whether the lines of a profile account for the time of calls: `python accounting.py`. At least nine tenths of the time between call and
return have a line (an operation, or what lies around the operations), for loops of every kind."""

import pathlib
import sys
import time

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "peers")]

import p_rscan  # noqa: E402
import rscan as rs  # noqa: E402
from common import all_specs  # noqa: E402

WORKLOADS = ["01b_logistic_all", "05b_rnn_grad", "06_lstm_train", "08a_until_scalar", "10a_lorenz_scalar", "13_hmm_grad"]
WANTED = 0.9


def profiled(call, seconds=0.5):
    """Calls for a while; the share of the time that has a line, and the share that has the line of an operation."""
    function = p_rscan.rs.made[-1]
    for _ in range(5):
        call()
    before = function.profile.loops[0].seconds, sum(s for _, s in function.profile.loops[0].ops.values())
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        call()
    wall = time.perf_counter() - start
    after = function.profile.loops[0].seconds, sum(s for _, s in function.profile.loops[0].ops.values())
    return [(b - a) / wall for a, b in zip(before, after, strict=True)]


class Profiling:
    """rscan, its functions with profiles."""

    made = []

    def __getattr__(self, name):
        return getattr(rs, name)

    def function(self, *args, **options):
        self.made.append(rs.function(*args, profile=True, **options))
        return self.made[-1]


def main():
    p_rscan.rs = Profiling()
    specs, worst = all_specs(), 1.0
    for name in WORKLOADS:
        lines, ops = profiled(p_rscan.IMPL[(name, "")](specs[name].make()))
        worst = min(worst, lines)
        print(f"{name:<20} {lines:6.1%} of the time has a line, {ops:6.1%} that of an operation")
    print(f"at least {worst:.1%}; wanted {WANTED:.0%}")
    return 0 if worst >= WANTED else 1


if __name__ == "__main__":
    sys.exit(main())
