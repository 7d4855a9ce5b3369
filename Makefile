# Everything a person or the build machine does with this repository. `make` alone lists it.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
INSTALL := -m pip install --quiet --disable-pip-version-check
BUILDERS := hatchling editables setuptools wheel
BOTH := -e ".[dev]" -e src/headwater_lab
NEWEST := build/newest
EXACT := tests/contracts tests/properties tests/tpch tests/engine/test_takeover.py tests/integration/test_exactness.py

.PHONY: help venv constraints demo test thorough check format docs bench clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

venv: $(STAMP) ## make .venv and install everything, in the versions of constraints.txt (Python 3.11, Java 17, or newer)

$(STAMP): pyproject.toml src/headwater_lab/pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is not installed; Headwater needs Python 3.11 or newer"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "$$($(PYTHON) --version) is too old; Headwater needs Python 3.11 or newer: make venv PYTHON=python3.11"; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null \
	  || { echo "this Python cannot make virtual environments; on Debian: apt install python3-venv"; exit 1; }
	@java="$${JAVA_HOME:+$$JAVA_HOME/bin/}java"; command -v "$$java" >/dev/null \
	  || { echo "java is not installed; Spark needs Java 17 or newer; on Debian: apt install openjdk-17-jre-headless"; exit 1; }
	@java="$${JAVA_HOME:+$$JAVA_HOME/bin/}java"; \
	  major="$$("$$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)"; \
	  [ "$${major:-0}" -ge 17 ] || { echo "Java $${major:-?} is too old; Spark needs Java 17 or newer"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python $(INSTALL) --constraint constraints.txt $(BUILDERS)
	$(BIN)/python $(INSTALL) --constraint constraints.txt --no-build-isolation $(BOTH)
	@touch $(STAMP)

constraints: ## renew constraints.txt: the newest versions that the ranges in both pyproject.toml allow
	rm -rf $(NEWEST)
	$(PYTHON) -m venv $(NEWEST)
	$(NEWEST)/bin/python $(INSTALL) $(BUILDERS)
	$(NEWEST)/bin/python $(INSTALL) --no-build-isolation $(BOTH)
	{ grep '^#' constraints.txt; $(NEWEST)/bin/python -m pip freeze --all --exclude pip --exclude-editable; } > $(NEWEST)/constraints.txt
	mv $(NEWEST)/constraints.txt constraints.txt
	rm -rf $(NEWEST)

demo: venv ## three PostgreSQL servers, concurrent writers, exact views, and the judge at the end
	$(BIN)/headwater demo

test: venv check ## everything the build machine runs: check, then all tests (those without Spark beside the others)
	@$(BIN)/pytest tests -m "not live" > .pytest_pure.log 2>&1 & pure=$$!; \
	  live=0; $(BIN)/pytest tests -m live || live=$$?; \
	  wait $$pure && others=0 || others=$$?; cat .pytest_pure.log; rm -f .pytest_pure.log; exit $$((live + others))

thorough: export HEADWATER_THOROUGH := 1
thorough: test ## the same with every interleaving, and 100,000 transfers, and exactness on executors; takes much longer
	HEADWATER_TEST_HELD_ROWS=40 $(BIN)/pytest $(EXACT) -m live
	HEADWATER_THOROUGH= SPARK_MASTER='local-cluster[2,1,1024]' HEADWATER_TEST_HELD_ROWS=40 $(BIN)/pytest $(EXACT) -m live

check: venv ## formatting, lint, types and doctests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pytest src

format: venv ## put the code into the one format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: venv ## write the generated pages of docs/reference
	$(BIN)/python docs/generate.py

bench: venv ## measure; see bench/
	$(BIN)/python -m bench

clean: ## remove what was made here: environment, caches, warehouses of tests
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis spark-warehouse metastore_db derby.log dist build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
