# Each target sets up .venv by itself. PYTHON chooses the interpreter (3.11 or newer).
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# pytest-xdist: as many processes as cores; each keeps to one thread of BLAS.
TEST_ENV := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

.PHONY: help demo test lint format minimum bench reproduce docs clean
.DEFAULT_GOAL := help

help:  ## show this
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

demo: .venv/demo  ## train on three data sets, print a table, draw a polytope
	$(BIN)/polyplane demo

test: .venv/dev  ## run the tests
	$(TEST_ENV) $(BIN)/python -m pytest -n auto --dist worksteal -q

lint: .venv/dev  ## check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: .venv/dev  ## put the code in order
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

minimum:  ## run the tests with the oldest versions of all dependencies, in .venv-minimum
	$(PYTHON) -m venv .venv-minimum
	.venv-minimum/bin/python -m pip --disable-pip-version-check --quiet install -e ".[dev]" -c minimum.txt
	$(TEST_ENV) .venv-minimum/bin/python -m pytest -n auto --dist worksteal -q

bench: .venv/dev  ## print the speed comparisons (needs POLYPLANE_DATA)
	for name in $(notdir $(basename $(wildcard benchmarks/peers/*.py))); do $(BIN)/python -m benchmarks.peers.$$name || exit 1; done

# make reproduce PAPER=cpm: one paper. QUICK=1: minutes, fewer repetitions, two experiments at a time. FRESH=1: all anew.
reproduce: .venv/dev  ## measure every table and figure of the papers (PAPER=cpm, QUICK=1, FRESH=1), write the report
	$(TEST_ENV) $(BIN)/python -m benchmarks.reproduce $(PAPER) $(if $(QUICK),--quick --jobs 2) $(if $(FRESH),--fresh)

docs: .venv/docs  ## build the documentation, with its examples, in build/docs; warnings are errors
	OMP_NUM_THREADS=1 MPLBACKEND=agg $(BIN)/sphinx-build -W --keep-going -q -j auto -b html docs build/docs
	@echo "Open build/docs/index.html"

clean:  ## remove what the other targets made
	rm -rf .venv .venv-minimum build docs/auto_examples docs/generated docs/sg_execution_times.rst .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; set PYTHON."; exit 1; }
	$(PYTHON) -m venv .venv

.venv/demo: pyproject.toml | .venv/bin/python
	@echo "Installing polyplane into .venv (a minute or two, once) ..."
	$(PIP) install -e ".[plot]"
	@touch $@

.venv/dev: pyproject.toml | .venv/bin/python
	@echo "Installing polyplane and its development tools into .venv (a minute or two, once) ..."
	$(PIP) install -e ".[dev]"
	@touch $@ .venv/demo

.venv/docs: pyproject.toml | .venv/bin/python
	@echo "Installing what the documentation needs into .venv (a minute or two, once) ..."
	$(PIP) install -e ".[docs]"
	@touch $@ .venv/demo
