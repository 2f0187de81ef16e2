"""How a worker's process is set up, and what it says of the machine: each fact from its own source."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fake_cells import make_config

from svgpbench import environment
from svgpbench.environment import describe
from svgpbench.results.records import Record
from svgpbench.runs import worker_setup
from svgpbench.runs.worker_setup import peak_memory_bytes, pin, worker_environment

THREAD_VARIABLES = {
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "TF_NUM_INTRAOP_THREADS",
    "TF_NUM_INTEROP_THREADS",
}


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_every_library_is_told_the_number_of_threads(device: str) -> None:
    for threads in (1, 7):
        told = worker_environment(device, threads)
        assert {
            name for name, value in told.items() if name in THREAD_VARIABLES
        } == THREAD_VARIABLES
        assert {told[name] for name in THREAD_VARIABLES} == {str(threads)}


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_numbers_are_not_rounded_more_than_their_dtype(device: str) -> None:
    told = worker_environment(device, 1)
    assert told["JAX_ENABLE_X64"] == "1"
    assert told["NVIDIA_TF32_OVERRIDE"] == "0"
    assert told["JAX_DEFAULT_MATMUL_PRECISION"] == "highest"
    assert told["JAX_PLATFORMS"] == device
    # memory is taken as it is needed, so that a peak means something
    assert told["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"
    assert told["TF_FORCE_GPU_ALLOW_GROWTH"] == "true"
    assert told["PYTHONHASHSEED"] == "0"


def test_xla_has_the_threads_of_the_worker() -> None:
    assert [worker_environment("cpu", threads)["NPROC"] for threads in (1, 2, 7)] == ["1", "2", "7"]
    # for a GPU it is the pool that compiles
    assert "NPROC" not in worker_environment("cuda", 1)


class Framework:
    """Notes what it is told of threads, as torch and TensorFlow take it."""

    def __init__(self) -> None:
        self.told: dict[str, int] = {}
        of_tensorflow = SimpleNamespace(
            set_intra_op_parallelism_threads=self.note("intra"),
            set_inter_op_parallelism_threads=self.note("inter"),
        )
        self.config = SimpleNamespace(threading=of_tensorflow)
        self.set_num_threads, self.set_num_interop_threads = self.note("intra"), self.note("inter")

    def note(self, what: str) -> Callable[[int], None]:
        return lambda count: self.told.update({what: count})


@pytest.fixture
def pinned(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """What `pin` asks of the system, which is not asked."""
    seen = SimpleNamespace(affinity={}, blas=[], framework=Framework())
    monkeypatch.setattr(
        os,
        "sched_setaffinity",
        lambda thread, cores: seen.affinity.update({thread: list(cores)}),
        raising=False,
    )
    monkeypatch.setattr(os, "listdir", lambda path: ["11", "12", "13"])
    monkeypatch.setattr(worker_setup, "load_framework", lambda backend: seen.framework)
    monkeypatch.setattr("threadpoolctl.threadpool_limits", seen.blas.append)
    return seen


def test_both_pools_of_a_framework_have_the_threads_of_the_cell(pinned: SimpleNamespace) -> None:
    for backend in ("torch", "tensorflow"):
        pinned.framework.told.clear()
        pin(backend, 3, (4, 5, 6))
        assert pinned.framework.told == {"intra": 3, "inter": 3}, backend
    assert pinned.blas == [3, 3]
    pin("jax", 3, (4, 5, 6))
    assert pinned.blas[-1] == 1  # XLA runs LAPACK calls side by side


def test_every_thread_of_the_process_is_kept_on_the_cores(pinned: SimpleNamespace) -> None:
    pin("numpy", 2, (4, 5))
    assert pinned.affinity == {11: [4, 5], 12: [4, 5], 13: [4, 5]}
    assert pinned.framework.told == {}
    pinned.affinity.clear()
    pin("numpy", 2, ())
    assert pinned.affinity == {}  # any core


def test_pools_are_those_of_the_libraries_that_are_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    info = {
        "user_api": "blas",
        "internal_api": "openblas",
        "version": "0.3.28",
        "num_threads": 5,
        "prefix": "libopenblas",
    }
    monkeypatch.setattr("threadpoolctl.threadpool_info", lambda: [info])
    (pool,) = describe(1).thread_pools
    assert pool.model_dump() == {
        "api": "blas",
        "name": "openblas",
        "version": "0.3.28",
        "threads": 5,
    }


def test_the_machine_is_described_by_its_own_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 96)
    monkeypatch.setattr(
        "psutil.virtual_memory", lambda: SimpleNamespace(total=10**12, available=10**9)
    )
    monkeypatch.setattr(environment, "affinity", lambda: (3, 4))
    monkeypatch.setattr(environment, "source_revision", lambda package: ("abc", True))
    monkeypatch.setattr(environment, "gpu_model", lambda: "a GPU, 1.2")
    found = describe(7)
    assert (found.cores, found.memory_bytes, found.threads) == (96, 10**12, 7)
    assert (found.affinity, found.commit, found.dirty) == ((3, 4), "abc", True)
    assert found.gpu is None  # a CPU worker does not see it
    assert describe(7, "cuda").gpu == "a GPU, 1.2"


def test_the_gpu_is_the_first_that_the_driver_names(monkeypatch: pytest.MonkeyPatch) -> None:
    environment.gpu_model.cache_clear()
    monkeypatch.setattr(environment, "_output", lambda *words: "A, 1.2\nB, 1.2")
    assert environment.gpu_model() == "A, 1.2"
    environment.gpu_model.cache_clear()
    monkeypatch.setattr(environment, "_output", lambda *words: None)
    assert environment.gpu_model() is None
    environment.gpu_model.cache_clear()


def test_the_processor_has_the_name_that_the_kernel_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    told = "processor\t: 0\nmodel name\t: A @ 2.00GHz\n\nprocessor\t: 1\nmodel name\t: B\n"
    environment._cpuinfo_value.cache_clear()
    monkeypatch.setattr(Path, "read_text", lambda path, **how: told)
    assert environment.cpu_model() == "A @ 2.00GHz"
    environment._cpuinfo_value.cache_clear()


def test_versions_are_those_of_what_is_installed() -> None:
    import numpy
    import scipy

    versions = describe(1).versions
    assert (versions["numpy"], versions["scipy"]) == (numpy.__version__, scipy.__version__)
    assert list(versions) == sorted(versions)
    assert "svgpbench" in versions


def test_a_command_that_is_absent_fails_or_hangs_gives_nothing() -> None:
    assert environment._output("echo", " a ") == "a"
    assert environment._output("false") is None
    assert environment._output("no-such-command") is None


def test_peak_memory_is_in_bytes_and_of_the_high_water_mark(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    status = "VmPeak:\t 900 kB\nVmHWM:\t  700 kB\nVmRSS:\t 500 kB\n"
    monkeypatch.setattr(Path, "read_text", lambda path, **_: status)
    assert peak_memory_bytes() == 700 * 1024


@pytest.mark.parametrize(("system", "factor"), [("linux", 1024), ("darwin", 1)])
def test_without_a_process_file_the_peak_is_getrusage_s(
    monkeypatch: pytest.MonkeyPatch, system: str, factor: int
) -> None:
    def absent(path: Path, **_: Any) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", absent)
    monkeypatch.setattr("sys.platform", system)
    monkeypatch.setattr("resource.getrusage", lambda who: SimpleNamespace(ru_maxrss=500))
    assert peak_memory_bytes() == 500 * factor


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_worker_is_set_up_for_the_device_of_its_cells(
    run_one: Callable[..., Record], device: str
) -> None:
    told = run_one(make_config("tell_environment", backend={"name": "numpy", "device": device}))
    assert told.data["JAX_PLATFORMS"] == device
    assert (told.data["CUDA_VISIBLE_DEVICES"] == "") == (device == "cpu")
