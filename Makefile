# Everything a contributor or CI runs. `make help` lists the targets.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PRFAAS_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/prfaas
export PYTHONPATH := hack
PEERS := $(PRFAAS_CACHE)/peers-$(shell sha256sum requirements/peers.txt | cut -c1-16)
UV_COMPILE := uv pip compile --quiet --generate-hashes --python-version 3.11 --no-emit-index-url \
	--no-emit-find-links --custom-compile-command "make lock"
PIP_INSTALL := python -m pip install --quiet --disable-pip-version-check

.PHONY: help
help: ## This list
	@grep -hE '^[a-z][a-z-]*:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

# --- setup: everything is kept in .venv, build/ and $(PRFAAS_CACHE), and skipped when it is there

$(VENV)/.installed: requirements/dev.txt pyproject.toml
	@echo "==> Python environment (about a minute the first time)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/$(PIP_INSTALL) --require-hashes -r requirements/dev.txt
	@$(BIN)/$(PIP_INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

$(PEERS)/.installed: requirements/peers.txt
	@echo "==> Routers of other projects, to test against"
	@$(PYTHON) -m venv $(PEERS)
	@$(PEERS)/bin/$(PIP_INSTALL) --require-hashes -r requirements/peers.txt
	@touch $@

.PHONY: venv
venv: $(VENV)/.installed ## Python environment in .venv; the command is .venv/bin/prfaas

.PHONY: peers
peers: $(PEERS)/.installed
	@mkdir -p build && ln -sfn $(PEERS) build/peers

.PHONY: toolchain
toolchain: venv ## Control plane programs, kubectl and Helm (about seven minutes the first time)
	@$(BIN)/python -m localclusters build --helm >/dev/null

.PHONY: setup
setup: venv peers toolchain ## All of the above

# --- tests

.PHONY: quick
quick: setup ## Everyday loop: the fast tests
	$(BIN)/pytest -q -n 2 --dist loadfile -m "not slow and not soak"

.PHONY: test
test: setup check ## All tests but long soaks and end-to-end
	@mkdir -p build
	$(BIN)/pytest -q -n 2 --dist loadfile -m "not soak" --durations=25 --junit-xml=build/test.xml

.PHONY: e2e
e2e: setup ## End-to-end tests: operator, routers and engines on real clusters
	@mkdir -p build
	$(BIN)/pytest -q e2e --durations=0 --junit-xml=build/e2e.xml

.PHONY: failed
failed: ## Run only the tests that failed last time
	$(BIN)/pytest -q --last-failed --last-failed-no-failures=none tests e2e

.PHONY: demo
demo: venv ## The main job on two local clusters; DEMO_KEEP=1 leaves them running
	@$(BIN)/python -m localclusters build --no-helm >/dev/null
	@$(BIN)/python -m demo

.PHONY: demo-stop
demo-stop: ## Take away what DEMO_KEEP=1 left running
	@$(BIN)/python -m demo stop

# --- what a reviewer would ask

.PHONY: check
check: toolchain ## Format, lint, types, layers, generated files, docs links, chart
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python hack/generate.py --check
	$(BIN)/python hack/check_links.py
	"$$($(BIN)/python -m localclusters build | tail -1)" lint --strict --quiet charts/prfaas

.PHONY: generate
generate: venv ## Write CRDs, references and the chart's generated files again
	$(BIN)/python hack/generate.py

.PHONY: format
format: venv ## Format and fix what can be fixed
	$(BIN)/ruff format . && $(BIN)/ruff check --fix .

.PHONY: lock
lock: ## Pin the requirements files again (needs uv)
	$(UV_COMPILE) pyproject.toml -o requirements/runtime.txt
	$(UV_COMPILE) pyproject.toml --group dev -o requirements/dev.txt
	$(UV_COMPILE) requirements/peers.in -o requirements/peers.txt

.PHONY: clean
clean: ## Remove build/ and the environment; the cache stays
	rm -rf build $(VENV)
