"""What this package itself installs, whatever other packages have installed beside it."""

from __future__ import annotations

from svgpbench.checks.cases import METHODS
from svgpbench.plugins import METHODS as ENTRY_POINTS
from svgpbench.plugins import plugins


def _ours(group: str) -> set[str]:
    return {
        n for n, point in plugins(group).items() if point.dist and point.dist.name == "svgpbench"
    }


SHIPPED_METHODS = {variant: of for variant, of in METHODS.items() if of[0] in _ours(ENTRY_POINTS)}
"""The variants of this package's methods, as `METHODS` has them."""
