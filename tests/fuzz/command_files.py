"""Broken records that commands show with `--from-records`, and broken plans; commands read them."""

from __future__ import annotations

import contextlib
import io
import json
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib.font_manager  # noqa: F401 - makes folders of the user's, once
from broken_files import broken_json, broken_toml, seldom
from hypothesis import strategies as st
from own_files import RESULTS, ROOT
from watched_parsers import Files

from svgpbench.cli.application import exit_code
from svgpbench.errors import UserError

PLANS = {
    "learning": ROOT / "harness/svgpbench/benchmarks/time_to_target/plan.toml",
    "survival": ROOT / "harness/svgpbench/benchmarks/stability/plan.toml",
}


def command(*arguments: str) -> str:
    """Return what a command prints. Its one line on standard error is raised as a user's mistake."""
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


@st.composite
def speed_files(draw: st.DrawFn) -> Files:
    names = ("cpu-M100-two-threads.json", "cpu-M500.json", "adam2021-fig4.json")
    return {"speed.json": draw(broken_json(speed_record(draw(st.sampled_from(names)))))}


def read_speed(folder: Path) -> object:
    return command("speed", "--load", str(folder / "speed.json"))


@cache
def lines_of(part: str) -> list[dict[str, Any]]:
    text = (RESULTS / part / "svgpbench.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


@st.composite
def line_files(draw: st.DrawFn, part: str) -> Files:
    """Draw a plan and a file of records, a line each; a third of the lines or the plan is broken."""
    plan, records = PLANS[part].read_bytes(), lines_of(part)
    lines = [json.dumps(record).encode() for record in records]
    if draw(seldom(30)):
        plan = draw(broken_toml(tomllib.loads(plan.decode())))
    else:
        for at in draw(st.permutations(range(len(lines))))[: len(lines) // 3]:
            lines[at] = draw(broken_json(records[at]))
    return {"plan.toml": plan, "svgpbench.jsonl": b"\n".join(lines)}


def lines_reader(name: str) -> Callable[[Path], object]:
    def read(folder: Path) -> object:
        place = ("--results", str(folder), "--plan", str(folder / "plan.toml"))
        return command(name, "--from-records", "--library", "svgpbench", *place)

    return read
