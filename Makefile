# make run: JupyterLab on the quickstart. make test: everything. `make help` lists the rest.
# Needs Python 3.11 or newer with pip; all else goes into .venv. Another Python: make PYTHON=/path/to/python

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)

# One for each of two cores; a file's tests stay together, they share nodes, kernels and pages.
WORKERS ?= 2

.DEFAULT_GOAL := help
.PHONY: help run test check format bench crash soak conformance browser screenshots matrix clean

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(VENV)/.lab  ## Set everything up and open JupyterLab on the quickstart
	$(BIN)/aios-nb lab

test: $(VENV)/.dev check browser  ## Set everything up and run all tests
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile

check: $(VENV)/.dev  ## Lint, formatting, types, and which room may import which
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: $(VENV)/.dev  ## Format the code and fix what can be fixed
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

bench: $(VENV)/.bench  ## Measure, as ratios to a baseline in the same run
	$(BIN)/aios-nb bench

crash: $(VENV)/.dev  ## Kill the Telegram bridge at every stage: 1,000 messages, 20 chats, 20 kills
	$(BIN)/python -m tests.hostile.bridge.matrix

# An hour; less: make soak SOAK_S=120
SOAK_S ?= 3600
soak: $(VENV)/.dev  ## Keep the Telegram bridge busy: 20 messages/s over 200 chats, memory watched
	$(BIN)/python -m tests.soak --seconds $(SOAK_S)

conformance: $(VENV)/.dev  ## Run the public MCP suite and the MCP Inspector; gets them by npm
	$(BIN)/python -m conformance --tools $(VENV)/conformance

screenshots: $(VENV)/.dev browser  ## Take the README's pictures again, in a real JupyterLab
	$(BIN)/python -m tests.browser.screenshots

# The newest ipykernel is in the environment; an older one goes before it on the path, by itself:
# what it needs is there.
IPYKERNELS := 6.31 7.3
matrix: $(VENV)/.dev $(IPYKERNELS:%=$(VENV)/ipykernel-%) browser  ## Test notebooks and browser with older ipykernels
	@for version in $(IPYKERNELS); do \
		echo "ipykernel $$version"; \
		AIOS_IPYKERNEL=$$version PYTHONPATH=$(abspath $(VENV))/ipykernel-$$version \
			$(BIN)/python -m pytest tests/notebook $(wildcard tests/browser) || exit 1; \
	done

$(VENV)/ipykernel-%: $(VENV)/.pip
	$(BIN)/python -m pip install --quiet --no-deps --target $@ 'ipykernel==$*.*'

clean:  ## Remove the virtual environment and caches
	rm -rf $(VENV) build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache

# A stamp is written last, so an interrupted set-up starts again, and a changed pyproject.toml installs again.
$(VENV)/.lab: pyproject.toml $(VENV)/.pip
	$(BIN)/python -m pip install --quiet --editable '.[lab,telegram]'
	@touch $@

$(VENV)/.dev: pyproject.toml $(VENV)/.pip
	$(BIN)/python -m pip install --quiet --editable '.[lab,telegram,dev]'
	@touch $@

# What the benchmarks compare with.
$(VENV)/.bench: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --editable '.[bench]'
	@touch $@

# Debian's Python may come without ensurepip; its pip can then put one into the environment.
$(VENV)/.pip:
	@[ -n "$(PYTHON)" ] && $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "aios_nb needs Python 3.11 or newer; name one with: make PYTHON=/path/to/python" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) >/dev/null 2>&1 \
		|| { $(PYTHON) -m venv --without-pip $(VENV) && $(PYTHON) -m pip --python $(BIN)/python install --quiet pip; } \
		|| { echo "could not make $(VENV): install your system's venv package (Debian: apt install python3-venv)" >&2; exit 1; }
	$(BIN)/python -m pip install --quiet --upgrade pip
	@touch $@

# Playwright drives the system's own browser; tests/browser/browser.py looks for the same names.
HAS_BROWSER = command -v chromium || command -v chromium-browser || command -v google-chrome
browser:  ## Install Chromium for the browser tests, when the system lets us
	@($(HAS_BROWSER)) >/dev/null && exit 0; \
	if [ "$$(id -u)" = 0 ]; then as_root=; else as_root="sudo -n"; fi; \
	if command -v apt-get >/dev/null && $$as_root true 2>/dev/null; then \
		echo "installing chromium"; \
		$$as_root apt-get update -qq; \
		$$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; \
	fi; \
	($(HAS_BROWSER)) >/dev/null && exit 0; \
	echo "*** NO BROWSER: install Chromium, or the browser tests are SKIPPED ***" >&2; \
	[ "$$AIOS_REQUIRE_BROWSER" != 1 ]
