"""Fits from threads, forks and scripts: each ends well, and none leaves a process behind."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.model_selection import cross_val_score
from small_fits import QUICK, regression

from svgpbench.api import UserError, fit
from svgpbench.experiments.cell import _loaded_data
from svgpbench.posterior.cell import run_cell
from svgpbench.runs.process import WorkerProcess
from svgpbench.sklearn import SVGPRegressor

fits = sys.modules["svgpbench.posterior.fit"]  # `svgpbench.posterior.fit` itself is the function
X, Y = regression()
pytestmark = pytest.mark.filterwarnings("ignore::svgpbench.errors.UnsettledWarning")


def means(inducing: int = 8) -> list[float]:
    return fit(X, Y, inducing=inducing, training=QUICK).predict(X)["mean"].to_list()


def test_the_end_of_a_thread_that_fitted_leaves_the_next_fit_alone() -> None:
    fitted, leave = threading.Event(), threading.Event()

    def first() -> None:
        means()
        fitted.set()
        leave.wait()

    thread = threading.Thread(target=first)
    thread.start()
    assert fitted.wait(60)
    ((worker, _),) = fits._idle
    threading.Timer(0.3, leave.set).start()
    lasting = {"em_iterations": 150, "m_steps": 3, "until": "limit"}
    long = fit(X, Y, inducing=8, training=lasting)
    assert not thread.is_alive()  # it ended during the fit
    ((kept, _),) = fits._idle
    assert kept is worker and kept.alive  # the fit was of the thread's worker
    assert long.trace["iteration"].iloc[-1] == 150


def test_fits_at_the_same_time_give_what_each_gives_alone() -> None:
    counts = [4, 5, 6, 7, 8, 9]
    alone = [means(count) for count in counts]
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(means, counts)) == alone


def test_no_process_keeps_the_table_of_a_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every fit has a file of its own, so that a search over many would hold a table for each."""
    ask = WorkerProcess.run

    def run(worker: WorkerProcess, request: Any, *more: Any) -> Any:
        assert _loaded_data.cache_info().currsize == 0
        run_cell(request.config)  # as the worker does
        return ask(worker, request, *more)

    monkeypatch.setattr(WorkerProcess, "run", run)
    means()
    assert _loaded_data.cache_info().currsize == 0


def test_joblibs_threads_score_as_one_does() -> None:
    model = SVGPRegressor(inducing=6, training=QUICK)
    alone = cross_val_score(model, X, Y, cv=3)
    for _ in range(2):
        with joblib.parallel_backend("threading", n_jobs=2):
            assert cross_val_score(model, X, Y, cv=3) == pytest.approx(alone, rel=1e-12)
        assert cross_val_score(model, X, Y, cv=3) == pytest.approx(alone, rel=1e-12)


def test_a_fork_fits_by_itself_and_leaves_its_parents_worker_alone() -> None:
    expected = means()
    ((worker, _),) = fits._idle
    fork = os.fork()
    if not fork:
        status = 1
        try:
            status = int(fits._idle != [] or means() != expected)
            fits._end_idle()
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1]) == 0
    assert worker.alive and means() == expected


def test_a_script_that_ends_leaves_no_worker() -> None:
    script = (
        "import numpy as np, psutil\n"
        "from svgpbench.api import fit\n"
        "if __name__ == '__main__':\n"
        "    x = np.linspace(0, 1, 20)[:, None]\n"
        "    fit(x, x[:, 0], inducing=3, training={'em_iterations': 2})\n"
        "    print(*(child.pid for child in psutil.Process().children()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, check=True
    )
    (worker,) = map(int, done.stdout.split())
    end = time.monotonic() + 5
    while os.path.exists(f"/proc/{worker}") and time.monotonic() < end:
        time.sleep(0.05)
    assert not os.path.exists(f"/proc/{worker}") and done.stderr == ""


def test_a_worker_that_another_program_kills_is_not_said_to_lack_memory() -> None:
    means()
    ((worker, _),) = fits._idle
    killer = threading.Timer(0.3, worker.kill)
    killer.start()
    with pytest.raises(UserError, match=r"killed by SIGKILL \(by another program"):
        fit(X, Y, inducing=8, training={"em_iterations": 1000, "m_steps": 3})
    assert np.isfinite(means()).all()  # the next fit has a new worker


def test_a_worker_that_was_killed_while_it_was_idle_is_replaced() -> None:
    expected = means()
    ((worker, _),) = fits._idle
    worker.kill()
    assert np.array_equal(means(), expected)
    ((other, _),) = fits._idle
    assert other is not worker
