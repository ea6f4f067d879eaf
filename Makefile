# Two commands do all the setup: `make demo` and `make test`.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/ready
DEV    := $(VENV)/ready-dev
# The reproduction has an environment of its own: its peers must not decide which versions we work with.
REPRO  := .venv-reproduction
# So has the site: Sphinx and its theme are no part of anyone's work with the library.
DOCS   := .venv-docs
# Atheris has one too: it is built for some Pythons only.
FUZZ   := .venv-fuzz
UCI    ?=
# So has the vision half, which needs torch. SUBSET: 6,000 images of CelebA, images.tar; CELEBA, COCO: official layouts.
VISION := .venv-vision
SUBSET ?= ../shared/data/celeba6000
CELEBA ?=
COCO   ?=
WEIGHTS ?=
DOWNLOAD ?=

.DEFAULT_GOAL := help
.PHONY: help demo test lint types tests coverage test-spark test-torch test-browser docs docs-pictures test-docs faults slow fuzz fuzz-quick nightly coverage-page nox nox-quick bench bench-page data reproduce reproduce-quick reproduce-page \
	reproduce-vision reproduce-vision-quick reproduce-vision-page test-vision clean

help:  ## show what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 17

demo: $(READY)  ## the whole story on real scores: in Python, then on the command line
	@$(BIN)/python examples/adult.py
	@echo; echo "The same on the command line, with files to look at:"; echo
	@$(BIN)/fairramp demo

test: lint types tests  ## lint, types and tests: what every change must pass

lint: $(DEV)  ## ruff: rules and format; import-linter: layers import downwards only
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(DEV)  ## mypy, strict
	$(BIN)/mypy

tests: $(DEV)  ## pytest on all cores, warnings are errors
	$(BIN)/pytest --numprocesses auto --dist worksteal

coverage: $(DEV)  ## lines and branches that the tests do not reach, to be read for holes
	$(BIN)/pytest --numprocesses auto --dist worksteal --cov --cov-report=term-missing:skip-covered

test-spark: $(DEV)  ## tables of Spark, and a cluster that loses a process in mid-fit (needs Java)
	$(BIN)/pytest -m "spark or cluster"

test-torch: $(VENV)/ready-torch  ## rules as torch modules (installs torch, 200 MB)
	$(BIN)/pytest -m torch tests/export tests/cli
	$(BIN)/pytest src/fairramp/deploy/torch.py

test-browser: $(DEV)  ## the report in a real browser: needs chromium, and npm for axe-core
	$(BIN)/pytest -m browser tests/browser

docs: $(DOCS)/ready  ## the site, into docs/_build/html: offline, a warning is an error (Spark's example needs Java)
	$(DOCS)/bin/sphinx-build --quiet --fail-on-warning --keep-going --jobs 2 docs docs/_build/html

docs-pictures: $(DOCS)/ready  ## draw the pictures of docs/how-it-works.md again
	$(DOCS)/bin/python scripts/make_doc_pictures.py

test-docs: $(DEV)  ## every page of the built site in a real browser: needs chromium, and `make docs` before
	$(BIN)/pytest -m site tests/browser

faults: $(DEV)  ## full disks, killed processes, broken downloads, damaged files, threads and forks
	$(BIN)/pytest -m "faults and not nightly" tests/faults

fuzz: $(DEV) $(FUZZ)/ready  ## 25,000 generated cases, then ten minutes of atheris on every reader
	$(BIN)/pytest -m fuzz tests/fuzz --hypothesis-profile=fuzz --hypothesis-show-statistics
	$(FUZZ)/bin/python tests/fuzz/atheris_run.py files -max_total_time=300
	$(FUZZ)/bin/python tests/fuzz/atheris_run.py tables -max_total_time=300

fuzz-quick: $(DEV)  ## the same in less than a minute, without atheris
	$(BIN)/pytest -m fuzz tests/fuzz --hypothesis-profile=quick

nightly: $(DEV)  ## statistics in the long run: draws of ten million ids, gaps on fresh rows, how often limits hold
	$(BIN)/pytest -m nightly -s tests/statistical tests/faults

coverage-page: $(READY)  ## docs/coverage.md: how often limits hold, simulated (twenty minutes)
	$(BIN)/python -m scripts.coverage_page run

nox: $(DEV)  ## every environment that is promised: oldest, bare and newest versions, packages (an hour)
	$(BIN)/nox

nox-quick: $(DEV)  ## the wheel in empty environments, and the oldest versions on what matters most
	$(BIN)/nox -s packages-3.11 -- wheel
	$(BIN)/nox -s oldest -- core

