"""Plugin that pytest loads wherever svgp-reference is installed.

It adds its options only if an argument names this package or a file in it, because other packages may have
options with the same names.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parent


def pytest_load_initial_conftests(early_config: Any, args: list[str]) -> None:
    """Add the options before pytest reads them."""
    # a keyword, a marker or a plugin of this name is nothing to collect
    pairs = zip(["", *args], args, strict=False)
    if any(_names_package(x) for before, x in pairs if before not in ("-k", "-m", "-p")):
        early_config.pluginmanager.import_plugin("svgp_reference.options")


def _names_package(argument: str) -> bool:
    """Return True for `svgp_reference`, a module in it, or the path of a file in it; not for a like name."""
    name = argument.partition("::")[0]
    return name.partition(".")[0] == PACKAGE.name or Path(name).resolve().is_relative_to(PACKAGE)
