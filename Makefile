# `make demo` and `make test` set up everything they need. `make help` lists all targets.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/ready
DEV    := $(VENV)/ready-dev
# Some tasks have their own environment: other libraries in the reproduction would pin the versions we develop with,
# Sphinx is needed only for the documentation, atheris supports few Python versions, the vision part needs torch, and
# dbt and MLflow limit the versions of many packages.
REPRO  := .venv-reproduction
DOCS   := .venv-docs
FUZZ   := .venv-fuzz
VISION := .venv-vision
DBT    := .venv-dbt
MLFLOW := .venv-mlflow
# Folders with data. UCI: the raw files; SUBSET: images.tar, 6,000 CelebA images; CELEBA, COCO: the official layouts.
# LINEARPOST: the authors' repository.
UCI    ?=
LINEARPOST ?=
SUBSET ?= ../shared/data/celeba6000
CELEBA ?=
COCO   ?=
WEIGHTS ?=
DOWNLOAD ?=

.DEFAULT_GOAL := help
.PHONY: help demo test lint types tests test-extended coverage mutants mutants-quick test-spark test-torch test-mlflow test-mariadb test-dbt test-browser test-serve docs docs-pictures test-docs test-readme test-gates faults slow fuzz fuzz-quick nightly coverage-page nox nox-quick release-check bench bench-page data reproduce reproduce-quick reproduce-page \
	reproduce-vision reproduce-vision-quick reproduce-vision-page test-vision clean

help:  ## list all targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 24

demo: $(READY)  ## run the demo on real scores, in Python and on the command line
	@$(BIN)/python examples/adult.py
	@echo; echo "The same on the command line, which leaves its files for you to look at:"; echo
	@$(BIN)/fairramp demo

test: lint types tests  ## lint, types and quick tests: run it after every change

lint: $(DEV)  ## run ruff (rules and format) and import-linter (layers)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(DEV)  ## run mypy in strict mode
	$(BIN)/mypy

tests: $(DEV)  ## run the quick tests on all cores; warnings are errors
	$(BIN)/pytest --part quick --numprocesses auto --dist worksteal

test-extended: $(DEV)  ## run the other tests: commands, pages, reports, all combinations (every change must pass)
	$(BIN)/pytest --part extended --numprocesses auto --dist worksteal

coverage: $(DEV)  ## list lines and branches that the tests do not reach
	$(BIN)/pytest --numprocesses auto --dist worksteal --cov --cov-report=term-missing:skip-covered

mutants: $(DEV)  ## change 200 operators one by one; fails if the quick tests notice too few (an hour)
	$(BIN)/python -m scripts.mutants cover
	$(BIN)/python -m scripts.mutants run

mutants-quick: $(DEV)  ## change 40 of them again, and run only the tests that noticed (two minutes)
	$(BIN)/python -m scripts.mutants quick

test-spark: $(DEV)  ## test Spark, including a cluster that loses a process during a fit (needs Java)
	$(BIN)/pytest -m "spark or cluster"

test-torch: $(VENV)/ready-torch  ## test the torch export (installs torch, 200 MB)
	$(BIN)/pytest -m torch tests/export tests/cli
	$(BIN)/pytest src/fairramp/deploy/torch.py src/fairramp/deploy/class_torch.py

test-mariadb: $(DEV)  ## test exported SQL on MariaDB (needs mariadb-server)
	$(BIN)/pytest -m mariadb tests/export

test-dbt: $(DEV) $(DBT)/ready  ## test the dbt macro and package with dbt and DuckDB (installs dbt, 200 MB)
	$(BIN)/pytest -m dbt tests/export/test_dbt.py

test-mlflow: $(MLFLOW)/ready  ## test rules in MLflow, with its server (installs MLflow, 1 GB)
	MLFLOW_DISABLE_TELEMETRY=true $(MLFLOW)/bin/python -m pytest -m "" tests/integrations/test_mlflow.py src/fairramp/mlflow.py

