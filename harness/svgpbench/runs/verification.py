"""Verify records: run their cells again and compare.

The verdicts: `bitwise`; `rounding`, at most `ROUNDING` apart anywhere in the trace; `chaotic`, further apart,
but no further than inputs perturbed by 1e-15 move the cell; `different`. A record that is outdated is
`superseded`, and one whose cell does not finish here is `not run`.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from svgpbench.backends import framework_missing
from svgpbench.config import BackendConfig, CellConfig
from svgpbench.errors import UserError
from svgpbench.experiments.cell import identify
from svgpbench.experiments.rounding_model import MARGIN, PERTURBATION, REPLICAS
from svgpbench.results.difference import difference
from svgpbench.results.records import FINAL, Record
from svgpbench.results.store import records_in
from svgpbench.results.validity import outdated_reason
from svgpbench.runs.cores import job_cores
from svgpbench.runs.events import Event
from svgpbench.runs.pool import run_cells
from svgpbench.runs.worker_setup import refuse_absent_devices

ROUNDING = 1e-8
"""Largest difference, relative to a column's largest value, that other library versions may cause."""
PERTURBATIONS = tuple(factor * PERTURBATION for factor in range(1, REPLICAS + 1))
"""Sizes of the noise on the inputs of replicas, which share the cell's seed."""

Kind: TypeAlias = Literal["bitwise", "rounding", "chaotic", "different", "superseded", "not run"]


@dataclass(frozen=True)
class Verdict:
    """The comparison of a record with a second run of its cell."""

    record: Record
    kind: Kind
    difference: float = np.nan  # largest in the trace, relative to its column
    spread: float = np.nan  # between the cell and its perturbed replicas, where they were run
    reason: str = ""
    newer: tuple[str, ...] = ()  # columns that the record lacks


def verify(
    results: Path,
    experiment: str | None = None,
    sample: int | None = None,
    jobs: int | None = None,
    on_event: Callable[[Event], None] = lambda event: None,
    seed: int = 0,
) -> list[Verdict]:
    """Verify the records of an experiment, or of all.

    `sample` draws so many records by `seed`, of those whose framework is installed if there are any.

    Raises `UserError` if there are no records, or if one is damaged or of another schema.
    """
    loaded = records_in(results, experiment)
    if loaded.damaged:
        raise UserError(loaded.damaged[0])
    final = [record for record in loaded.records if record.status in FINAL]
    if not final:
        raise UserError(f"no records{f' of {experiment}' * bool(experiment)} in {results}")
    if sample is not None:
        runnable = [r for r in final if framework_missing(r.config.backend.name) is None]
        final = draw_sample(runnable or final, sample, seed)
    reasons = [(record, outdated_reason(record)) for record in final]
    verdicts = [Verdict(record, "superseded", reason=why) for record, why in reasons if why]
    why_not = functools.cache(_unrunnable_reason)  # a device is asked for in a process of its own
    candidates = [
        (record, why_not(record.config.backend, record.config.threads))
        for record, why in reasons
        if not why
    ]
    verdicts += [Verdict(record, "not run", reason=why) for record, why in candidates if why]
    current = [record for record, why in candidates if not why]

    def run_again(cells: Sequence[CellConfig]) -> dict[str, Record]:
        if not cells:
            return {}
        with tempfile.TemporaryDirectory() as folder:
            summary = run_cells(cells, results=Path(folder), jobs=jobs, on_event=on_event)
        if summary.interrupted:
            raise KeyboardInterrupt
        return {record.cell_id: record for record in summary.records}

    fresh = run_again([record.config for record in current])
    different = [r for r in current if verdict_on(r, fresh[r.cell_id]).kind == "different"]
    replica_configs = {
        r.cell_id: [
            r.config.model_copy(update={"perturbation": r.config.perturbation + size})
            for size in PERTURBATIONS
        ]
        for r in different
    }
    replicas = run_again([cell for cells in replica_configs.values() for cell in cells])
    for record in current:
        # by id: the configuration of an older record may lack fields that a run writes
        configs = replica_configs.get(record.cell_id, ())
        perturbed = [replicas[identify(config).cell_id] for config in configs]
        verdicts.append(verdict_on(record, fresh[record.cell_id], perturbed))
    return verdicts


def _unrunnable_reason(backend: BackendConfig, threads: int) -> str:
    """Return why this machine has not the cores or the device of a cell; empty if it has both."""
    try:
        job_cores(1, threads)
        refuse_absent_devices([backend])
    except UserError as error:
        return str(error)
    return ""


def draw_sample(records: Sequence[Record], count: int, seed: int = 0) -> list[Record]:
    """Return `count` records drawn by a seed, in their order."""
    if count >= len(records):
        return list(records)
    indices = np.random.default_rng(seed).choice(len(records), count, replace=False)
    return [records[i] for i in sorted(indices)]


def verdict_on(record: Record, fresh: Record, replicas: Sequence[Record] = ()) -> Verdict:
    """Return the verdict on a record, from a second run of its cell and runs of its replicas."""
    if fresh.status not in FINAL:
        return Verdict(record, "not run", reason=f"{fresh.status}: {fresh.message}")
    gap = difference(record, fresh)
    newer = tuple(fresh.trace.keys() - record.trace.keys()) if record.trace else ()
    if gap <= ROUNDING:
        return Verdict(record, "rounding" if gap else "bitwise", gap, newer=newer)
    finished = [replica for replica in replicas if replica.status in FINAL]
    # over the columns of the gap: another one may be the only one that is chaotic
    comparable = fresh.model_copy(
        update={"trace": {k: column for k, column in fresh.trace.items() if k not in newer}}
    )
    spread = max((difference(comparable, replica) for replica in finished), default=np.nan)
    # without a finished replica the spread is NaN, which leaves `different`
    kind: Kind = "chaotic" if gap <= MARGIN * spread else "different"
    return Verdict(record, kind, gap, spread, newer=newer)
