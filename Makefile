# Quoll: the targets a developer uses. `make help` lists them.

# For set-up only, which finds one if this is empty; afterwards everything runs with .venv/bin/python.
PYTHON ?=

# Modules are compiled once, in any environment: the tests start thousands of processes.
export PYTHONDONTWRITEBYTECODE :=

KERNEL := build/bilby/kzm-after/kernel.elf

# tests/conftest.py distributes tests over workers, and orders them.
PYTEST := .venv/bin/pytest -n 2 --dist loadgroup --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help setup setup-tests kernel recorder analyse demo check quick test collected coverage bench soundness \
    paper benchmark mutants docs man wheel clean

help:
	@echo 'make analyse   worst-case bounds of all entries of the kernel for KZM'
	@echo 'make demo      programs on the kernel in QEMU; a control loop prints its latency and the bound'
	@echo 'make test      lint, types and every test, those of the kernel included; CASES=10 for ten times'
	@echo '               as many random cases'
	@echo 'make quick     the tests that are not slow, in less than a minute'
	@echo 'make coverage  branches that the tests execute, by package; tests and options in ARGS'
	@echo 'make check     lint, format and types only'
	@echo 'make kernel    build the kernel: $(KERNEL)'
	@echo 'make setup     install what is missing (the others do this by themselves)'
	@echo 'make campaign-NAME   a long run of campaigns/NAME.py, with options in ARGS'
	@echo 'make bench     how long users wait; time and memory against the number of contexts'
	@echo 'make benchmark   the kernel for other analysers: build/benchmark/*.tar.xz, options in ARGS'
	@echo 'make paper     the tables that stand beside published ones, as Markdown, CSV and charts'
	@echo 'make soundness   random C programs on both cores against their bounds, options in ARGS'
	@echo 'make mutants   faults put into the kernel one at a time: each must be found'
	@echo 'make docs      one static site of documents and docstrings: build/site/index.html'
	@echo 'make man       the manual pages: build/man'
	@echo 'make wheel     the wheel that users install, with the manual pages: build/wheel'
	@echo 'make clean     remove what was built; .venv stays'

# Does nothing if everything is installed.
setup:
	@scripts/setup '$(PYTHON)'

kernel: setup
	@$(MAKE) --silent --no-print-directory -C kernels/bilby

# Also the packages that only the tests need.
setup-tests:
	@scripts/setup '$(PYTHON)' tests

# The QEMU plugin that records a kernel's execution; the tests use it.
recorder: setup
	@$(MAKE) --silent --no-print-directory -C kernels/recorder

analyse: kernel
	@.venv/bin/wcet analyse $(KERNEL) --entry all

# "exit" ends it; DEMO=BOARD-PRESET for another build.
DEMO ?= kzm-after
demo: setup
	@.venv/bin/python -m bench.demo $(DEMO)

check: setup
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy

# Neither the kernel nor QEMU is needed for these.
quick: setup
	$(PYTEST) -m 'not slow'

# Tests are compiled once, not in each worker.
collected: setup
	@text=$$(.venv/bin/pytest --collect-only --quiet) || { echo "$$text"; exit 1; }

# Type checks use one processor, builds the other.
test: setup-tests
	@$(MAKE) --no-print-directory --jobs 2 --output-sync check kernel recorder collected
	$(PYTEST)

# Line by line in build/coverage/html; ARGS=tests/cache for the tests of one folder.
COVERAGE := .venv/bin/coverage
coverage: setup-tests kernel recorder
	@rm -rf build/coverage
	$(COVERAGE) run -m $(PYTEST:.venv/bin/%=%) $(ARGS)
	@$(COVERAGE) combine --quiet && rm -f build/coverage/data.*  # left by killed processes
	@$(COVERAGE) html --quiet --directory build/coverage/html
	@for package in quoll cache pipeline loopbounds ilp wcet; do \
	    printf '%-12s' $$package; $(COVERAGE) report --format=total --include="$$package/*"; done

# Results are recorded in docs/results; each campaign is reproducible from its seed.
mutants: setup
	.venv/bin/python -m campaigns.mutants $(ARGS)

campaign-%: kernel recorder
	.venv/bin/python -m campaigns.$* $(ARGS)

# Random C programs on all processors: docs/results/validation.md. Goes on where it was stopped.
soundness: setup-tests
	.venv/bin/python -m campaigns.soundness $(ARGS)

# Tables beside published ones, from recordings, replays and analyses: docs/results. On all processors,
# or ARGS='--jobs 1'; goes on where it was stopped.
paper: setup
	@.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-build-isolation \
	    --editable '.[bench]'
	.venv/bin/python -m campaigns.paper $(ARGS)

# Waiting times of users, then time and memory against the number of contexts: docs/results/performance.md,
# and a plot in build/bench.
bench: setup kernel
	.venv/bin/python -m bench.stages --write
	@.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-build-isolation \
	    --editable '.[bench]'
	.venv/bin/python -m bench.scaling build/bench --write $(ARGS)

# All boards, presets and levels of optimisation; ARGS='--build kzm-after-O2' for one.
benchmark: kernel recorder
	@.venv/bin/python -m bench.benchmark build/benchmark $(ARGS)

docs: setup
	@.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-build-isolation \
	    --editable '.[docs]'
	@.venv/bin/python scripts/reference.py build/pages
	@.venv/bin/python -m mkdocs build --quiet --strict

man: setup
	@.venv/bin/python scripts/man.py build/man

wheel: man
	@.venv/bin/python -m pip wheel --quiet --no-deps --wheel-dir build/wheel .

clean:
	rm -rf build .mypy_cache .pytest_cache .ruff_cache .hypothesis *.egg-info
