"""The whole check: work is divided among processes, and their arrays become a report."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from svgpbench.backends import check_backend, framework_of
from svgpbench.checks.cases import MatrixCase, chosen_cases, small_problem
from svgpbench.checks.completeness import FAILED, Skip, arrays_of, omissions, skips
from svgpbench.checks.dense import dense_arrays, without_dense
from svgpbench.checks.evaluate import REFERENCE, Arrays
from svgpbench.checks.identities import IDENTITIES, IdentityResult, statement
from svgpbench.checks.matrix import compare
from svgpbench.checks.report import Report
from svgpbench.checks.rounding import growth
from svgpbench.config import BackendConfig
from svgpbench.errors import UserError
from svgpbench.experiments.rounding_model import REPLICAS
from svgpbench.likelihoods import likelihoods
from svgpbench.plugins import BACKENDS, KERNELS, LIKELIHOODS, METHODS, frameworks, unused_plugins
from svgpbench.runs.cores import usable_cores
from svgpbench.runs.worker_setup import worker_environment

CHUNK = 48
"""Number of cases per process. An eager run compiles every operation at its first shape, and later cases
reuse most of these programs: the tenth costs a fifth of the first. The programs take some GB of memory."""

QUICK_LIKELIHOODS = ("bernoulli-logit",)
"""Likelihoods of the identities that hold for any likelihood, unless the check is full."""


@dataclass(frozen=True)
class Share:
    """Work of one process."""

    backend: str
    mode: str
    device: str
    cases: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    identities: tuple[str, ...] = ()  # likelihoods to run them with
    replicas: list[int] = field(default_factory=list)

    @property
    def title(self) -> str:
        """Title of the backend."""
        return BackendConfig(name=self.backend, mode=self.mode).title


def plan(
    backends: Iterable[BackendConfig],
    all_cases: list[MatrixCase],
    *,
    full: bool,
    device: str = "cpu",
    cases_only: bool = False,
) -> list[Share]:
    """Return the shares of a check. One backend also runs the perturbed replicas of the trajectory.

    With `cases_only`, there are no identities and no trajectory of rounding.
    """
    configs = list(backends)
    replicated = _replicated_backend(configs)
    numbered = [(i, asdict(case)) for i, case in enumerate(all_cases)]
    needs = {b.name: framework_of(b.name) for b in configs}
    slow = {name for name, framework in needs.items() if framework and framework.compiles_slowly}
    shares: list[Share] = []
    # long shares start first, so that cores finish together
    for b in sorted(configs, key=lambda b: (b.name not in slow, needs[b.name] is None)):
        parts = [numbered]
        if b.name in slow or full:
            # programs are compiled per dtype, and starting a process is faster than compiling
            parts = [[x for x in numbered if x[1]["dtype"] == t] for t in ("float64", "float32")]
        first, *others = [
            Share(b.name, b.mode, device, part[i : i + CHUNK])
            for part in parts
            for i in range(0, len(part), CHUNK)
        ]
        identities = tuple(likelihoods()) if full else QUICK_LIKELIHOODS
        replicas = list(range(REPLICAS + 1)) if b.title == replicated else [0]
        if cases_only:
            shares += [first, *others]
        elif b.name in slow and full:
            # the memory of a process holds the programs of one chunk, or of all identities
            shares += [first, Share(b.name, b.mode, device, [], identities, replicas), *others]
        else:  # identities reuse programs of float64 cases; trajectories go to the last, shorter share
            *earlier, last = [replace(first, identities=identities), *others]
            shares += [*earlier, replace(last, replicas=replicas)]
    return shares


def _replicated_backend(configs: list[BackendConfig]) -> str:
    """Return the title of the backend whose perturbed replicas show the effect of rounding."""
    others = [b.title for b in configs if b.name != REFERENCE]
    return others[-1] if others else configs[0].title


def run_checks(
    backends: list[str],
    *,
    full: bool = False,
    device: str = "cpu",
    methods: Sequence[str] = (),
    only_likelihoods: Sequence[str] = (),
    on_progress: Callable[[str], None] = lambda _: None,
) -> Report:
    """Run the equivalence matrix, the identities and the rounding trajectory.

    Args:
        backends: names such as `jax` or `torch:compile`; the numpy reference always takes part.
        full: every method with every likelihood in both dtypes, instead of a subset.
        device: device of every backend except the reference.
        methods: names of the methods to check; with names here or in the next, cases only.
        only_likelihoods: names of the likelihoods to check; all by default.
        on_progress: called with one line when a process ends.

    Raises:
        UserError: if a backend is unknown, lacks its framework, the mode or the device, or computes no
            numbers.
    """
    configs = [BackendConfig.parse(name) for name in backends if name != REFERENCE]
    for b in configs:
        check_backend(b.title)
    configs = [BackendConfig(name=REFERENCE), *configs]
    all_cases = chosen_cases(full=full, methods=methods, likelihoods=only_likelihoods)
    cases_only = bool(methods or only_likelihoods)
    shares = plan(configs, all_cases, full=full, device=device, cases_only=cases_only)
    arrays: dict[str, Arrays] = {b.title: {} for b in configs}
    failures: list[str] = []
    ended_badly: set[str] = set()
    shared: dict[str, str] = {}  # variables with which processes share compiled programs
    # threads: each only waits for the process that it starts
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(len(usable_cores())) as pool:
        folder = Path(name)
        if full:
            for framework_name, framework in frameworks().items():
                shared |= framework.cache(str(folder / framework_name))
        if device != "cpu":  # a device that is missing is an error before anything is computed
            for b in configs:
                try:
                    run_share(Share(b.name, b.mode, device), folder / "nothing.npz", {})
                except RuntimeError as error:
                    # the last line of a traceback is `svgpbench.errors.UserError: message`
                    raise UserError(str(error).rpartition("UserError: ")[2]) from None
        futures = {
            pool.submit(run_share, share, folder / f"{i}.npz", shared): share
            for i, share in enumerate(shares)
        }
        for done, future in enumerate(as_completed(futures), 1):
            title = futures[future].title
            try:
                arrays[title] |= future.result()
            except RuntimeError as error:
                failures.append(f"{title}: {error}")
                ended_badly.add(title)
            on_progress(f"{done}/{len(shares)} {title}")
        replicated = _replicated_backend(configs)
        if "trajectory|0|skipped" in arrays[replicated] and len(configs) > 2:
            # it offers no float64, so the reference shows the effect of rounding on the others
            replicated = REFERENCE
            share = Share(REFERENCE, "", "cpu", replicas=list(range(1, REPLICAS + 1)))
            try:
                arrays[REFERENCE] |= run_share(share, folder / "replicas.npz", shared)
            except RuntimeError as error:
                failures.append(f"{REFERENCE}: {error}")
    not_offered: list[Skip] = []
    for b in configs:
        not_offered += skips(b, all_cases, arrays[b.title])
        if b.title not in ended_badly:  # otherwise the failure explains what is missing
            failures += omissions(b, all_cases, arrays[b.title], cases_only=cases_only)
    return _report(all_cases, arrays, replicated, failures, not_offered, full=full)


def run_share(share: Share, out: Path, variables: Mapping[str, str] | None = None) -> Arrays:
    """Run one process with these environment variables added, and return its arrays.

    Raises `RuntimeError` with the last line of its error output if it fails.
    """
    completed = subprocess.run(
        # -P: a numpy.py in the user's folder must not shadow a module
        [sys.executable, "-P", "-m", "svgpbench.checks.worker", str(out)],
        input=json.dumps(asdict(share)),
        text=True,
        capture_output=True,
        env=os.environ | worker_environment(share.device, 1) | dict(variables or {}),
        check=False,
    )
    if completed.returncode:
        lines = [line for line in completed.stderr.splitlines() if line.strip()] or ["no output"]
        raise RuntimeError(f"exit {completed.returncode}: {lines[-1]}")
    # reasons and messages are arrays of fixed-width text, which need no pickle
    with np.load(out, allow_pickle=False) as stored:
        # reads every array now: the file is closed here, and its folder removed later
        return dict(stored)


def _report(
    all_cases: list[MatrixCase],
    arrays: dict[str, Arrays],
    replicated: str,
    failures: list[str],
    not_offered: list[Skip],
    *,
    full: bool,
) -> Report:
    """Compare the arrays of all backends, and return the report."""
    problem, entries = small_problem(), []
    for index, case in enumerate(all_cases):
        numbers = {backend: arrays_of(index, x) for backend, x in arrays.items()}
        numbers = {backend: x for backend, x in numbers.items() if x and FAILED not in x}
        if REFERENCE in numbers:
            # each float32 case has a float64 twin, and the reference computes both in float64
            double = case.dtype == "float64"
            dense = dense_arrays(case, problem, numbers[REFERENCE]) if double else None
            entries += compare(case, numbers, dense)
    identities = [
        IdentityResult(name, statement(name), backend, float(x[f"identity|{name}"]), tolerance)
        for backend, x in arrays.items()
        for name, (_, tolerance) in IDENTITIES.items()
        if f"identity|{name}" in x
    ]
    runs: dict[str, list[float]] = {
        b: list(map(float, a["trajectory|0"])) for b, a in arrays.items() if "trajectory|0" in a
    }
    names = (f"trajectory|{replica}" for replica in range(1, REPLICAS + 1))
    replicas: list[Any] = [arrays[replicated][name] for name in names if name in arrays[replicated]]
    rounding = growth(runs, replicas, replicated) if replicated in runs and len(runs) > 1 else []
    # NumPy is one of the backends, so that one more is enough
    without = (
        "its backends are compared with one another alone"
        if len(arrays) > 1
        else "it is compared with nothing; give another --backend"
    )
    notes = [
        f"{what} has no dense column: {without}"
        for what in dict.fromkeys(filter(None, map(without_dense, all_cases)))
    ]
    notes += [
        f"left out: {line}"
        for group in (METHODS, LIKELIHOODS, KERNELS, BACKENDS)
        for _, line in unused_plugins(group)
    ]
    return Report(list(arrays), full, entries, identities, rounding, failures, notes, not_offered)
