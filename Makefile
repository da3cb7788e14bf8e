# `make help` lists what can be made. Needs python3.11, cargo and a C linker; everything else goes into .venv.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
PY     := $(VENV)/bin/python
# Absolute, so that cargo and maturin agree on it and nothing is compiled twice.
export PYO3_PYTHON := $(CURDIR)/$(VENV)/bin/python
export MPLBACKEND  := Agg

RUST_SOURCES := $(shell find crates -name '*.rs' -o -name '*.md' -o -name Cargo.toml) Cargo.toml Cargo.lock
LINTED       := python tests examples benchmarks tools docs
PYTEST_FLAGS ?= -q --timeout=300
# In how many processes `make test` runs the Python tests, a file in one.
WORKERS      ?= 2
# How many random programs `make accept-random`, `accept-misfits`, `accept-sessions` and `accept-facade` run, and from which seed on; how many allocations
# `make accept-memory` refuses.
N            ?= 2000
SEED         ?= 0
# A python that has JAX and NumPy, for `make accept-models`; which models, and further options of its runner.
BENCH_PYTHON ?= $(PY)
ONLY         ?=
FLAGS        ?=
# NVIDIA's assembler, for `make accept-cuda`: the wheel nvidia-cuda-nvcc has one.
PTXAS        ?=
# How many mutants `make accept-mutants` draws.
MUTANTS      ?= 260
# How long `make accept-service` loads the service, in seconds.
SERVICE_SECONDS ?= 60
# How many files `make accept-files` damages.
FILE_MUTANTS ?= 20000
# What `make accept-threads` runs in eight threads at a time: what is called from threads (release.yml has the same, for Pythons without a lock).
THREADED := tests/test_settings.py tests/test_function.py tests/test_compile.py tests/test_scan.py tests/test_loop.py tests/test_gradient.py tests/test_vmap.py
# How many draws of data `make accept-onnx` judges each graph by.
DRAWS        ?= 100

.PHONY: accept-plans accept-threads accept-derivatives accept-saved accept-onnx accept-numpy accept-mapped service accept-native accept-targets accept-package test-small accept-service accept-sessions accept-cuda accept-files accept-array-api accept-transforms accept-engines accept-passes accept-slopes accept-nests help demo test lint test-rust test-python test-interop wheel bench docs fix accept-random accept-misfits accept-facade accept-memory accept-ulp accept-bugs accept-device-bugs accept-mutants accept-models clean
.NOTPARALLEL:
.DEFAULT_GOAL := help

help:  ## list these targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# What the examples of `make demo` need, and what builds the extension.
$(VENV)/demo: requirements-demo.txt
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check -r requirements-demo.txt
	@touch $@

$(VENV)/installed: requirements-test.txt $(VENV)/demo
	$(PY) -m pip install --quiet --disable-pip-version-check -r requirements-test.txt
	@touch $@

$(VENV)/docs: requirements-docs.txt $(VENV)/installed
	$(PY) -m pip install --quiet --disable-pip-version-check -r requirements-docs.txt
	@touch $@

# The extension, built once for tests, demo and benchmarks; python/ is used in place.
$(VENV)/built: $(VENV)/demo pyproject.toml $(RUST_SOURCES)
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(VENV)/bin/maturin develop --profile wheel --features testing
	@touch $@

demo: $(VENV)/built  ## run two of the examples
	$(PY) examples/garch.py
	$(PY) examples/ar2_sunspots.py

test: lint test-rust test-small test-python  ## everything that is checked before a change lands

lint: $(VENV)/installed
	cargo fmt --all --check
	cargo fmt --manifest-path examples/service/Cargo.toml --check
	cargo clippy --quiet --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --quiet --no-deps --package scan-core --features ndarray
	$(VENV)/bin/ruff check --quiet $(LINTED)
	$(VENV)/bin/mypy python/rscan
	$(PY) tools/planted_bugs.py --places

test-rust: $(VENV)/installed
	@if cargo nextest --version >/dev/null 2>&1; then \
	    set -x; cargo nextest run --workspace --all-features; \
	else \
	    set -x; cargo test --workspace --all-features --lib --bins --tests --examples; \
	fi
	cargo test --doc --workspace --all-features

# Not optimised: its tests run for seconds, and optimising the crate takes longer than that.
test-small:  ## the crate without machine code: lints, and tests of files, sessions and the text form
	cargo clippy --quiet --package scan-core --no-default-features --features testing -- -D warnings
	cargo test --quiet --config 'profile.dev.package.scan-core.opt-level=0' --package scan-core --no-default-features --features testing --test it -- sessions:: modules:: ir_files:: engines::

test-python: $(VENV)/built $(VENV)/docs
	$(PY) -m pytest $(PYTEST_FLAGS) -n $(WORKERS) --dist loadfile tests

# The other sides of the bridges need gigabytes: in a folder of their own, with the extension of python/.
.venv-interop/installed: requirements-interop.txt
	test -x .venv-interop/bin/python || $(PYTHON) -m venv .venv-interop
	.venv-interop/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-interop.txt
	@touch $@

test-interop: $(VENV)/built .venv-interop/installed  ## tests of the bridges, of foreign arrays, of pickles, of many machines and of models of ONNX, with all other sides
	PYTHONPATH=python .venv-interop/bin/python -m pytest $(PYTEST_FLAGS) -rs tests/interop tests/test_doors.py tests/test_pickle.py tests/test_distributed.py tests/test_docstrings.py tests/test_onnx.py tests/test_onnx_values.py

bench: $(VENV)/built  ## time the workloads of benchmarks/ (rscan, and the peers that are installed)
	cd benchmarks && ../$(PY) run.py --cpu 0 -o ../bench-results/results.json
	cd benchmarks && ../$(PY) report.py ../bench-results/results.json

docs: $(VENV)/built $(VENV)/docs  ## run every program of README.md, docs/ and tests/spec/, build the site (out/site) and the crate's pages
	$(PY) -m pytest $(PYTEST_FLAGS) tests/test_docs.py tests/test_spec.py
	$(PY) -m sphinx -W --keep-going -q -b html docs out/site
	cargo doc --no-deps --package scan-core

# What is published is downloaded by many. Functions of more than a few instructions are inlined only where the source asks for it, as what
# runs at each step does: an eighth of the library, for a percent of the time.
SMALL = -C llvm-args=-inlinedefault-threshold=22

