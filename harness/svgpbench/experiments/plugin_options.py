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


class Table(NamedTuple):
    """A table of a file, its path, and the plugin group of the thing that it names."""

    path: Path
    table: WithOptions
    group: str


def refuse_unknown_options(experiment: Experiment) -> None:
    """Raise `UserError` for the first option that is unknown or has a wrong value.

    An option is unknown if nothing of its group that the file names has it.
    """
    tables = list(_tables(experiment))
    for here in tables:
        if not here.table.options:
            continue
        own = here.table.names in here.table.model_fields_set
        near = [here] if own else [table for table in tables if table.group == here.group]
        _check(here, {each.table.named: load(here.group, each.table.named) for each in near})


def _check(here: Table, named_there: dict[str, Any]) -> None:
    for key, value in here.table.options.items():
        having = {name: cls for name, cls in named_there.items() if key in option_names(cls)}
        if not having:
            known = {key for cls in named_there.values() for key in option_names(cls)}
            raise UserError(
                unknown_key((*here.path, key), {*known, *type(here.table).model_fields})
            )
        for name, cls in having.items():
            try:
                check_option(cls, f"{GROUPS[here.group]} {name!r}", key, value)
            except UserError as error:
                raise UserError(f"{named(here.path)}: {error}") from None


def _tables(experiment: Experiment) -> Iterator[Table]:
    yield Table(("kernel",), experiment.kernel, KERNELS)
    yield Table(("inducing",), experiment.inducing, INDUCING)
    for i, problem in enumerate(experiment.problems):
        yield Table(("problems", i, "likelihood"), problem.likelihood, LIKELIHOODS)
        yield Table(("problems", i, "kernel"), problem.kernel, KERNELS)
        yield Table(("problems", i, "inducing"), problem.inducing, INDUCING)
    for i, entry in enumerate(experiment.methods):
        yield Table(("methods", i, "inducing"), entry.inducing, INDUCING)
    for name, preset in experiment.presets.items():
        yield Table(("presets", name, "kernel"), preset.kernel, KERNELS)
        yield Table(("presets", name, "inducing"), preset.inducing, INDUCING)
