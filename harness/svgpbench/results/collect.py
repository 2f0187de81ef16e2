"""Collection of the records for one table or figure. Records that do not fit together are refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from svgpbench.backends import forget_changed
from svgpbench.errors import UserError, refuse_unknown
from svgpbench.experiments import Experiment, load_experiment, shipped_experiments
from svgpbench.experiments.identity import CellIdentity
from svgpbench.experiments.plan import Plan, experiment_of
from svgpbench.results.mixtures import (
    differences_between_rows,
    fit_together,
    refuse_mixture,
    several_versions,
)
from svgpbench.results.records import Record
from svgpbench.results.store import LoadedRecords, records_in, records_of
from svgpbench.results.validity import other_plugins, outdated_reason


@dataclass(frozen=True)
class Collected:
    """Records of one experiment in its order, with notes for the reader."""

    experiment: str
    records: tuple[Record, ...]
    missing: int  # declared cells without a record
    notes: tuple[str, ...]
    rows: Mapping[str, str] = field(default_factory=dict)  # printed rows by label of a method


def collect(
    results: Path,
    cells: Plan | Experiment,
    backends: Sequence[str] | None = None,
    loaded: LoadedRecords | None = None,
) -> Collected:
    """Return the records of a plan's cells, or all current records of an experiment.

    Args:
        results: folder of records.
        cells: the cells that were to run, or the whole experiment. Its order is the order of the result.
        backends: names of backends to keep, with or without mode; None keeps all.
        loaded: the records of the whole experiment, if the caller has read them.

    Raises:
        UserError: there are no records, or they do not fit together, or one has another schema.
    """
    if results.is_file():
        raise UserError(f"{results} is a file; name a folder of records with --results")
    forget_changed()
    experiment = experiment_of(cells)
    if isinstance(cells, Plan):
        current = _current(records_of(results, cells.identities), other_plugins)
        # the experiment may have renamed a method since; ids do not depend on labels
        records, notes = _relabelled(current.records, cells.identities), list(current.notes)
        if missing := len(cells.configs) - len(records):
            notes.append(f"{missing} of {len(cells.configs)} cells have not run")
    else:
        loaded = loaded or records_in(results, experiment.name)
        current = _current(loaded, outdated_reason)
        records, notes, missing = list(current.records), list(current.notes), 0
    if backends and records:
        available = {name for record in records for name in _names(record)}
        refuse_unknown("backend in these records", backends, available)
        records = [record for record in records if _names(record) & set(backends)]
    if not records:
        raise UserError(_nothing_here(results, cells, experiment, current.outdated))
    if cells is experiment and experiment.presets:
        records, note = of_one_preset(records, experiment)
        notes.append(note)
    settings = refuse_mixture(records)
    notes += [*differences_between_rows(records, settings), *several_versions(records)]
    ordered = sorted(records, key=_order(experiment))
    rows = {entry.title: entry.row for entry in experiment.methods if entry.row}
    return Collected(experiment.name, tuple(ordered), missing, tuple(notes), rows)


class _CurrentRecords(NamedTuple):
    """Records that are read and current, with a note on each damaged file and each reason against others."""

    records: list[Record]
    notes: list[str]
    outdated: list[str]  # those of the notes that are such reasons


def _current(loaded: LoadedRecords, why_not: Callable[[Record], str]) -> _CurrentRecords:
    """Return the records that have no reason against them."""
    damaged = [f"left out, and `svgpbench run` makes it anew: {line}" for line in loaded.damaged]
    reasons = [why_not(record) for record in loaded.records]
    counts = Counter(filter(None, reasons)).items()
    outdated = [f"{count} records left out: {why}" for why, count in counts]
    valid = [x for x, why in zip(loaded.records, reasons, strict=True) if not why]
    return _CurrentRecords(valid, damaged + outdated, outdated)


def _nothing_here(
    results: Path, cells: Plan | Experiment, experiment: Experiment, outdated: Sequence[str]
) -> str:
    """Return why there is nothing to collect, and what to do."""
    if outdated:
        return (
            f"no current records of {experiment.name} in {results}: {'; '.join(outdated)}; "
            "`svgpbench run` runs their cells again"
        )
    others = records_in(results, experiment.name).records
    if not (isinstance(cells, Plan) and others):
        return (
            f"no records of {experiment.name} in {results}; run it first with `svgpbench run`, "
            "or name their folder with --results"
        )
    titles = {record.config.backend.title for record in others}
    asked = {config.backend.title for config in cells.configs}
    advice = "leave --preset out" if titles & asked else f"give --backend {min(titles)}"
    return (
        f"no cell of this preset of {experiment.name} has a record in {results}, which has "
        f"{len(others)} of other cells, on {', '.join(sorted(titles))}; {advice} to see them"
    )


def collect_each(
    results: Path, by_experiment: Mapping[str, LoadedRecords]
) -> tuple[list[Collected], list[str]]:
    """Return the current records of each experiment, and a line on each one left out.

    Experiments of the user are included.

    Args:
        results: folder of the records, for messages.
        by_experiment: what `records_by_experiment` returns for this folder.
    """
    collected: list[Collected] = []
    left_out: list[str] = []
    for name, loaded in by_experiment.items():
        if name not in shipped_experiments() and not loaded.stored:
            continue  # a folder of something else
        try:
            collected.append(_collect_by_name(results, name, loaded))
        except UserError as error:
            left_out.append(f"{name} is left out: {error}")
    return collected, left_out


def _collect_by_name(results: Path, name: str, loaded: LoadedRecords) -> Collected:
    if name in shipped_experiments():
        return collect(results, load_experiment(name), loaded=loaded)
    current = _current(loaded, outdated_reason)
    records = current.records
    if not records:
        raise UserError("none of its records is current")
    between = differences_between_rows(records, refuse_mixture(records))
    notes = (*current.notes, *between, *several_versions(records))
    return Collected(name, tuple(records), 0, notes)


def _relabelled(records: Iterable[Record], cells: Iterable[CellIdentity]) -> list[Record]:
    """Return the records with the present labels of their methods. A label changes no result."""
    labels = {cell.cell_id: {"label": cell.config.method.label} for cell in cells}
    relabelled = []
    for record in records:
        method = record.config.method.model_copy(update=labels[record.cell_id])
        config = record.config.model_copy(update={"method": method})
        relabelled.append(record.model_copy(update={"config": config}))
    return relabelled


def of_one_preset(records: list[Record], experiment: Experiment) -> tuple[list[Record], str]:
    """Return the records that fit together in one table, and a note on presets.

    These are all records if they fit together, else the records of the preset with most records. Presets
    may differ in their settings, and no table mixes different settings. Raises `UserError` if the
    records do not fit together and one of them belongs to no preset.
    """
    plans = {name: Plan.of(experiment, name) for name in experiment.presets}
    data = {record.config.data.title for record in records}  # other data sets may not be installed
    ids = {
        name: {x.cell_id for x in plan.only(lambda cell: cell.data.title in data).identities}
        for name, plan in plans.items()
    }
    by_preset = {
        name: [record for record in records if record.cell_id in cell_ids]
        for name, cell_ids in ids.items()
    }
    # a preset without records is not listed: the reader asks what is here
    listed = ", ".join(
        f"preset {name} {len(by_preset[name])} of {len(plan.configs)} cells"
        for name, plan in plans.items()
        if by_preset[name]
    )
    if fit_together(records):
        return records, f"all records here: {listed or 'of no preset'}"
    if any(record.cell_id not in set().union(*ids.values()) for record in records):
        refuse_mixture(records)
    largest = max(by_preset, key=lambda name: len(by_preset[name]))
    return by_preset[largest], f"these are of preset {largest}; records here: {listed}"


def _order(experiment: Experiment) -> Callable[[Record], tuple[int | str, ...]]:
    """Return the sort key of the order of the experiment file; unknown names come last."""

    def key(record: Record) -> tuple[int | str, ...]:
        config, split = record.config, record.config.split
        return (
            *_position(experiment.data_names, config.data.title),
            *_position(experiment.labels, config.method.title),
            *_position(
                [text.partition(":")[0] for text in experiment.backends], config.backend.name
            ),
            config.backend.title,
            *(split.seed, split.fold, config.seed),
        )

    return key


def _position(names: Sequence[str], name: str) -> tuple[int, str]:
    return (names.index(name) if name in names else len(names), name)


def _names(record: Record) -> set[str]:
    backend = record.config.backend
    return {backend.name, backend.title, f"{backend.name}:{backend.mode}".rstrip(":")}
