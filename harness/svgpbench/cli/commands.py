"""Commands by name. A command is imported only when it is used, to keep start-up short."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any

import typer
from typer.core import TyperGroup

COMMANDS = {
    "list": "listing:list_command",
    "fetch": "fetching:fetch_command",
    "run": "running:run_command",
    "choose": "choosing:choose_command",
    "table": "reporting:table_command",
    "plot": "reporting:plot_command",
    "compare": "comparing:compare_command",
    "advise": "advising:advise_command",
    "claims": "claiming:claims_command",
    "reproduce": "reproducing:reproduce_command",
    "report": "publishing:report_command",
    "collect": "collecting:collect_command",
    "verify": "verifying:verify_command",
    "migrate": "migrating:migrate_command",
    "check": "checking:check_command",
    "speed": "timing:speed_command",
    "scaling": "scaling:scaling_command",
    "learn": "learning:learn_command",
    "survive": "surviving:survive_command",
    "cost": "costing:cost_command",
    "sharded": "sharding:sharded_command",
    "doctor": "diagnosing:doctor_command",
    "new": "creating:new_command",
    "data": "data:data_app",
}
"""`module:member` of each command, in the order of the help; a function or a group of commands."""


class Imported(Mapping[str, Any]):
    """Mapping from names to commands; reading a value imports its module."""

    def __getitem__(self, name: str) -> Any:
        """Import and return the command `name`."""
        module, _, member = COMMANDS[name].partition(":")
        found = getattr(importlib.import_module(f"svgpbench.cli.{module}"), member)
        if isinstance(found, typer.Typer):
            return typer.main.get_group(found)
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(name)(found)
        return typer.main.get_command(alone)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the commands."""
        return iter(COMMANDS)

    def __len__(self) -> int:
        """Return the number of commands."""
        return len(COMMANDS)


class Commands(TyperGroup):
    """Group of all commands."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes | {"commands": Imported()})
