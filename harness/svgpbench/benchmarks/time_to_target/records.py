"""Records of training runs: one JSON line per run, one append-only file per library."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import Field, TypeAdapter

from svgpbench.benchmarks.stability.records import append_line, read_lines
from svgpbench.benchmarks.time_to_target.plan import Contestant, RatePair, Run

DONE = "done"
REFUSED = "refused"
DIED = "died"
ENDS = (DONE, REFUSED, DIED)


class Look(NamedTuple):
    """Evaluation of a run, made while its clock is stopped."""

    seconds: float  # of training
    iterations: Annotated[int, Field(ge=0, lt=2**63)]
    elbo: float
    nlpd: float | None  # of test rows; None in a search


class RunRecord(NamedTuple):
    """Result of a run."""

    run: Run
    end: str  # one of `ENDS`
    message: str = ""  # reason of a refusal or failure, in one line
    mode: str = ""  # the mode that ran
    modes: dict[str, float | str] | None = None  # seconds per call or error of each mode tried
    first_call_s: float | None = None  # compilation included
    looks: tuple[Look, ...] = ()
    other_cores: float = 0.0  # CPU of other processes while it trained
    versions: dict[str, str] | None = None

    @property
    def last(self) -> Look | None:
        """Last evaluation, or None if the run failed before the first."""
        return self.looks[-1] if self.looks else None

    @property
    def ms_an_iteration(self) -> float | None:
        """Milliseconds of training per iteration, or None if there was no iteration."""
        last = self.last
        return 1e3 * last.seconds / last.iterations if last and last.iterations else None

    def reached(self, target: float) -> Look | None:
        """Return the first evaluation with an NLPD at or below `target`, or None."""
        return next((x for x in self.looks if x.nlpd is not None and x.nlpd <= target), None)


def append(folder: Path, record: RunRecord) -> None:
    """Append a record to its library's file. Raises `UserError` if it cannot be written."""
    facts = record._asdict() | {"looks": [list(evaluation) for evaluation in record.looks]}
    del facts["run"]
    filled = {name: value for name, value in facts.items() if value not in (None, "", [])}
    append_line(folder / f"{record.run.contestant.library}.jsonl", record.run.key() | filled)


def read(folder: Path) -> dict[Run, RunRecord]:
    """Read the least disturbed record of every run in a folder. Incomplete or invalid lines are skipped."""
    records: dict[Run, RunRecord] = {}
    for facts in read_lines(folder):
        for record in _parsed(facts):
            records[record.run] = least_disturbed(records.get(record.run), record)
    return records


def least_disturbed(earlier: RunRecord | None, later: RunRecord) -> RunRecord:
    """Return the record that lost less CPU to other processes; the later one if both lost the same."""
    return earlier if earlier and earlier.other_cores < later.other_cores else later


_FORM = TypeAdapter(RunRecord)


def _parsed(facts: dict[str, Any]) -> Iterator[RunRecord]:
    """Yield the record of a line, or nothing if the line is no valid record."""
    try:
        contestant = Contestant(facts.pop("library"), facts.pop("method"))
        rates = RatePair(facts.pop("e_rate"), facts.pop("m_rate"))
        axes = {name: facts.pop(name) for name in ("plan", "problem", "search", "seed", "seconds")}
        run = Run(contestant=contestant, rates=rates, mode=facts.pop("asked", ""), **axes)
        evaluations = tuple(Look(*values) for values in facts.pop("looks", ()))
        yield _FORM.validate_python(RunRecord(run, looks=evaluations, **facts), strict=True)
    except (ValueError, KeyError, TypeError, AttributeError):
        return
