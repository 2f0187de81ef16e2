"""Settings of records that stand in one table: which may differ, and what is said of those that do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from svgpbench.errors import UserError
from svgpbench.experiments.identity import method_options
from svgpbench.plugins import METHODS, plugins
from svgpbench.results.records import Record

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


def fit_together(records: Sequence[Record]) -> bool:
    """Return True if the records of one data set and one method have the same settings."""
    return not _mixture(records, [_settings(record) for record in records])


def refuse_mixture(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Return the settings of each record by dotted key.

    Raises `UserError` if records of one data set and one method differ in their settings.
    """
    settings = [_settings(record) for record in records]
    if why := _mixture(records, settings):
        raise UserError(why)
    return settings


def _settings(record: Record) -> dict[str, Any]:
    """Return what must be the same for all records of one data set and one method, by dotted key."""
    config = record.config.model_dump(mode="json", exclude=REPLICATED)
    config["split"].pop("fold")
    # the seed of a random split is one of several draws, as a fold is; that of k folds is a setting
    if config["split"]["kind"] == "random":
        config["split"].pop("seed")
    method = record.config.method
    if method.name in plugins(METHODS):  # older records lack later options
        config["method"]["options"] = method_options(method.name) | method.options
    config["data"].pop("path")  # the fingerprint of its content counts
    config["data"]["fingerprint"] = record.data.get("fingerprint")
    return dict(_flat(config))


def _mixture(records: Sequence[Record], settings: Sequence[dict[str, Any]]) -> str:
    """Return the first difference between records that belong to one row; empty if there is none."""
    first: dict[tuple[str, str], dict[str, Any]] = {}
    for record, current in zip(records, settings, strict=True):
        row = record.config.data.title, record.config.method.title
        earlier = first.setdefault(row, current)
        keys = [
            key for key in current.keys() | earlier.keys() if current.get(key) != earlier.get(key)
        ]
        if keys:
            # the first in the alphabet: a set has no order, and the message is to be the same each time
            key = min(keys)
            return (
                f"records of {row[0]}, {row[1]} differ in {key} ({earlier.get(key)} and "
                f"{current.get(key)}); choose one with --preset, or another --results folder"
            )
    return ""


def dotted_settings(record: Record) -> Iterator[tuple[str, Any]]:
    """Yield the whole configuration of a record's cell by dotted key."""
    return _flat(record.config.model_dump(mode="json"))


def _flat(values: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", tuple(value) if isinstance(value, list) else value


def differences_between_rows(
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
