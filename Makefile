# Everything runs from .venv, which `setup` makes.
# `make` alone prints what there is.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

BIN := .venv/bin
PY := $(BIN)/python
STAMP := .venv/.stamp

# All caches live in .cache, so that a missing or read-only home directory does not matter.
CACHE := $(CURDIR)/.cache
export NUMBA_CACHE_DIR := $(CACHE)/numba
export HYPOTHESIS_STORAGE_DIRECTORY := $(CACHE)/hypothesis
# The Java runtime that setup put into .venv, where the machine has none of its own.
export JAVA_HOME = $(shell test -x .venv/java/bin/java && echo "$(CURDIR)/.venv/java" || echo "$$JAVA_HOME")
# A PYTHONPATH or PYTHONHOME of the caller's shell is not part of this project.
unexport PYTHONPATH PYTHONHOME

# Settings: make test ARGS="-k keyexpr -x", make fuzz SECONDS=600
ARGS ?=
SECONDS ?= 60

.PHONY: help
help: ## Print this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' Makefile

.PHONY: setup
setup: $(STAMP) ## Make .venv with the locked tools and the project (skipped when up to date)

$(STAMP): pyproject.toml requirements/dev.lock requirements/java.lock tools/setup tools/java
	@PYTHON="$(PYTHON)" sh tools/setup

.PHONY: demo
demo: $(STAMP) ## Record a simulated fleet, ingest it with Spark, and ask it a few questions
	@$(PY) examples/demo.py $(ARGS)

.PHONY: test
test: $(STAMP) ## Run the tests (ARGS="-k name" to choose)
	@tools/test $(ARGS)

.PHONY: test-long
test-long: $(STAMP) ## Run the tests that take minutes each
	@$(PY) -m pytest -m long

.PHONY: test-core
test-core: $(STAMP) ## Run the tests of the node without the extra `fast`
	@ZENWIRE_WITHOUT_FAST=1 $(PY) -m pytest -m 'not long' tests/unit/test_without_fast.py \
		tests/unit/api tests/unit/ext tests/unit/keyexpr tests/unit/links tests/unit/node \
		tests/unit/routing tests/unit/sync tests/unit/transport tests/unit/wire tests/interop $(ARGS)

.PHONY: check
check: $(STAMP) ## Format, lint, types, layers, and generated files that differ
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(PY) -m mypy
	@$(BIN)/lint-imports --no-logo --cache-dir .cache/import-linter
	@$(PY) -m zenwire.columns.generate --check
	@$(PY) -m zenwire.wire.describe --check

.PHONY: bench
bench: $(STAMP) ## Measure speed; prints ratios (ARGS chooses)
	@$(PY) -m benchmarks $(ARGS)

SEEDS ?= 1000
.PHONY: sim
sim: $(STAMP) ## Let random networks of 30 nodes live against an oracle (SEEDS=1000)
	@$(PY) -m tests.simulation.network --seeds $(SEEDS)

.PHONY: fuzz
fuzz: $(STAMP) ## Feed every decoder random bytes for a while (SECONDS=60)
	@$(PY) -m fuzz --seconds $(SECONDS) $(ARGS)

.PHONY: docs
docs: $(STAMP) ## Write the message reference in docs/ from the definitions
	@$(PY) -m zenwire.wire.describe --write

.PHONY: gen
gen: $(STAMP) ## Write everything that is generated: kernels and message reference
	@$(PY) -m zenwire.columns.generate --write
	@$(PY) -m zenwire.wire.describe --write

.PHONY: fmt
fmt: $(STAMP) ## Format the code and fix what the linter can fix
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

.PHONY: lock
lock: $(STAMP) ## Renew requirements/dev.lock (ARGS=--upgrade for newer pins)
	@ARGS="$(ARGS)" sh tools/lock

.PHONY: clean
clean: ## Remove .venv, caches and build results
	@rm -rf .venv .cache build dist
	@find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
