# One command set for people and for CI. `make` lists it.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help

# Everything here can be overridden: make serve PORT=9000
VENV      ?= .venv
PYTHON    ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
               $$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' 2>/dev/null && { echo $$p; break; }; done)
UV_VERSION ?= 0.13.9
EXTRAS    ?= dev,night
HOST      ?= 127.0.0.1
PORT      ?= 8000
DATA      ?=
CASES_DIR ?= ../shared/cases
CASES_MIN ?= 41
DATA_DIR  ?= ../shared/data
WORKERS   ?= 2
PYTEST_ARGS ?=
ARGS      ?=

BIN   := $(VENV)/bin
STAMP := $(VENV)/.installed
UV    := $(BIN)/uv
CODE  := hermes_memory hermes_cli actors serve_app jobs bench tests

.PHONY: help install lock demo demo-night serve services services-install services-stop test test-unit test-cluster cases cases-cluster chaos chaos-night test-chaos eval check lint format types imports docs-check bench clean engine-install lock-engine test-engine

help: ## list the commands
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  \033[1mmake %-16s\033[0m %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))
	@echo "  Variables: PORT HOST DATA ARGS PYTEST_ARGS CASES_DIR CASES_MIN VENV PYTHON EXTRAS (make serve PORT=9000)"

install: $(STAMP) ## create .venv and install the locked dependencies (a moment when nothing changed)

$(STAMP): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11, 3.12 or 3.13 is needed: make install PYTHON=/path/to/python3.11"; exit 1; }
	@$(BIN)/python -c '' 2>/dev/null || { echo "==> $(VENV) with $$($(PYTHON) --version)"; rm -rf $(VENV); $(PYTHON) -m venv $(VENV); }
	@$(UV) --version 2>/dev/null | grep -qw '$(UV_VERSION)' || { echo "==> uv $(UV_VERSION)"; $(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION); }
	@echo "==> hermes-memory[$(EXTRAS)] with the versions of constraints.txt"
	@$(UV) pip install --python $(BIN)/python -c constraints.txt -e '.[$(EXTRAS)]'
	@touch $@

lock: install ## refresh constraints.txt to the newest versions pyproject.toml allows
	@{ echo "# The versions that are tested together, for every platform. Refresh with: make lock"; \
	   $(UV) pip compile pyproject.toml --extra dev --extra night --universal --python-version 3.11 \
	     --upgrade --quiet --no-header --no-annotate --no-emit-index-url --no-emit-find-links; } > constraints.new
	@if grep -nE '://|@ |^-|file:' constraints.new; then echo "constraints.new names an address: not taken over"; exit 1; fi
	@mv constraints.new constraints.txt && echo "constraints.txt: $$(grep -c == constraints.txt) packages"

lock-engine: install ## refresh constraints-engine.txt, with the versions of constraints.txt where vLLM lets it: after make lock
	@grep -v "python_full_version >= '3.12'" constraints.txt > constraints.new
	@$(UV) pip compile pyproject.toml tests/engine/requirements.in --extra dev --override tests/engine/overrides.txt \
	  --python-platform x86_64-manylinux_2_28 --python-version 3.11 --quiet --no-header --no-annotate \
	  --no-emit-index-url --no-emit-find-links --output-file constraints.new
	@if grep -nE '://|@ |^-|file:' constraints.new; then echo "constraints.new names an address: not taken over"; exit 1; fi
	@{ echo "# A real vLLM for CPUs with what this project needs, on Linux and x86-64: make engine-install. Refresh with: make lock-engine"; \
	   cat constraints.new; } > constraints-engine.txt
	@rm constraints.new && echo "constraints-engine.txt: $$(grep -c == constraints-engine.txt) packages"

demo: install ## play a short conversation and show what is remembered
	@$(BIN)/hermes demo $(ARGS)

demo-night: install ## load 300 users, let a night pass on a real Ray, show three of them and the report
	@$(BIN)/python -m jobs.demo_night --data-dir $(DATA_DIR) $(ARGS)

serve: install ## run the server on HOST:PORT
	@$(BIN)/hermes serve --host $(HOST) --port $(PORT) $(if $(DATA),--data $(DATA)) $(ARGS)

