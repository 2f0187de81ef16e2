"""Blocks of code on every page: commands with options that there are, TOML and Python that can be read.

Pages that tell how to add something are followed step by step in tests of their own. These are the rest;
a command that takes a cluster, a GPU or an hour is asked for its arguments alone.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
from guide import BLOCK, DOCS
from typer.core import TyperGroup
from typer.main import get_command

from svgpbench.cli.application import app

ROOT = DOCS.parent
PAGES = sorted([*DOCS.glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
BLOCKS = [
    pytest.param(kind, text, id=f"{page.stem}-{at}-{kind}")
    for page in PAGES
    for at, (kind, text) in enumerate(BLOCK.findall(page.read_text("utf-8")))
]
TARGETS = set(
    re.findall(r"^([a-z-]+|\$\(VENV\)/\.installed):", Path(ROOT, "Makefile").read_text(), re.M)
)


def understood(words: list[str]) -> None:
    """Let the command line read its arguments, and run nothing."""
    command: Any = get_command(app)
    parent: Any = None
    while isinstance(command, TyperGroup):
        parent = command.make_context(command.name, words, parent=parent)
        _, command, words = command.resolve_command(parent, [*parent._protected_args, *parent.args])
    command.make_context(command.name, words, parent=parent)


@pytest.mark.parametrize(("kind", "text"), BLOCKS)
def test_a_block_says_what_there_is(kind: str, text: str) -> None:
    if kind == "toml":
        assert tomllib.loads(text)
    elif kind == "python":
        modules = [x for x in ast.walk(ast.parse(text)) if isinstance(x, ast.ImportFrom)]
        for module in modules:
            name = str(module.module)
            if name.startswith("svgpbench") and not name.startswith(
                "svgpbench.libraries"
            ):  # needs a peer
                there = importlib.import_module(name)
                assert [one.name for one in module.names if not hasattr(there, one.name)] == []
    elif kind == "sh":
        for line in text.replace("\\\n", " ").splitlines():
            for command in line.partition("#")[0].split("&&"):
                check_command(shlex.split(command))


def check_command(words: list[str]) -> None:
    if words[0] == "svgpbench":
        understood(words[1:])
    elif words[0] == "make":
        assert words[1].replace(".venv", "$(VENV)") in TARGETS
    elif words[:2] == ["python", "-m"]:
        assert importlib.util.find_spec(words[2]), words
    else:
        assert words[0] in {"pip", "pytest", "cd", "dask", "pre-commit"}, words


def test_a_block_that_says_what_there_is_not_is_seen() -> None:
    for words, why in (
        (["run", "adam2021-fig3", "--presett", "quick"], "No such option: --presett"),
        (["runn"], "No such command 'runn'"),
    ):
        with pytest.raises(Exception) as refused:
            understood(words)
        assert refused.value.format_message().startswith(why)
    for words in (["make", "nothing"], ["python", "-m", "svgpbench.nothing"]):
        with pytest.raises(AssertionError):
            check_command(words)
