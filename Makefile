# `make demo` and `make test` do all their set-up themselves; they need Python 3.11 or newer, pip, make and git.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test test-slow test-ray trust audit bench reproduction reproduction-report docs format clean

demo: $(VENV)/installed
	$(BIN)/same demo

test: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -q -n 2 -m "not slow"

test-slow: $(VENV)/installed-dev
	$(BIN)/pytest -q -m slow

# Ray clusters on this machine.
test-ray: $(VENV)/installed-ray
	$(BIN)/pytest -q -m ray

# Fault injection: kills, damaged files, bad input; `make trust QUICK=1` runs a tenth of it.
trust: $(VENV)/installed-dev
	PYTHONPATH=tests $(BIN)/python -m trust $(if $(QUICK),--quick)

# Known vulnerabilities of the installed packages; needs the network.
audit: $(VENV)/installed-dev
	$(BIN)/python -c "import pip_audit" 2>/dev/null || $(BIN)/pip install --quiet "pip-audit>=2.7" || \
		{ echo "audit: pip-audit cannot be installed; is there a network?" >&2; exit 2; }
	$(BIN)/python tests/trust/audit.py

# Needs the four sets in the folder that SAME_DATA names.
bench: $(VENV)/installed-bench
	$(BIN)/python benchmarks/bench.py "$(SAME_DATA)" --json bench.json

# The paper's study, with the settings in its study.json: hours; it continues where it stopped. Needs the four sets.
reproduction: $(VENV)/installed
	$(BIN)/same study --out reproduction/paper

# The tables of the README and of docs/reproduction*.md from the results in this repository, in seconds.
reproduction-report: $(VENV)/installed
	$(BIN)/python benchmarks/reproduction.py

# The site in site/. Search needs a server: python3 -m http.server -d site
docs: $(VENV)/installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

format: $(VENV)/installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) dist build .mypy_cache .pytest_cache .ruff_cache .hypothesis same-demo site

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/pip install --quiet --editable .
	touch $@

$(VENV)/installed-dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/pip install --quiet --editable ".[dev]"
	touch $@ $(VENV)/installed

$(VENV)/installed-bench: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/pip install --quiet --editable ".[bench]"
	touch $@ $(VENV)/installed

$(VENV)/installed-ray: pyproject.toml constraints.txt | $(VENV)/installed-dev
	$(BIN)/pip install --quiet --editable ".[ray]"
	touch $@

$(VENV)/installed-docs: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/pip install --quiet --editable ".[docs]"
	touch $@ $(VENV)/installed
