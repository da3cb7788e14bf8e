#!/usr/bin/env python3
"""Plants deliberate bugs, one at a time, and counts how many the random programs catch.

    python3 tools/planted_bugs.py [-n PROGRAMS] [-k TEXT] [-d FOLDER]

Each bug replaces a piece of one source file in a throw-away copy of the tree. A bug counts as caught when the mutated core compiles
and `cargo test --test accept` fails, or, where that passes, when the unit tests of scan, expr and grad fail.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CORE = "crates/scan-core/src/"
LEAST = 0.84  # 25 of 30

VJP, TAPE, STEP, TAPS, INFER = (f"scan/{name}.rs" for name in ("vjp", "tape", "step", "taps", "infer"))
LOOPS, REVERSE = "expr/loops.rs", "grad/reverse.rs"

# (what, file, old, new)
BUGS = [
    ("no zero at W before the step's cotangent", VJP, "(true, Some(ct)) => ct,", "(true, Some(ct)) => body.add(old, ct),"),
    ("the cotangent at W is kept", VJP, "(true, None) => body.zeros_like(old),", "(true, None) => old,"),
    ("a read row forgets its old cotangent", VJP, "(false, Some(ct)) => body.add(old, ct),", "(false, Some(ct)) => ct,"),
    ("a row of the window is dropped", VJP, "(false, None) => old,", "(false, None) => body.zeros_like(old),"),
    ("offsets are not seen from the other end", VJP, ".map(|o| span - o).collect();", ".map(|&o| o).collect();"),
    ("the position of a written row is not flipped", VJP, "let want = state.span() - offset;", "let want = offset;"),
    ("sequence cotangents are not flipped back", VJP, "(g.emit(Flip { axis: 0 }, &[rows]), cut, rest)", "(rows, cut, rest)"),
    ("truncation zeroes the wrong side", VJP, "(g.emit(Flip { axis: 0 }, &[rows]), cut, rest)",
     "(g.emit(Flip { axis: 0 }, &[rows]), rest, cut)"),
    ("a reversed sequence is padded on the wrong side", VJP, "if reverse { (rows, rest, cut) }", "if reverse { (rows, cut, rest) }"),
    ("a reversed sequence is read backwards again", VJP, "self.seqs.push((rows, image_of, false));", "self.seqs.push((rows, image_of, true));"),
    ("a reversed sequence is cut at the start", VJP, "let rows = self.g.slice_rows(x, lo, len);",
     "let zero = self.g.sub(lo, lo); let rows = self.g.slice_rows(x, zero, self.steps);"),
    ("offsets of what a step saw are ignored", VJP, "let lo = self.g.int(offset as i64);", "let lo = self.g.int(offset.min(0) as i64);"),
    ("the step index is one too large", VJP, "let i = self.body.sub(left, step);", "let i = self.body.sub(steps, step); let _ = left;"),
    ("cotangents of captured values are not summed", VJP, "let sum = self.body.add(old, cts[v]);", "let sum = cts[v]; let _ = old;"),
    ("truncation is ignored", VJP, "let mut ins = vec![self.covered];", "let mut ins = vec![self.steps];"),
    ("kept rows are put first", VJP, "Ok(self.g.join_rows(&[zeros, ct]))", "Ok(self.g.join_rows(&[ct, zeros]))"),
    ("states without a cotangent carry none", VJP, "(ct.is_some() || !state.reads.is_empty())", "ct.is_some()"),
    ("the first accumulated row is taken", VJP, "let last = g.int(-1);", "let last = g.int(0);"),
    ("rows behind the window start at the wrong row", VJP, "let rest = g.slice_rows(full, end, len);", "let rest = g.slice_rows(full, zero, len);"),
    ("unstable states are taken for stable", TAPE, ".partition(|id| scan.states[**id].stable());", ".partition(|_| true);"),
    ("reads of a stable state all see the oldest row", TAPE, "(outs[scan.state_output(id)], r));", "(outs[scan.state_output(id)], r.min(0)));"),
    ("tapes are read one too far", TAPE, "seen.insert((id, k), (outs[at], 0));", "seen.insert((id, k), (outs[scan.states.len()], 0));"),
    ("the forward buffer is not kept whole", TAPE, "more.states[id].keep = Keep::All;", "more.states[id].keep = Keep::Last(1);"),
    ("until is ignored", STEP, "if stop {", "if stop && steps > n {"),
    ("until drops the stopping step from the count", STEP, "Array::scalar(steps as i64)]", "Array::scalar(n as i64)]"),
    ("go_backwards is swapped", STEP, "args.push(x.row(if seq.reverse {", "args.push(x.row(if !seq.reverse {"),
    ("go_backwards starts one row too early", STEP, "x.shape()[0] - 1 - step }", "(x.shape()[0] - 1).saturating_sub(step + 1) }"),
    ("all reads see the oldest row", STEP, "buffer.read(step + r)", "buffer.read(step + r.min(&0))"),
    ("the last kept row is the one before", STEP, "rows.rows(end - k.min(steps).min(end), end)",
     "rows.rows((end - k.min(steps).min(end)).saturating_sub(1), end.max(1) - usize::from(end > k))"),
    ("tap 0 does not count as present below", TAPS, "let low = taps.iter().copied().min().unwrap_or(0).min(0);",
     "let low = taps.iter().copied().min().unwrap_or(0);"),
    ("tap 0 does not count as present above", TAPS, "let high = taps.iter().copied().max().unwrap_or(0).max(0);",
     "let high = taps.iter().copied().max().unwrap_or(0);"),
    ("tap cuts are swapped", TAPS, "Cut { skip: (k - low) as usize, drop: (high - k) as usize }",
     "Cut { skip: (high - k) as usize, drop: (k - low) as usize }"),
    ("state offsets count from the newest row", TAPS, "taps.iter().map(|k| span - k.unsigned_abs() as usize).collect()",
     "taps.iter().map(|k| k.unsigned_abs() as usize - 1).collect()"),
    ("one step backwards sees the first row", LOOPS, "let at = if self.options.go_backwards { -1 } else { 0 };", "let at = 0;"),
    ("the first sequence decides the length", LOOPS,
     "if !lengths.iter().any(|r| r.ty().dims[0] == seq.rows.ty().dims[0]) {", "if lengths.is_empty() {"),
    ("initial rows are among the outputs", LOOPS, "builder.rows(b, s.0.span(), 0)", "builder.rows(b, 0, s.0.span())"),
    ("the update of a variable is its old value", LOOPS, "&[all, int(-1)]", "&[all, int(0)]"),
    ("a second cotangent replaces the first", REVERSE, "Some(&old) => g.add(old, ct),", "Some(_) => ct,"),
    ("the buffer's type lacks the initial rows", INFER, "let all = n.add(&Dim::known(state.span()));", "let all = n.clone();"),
    ("cotangents of broadcast inputs are not summed", "ops/elemwise.rs", "let full = g.sum_to(full, input);", ""),
    ("the branches of ifelse are swapped", "ops/control.rs", "Some(g.emit(IfElse {}, &[cond, zero_b, ct]))", "Some(g.emit(IfElse {}, &[cond, ct, zero_b]))"),
]


def copy_tree(to: pathlib.Path) -> None:
    for name in ("Cargo.toml", "Cargo.lock"):
        shutil.copy2(ROOT / name, to / name)
    shutil.copytree(ROOT / "crates", to / "crates", dirs_exist_ok=True)


def cargo(tree: pathlib.Path, arguments: list[str], programs: int, limit: int = 600) -> bool:
    env = dict(os.environ, CARGO_TARGET_DIR=str(tree / "target"), CARGO_PROFILE_DEV_DEBUG="0", CARGO_PROFILE_DEV_OPT_LEVEL="0", CARGO_INCREMENTAL="1",
               RSCAN_RANDOM_PROGRAMS=str(programs), RSCAN_RANDOM_STOP="1", RUST_BACKTRACE="0")
    command = ["cargo", "test", "-q", "-p", "scan-core", "--features", "testing", *arguments]
    try:
        return subprocess.run(command, cwd=tree, env=env, capture_output=True, timeout=limit).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def judge(tree: pathlib.Path, programs: int) -> str:
    if not cargo(tree, ["--test", "accept", "--no-run"], programs):
        return "does not compile"
    if not cargo(tree, ["--test", "accept"], programs):
        return "caught"
    tests = ["--lib", "--", "scan::", "expr::", "grad::", "ops::control", "ops::elemwise"]
    return "missed" if cargo(tree, tests, programs) else "caught by unit tests"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=300, help="programs per bug")
    parser.add_argument("-k", default="", help="only bugs whose description contains this")
    parser.add_argument("-d", help="folder of the copy (kept, so that the next run starts warm)")
    options = parser.parse_args()
    tree = pathlib.Path(options.d or tempfile.mkdtemp(prefix="planted-"))
    tree.mkdir(parents=True, exist_ok=True)
    copy_tree(tree)
    chosen = [bug for bug in BUGS if options.k in bug[0]]
    for what, file, old, _ in chosen:
        count = (ROOT / CORE / file).read_text().count(old)
        if count != 1:
            print(f"{what}: the pattern occurs {count} times in {file}")
            return 2
    verdict = judge(tree, options.n)
    print(f"{'as it is':<56} {verdict}", flush=True)
    if verdict != "missed":
        return 2
    caught = 0
    for what, file, old, new in chosen:
        path = tree / CORE / file
        text = path.read_text()
        path.write_text(text.replace(old, new))
        start = time.time()
        verdict = judge(tree, options.n)
        path.write_text(text)
        caught += verdict.startswith("caught")
        print(f"{what:<56} {verdict:<22} {time.time() - start:4.0f} s", flush=True)
    print(f"{caught} of {len(chosen)} planted bugs are caught")
    if not options.d:
        shutil.rmtree(tree)
    return 0 if caught >= LEAST * len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
