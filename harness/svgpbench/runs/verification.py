"""Records run again from themselves, and how near the second run comes to the first.

Four verdicts: `bitwise`; `rounding`, no further than `ROUNDING` apart anywhere in the trace; `chaotic`,
further, but not further than inputs perturbed by 1e-15 carry the cell away from itself; `different`.
Besides, a record that counts no more is `superseded`, and one whose cell cannot end here is `not run`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from svgpbench.config import CellConfig
from svgpbench.errors import UserError
from svgpbench.experiments.cell import identify
from svgpbench.plugins import framework_missing
from svgpbench.results.difference import difference
from svgpbench.results.records import FINAL, Record
from svgpbench.results.store import records_in
from svgpbench.results.validity import outdated_reason
from svgpbench.runs.events import Event
from svgpbench.runs.pool import run_cells

ROUNDING = 1e-8
"""Relative to the largest value of a column: what other versions of a library may do to a stable cell."""
PERTURBATIONS = (1e-15, 2e-15, 3e-15)
MARGIN = 10.0
"""Chaos grows exponentially: a run that is ahead by a few steps is ahead by a factor."""

Kind: TypeAlias = Literal["bitwise", "rounding", "chaotic", "different", "superseded", "not run"]


@dataclass(frozen=True)
class Verdict:
    """What became of one record when its cell was run again."""

    record: Record
    kind: Kind
    difference: float = np.nan  # largest in the trace, relative to its column
    spread: float = np.nan  # the same between the cell and its replicas, where they were needed
    reason: str = ""
    newer: tuple[str, ...] = ()  # columns that a run gives now and the record has not


def verify(
    results: Path,
    experiment: str | None = None,
    sample: int | None = None,
    jobs: int | None = None,
    on_event: Callable[[Event], None] = lambda event: None,
    seed: int = 0,
) -> list[Verdict]:
    """A verdict on each record of an experiment, or of all.

    `sample` draws so many by `seed`, of those whose framework is installed where any is.

    Raises `UserError` where there are no records or one of them is damaged or of another schema.
    """
    found = records_in(results, experiment)
    if found.damaged:
        raise UserError(found.damaged[0])
    final = [record for record in found.records if record.status in FINAL]
    if not final:
        raise UserError(f"no records{f' of {experiment}' * bool(experiment)} in {results}")
    if sample is not None:
        here = [r for r in final if framework_missing(r.config.backend.name) is None]
        final = drawn(here or final, sample, seed)
    stale = [(record, outdated_reason(record)) for record in final]
    verdicts = [Verdict(record, "superseded", reason=why) for record, why in stale if why]
    current = [record for record, why in stale if not why]

    def again(cells: Sequence[CellConfig]) -> dict[str, Record]:
        if not cells:
            return {}
        with tempfile.TemporaryDirectory() as folder:
            summary = run_cells(cells, results=Path(folder), jobs=jobs, on_event=on_event)
        if summary.interrupted:
            raise KeyboardInterrupt
        return {record.cell_id: record for record in summary.records}

    fresh = again([record.config for record in current])
    far = [r for r in current if judged(r, fresh[r.cell_id]).kind == "different"]
    orders = {r.cell_id: [_replica(r.config, size) for size in PERTURBATIONS] for r in far}
    replicas = again([cell for cells in orders.values() for cell in cells])
    for record in current:
        # by id: a run spells out what a record's configuration, older than an option, leaves unsaid
        mine = [replicas[identify(cell).cell_id] for cell in orders.get(record.cell_id, ())]
        verdicts.append(judged(record, fresh[record.cell_id], mine))
    return verdicts


def drawn(records: Sequence[Record], count: int, seed: int = 0) -> list[Record]:
    """So many records, the same ones every time for a seed, in their order."""
    if count >= len(records):
        return list(records)
    chosen = np.random.default_rng(seed).choice(len(records), count, replace=False)
    return [records[i] for i in sorted(chosen)]


def judged(record: Record, fresh: Record, replicas: Sequence[Record] = ()) -> Verdict:
    """The verdict on a record whose cell ran again, and where needed its replicas too."""
    if fresh.status not in FINAL:
        return Verdict(record, "not run", reason=f"{fresh.status}: {fresh.message}")
    apart = difference(record, fresh)
    newer = tuple(fresh.trace.keys() - record.trace.keys()) if record.trace else ()
    if apart <= ROUNDING:
        return Verdict(record, "rounding" if apart else "bitwise", apart, newer=newer)
    ended = [replica for replica in replicas if replica.status in FINAL]
    known = fresh.model_copy(
        update={"trace": {k: column for k, column in fresh.trace.items() if k not in newer}}
    )
    spread = max((difference(known, replica) for replica in ended), default=np.nan)
    kind: Kind = "chaotic" if apart <= MARGIN * spread else "different"
    return Verdict(record, kind, apart, spread, newer=newer)


def _replica(config: CellConfig, size: float) -> CellConfig:
    return config.model_copy(update={"perturbation": config.perturbation + size})
