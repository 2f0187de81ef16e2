"""Shards: the part of an experiment's cells that one job of an array runs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from svgpbench.errors import UserError
from svgpbench.experiments.plan import Plan


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
