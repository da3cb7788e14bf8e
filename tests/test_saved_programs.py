"""What programs compile comes back from files with the same bits, in Python and in Rust: a share of what `make accept-saved` runs."""

import os
import shutil
import subprocess
from pathlib import Path

import executed
import numpy as np
import pytest
import saved_programs

import rscan as rs

#: Enough for a few seconds; the others are those of `make accept-saved`.
SHARE = ["spec", "seeds", "docs", "models"]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    return saved_programs.record(tmp_path_factory.mktemp("recorded"), SHARE)


@pytest.mark.timeout(300)
def test_functions_of_programs_give_the_same_bits_from_a_file(recorded):
    assert list(saved_programs.differences(recorded)) == []
    assert len(recorded.recorded) > 250
    assert {program for program, _ in recorded.left_out} <= {program for program, _ in saved_programs.LEFT_OUT}


@pytest.mark.timeout(900)
@pytest.mark.skipif(shutil.which("cargo") is None, reason="no cargo")
def test_rust_gives_the_same_bits(recorded):
    build = ["cargo", "build", "--quiet", "--workspace", "--all-features", "--example", "replay"]
    subprocess.run(build, cwd=executed.ROOT, check=True)
    program = Path(os.environ.get("CARGO_TARGET_DIR", executed.ROOT / "target")) / "debug" / "examples" / "replay"
    done = subprocess.run([program, recorded.folder], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout == f"{len(recorded.recorded)} functions, 0 differ\n", done.stdout[-2000:]


def test_other_bits_are_found(tmp_path):
    w, x = rs.shared(1.0, "w"), rs.dvector("x")
    with saved_programs.Recorder(tmp_path) as recorder:
        f = rs.function([x], [x * w, rs.sum(x)], updates={w: w * 2})
        g = rs.function([x], {"sum": rs.sum(x)})
        recorder.run("calls", lambda: [f([1.0, 2.0]), f([3.0]), g.bind([1.0, -0.0])(), rs.compile(lambda a: a + 1)(1.0)])
        with pytest.raises(rs.ShapeError):
            recorder.run("misfits", lambda: rs.function([x], x + rs.constant([1.0, 2.0, 3.0]))([1.0, 2.0]))
    assert f([1.0])[0] == 4.0 and [program for program, _ in recorder.recorded] == ["calls"] * 3
    assert list(saved_programs.differences(recorder)) == []
    path = tmp_path / "0000.call.safetensors"
    call = rs.load_params(path)
    assert call["update.000"] == 2.0 and call["argument.000"].tolist() == [1.0, 2.0]
    for key, other in {"update.000": np.float64(3.0), "result.001": np.nextafter(3.0, 4.0), "argument.000": np.array([1.0, 2.5])}.items():
        rs.save_params(path, {**call, key: other})
        assert len(list(saved_programs.differences(recorder))) == 1, key
