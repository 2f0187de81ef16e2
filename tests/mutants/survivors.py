"""Drawn mutants that no test noticed, each with a word on it by whoever read it.

A word is "equivalent: WHY" or "test: PATH::NAME", the test that was written for it since.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from drawing import Mutant

SURVIVORS = Path(__file__).parent / "survivors.toml"
HEADER = """# Drawn mutants that no test noticed, kept by `make mutants-drawn`. Read each and give it a word:
# "equivalent: WHY", or "test: PATH::NAME", the test written for it. The command adds those it finds,
# keeps every word, and drops what has none and is noticed now.
"""


@dataclass(frozen=True)
class Survivor:
    """A mutant by its lines, and what was found when it was read; no word: not read yet."""

    key: str
    file: str
    function: str
    operator: str
    was: str
    now: str
    word: str = ""

    @classmethod
    def of(cls, mutant: Mutant) -> Survivor:
        """A mutant that nobody has read."""
        m = mutant
        return cls(m.key, m.file, m.function, m.operator, m.was, m.now)


def read_survivors(path: Path = SURVIVORS) -> dict[str, Survivor]:
    """All that are kept, by key."""
    if not path.exists():
        return {}
    entries = tomllib.loads(path.read_text(encoding="utf-8")).get("survivor", [])
    return {entry["key"]: Survivor(**entry) for entry in entries}


def merged(
    kept: dict[str, Survivor], survived: Iterable[Mutant], killed: Iterable[Mutant]
) -> dict[str, Survivor]:
    """What is kept after a run: its survivors, and everything that has a word."""
    gone = {mutant.key for mutant in killed}
    found = {key: one for key, one in kept.items() if one.word or key not in gone}
    for mutant in survived:
        found.setdefault(mutant.key, Survivor.of(mutant))
    return found


def write_survivors(survivors: dict[str, Survivor], path: Path = SURVIVORS) -> None:
    """Write them by file and function."""
    parts = [HEADER]
    for one in sorted(survivors.values(), key=lambda x: (x.file, x.function, x.was, x.now)):
        lines = [f"{name} = {_quoted(value)}" for name, value in asdict(one).items()]
        parts.append("\n".join(["[[survivor]]", *lines]) + "\n")
    path.write_text("\n".join(parts), encoding="utf-8")


def _quoted(text: str) -> str:
    if "\n" in text or '"' in text or "\\" in text:
        return f"'''\n{text}'''" if "'''" not in text else json.dumps(text, ensure_ascii=False)
    return f'"{text}"'
