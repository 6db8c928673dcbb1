# Every target sets up what it needs in a virtual environment: on a fresh machine `make test` is enough.
# PYTHON chooses the interpreter, PYTEST_ARGS is handed to pytest: make test PYTEST_ARGS="-k ising -x"

PYTHON ?= python3
JOBS ?= 2
PYTEST_ARGS ?=
BENCH_ARGS ?=
FUZZ_MINUTES ?= 5
FUZZ_ARGS ?=
VENV := .venv
PURE := .venv-pure
SANITIZE := .venv-sanitize
OLDEST := .venv-oldest

# What an install is made of. Folders are listed too: their time changes when a file is removed.
SOURCES := pyproject.toml CMakeLists.txt README.md LICENSE \
	$(shell find src cpp -name __pycache__ -prune -o -print 2>/dev/null)

PIP_FLAGS := -q --disable-pip-version-check
# The build folder is kept, so a reinstall compiles only what changed.
BUILD := --no-deps --no-build-isolation --config-settings=build-dir=build/{wheel_tag}
INSTALL := -m pip install $(PIP_FLAGS) --force-reinstall $(BUILD) .
# Tests, then the doctests of the installed package (src is not on the path). Two runs: collecting both at
# once hides a test file that cannot be imported.
PYTEST := -m pytest -n $(JOBS) tests $(PYTEST_ARGS)
# The door to the compiled core has no doctests, and cannot be imported where there is no core.
DOCTEST := -m pytest --rootdir=. -c pyproject.toml -n $(JOBS) --doctest-modules --pyargs bregpath \
	--ignore-glob='*/_kernels/compiled*.py'

# The extras that a stamp .deps-NAME stands for.
EXTRAS_test := test
EXTRAS_lint := lint
EXTRAS_demo := plot,progress,frames
EXTRAS_docs := docs
EXTRAS_bench := bench

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help test test-oldest test-pure sanitize slow fuzz lint demo docs bench study sdist clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

test: lint $(VENV)/.deps-test  ## lint, then all tests and doctests, with the compiled core; then test-oldest
	$(VENV)/bin/python $(PYTEST)
	$(VENV)/bin/python $(DOCTEST)
	$(if $(PYTEST_ARGS),,$(MAKE) test-oldest)

# The core: where another NumPy or SciPy would show.
OLDEST_TESTS := tests/path tests/test_golden.py tests/test_import.py tests/estimators \
	tests/frames --ignore=tests/path/test_symmetries.py
test-oldest: $(OLDEST)/.installed  ## the core's tests with the oldest dependencies that pyproject.toml allows
	$(OLDEST)/bin/python -m pytest -n $(JOBS) $(OLDEST_TESTS) $(PYTEST_ARGS)

# Whole paths; losses, penalties, stores and the reference kernels are the same code in both packages.
# All of them: make test-pure PURE_TESTS=tests
PURE_TESTS ?= $(addprefix tests/,flows/test_flows.py test_golden.py test_import.py \
	path/test_properties.py path/test_reading.py path/test_stopping.py graphs/test_golden.py graphs/test_path_reading.py)
test-pure: $(PURE)/.deps-test  ## the core's tests with the NumPy-only package
	$(PURE)/bin/python -m pytest -n $(JOBS) $(PURE_TESTS) $(PYTEST_ARGS)
	$(PURE)/bin/python $(DOCTEST)

slow: $(VENV)/.deps-test  ## the tests marked slow
	$(VENV)/bin/python -m pytest -n $(JOBS) -m slow tests $(PYTEST_ARGS)

fuzz: $(VENV)/.deps-test  ## random problems against all that must hold, for FUZZ_MINUTES=5 (FUZZ_ARGS="--seed 7")
	$(VENV)/bin/python -m tests.fuzz --minutes $(FUZZ_MINUTES) --jobs $(JOBS) $(FUZZ_ARGS)

# The compiled core under the address and undefined-behaviour sanitizers; Python itself is not built with them.
SANITIZERS := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g
sanitize: $(SANITIZE)/.deps-test  ## the tests of paths with a core built with ASan and UBSan
	LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libubsan.so)" \
		ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
		$(SANITIZE)/bin/python -m pytest -q -p no:xdist tests/path tests/kernels tests/flows tests/test_golden.py tests/graphs $(PYTEST_ARGS)

lint: $(VENV)/.deps-lint  ## ruff, the direction of imports, types
	$(VENV)/bin/ruff check .
	PYTHONPATH=src $(VENV)/bin/lint-imports
	$(VENV)/bin/mypy

demo: $(VENV)/.deps-demo  ## a real analysis, from data to report
	$(VENV)/bin/bregpath demo

