"""What this package itself installs, whatever other packages have installed beside it."""

from __future__ import annotations

from svgpbench.checks.cases import VARIANTS
from svgpbench.plugins import METHODS, plugins


def _ours(group: str) -> set[str]:
    return {
        n for n, point in plugins(group).items() if point.dist and point.dist.name == "svgpbench"
    }


SHIPPED_METHODS = {variant: of for variant, of in VARIANTS.items() if of[0] in _ours(METHODS)}
"""The variants of this package's methods, as `VARIANTS` has them."""
