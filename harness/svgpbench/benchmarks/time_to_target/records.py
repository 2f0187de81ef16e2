"""Records of training runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

from pydantic import Field, PositiveInt

from svgpbench.benchmarks.records import BenchmarkRecord, read
from svgpbench.benchmarks.time_to_target.plan import Run


class Evaluation(NamedTuple):
    """Evaluation of a run, made while its clock is stopped."""

    seconds: float  # of training
    iterations: Annotated[int, Field(ge=0, lt=2**63)]
    elbo: float
    nlpd: float | None  # of test rows; None in a search


class TrainingRecord(BenchmarkRecord):
    """Result of a training run. `skipped`: the library cannot train on the problem."""

    kind: ClassVar[str] = "time-to-target"

    run: Run
    mode: str = ""  # the mode that ran
    modes: dict[str, float | str] | None = None  # seconds per call or error of each mode tried
    first_call_s: float | None = None  # compilation included
    looks: tuple[Evaluation, ...] = ()
    threads: PositiveInt | None = None  # of the run's process
    other_cores: float = 0.0  # CPU of other processes while it trained
    shared_cores: str = ""  # note on cores that another run had too; empty if there were none

    @property
    def last(self) -> Evaluation | None:
        """Last evaluation, or None if the run failed before the first."""
        return self.looks[-1] if self.looks else None

    @property
    def ms_an_iteration(self) -> float | None:
        """Milliseconds of training per iteration, or None if there was no iteration."""
        last = self.last
        return 1e3 * last.seconds / last.iterations if last and last.iterations else None

    def reached(self, target: float) -> Evaluation | None:
        """Return the first evaluation after the start with an NLPD at or below `target`, or None."""
        for look in self.looks:
            # not at the start: a target that the initial model meets says nothing about training
            if look.iterations and look.nlpd is not None and look.nlpd <= target:
                return look
        return None

    @classmethod
    def nested_run(cls, facts: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "contestant": {"library": facts["library"], "method": facts["method"]},
            "rates": {"e": facts["e_rate"], "m": facts["m_rate"]},
            "mode": facts.get("asked", ""),
            **{name: facts[name] for name in ("plan", "problem", "search", "seed", "seconds")},
        }


def read_training(folder: Path) -> dict[Run, TrainingRecord]:
    """Return the least disturbed record of every run in a folder."""
    records: dict[Run, TrainingRecord] = {}
    for record in read(folder, TrainingRecord):
        records[record.run] = least_disturbed(records.get(record.run), record)
    return records


def least_disturbed(earlier: TrainingRecord | None, later: TrainingRecord) -> TrainingRecord:
    """Return the record that lost less CPU to other processes; the later one if both lost the same.

    A run that failed before its first evaluation is the last choice: nothing was metered.
    """

    def disturbance(record: TrainingRecord) -> tuple[bool, float]:
        return not record.looks, record.other_cores

    return earlier if earlier and disturbance(earlier) < disturbance(later) else later