docs: $(VENV)/.deps-docs  ## the documentation, in docs/_build/html
	$(VENV)/bin/sphinx-build -W --keep-going -b html docs docs/_build/html

bench: $(VENV)/.deps-bench  ## install the peers where possible, then measure docs/performance.md (BENCH_ARGS="--quick" tries it)
	$(VENV)/bin/python -m benchmarks.install
	$(VENV)/bin/python -m benchmarks $(BENCH_ARGS)

study: $(VENV)/.deps-bench  ## how good models are: docs/guide/real_data.md, recovery of graphs, signals and images
	$(VENV)/bin/python -m benchmarks.install
	$(VENV)/bin/python -m benchmarks.real_data $(BENCH_ARGS)
	$(VENV)/bin/python -m benchmarks.graphs --parts recovery $(BENCH_ARGS)
	$(VENV)/bin/python -m benchmarks.structure $(BENCH_ARGS)

sdist: $(VENV)/.tools  ## the source distribution, in dist/
	$(VENV)/bin/python -m pip install $(PIP_FLAGS) build
	$(VENV)/bin/python -m build --sdist --no-isolation

clean:  ## remove environments, builds and caches
	rm -rf $(VENV) $(PURE) $(SANITIZE) $(OLDEST) build dist docs/_build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache \
		.hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# --- stamps: tools -> installed package -> dependencies of one target --------------------------------

$(VENV)/.tools $(PURE)/.tools $(SANITIZE)/.tools: %/.tools: pyproject.toml
	$(PYTHON) -m venv $*
	$*/bin/python -m pip install $(PIP_FLAGS) "scikit-build-core>=0.10" "nanobind>=2.2" cmake ninja
	@touch $@

# With a compiler at hand, an error in cpp/ is an error, not a reason to fall back to NumPy.
COMPILERS := $(if $(filter default,$(origin CXX)),c++ g++ clang++,$(firstword $(CXX)))
ifneq ($(shell command -v $(COMPILERS) 2>/dev/null),)
$(VENV)/.installed: export BREGPATH_REQUIRE_EXTENSION = 1
endif

# BREGPATH_PURE is set for the second environment only; without a compiler both are pure.
# The stamp bears the time of the beginning: a file edited during the install is newer.
$(PURE)/.installed: export BREGPATH_PURE = 1
$(SANITIZE)/.installed: export BREGPATH_REQUIRE_EXTENSION = 1
$(SANITIZE)/.installed: export CXXFLAGS = $(SANITIZERS)
$(SANITIZE)/.installed: export LDFLAGS = -fsanitize=address,undefined
$(SANITIZE)/.installed: INSTALL := $(subst build/,build/sanitize-,$(INSTALL))
$(VENV)/.installed $(PURE)/.installed $(SANITIZE)/.installed: %/.installed: %/.tools $(SOURCES)
	@touch $@.begun
	$*/bin/python $(INSTALL)
	@mv $@.begun $@

# The package is installed already, so its name stands for its metadata: pip adds what is missing.
$(VENV)/.deps-%: pyproject.toml | $(VENV)/.installed
	$(VENV)/bin/python -m pip install $(PIP_FLAGS) "bregpath[$(EXTRAS_$*)]"
	@touch $@

$(SANITIZE)/.deps-%: pyproject.toml | $(SANITIZE)/.installed
	$(SANITIZE)/bin/python -m pip install $(PIP_FLAGS) "bregpath[$(EXTRAS_$*)]"
	@touch $@

$(PURE)/.deps-%: pyproject.toml | $(PURE)/.installed
	$(PURE)/bin/python -m pip install $(PIP_FLAGS) "bregpath[$(EXTRAS_$*)]"
	@touch $@

# uv reads the lower bounds of pyproject.toml and takes the oldest version of each that has a wheel for this Python.
$(OLDEST)/.deps: pyproject.toml
	$(PYTHON) -m venv --clear $(OLDEST)
	$(OLDEST)/bin/python -m pip install $(PIP_FLAGS) uv
	$(OLDEST)/bin/uv pip install -q --python $(OLDEST) --resolution lowest-direct --only-binary :all: \
		-r pyproject.toml --extra test
	@touch $@

# The package as it is installed in $(VENV): nothing is compiled again.
$(OLDEST)/.installed: $(VENV)/.installed $(OLDEST)/.deps
	rm -rf build/wheel
	$(VENV)/bin/python -m pip wheel $(PIP_FLAGS) $(BUILD) -w build/wheel .
	$(OLDEST)/bin/python -m pip install $(PIP_FLAGS) --no-deps --force-reinstall build/wheel/*.whl
	@touch $@

# Stamps are kept, though they are only steps on the way.
.PRECIOUS: $(VENV)/.% $(PURE)/.% $(SANITIZE)/.% $(OLDEST)/.%
