# Every target works on a fresh clone: it makes the environment in .venv first, from the pinned and hashed requirements.
# A second run finds the stamp files of the first and costs nothing.

VENV := .venv
STAMP_RUNTIME := $(VENV)/.installed-runtime
STAMP_DEV := $(VENV)/.installed-dev
PIP_INSTALL := $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check

# The first Python that is new enough; `make run PYTHON=/path/to/python` takes another.
PYTHON ?= $(shell for python in python3 python3.11 python3.12 python3.13 python3.14; do \
	if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then echo $$python; break; fi; done)
UV ?= uv
COMPILE := $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --no-header --no-annotate

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: $(STAMP_RUNTIME) ## Serve on http://127.0.0.1:8000 with an embedded PostgreSQL; SALDO_* variables change that
	@exec $(VENV)/bin/saldo serve

.PHONY: test
test: $(STAMP_DEV) ## Run the tests; ARGS="tests/ledger -x" goes to pytest
	$(VENV)/bin/python -m pytest $(ARGS) </dev/null

.PHONY: check
check: $(STAMP_DEV) ## Check format, lint, types, imports and SQL
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/pyright
	$(VENV)/bin/lint-imports
	$(VENV)/bin/sqlfluff lint app

.PHONY: format
format: $(STAMP_DEV) ## Format the code and repair what the linter can repair
	$(VENV)/bin/ruff check --fix-only .
	$(VENV)/bin/ruff format .

.PHONY: soak
soak: $(STAMP_DEV) ## Run the long tests under load and faults
	$(VENV)/bin/python -m pytest -m soak --timeout=0 $(ARGS) </dev/null

.PHONY: bench-posting
bench-posting: $(STAMP_RUNTIME) ## Measure the posting engine beside its peers
	$(VENV)/bin/python -m bench.posting $(ARGS)

.PHONY: bench-api
bench-api: $(STAMP_RUNTIME) ## Measure the GraphQL API
	$(VENV)/bin/python -m bench.api $(ARGS)

.PHONY: lock
lock: ## Pin the requirements anew; needs uv
	$(COMPILE) --upgrade pyproject.toml requirements/runtime.in --output-file requirements/runtime.txt
	$(COMPILE) --upgrade pyproject.toml requirements/dev.in --output-file requirements/dev.txt

.PHONY: clean
clean: ## Remove the environment and all caches; the ledger in .saldo stays
	rm -rf $(VENV) build dist .coverage htmlcov .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find app migrations tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP_RUNTIME): requirements/runtime.txt pyproject.toml | $(VENV)/bin/python
	$(PIP_INSTALL) --require-hashes --requirement requirements/runtime.txt
	$(PIP_INSTALL) --no-index --no-deps --no-build-isolation --editable .
	@touch $@

$(STAMP_DEV): requirements/dev.txt $(STAMP_RUNTIME)
	$(PIP_INSTALL) --require-hashes --requirement requirements/dev.txt
	@touch $@

# Debian packs the module venv apart from Python; root can add it, others are told how.
$(VENV)/bin/python:
	@if [ -z "$(PYTHON)" ]; then \
		echo "Saldo needs Python 3.11 or newer; name one with PYTHON=/path/to/python." >&2; exit 1; fi
	@if ! $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null; then \
		package=$$($(PYTHON) -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])'); \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y "$$package" </dev/null; \
		else \
			echo "This Python lacks the module venv; on Debian: sudo apt-get install $$package" >&2; exit 1; \
		fi; fi
	$(PYTHON) -m venv $(VENV)
