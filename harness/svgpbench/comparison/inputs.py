"""Inputs of a comparison: two methods or backends of an experiment, or two folders of records."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from svgpbench.config import CellConfig
from svgpbench.errors import UserError, unknown
from svgpbench.experiments import Experiment
from svgpbench.experiments.identity import essential
from svgpbench.experiments.plan import Plan, experiment_of
from svgpbench.results.collect import Collected
from svgpbench.results.frames import final_frame, reference_backend
from svgpbench.results.mixtures import refuse_mixture, several_forms
from svgpbench.results.records import Record
from svgpbench.results.store import records_in
from svgpbench.results.validity import other_plugins, outdated_reason


@dataclass(frozen=True)
class Side:
    """One side of a comparison: its name and its records."""

    name: str
    records: tuple[Record, ...]


@dataclass(frozen=True)
class Sides:
    """Two sides of a comparison, and the rule by which their cells pair."""

    what: str  # text of the heading
    first: Side
    second: Side
    shared: tuple[str, ...]  # "method" and "backend", where paired cells agree in these
    same_setup: bool  # whether paired cells should give the same numbers
    notes: tuple[str, ...]

    def share(self, record: Record) -> dict[str, str]:
        """Return what a cell shares with its partner besides experiment, data, split, seed, perturbation."""
        return {kind: _titles(record)[kind] for kind in self.shared}


def methods_or_backends(
    collected: Collected, first: str, second: str, *, each_backend: bool = False
) -> Sides:
    """Return two methods (by label) or two backends (by name) of an experiment as sides.

    Methods are compared on the reference backend, or with `each_backend` on all backends.

    Raises `UserError` if no record has a name, or if one name is a method and the other a backend.
    """
    records = collected.records
    spelt = {record.config.method.title: record.config.method.title for record in records}
    # a label as it is spelt comes first: another may differ from it in its case alone
    labels = {label.casefold(): label for label in spelt} | spelt
    titles = {record.config.backend.name: record.config.backend.title for record in records}
    # last, so that `torch` is plain torch where that ran, and not the torch:compile beside it
    titles |= {title: title for title in titles.values()}
    same_setup = False
    if {first.casefold(), second.casefold()} <= labels.keys():
        names = [labels.get(name) or labels[name.casefold()] for name in (first, second)]
        if not each_backend:
            # one backend: the same cells on another are no further evidence; that of these two
            # methods, since the backend with most cells of all may have few of theirs
            compared = [r for name in names for r in records if r.config.method.title == name]
            backend = reference_backend(final_frame(compared))
            records = tuple(r for r in compared if r.config.backend.title == backend)
    elif {first, second} <= titles.keys():
        names, same_setup = [titles[name] for name in (first, second)], True
    else:
        for name in (first, second):
            if name.casefold() not in labels and name not in titles:
                kind = f"method or backend in records of {collected.experiment}"
                raise unknown(kind, name, {*labels.values(), *titles})
        raise UserError(
            f"{first!r} and {second!r}: give two methods or two backends, not one of each"
        )
    differing, shared = ("backend", "method") if same_setup else ("method", "backend")
    side_1, side_2 = (
        Side(name, tuple(record for record in records if _titles(record)[differing] == name))
        for name in names
    )
    what = f"{collected.experiment}: {side_1.name} against {side_2.name}"
    # a pair agrees in the other property, so that only one thing differs at a time
    return Sides(what, side_1, side_2, (shared,), same_setup, collected.notes)


def _titles(record: Record) -> dict[str, str]:
    return {"method": record.config.method.title, "backend": record.config.backend.title}


def folders(
    first: Path,
    second: Path,
    cells: Plan | Experiment | None = None,
    backends: Sequence[str] | None = None,
) -> Sides:
    """Return two folders of records as sides.

    Outdated records count, since versions of a method may be what is compared. They are left out if the
    folder has several records of the same configuration.

    Args:
        first: folder of records.
        second: the other folder.
        cells: the experiment to compare, or the cells of a plan; None compares all experiments.
        backends: names of backends to compare; None or empty compares all.

    Raises:
        UserError: a folder has no such records, or some that do not fit together.
    """
    name = None if cells is None else experiment_of(cells).name
    side_1, notes_1 = _read(first, name, cells, backends)
    side_2, notes_2 = _read(second, name, cells, backends)
    what = f"{name or 'all experiments'}: {first} against {second}"
    return Sides(what, side_1, side_2, ("method", "backend"), True, notes_1 + notes_2)


def _read(
    folder: Path,
    experiment: str | None,
    cells: Plan | Experiment | None,
    backends: Sequence[str] | None,
) -> tuple[Side, tuple[str, ...]]:
    """Return a folder as a side, and notes on damaged files. Raises `UserError` without records."""
    folder_records = records_in(folder, experiment)
    records = folder_records.records
    if isinstance(cells, Plan):
        # not by id, which has the version of the method in it: versions may be what is compared
        settings = {_settings(identity.config) for identity in cells.identities}
        records = [record for record in records if _settings(record.config) in settings]
    if backends:
        names = set(backends)
        records = [r for r in records if {r.config.backend.name, r.config.backend.title} & names]
    if not records:
        of_experiment = f" of {experiment}" if experiment else ""
        on_backends = f" on {' or '.join(backends)}" if backends else ""
        raise UserError(f"no records{of_experiment}{on_backends} in {folder}")
    by_settings: defaultdict[str, list[Record]] = defaultdict(list)
    for record in records:
        by_settings[_settings(record.config)].append(record)
    records = []
    for versions in by_settings.values():  # those that are current, or else the newest
        single = len(versions) == 1
        current = versions if single else [x for x in versions if not outdated_reason(x)]
        records += current or [max(versions, key=lambda record: record.started)]
    for name in {record.config.experiment for record in records}:
        refuse_mixture([record for record in records if record.config.experiment == name])
    others = Counter(filter(None, map(other_plugins, records)))
    notes = (
        *(f"left out: {line}" for line in folder_records.damaged),
        *(f"{folder}: {count} records were {why}" for why, count in others.items()),
        *(f"{folder}: {line}" for line in several_forms(records)),
    )
    return Side(str(folder), tuple(records)), notes


def _settings(config: CellConfig) -> str:
    """Return the settings of a configuration that determine numbers and differ from their defaults."""
    return json.dumps(essential(config), sort_keys=True)
