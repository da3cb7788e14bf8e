#!/usr/bin/env python3
"""Plants deliberate bugs, one at a time, and counts how many the tests catch: in loops and gradients, in passes and lowering, in Python.

    .venv/bin/python tools/planted_bugs.py [-n PROGRAMS] [-k TEXT] [-d FOLDER] [--places] [--devices]

In a copy of the tree, each place of the list becomes `if planted(k) { new } else { old }`: one build has them all, asleep. Then, for
each k, with bug k awake: the random programs run, where they pass the other Rust tests, where these pass the Python tests. A run that
fails has caught it. `--devices`: those of planted_device_bugs.py, which the tests of the backends and
random programs on devices are to catch; they need a Vulkan driver.
"""

import argparse
import pathlib
import sys
import time

import planted_device_bugs
import planting
from planting import CORE, ROOT

LEAST = 25 / 30

VJP, TAPE, STEP, TAPS = "scan/vjp.rs", "scan/tape.rs", "scan/step.rs", "scan/taps.rs"
INFER, GIVEN, LOOPS, REVERSE = "scan/infer.rs", "scan/given.rs", "expr/loops.rs", "grad/reverse.rs"
PYTHON = "python/rscan/"

# (what, file, place with the expression in «», the expression with the bug)
BUGS = [
    ("no zero at W before the step's cotangent", VJP, "(true, Some(ct)) => «ct»,", "body.add(old, ct)"),
    ("the cotangent at W is kept", VJP, "(true, None) => «body.zeros_like(old)»,", "old"),
    ("a read row forgets its old cotangent", VJP, "(false, Some(ct)) => «body.add(old, ct)»,", "ct"),
    ("a row of the window is dropped", VJP, "(false, None) => «old»,", "body.zeros_like(old)"),
    ("offsets are not seen from the other end", VJP, ".map(|o| «span - o»).collect();", "*o"),
    ("the position of a written row is not flipped", VJP, "let want = «state.span() - offset»;", "offset"),
    ("sequence cotangents are not flipped back", VJP, "if turned { «g.emit(Flip { axis: 0 }, &[outs[first + k]])» }", "outs[first + k]"),
    ("truncation zeroes the wrong side", GIVEN, "g.join_rows(&«[before, rows, after]»);", "[after, rows, before]"),
    ("a reversed sequence is read backwards again", VJP, "self.seqs.push((rows, image_of, «false»));", "true"),
    ("a reversed sequence is cut at the start", VJP, "let rows = «self.g.slice_rows(x, lo, len)»;",
     "{ let zero = self.g.sub(lo, lo); self.g.slice_rows(x, zero, self.steps) }"),
    ("offsets of what a step saw are ignored", VJP, "let lo = self.g.int(«offset as i64»);", "0"),
    ("the step index is one too large", VJP, "self.body.sub(«last», step)", "steps"),
    ("cotangents of captured values are not summed", VJP, "let sum = «self.body.add(old, cts[v])»;", "cts[v]"),
    ("truncation is ignored", VJP, "let mut ins = vec![«self.covered»];", "self.steps"),
    ("truncation covers one step too many", VJP, "let k = g.int(«k as i64»);", "k as i64 + 1"),
    ("kept rows are put first", VJP, "Ok(self.g.join_rows(&«[zeros, ct]»))", "[ct, zeros]"),
    ("states without a cotangent carry none", VJP, "(ct.is_some() || «!state.reads.is_empty()»)", "false"),
    ("the first accumulated row is taken", GIVEN, "let last = g.int(«-1»);", "0"),
    ("rows behind the window start at the wrong row", GIVEN, "let rest = g.slice_rows(full, «end», len);", "zero"),
    ("only the first write of a state has a cotangent", VJP, "seeds.outputs.push((results[at], «ct»));",
     "if k > 0 || at > 0 { graph.zeros_like(ct) } else { ct }"),
    ("unstable states are taken for stable", TAPE, ".partition(|id| «scan.states[**id].stable()»);", "true"),
    ("reads of a stable state all see the oldest row", TAPE, "(outs[scan.state_output(id)], «r»));", "0"),
    ("every tape is the first one", TAPE, "seen.insert((id, k), (outs[«at»], 0));", "scan.states.len()"),
    ("the forward buffer is not kept whole", TAPE, "more.states[id].keep = «Keep::All»;", "Keep::Last(1)"),
    ("until is ignored", STEP, "if «stop» {", "false"),
    ("the number of steps is the maximum", STEP, "Array::scalar(«steps as i64»)]", "n as i64"),
    ("go_backwards is swapped", STEP, "args.push(x.row(if «seq.reverse» {", "!seq.reverse"),
    ("go_backwards starts one row too early", STEP, "{ «x.shape()[0] - 1 - step» }", "(x.shape()[0] - 1).saturating_sub(step + 1)"),
    ("all reads see the oldest row", STEP, "buffer.read(«step + r»)", "step"),
    ("reads see what was written just now", STEP, "let at = «step + offset - self.base»;", "step + offset.max(1) - 1 - self.base"),
    ("the last kept row is the first", STEP, "«rows.rows(end - k.min(steps).min(end), end)»", "rows.rows(0, k.min(steps).min(end))"),
    ("last(n) returns initial rows", STEP, "rows.rows(end - «k.min(steps).min(end)», end)", "k.min(end)"),
    ("rows that are still read are dropped", STEP, "let dead = «(step + 1)».min(", "(step + 70)"),
    ("tap 0 does not count as present below", TAPS, "let low = «taps.iter().copied().min().unwrap_or(0).min(0)»;",
     "taps.iter().copied().min().unwrap_or(0)"),
    ("tap 0 does not count as present above", TAPS, "let high = «taps.iter().copied().max().unwrap_or(0).max(0)»;",
     "taps.iter().copied().max().unwrap_or(0)"),
    ("tap cuts are swapped", TAPS, "«Cut { skip: (k - low) as usize, drop: (high - k) as usize }»",
     "Cut { skip: (high - k) as usize, drop: (k - low) as usize }"),
    ("state offsets count from the newest row", TAPS, "taps.iter().map(|k| «span - k.unsigned_abs() as usize»).collect()",
     "k.unsigned_abs() as usize - 1"),
    ("one step backwards sees the first row", LOOPS, "let at = if «self.options.go_backwards» { -1 }", "false"),
    ("the first sequence decides the length", LOOPS, "if «!lengths.iter().any(|r| r.ty().dims[0] == seq.rows.ty().dims[0])» {",
     "lengths.is_empty()"),
    ("initial rows are among the outputs", LOOPS, "builder.rows(b, «s.0.span()», 0)", "0"),
    ("the update of a variable is its old value", LOOPS, "&[all, int(«-1»)]", "0"),
    ("captured expressions that depend on the step are not seen", "expr/capture.rs", "(«(inner && !held)» || impure) && !fixed", "false"),
    ("a second cotangent replaces the first", REVERSE, "Some(&old) => «g.add(old, ct)»,", "{ let _ = old; ct }"),
    ("the buffer's type lacks the initial rows", INFER, "let all = «n.add(&Dim::known(state.span()))»;", "n.clone()"),
    ("cotangents of broadcast inputs are not summed", "ops/elemwise.rs", "let full = «g.sum_to(full, input)»;", "full"),
    ("rows are written over while they are read", "lower/in_place.rs",
     "(«given.count() < 2»).then_some(readers)", "true"),
    ("all rows of a sequence read backwards are taken", "rewrite/loops/outside.rs", "let start = «g.sub(len, n)»;", "g.sub(len, len)"),
    ("initial rows that steps write over are joined in front", "rewrite/passes/scan_keep_last.rs", "if k > 1 && «rewritten» && readers",
     "false"),
    ("the tail of AVX2 has a lane too many", "backend/cpu/emit_x64/mod.rs", "wide: std::array::from_fn(|l| -i64::from(«l < tail»)),",
     "l <= tail"),
    ("the branches of ifelse are swapped", "ops/control.rs", "IfElse {}, &«[cond, zero_b, ct]»))", "[cond, ct, zero_b]"),
]  # fmt: skip
# Elsewhere: of the core, and files of the Python package.
BUGS += [
    ("a copy goes though what it is made of is read later", "lower/coalesce.rs", "row != [true; 2] && «a.last == k» &&", "true"),
    ("a row is written over though another shape of it is read later", "lower/in_place.rs",
     "if (node.op.properties().aliases || copied) && «same.insert(node.outs[0])»", "false"),
    ("a sequence that is read backwards loses its last rows", "rewrite/loops/outside.rs", "let start = «g.sub(len, n)»;",
     "{ let _ = len; g.int(0) }"),
    ("initial rows that steps write over are taken as they were", "rewrite/passes/scan_keep_last.rs",
     "let rewritten = «state.writes.iter().any(|w| *w < span)»;", "false"),
    ("the last lane of a tail is not there, with AVX2", "backend/cpu/emit_x64/mod.rs",
     "wide: std::array::from_fn(|l| -i64::from(«l < tail»)),", "l + 1 < tail"),
    ("negative positions are taken for different places", "ops/gather.rs", "values.first().is_none_or(|&least| «least >= 0»)", "true"),
    ("a NaN does not win among lanes that lie side by side", "ops/reduce.rs", "*out = if «wins(x, *out)» { x }", "beats(x, *out)"),
    ("a contracted product is taken to repeat", "scan/decided.rs", "self.others || «self.sums && self.products»", "false"),
    ("what an inner loop hands on is forgotten", "scan/inner.rs", "if «next == rows» {", "true"),
    ("of slopes by one element the last counts", "exec/native/gathered.rs", "*to = «to.plus(*ins[from].as_slice::<T>().last()?)»;",
     "T::ZERO.plus(*ins[from].as_slice::<T>().last()?)"),
    ("what was added is read as if it had been set", "rewrite/rules/index.rs", "let same = «write.mode == Write::Set» && write.pattern",
     "true"),
    ("rows turned round are taken for one another", "ops/rowwise.rs", "Op::Flip(Flip { axis }) if «*axis > 0» => first(1),", "true"),
    ("equal expressions share their derivative", "expr/gradient.rs", "if «!vars.iter().any(inner)» {", "true"),
    ("halves are rounded towards zero", PYTHON + "theano/tensor/elemwise.py",
     "away = «elementwise(\"ge\", abs(v - whole), as_tensor_variable(0.5))»", 'elementwise("gt", abs(v - whole), as_tensor_variable(0.5))'),
    ("NaN is close to everything", PYTHON + "theano/tensor/elemwise.py",
     "return close | («elementwise(\"isnan\", a) & elementwise(\"isnan\", b)») if equal_nan",
     'elementwise("isnan", a) | elementwise("isnan", b)'),
    ("shared outputs are taken before those that are not read back", PYTHON + "theano/scan_module/scan_utils.py",
     "self.inner_out_shared = «made.take(info[\"n_nit_sot\"]), made.take(info[\"n_shared_outs\"])»",
     '[made.take(info["n_shared_outs"]), made.take(info["n_nit_sot"])][::-1]'),
    ("numbers as initial states are float64", PYTHON + "scan.py",
     "slot.value = weak_constant(slot.weak, «hint», plan.family)", '"float64"'),
    ("a window cuts the gradient at the first step", PYTHON + "loop.py",
     "logical_and(equal(index % window, 0), «index > 0»)", "index >= 0"),
    ("a product in log space has as many elements as its vector", "ops/properties.rs",
     "Op::LogMatMul(_) | Op::LogMatMulSums(_) => «(rank > 1).then_some(0)»,", "Some(0)"),
]  # fmt: skip


