"""Checks of the options in an experiment file that belong to one likelihood, kernel or initialisation.

A table may give an option without a name (`[[problems]] kernel = { period = 2.0 }`). So an option is
accepted if any kernel (likelihood, initialisation) named in the file has it. Whether it fits the kernel of a
cell is checked when the cell is built.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from svgpbench.config import WithOptions
from svgpbench.errors import UserError
from svgpbench.experiments.error_messages import Path, named, unknown_key
from svgpbench.experiments.schema import Experiment
from svgpbench.options import check_option, option_names
from svgpbench.plugins import GROUPS, INDUCING, KERNELS, LIKELIHOODS, load


class PluginTable(NamedTuple):
    """A table of a file, its path, and the group of the plugin that it names."""

    path: Path
    table: WithOptions
    group: str


def refuse_unknown_options(experiment: Experiment) -> None:
    """Raise `UserError` for the first option that is unknown or has a wrong value.

    An option is unknown if no plugin of its group that the file names has it.
    """
    tables = list(_tables(experiment))
    for located in tables:
        if not located.table.options:
            continue
        gives_name = located.table.names in located.table.model_fields_set
        same_group = [table for table in tables if table.group == located.group]
        names = [table.table.named for table in ([located] if gives_name else same_group)]
        _check(located, {name: load(located.group, name) for name in names})


def _check(located: PluginTable, plugins: dict[str, Any]) -> None:
    """Raise `UserError` for the first option that no plugin has, or that has a wrong value."""
    for key, value in located.table.options.items():
        having = {name: cls for name, cls in plugins.items() if key in option_names(cls)}
        if not having:
            keys = {name for cls in plugins.values() for name in option_names(cls)}
            raise UserError(
                unknown_key((*located.path, key), {*keys, *type(located.table).model_fields})
            )
        for name, cls in having.items():
            try:
                check_option(cls, f"{GROUPS[located.group]} {name!r}", key, value)
            except UserError as error:
                raise UserError(f"{named(located.path)}: {error}") from None


def _tables(experiment: Experiment) -> Iterator[PluginTable]:
    yield PluginTable(("kernel",), experiment.kernel, KERNELS)
    yield PluginTable(("inducing",), experiment.inducing, INDUCING)
    for i, problem in enumerate(experiment.problems):
        yield PluginTable(("problems", i, "likelihood"), problem.likelihood, LIKELIHOODS)
        yield PluginTable(("problems", i, "kernel"), problem.kernel, KERNELS)
        yield PluginTable(("problems", i, "inducing"), problem.inducing, INDUCING)
    for i, entry in enumerate(experiment.methods):
        yield PluginTable(("methods", i, "inducing"), entry.inducing, INDUCING)
    for name, preset in experiment.presets.items():
        yield PluginTable(("presets", name, "kernel"), preset.kernel, KERNELS)
        yield PluginTable(("presets", name, "inducing"), preset.inducing, INDUCING)
