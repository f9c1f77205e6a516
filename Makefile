# Each target creates .venv if necessary. PYTHON sets the interpreter (3.11 or newer).
PYTHON ?= python3
SCRIPTS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN := .venv/$(SCRIPTS)
# Groups of dependencies need pip 25.1.
PIP = $(1)/python -m pip --disable-pip-version-check --quiet
INSTALL = $(PIP) install "pip>=25.1" && $(PIP) install
# pytest-xdist: one process per core, each with one BLAS thread.
TEST_ENV := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
PYTEST := -m pytest -n auto --dist worksteal -q

.PHONY: help demo test coverage lint format review minimum dist release fuzz soak mutants bench reproduce compare docs clean
.DEFAULT_GOAL := help

help:  ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

demo: .venv/demo  ## compare Polyplane with SVMs on three data sets, and draw a polytope
	$(BIN)/polyplane demo

test: .venv/dev  ## run the tests
	$(TEST_ENV) $(BIN)/python $(PYTEST)

# Measured: 97 %, lines and branches.
FLOOR ?= 95
coverage: .venv/dev  ## run the tests, and fail if their coverage is below FLOOR per cent
	$(TEST_ENV) $(BIN)/python $(PYTEST) --cov --cov-report=term --cov-report=xml:build/coverage.xml --cov-fail-under=$(FLOOR)

lint: .venv/dev  ## check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy tests/typed_use.py

format: .venv/dev  ## format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

review: .venv/review  ## check spelling, Markdown, workflows and metadata, and run repo-review
	$(BIN)/codespell README.md CHANGELOG.md CODE_OF_CONDUCT.md CONTRIBUTING.md SECURITY.md src tests docs/*.md docs/guide examples .github packaging
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

# make dist FROM=sdist: install and test the sdist instead of the wheel. INSTALLED is a new environment; the tests are
# those of the sdist, in a folder without src, so that they import the installed package only. TESTS: some of them.
FROM ?= wheel
TESTS ?= tests polyplane
UNPACKED := build/dist
INSTALLED := $(UNPACKED)/.venv/$(SCRIPTS)
dist: .venv/dist  ## build wheel and sdist in dist/, check them, install one (FROM=wheel), and run the tests on it
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
	cd $(UNPACKED) && $(TEST_ENV) .venv/$(SCRIPTS)/python $(PYTEST) --pyargs $(TESTS)

# A failure leaves no tag. The second build repeats the files of the first one byte by byte. GitHub's workflows repeat all of
# this when the tag is released, and upload.
SITE ?= http://localhost:8000
release: .venv/dist .venv/docs  ## check, build, install and test VERSION=1.2.3, build its documentation, and tag it; upload nothing
	$(BIN)/python packaging/release.py $(VERSION)
	$(MAKE) dist FROM=sdist
	$(MAKE) dist FROM=wheel
	DOCS_URL=$(SITE) $(MAKE) docs
	$(BIN)/python docs/publish.py build/docs build/site $(VERSION) $(SITE)
	git tag --annotate v$(VERSION) --message "Polyplane $(VERSION)"
	@echo "dist/ and the tag v$(VERSION) are ready, and nothing is uploaded. Read the documentation: python3 -m http.server -d build/site"

# make fuzz MINUTES=10 KIND=forge: one kind of input only.
MINUTES ?= 10
fuzz: .venv/dev  ## test model files, readers and the command line with damaged and forged input (MINUTES=10, KIND=forge)
	$(TEST_ENV) $(BIN)/python -m tests.fuzz --minutes $(MINUTES) $(if $(KIND),--kind $(KIND))

soak: .venv/dev  ## train on streams with interruptions, bad batches and full disks, and compare with undisturbed runs (MINUTES=30)
	$(TEST_ENV) $(BIN)/python -m tests.soak --minutes $(if $(filter file,$(origin MINUTES)),30,$(MINUTES))

mutants: .venv/dev  ## mutate the kernels and check that tests fail (WORD=log_loss: those with this word)
	$(TEST_ENV) $(BIN)/python -m tests.mutants $(WORD)

bench: .venv/bench  ## run the benchmarks against other libraries (needs POLYPLANE_DATA)
	for name in $(notdir $(basename $(wildcard benchmarks/peers/*.py))); do $(BIN)/python -m benchmarks.peers.$$name || exit 1; done

# make reproduce PAPER=cpm: one paper. ONLY=text: figures whose names contain this text. QUICK=1: fewer repetitions, two
# experiments at a time (minutes). FRESH=1: measure all figures again. DRY=1: list stale figures and their expected time,
# and write the report. JOBS=8: eight figures at a time, for errors; times are comparable with one at a time.
reproduce: .venv/dev  ## measure the stale figures of the papers and write the report (PAPER=cpm, QUICK=1, FRESH=1, DRY=1, JOBS=8)
	$(TEST_ENV) $(BIN)/python -m benchmarks.harness.reproduce $(PAPER) $(if $(ONLY),--only "$(ONLY)") \
		$(if $(QUICK),--quick --jobs $(or $(JOBS),2),--jobs $(or $(JOBS),1)) $(if $(FRESH),--fresh) $(if $(DRY),--dry-run)

# After make reproduce FRESH=1: compare each figure with that of the last commit, within its standard deviation.
compare: .venv/dev  ## compare the figures of the papers with those of the last commit (AGAINST=HEAD)
	$(BIN)/python -m benchmarks.harness.compare $(or $(AGAINST),HEAD)

docs: .venv/docs  ## build the documentation in build/docs, run its guides and examples, and check each page in a browser
	OMP_NUM_THREADS=1 $(BIN)/sphinx-build -W --keep-going -q -j auto -b html docs build/docs
	$(BIN)/python docs/walk.py build/docs
	@echo "Open build/docs/index.html"

clean:  ## remove the files that the other targets create
	rm -rf .venv .venv-minimum build dist docs/auto_examples docs/generated docs/sg_execution_times.rst
	rm -rf .coverage .coverage.* .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is required: set PYTHON, as in make demo PYTHON=python3.12."; exit 1; }
	$(PYTHON) -m venv .venv

.venv/demo: pyproject.toml | .venv/pyvenv.cfg
	@echo "Installing polyplane into .venv (a minute or two, once) ..."
	$(call PIP,$(BIN)) install -e ".[cli,plot]"
	@touch $@

# .venv/dev, .venv/bench, .venv/docs, .venv/dist, .venv/review: the groups of dependencies in pyproject.toml.
.venv/%: pyproject.toml | .venv/pyvenv.cfg
	@echo "Installing polyplane and the dependencies of group '$*' into .venv (a minute or two, once) ..."
	$(call INSTALL,$(BIN)) -e . --group $*
	@touch $@ .venv/demo
