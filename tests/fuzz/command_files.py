"""Records that commands show with `--from-records`, and plans, made wrong; commands read them."""

from __future__ import annotations

import contextlib
import io
import json
import random
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib.font_manager  # noqa: F401 - makes folders of the user's, once
from mutated_text import json_mutated, toml_mutated
from own_files import RESULTS, ROOT

from svgpbench.cli.application import exit_code
from svgpbench.errors import UserError


def command(*arguments: str) -> str:
    """What a command prints; its one line on standard error is raised as the mistake that it is."""
    out, error = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        code = exit_code(arguments)
    if code == 2:
        *progress, line = error.getvalue().splitlines()
        assert line.startswith("error: "), line
        assert not any(other.startswith(("error: ", "Traceback")) for other in progress), progress
        raise UserError(line)
    assert code in (0, 1), f"exit code {code}"
    return out.getvalue()


@cache
def speed_record(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / "speed" / name).read_text())
    return found | {"cells": found["cells"][:4], "environment": {}}


def write_speed(folder: Path, rng: random.Random) -> None:
    tree = speed_record(
        rng.choice(("cpu-M100-two-threads.json", "cpu-M500.json", "adam2021-fig4.json"))
    )
    (folder / "speed.json").write_bytes(json_mutated(tree, rng))


def read_speed(folder: Path) -> object:
    return command("speed", "--load", str(folder / "speed.json"))


@cache
def lines_of(part: str, library: str) -> list[dict[str, Any]]:
    text = (RESULTS / part / f"{library}.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def lines_writer(part: str, plan: Path) -> Callable[[Path, random.Random], None]:
    """Writes records of lines, one of them or the plan made wrong."""

    def write(folder: Path, rng: random.Random) -> None:
        found = list(lines_of(part, "svgpbench"))
        tree, of_plan = tomllib.loads(plan.read_text("utf-8")), rng.random() < 0.3
        (folder / "plan.toml").write_bytes(
            toml_mutated(tree, rng) if of_plan else plan.read_bytes()
        )
        lines = [json.dumps(one).encode() for one in found]
        if not of_plan:
            for at in rng.sample(range(len(lines)), len(lines) // 3):
                lines[at] = json_mutated(found[at], rng)
        (folder / "svgpbench.jsonl").write_bytes(b"\n".join(lines))

    return write


def lines_reader(name: str) -> Callable[[Path], object]:
    def read(folder: Path) -> object:
        place = ("--results", str(folder), "--plan", str(folder / "plan.toml"))
        return command(name, "--from-records", "--library", "svgpbench", *place)

    return read


LEARNING = ROOT / "harness/svgpbench/benchmarks/time_to_target/plan.toml"
SURVIVAL = ROOT / "harness/svgpbench/benchmarks/stability/plan.toml"
