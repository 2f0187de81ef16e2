"""One step of each method on every backend, beside NumPy: the check that takes seconds."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from svgpbench.backends import check_backend, framework_of
from svgpbench.checks.cases import (
    COMPOUND_KERNELS,
    KERNELS_IN_TURN,
    LIKELIHOODS_IN_TURN,
    MatrixCase,
    chosen_cases,
    small_problem,
)
from svgpbench.checks.completeness import FAILED, arrays_of
from svgpbench.checks.dense import dense_arrays
from svgpbench.checks.evaluate import REFERENCE, Arrays
from svgpbench.checks.matrix import FLOAT64, MatrixEntry, compare
from svgpbench.checks.run import Share, run_share
from svgpbench.config import BackendConfig
from svgpbench.errors import UserError
from svgpbench.json_values import json_value
from svgpbench.output.table import Column, Styled, Table, number
from svgpbench.runs.cores import usable_cores

GROUPS = {
    "values": "bound, predictions",
    "gradients": "gradients",
    "e_step": "E-step",
    "dense": "dense algebra",
}
"""Groups of arrays that are compared → heading."""


@dataclass(frozen=True)
class BackendAgreement:
    """Largest differences of a backend from NumPy, or of NumPy from dense algebra."""

    name: str
    seconds: float
    worst: dict[str, float] = field(default_factory=dict)  # by group
    out_of_tolerance: list[str] = field(default_factory=list)  # and failures, one line each


@dataclass(frozen=True)
class QuickReport:
    """Result of a quick check."""

    methods: int
    backends: list[BackendAgreement]

    @property
    def ok(self) -> bool:
        """Return True if every backend was compared and every difference is within tolerance.

        Beside other backends NumPy needs no dense algebra, which likelihoods of third parties do not have.
        """
        compared = [x for x in self.backends if x.name != REFERENCE] or self.backends
        return all(x.worst for x in compared) and not any(x.out_of_tolerance for x in self.backends)

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON-able data; a number that is not finite becomes null."""
        report: dict[str, Any] = json_value(
            {"ok": self.ok, "methods": self.methods, "agreement": list(map(asdict, self.backends))}
        )
        return report

    def tables(self) -> tuple[Table, ...]:
        """Return one table, with a row for each backend."""
        title = f"One step of {self.methods} methods, float64: max|Δ| / max|value| beside NumPy"
        columns = (Column("backend"), *map(number, GROUPS.values()), number("seconds"))
        rows = [
            [x.name, *(_cell(x.worst.get(group)) for group in GROUPS), f"{x.seconds:.1f}"]
            for x in self.backends
        ]
        return (Table(columns, rows, title),)

    def lines(self) -> list[Styled]:
        """Return one line for each difference out of tolerance and each failure, or that there are none."""
        wrong = [f"{x.name}: {line}" for x in self.backends for line in x.out_of_tolerance]
        if not self.ok:
            return [Styled(line, "bold red") for line in wrong or ["nothing was compared"]]
        return [Styled(f"the same numbers, to {FLOAT64['values']:.0e}", "green")]


def _cell(worst: float | None) -> str | None:
    return None if worst is None else f"{worst:.0e}"


def quick_check(
    backends: Sequence[str],
    *,
    device: str = "cpu",
    methods: Sequence[str] = (),
    likelihoods: Sequence[str] = (),
    on_progress: Callable[[str], None] = lambda _: None,
) -> QuickReport:
    """Compare one step of the first variant of each method on each backend with NumPy, in float64.

    Likelihoods and kernels that take no turns are compared with each method that takes them. `methods` and
    `likelihoods` name those to compare; all by default. NumPy itself is compared with dense algebra.

    Raises `UserError` if a backend is unknown or lacks its framework. A process that fails is a failure of
    its backend.
    """
    configs = [BackendConfig.parse(name) for name in backends if name != REFERENCE]
    for config in configs:
        check_backend(config.title)
    named = bool(methods or likelihoods)
    chosen = [
        replace(case, trajectories="none")
        for case in chosen_cases(full=False, methods=methods, likelihoods=likelihoods)
        if case.dtype == "float64" and (named or case.trajectories == "compiled" or _is_added(case))
    ]
    numbered = [(i, asdict(case)) for i, case in enumerate(chosen)]

    def compute(share: Share) -> tuple[Arrays | str, float]:
        start = time.perf_counter()
        try:
            with tempfile.TemporaryDirectory() as folder:
                arrays: Arrays | str = run_share(share, Path(folder) / "arrays.npz")
        except RuntimeError as error:
            _, is_user_s, message = str(error).partition("UserError: ")
            if is_user_s:  # such as a device that is missing
                raise UserError(message) from None
            arrays = str(error)
        on_progress(share.title)
        return arrays, time.perf_counter() - start

    configs = [BackendConfig(name=REFERENCE), *configs]
    shares = []
    for config in configs:  # a framework that compiles slowly has two processes
        framework = framework_of(config.name)
        parts = 2 if framework and framework.compiles_slowly else 1
        shares += [
            Share(config.name, config.mode, device, numbered[i::parts]) for i in range(parts)
        ]
    shares.sort(key=lambda share: len(share.cases))  # halves first, so that cores finish together
    arrays: dict[str, Arrays] = {config.title: {} for config in configs}
    seconds, errors = dict.fromkeys(arrays, 0.0), dict.fromkeys(arrays, "")
    with ThreadPoolExecutor(len(usable_cores())) as pool:
        for share, (found, spent) in zip(shares, pool.map(compute, shares), strict=True):
            seconds[share.title] += spent
            if isinstance(found, str):
                errors[share.title] = found
            else:
                arrays[share.title] |= found
    return QuickReport(
        len({case.method for case in chosen}),
        [
            BackendAgreement(name, seconds[name], out_of_tolerance=[errors[name]])
            if errors[name]
            else _agreement(name, chosen, arrays[REFERENCE], arrays[name], seconds[name])
            for name in arrays
        ],
    )


def _is_added(case: MatrixCase) -> bool:
    """Return True if a likelihood or kernel that takes no turns is in a case."""
    in_turn = {*KERNELS_IN_TURN, *COMPOUND_KERNELS}
    return case.likelihood not in LIKELIHOODS_IN_TURN or case.kernel not in in_turn


def _agreement(
    title: str, chosen: Sequence[MatrixCase], expected: Arrays, arrays: Arrays, seconds: float
) -> BackendAgreement:
    """Compare the arrays of one backend with those of NumPy, and NumPy's with dense algebra."""
    entries: list[MatrixEntry] = []
    wrong = []
    for i, case in enumerate(chosen):
        own = arrays_of(i, arrays)
        if FAILED in own:
            wrong.append(f"{case.name}: {own[FAILED]}")
        elif title == REFERENCE:
            entries += compare(case, {REFERENCE: own}, dense_arrays(case, small_problem(), own))
        else:
            reference = arrays_of(i, expected)
            if reference and FAILED not in reference:  # else NumPy's own row says why
                entries += compare(case, {REFERENCE: reference, title: own}, None)
    wrong += [
        f"{e.case}: {e.group} {e.worst:.1e} > {e.tolerance:.0e} in {e.array}"
        for e in entries
        if not e.ok
    ]
    worst = {
        group: max(e.worst for e in entries if e.group == group)
        for group in GROUPS
        if any(e.group == group for e in entries)
    }
    return BackendAgreement(title, seconds, worst, wrong)
