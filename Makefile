# make demo    set up what is missing, measure a real broker over a satellite link, report
# make check   lint, types, pure crates, fast Python tests: for use between edits
# make test    set up what is missing, lint, build, run all tests: what continuous integration runs
# make lint    formatting, clippy, ruff, mypy
# make docs    build the documents as a site into target/site; it can be read as files
# make bench   side-by-side measurements (takes minutes; wants a quiet machine)
# make agreement  simulator beside kernel, every kind of scenario (an hour; resumable; wants a quiet machine)
# make chance     simulator beside kernel, scenarios drawn by chance (three hours; resumable; wants a quiet machine)
# make advice   whether experiments by chance recommend what an equivalent choice undercuts (20 minutes)
# make coverage   how often intervals cover the true value, simulated (two minutes)
# make soak    200 runs that are killed, starved and looked at; 100,000 damaged recordings, traces and tables
# make mutants  faults that were mended, put back one at a time: does the test of each fail (an hour)
# make fuzz    every fuzz target, guided by coverage (SECONDS=60 each; TARGETS="plan mqtt" are some of them)
# make soak-large  a recording of 50 million packets: does every command stay below 1 GiB (half an hour, 2 GB of disk)
# make lock    renew the locks of Python's packages with their hashes (UPGRADE=1 takes the latest versions)
# make audit   licences, sources, doubles and known faults of what others wrote (installs cargo-deny: minutes)
# make clean   remove everything that was made here, recordings excepted

