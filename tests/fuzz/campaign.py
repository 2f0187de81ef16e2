"""Many mutations of one parser, one after another, each told by the campaign's seed and its number."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from parsers import Parser
from watching import Door, watched


@dataclass
class Counts:
    """What came of the mutations of a parser."""

    mutations: int = 0
    reached: int = 0  # validation
    accepted: int = 0
    seconds: float = 0.0
    slowest_s: float = 0.0
    failures: list[str] = field(default_factory=list)
    lines: dict[str, float] = field(default_factory=dict)  # per cent reached, by module


UNREADABLE = 0.01
"""Of the files, how many are a folder of their name."""

OWN = ("options.json", "arguments.json")
"""What the reader of a campaign is told."""


def write(folder: Path, name: str, parser: Parser, seed: int, number: int) -> None:
    """The files of a number."""
    rng = random.Random(f"{seed} {name} {number}")
    parser.write(folder, rng)
    files = sorted(x for x in folder.rglob("*") if x.is_file() and x.name not in OWN)
    if files and rng.random() < UNREADABLE:
        chosen = rng.choice(files)
        chosen.unlink()
        chosen.mkdir()


def run_campaign(
    name: str,
    parser: Parser,
    numbers: Iterable[int],
    seed: int = 0,
    *,
    before: Callable[[int], object] = lambda number: None,
) -> Counts:
    """Read the files of some numbers; `before` is told each number, so that a crash leaves it behind."""
    counts, door = Counts(), Door(*parser.door)
    try:
        for number in numbers:
            before(number)
            with tempfile.TemporaryDirectory(prefix="fuzz") as place:
                folder = Path(place).resolve()
                write(folder, name, parser, seed, number)
                start = time.perf_counter()
                outcome = watched(parser.read, folder, door, writes=parser.writes(folder))
            took = time.perf_counter() - start
            counts.mutations += 1
            counts.reached += outcome.reached
            counts.accepted += outcome.end == "accepted"
            counts.seconds += took
            counts.slowest_s = max(counts.slowest_s, took)
            if outcome.end == "failed":
                counts.failures.append(f"no. {number}: {outcome.why}")
    finally:
        door.close()
    return counts
