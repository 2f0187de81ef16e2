"""`svgpbench list`: what there is to choose from; reads names, imports no framework."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Any, TypeAlias

import typer
from rich.table import Table
from rich.text import Text

from svgpbench.cli.options import AsJson
from svgpbench.cli.printing import printer
from svgpbench.experiments import load_experiment, shipped_experiments
from svgpbench.likelihoods import LIKELIHOODS
from svgpbench.methods import AnyMethod
from svgpbench.methods.capabilities import refusals
from svgpbench.model.kernels import KERNELS
from svgpbench.plugins import (
    BACKENDS,
    FRAMEWORK_EXTRAS,
    METHODS,
    check_backend,
    computes,
    framework_missing,
    plugins,
    registries,
)

Row: TypeAlias = dict[str, Any]


class Section(StrEnum):
    """What can be listed."""

    methods = "methods"
    backends = "backends"
    datasets = "datasets"
    experiments = "experiments"
    kernels = "kernels"
    likelihoods = "likelihoods"


def list_command(
    section: Annotated[Section | None, typer.Argument(help="One section; all by default.")] = None,
    as_json: AsJson = False,
) -> None:
    """List what there is to choose from."""
    sections = [section] if section else list(Section)
    content = {each.value: ROWS[each]() for each in sections}
    if as_json:
        typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
        return
    console = printer()
    for title, rows in content.items():
        console.print(_cards(title, rows) if title == Section.methods else _table(title, rows))


def _methods() -> list[Row]:
    rows = []
    for name, point in plugins(METHODS).items():
        try:  # a method imports no framework, so that its facts can be shown
            row = _method(point.load())
        except Exception as error:  # somebody else's plugin must not take the list down
            row = {"about": f"cannot be loaded: {_first_line(str(error))}"}
        rows.append({"name": name, **row})
    return rows


def _method(cls: type[AnyMethod]) -> Row:
    facts, refused = cls.facts, refusals(cls())
    return {
        "about": _first_line(cls.__doc__),
        "names in papers": dict(facts.aliases),
        "parameters a latent": facts.parameters,
        "E-step": facts.e_step,
        "memory": facts.memory,
        "likelihoods": [name for name in LIKELIHOODS if name not in refused],
        "refused": {why: [k for k, v in refused.items() if v == why] for why in refused.values()},
        "options": {field.name: field.default for field in dataclasses.fields(cls)},
    }


def _backends() -> list[Row]:
    return [
        {
            "name": name,
            "installed": (missing := framework_missing(name)) is None,
            "version": None if missing else _framework_version(name),
            "install": missing.partition(": ")[2] if missing else None,
        }
        for name in plugins(BACKENDS)
    ]


def _framework_version(backend: str) -> str | None:
    if backend in FRAMEWORK_EXTRAS:
        distributions = [backend, f"{backend}-cpu"]  # TensorFlow comes under two names
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
    rows = []
    for registry in registries():
        for name in registry.names():
            entry = registry.describe(name)
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


def _kernels() -> list[Row]:
    return [{"name": name, "about": _first_line(cls.__doc__)} for name, cls in KERNELS.items()]


def _likelihoods() -> list[Row]:
    return [
        {"name": name, "task": cls.task, "about": _first_line(cls.__doc__)}
        for name, cls in LIKELIHOODS.items()
    ]


ROWS: dict[Section, Callable[[], list[Row]]] = {
    Section.methods: _methods,
    Section.backends: _backends,
    Section.datasets: _datasets,
    Section.experiments: _experiments,
    Section.kernels: _kernels,
    Section.likelihoods: _likelihoods,
}


def known_backends(names: list[str] | None) -> list[str]:
    """The backends asked for, or all that are installed and compute.

    Raises `UserError` for one asked for that cannot run.
    """
    if names is None:
        return [n for n in plugins(BACKENDS) if framework_missing(n) is None and computes(n)]
    for name in names:
        check_backend(name.partition(":")[0])
    return names


def _first_line(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0]


def _table(title: str, rows: list[Row]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None)
    table.padding = (0, 2, 0, 0)
    for column in rows[0] if rows else ():
        table.add_column(column, overflow="fold", header_style="dim")
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row.values()))
    return table


def _cards(title: str, rows: list[Row]) -> Table:
    """A block for each row: what is too wide for a line."""
    table = Table(title=title, title_justify="left", title_style="bold", box=None)
    table.padding = (0, 2, 0, 0)
    for row in rows:
        table.add_row(Text(row["name"], style="bold"), Text(str(row["about"])))
        for key, value in row.items():
            if key not in ("name", "about") and value:
                table.add_row(Text(f"  {key}", style="dim"), Text(_cell(value)))
    table.show_header = False
    return table


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict) and all(isinstance(item, list) for item in value.values()):
        return "\n".join(f"{', '.join(items)}: {why}" for why, items in value.items())
    if isinstance(value, dict):
        return ", ".join(f"{key}={item}" for key, item in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)