def path_of(bug: tuple[str, str, str, str]) -> str:
    """The file of a bug, from the root."""
    return bug[1] if bug[1].endswith(".py") else CORE + bug[1]


def place_of(bug: tuple[str, str, str, str]) -> tuple[str, str, str]:
    """What stands before the expression, the expression, and what stands behind it."""
    before, rest = bug[2].split("«")
    return before, *rest.split("»")


def fits(bug: tuple[str, str, str, str]) -> int:
    return (ROOT / path_of(bug)).read_text().count("".join(place_of(bug)))


def planted(bugs: list) -> dict[str, str]:
    """The files with the bugs."""
    texts = {CORE + "base/mod.rs": (ROOT / CORE / "base/mod.rs").read_text() + planting.PLANTED}
    places: dict[tuple[str, str], list[int]] = {}
    for k, bug in enumerate(bugs):
        places.setdefault((path_of(bug), bug[2]), []).append(k)
    # An outer place is listed before one inside it, and keeps its text.
    for (path, _), here in places.items():
        before, old, behind = place_of(bugs[here[0]])
        text = texts.get(path) or (ROOT / path).read_text()
        at = text.index(before + old + behind) + len(before)
        woken = old
        for k in here:
            if path.endswith(".py"):
                woken = f'({bugs[k][3]} if __import__("os").environ.get("PLANTED_BUG") == "{k}" else ({woken}))'
            else:
                woken = f"(if crate::base::planted({k}) {{ {bugs[k][3]} }} else {{ {woken} }})"
        texts[path] = text[:at] + woken + text[at + len(old) :]
    return texts