SHELL := /bin/bash
.DELETE_ON_ERROR:
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
# How the engine is built: `wheel` optimises across crates, for half as long again (docs/explanation/performance.md).
PROFILE ?= release
ENGINE := target/$(PROFILE)/mqttlab-engine
# Thousands of short commands are started by tests: each would compile its modules anew.
unexport PYTHONDONTWRITEBYTECODE
export PATH := $(CURDIR)/$(BIN):$(HOME)/.cargo/bin:$(PATH)
# Three processes of tests to a processor: most of a live run is waiting.
WORKERS := --numprocesses=$(shell echo $$((3 * $$(nproc)))) --no-loadscope-reorder
# Live tests measure in real time, beside five others and the builds. A test that fails must fail alone, too.
AGAIN := What failed beside others is run again, alone. It counts if it fails again.
# Of make's own slots only a make below it can take one; cargo counts its jobs by itself.
CARGO := env -u MAKEFLAGS -u MFLAGS cargo
# What Python's tests need.
TESTED := target/system-packages-test $(STAMPS)/test $(STAMPS)/crates $(STAMPS)/engine-$(PROFILE)
# Each package is what its lock says, byte for byte, whichever index it comes from.
PIP := $(BIN)/python -m pip install --disable-pip-version-check --require-hashes
TOOLS := target/tools
# Crates without clocks, sockets and files: those whose clippy.toml refuses the clock.
PURE := $(shell grep -l 'std::time::Instant::now' crates/*/clippy.toml | cut -d / -f 2)
RUST_SOURCES := $(shell find crates -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock

.PHONY: docs lock audit fuzz mutants soak soak-large demo check test lint lint-rust lint-python bench advice agreement chance coverage clean
.PHONY: setup setup-test setup-dashboard test-rust test-rust-pure test-python test-python-fast

demo: setup
	# On a busy machine the run is not valid (6), and says so first.
	$(BIN)/mqttlab run scenarios/demo.toml || [ $$? -eq 6 ]
	@echo "Look into it with a browser: make setup-dashboard, then $(BIN)/mqttlab dashboard"

# What `check` does is a part: the pure crates are of the workspace, and Python's fast tests come first, while Rust's are
# built. Then both run side by side, for Python's mostly wait; what Rust's print comes when they are done. The builds give
# way to everything else, for a live run measures in real time.
test:
	+@$(MAKE) --no-print-directory --jobs=3 test-rust test-python

check:
	+@$(MAKE) --no-print-directory --jobs=2 test-rust-pure test-python-fast

# Python's packages come from the network while the engine is compiled, each with what it is doing on the screen.
setup:
	+@$(MAKE) --no-print-directory --jobs=2 $(STAMPS)/engine-$(PROFILE)

setup-test:
	+@$(MAKE) --no-print-directory --jobs=3 $(TESTED)

setup-dashboard: setup $(STAMPS)/dashboard

lint: lint-rust lint-python

lint-rust: target/system-packages
	$(CARGO) fmt --all --check
	nice -n 5 $(CARGO) clippy --workspace --all-targets --locked --quiet -- -D warnings

lint-python: $(STAMPS)/test
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy

test-rust: target/system-packages-test lint-rust
	nice -n 5 $(CARGO) test --workspace --locked --quiet --no-run
	@mkdir -p target && $(CARGO) test --workspace --locked --quiet >target/test-rust.log 2>&1; status=$$?; \
		cat target/test-rust.log; exit $$status

test-rust-pure: lint-rust
	$(CARGO) test --locked --quiet $(PURE:%=--package mqttlab-%)

test-python: test-python-fast
	$(BIN)/pytest --slow $(WORKERS) || { [ $$? -eq 1 ] && echo "$(AGAIN)" && $(BIN)/pytest --last-failed --maxfail=3; }

# Once before the workers start: else each of them would rewrite the assertions of all files.
test-python-fast: $(TESTED) lint-python
	@$(BIN)/pytest --collect-only -qq >/dev/null
	$(BIN)/pytest --fast --numprocesses=$(shell nproc)

bench:
	@$(MAKE) --no-print-directory setup-test PROFILE=wheel
	CARGO_PROFILE_RELEASE_LTO=fat CARGO_PROFILE_RELEASE_CODEGEN_UNITS=1 benches/run

agreement: setup-test
	$(BIN)/python benches/agreement/run.py --out benches/agreement/RESULTS.md

chance: setup-test
	$(BIN)/python benches/agreement/chance.py --out benches/agreement/CHANCE.md

advice: setup-test
	$(BIN)/python benches/advice/run.py --out benches/advice/RESULTS.md

coverage: setup
	$(BIN)/python benches/coverage/run.py --out benches/coverage/RESULTS.md

soak: setup-test
	$(BIN)/python tests/soak/soak.py --runs 200 --seed 1
	$(BIN)/python tests/soak/mutations.py --count 100000 --seed 1
	$(BIN)/python tests/soak/given.py --count 100000 --seed 1

mutants: setup-test
	$(BIN)/python tests/mutants/mutants.py

fuzz: target/system-packages
	scripts/fuzz $(or $(SECONDS),60) $(TARGETS)

soak-large: setup-test
	$(BIN)/python benches/commands/run.py --packets 5e7 --rounds 1 --most-mib 1024

docs: $(STAMPS)/test
	$(BIN)/mkdocs build --strict
	@echo "target/site/index.html"

lock: $(TOOLS)/installed
	$(TOOLS)/bin/python scripts/lock $(if $(UPGRADE),--upgrade)

# What cannot be reached is said, and is no failure; what is found is one.
audit: $(TOOLS)/installed $(TESTED)
	$(CARGO) deny --version >/dev/null 2>&1 || { echo "audit: cargo-deny is missing: cargo install --locked cargo-deny, which takes minutes"; \
		$(CARGO) install --locked --quiet cargo-deny; } || echo "audit: licences and sources of crates: NOT CHECKED, cargo-deny cannot be had"
	! $(CARGO) deny --version >/dev/null 2>&1 || $(CARGO) deny --locked check bans licenses sources
	$(TOOLS)/bin/python scripts/audit $(BIN)/python

$(TOOLS)/installed: requirements-tools.lock
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes \
		--requirement requirements-tools.lock
	touch $@

clean:
	rm -rf target $(VENV) .mypy_cache .ruff_cache .pytest_cache

target/system-packages: scripts/system-packages
	scripts/system-packages
	mkdir -p target
	touch $@

target/system-packages-test: scripts/system-packages | target/system-packages
	scripts/system-packages test
	touch $@

$(BIN)/python3: | target/system-packages
	$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "mqttlab needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

$(STAMPS)/python: requirements.lock | $(BIN)/python3
	@echo "Python packages: $$(grep -c '^[a-z]' requirements.lock) of requirements.lock, into $(VENV)"
	@$(PIP) --progress-bar off --requirement requirements.lock \
		| sed -un 's/^Collecting /  pip: /p; s/^Successfully installed.*/  pip: done/p'; exit $${PIPESTATUS[0]}
	@mkdir -p $(STAMPS)
	@touch $@

$(STAMPS)/test: requirements-test.lock requirements-dashboard.lock $(STAMPS)/python
	$(PIP) --quiet --requirement requirements.lock --requirement requirements-test.lock \
		--requirement requirements-dashboard.lock
	touch $@

# The test of the wheel builds it without a network, and maturin reads the manifests of other systems' crates, too.
$(STAMPS)/crates: Cargo.lock $(STAMPS)/python
	$(CARGO) fetch --quiet --locked
	touch $@

$(STAMPS)/dashboard: requirements-dashboard.lock $(STAMPS)/python
	$(PIP) --quiet --requirement requirements.lock --requirement requirements-dashboard.lock
	touch $@

# The engine's program goes beside the environment's Python, where the package looks for it.
$(ENGINE): $(RUST_SOURCES) | target/system-packages
	@echo "The engine: $$(grep -c '^name = ' Cargo.lock) crates at most, about two minutes on two processors"
	$(CARGO) build --profile $(PROFILE) --locked --package mqttlab-engine
	@touch $@

$(STAMPS)/engine-$(PROFILE): $(ENGINE) $(STAMPS)/python pyproject.toml
	rm -f $(STAMPS)/engine*
	install -m 755 $(ENGINE) $(BIN)/mqttlab-engine
	$(BIN)/python scripts/link-package
	touch $@
