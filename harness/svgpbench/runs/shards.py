"""Cells dealt out to the jobs of an array: which of them each one runs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from svgpbench.config import CellConfig
from svgpbench.errors import UserError
from svgpbench.experiments.cell import identify


@dataclass(frozen=True)
class Shard:
    """One of `count` parts of a set of cells, as large as the others but for one cell."""

    place: int  # from 1
    count: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """`2/8`; raises `UserError` for anything else."""
        match = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
        place, count = map(int, match.groups()) if match else (0, 0)
        if not 1 <= place <= count:
            raise UserError(f"--shard {text}: give I/N with I from 1 to N, such as 2/8")
        return cls(place, count)

    def among(self, cell_ids: Iterable[str]) -> set[str]:
        """The ids in this part, dealt out in their order: ids are hashes, so that parts are mixed."""
        return set(sorted(set(cell_ids))[self.place - 1 :: self.count])

    def of(self, cells: Sequence[CellConfig]) -> list[CellConfig]:
        """Those of the cells that are in this part, in the order given."""
        ids = [identify(cell).cell_id for cell in cells]
        mine = self.among(ids)
        return [cell for cell, cell_id in zip(cells, ids, strict=True) if cell_id in mine]