# The name of the folder is all that the wheel keeps of where it was built; zig links against an old glibc.
wheel:  ## build what is published, dist/*.whl and its sources, and check it (a quarter of an hour of one core)
	test -x .venv-wheel/bin/python || $(PYTHON) -m venv .venv-wheel
	.venv-wheel/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-wheel.txt
	rm -rf dist
	.venv-wheel/bin/maturin sdist --out dist
	PATH=$(CURDIR)/.venv-wheel/bin:$$PATH PYO3_PYTHON=$(CURDIR)/.venv-wheel/bin/python \
	RUSTFLAGS="$(SMALL) --remap-path-prefix=$(or $(CARGO_HOME),$(HOME)/.cargo)/registry/src= --remap-path-prefix=$(CURDIR)=rscan" \
	    .venv-wheel/bin/maturin build --release --zig --compatibility manylinux_2_28 --compression-level 9 --out dist
	.venv-wheel/bin/python tools/repack_wheel.py dist/*.whl
	.venv-wheel/bin/twine check --strict dist/*
	.venv-wheel/bin/abi3audit --strict dist/*.whl
	.venv-wheel/bin/auditwheel show dist/*.whl
	.venv-wheel/bin/python tools/check_wheel.py dist/*.whl

fix: $(VENV)/installed  ## format, and mend what the linters can mend
	cargo fmt --all
	cargo clippy --fix --allow-dirty --allow-staged --workspace --all-targets
	$(VENV)/bin/ruff check --fix $(LINTED)

accept-random: $(VENV)/installed  ## N random programs from SEED on, against a reference of their own and finite differences
	RSCAN_RANDOM_PROGRAMS=$(N) RSCAN_RANDOM_SEED=$(SEED) cargo test --profile wheel --package scan-core --features testing --test accept -- --nocapture random_programs

accept-plans: $(VENV)/installed  ## what the loops of N random programs from SEED on run, read back from its text, verified and interpreted; 200 faults in plans
	RSCAN_RANDOM_PROGRAMS=$(N) RSCAN_RANDOM_SEED=$(SEED) cargo test --profile wheel --package scan-core --features testing --test accept -- --nocapture plans

accept-misfits: $(VENV)/installed  ## N random programs from SEED on, called with arguments that do not fit: every engine reports what the evaluator reports
	RSCAN_MISFIT_PROGRAMS=$(N) RSCAN_RANDOM_SEED=$(SEED) cargo test --profile wheel --package scan-core --features testing --test accept -- --nocapture engines_report

accept-sessions: $(VENV)/installed  ## N random programs from SEED on, step by step: the rows of the whole call, to the bit
	RSCAN_SESSION_PROGRAMS=$(N) RSCAN_RANDOM_SEED=$(SEED) cargo test --profile wheel --package scan-core --features testing --test accept -- --nocapture sessions_make

# The example service is a workspace of its own, built beside everything else.
SERVICE_OPTIONS := --manifest-path examples/service/Cargo.toml --target-dir $(or $(CARGO_TARGET_DIR),target)
SERVICE := cargo build --quiet --profile wheel $(SERVICE_OPTIONS)
SERVICE_BIN := $(or $(CARGO_TARGET_DIR),target)/wheel

service: $(VENV)/built  ## build examples/service, and serve a model on 127.0.0.1:8080
	mkdir -p out/service
	$(PY) examples/service/make_model.py out/service/model.rscan
	$(SERVICE)
	$(SERVICE_BIN)/service --model out/service/model.rscan

accept-service: $(VENV)/built  ## examples/service: lints, and under load for SERVICE_SECONDS: bits, times, memory, reloads, malformed requests, limits, kills while it learns
	mkdir -p out/service
	cargo fmt --manifest-path examples/service/Cargo.toml --check
	cargo clippy --quiet --all-targets $(SERVICE_OPTIONS) -- -D warnings
	$(PY) examples/service/make_model.py out/service/accept.rscan 0
	$(PY) examples/service/make_model.py out/service/other.rscan 1
	$(SERVICE:build=test)
	$(SERVICE)
	$(SERVICE_BIN)/load accept --service $(SERVICE_BIN)/service --model out/service/accept.rscan --other out/service/other.rscan --seconds $(SERVICE_SECONDS)

.venv-onnx/installed: requirements-interop.txt requirements-test.txt
	test -x .venv-onnx/bin/python || $(PYTHON) -m venv .venv-onnx
	grep -E '^(flatbuffers|ml-dtypes|onnx|onnxruntime|protobuf)==' requirements-interop.txt > .venv-onnx/requirements.txt
	.venv-onnx/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-test.txt -r .venv-onnx/requirements.txt
	@touch $@

accept-onnx: $(VENV)/built .venv-onnx/installed  ## models of ONNX beside onnxruntime, DRAWS draws of data for each graph
	RSCAN_ONNX_DRAWS=$(DRAWS) PYTHONPATH=python .venv-onnx/bin/python -m pytest -q tests/test_onnx.py tests/test_onnx_values.py

accept-saved: $(VENV)/built $(VENV)/installed  ## every function of tests/spec, docs, examples and benchmarks through a file: the same bits in Python and in Rust
	PYTHONPATH=python:tests $(PY) -m saved_programs out/saved
	cargo run --quiet --profile wheel --package scan-core --example replay -- out/saved

accept-facade: $(VENV)/built $(VENV)/installed  ## N random Theano programs from SEED on, against an interpreter of their own and finite differences
	PYTHONPATH=tests $(PY) -m facade.run_programs --programs $(N) --seed $(SEED)

accept-ulp:  ## measure the errors of the elementary functions: every f32, a million f64 each (half an hour of one core; OF=exp,log: of these)
	RSCAN_ULP_OF=$(OF) cargo test --profile wheel --package scan-core --lib -- --ignored --nocapture errors_over_all

accept-engines: $(VENV)/built $(VENV)/installed  ## on which engine the loops of the benchmark run
	cd benchmarks && ../$(PY) engines.py

accept-memory: $(VENV)/built $(VENV)/installed  ## N refused allocations under a limited address space: no abort, the right error, and the next call works
	$(PY) tools/accept_memory.py -n $(N)

accept-slopes: $(VENV)/built $(VENV)/installed  ## how time grows with the steps of loops that carry a buffer
	cd benchmarks && ../$(PY) slopes.py

accept-nests: $(VENV)/built $(VENV)/installed  ## thirteen classes of loops beside the best C that is known for each (fails while one takes more than 2.5 times as long)
	cd benchmarks && ../$(PY) nests.py $(FLAGS)

accept-transforms: $(VENV)/built $(VENV)/installed  ## transforms of transforms of 40 loops, all pairs, against finite differences (FLAGS='--jax 4', BENCH_PYTHON: against JAX)
	PYTHONPATH=python:tests $(BENCH_PYTHON) -m composed $(FLAGS)

accept-derivatives: $(VENV)/built $(VENV)/installed  ## first and second derivatives of special functions, densities and draws, at more points than the tests take
	RSCAN_WIDE_SLOPES=1 $(PY) -m pytest -q tests/test_slopes.py

accept-numpy: $(VENV)/built $(VENV)/installed  ## NumPy's functions over dtypes and edge shapes, their gradients beside differences, their batch rules beside loops
	PYTHONPATH=python:tests $(PY) -m numpy_surface

accept-mapped: $(VENV)/built $(VENV)/installed  ## 300 random loops for many rows, beside Python's loops over rows and steps: the same bits
	PYTHONPATH=python:tests $(PY) -m mapped_loops 300

accept-array-api: $(VENV)/built $(VENV)/installed  ## the array API standard's functions and operators, as eager arrays, beside array_api_strict, which BENCH_PYTHON has to have
	PYTHONPATH=python:tests $(BENCH_PYTHON) -m array_api

# The plugin changes how tests are collected, so it is not beside those of every day.
accept-threads: $(VENV)/built $(VENV)/installed  ## every test of functions, loops, gradients and settings in eight threads at a time
	$(PY) -m pip install --quiet --disable-pip-version-check --upgrade --no-deps --target out/threads pytest-run-parallel==0.10.0
	PYTHONPATH=python:out/threads $(PY) -m pytest -q --timeout=600 --parallel-threads=8 $(THREADED)

accept-passes: $(VENV)/built $(VENV)/installed  ## what each pass over loops is good for, and that results do not depend on it
	$(PY) tools/accept_passes.py

accept-files:  ## FILE_MUTANTS damaged files are errors, and N random programs give the same bits from a file
	RSCAN_MUTANTS=$(FILE_MUTANTS) cargo test --profile wheel --package scan-core --features testing --test it -- --nocapture modules::
	RSCAN_SAVED_PROGRAMS=$(N) RSCAN_RANDOM_SEED=$(SEED) cargo test --profile wheel --package scan-core --features testing --test accept -- --nocapture saved_programs

accept-native: $(VENV)/built  ## programs without Python, with machine code and without: the bits of Python, sizes, times of loading, predicting and stepping
	$(PY) tools/accept_native.py

accept-targets:  ## the crate without machine code for other processors: rustup target add wasm32-unknown-unknown aarch64-unknown-linux-gnu
	RUSTFLAGS="-D warnings" cargo check --package scan-core --no-default-features --target wasm32-unknown-unknown
	RUSTFLAGS="-D warnings" cargo check --package scan-core --no-default-features --target aarch64-unknown-linux-gnu
	RUSTFLAGS="-D warnings" cargo check --package scan-core --target aarch64-unknown-linux-gnu

accept-package:  ## the crate as it is published: packed, checked, its pages without a warning, and the first program of its pages in a crate of its own
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --package scan-core --features ndarray
	cargo package --package scan-core --allow-dirty --no-verify
	$(PYTHON) tools/accept_package.py

accept-cuda:  ## random kernels and N random programs on a driver of CUDA without a card; PTXAS: NVIDIA's assembler, which then sees each kernel
	RSCAN_KERNELS=20 RSCAN_PTXAS=$(PTXAS) cargo test --profile wheel --package scan-core --all-features --lib -- backend::cuda
	RSCAN_DEVICE=cuda:0 RSCAN_CUDA_DRIVER=fake RSCAN_DEVICE_PROGRAMS=$(N) RSCAN_RANDOM_SEED=$(SEED) RSCAN_PTXAS=$(PTXAS) cargo test --profile wheel --package scan-core --all-features --test accept -- --ignored --exact --nocapture a_share_of_random_programs_agrees_on_a_device

accept-bugs: $(VENV)/installed  ## plant deliberate bugs, one at a time, and count those that the tests catch
	$(PY) tools/planted_bugs.py

accept-device-bugs: $(VENV)/installed  ## the same in what prints kernels for graphics processors and runs them (needs a Vulkan driver)
	$(PY) tools/planted_bugs.py --devices -n 100 -d out/device-bugs

accept-mutants: $(VENV)/installed  ## change one small thing at a time, at MUTANTS places, and count those that the tests find
	$(PY) tools/mutants.py -n $(MUTANTS)

accept-models: $(VENV)/built $(VENV)/installed  ## models that nobody tuned for, beside JAX: BENCH_PYTHON is a python that has it (ONLY=regex, FLAGS=--calls)
	PYTHONPATH=python $(BENCH_PYTHON) benchmarks/models/run.py --only '$(ONLY)' $(FLAGS)

clean:  ## remove everything that was built
	rm -rf $(VENV) target out bench-results python/rscan/*.so
