"""What pytest loads wherever this package is installed: nothing, unless the conformance kit is asked for.

The kit's options have names that other packages' options have too, so they are there only for
`pytest --pyargs svgpbench.checks …`.
"""

from __future__ import annotations

from typing import Any

KIT = "svgpbench.checks"


def pytest_load_initial_conftests(early_config: Any, args: list[str]) -> None:
    """Add the kit's options and fixtures before options are read."""
    if any(argument.partition("::")[0].startswith(KIT) for argument in args):
        early_config.pluginmanager.import_plugin(f"{KIT}.kit.options")
