"""Plugin that pytest loads wherever svgpbench is installed; it adds the options of the conformance kit.

It adds them only for `pytest --pyargs svgpbench.checks …`, because other packages may have options with the
same names.
"""

from __future__ import annotations

from typing import Any

KIT = "svgpbench.checks"


def pytest_load_initial_conftests(early_config: Any, args: list[str]) -> None:
    """Add the kit's options and fixtures before pytest reads its options."""
    if any(argument.partition("::")[0].startswith(KIT) for argument in args):
        early_config.pluginmanager.import_plugin(f"{KIT}.kit.options")