services: install ## get and start a real Redis and a real Weaviate: no root, no Docker; minutes the first time
	@$(BIN)/hermes services start $(if $(DATA),--data $(DATA)) $(ARGS)

services-install: install ## only get their programs, into the cache
	@$(BIN)/hermes services install

services-stop: install ## stop them; their data stays
	@$(BIN)/hermes services stop $(if $(DATA),--data $(DATA))

test: install ## all tests: unit, cluster, cases, the real engine, faults; a table of stage times at the end
	@MAKE='$(MAKE)' .ci/stages test test-unit test-cluster cases cases-cluster test-engine test-chaos

test-unit: install ## the tests that need no Ray
	@$(BIN)/python -m tests.second_try -n $(WORKERS) --dist loadfile tests/unit tests/property tests/conformance tests/runtime tests/docs $(PYTEST_ARGS)

test-cluster: install ## the tests on a real Ray cluster
	@$(BIN)/python -m tests.second_try tests/cluster $(PYTEST_ARGS)

cases: install ## play the black-box cases of CASES_DIR against a server of our own
	@CASES_DIR='$(CASES_DIR)' $(BIN)/python -m tests.run_cases --at-least $(CASES_MIN)

cases-cluster: services-install ## play them against a server on a real Redis and a real Weaviate
	@CASES_DIR='$(CASES_DIR)' $(BIN)/python -m tests.run_cases --at-least $(CASES_MIN) --cluster

engine-install: install ## get a real vLLM for this machine's CPU, and a small model, into the cache: no root, no GPU; minutes the first time
	@$(BIN)/python -m tests.engine.install

test-engine: engine-install ## the tests of the real engine: on a Ray cluster whose GPU is only declared, and behind vLLM's own server
	@DATA_DIR='$(DATA_DIR)' $$($(BIN)/python -m tests.engine.install --python) -m tests.second_try tests/engine $(PYTEST_ARGS)

chaos: services-install ## 300 faults on a running cluster under load, twenty minutes at most: what was harmed
	@$(BIN)/python -m tests.chaos --faults 300 --minutes 20 $(ARGS)

chaos-night: install ## nights with a kill in the middle at 20 random points, ten minutes: whether each ended as if nothing had been
	@$(BIN)/python -m tests.night_kills --points 20 $(ARGS)

test-chaos: services-install ## two dozen of them, one of each kind at least
	@$(BIN)/python -m tests.chaos --faults 24 --minutes 8 --users 10 $(ARGS)

check: install ## lint, types, imports, docs-check
	@MAKE='$(MAKE)' .ci/stages check lint types imports docs-check

lint: install ## ruff: rules and format
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

format: install ## ruff: repair what can be repaired, then format
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

types: install ## mypy, strict
	@$(BIN)/mypy $(wildcard $(CODE))

imports: install ## the layering contracts
	@$(BIN)/lint-imports

docs-check: install ## the documentation's examples compile, its links resolve
	@$(BIN)/python -m tests.docs.pages

bench: install ## the benchmarks, each against its limits
	@$(BIN)/python -m bench $(ARGS)

eval: install ## the measures of quality: conflicts, extraction in two languages, grounding, profiles, recall; every miss
	@for name in conflicts extraction extraction-zh knowledge relatedness profile-quality recall-quality; do $(BIN)/python -m bench $$name $(ARGS) || failed=1; done; exit $${failed:-0}

.PHONY: peers-install eval-vllm

peers-install: install ## get what extraction-calls compares with into the cache: mem0, and a tokenizer
	@$(BIN)/python -m bench.peers.venv

eval-vllm: engine-install ## 200 turns through the real engine's deployment: every answer counted, the store checked
	@OMP_NUM_THREADS='$(WORKERS)' $$($(BIN)/python -m tests.engine.install --python) -m bench.eval_vllm $(ARGS)

clean: install ## remove caches and build outputs (the venv stays: rm -rf .venv)
	@rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage htmlcov constraints.new
	@find . -path ./$(VENV) -prune -o -name __pycache__ -type d -print0 | xargs -0 rm -rf
