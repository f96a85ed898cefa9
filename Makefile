# The two commands of the README are `make run` and `make test`; each does its own set-up.
.DEFAULT_GOAL := help
PYTHON_BIN := .venv/bin/python
HOST ?= 127.0.0.1
PORT ?= 8080

.PHONY: help setup dev run test acceptance lint format lock bench clean

help: ## Show this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: ## Install what the application needs
	@deploy/setup.sh run

dev: ## Install what developing and testing needs on top
	@deploy/setup.sh dev

run: setup ## Start FaceDock on http://localhost:8080
	@$(PYTHON_BIN) -m app serve --host $(HOST) --port $(PORT)

test: dev ## Run the tests
	@$(PYTHON_BIN) -m pytest -m "not slow" --ignore=tests/acceptance

acceptance: dev ## Run the long tests over the media in ../shared, where it exists
	@$(PYTHON_BIN) -m pytest tests/acceptance

lint: dev ## Check style, types and layers
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/mypy
	@.venv/bin/lint-imports

format: dev ## Put the code in order
	@.venv/bin/ruff format .
	@.venv/bin/ruff check --fix .

lock: dev ## Make the lock files anew from requirements*.in
	@deploy/lock.sh

bench: dev ## Measure; tables go to benchmarks/results
	@$(PYTHON_BIN) -m benchmarks

clean: ## Remove the environment and caches, keep the data
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
