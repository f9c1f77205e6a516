# Each target sets up .venv by itself. PYTHON chooses the interpreter (3.11 or newer).
PYTHON ?= python3
SCRIPTS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN := .venv/$(SCRIPTS)
# Groups of dependencies need pip 25.1.
PIP = $(1)/python -m pip --disable-pip-version-check --quiet
INSTALL = $(PIP) install "pip>=25.1" && $(PIP) install
# pytest-xdist: as many processes as cores; each keeps to one thread of BLAS.
TEST_ENV := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
PYTEST := -m pytest -n auto --dist worksteal -q

.PHONY: help demo test coverage lint format review minimum dist fuzz soak bench reproduce compare docs clean
.DEFAULT_GOAL := help

help:  ## show this
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

demo: .venv/demo  ## train on three data sets, print a table, draw a polytope
	$(BIN)/polyplane demo

test: .venv/dev  ## run the tests
	$(TEST_ENV) $(BIN)/python $(PYTEST)

# The floor is a first guess: no full run was measured yet. Set it a little below what this target prints.
FLOOR ?= 90
coverage: .venv/dev  ## run the tests, and fail where they run fewer of the lines than the floor
	$(TEST_ENV) $(BIN)/python $(PYTEST) --cov --cov-report=term --cov-report=xml:build/coverage.xml --cov-fail-under=$(FLOOR)

lint: .venv/dev  ## check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: .venv/dev  ## put the code in order
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

review: .venv/review  ## check what is around the code: spelling, pages, workflows, habits of scientific packages
	$(BIN)/codespell README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md src tests docs/*.md docs/guide examples .github packaging
	$(BIN)/rumdl check .
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/[!c]*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff
	$(BIN)/zizmor --offline --quiet .github
	$(BIN)/repo-review .

minimum:  ## run the tests with the oldest versions of all dependencies, in .venv-minimum
	$(PYTHON) -m venv .venv-minimum
	$(call INSTALL,.venv-minimum/$(SCRIPTS)) -e . --group test -c minimum.txt
	$(TEST_ENV) .venv-minimum/$(SCRIPTS)/python $(PYTEST)

# make dist FROM=sdist: install and test the sdist instead of the wheel. INSTALLED is an empty environment; the tests are
# those of the sdist, in a folder without src, so that they see the installed package only.
FROM ?= wheel
UNPACKED := build/dist
INSTALLED := $(UNPACKED)/.venv/$(SCRIPTS)
dist: .venv/dist  ## build wheel and sdist in dist/, check them, and run README and tests against what is installed
	rm -rf dist $(UNPACKED)
	$(BIN)/python -m build --outdir dist .
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl
	ls -l dist
	mkdir -p $(UNPACKED)
	tar -xzf dist/*.tar.gz -C $(UNPACKED) --strip-components 1
	rm -r $(UNPACKED)/src
	$(PYTHON) -m venv $(UNPACKED)/.venv
	$(call INSTALL,$(INSTALLED)) $(if $(filter sdist,$(FROM)),dist/*.tar.gz,dist/*.whl) --group test
	cd $(UNPACKED) && $(TEST_ENV) .venv/$(SCRIPTS)/python $(PYTEST) --pyargs tests polyplane

# make fuzz MINUTES=10 KIND=forge: one kind of attack alone.
MINUTES ?= 10
fuzz: .venv/dev  ## attack model files, readers and the command line with damaged and forged input (MINUTES=10, KIND=forge)
	$(TEST_ENV) $(BIN)/python -m tests.fuzz --minutes $(MINUTES) $(if $(KIND),--kind $(KIND))

soak: .venv/dev  ## train on streams that are killed, starved, fed bad batches and resumed, against undisturbed twins (MINUTES=30)
	$(TEST_ENV) $(BIN)/python -m tests.soak --minutes $(if $(filter file,$(origin MINUTES)),30,$(MINUTES))

bench: .venv/dev  ## print the speed comparisons (needs POLYPLANE_DATA)
	for name in $(notdir $(basename $(wildcard benchmarks/peers/*.py))); do $(BIN)/python -m benchmarks.peers.$$name || exit 1; done

# make reproduce PAPER=cpm: one paper. ONLY=text: figures with this in their names. QUICK=1: minutes, fewer repetitions, two
# experiments at a time. FRESH=1: all anew. DRY=1: say what is stale and how long it takes, and write the report.
reproduce: .venv/dev  ## measure what is stale of the papers' tables and figures (PAPER=cpm, QUICK=1, FRESH=1, DRY=1), write the report
	$(TEST_ENV) $(BIN)/python -m benchmarks.reproduce $(PAPER) $(if $(ONLY),--only "$(ONLY)") \
		$(if $(QUICK),--quick --jobs 2) $(if $(FRESH),--fresh) $(if $(DRY),--dry-run)

# After make reproduce FRESH=1: does it give the report of the last commit? Figure by figure, within its deviation.
compare: .venv/dev  ## compare the figures of the papers with those of the last commit (AGAINST=HEAD)
	$(BIN)/python -m benchmarks.compare $(or $(AGAINST),HEAD)

docs: .venv/docs  ## build the documentation, its guides and examples run, in build/docs; look at each page in a browser
	OMP_NUM_THREADS=1 $(BIN)/sphinx-build -W --keep-going -q -j auto -b html docs build/docs
	$(BIN)/python docs/walk.py build/docs
	@echo "Open build/docs/index.html"

clean:  ## remove what the other targets made
	rm -rf .venv .venv-minimum build dist docs/auto_examples docs/generated docs/sg_execution_times.rst
	rm -rf .coverage .coverage.* .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; set PYTHON."; exit 1; }
	$(PYTHON) -m venv .venv

.venv/demo: pyproject.toml | .venv/pyvenv.cfg
	@echo "Installing polyplane into .venv (a minute or two, once) ..."
	$(call PIP,$(BIN)) install -e ".[plot]"
	@touch $@

# .venv/dev, .venv/docs, .venv/dist, .venv/review: the groups of dependencies in pyproject.toml.
.venv/%: pyproject.toml | .venv/pyvenv.cfg
	@echo "Installing polyplane and what is needed for $* into .venv (a minute or two, once) ..."
	$(call INSTALL,$(BIN)) -e . --group $*
	@touch $@ .venv/demo
