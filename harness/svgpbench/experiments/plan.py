"""A plan: the cells of an experiment that a command runs or reads, with their ids, and its shards."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from svgpbench.config import CellConfig
from svgpbench.errors import UserError
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


@dataclass(frozen=True)
class CellShard:
    """One of `count` parts of a set of cells; sizes differ by one cell at most."""

    index: int  # from 1
    count: int

    @classmethod
    def parse(cls, text: str) -> CellShard:
        """Parse a text such as `2/8`. Raises `UserError` for anything else."""
        match = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
        index, count = map(int, match.groups()) if match else (0, 0)
        if not 1 <= index <= count:
            raise UserError(f"--shard {text}: give I/N with I from 1 to N, such as 2/8")
        return cls(index, count)

    def among(self, cell_ids: Iterable[str]) -> set[str]:
        """Return the ids of this part: every `count`-th in sorted order, which mixes them."""
        return set(sorted(set(cell_ids))[self.index - 1 :: self.count])

    def select(self, plan: Plan) -> Plan:
        """Return this part of a plan's cells, in their order."""
        ids = [identity.cell_id for identity in plan.identities]
        selected = self.among(ids)
        pairs = zip(plan.configs, ids, strict=True)
        return replace(plan, configs=tuple(x for x, cell_id in pairs if cell_id in selected))
