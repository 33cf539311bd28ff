# Two commands do everything, on any machine that has Python 3.11 or later with venv:
#   make check   sets up and runs the reference client through every scenario, simulated and as real processes
#   make test    sets up and passes the tests
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
CONSTRAINTS ?= constraints.txt

.PHONY: check test lint tests docs bench hunt kill-matrix clean

check: $(STAMP)
	$(BIN)/jobsworth check

test: lint tests

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# They start programs by the hundred: what Python has compiled is kept, whatever the shell says, or each compiles all anew.
tests: export PYTHONDONTWRITEBYTECODE :=
tests: $(STAMP)
	$(BIN)/pytest -n auto --dist loadfile --no-loadscope-reorder

docs: $(STAMP)
	$(BIN)/python -m harness.report.catalogues
	$(BIN)/python -m harness.editions

$(STAMP): pyproject.toml $(CONSTRAINTS)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[dev]" $(if $(CONSTRAINTS),--constraint $(CONSTRAINTS))
	touch $(STAMP)

# For an hour that is to spare: random exploration of the reference client, many times longer than the tests take.
SEED ?= 1
EXAMPLES ?= 20000

hunt: $(STAMP)
	$(BIN)/jobsworth explore --examples $(EXAMPLES) --seed $(SEED)

kill-matrix: $(STAMP)
	$(BIN)/python -m tests.kill_matrix

bench: $(STAMP)
	$(BIN)/python benchmarks/bench.py
	$(BIN)/python benchmarks/provider_speed.py

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
