# A fresh machine needs python3 (3.11 or newer) and nothing else.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

PYTEST := $(BIN)/python -m pytest
PARALLEL := --numprocesses auto --dist worksteal
INSTALL := $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --editable

# What Python compiles is kept, whatever the caller's environment says: it serves the workers of the tests and the commands
# that they start, which would otherwise compile all that they import, each of them.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: install compiled demo test full-test portable-test windows-test fuzz golden slow-test compile-test kernel-test oldest-test docs lint gpu-test clean

# In the environment in which xcorr is installed; where there is none, in one of its own.
INSTALLED := $(dir $(shell command -v xcorr))

demo: $(if $(INSTALLED),,$(VENV)/.installed)
	PATH="$(abspath $(or $(INSTALLED),$(BIN))):$$PATH"; \
	xcorr align sample_data/drifting_cells sample_data/single_pages -o demo_out --overwrite && \
	$(PYTHON) sample_data/compare_with_truth.py demo_out

# What compilers make of the kernels is kept for the next run: XCORR_TEST_CACHE, else ~/.cache/xcorr-tests.
# Of tests with many like cases a fixed sample runs; XCORR_TEST_SHARE=all runs all of them.
test: $(VENV)/.test-installed
	$(PYTEST) $(PARALLEL)

# Every case of every test: an hour of two cores.
full-test: $(VENV)/.test-installed
	XCORR_TEST_SHARE=all $(PYTEST) $(PARALLEL)

# Those that rounding might decide, as on other processors: older ones, without AVX-512 or AVX2, one and two threads of BLAS.
portable-test: $(VENV)/.test-installed
	$(BIN)/python -m tests.portable

# What Windows lacks taken away (tests/as_on_windows.py): files in and out, locks, runs.
windows-test: $(VENV)/.test-installed
	$(PYTEST) $(PARALLEL) -p tests.as_on_windows tests/io tests/pipeline tests/batch/test_results.py tests/cli/test_apply.py

# Damaged files of every kind, a hundred thousand of them; `make test` takes 40 of each kind (XCORR_FUZZ).
# FUZZ='--count 200000 --seed 7 --keep FOLDER' makes others, and keeps those that are met wrongly.
fuzz: $(VENV)/.test-installed
	$(BIN)/python -m tests.fuzz $(FUZZ)

# After a change that was meant: what the program finds today becomes what tests/golden expects; read the difference.
# GOLDEN='align shifts-pairs' writes the records whose names begin so.
golden: $(VENV)/.test-installed
	$(BIN)/python -m tests.golden $(GOLDEN)

# What `make test` leaves out because it takes minutes: kills at random moments.
slow-test: $(VENV)/.test-installed
	$(PYTEST) $(PARALLEL) -m slow

# Every instantiation of every kernel for every architecture; `make test` compiles one of each kernel.
compile-test: $(VENV)/.test-installed
	XCORR_TEST_SHARE=all $(PYTEST) $(PARALLEL) tests/kernels/test_compiles_everywhere.py

# Every case of the kernels' logic on the CPU; of tests with many `make test` runs a sample.
kernel-test: $(VENV)/.test-installed
	XCORR_TEST_SHARE=all $(PYTEST) $(PARALLEL) tests/kernels --ignore tests/kernels/test_compiles_everywhere.py

# The pages as a site in build/site; warnings are errors.
docs: $(VENV)/.docs-installed
	$(BIN)/python -m mkdocs build --strict

# With the oldest versions of the dependencies that pyproject.toml allows.
oldest-test: $(VENV)-oldest/.installed
	$(VENV)-oldest/bin/python -m pytest $(PARALLEL) $(OLDEST)

# What tests import, compiled before several workers need it at the same moment; what is wrong with it they say themselves.
compiled: $(VENV)/.test-installed
	$(PYTEST) --collect-only -q | tail -1

lint: $(VENV)/.dev-installed
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

# On a machine with an NVIDIA GPU, whose Python already holds CuPy.
gpu-test:
	$(PYTHON) -m pytest -m gpu

# All that .ci/run needs, at once.
install: $(VENV)/.all-installed

# The extras hold one another: who has those of development needs no second installation for the tests.
$(VENV)/.all-installed: pyproject.toml | $(BIN)/python
	$(INSTALL) '.[dev,docs]'
	touch $(VENV)/.installed $(VENV)/.test-installed $(VENV)/.dev-installed $(VENV)/.docs-installed $@

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(INSTALL) .
	touch $@

$(VENV)/.test-installed: pyproject.toml | $(BIN)/python
	$(INSTALL) '.[test]'
	touch $(VENV)/.installed $@

$(VENV)/.dev-installed: pyproject.toml | $(BIN)/python
	$(INSTALL) '.[dev]'
	touch $(VENV)/.installed $(VENV)/.test-installed $@

$(VENV)/.docs-installed: pyproject.toml | $(BIN)/python
	$(INSTALL) '.[docs]'
	touch $(VENV)/.installed $@

# Wheels of the oldest versions are there for the oldest Python alone.
$(VENV)-oldest/.installed: pyproject.toml tests/oldest.txt
	$(PYTHON) -m venv $(VENV)-oldest
	$(VENV)-oldest/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[test]' --constraint tests/oldest.txt
	touch $@

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

clean:
	rm -rf $(VENV) $(VENV)-oldest demo_out build
