# Needs python3 (3.11 or newer) with venv, and nothing else.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: demo test check bench mutants neighbours figures clean

demo: $(VENV)/.run
	$(BIN)/discreet demo

test: $(VENV)/.test
	$(BIN)/python -m pytest -m "not spark" -n 3 --dist worksteal
	$(BIN)/python -m pytest -m spark -W ignore::FutureWarning -W ignore::ResourceWarning

check: $(VENV)/.check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.bench
	$(BIN)/python -m bench $(ONLY)

mutants: $(VENV)/.test
	$(BIN)/python tools/mutants.py $(ONLY)

neighbours: $(VENV)/.test
	NEIGHBOURS_SECONDS=$(SECONDS) NEIGHBOURS_CASE=$(CASE) $(BIN)/python -m pytest -q -s tests/neighbours/fresh.py

figures: $(VENV)/.run
	$(BIN)/python tools/pictures.py

# One virtual environment; each target adds what it needs, and is made again when pyproject.toml changes.
$(VENV)/.base: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "discreet needs Python 3.11 or newer")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	touch $@

$(VENV)/.run: $(VENV)/.base
	$(BIN)/python -m pip install --quiet --editable ".[plot]"
	touch $@

$(VENV)/.test: $(VENV)/.run
	$(BIN)/python -m pip install --quiet --editable ".[all]" --group test
	touch $@

# mypy reads the types of every library that the source uses
$(VENV)/.check: $(VENV)/.test
$(VENV)/.check $(VENV)/.bench: $(VENV)/.%: $(VENV)/.run
	$(BIN)/python -m pip install --quiet --group $*
	touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