slow: $(DEV)  ## long simulations: certificates cover, many more generated cases
	$(BIN)/pytest -m slow
	$(BIN)/pytest tests/properties --hypothesis-profile=many

bench: $(READY)  ## speed, as ratios to reading the data once
	@$(BIN)/python benchmarks/core.py
	@$(BIN)/python benchmarks/tables.py
	@$(BIN)/python benchmarks/cli.py

bench-page: $(REPRO)/ready-peers  ## docs/benchmarks.md: rows, groups, strings and peers (ten minutes, 4 GB)
	$(REPRO)/bin/python benchmarks/page.py measure
	$(REPRO)/bin/python benchmarks/page.py write

data: $(READY)  ## compute the demo's scores again from UCI Adult
	$(BIN)/python -m scripts.make_adult_scores

reproduce: $(REPRO)/ready-peers  ## the paper's tables and figures: 20 seeds (UCI=folder with the raw files)
	$(REPRO)/bin/python -m reproduction run $(if $(UCI),--folder "$(UCI)")

reproduce-quick: $(REPRO)/ready  ## the same with two seeds and the fast methods; fails if a claim does not hold
	$(REPRO)/bin/python -m reproduction quick $(if $(UCI),--folder "$(UCI)")

reproduce-page: $(REPRO)/ready  ## write docs/reproduction.md again from the stored results
	$(REPRO)/bin/python -m reproduction page

reproduce-vision: $(VISION)/ready  ## the paper's vision half: SUBSET=, CELEBA=, COCO=, WEIGHTS=folder, DOWNLOAD=1
	$(VISION)/bin/python -m reproduction.vision run $(if $(wildcard $(SUBSET)/images.tar),--subset "$(SUBSET)") \
	  $(if $(CELEBA),--celeba "$(CELEBA)") $(if $(COCO),--coco "$(COCO)") $(if $(WEIGHTS),--weights "$(WEIGHTS)") \
	  $(if $(DOWNLOAD),--download)

reproduce-vision-quick: $(VISION)/ready  ## 600 images, one network; fails if a claim does not hold, skips without SUBSET
	$(VISION)/bin/python -m reproduction.vision quick --subset "$(SUBSET)"

reproduce-vision-page: $(VISION)/ready  ## write docs/reproduction-vision.md again from the store
	$(VISION)/bin/python -m reproduction.vision page

test-vision: $(VISION)/ready  ## both vision protocols end to end on tiny datasets, in the environment with torch
	$(VISION)/bin/python -m pytest --noconftest -m vision tests/vision

$(VISION)/ready: reproduction/vision/requirements.txt reproduction/requirements.txt pyproject.toml
	$(PYTHON) -m venv $(VISION)
	$(VISION)/bin/python -m pip install --quiet -r reproduction/requirements.txt -r reproduction/vision/requirements.txt --editable .
	@touch $@

$(REPRO)/ready: reproduction/requirements.txt pyproject.toml
	$(PYTHON) -m venv $(REPRO)
	$(REPRO)/bin/python -m pip install --quiet --requirement reproduction/requirements.txt --editable .
	@touch $@

$(REPRO)/ready-peers: $(REPRO)/ready reproduction/requirements-peers.txt
	$(REPRO)/bin/python -m pip install --quiet -r reproduction/requirements.txt -r reproduction/requirements-peers.txt
	@touch $@

$(DOCS)/ready: pyproject.toml
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install --quiet --upgrade pip
	$(DOCS)/bin/python -m pip install --quiet --editable '.[cli,report,spark]' --group docs
	@touch $@

$(FUZZ)/ready: pyproject.toml
	$(PYTHON) -m venv $(FUZZ)
	$(FUZZ)/bin/python -m pip install --quiet --editable '.[cli]' 'atheris>=3.0'
	@touch $@

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version.split()[0]; sys.exit(sys.version_info < (3, 11) and f"fairramp needs Python 3.11 or newer, $(PYTHON) is {v}. Try: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[cli]'
	@touch $@

$(DEV): $(READY)
	$(BIN)/python -m pip install --quiet --group dev
	@touch $@

$(VENV)/ready-torch: $(DEV)
	$(BIN)/python -m pip install --quiet torch==2.13.0
	@touch $@

clean:  ## remove the environment and all caches
	rm -rf $(VENV) $(REPRO) $(FUZZ) $(DOCS) $(VISION) docs/_build docs/api docs/gallery .nox .cache reproduction/results/scores .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage* dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