test-browser: $(DEV)  ## test the report in a browser (needs chromium, and npm for axe-core)
	$(BIN)/pytest -m browser tests/browser

test-serve: $(DEV)  ## test the service against its OpenAPI description with schemathesis
	$(BIN)/pytest -m described tests/web

docs: $(DOCS)/ready  ## build the documentation in docs/_build/html; warnings are errors (Spark's example needs Java)
	$(DOCS)/bin/sphinx-build --quiet --fail-on-warning --keep-going --jobs 2 docs docs/_build/html

docs-pictures: $(DOCS)/ready  ## redraw the charts of the documentation
	$(DOCS)/bin/python scripts/make_doc_pictures.py
	$(DOCS)/bin/python -m scripts.criteria_page draw

test-docs: $(DEV)  ## test the built documentation in a browser (needs chromium; run `make docs` first)
	$(BIN)/pytest -m site tests/browser

test-readme: $(DEV)  ## follow the README in a fresh clone and an empty environment
	$(BIN)/pytest -m clone -s tests/test_readme.py

test-gates: $(DEV)  ## run the pre-commit hooks in another repository, with the newest pre-commit
	$(BIN)/pytest -m clone tests/test_gates.py

faults: $(DEV)  ## test full disks, killed processes, broken downloads, damaged files, threads and forks
	$(BIN)/pytest -m "faults and not nightly" tests/faults

fuzz: $(DEV) $(FUZZ)/ready  ## run 25,000 generated cases, then atheris on every reader (twenty minutes)
	$(BIN)/pytest -m fuzz tests/fuzz --hypothesis-profile=fuzz --hypothesis-show-statistics
	$(FUZZ)/bin/python tests/fuzz/atheris_run.py files -max_total_time=300
	$(FUZZ)/bin/python tests/fuzz/atheris_run.py tables -max_total_time=300

fuzz-quick: $(DEV)  ## run fewer generated cases, without atheris (under a minute)
	$(BIN)/pytest -m fuzz tests/fuzz --hypothesis-profile=quick

nightly: $(DEV)  ## run long simulations: draws of ten million ids, gaps on new rows, how often limits hold
	$(BIN)/pytest -m nightly -s tests/statistical tests/faults

coverage-page: $(READY)  ## simulate how often limits hold and write docs/coverage.md (twenty minutes)
	$(BIN)/python -m scripts.coverage_page run

nox: $(DEV)  ## test every supported environment: oldest, bare and newest versions, packages (an hour)
	$(BIN)/nox

nox-quick: $(DEV)  ## test the wheel in empty environments, and the core tests on the oldest versions
	$(BIN)/nox -s packages-3.11 -- wheel
	$(BIN)/nox -s oldest -- core

release-check: $(DEV)  ## build the packages twice, compare and check them, and list what they contain, in dist
	$(BIN)/nox -s release

slow: $(DEV)  ## run long simulations of the certificates and many more generated cases
	$(BIN)/pytest -m slow
	$(BIN)/pytest tests/properties --hypothesis-profile=many

bench: $(READY)  ## measure speed, relative to reading the data once
	@$(BIN)/python benchmarks/core.py
	@$(BIN)/python benchmarks/tables.py
	@$(BIN)/python benchmarks/classes.py
	@$(BIN)/python benchmarks/cli.py
	@$(BIN)/python benchmarks/serve.py

bench-page: $(REPRO)/ready-peers  ## measure speed alongside other libraries and write docs/benchmarks.md (ten minutes, 4 GB)
	$(REPRO)/bin/python benchmarks/page.py measure
	$(REPRO)/bin/python benchmarks/page.py write

data: $(READY)  ## recompute the package's two datasets from UCI Adult
	$(BIN)/python -m scripts.make_adult_scores

