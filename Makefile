# Two commands do everything on a fresh machine:
#   make demo [FILES="a b"]   set up, compile a published model, run it on files
#   make test                 set up, run the tests
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
FILES ?=

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[test]'
	$(BIN)/python -m compileall -q src
	touch $@

.PHONY: demo test slow bench clean
demo: $(VENV)/.installed
	$(BIN)/python examples/identify_files.py $(FILES)

test: $(VENV)/.installed
	$(BIN)/python -m pytest -m 'not slow' tests

slow: $(VENV)/.installed
	$(BIN)/python -m pytest tests

bench: $(VENV)/.installed
	$(BIN)/python -m benchmarks.compare

clean:
	rm -rf $(VENV) .models
