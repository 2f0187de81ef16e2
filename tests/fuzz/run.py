"""`make fuzz`: every parser of files from outside, on thousands of files made wrong.

    python tests/fuzz/run.py --mutations 20000 --seed 1
    python tests/fuzz/run.py --parser papers --only 1234     # one file again, with its traceback
    python tests/fuzz/run.py --mutations 2000 --coverage     # and the lines of the parsers that are reached

Each parser has a process of its own, so that one that is killed (a crash in C, memory) is a failure and
not the end. Exits with 1 where any parser failed.
"""

from __future__ import annotations

import dataclasses
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from campaign import Counts, run_campaign, write
from parsers import Parser, parsers
from rich.console import Console
from rich.table import Table

MEMORY = 8 << 30
"""Bytes of address space of a parser's process."""

LIMIT_S = 3600.0
HEADS = ("parser", "mutations", "to validation", "accepted", "failures", "seconds", "slowest, s")


def main(
    mutations: Annotated[int, typer.Option("--mutations", min=1)] = 20_000,
    seed: Annotated[int, typer.Option("--seed")] = 0,
    parser: Annotated[str | None, typer.Option("--parser", metavar="NAME")] = None,
    only: Annotated[int | None, typer.Option("--only", metavar="NUMBER")] = None,
    measured: Annotated[bool, typer.Option("--coverage")] = False,
    within: Annotated[Path | None, typer.Option("--within", hidden=True)] = None,
) -> None:
    """Read mutated files, and print what came of them by parser."""
    known = dict(parsers())
    if only is not None and parser is not None:
        _again(parser, known[parser], seed, only)
        return
    if within is not None and parser is not None:
        _alone(parser, known[parser], seed, mutations, within)
        return
    chosen = {name: known[name] for name in ([parser] if parser else known)}
    shares = sum(one.share for one in chosen.values())
    found = {
        name: _apart(name, seed, round(mutations * one.share / shares), one if measured else None)
        for name, one in chosen.items()
    }
    _show(found)
    raise typer.Exit(int(any(counts.failures for counts in found.values())))


def _again(name: str, parser: Parser, seed: int, number: int) -> None:
    """One file, kept, and read unwatched."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz")).resolve()
    write(folder, name, parser, seed, number)
    print(folder)
    print(parser.read(folder))


def _apart(name: str, seed: int, mutations: int, counted: Parser | None) -> Counts:
    """A parser in a process of its own, which counts the lines that it reaches."""
    with tempfile.TemporaryDirectory(prefix="fuzz") as place:
        own = [
            f"--mutations={mutations}",
            f"--seed={seed}",
            f"--parser={name}",
            f"--within={place}",
        ]
        modules = counted.modules if counted else ()
        files = [str(spec.origin) for module in modules if (spec := find_spec(module))]
        data = f"--data-file={place}/.coverage"
        counting = ["-m", "coverage", "run", data, f"--include={','.join(files)}"] if files else []
        done = subprocess.run(
            [sys.executable, *counting, __file__, *own],
            capture_output=True, text=True, check=False, timeout=LIMIT_S,
        )  # fmt: skip
        if done.returncode == 0:
            counts = Counts(**json.loads(Path(place, "counts.json").read_text()))
            lines = _lines(data, counted.beside) if counted else {}
            return dataclasses.replace(counts, lines=lines)
        at = Path(place, "number")
        number = at.read_text() if at.exists() else "none"
        last = (done.stderr.strip().splitlines() or ["no word"])[-1]
        return Counts(
            failures=[f"its process ended with {done.returncode} at no. {number}: {last}"]
        )


def _lines(data: str, beside: Sequence[str]) -> dict[str, float]:
    """The per cent of each module's lines that a campaign reached, but for functions that parse nothing."""
    command = [sys.executable, "-m", "coverage", "json", data, "-o", "-", "--quiet"]
    found = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return {
        Path(file).stem: _reached(one["functions"], beside) for file, one in found["files"].items()
    }


def _reached(functions: dict[str, Any], beside: Sequence[str]) -> float:
    parsing = [one["summary"] for name, one in functions.items() if name not in beside]
    reached, lines = (
        sum(one[key] for one in parsing) for key in ("covered_lines", "num_statements")
    )
    return 100.0 * reached / lines


def _alone(name: str, parser: Parser, seed: int, mutations: int, place: Path) -> None:
    sys.dont_write_bytecode = True  # a module that is imported late leaves none behind
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    at = place / "number"
    counts = run_campaign(
        name, parser, range(mutations), seed, before=lambda number: at.write_text(str(number))
    )
    (place / "counts.json").write_text(json.dumps(dataclasses.asdict(counts)))


def _show(found: dict[str, Counts]) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for place, head in enumerate(HEADS):
        table.add_column(head, justify="right" if place else "left", no_wrap=True)
    for name, x in found.items():
        share = f"{x.reached} ({100 * x.reached / max(x.mutations, 1):.0f} %)"
        numbers = (
            x.mutations,
            share,
            x.accepted,
            len(x.failures),
            f"{x.seconds:.1f}",
            f"{x.slowest_s:.2f}",
        )
        table.add_row(name, *map(str, numbers))
    console = Console(width=120)
    console.print(table)
    for name, x in found.items():
        if x.lines:
            shares = ", ".join(f"{module} {share:.0f} %" for module, share in x.lines.items())
            console.print(f"{name}: lines of {shares}", markup=False, highlight=False)
        for line in x.failures:
            console.print(f"{name}, {line}", markup=False, highlight=False, soft_wrap=True)


if __name__ == "__main__":
    typer.run(main)
