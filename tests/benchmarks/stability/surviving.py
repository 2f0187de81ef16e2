"""The command as the tests of this folder call it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from svgpbench.cli.application import exit_code


class Survive:
    """`svgpbench survive` on a plan, and the lines that it recorded."""

    def __init__(self, plan: Path, results: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.plan, self.results, self.capsys = plan, results, capsys

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        where = ("--plan", str(self.plan), "--results", str(self.results))
        code = exit_code(["survive", *where, *arguments])
        said = self.capsys.readouterr()
        return code, said.out, said.err

    def lines(self, library: str = "svgpbench") -> list[dict[str, Any]]:
        text = (self.results / f"{library}.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]
