"""The walker's frames as a Parquet file: made once on a machine, then read as any other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from svgpbench_datasets.dataset import Floats
from svgpbench_datasets.errors import DataError
from svgpbench_datasets.generated.walker import (
    ENVIRONMENT,
    INPUTS,
    VELOCITIES,
    policy_of,
    versions,
    walk,
)

ROWS = 936_353
GROUP = 1 << 15  # 14 MiB of rows at a time
STANDS_IN_FOR = "MUJOCO1 and MUJOCO2 of Cheng and Boots 2017"


@dataclass(frozen=True)
class Walk:
    """What to make, by default the declared data set; an unknown policy raises `DataError`."""

    rows: int = ROWS  # N
    seed: int = 0
    policy: str = "oscillator"  # of `walker.POLICIES`
    frames: Literal[1, 2] = 2  # for the columns x1..x23, or x1..x46; and y1..y9

    def __post_init__(self) -> None:
        policy_of(self.policy)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        inputs = [f"x{at}" for at in range(1, INPUTS * self.frames + 1)]
        return (*inputs, *(f"y{at}" for at in range(1, VELOCITIES + 1)))


def make_walker(path: Path, wanted: Walk, on_rows: Callable[[int], None]) -> None:
    """Walk and write a file, which replaces one that is there; `on_rows` is told the rows walked so far."""
    from svgpbench_datasets.reading.arrow import write_numbers

    metadata = {
        "stands_in_for": STANDS_IN_FOR,
        "environment": ENVIRONMENT,
        "policy": wanted.policy,
        "seed": str(wanted.seed),
        **versions(),
    }
    try:
        write_numbers(path, _groups(wanted, on_rows), metadata)
    except OSError as error:
        raise DataError(f"{path} cannot be written ({error.strerror or error})") from None


def _groups(wanted: Walk, on_rows: Callable[[int], None]) -> Iterator[dict[str, Floats]]:
    """The columns of a row group at a time, the last one smaller."""
    episodes: list[Floats] = []
    held = done = 0
    for X, Y in walk(wanted.rows, wanted.seed, wanted.policy, wanted.frames):
        episodes.append(np.hstack([X, Y]))
        held, done = held + len(X), done + len(X)
        on_rows(done)
        if held >= GROUP or done == wanted.rows:
            yield dict(zip(wanted.columns, np.concatenate(episodes).T, strict=True))
            episodes, held = [], 0
