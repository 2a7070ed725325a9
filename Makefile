# make demo: the main job end to end. make test: the whole suite. Both set up their own environment.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# Real programs that the tests count with and count (the tools, two emulators, MPI and an application), a browser for
# the report, and a Slurm with its accounting.
DEBIAN := valgrind linux-perf strace libpapi-dev papi-tools gcc g++ make libc6-dev binutils util-linux \
	openmpi-bin libopenmpi-dev qemu-user lammps chromium fonts-dejavu-core \
	slurm-wlm slurm-wlm-basic-plugins slurm-client munge slurmdbd mariadb-server-core mariadb-client-core \
	lua5.1 lua5.3 lua5.4

.PHONY: demo test test-fast tools check bench clean

demo: $(READY)
	$(BIN)/crossperf demo -o demo

test: $(READY) tools
	$(BIN)/pytest -n 2 --dist loadfile

test-fast: $(READY)
	$(BIN)/pytest -n 2 --dist loadfile -m "not slow"

# As root on Debian or Ubuntu, install what is missing; elsewhere tests skip and say why (with CI=true they fail).
tools:
	@missing=$$(dpkg-query -W -f '$${Package} $${db:Status-Status}\n' $(DEBIAN) 2>&1 | grep -v ' installed$$' || true); \
	if ! command -v apt-get >/dev/null || [ "$$(id -u)" != 0 ]; then \
		[ -z "$$missing" ] || echo "some of these are not installed, and tests that need them skip: $(DEBIAN)"; \
	elif [ -n "$$missing" ]; then \
		apt-get -qq update && DEBIAN_FRONTEND=noninteractive \
		apt-get -qq -o DPkg::Lock::Timeout=300 install -y --no-install-recommends $(DEBIAN) >/dev/null; \
	fi

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(READY)
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/accuracy.py --splits workload,app --seeds 0,1,2
	$(BIN)/python benchmarks/missing.py
	$(BIN)/python benchmarks/transfer.py
	$(BIN)/python benchmarks/report.py
	$(BIN)/python benchmarks/scheduling_speed.py
	$(BIN)/python benchmarks/scheduling.py
	$(BIN)/python benchmarks/slurm.py

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "crossperf needs Python 3.11 or newer; name one with: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo "Python's venv is missing; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $(READY)

clean:
	rm -rf $(VENV) demo build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
