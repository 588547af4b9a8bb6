# A fresh machine needs python3 (3.11 or newer) and nothing else.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test compile-test kernel-test lint gpu-test clean

demo: $(VENV)/.installed
	$(BIN)/xcorr align sample_data/drifting_cells sample_data/single_pages -o demo_out --overwrite
	$(BIN)/python sample_data/compare_with_truth.py demo_out

test: $(VENV)/.test-installed
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile

# Every instantiation of every kernel for every architecture; `make test` compiles a share.
compile-test: $(VENV)/.test-installed
	XCORR_COMPILE_ALL=1 $(BIN)/python -m pytest tests/kernels/test_compiles_everywhere.py

# Every case of the kernels' logic on the CPU; of tests with many `make test` runs a share.
kernel-test: $(VENV)/.test-installed
	XCORR_KERNELS_ALL=1 $(BIN)/python -m pytest tests/kernels --numprocesses auto --dist loadfile

lint: $(VENV)/.dev-installed
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

# On a machine with an NVIDIA GPU, whose Python already holds CuPy.
gpu-test:
	$(PYTHON) -m pytest -m gpu

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.test-installed: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	touch $@

$(VENV)/.dev-installed: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) demo_out
