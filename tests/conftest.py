"""Environment and fixtures that every test shares: all frameworks in one process, float64, CPU."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

# before any framework is imported; what is set already stays
os.environ.update(
    {
        "JAX_ENABLE_X64": "1",
        "JAX_PLATFORMS": "cpu",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "MPLBACKEND": "agg",
        # as many processes as cores go on at once
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "TF_NUM_INTRAOP_THREADS": "1",
        "TF_NUM_INTEROP_THREADS": "1",
        # what one of them compiled, the others need not
        "JAX_COMPILATION_CACHE_DIR": str(Path(__file__).parents[1] / ".pytest_cache" / "jax"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        # what one process imported, the others need not compile; nothing of it lies beside the sources
        "PYTHONPYCACHEPREFIX": str(Path(__file__).parents[1] / ".pytest_cache" / "bytecode"),
        # compiling takes longer than what is compiled; `make check` runs optimised programs
        "XLA_FLAGS": "--xla_backend_optimization_level=0"
        # XLA's older emitters compile three times as fast; jaxlib 0.12, and the TensorFlow that is as old as
        # jaxlib 0.6, end the process on this flag
        + " --xla_cpu_use_fusion_emitters=false"
        * bool(
            find_spec("jaxlib")
            and (0, 7) <= tuple(map(int, version("jaxlib").split(".")[:2])) < (0, 11)
        ),
    }
    | os.environ
)

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ.pop("COLUMNS", None)  # of the terminal of whoever runs the tests

import psutil
import pytest
from listed_skips import SkipsAreListed, read_listed

from svgpbench.backends import framework_missing, load_backend
from svgpbench.ops import Ops
from svgpbench.runs.core_locks import LOCKS_VARIABLE
from svgpbench.runs.cores import usable_cores
from svgpbench.training.chunked import compile_passes
from svgpbench.training.steps import compile_steps

BACKENDS = ("numpy", "jax", "torch", "tensorflow")


LONG = (
    "templates",
    "chaos",
    "guides/test_add_a_backend.py",
    "guides/test_add_a_method_or_likelihood.py",
    "guides/test_check_what_was_added.py",
    "test_beside_another_package.py",
)
"""Of what `make long` runs: packages that `new` writes, a run whose processes are killed,
the whole check on plugins, and tests once more beside somebody's package."""

SLOW = (
    "benchmarks",
    "checks/test_conformance_kit.py",
    "cli/test_verify_command.py",
    "guides",
    "ledger",
    "papers/algebra/test_computed_claims_decided.py",
    "papers/algebra/test_toy_of_adam2021.py",
    "posterior/test_default_fits.py",
    "posterior/test_sklearn.py",
    "results/test_committed_figure.py",
    "results/test_committed_records.py",
    "runs/test_alone.py",
    "runs/test_dask_runs.py",
    "runs/test_faults_of_machines.py",
    "runs/test_long_cells.py",
    "site",
    "strangers",
    "whole_runs/test_other_backends.py",
)
"""What `make slow` runs: whole commands, pages, guides and plugins, half of the time."""


@pytest.hookimpl(tryfirst=True)  # before marks choose
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        for mark, places in {"long": LONG, "slow": SLOW}.items():
            if item.get_closest_marker("long"):
                break
            if any(item.path.is_relative_to(here / place) for place in places):
                item.add_marker(mark)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--minutes", type=float, help="begin no test after so many minutes; those are skipped"
    )


BEGAN = time.monotonic()


@pytest.hookimpl(tryfirst=True)  # before fixtures, which may take long themselves
def pytest_runtest_setup(item: pytest.Item) -> None:
    minutes = item.config.getoption("--minutes")
    if minutes is not None and time.monotonic() - BEGAN > 60 * minutes:
        pytest.skip(f"not begun within {minutes:g} minutes")


def pytest_configure(config: pytest.Config) -> None:
    listed = read_listed(Path(__file__).with_name("skips.toml"))
    config.pluginmanager.register(SkipsAreListed(listed), "skips are listed")


MEMORY = 2 * 2**30
"""Bytes of a process of the tests at most; all frameworks take half of them before any test."""

FULL = 3 * 2**29
"""Bytes from which on compiled programs are dropped. No test takes more than the rest."""

GROWTH = 2**28
"""Least growth, in bytes, since programs were last dropped: dropping them takes a second."""

left_when_dropped = [0]
"""Bytes that the process still held when programs were last dropped."""


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_auto_num_workers() -> int | None:
    """Return a worker for each core, and no more than memory holds."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None  # pytest-xdist reads it
    return max(1, min(len(usable_cores()), psutil.virtual_memory().available // MEMORY))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Iterator[None]:
    """Drop compiled programs after a test where the process is full of them.

    JAX holds a megabyte for each operation that it compiled alone, whoever still needs it.
    """
    result = yield
    jax, process = sys.modules.get("jax"), psutil.Process()
    if jax is not None and process.memory_info().rss > max(FULL, left_when_dropped[0] + GROWTH):
        for compiled in (compile_steps, compile_passes):
            compiled.cache_clear()
        jax.clear_caches()
        gc.collect()
        if sys.platform == "linux":
            ctypes.CDLL("libc.so.6").malloc_trim(0)  # what is free goes back to the system
        left_when_dropped[0] = process.memory_info().rss
    return result


@pytest.fixture(scope="session", autouse=True)
def own_core_locks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Hide from the tests of this process which cores other runs on this machine have.

    Else the first line of a command would be that none is free, whenever another run or test has them.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(LOCKS_VARIABLE, str(tmp_path_factory.mktemp("locks")))
        yield


@pytest.fixture(scope="session", params=BACKENDS)
def ops(request: pytest.FixtureRequest) -> Ops:
    """Each backend in float64 on the CPU, in its default mode."""
    if missing := framework_missing(request.param):
        pytest.skip(missing)
    return load_backend(request.param)
