"""A plan: the cells of an experiment that a command runs or reads, with their ids."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

from svgpbench.config import CellConfig
from svgpbench.experiments.cell import identify
from svgpbench.experiments.identity import CellIdentity
from svgpbench.experiments.resolve import Selection, resolve
from svgpbench.experiments.schema import Experiment


@dataclass(frozen=True)
class Plan:
    """Cells of an experiment: those of a preset, or a part of them.

    Example:
        >>> from svgpbench.experiments import Selection, load_experiment
        >>> experiment = load_experiment("adam2021-fig3")
        >>> plan = Plan.of(experiment, "quick", Selection(backends=["numpy"], methods=["t-SVGP"]))
        >>> {config.method.name for config in plan.configs}
        {'t-svgp'}
    """

    experiment: Experiment
    configs: tuple[CellConfig, ...]  # as the experiment declares them
    preset: str | None = None

    @classmethod
    def of(
        cls, experiment: Experiment, preset: str | None = None, selection: Selection | None = None
    ) -> Plan:
        """Return the cells of a preset, narrowed by a selection.

        Args:
            experiment: the experiment.
            preset: name of the preset; None means `quick`, or the experiment as declared if it has none.
            selection: choices that narrow or replace parts of the preset.

        Raises:
            UserError: for a preset or a selection that matches nothing.
        """
        return cls(experiment, tuple(resolve(experiment, preset, selection)), preset)

    @cached_property
    def identities(self) -> tuple[CellIdentity, ...]:
        """Complete configuration and id of each cell. Raises `UserError` if data or a plugin is missing."""
        # an id needs the data and the plugins of its cell: not every command has them, or needs the id
        return tuple(map(identify, self.configs))

    @classmethod
    def on_first_backend(cls, experiment: Experiment, preset: str | None = None) -> Plan:
        """Return the cells of a preset on the first backend that the experiment declares."""
        return cls.of(experiment, preset, Selection(backends=experiment.backends[:1]))

    def only(self, keep: Callable[[CellConfig], bool]) -> Plan:
        """Return the part of the plan whose declared configurations `keep` accepts."""
        return replace(self, configs=tuple(filter(keep, self.configs)))


def experiment_of(cells: Plan | Experiment) -> Experiment:
    """Return the experiment of a plan, or the experiment itself."""
    return cells.experiment if isinstance(cells, Plan) else cells
