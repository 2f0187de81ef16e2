# make demo   the main job: sets everything up, compares the backends, runs it, prints the table and where the figure lies
# make test   sets everything up and runs the tests that are not slow (ten minutes)
# make slow   runs the slow tests: whole commands, pages, guides, plugins (13 minutes)
# make mutants   puts each fault of tests/mutants/faults into a copy: which test notices? (an hour; ONLY=batches)
# make mutants-drawn   200 mutants drawn by a seed; survivors go to tests/mutants/survivors.toml to be read
# make fuzz   reads 100 000 broken files by every parser of files from outside (ten minutes on two cores; SEED=1)
# make figures   results/PAPER of every paper from the committed records: each figure, printed numbers beside ours (PAPERS=adam2021)
# make ledger   after new records: make figures of all papers, the ledger, and what pages and README say of it (ten minutes)
# make frozen   compares what the committed records say with tests/frozen/snapshot.json (ten minutes; PARTS="ids pages")
# make pages   the docs and, beside them, the site of all committed records, in build/pages
# make chaos   kills a run's processes over and over: nothing may be lost (a quarter of an hour)
# make release   builds wheels and sdists of both packages and tries each alone on 3.11, 3.12 and 3.13 (PYTHONS=python3.11)
# make digits   computes every reference number of reference/ again with 80 digits (PROBLEMS="gaussian-minibatch": one of them)
# make adapter LIBRARY=gpflow   compares a library with the reference numbers, in an environment of its own, and writes the tables of its page
# make lock   adds to constraints.txt, the tested versions of each Python, what pyproject.toml lacks there (UPGRADE=1: all anew; by uv)
PYTHON  ?= python3
VENV    ?= .venv
RESULTS ?= runs
JOBS    ?=
ONLY    ?=
BENCH   ?=
SEED    ?= 0
PAPERS  ?= $(notdir $(patsubst %/paper.toml,%,$(wildcard harness/svgpbench_papers/*/paper.toml)))
PARTS   ?=
LIBRARY ?= gpytorch
PROBLEMS ?=
UPGRADE ?=
PYTHONS ?= python3.11 python3.12 python3.13
# versions that `make` installs; CONSTRAINTS=/dev/null: the newest ones
CONSTRAINTS ?= constraints.txt
BIN      = $(VENV)/bin

.PHONY: demo test slow long ledger frozen figures pages mutants mutants-drawn fuzz chaos overheads lint check bench peers digits adapter paper release lock clean

demo: $(VENV)/.installed
	$(BIN)/svgpbench check --quick
	$(BIN)/svgpbench run adam2021-fig3 --preset quick --results $(RESULTS) $(if $(JOBS),--jobs $(JOBS))
	$(BIN)/svgpbench table adam2021-fig3 --preset quick --results $(RESULTS)
	$(BIN)/svgpbench plot adam2021-fig3 --preset quick --results $(RESULTS) --out $(RESULTS)/adam2021-fig3.png

test: $(VENV)/.installed
	$(BIN)/pytest -m "not long and not slow" --numprocesses auto --dist loadfile

slow: $(VENV)/.installed
	$(BIN)/pytest -m "slow and not long" --numprocesses auto --dist loadfile

# what takes minutes by itself: every package that `svgpbench new` writes, the whole check on plugins, kills (ten minutes)
long: $(VENV)/.installed
	$(BIN)/pytest -m long --numprocesses auto --dist loadfile

# what git keeps of the papers: after new records, this and a commit
figures: $(VENV)/.installed
	$(BIN)/svgpbench reproduce $(PAPERS) --from-records --results results --pages results

ledger: $(VENV)/.installed
	$(BIN)/python docs/_build/listings.py

frozen: $(VENV)/.installed
	$(BIN)/python tests/frozen/run.py $(PARTS)

pages: $(VENV)/.installed
	$(BIN)/svgpbench report --results results --out build/report
	$(BIN)/python docs/_build/prepare.py build/report build/docs
	$(BIN)/mkdocs build --quiet

mutants: $(VENV)/.installed
	$(BIN)/python tests/mutants/run.py $(if $(ONLY),--only $(ONLY)) $(if $(JOBS),--jobs $(JOBS))

mutants-drawn: $(VENV)/.installed
	$(BIN)/python tests/mutants/drawn.py $(if $(ONLY),--only $(ONLY)) $(if $(JOBS),--jobs $(JOBS))

fuzz: $(VENV)/.installed
	SVGPBENCH_FUZZ=40 $(BIN)/pytest tests/fuzz/test_fuzz.py tests/datasets/test_any_bytes.py --hypothesis-seed $(SEED) \
	  --numprocesses auto --timeout 3000

# 200 cells whose workers and runner are killed 50 times, beside the same cells undisturbed (a quarter of an hour)
chaos: $(VENV)/.installed
	$(BIN)/python tests/chaos/chaos_run.py --cells 200 --kills 50 --iterations 180 $(if $(JOBS),--jobs $(JOBS))

# what a run costs beside its cells
overheads: $(VENV)/.installed
	$(BIN)/python tests/chaos/overheads.py

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: $(VENV)/.installed
	$(BIN)/svgpbench check

bench: $(VENV)/.installed
	$(BIN)/pytest tests/benchmarks/timing/bench_steps.py --benchmark-only --benchmark-disable-gc --benchmark-autosave $(BENCH)

# peers' figures next to ours, and posteriors there and back, in environments of their own (3 GB) in a folder of the user's cache
peers: $(VENV)/.installed
	$(BIN)/svgpbench speed --peers --problem tiny --backend numpy --step predict --repeats 1 --max-other-cores 99
	$(BIN)/pytest tests/benchmarks/timing/test_peers.py tests/libraries/test_in_libraries.py

digits: $(VENV)/.installed
	$(BIN)/python tests/reference/make_mpmath.py --check $(PROBLEMS)

# gpflow, gpytorch or gpjax at the versions of `make peers`
ADAPTERS = $(CURDIR)/tests/reference/adapters
PACKAGE  = $(if $(filter pyro,$(LIBRARY)),pyro-ppl,$(LIBRARY))
adapter: $(VENV)/.installed
	$(PYTHON) -m venv build/libraries/$(LIBRARY)
	build/libraries/$(LIBRARY)/bin/python -m pip install --quiet pytest ./reference $(PACKAGE) \
	  --constraint $(firstword $(wildcard $(ADAPTERS)/$(LIBRARY).txt harness/svgpbench/benchmarks/timing/peers/$(LIBRARY).txt))
	# from there, as pytest loads the conftest.py of tests/ where it starts, which needs this project's packages
	cd build/libraries/$(LIBRARY) && bin/python -P -m pytest -c $(CURDIR)/reference/pyproject.toml -rs --pyargs svgp_reference \
	  --adapter=$(ADAPTERS)/$(LIBRARY)_adapter.py --known-failures=$(ADAPTERS)/known-failures-$(LIBRARY).txt \
	  --report=$(CURDIR)/tests/reference/reports/$(LIBRARY).json
	$(BIN)/python tests/reference/answers_table.py

# the full figure: 600 cells, about half an hour on two cores; its records are committed
paper: $(VENV)/.installed
	$(BIN)/svgpbench run adam2021-fig3 --preset paper --results results
	$(BIN)/svgpbench table adam2021-fig3 --preset paper --results results
	$(BIN)/svgpbench plot adam2021-fig3 --preset paper --results results --out results/adam2021-fig3.png

release: $(VENV)/.installed
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m build --outdir dist reference
	set -e; for python in $(PYTHONS); do $$python tests/release/try_distributions.py dist/*; done

# one file for every Python and platform; what is pinned stays, unless UPGRADE=1
lock:
	uv pip compile --universal --python-version 3.11.5 --all-extras --no-annotate --custom-compile-command "make lock" \
	  $(if $(UPGRADE),--upgrade,--constraint constraints.txt) pyproject.toml --output-file constraints.txt

$(VENV)/.installed: pyproject.toml $(CONSTRAINTS)
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "svgpbench needs Python 3.11 or newer: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --constraint $(CONSTRAINTS) --editable '.[all,dev]'
	touch $@

clean:
	rm -rf $(VENV) .pytest_cache build *.egg-info
