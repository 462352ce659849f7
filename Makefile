# Needs python3 (3.11 or newer) with venv, and nothing else. PYTHON=python3.13 has an environment of its own, .venv-3.13.
PYTHON ?= python3
VENV   := .venv$(patsubst python%,-%,$(filter-out python python3,$(notdir $(PYTHON))))
BIN    := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest

# every process that tests start would compile all that it imports, were its bytecode not kept
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test clocks quick check bench mutants neighbours coverage figures docs wheel clean

demo: $(VENV)/.run
	$(BIN)/discreet demo
	@echo '   . $(BIN)/activate      first: it puts discreet on the PATH of this shell'

# Spark has a process of its own, beside the others; what races a clock runs when all of them have ended. The last lines
# say what failed, whatever a library prints as a process ends.
test: $(VENV)/.test
	$(PYTEST) -m spark $$(grep -rl --include=*.py mark.spark tests/*/) -W ignore::FutureWarning -W ignore::ResourceWarning >$(VENV)/spark.txt 2>&1 & spark=$$!; \
	$(PYTEST) -m "not spark and not clock" -n 3 --dist worksteal; others=$$?; \
	wait $$spark; spark=$$?; cat $(VENV)/spark.txt; \
	$(PYTEST) -m clock $$(grep -rl --include=*.py mark.clock tests/*/); clocks=$$?; \
	for part in "clocks $$clocks" "Spark $$spark" "all others $$others"; do \
		case $$part in *" 0") echo "passed: $${part% *}";; *) echo "FAILED: $${part% *}";; esac; done; \
	exit $$((others + spark + clocks != 0))

# How often what races a clock is wrong, on a free machine and beside two busy processes
clocks: $(VENV)/.test
	$(BIN)/python tools/clocks.py $(or $(TIMES),10)

# The inner loop, within a minute: the unit tests of what computes, without servers
quick: $(VENV)/.quick
	$(PYTEST) -q -m "not spark and not server and not slow" -n 2 --dist worksteal tests/golden tests/unit \
		$(patsubst %,--ignore=tests/unit/%,cli serve show verify)

check: $(VENV)/.check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	if command -v node >/dev/null; then $(BIN)/pyright; fi
	$(BIN)/lint-imports

bench: $(VENV)/.bench
	$(BIN)/python -m bench $(ONLY)

mutants: $(VENV)/.test
	$(BIN)/python tools/mutants.py $(ONLY)

neighbours: $(VENV)/.test
	NEIGHBOURS_SECONDS=$(SECONDS) NEIGHBOURS_CASE=$(CASE) $(BIN)/python -m pytest -q -s tests/neighbours/fresh.py

# The lowest coverage of every interval on data that is hard for it: docs/coverage.md, in some ten minutes
coverage: $(VENV)/.test
	$(BIN)/python tools/coverage.py $(RUNS)

figures: $(VENV)/.run
	$(BIN)/python tools/pictures.py
	$(BIN)/python tools/demo_picture.py

# the pictures of the server's page, with Chromium
page-pictures: $(VENV)/.test
	$(BIN)/python tools/page_pictures.py

# the documentation as a site in site/: links are checked, and that nothing is loaded from another host
docs: $(VENV)/.docs
	$(BIN)/python tools/build_docs.py

# dist/discreet-….whl, for another environment: pip install 'dist/discreet-….whl[plot]'
wheel: $(VENV)/.base
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	@ls dist/*.whl

# One virtual environment; each target adds what it needs, and is made again when pyproject.toml changes.
$(VENV)/.base: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "discreet needs Python 3.11 or newer")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	touch $@

$(VENV)/.run: $(VENV)/.base
	$(BIN)/python -m pip install --quiet --editable ".[plot]"
	touch $@

$(VENV)/.quick: $(VENV)/.run
	$(BIN)/python -m pip install --quiet --editable ".[plot,postgres,serve,xlsx]" --group test
	touch $@

$(VENV)/.test: $(VENV)/.quick
	$(BIN)/python -m pip install --quiet --editable ".[all]"
	touch $@

# mypy reads the types of every library that the source uses
$(VENV)/.check: $(VENV)/.test
$(VENV)/.check $(VENV)/.bench $(VENV)/.docs: $(VENV)/.%: $(VENV)/.run
	$(BIN)/python -m pip install --quiet --group $*
	touch $@

clean:
	rm -rf .venv .venv-* site dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
