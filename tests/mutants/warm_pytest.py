"""One run of pytest in a fork of a process that has imported what tests need from outside."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Mapping, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path

# nothing of the package itself: that comes from the copy, with its change
OUTSIDE = (
    *("pytest", "_pytest.pytester", "hypothesis", "pytest_benchmark.plugin", "xdist.plugin"),
    *("numpy", "scipy.linalg", "scipy.optimize", "scipy.special", "scipy.stats", "autograd"),
    "pandas",
    *("matplotlib.pyplot", "pydantic", "typer", "rich.console", "psutil", "requests"),
)
# as many runs as cores go on at once
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def start(
    folder: Path, arguments: Sequence[str], environment: Mapping[str, str], output: Path
) -> tuple[BaseProcess, int]:
    """Run pytest in a folder: the process, whose exit code is pytest's, and the session that it leads."""
    os.environ.update(ONE_THREAD)  # of the process that is forked, where NumPy reads it
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(OUTSIDE))
    process = context.Process(
        target=_main, args=(folder, tuple(arguments), dict(environment), output)
    )
    process.start()
    assert process.pid is not None, "it was started"
    return process, process.pid


def _main(
    folder: Path, arguments: tuple[str, ...], environment: dict[str, str], output: Path
) -> None:
    os.setsid()
    written = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(written, stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    # as `python -m pytest` begins; an entry of PYTHONPATH that was there stays behind these
    sys.path[:0] = [str(folder), *environment["PYTHONPATH"].split(os.pathsep)]
    sys.dont_write_bytecode = False
    import pytest

    # also of what the program imports that started this one, as a fork imports it again
    if early := [x for x in sys.modules if x.partition(".")[0].startswith("svgpbench")]:
        print(f"imported before the copy's: {', '.join(sorted(early))}", file=sys.stderr)
        os._exit(3)
    code = int(pytest.main(list(arguments)))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # what a mutant left running does not hold it up
