"""`svgpbench list`: names of methods, backends, data sets, ...; no framework is imported."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Any, TypeAlias

import typer

from svgpbench.backends import framework_missing, framework_of
from svgpbench.cli.options import AsJson
from svgpbench.cli.printing import print_json, show
from svgpbench.experiments import load_experiment, shipped_experiments
from svgpbench.methods.registry import refusals
from svgpbench.options import option_names
from svgpbench.output.table import Column, Styled, Table
from svgpbench.plugins import (
    BACKENDS,
    DATASETS,
    INDUCING,
    KERNELS,
    LIKELIHOODS,
    METHODS,
    load_all,
    load_errors,
    plugins,
    unused_plugins,
)
from svgpbench_datasets import DataError

Row: TypeAlias = dict[str, Any]


class ListSection(StrEnum):
    """Sections of the listing."""

    methods = "methods"
    backends = "backends"
    datasets = "datasets"
    experiments = "experiments"
    kernels = "kernels"
    likelihoods = "likelihoods"
    inducing = "inducing"


def list_command(
    section: Annotated[
        ListSection | None, typer.Argument(help="Section to list; all by default.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List what there is to choose from."""
    sections = [section] if section else list(ListSection)
    content = {
        x.value: [
            *ROWS[x](),
            # plugins that cannot be loaded or whose name is taken
            *(
                {"name": name, "about": line}
                for name, line in (unused_plugins(GROUP_OF[x]) if x in GROUP_OF else ())
            ),
        ]
        for x in sections
    }
    if as_json:
        print_json(content)
        return
    show(
        *(
            _cards(title, rows) if title == ListSection.methods else _table(title, rows)
            for title, rows in content.items()
        )
    )


def _methods() -> list[Row]:
    rows: list[Row] = []
    for name, cls in load_all(METHODS).items():
        info, refused = cls.info, refusals(cls())
        reasons = dict.fromkeys(refused.values())
        row = {
            "name": name,
            "about": _first_line(cls.__doc__),
            "names in papers": dict(info.aliases),
            "parameters a latent": info.parameters,
            "E-step": info.e_step,
            "memory": info.memory,
            "likelihoods": [x for x in load_all(LIKELIHOODS) if x not in refused],
            "refused": {why: [k for k, v in refused.items() if v == why] for why in reasons},
            "options": {field.name: field.default for field in dataclasses.fields(cls)},
        }
        rows.append(row)
    return rows


def _backends() -> list[Row]:
    lines = load_errors(BACKENDS)
    return [
        {
            "name": name,
            "installed": (missing := framework_missing(name)) is None,
            "version": None if missing else _framework_version(name),
            "install": missing.partition(": ")[2] if missing else None,
            "about": lines.get(name, ""),
        }
        for name in plugins(BACKENDS)
    ]


def _framework_version(backend: str) -> str | None:
    if framework := framework_of(backend):
        distributions = list(framework.distributions)
    elif backend == "numpy":
        distributions = ["numpy"]
    else:
        owner = plugins(BACKENDS)[backend].dist
        distributions = [owner.name] if owner else []
    for distribution in distributions:
        try:
            return version(distribution)
        except PackageNotFoundError:
            continue
    return None


def _datasets() -> list[Row]:
    rows: list[Row] = []
    for plugin, registry in load_all(DATASETS).items():
        try:
            entries = {name: registry.describe(name) for name in registry.names()}
        except DataError as error:  # of another package; the others are listed all the same
            rows.append({"name": plugin, "about": f"cannot be used: {error}"})
            continue
        for name, entry in entries.items():
            size = {"rows": entry.rows, "features": len(entry.features)}
            rows.append({"name": name, "task": entry.task, **size, "about": entry.title})
    return rows


def _experiments() -> list[Row]:
    rows = []
    for name in shipped_experiments():
        experiment = load_experiment(name)
        presets = list(experiment.presets)
        rows.append({"name": name, "presets": presets, "about": experiment.title})
    return rows


def _model_parts(group: str) -> list[Row]:
    """Return one row per kernel, likelihood or family of inducing variables."""
    return [
        {
            "name": name,
            **({"task": cls.task} if group == LIKELIHOODS else {}),
            "options": list(option_names(cls)),
            "about": _first_line(cls.__doc__),
        }
        for name, cls in load_all(group).items()
    ]


ROWS: dict[ListSection, Callable[[], list[Row]]] = {
    ListSection.methods: _methods,
    ListSection.backends: _backends,
    ListSection.datasets: _datasets,
    ListSection.experiments: _experiments,
    ListSection.kernels: partial(_model_parts, KERNELS),
    ListSection.likelihoods: partial(_model_parts, LIKELIHOODS),
    ListSection.inducing: partial(_model_parts, INDUCING),
}
GROUP_OF = {
    ListSection.methods: METHODS,
    ListSection.datasets: DATASETS,
    ListSection.kernels: KERNELS,
    ListSection.likelihoods: LIKELIHOODS,
    ListSection.inducing: INDUCING,
}
"""Entry-point group that each section loads."""


def _first_line(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0]


def _table(title: str, rows: list[Row]) -> Table:
    """Return one line per row, without columns that are empty in all rows."""
    names = [name for name in (rows[0] if rows else ()) if any(row.get(name) for row in rows)]
    columns = [
        # `type`, because `isinstance` takes True for an int
        Column(name, _cell, numeric=all(type(row.get(name)) is int for row in rows), missing="")
        for name in names
    ]
    return Table(columns, [[row.get(name) for name in names] for row in rows], title)


def _cards(title: str, rows: list[Row]) -> Table:
    """Return a table with one block of lines per row, for rows too wide for one line."""
    lines: list[list[Any]] = []
    for row in rows:
        lines.append([Styled(row["name"], "bold"), row["about"]])
        lines += [
            [Styled(f"  {key}", "dim"), _cell(value)]
            for key, value in row.items()
            if key not in ("name", "about") and value
        ]
    return Table((Column("", wrap=False), Column("")), lines, title)


def _cell(value: Any) -> str:
    """Return a value as text for a table cell; a dictionary of lists takes one line per key."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict) and all(isinstance(item, list) for item in value.values()):
        return "\n".join(f"{', '.join(items)}: {why}" for why, items in value.items())
    if isinstance(value, dict):
        return ", ".join(f"{key}={item}" for key, item in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)
