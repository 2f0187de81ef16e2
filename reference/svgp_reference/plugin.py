"""Plugin that pytest loads wherever svgp-reference is installed.

It adds its options only if an argument names `svgp_reference`, because other packages may have options with
the same names.
"""

from __future__ import annotations

from typing import Any


def pytest_load_initial_conftests(early_config: Any, args: list[str]) -> None:
    """Add the options before pytest reads them."""
    if any("svgp_reference" in argument for argument in args):
        early_config.pluginmanager.import_plugin("svgp_reference.options")