class Judge:
    """Runs the tests with one bug awake."""

    def __init__(self, tree: pathlib.Path, n: int) -> None:
        self.tree, self.n = tree, n
        self.programs = planting.build(tree)

    def passes(self, command: list[str], folder: pathlib.Path, k: int, **more: str) -> bool:
        return planting.run(command, folder, 900, PLANTED_BUG=str(k), RSCAN_RANDOM_PROGRAMS=str(self.n), **more)[0] == "passed"

    def judge(self, k: int, of_python: bool) -> str:
        crate = self.tree / "crates/scan-core"
        for name, verdict in (("accept", "caught"), ("scan_core", "caught by unit tests"), ("it", "caught by .ir files")):
            if not of_python and not self.passes([self.programs[name], *self.skipped(name)], crate, k):
                return verdict
        command = planting.pytest(["tests"])
        return "missed" if self.passes(command, self.tree, k, **planting.python_settings(self.tree)) else "caught by pytest"

    def skipped(self, name: str) -> list[str]:
        """The test of how the sources look: here they have bugs."""
        return [word for test in planting.listed(self.programs[name]) if test.startswith("tidy") for word in ("--skip", test)]


class DeviceJudge(Judge):
    """Runs the tests of one device with one of its bugs awake."""

    def judge_on(self, device: str, k: int) -> str:
        """The tests of the backends, then the random programs that `make test` takes, then more of them."""
        crate, driver = self.tree / "crates/scan-core", {"cuda": {"RSCAN_CUDA_DRIVER": "fake"}, "wgpu": {"RSCAN_ISA": "portable"}}[device]
        backends = [self.programs["scan_core"], "backend::gpu::", f"backend::{device}::", "exec::native::"]
        on_devices = [self.programs["it"], "device::"]
        random = [self.programs["accept"], "--ignored", "--exact", "a_share_of_random_programs_agrees_on_a_device"]
        for command, verdict in ((backends, "caught by unit tests"), (on_devices, "caught by loops on devices")):
            if not self.passes(command, crate, k, RSCAN_REQUIRE_WGPU="1"):
                return verdict
        command = planting.pytest(["tests/test_devices.py", "tests/test_device_arrays.py"])
        if not self.passes(command, self.tree, k, RSCAN_REQUIRE_WGPU="1", **planting.python_settings(self.tree)):
            return "caught by pytest"
        for count, verdict in ((4, "caught"), (self.n, "caught by more programs")):
            if not self.passes(random, crate, k, RSCAN_DEVICE=f"{device}:0", RSCAN_DEVICE_PROGRAMS=str(count), **driver):
                return verdict
        return "missed"


