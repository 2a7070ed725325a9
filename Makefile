# make demo: the main job end to end. make test: the whole suite. make docs: the site. Each sets up its own environment.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# The exact releases that we develop with; `make CONSTRAINTS=/dev/null` takes whatever pyproject.toml allows.
CONSTRAINTS ?= constraints.txt
# `make LOCK=requirements.lock` installs the same releases by the hashes of their files, and nothing else.
LOCK ?=
FUZZ_SECONDS ?= 3600
# Renewed by hand: a network's weights follow torch, and where a CPU build of this release is offered, plain pip takes it.
TORCH ?= 2.13.0

# Real programs that the tests count with and count (the tools, two emulators, MPI and an application), a browser for
# the report, and a Slurm with its accounting.
DEBIAN := valgrind linux-perf strace libpapi-dev papi-tools gcc g++ make libc6-dev binutils util-linux \
	openmpi-bin libopenmpi-dev libbenchmark-dev qemu-user luajit sqlite3 lammps chromium fonts-dejavu-core \
	slurm-wlm slurm-wlm-basic-plugins slurm-client munge slurmdbd mariadb-server-core mariadb-client-core \
	lua5.1 lua5.3 lua5.4

.PHONY: demo test test-fast fuzz tools check docs build release audit lock bench clean

demo: $(READY)
	$(BIN)/crossperf demo -o demo

test: $(READY) tools
	$(BIN)/pytest -n 2 --dist loadfile --cov --cov-report=term

test-fast: $(READY)
	$(BIN)/pytest -n 2 --dist loadfile -m "not slow"

# Unsound files for every reader, for an hour; what fails is kept in fuzz-failures/.
fuzz: $(READY)
	$(BIN)/python -m tests.hostile.fuzz --seconds $(FUZZ_SECONDS)

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

# The site, in site/: strict about links, and nothing on it asks another host.
docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# The sdist, and the wheel made from it, in dist/.
build: $(READY)
	$(BIN)/python -m build --no-isolation

# The same, with a bill of materials (CycloneDX) beside them.
release: check build
	$(BIN)/python tools/sbom.py dist

# Known weaknesses of the locked releases, where the database of them can be asked.
audit: $(READY)
	$(PYTHON) -m venv $(VENV)-audit
	$(VENV)-audit/bin/python -m pip install --quiet --disable-pip-version-check pip-audit
	$(VENV)-audit/bin/pip-audit --requirement requirements.lock --disable-pip
	rm -rf $(VENV)-audit

# Renew constraints.txt and the hashes in requirements.lock: the newest releases that pyproject.toml allows, and torch $(TORCH).
lock:
	rm -rf $(VENV)-lock
	$(PYTHON) -m venv $(VENV)-lock
	$(VENV)-lock/bin/python -m pip install --quiet --disable-pip-version-check torch==$(TORCH)
	$(VENV)-lock/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	{ echo "# What 'make' installs; renewed by 'make lock' with $$($(PYTHON) --version)."; \
	  $(VENV)-lock/bin/python -m pip freeze --all --exclude pip --exclude-editable | sed 's/+cpu$$//'; } > constraints.txt
	$(VENV)-lock/bin/python tools/lock.py
	rm -rf $(VENV)-lock

bench: $(READY)
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/answer.py
	$(BIN)/python benchmarks/accuracy.py --splits workload,app --seeds 0,1,2
	$(BIN)/python benchmarks/missing.py
	$(BIN)/python benchmarks/transfer.py
	$(BIN)/python benchmarks/report.py
	$(BIN)/python benchmarks/scheduling_speed.py
	$(BIN)/python benchmarks/scheduling.py
	$(BIN)/python benchmarks/slurm.py
	$(BIN)/python benchmarks/serve.py
	$(BIN)/python benchmarks/workers.py
	$(BIN)/python benchmarks/large.py --runs 1000000,4000000
	$(BIN)/python benchmarks/campaign.py

$(READY): pyproject.toml $(CONSTRAINTS) $(LOCK)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "crossperf needs Python 3.11 or newer; name one with: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo "Python's venv is missing; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
ifneq ($(LOCK),)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --requirement $(LOCK)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	$(BIN)/python -m pip check
else
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint $(CONSTRAINTS) --editable '.[dev]'
endif
	@touch $(READY)

clean:
	rm -rf $(VENV) demo build dist site .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis
