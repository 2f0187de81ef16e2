"""Collection of the records for one table or figure. Records that do not fit together are refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from svgpbench.backends import forget_changed
from svgpbench.errors import UserError, refuse_unknown
from svgpbench.experiments import Experiment, load_experiment, shipped_experiments
from svgpbench.experiments.identity import CellIdentity, method_options
from svgpbench.experiments.plan import Plan, experiment_of
from svgpbench.plugins import METHODS, plugins
from svgpbench.results.records import Record, UnreadableFileError
from svgpbench.results.store import LoadedRecords, experiments, records_in, records_of
from svgpbench.results.validity import other_plugins, outdated_reason

REPLICATED = {"experiment", "seed", "backend", "perturbation"}
"""Keys of a configuration that may differ between records of one data set and one method."""

SHARED = (
    "training.em_iterations",
    "training.m_steps",
    "training.online",
    "inducing.count",
    "split",
    "jitter",
)
"""Settings that get a note if the rows of one table differ in them."""


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
    *,
    count_presets: bool = True,
) -> Collected:
    """Return the records of a plan's cells, or all current records of an experiment.

    Args:
        results: folder of records.
        cells: the cells that were to run, or the whole experiment. Its order is the order of the result.
        backends: names of backends to keep, with or without mode; None keeps all.
        count_presets: add a note on the presets of the records. It needs the id of every declared cell.

    Raises:
        UserError: there are no records, or they do not fit together, or one has another schema.
    """
    if results.is_file():
        raise UserError(f"{results} is a file; name a folder of records with --results")
    forget_changed()
    plan = cells if isinstance(cells, Plan) else None
    experiment = experiment_of(cells)
    if plan is None:
        records, notes = _readable(records_in(results, experiment.name))
        records, reasons = _current(records, outdated_reason)
        notes += reasons
        missing = 0
    else:
        records, notes = _readable(records_of(results, plan.identities))
        records, reasons = _current(records, other_plugins)
        notes += reasons
        # the experiment may have renamed a method since; ids do not depend on labels
        records = _relabelled(records, plan.identities)
        missing = len(plan.configs) - len(records)
        if missing:
            notes.append(f"{missing} of {len(plan.configs)} cells have not run")
    if backends and records:
        available = {name for record in records for name in _names(record)}
        refuse_unknown("backend in these records", backends, available)
        records = [record for record in records if _names(record) & set(backends)]
    if not records:
        if reasons:
            raise UserError(
                f"no current records of {experiment.name} in {results}: {'; '.join(reasons)}; "
                "`svgpbench run` runs their cells again"
            )
        if plan and (others := records_in(results, experiment.name).records):
            titles = {record.config.backend.title for record in others}
            asked = {config.backend.title for config in plan.configs}
            backends_run = ", ".join(sorted(titles))
            advice = "leave --preset out"
            if not titles & asked:
                advice = f"give --backend {min(titles)}"
            raise UserError(
                f"no cell of this preset of {experiment.name} has a record in {results}, which has "
                f"{len(others)} of other cells, on {backends_run}; {advice} to see them"
            )
        raise UserError(
            f"no records of {experiment.name} in {results}; run it first with `svgpbench run`, "
            "or name their folder with --results"
        )
    # resolving every preset takes seconds, so this is left out where only the records matter
    if plan is None and experiment.presets and (count_presets or not _fit_together(records)):
        records, note = of_one_preset(records, experiment)
        notes.append(note)
    settings = refuse_mixture(records)
    notes += [*_differences_between_rows(records, settings), *several_versions(records)]
    ordered = sorted(records, key=_order(experiment))
    rows = {entry.title: entry.row for entry in experiment.methods if entry.row}
    return Collected(experiment.name, tuple(ordered), missing, tuple(notes), rows)


def collected_in(results: Path, *, count_presets: bool = True) -> tuple[list[Collected], list[str]]:
    """Return the current records of each experiment in a folder, and a line on each one left out.

    Experiments of the user are included. Raises `UserError` if the folder does not exist, and
    `UnreadableFileError` if one of its Parquet files is damaged.
    """
    if not results.is_dir():
        raise UserError(f"{results}: there is no such folder; name one of records with --results")
    collected: list[Collected] = []
    left_out: list[str] = []
    for name in experiments(results):
        if name not in shipped_experiments() and not records_in(results, name).stored:
            continue  # a folder of something else
        try:
            collected.append(_collect_by_name(results, name, count_presets))
        except UnreadableFileError:
            raise
        except UserError as error:
            left_out.append(f"{name} is left out: {error}")
    return collected, left_out


def _collect_by_name(results: Path, name: str, count_presets: bool) -> Collected:
    if name in shipped_experiments():
        return collect(results, load_experiment(name), count_presets=count_presets)
    records = [r for r in records_in(results, name).records if not outdated_reason(r)]
    if not records:
        raise UserError("none of its records is current")
    refuse_mixture(records)
    return Collected(name, tuple(records), 0, ())


def _current(
    records: Sequence[Record], why_not: Callable[[Record], str]
) -> tuple[list[Record], list[str]]:
    """Return the records without a reason against them, and a note on each reason."""
    reasons = [why_not(record) for record in records]
    notes = [f"{n} records left out: {why}" for why, n in Counter(filter(None, reasons)).items()]
    return [x for x, why in zip(records, reasons, strict=True) if not why], notes


def _relabelled(records: Iterable[Record], cells: Iterable[CellIdentity]) -> list[Record]:
    """Return the records with the present labels of their methods. A label changes no result."""
    labels = {cell.cell_id: {"label": cell.config.method.label} for cell in cells}
    relabelled = []
    for record in records:
        method = record.config.method.model_copy(update=labels[record.cell_id])
        config = record.config.model_copy(update={"method": method})
        relabelled.append(record.model_copy(update={"config": config}))
    return relabelled


def _readable(loaded: LoadedRecords) -> tuple[list[Record], list[str]]:
    """Return the records, and a note on each damaged file."""
    note = "left out, and `svgpbench run` makes it anew"
    return loaded.records, [f"{note}: {line}" for line in loaded.damaged]


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
    if _fit_together(records):
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


def _fit_together(records: Sequence[Record]) -> bool:
    try:
        refuse_mixture(records)
    except UserError:
        return False
    return True


def refuse_mixture(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Return the settings of each record by dotted key.

    Raises `UserError` if records of one data set and one method differ in their settings.
    """
    first: dict[tuple[str, str], dict[str, Any]] = {}
    settings = []
    for record in records:
        config = record.config.model_dump(mode="json", exclude=REPLICATED)
        config["split"].pop("fold")
        # the seed of a random split is one of several draws, as a fold is; that of k folds is a setting
        if config["split"]["kind"] == "random":
            config["split"].pop("seed")
        if (method := record.config.method).name in plugins(
            METHODS
        ):  # older records lack later options
            config["method"]["options"] = method_options(method.name) | method.options
        config["data"].pop("path")  # the fingerprint of its content counts
        config["data"]["fingerprint"] = record.data.get("fingerprint")
        current = dict(_flat(config))
        settings.append(current)
        row = (record.config.data.title, record.config.method.title)
        earlier = first.setdefault(row, current)
        if current == earlier:
            continue
        # the first in the alphabet: a set has no order, and the message is to be the same each time
        key = min(
            key for key in current.keys() | earlier.keys() if current.get(key) != earlier.get(key)
        )
        raise UserError(
            f"records of {row[0]}, {row[1]} differ in {key} ({earlier.get(key)} and "
            f"{current.get(key)}); choose one with --preset, or another --results folder"
        )
    return settings


