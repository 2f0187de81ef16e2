"""Commands by name. A command is imported only when it is used, to keep start-up short."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any

import typer
from typer.core import TyperGroup

GROUPS = {
    "Start": {
        "doctor": "Check this machine and say what to install.",
        "list": "List methods, backends, data sets, experiments and more.",
    },
    "The board": {
        "leaderboard": "Show which method is best on the problems of the suite.",
        "advise": "Recommend methods and rates for your data, from the board.",
    },
    "Run and look": {
        "run": "Run an experiment; finished cells are kept.",
        "table": "Print the final numbers of an experiment.",
        "plot": "Draw the figures of an experiment.",
        "compare": "Compare two methods, backends or folders of records.",
    },
    "Papers": {
        "claims": "Grade the claims of papers, with the evidence.",
        "reproduce": "Make the figures and tables of papers again.",
        "report": "Write all results as a folder of web pages.",
    },
    "Speed and stability": {
        "speed": "Time training steps, also of GPflow, GPyTorch and GPJax.",
        "learn": "Time training until it reaches a given accuracy.",
        "survive": "Find the learning rates at which natural gradients fail.",
        "cost": "Count FLOPs, bytes and memory of a method's steps.",
    },
    "Data": {
        "inducing": "Say how many inducing points are enough for your data.",
        "fetch": "Download data sets and verify their checksums.",
        "data": "Show, audit and split data sets.",
    },
    "Records": {
        "verify": "Run records again and compare the numbers.",
        "collect": "Put records of several folders into one table or folder.",
    },
    "For plugin authors": {
        "new": "Write a package that adds a method, backend or data set.",
        "check": "Check that all backends compute the same numbers.",
    },
}
"""Summaries of the commands by need and name, in the order of the help."""

COMMANDS = {name: text for group in GROUPS.values() for name, text in group.items()}
"""Summaries by name; each name is a module, with a function `NAME_command` or a group `app`."""


class LazyCommands(Mapping[str, Any]):
    """Mapping from names to commands; reading a value imports its module."""

    def __getitem__(self, name: str) -> Any:
        """Import and return the command `name`."""
        if name not in COMMANDS:
            raise KeyError(name)
        module = importlib.import_module(f"svgpbench.cli.{name}")
        if hasattr(module, "app"):
            return typer.main.get_group(module.app)
        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        single.command(name)(getattr(module, f"{name}_command"))
        return typer.main.get_command(single)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the commands."""
        return iter(COMMANDS)

    def __len__(self) -> int:
        """Return the number of commands."""
        return len(COMMANDS)


class Commands(TyperGroup):
    """Group of all commands."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes | {"commands": LazyCommands()})

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the summaries of the commands by need. No command is imported."""
        # click's own asks every command for its summary, and would import them all; it also aligns
        # each section by itself, hence one width for all
        first_width = max(map(len, COMMANDS))
        for title, commands in GROUPS.items():
            rows = [(name.ljust(first_width), text) for name, text in commands.items()]
            with formatter.section(title):
                formatter.write_dl(rows)