def judged_devices(tree: pathlib.Path, options: argparse.Namespace) -> int:
    """Bugs of the devices, one after the other; status 0 where enough of each device's are caught by what `make test` runs."""
    bugs = [bug[1:] for bug in planted_device_bugs.BUGS]
    planting.copy_tree(tree, planted(bugs))
    judge, good = DeviceJudge(tree, options.n), True
    for device in ("wgpu", "cuda"):
        asleep = judge.judge_on(device, len(bugs))
        print(f"{device + ' (all asleep)':<74} {'passes' if asleep == 'missed' else 'FAILS: ' + asleep}", flush=True)
        verdicts = []
        for k, (of, what, path, *_) in enumerate(planted_device_bugs.BUGS):
            if of == device and (options.k in what or options.k in path):
                start = time.time()
                verdicts.append(judge.judge_on(device, k))
                print(f"{device}: {what:<68} {verdicts[-1]:<26} {time.time() - start:4.0f} s", flush=True)
        caught = sum(v != "missed" and v != "caught by more programs" for v in verdicts)
        print(f"{device}: {caught} of {len(verdicts)} planted bugs are caught")
        good = good and asleep == "missed" and caught >= LEAST * len(verdicts)
    return 0 if good else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=300, help="programs per bug")
    parser.add_argument("-k", default="", help="only bugs whose description or file contains this")
    parser.add_argument("-d", type=pathlib.Path, default=ROOT / "out/bugs", help="folder of the copy")
    parser.add_argument("--places", action="store_true", help="only look whether each place is there, once")
    parser.add_argument("--devices", action="store_true", help="those of backends for graphics processors")
    options = parser.parse_args()
    all_bugs = BUGS + [bug[1:] for bug in planted_device_bugs.BUGS]
    unfit = [f"{bug[0]}: its place occurs {fits(bug)} times in {bug[1]}" for bug in all_bugs if fits(bug) != 1]
    if unfit:
        print("\n".join(unfit))
        return 2
    files = planted(BUGS)
    if options.places:
        return 0
    tree = options.d.resolve()
    if options.devices:
        return judged_devices(tree, options)
    planting.copy_tree(tree, files)
    judge = Judge(tree, options.n)
    asleep = judge.judge(len(BUGS), False)
    print(f"{'(all asleep)':<64} {'passes' if asleep == 'missed' else 'FAILS: ' + asleep}", flush=True)
    verdicts = []
    for k, bug in enumerate(BUGS):
        if options.k in bug[0] or options.k in bug[1]:
            start = time.time()
            verdicts.append(judge.judge(k, bug[1].endswith(".py")))
            print(f"{bug[0]:<64} {verdicts[-1]:<22} {time.time() - start:4.0f} s", flush=True)
    caught = sum(v.startswith("caught") for v in verdicts)
    print(f"{caught} of {len(verdicts)} planted bugs are caught, {verdicts.count('caught')} of them by the random programs")
    return 0 if asleep == "missed" and caught >= LEAST * len(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
