# Two commands do all the set-up: `make demo` and `make test`.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/ready
DEV    := $(VENV)/ready-dev

.DEFAULT_GOAL := help
.PHONY: help demo test lint types tests slow bench data clean

help:  ## show what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

demo: $(READY)  ## the whole story on real scores: in Python, then on the command line
	@$(BIN)/python examples/adult.py
	@echo; echo "The same on the command line, with files to look at:"; echo
	@$(BIN)/fairramp demo

test: lint types tests  ## lint, types and tests: what every change must pass

lint: $(DEV)  ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(DEV)  ## mypy, strict
	$(BIN)/mypy

tests: $(DEV)  ## pytest, warnings are errors
	$(BIN)/pytest

slow: $(DEV)  ## long simulations: certificates cover, many more generated cases
	$(BIN)/pytest -m slow
	$(BIN)/pytest tests/properties --hypothesis-profile=many

bench: $(READY)  ## speed, as ratios to reading the data once
	@$(BIN)/python benchmarks/core.py
	@$(BIN)/python benchmarks/cli.py 1000000

data: $(READY)  ## compute the demo's scores again from UCI Adult
	$(BIN)/python scripts/make_adult_scores.py

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version.split()[0]; sys.exit(sys.version_info < (3, 11) and f"fairramp needs Python 3.11 or newer, $(PYTHON) is {v}. Try: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[cli]'
	@touch $@

$(DEV): $(READY)
	$(BIN)/python -m pip install --quiet --group dev
	@touch $@

clean:  ## remove the environment and all caches
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
