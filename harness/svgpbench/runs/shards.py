"""Shards: the part of an experiment's cells that one job of an array runs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from svgpbench.config import CellConfig
from svgpbench.errors import UserError
from svgpbench.experiments.cell import identify


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

    def select(self, cells: Sequence[CellConfig]) -> list[CellConfig]:
        """Return the cells of this part in the given order."""
        ids = [identify(cell).cell_id for cell in cells]
        selected = self.among(ids)
        return [cell for cell, cell_id in zip(cells, ids, strict=True) if cell_id in selected]