def dotted_settings(record: Record) -> Iterator[tuple[str, Any]]:
    """Yield the whole configuration of a record's cell by dotted key."""
    return _flat(record.config.model_dump(mode="json"))


def _flat(values: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", tuple(value) if isinstance(value, list) else value


def _differences_between_rows(
    records: Sequence[Record], flat: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """Yield a note for each setting in which rows differ, for readers who compare rows."""
    for shared in SHARED:
        for key in sorted(key for key in flat[0] if key == shared or key.startswith(f"{shared}.")):
            values: dict[Any, set[str]] = {}
            for record, settings in zip(records, flat, strict=True):
                row = f"{record.config.data.title}, {record.config.method.title}"
                values.setdefault(settings.get(key), set()).add(row)
            if len(values) > 1:
                texts = []
                for value, rows in values.items():
                    more = f" and {len(rows) - 2} more" if len(rows) > 2 else ""
                    texts.append(f"{value}: {' / '.join(sorted(rows)[:2])}{more}")
                yield f"rows differ in {key} ({'; '.join(texts)})"


def several_versions(records: Sequence[Record]) -> Iterator[str]:
    """Yield a note for each package, and each part of the code, that made records in several forms."""
    versions_of: dict[str, set[str]] = {}
    for record in records:
        if record.environment is not None:
            for package, version in record.environment.versions.items():
                versions_of.setdefault(package, set()).add(version)
    for package, versions in versions_of.items():
        if len(versions) > 1:
            yield f"records were made with {package} {' and '.join(sorted(versions))}"
    yield from several_forms(records)


def several_forms(records: Sequence[Record]) -> Iterator[str]:
    """Yield a note for each part of the code that made records in several forms."""
    commits_of: dict[str, dict[str, str]] = {}  # by part and digest
    for record in records:
        for part, code in record.code.items():
            commit = (record.environment and record.environment.commit) or "unknown"
            commits_of.setdefault(part, {}).setdefault(code, commit[:8])
    for part, commits in commits_of.items():
        if len(commits) > 1:
            listed = ", ".join(sorted(set(commits.values())))
            yield f"records were made by {len(commits)} forms of the code of {part} (commits {listed})"
