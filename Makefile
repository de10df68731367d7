# Everything a contributor or CI runs. `make help` lists the targets.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PRFAAS_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/prfaas

.PHONY: help
help: ## This list
	@grep -hE '^[a-z][a-z-]*:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(VENV)/.installed: requirements/dev.txt pyproject.toml
	@echo "==> Python environment"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

.PHONY: venv
venv: $(VENV)/.installed ## Python environment in .venv; the command is .venv/bin/prfaas

.PHONY: lock
lock: ## Pin the requirements files again (needs uv)
	uv pip compile --quiet --generate-hashes --python-version 3.11 --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" pyproject.toml -o requirements/runtime.txt
	uv pip compile --quiet --generate-hashes --python-version 3.11 --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" pyproject.toml --group dev -o requirements/dev.txt

.PHONY: format
format: venv ## Format and fix what can be fixed
	$(BIN)/ruff format . && $(BIN)/ruff check --fix .
