# make demo    set up what is missing, measure a real broker over a satellite link, report
# make test    set up what is missing, lint, build, run all tests
# make lint    formatting, clippy, ruff, mypy
# make bench   side-by-side measurements (takes minutes; wants a quiet machine)
# make agreement  simulator beside kernel, every kind of scenario (an hour; resumable; wants a quiet machine)
# make coverage   how often intervals cover the true value, simulated (two minutes)
# make soak    200 runs that are killed, starved and looked at
# make clean   remove everything that was made here, recordings excepted

SHELL := /bin/bash
.DELETE_ON_ERROR:
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
export PATH := $(CURDIR)/$(BIN):$(HOME)/.cargo/bin:$(PATH)
RUST_SOURCES := $(shell find crates -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock

.PHONY: soak demo test lint bench agreement coverage clean setup setup-test test-rust test-python

demo: setup
	# On a busy machine the run is not valid (6), and says so first.
	$(BIN)/mqttlab run scenarios/demo.toml || [ $$? -eq 6 ]

test: setup lint test-rust test-python

setup: target/system-packages $(STAMPS)/engine

setup-test: setup target/system-packages-test $(STAMPS)/test

lint: setup
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked --quiet -- -D warnings
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy

test-rust: setup
	cargo test --workspace --locked --quiet

test-python: setup-test
	$(BIN)/pytest

bench: setup
	benches/run

agreement: setup
	$(BIN)/python benches/agreement/run.py --out benches/agreement/RESULTS.md

coverage: setup
	$(BIN)/python benches/coverage/run.py --out benches/coverage/RESULTS.md

soak: setup
	$(BIN)/python tests/soak/soak.py --runs 200 --seed 1

clean:
	rm -rf target $(VENV) .mypy_cache .ruff_cache .pytest_cache

target/system-packages: scripts/system-packages
	scripts/system-packages
	mkdir -p target
	touch $@

target/system-packages-test: scripts/system-packages
	scripts/system-packages test
	mkdir -p target
	touch $@

$(BIN)/python3: | target/system-packages
	$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "mqttlab needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

$(STAMPS)/python: requirements.lock | $(BIN)/python3
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements.lock
	mkdir -p $(STAMPS)
	touch $@

$(STAMPS)/test: requirements-test.lock $(STAMPS)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements-test.lock
	touch $@

# The engine's program goes beside the environment's Python, where the package looks for it.
$(STAMPS)/engine: $(STAMPS)/python pyproject.toml $(RUST_SOURCES)
	cargo build --release --locked --quiet --package mqttlab-engine
	install -m 755 target/release/mqttlab-engine $(BIN)/mqttlab-engine
	$(BIN)/python scripts/link-package
	touch $@