reproduce: $(REPRO)/ready-peers  ## reproduce the paper's tables and figures with 20 seeds (UCI=folder with the raw files)
	$(REPRO)/bin/python -m reproduction run $(if $(UCI),--folder "$(UCI)") $(if $(LINEARPOST),--linearpost "$(LINEARPOST)")

reproduce-quick: $(REPRO)/ready  ## the same with two seeds and the fast methods; fails if a claim does not hold (two minutes)
	$(REPRO)/bin/python -m reproduction quick $(if $(UCI),--folder "$(UCI)")

reproduce-page: $(REPRO)/ready  ## rewrite docs/reproduction.md from the stored results
	$(REPRO)/bin/python -m reproduction page

reproduce-vision: $(VISION)/ready-peers  ## reproduce the paper's vision experiments (SUBSET=, CELEBA=, COCO=, WEIGHTS=folder, DOWNLOAD=1)
	$(VISION)/bin/python -m reproduction.vision run $(if $(wildcard $(SUBSET)/images.tar),--subset "$(SUBSET)") \
	  $(if $(CELEBA),--celeba "$(CELEBA)") $(if $(COCO),--coco "$(COCO)") $(if $(WEIGHTS),--weights "$(WEIGHTS)") \
	  $(if $(DOWNLOAD),--download)

reproduce-vision-quick: $(VISION)/ready  ## the same with 600 images and two networks; fails if a claim does not hold; skipped without SUBSET
	$(VISION)/bin/python -m reproduction.vision quick --subset "$(SUBSET)"

reproduce-vision-page: $(VISION)/ready  ## rewrite docs/reproduction-vision.md from the stored results
	$(VISION)/bin/python -m reproduction.vision page

test-vision: $(VISION)/ready  ## test both vision protocols on tiny datasets (installs torch)
	$(VISION)/bin/python -m pytest --noconftest -m vision tests/vision

$(VISION)/ready: reproduction/vision/requirements.txt reproduction/requirements.txt pyproject.toml
	$(PYTHON) -m venv $(VISION)
	$(VISION)/bin/python -m pip install --quiet -r reproduction/requirements.txt -r reproduction/vision/requirements.txt --editable .
	@touch $@

$(VISION)/ready-peers: $(VISION)/ready reproduction/requirements-peers.txt
	$(VISION)/bin/python -m pip install --quiet -r reproduction/requirements.txt -r reproduction/requirements-peers.txt
	@touch $@

$(MLFLOW)/ready: tests/integrations/mlflow-requirements.txt pyproject.toml
	$(PYTHON) -m venv $(MLFLOW)
	$(MLFLOW)/bin/python -m pip install --quiet --requirement tests/integrations/mlflow-requirements.txt --editable '.[report]'
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

$(DBT)/ready: tests/dbt/requirements.txt
	$(PYTHON) -m venv $(DBT)
	$(DBT)/bin/python -m pip install --quiet --requirement tests/dbt/requirements.txt
	@touch $@

$(FUZZ)/ready: pyproject.toml
	$(PYTHON) -m venv $(FUZZ)
	$(FUZZ)/bin/python -m pip install --quiet --editable '.[cli]' 'atheris>=3.0'
	@touch $@

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version.split()[0]; sys.exit(sys.version_info < (3, 11) and f"fairramp needs Python 3.11 or newer, $(PYTHON) is {v}. Try: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[cli,report]'
	@touch $@

$(DEV): $(READY)
	$(BIN)/python -m pip install --quiet --group dev
	@touch $@

$(VENV)/ready-torch: $(DEV)
	$(BIN)/python -m pip install --quiet torch==2.13.0
	@touch $@

clean:  ## remove all environments, builds and caches
	rm -rf $(VENV) $(REPRO) $(FUZZ) $(DOCS) $(VISION) $(DBT) $(MLFLOW) docs/_build docs/api docs/gallery .nox .cache reproduction/results/scores .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage* dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
