"""Cells that do as their method's name says; what a worker runs in these tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from svgpbench.config import CellConfig
from svgpbench.errors import UserError
from svgpbench.experiments.identity import CellIdentity, digest
from svgpbench.experiments.outcome import CellOutcome, columns

OK = CellOutcome(status="ok")


def make_config(do: str, seed: int = 0, **changes: object) -> CellConfig:
    options = changes.pop("options", {})
    return CellConfig.model_validate(
        {
            "experiment": "fake",
            "data": {"name": "none"},
            "split": {},
            "kernel": {},
            "likelihood": {},
            "inducing": {},
            "training": {},
            "method": {"name": do, "options": options},
            "backend": {"name": "numpy"},
            "seed": seed,
        }
        | changes
    )


def identify(config: CellConfig) -> CellIdentity:
    return CellIdentity(digest(config.model_dump(mode="json")), "fingerprint", config, 1)


def run_cell(config: CellConfig, checkpoint: Path | None, every_s: float) -> CellOutcome:
    do = globals()[f"do_{config.method.name}"]
    return do(config, checkpoint) if config.method.name.endswith("_with_place") else do(config)


def do_finish(config: CellConfig) -> CellOutcome:
    rows: list[dict[str, float | int | None]] = [
        {"iteration": 1, "elbo": -0.1 - 0.2},
        {"iteration": 2, "elbo": -1 / 3, "nlpd": np.float64(0.5)},
    ]
    return CellOutcome(
        status="ok",
        trace=columns(rows),
        metrics={"nlpd": 0.1 + 0.2},
        data={"n_train": np.int64(9), "pid": os.getpid()},
        timing={"steady_s": 0.25},
    )


def do_note(config: CellConfig) -> CellOutcome:
    """Adds a line to a file, so that a cell which ran twice is seen."""
    with Path(str(config.method.options["notes"])).open("a") as file:
        file.write(f"{config.seed}\n")
    time.sleep(0.2)
    return CellOutcome(status="ok", metrics={"nlpd": config.seed / 3})


def do_span(config: CellConfig) -> CellOutcome:
    """Adds when it began and ended to a file."""
    began = time.monotonic()
    time.sleep(3.0)  # longer than the start of one worker is after that of another
    with Path(str(config.method.options["notes"])).open("a") as file:
        file.write(f"{began} {time.monotonic()}\n")
    return OK


def do_find_other_data(config: CellConfig) -> CellOutcome:
    return CellOutcome(status="ok", data={"fingerprint": "another"}, metrics={"nlpd": 0.5})


def do_give_nan(config: CellConfig) -> CellOutcome:
    rows: list[dict[str, float | int | None]] = [{"elbo": float("nan")}, {"elbo": float("-inf")}]
    return CellOutcome(
        status="diverged",
        message="no longer finite",
        trace=columns(rows),
        metrics={"nlpd": float("nan"), "rmse": np.inf},
    )


def do_tell_environment(config: CellConfig) -> CellOutcome:
    names = [name for name in os.environ if name.endswith("_THREADS") or name.startswith("JAX_")]
    names.append("CUDA_VISIBLE_DEVICES")
    return CellOutcome(status="ok", data={name: os.environ.get(name) for name in names})


def do_sleep(config: CellConfig) -> CellOutcome:
    time.sleep(float(config.method.options["seconds"]))
    return OK


def do_sleep_with_child(config: CellConfig) -> CellOutcome:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    Path(str(config.method.options["pids"])).write_text(f"{os.getpid()} {child.pid}")
    time.sleep(60)
    return OK


def do_get_killed_once(config: CellConfig) -> CellOutcome:
    mark = Path(str(config.method.options["mark"]))
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return OK


def do_kill_dask_worker(config: CellConfig) -> CellOutcome:
    """Kills the process that started this one, so many times."""
    marks = Path(str(config.method.options["marks"]))
    text = marks.read_text() if marks.exists() else ""
    if len(text) < int(config.method.options["times"]):
        marks.write_text(text + "x")
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(60)
    return OK


def do_segfault(config: CellConfig) -> CellOutcome:
    os.kill(os.getpid(), signal.SIGSEGV)
    return OK


def do_exit(config: CellConfig) -> CellOutcome:
    os._exit(3)


def do_fail(config: CellConfig) -> CellOutcome:
    raise RuntimeError("first line\nsecond line")


def do_refuse(config: CellConfig) -> CellOutcome:
    raise UserError("backend 'numpy' offers no dtype 'float32'")


def do_run_out_of_host_memory(config: CellConfig) -> CellOutcome:
    raise MemoryError("Unable to allocate 8.00 TiB")


def do_run_out_of_device_memory(config: CellConfig) -> CellOutcome:
    raise RuntimeError("CUDA out of memory. Tried to allocate 20.00 GiB")


def do_return_what_json_lacks(config: CellConfig) -> CellOutcome:
    return CellOutcome(status="ok", data={"what": object()})


def do_chatter(config: CellConfig) -> CellOutcome:
    print('{"status": "ok"}')
    os.write(1, b"a C++ library was here\n")
    subprocess.run(["echo", "and a child"], check=True)
    return CellOutcome(status="ok", message=f"read {len(sys.stdin.read())} characters")


def do_die_with_place(config: CellConfig, place: Path | None) -> CellOutcome:
    """Four processes die here, one after another; each leaves where it was."""
    assert place is not None
    deaths = int(place.read_text()) if place.exists() else 0
    if deaths < 4:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(str(deaths + 1))
        os.kill(os.getpid(), signal.SIGKILL)
    return CellOutcome(status="ok", resumptions=deaths)


def do_tell_with_place(config: CellConfig, place: Path | None) -> CellOutcome:
    return CellOutcome(status="ok", data={"place": str(place)})


def do_hold_memory(config: CellConfig) -> CellOutcome:
    held = []
    for _ in range(40):
        held.append(np.ones(1 << 23))  # 64 MiB that are really there
        time.sleep(0.05)
    return CellOutcome(status="ok", metrics={"held": float(len(held))})
