#!/usr/bin/env python3
"""Plants deliberate bugs in the loops and gradients of the core, one at a time, and counts how many the random programs catch.

    python3 tools/planted_bugs.py [-n PROGRAMS] [-k TEXT] [-d FOLDER] [--places]

In a throw-away copy of the tree, each place of the list becomes `if planted(k) { new } else { old }`: one build has them all, asleep.
Then, for each k, the random programs run with bug k awake, and, where they pass, the unit tests. A run that fails has caught it.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CORE = "crates/scan-core/src/"
LEAST = 25 / 30

VJP, TAPE, STEP, TAPS = "scan/vjp.rs", "scan/tape.rs", "scan/step.rs", "scan/taps.rs"
INFER, GIVEN, LOOPS, REVERSE = "scan/infer.rs", "scan/given.rs", "expr/loops.rs", "grad/reverse.rs"

# (what, file, place with the expression in «», the expression with the bug)
BUGS = [
    ("no zero at W before the step's cotangent", VJP, "(true, Some(ct)) => «ct»,", "body.add(old, ct)"),
    ("the cotangent at W is kept", VJP, "(true, None) => «body.zeros_like(old)»,", "old"),
    ("a read row forgets its old cotangent", VJP, "(false, Some(ct)) => «body.add(old, ct)»,", "ct"),
    ("a row of the window is dropped", VJP, "(false, None) => «old»,", "body.zeros_like(old)"),
    ("offsets are not seen from the other end", VJP, ".map(|o| «span - o»).collect();", "*o"),
    ("the position of a written row is not flipped", VJP, "let want = «state.span() - offset»;", "offset"),
    ("sequence cotangents are not flipped back", GIVEN, "(«g.emit(Flip { axis: 0 }, &[rows])», cut, rest)", "rows"),
    ("truncation zeroes the wrong side", GIVEN, "g.join_rows(&«[before, rows, after]»);", "[after, rows, before]"),
    ("a reversed sequence is read backwards again", VJP, "self.seqs.push((rows, image_of, «false»));", "true"),
    ("a reversed sequence is cut at the start", VJP, "let rows = «self.g.slice_rows(x, lo, len)»;",
     "{ let zero = self.g.sub(lo, lo); self.g.slice_rows(x, zero, self.steps) }"),
    ("offsets of what a step saw are ignored", VJP, "let lo = self.g.int(«offset as i64»);", "0"),
    ("the step index is one too large", VJP, "let i = self.body.sub(«left», step);", "steps"),
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
    ("captured expressions that depend on the step are not seen", LOOPS, "|| «(inner && !held)» || impure", "false"),
    ("a second cotangent replaces the first", REVERSE, "Some(&old) => «g.add(old, ct)»,", "{ let _ = old; ct }"),
    ("the buffer's type lacks the initial rows", INFER, "let all = «n.add(&Dim::known(state.span()))»;", "n.clone()"),
    ("cotangents of broadcast inputs are not summed", "ops/elemwise.rs", "let full = «g.sum_to(full, input)»;", "full"),
    ("rows are written over while they are read", "lower/in_place.rs",
     "(«!given.iter().any(|v| same.contains(v))»).then_some(readers)", "true"),
    ("all rows of a sequence read backwards are taken", "rewrite/loops/outside.rs", "let start = «g.sub(len, n)»;", "g.sub(len, len)"),
    ("initial rows that steps write over are joined in front", "rewrite/passes/scan_keep_last.rs", "if k > 1 && «rewritten» && readers",
     "false"),
    ("the tail of AVX2 has a lane too many", "backend/cpu/emit_x64/mod.rs", "wide: std::array::from_fn(|l| -i64::from(«l < tail»)),",
     "l <= tail"),
    ("the branches of ifelse are swapped", "ops/control.rs", "IfElse {}, &«[cond, zero_b, ct]»))", "[cond, ct, zero_b]"),
]  # fmt: skip

PLANTED = """
/// True where bug `k` is awake.
pub fn planted(k: usize) -> bool {
    static AWAKE: std::sync::LazyLock<Option<usize>> = std::sync::LazyLock::new(|| std::env::var("PLANTED_BUG").ok()?.parse().ok());
    *AWAKE == Some(k)
}
"""


def place_of(bug: tuple[str, str, str, str]) -> tuple[str, str, str]:
    """What stands before the expression, the expression, and what stands behind it."""
    before, rest = bug[2].split("«")
    return before, *rest.split("»")


def fits(bug: tuple[str, str, str, str]) -> int:
    return (ROOT / CORE / bug[1]).read_text().count("".join(place_of(bug)))


def plant(tree: pathlib.Path, bugs: list) -> None:
    for name in ("Cargo.toml", "Cargo.lock"):
        shutil.copy2(ROOT / name, tree / name)
    shutil.copytree(ROOT / "crates", tree / "crates", dirs_exist_ok=True)
    with (tree / CORE / "base/mod.rs").open("a") as module:
        module.write(PLANTED)
    # An outer place is listed before one inside it, and keeps its text.
    for k, bug in enumerate(bugs):
        before, old, behind = place_of(bug)
        path = tree / CORE / bug[1]
        text = path.read_text()
        at = text.index(before + old + behind) + len(before)
        path.write_text(f"{text[:at]}(if crate::base::planted({k}) {{ {bug[3]} }} else {{ {old} }}){text[at + len(old) :]}")


def build(tree: pathlib.Path) -> dict[str, str]:
    """Paths of the test programs."""
    env = dict(os.environ, CARGO_TARGET_DIR=str(tree / "target"), CARGO_PROFILE_DEV_DEBUG="0", RUSTFLAGS="--cap-lints allow")
    command = "cargo test -p scan-core --features testing --lib --test accept --no-run --message-format=json-render-diagnostics"
    done = subprocess.run(command.split(), cwd=tree, env=env, stdout=subprocess.PIPE, text=True, check=True)
    messages = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {m["target"]["name"]: m["executable"] for m in messages if m.get("executable")}


def passes(command: list[str], k: int, programs: int) -> bool:
    env = dict(os.environ, PLANTED_BUG=str(k), RSCAN_RANDOM_PROGRAMS=str(programs), RSCAN_RANDOM_STOP="1", RUST_BACKTRACE="0")
    try:
        return subprocess.run(command, env=env, cwd=ROOT / "crates/scan-core", capture_output=True, timeout=600).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def judge(programs: dict[str, str], k: int, n: int) -> str:
    if not passes([programs["accept"]], k, n):
        return "caught"
    return "missed" if passes([programs["scan_core"]], k, n) else "caught by unit tests"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=300, help="programs per bug")
    parser.add_argument("-k", default="", help="only bugs whose description contains this")
    parser.add_argument("-d", help="folder of the copy (kept, so that the next run starts warm)")
    parser.add_argument("--places", action="store_true", help="only look whether each place is there, once")
    options = parser.parse_args()
    bugs = [bug for bug in BUGS if options.k in bug[0]]
    unfit = [f"{bug[0]}: its place occurs {fits(bug)} times in {bug[1]}" for bug in bugs if fits(bug) != 1]
    if unfit:
        print("\n".join(unfit))
        return 2
    if options.places:
        return 0
    tree = pathlib.Path(options.d or tempfile.mkdtemp(prefix="planted-"))
    tree.mkdir(parents=True, exist_ok=True)
    plant(tree, bugs)
    programs = build(tree)
    awake = judge(programs, len(bugs), options.n)
    print(f"{'(all asleep)':<60} {'passes' if awake == 'missed' else 'FAILS'}", flush=True)
    verdicts = []
    for k, bug in enumerate(bugs):
        start = time.time()
        verdicts.append(judge(programs, k, options.n))
        print(f"{bug[0]:<60} {verdicts[-1]:<22} {time.time() - start:4.0f} s", flush=True)
    caught = sum(v.startswith("caught") for v in verdicts)
    print(f"{caught} of {len(bugs)} planted bugs are caught, {verdicts.count('caught')} of them by the random programs")
    if not options.d:
        shutil.rmtree(tree)
    return 0 if awake == "missed" and caught >= LEAST * len(bugs) else 1


if __name__ == "__main__":
    sys.exit(main())
