# The commands of this repository. Each installs what it needs into .venv first, once.

PYTHON ?= python3
VENV ?= .venv
JOBS ?= 2

export NO_MKDOCS_2_WARNING := 1

BIN := $(VENV)/bin
RUNTIME := $(VENV)/.installed
DEVELOPMENT := $(VENV)/.installed-dev
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt
PYTEST := $(BIN)/python -m pytest -n $(JOBS)

.DEFAULT_GOAL := help
.PHONY: help install demo test quick check format docs benchmark

help: ## list these commands
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

install: $(DEVELOPMENT) ## set up .venv for development

demo: $(RUNTIME) ## train a small translator, score it, use it, draw its attention: minutes on 2 cores
	rm -rf demo
	$(BIN)/heedful scenes en-de --out demo/data --train 60000
	$(BIN)/heedful train recipes/scenes-en-de --data demo/data --out demo/run
	$(BIN)/heedful evaluate demo/run --data demo/data
	head -n 4 demo/data/test.en
	head -n 4 demo/data/test.en | $(BIN)/heedful translate --model demo/run
	$(BIN)/heedful attention 'The old woman has given the child a red apple.' --model demo/run --out demo/attention.png
	printf '%s\n' 'Where is the train station?' 'I would like a cup of coffee.' 'She has never been to Berlin.' \
	  | $(BIN)/heedful translate --model en-de

test: $(DEVELOPMENT) ## run every test
	$(BIN)/python -m pytest -m compile
	$(PYTEST)

quick: $(DEVELOPMENT) ## run the tests that take a moment
	$(PYTEST) -m "not slow"

check: $(DEVELOPMENT) ## lint, format, types, floors, documentation
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports --no-logo
	$(BIN)/mkdocs build --quiet --strict

format: $(DEVELOPMENT) ## write the code as ruff wants it
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

docs: $(DEVELOPMENT) ## build the documentation into site/
	$(BIN)/mkdocs build --strict

benchmark: $(DEVELOPMENT) ## time training beside other implementations
	$(BIN)/python benchmarks/train_step.py

$(RUNTIME): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "heedful needs Python 3.11 or newer, and '$(PYTHON)' is not: make PYTHON=python3.12 names another one" >&2; exit 1; }
	@echo "Installing heedful into $(VENV), once ..."
	@$(PYTHON) -m venv $(VENV) || { \
	  echo "no virtual environment could be made in $(VENV): on Debian and Ubuntu, apt install python3-venv" >&2; exit 1; }
	@$(PIP) torch
	@$(PIP) -e '.[plot]'
	@touch $@

$(DEVELOPMENT): $(RUNTIME)
	@echo "Installing the tools for development into $(VENV), once ..."
	@$(PIP) -e '.[dev]'
	@touch $@
