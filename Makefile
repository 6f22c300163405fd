# make            the environment in .venv, with the tested versions (constraints.txt)
# make reproduce  quick reproduction of every paper: figures, claims, one HTML report
# make test       the whole gate: lint, docs, tests
# make check      two minutes of it, for every save: lint, types, and the tests that see most for their time
# make test-lowest  those tests with the lowest versions that pyproject.toml allows, in an environment of their own
# make wheel-test   the wheel, built, installed alone and used from another folder
# make soak       200 kills at random moments over several runs and sweeps
# make fuzz       ten thousand mistakes: each is refused with a sentence, or works
# make laws       laws of SGD against loops in NumPy, and planted faults that must be seen
# make mutants    small faults in the code, one by one, and which tests see them
# make bench      speed beside other tools: benchmarks/results, docs/speed.md, the README's table
# make record PAPER=soft_moe  every claim and figure of a paper at full size, for the pages of the docs
# make lint | docs | pages | clean

PYTHON ?= python3
VENV   ?= .venv
REPORT ?= report
# Small factorisations wait for a second thread longer than they take; tests and parts of a report have the cores already.
export OPENBLAS_NUM_THREADS ?= 1
PIP    := pip==26.3
# `make quick CONSTRAINTS=` takes the newest versions instead of the tested ones.
CONSTRAINTS ?= constraints.txt

BIN := $(VENV)/bin
RUN := $(VENV)/.ready-to-run
DEV := $(VENV)/.ready-to-develop
INSTALL := $(BIN)/python -m pip install --quiet $(addprefix --constraint ,$(CONSTRAINTS)) --editable

.PHONY: install develop reproduce test check quick test-lowest wheel-test lint docs pages bench record soak laws mutants fuzz clean
install: $(RUN)
develop: $(DEV)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "tutelage needs Python 3.11 or newer; '$(PYTHON)' is not. Try: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "'$(PYTHON) -m venv' failed. On Debian or Ubuntu: apt install python3-venv" >&2; exit 1; }
	@# Dependency groups (pip install --group) need pip 25.1; a fresh environment may hold an older one.
	$(BIN)/python -m pip install --quiet --upgrade "$(PIP)"

$(RUN): pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) .
	@touch $@

$(DEV): pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) . --group dev
	@touch $(RUN) $@

reproduce: $(RUN)
	$(BIN)/tutelage reproduce --quick --out $(REPORT)

test: lint docs
	$(BIN)/python -m pytest -n 2 --dist loadfile

QUICK := problem trajectory reference test_layers.py test_public.py test_identity.py test_refusals.py \
         test_revisions.py bench/test_cost.py $(addprefix dynamics/test_,tsit5.py lanes.py events.py)
check: lint quick

quick: $(DEV)
	$(BIN)/python -m pytest -q -n 2 --dist loadfile $(addprefix tests/,$(QUICK))

# Old versions warn of what newer ones have changed: here a warning is no failure. Instructions are counted for the tested
# versions only: an old compiler makes others.
LOWEST := build/lowest
test-lowest:
	$(PYTHON) -m venv --clear $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --upgrade "$(PIP)"
	$(LOWEST)/bin/python tests/lowest.py > $(LOWEST)/lowest.txt
	$(LOWEST)/bin/python -m pip install --quiet --constraint $(LOWEST)/lowest.txt --editable . --group test
	$(LOWEST)/bin/python -m pytest -q -n 2 --dist loadfile -o filterwarnings=default $(addprefix tests/,$(filter-out bench/test_cost.py,$(QUICK)))

WHEEL := build/wheel
wheel-test:
	rm -rf $(WHEEL)
	$(PYTHON) -m venv $(WHEEL)/env
	$(WHEEL)/env/bin/python -m pip install --quiet --upgrade "$(PIP)"
	$(WHEEL)/env/bin/python -m pip wheel --quiet --no-deps --wheel-dir $(WHEEL) .
	$(WHEEL)/env/bin/python -m pip install --quiet $(addprefix --constraint ,$(CONSTRAINTS)) $(WHEEL)/*.whl
	$(WHEEL)/env/bin/python tests/alone.py $(WHEEL)

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(DEV)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# The pages made from the software itself; a test says when they are out of date.
pages: $(DEV)
	$(BIN)/python docs/make_cli.py
	$(BIN)/python docs/make_papers.py
	$(BIN)/python docs/make_evidence.py
	$(BIN)/python docs/make_api.py
	$(BIN)/python docs/make_reliability.py
	$(BIN)/python docs/make_corrections.py
	$(BIN)/python docs/make_speed.py

bench: $(DEV)
	$(INSTALL) ".[bench]"
	$(BIN)/tutelage bench
	$(BIN)/python docs/make_speed.py

record: $(DEV)
	$(BIN)/python benchmarks/record.py $(PAPER)

soak: $(DEV)
	$(BIN)/python benchmarks/soak.py --kills 200

fuzz: $(DEV)
	$(BIN)/python benchmarks/fuzz.py

laws: $(DEV)
	$(BIN)/python benchmarks/laws.py

mutants: $(DEV)
	$(BIN)/python benchmarks/mutants.py

clean:
	rm -rf $(VENV) $(REPORT) site build dist .cache .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
