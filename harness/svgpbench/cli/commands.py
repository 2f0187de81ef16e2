"""Commands by name. A command is imported only when it is used, to keep start-up short."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any

import typer
from typer.core import TyperGroup

COMMANDS = (
    *("list", "fetch", "run", "choose", "table", "plot"),
    *("compare", "advise", "inducing", "claims", "reproduce"),
    *("report", "collect", "verify", "migrate", "check", "speed", "scaling", "learn", "survive"),
    *("cost", "sharded", "doctor", "new", "data"),
)
"""Names in the order of the help; each is a module, with a function `NAME_command` or a group `app`."""


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
